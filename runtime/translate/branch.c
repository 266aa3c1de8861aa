// SPDX-License-Identifier: MIT
/*
 * Branches. What the program sees is as if they had been executed where they stand: the addresses
 * that are pushed are its own, and no flag changes.
 *
 * A target that is not known in advance is looked up in a table of candidates, by some bits of its
 * address. The site does not compare: a place leads to where the candidate arrives, and the code
 * there, which has the address as a constant, verifies that it was meant. Free places of the tables
 * lead to the ways out.
 *
 * Calls and returns keep the processor's own predictor of returns in step: a call is a call, a
 * return a return. The call's own return address is that of the pad that follows it in the cache;
 * the program's goes over it.
 */
#include "runtime/translate/build.h"
#include "runtime/translate/tables.h"

/* ---- the lookup ---- */

static uint32_t low_address(const void *p)
{
	return (uint32_t)(uintptr_t)p;
}

/* The target in ecx becomes its place in the table. */
static void emit_index(struct builder *b, enum table table)
{
	switch (tables_index()) {
	case INDEX_PEXT: /* pext mask, %ecx, %ecx */
		EMIT(b, 0xc4, 0xe2, 0x72, 0xf5, 0x0c, 0x25);
		emit32(b, low_address(&tables(b->cache)->masks[table]));
		break;
	case INDEX_RORX: /* rorx $4, %ecx, %ecx */
		if (table == TABLE_JUMPS)
			EMIT(b, 0xc4, 0xe3, 0x7b, 0xf0, 0xc9, 0x04);
		/* fall through */
	case INDEX_MOVZX:
		EMIT(b, 0x0f, 0xb7, 0xc9);
		break;
	}
}

/* With the target in rcx and in thread->target: jmp *places(, %rcx, 8) */
static void emit_table_jump(struct builder *b)
{
	emit_index(b, TABLE_JUMPS);
	EMIT(b, 0xff, 0x24, 0xcd);
	emit32(b, low_address(tables(b->cache)->places[TABLE_JUMPS]));
}

/* ---- arriving ---- */

/*
 * Goes on if WORD, which is on top of the stack or thread->target, is @pc; else to a way to a miss.
 * Flags stay as they are: even where they are dead at @pc, they may be live at what was meant.
 *
 *	pop %rcx or mov WORD, %rcx	 mov %rdx, %gs:RDX
 *	lea 1-pc(%rcx), %rcx		 movabs $1-pc, %rdx
 *	loop miss			 pop %rcx or mov WORD, %rcx
 *	mov %gs:RCX, %rcx		 lea (%rdx, %rcx), %rcx
 *					 mov %gs:RDX, %rdx
 *	(pc below 2 GiB)		 loop miss
 *					 mov %gs:RCX, %rcx
 *
 * loop is the one instruction that falls through for a single value and leaves flags alone. Intel's
 * processors take long for it, and there it is -pc, and jrcxz over the jump to the miss. A branch
 * less that is taken is worth a tenth of the time of an interpreter.
 */
static const struct state missed[] = {
	[AT_TARGET] = {.where = AT_TARGET, .spills = SPILL_RCX},
	[AT_STACK] = {.where = AT_STACK, .spills = SPILL_RCX, .rsp = -8},
};

/* The way to a miss: what was meant is in thread->target, or has been taken off the stack. */
static void emit_miss(struct builder *b, enum where where)
{
	const bool open = b->trace.open;

	/* Who comes here is not in the block or segment around it. */
	b->trace.open = false;
	b->count.apart = true;
	mark(b, missed[where]);
	b->trace.open = open;
	b->count.apart = false;
	emit8(b, 0xe9);
	emit_relative(b, (uint64_t)b->cache->lookup.code +
				 (where == AT_STACK ? b->cache->popped_miss : b->cache->jump_miss));
}

static void emit_word(struct builder *b, enum where where)
{
	if (where == AT_STACK)
		emit8(b, 0x59);
	else
		emit_fill(b, REG_RCX, THREAD_TARGET);
}

/* Returns what is behind the rel8 of the loop, or NULL where there is none: then @miss is known. */
static uint8_t *emit_verify(struct builder *b, uint64_t pc, enum where where, uint8_t **miss)
{
	const uint64_t constant = tables_quick_loop() - pc;
	struct state state = {.where = where, .spills = SPILL_RCX};

	mark(b, state);
	if (pc < 1UL << 31) {
		emit_word(b, where);
		mark(b, missed[where]);
		EMIT(b, 0x48, 0x8d, 0x89);
		emit32(b, (uint32_t)constant);
	} else {
		emit_spill(b, REG_RDX, THREAD_RDX);
		state.spills |= SPILL_RDX;
		mark(b, state);
		EMIT(b, 0x48, 0xba);
		emit64(b, constant);
		emit_word(b, where);
		state.rsp = missed[where].rsp;
		mark(b, state);
		EMIT(b, 0x48, 0x8d, 0x0c, 0x0a);
		emit_fill(b, REG_RDX, THREAD_RDX);
		mark(b, missed[where]);
	}
	if (tables_quick_loop()) {
		EMIT(b, 0xe2, 0);
		return b->at;
	}
	EMIT(b, 0xe3, 5);
	*miss = b->at;
	emit_miss(b, where);
	return NULL;
}

/*
 * As if it had been another that was meant, if the counter has got to where somebody wants to
 * know (count_near.c). Where paths arrive whose length nobody knows, rcx is free, so it takes no flag:
 *
 *	pextrw $HIGHEST, %xmm15, %ecx; jrcxz miss
 */
static void emit_look(struct builder *b, unsigned int kind)
{
	EMIT(b, 0x66, 0x41, 0x0f, 0xc5);
	emit8(b, 0xc8 | (7 - kind / 2));
	emit8(b, kind % 2 ? 7 : 3);
	EMIT(b, 0xe3, 0);
}

#define for_each_kind(kind, mask)                                                                  \
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)                                    \
		if ((mask) >> kind & 1)

/* What was meant is @pc. */
static void emit_arrived(struct builder *b, uint64_t pc)
{
	mark_pc(b, pc, SPILL_RCX);
	emit_fill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, pc, 0);
}

/* At the beginning of a fragment: the way to a miss comes before it. */
static uint32_t emit_arrival(struct builder *b, uint64_t pc, enum where where)
{
	uint8_t *miss = b->at, *loop;
	uint32_t start;

	if (tables_quick_loop())
		emit_miss(b, where);
	start = offset_here(b);
	loop = emit_verify(b, pc, where, &miss);
	if (loop)
		loop[-1] = miss - loop;
	for_each_kind(kind, count_looked(b->cache)) {
		emit_look(b, kind);
		b->at[-1] = miss - b->at;
	}
	emit_arrived(b, pc);
	return start;
}

uint32_t emit_landing(struct builder *b, uint64_t pc)
{
	return emit_arrival(b, pc, AT_TARGET);
}

uint32_t emit_pad(struct builder *b, uint64_t pc)
{
	return emit_arrival(b, pc, AT_STACK);
}

/*
 * Pads within a fragment share ways to a miss, that lie no farther than a rel8 reaches: behind the
 * end of the fragment, or, if that is too far, within a nop that everybody passes:
 *
 *	nopl DISP32(%rcx, %rbp, 8)	0f 1f 84 e9 DISP32, of which the last five are jmp DISP32
 */
static void reach_miss(struct builder *b, uint8_t *loop)
{
	if (b->miss && b->miss - loop >= INT8_MIN)
		loop[-1] = b->miss - loop;
	else
		b->lists->waiting[b->nr_waiting++] = loop;
}

static void emit_shared_miss(struct builder *b)
{
	for (b->miss = b->at; b->nr_waiting; b->nr_waiting--) {
		uint8_t *loop = b->lists->waiting[b->nr_waiting - 1];

		loop[-1] = b->miss - loop;
	}
	emit_miss(b, AT_STACK);
}

/* The most that the copy of the instruction at hand may be. */
static unsigned int longest_copy(const struct insn *insn)
{
	switch (insn->class) {
	case INSN_PLAIN:
		return insn->rip_relative ? 48 : insn->length;
	case INSN_JCC:
		return 9;
	case INSN_JMP:
		return 0;
	case INSN_RET:
		return 56;
	default:
		return INT8_MAX;
	}
}

void emit_miss_in_reach(struct builder *b)
{
	enum { NOP = 8, LAST_JUMP = 8 };

	/* What the trace puts before an instruction may be longer than that. */
	if (!b->nr_waiting || (!b->trace.on && !cache_filters(b->cache) &&
			       b->at + NOP + count_before_bytes(b) + longest_copy(&b->insn) +
					       LAST_JUMP - b->lists->waiting[0] <=
				       INT8_MAX))
		return;
	mark_pc(b, b->pc, 0);
	EMIT(b, 0x0f, 0x1f, 0x84);
	emit_shared_miss(b);
	mark_pc(b, b->pc, 0);
}

/* ---- conditions ---- */

/* Over something: emits what is between. */
static void emit_taken(struct builder *b, uint64_t target)
{
	mark(b, (struct state){.pc = target, .done = true});
	if (b->count.kinds)
		count_taken(b, target);
	emit_exit_jump(b, target, EXIT_LINK);
}

/*
 *	jncc on; it is taken; jmp TARGET; on:
 */
static void emit_told_jcc(struct builder *b, uint64_t target)
{
	uint8_t *on;

	emit8(b, 0x70 | ((b->insn.opcode & 0xf) ^ 1));
	emit8(b, 0);
	on = b->at;
	emit_taken(b, target);
	on[-1] = b->at - on;
}

void emit_jcc(struct builder *b)
{
	const uint64_t target = insn_target(&b->insn, b->pc);

	if (count_tells_taken(b)) {
		emit_told_jcc(b, target);
		return;
	}
	align_patch(b, 2);
	emit8(b, 0x0f);
	emit8(b, 0x80 | (b->insn.opcode & 0xf));
	if (!b->count.due.used || !due_jcc(b, target))
		emit_exit(b, target, EXIT_LINK);
}

/*
 *	loop taken; jmp on; taken: jmp TARGET; on:
 */
void emit_loop(struct builder *b)
{
	const uint64_t target = insn_target(&b->insn, b->pc);
	uint8_t *on;

	if (b->insn.prefixes & PREFIX_ADDRESS)
		emit8(b, 0x67);
	emit8(b, b->insn.opcode);
	emit8(b, 2);
	mark_pc(b, b->pc + b->insn.length, 0);
	EMIT(b, 0xeb, 0);
	on = b->at;
	emit_taken(b, target);
	on[-1] = b->at - on;
}

/* No transaction ever begins: to the program all of them abort at once, with no hint to retry. */
void emit_xbegin(struct builder *b)
{
	EMIT(b, 0xb8, 0, 0, 0, 0); /* mov $0, %eax */
	emit_exit_jump(b, insn_target(&b->insn, b->pc), EXIT_LINK);
}

/* ---- jumps and returns ---- */

/* rcx to its slot, the target to rcx and thread->target */
static void emit_target(struct builder *b)
{
	emit_spill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, b->pc, SPILL_RCX);
	emit_operand_to_rcx(b);
	emit_spill(b, REG_RCX, THREAD_TARGET);
}

void emit_jump_indirect(struct builder *b)
{
	emit_target(b);
	emit_table_jump(b);
}

/*
 *	mov %rcx, %gs:RCX; mov (%rsp), %ecx; pext mask, %ecx, %ecx; push places(, %rcx, 8); ret
 *
 * The word below the stack pointer is lost, as it would be in a signal. The pad of the program's
 * return address takes it off the stack. A return that takes more than that off is a jump.
 */
void emit_return(struct builder *b)
{
	emit_spill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, b->pc, SPILL_RCX);
	if (b->insn.imm_size) {
		EMIT(b, 0x48, 0x8b, 0x0c, 0x24); /* mov (%rsp), %rcx */
		emit_spill(b, REG_RCX, THREAD_TARGET);
		EMIT(b, 0x48, 0x8d, 0xa4, 0x24); /* lea 8+n(%rsp), %rsp */
		emit32(b, 8 + (uint16_t)b->insn.imm);
		mark(b, (struct state){.where = AT_TARGET, .spills = SPILL_RCX});
		emit_table_jump(b);
		return;
	}
	EMIT(b, 0x8b, 0x0c, 0x24);
	emit_index(b, TABLE_RETURNS);
	EMIT(b, 0xff, 0x34, 0xcd);
	emit32(b, low_address(tables(b->cache)->places[TABLE_RETURNS]));
	mark(b, (struct state){.pc = b->pc, .spills = SPILL_RCX, .rsp = 8});
	emit8(b, 0xc3);
}

/* ---- calls ---- */

/*
 *	call 1f			the processor expects a return to the pad
 *	the pad			verifies that it is one to ADDRESS
 *	what comes next
 *	...
 *	the end of the fragment, where the ways to a miss and the thunks are:
 * 1:	movq $ADDRESS, (%rsp)	or where ADDRESS is far, lea 8(%rsp), %rsp; push ADDRESS(%rip)
 *	jmp TARGET
 *
 * So the way of a call and its return takes no branch more than the jump to the target. One store
 * of 64 bits, since the load of the return finds a value only in a store that has all of it.
 */
static void emit_call_and_pad(struct builder *b, uint64_t target)
{
	const uint64_t address = b->pc + b->insn.length;
	uint8_t *loop, *miss = NULL;

	EMIT(b, 0xe8, 0, 0, 0, 0);
	b->lists->thunks[b->nr_thunks++] = (struct thunk){
		.call = b->at,
		.pc = b->pc,
		.address = address,
		.target = target,
		.counts = b->count.insn,
		.gone = b->count.gone,
	};
	/* Who comes by the pad has not come from here. */
	trace_close(b);
	b->trace.entered = true;
	b->pad = offset_here(b);
	loop = emit_verify(b, address, AT_STACK, &miss);
	if (loop)
		reach_miss(b, loop);
	for_each_kind(kind, count_looked(b->cache)) {
		emit_look(b, kind);
		if (miss)
			b->at[-1] = miss - b->at;
		else
			reach_miss(b, b->at);
	}
	emit_arrived(b, address);
}

void emit_call(struct builder *b)
{
	emit_call_and_pad(b, insn_target(&b->insn, b->pc));
}

void emit_call_indirect(struct builder *b)
{
	emit_target(b);
	emit_call_and_pad(b, THUNK_INDIRECT);
}

static void push_address(struct builder *b, const struct thunk *thunk, uint8_t spills)
{
	mark(b, (struct state){.pc = thunk->pc, .spills = spills, .rsp = 8});
	if (thunk->address < 1UL << 31) {
		EMIT(b, 0x48, 0xc7, 0x04, 0x24);
		emit32(b, (uint32_t)thunk->address);
		return;
	}
	EMIT(b, 0x48, 0x8d, 0x64, 0x24, 0x08);
	mark_pc(b, thunk->pc, spills);
	/* Over the jump that follows, which may have to be aligned. */
	EMIT(b, 0xff, 0x35, 0, 0, 0, 0);
}

static void emit_thunk(struct builder *b, const struct thunk *thunk)
{
	const bool far = thunk->address >= 1UL << 31;
	uint8_t *pushed;
	uint32_t relative = b->at - thunk->call;

	__builtin_memcpy(thunk->call - 4, &relative, 4);
	b->pc = thunk->pc;
	count_thunk(b, &thunk->counts);
	b->count.gone = thunk->gone;
	b->trace.open = b->trace.on; /* the block has the call alone */
	b->trace.insns = 0;
	mark_not_begun(b);
	push_address(b, thunk, thunk->target == THUNK_INDIRECT ? SPILL_RCX : 0);
	pushed = b->at;
	if (thunk->target == THUNK_INDIRECT) {
		mark(b, missed[AT_TARGET]);
		emit_table_jump(b);
	} else {
		mark(b, (struct state){.pc = thunk->target, .done = true});
		emit_exit_jump(b, thunk->target, EXIT_LINK);
	}
	if (far) {
		relative = b->at - pushed;
		__builtin_memcpy(pushed - 4, &relative, 4);
		emit64(b, thunk->address);
	}
	b->trace.open = false;
}

void emit_out_of_line(struct builder *b)
{
	if (b->nr_waiting)
		emit_shared_miss(b);
	for (unsigned int i = 0; i < b->nr_thunks; i++)
		emit_thunk(b, &b->lists->thunks[i]);
}

/* ---- the ways out ---- */

/* jmp *%gs:member */
static uint32_t emit_way(struct builder *b, uint8_t member)
{
	const uint32_t offset = b->at - b->cache->lookup.code;
	const uint8_t jump[] = {segment_prefix, 0xff, 0x24, 0x25, member, 0, 0, 0};

	__builtin_memcpy(b->at, jump, sizeof(jump));
	b->at += 1 << WAY_SHIFT;
	return offset;
}

/* A return whose place in the table is free comes with its target on the stack. */
void emit_ways_out(struct builder *b)
{
	b->cache->jump_miss = emit_way(b, THREAD_JUMP_MISS);
	b->cache->return_miss = b->at - b->cache->lookup.code;
	b->cache->popped_miss = b->cache->return_miss + 1;
	emit8(b, 0x59);
	emit_way(b, THREAD_RETURN_MISS);
	b->at--;
	b->cache->leave = emit_way(b, THREAD_LEAVE);
}
