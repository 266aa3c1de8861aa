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

/* mov WORD, %reg: what is on top of the stack, or thread->target */
static void emit_word(struct builder *b, enum reg reg, enum where where)
{
	if (where == AT_STACK) {
		const uint8_t load[] = {0x48, 0x8b, 0x04 | reg << 3, 0x24};

		__builtin_memcpy(b->at, load, sizeof(load));
		b->at += sizeof(load);
	} else {
		emit_fill(b, reg, THREAD_TARGET);
	}
}

/*
 * Goes on if WORD, on top of the stack or thread->target, is @pc; else to @way. Flags stay as they
 * are: even where they are dead at @pc, they may be live at what was meant.
 *
 *	mov WORD, %rcx			 mov %rdx, %gs:RDX
 *	lea 1-pc(%rcx), %rcx		 movabs $1-pc, %rcx
 *	loop 1f				 mov WORD, %rdx
 *					 lea (%rcx, %rdx), %rcx
 *	(pc below 2 GiB)		 mov %gs:RDX, %rdx
 *					 loop 1f
 *
 * 1: jmp way is somewhere near, where nobody comes by. loop is the one instruction that falls
 * through for a single value and leaves flags alone; Intel's processors take long for it, and there
 * it is -pc, and jrcxz over the jmp. A branch less that is taken is worth a tenth of the time of an
 * interpreter.
 */
struct verify {
	enum where where;
	uint8_t *to_miss; /* behind the rel8 of the loop; NULL: there is none */
};

static void emit_miss(struct builder *b, enum where where)
{
	mark(b, (struct state){.where = where, .spills = SPILL_RCX});
	emit8(b, 0xe9);
	emit_relative(b, (uint64_t)b->cache->lookup.code +
				 (where == AT_STACK ? b->cache->return_miss : b->cache->jump_miss));
}

static struct verify emit_verify(struct builder *b, uint64_t pc, enum where where)
{
	const uint64_t constant = tables_quick_loop() - pc;
	struct verify verify = {.where = where};
	struct state state = {.where = where, .spills = SPILL_RCX};

	mark(b, state);
	if (pc < 1UL << 31) {
		emit_word(b, REG_RCX, where);
		EMIT(b, 0x48, 0x8d, 0x89);
		emit32(b, (uint32_t)constant);
	} else {
		emit_spill(b, REG_RDX, THREAD_RDX);
		state.spills |= SPILL_RDX;
		mark(b, state);
		EMIT(b, 0x48, 0xb9);
		emit64(b, constant);
		emit_word(b, REG_RDX, where);
		EMIT(b, 0x48, 0x8d, 0x0c, 0x11);
		emit_fill(b, REG_RDX, THREAD_RDX);
	}
	if (tables_quick_loop()) {
		EMIT(b, 0xe2, 0);
		verify.to_miss = b->at;
	} else {
		EMIT(b, 0xe3, 5);
		emit_miss(b, where);
	}
	return verify;
}

/* At some place that is not on anybody's way, near what emit_verify() emitted. */
static void emit_verify_miss(struct builder *b, const struct verify *verify)
{
	if (!verify->to_miss)
		return;
	verify->to_miss[-1] = b->at - verify->to_miss;
	emit_miss(b, verify->where);
}

/* What was meant is @pc. */
static void emit_arrived(struct builder *b, const struct verify *verify, uint64_t pc)
{
	if (verify->where == AT_STACK)
		EMIT(b, 0x48, 0x8d, 0x64, 0x24, 0x08); /* lea 8(%rsp), %rsp */
	mark_pc(b, pc, SPILL_RCX);
	emit_fill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, pc, 0);
}

/* An arrival on its own: the way to a miss comes before it. */
static uint32_t emit_whole_arrival(struct builder *b, uint64_t pc, enum where where)
{
	struct verify verify;
	uint8_t *miss = b->at;
	uint32_t start;

	if (tables_quick_loop())
		emit_miss(b, where);
	start = here(b) - (uint64_t)b->cache->lookup.code;
	verify = emit_verify(b, pc, where);
	if (verify.to_miss)
		verify.to_miss[-1] = miss - verify.to_miss;
	emit_arrived(b, &verify, pc);
	return start;
}

uint32_t emit_landing(struct builder *b, uint64_t pc)
{
	return emit_whole_arrival(b, pc, AT_TARGET);
}

uint32_t emit_pad(struct builder *b, uint64_t pc)
{
	return emit_whole_arrival(b, pc, AT_STACK);
}

/* ---- conditions ---- */

void emit_jcc(struct builder *b)
{
	align_patch(b, 2);
	emit8(b, 0x0f);
	emit8(b, 0x80 | (b->insn.opcode & 0xf));
	emit_exit(b, insn_target(&b->insn, b->pc), EXIT_LINK);
}

/*
 *	loop taken; jmp on; taken: jmp TARGET; on:
 */
void emit_loop(struct builder *b)
{
	uint8_t *on;

	if (b->insn.prefixes & PREFIX_ADDRESS)
		emit8(b, 0x67);
	emit8(b, b->insn.opcode);
	emit8(b, 2);
	mark_pc(b, b->pc + b->insn.length, 0);
	EMIT(b, 0xeb, 0);
	on = b->at;
	mark_pc(b, insn_target(&b->insn, b->pc), 0);
	emit_exit_jump(b, insn_target(&b->insn, b->pc), EXIT_LINK);
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
 *	jmp on
 * 1:	lea 8(%rsp), %rsp
 *	push ADDRESS		or movq $ADDRESS, (%rsp) where that can be said
 *	jmp TARGET
 *	ADDRESS
 *	the pad's way to a miss
 * on:
 *
 * One store of 64 bits, since the load of the return finds a value only in a store that has all of
 * it.
 */
struct call {
	uint8_t *to_thunk; /* behind the rel32 of the call */
	uint8_t *to_end;   /* behind the rel8 of the jmp */
	uint64_t address;
	uint8_t spills;
	struct verify verify;
};

static void begin_call(struct builder *b, struct call *call, uint8_t spills)
{
	call->address = b->pc + b->insn.length;
	call->spills = spills;
	EMIT(b, 0xe8, 0, 0, 0, 0);
	call->to_thunk = b->at;
	b->pad = here(b) - (uint64_t)b->cache->lookup.code;
	call->verify = emit_verify(b, call->address, AT_STACK);
	emit_arrived(b, &call->verify, call->address);
	EMIT(b, 0xeb, 0);
	call->to_end = b->at;
	call->to_thunk[-4] = b->at - call->to_thunk;
}

/* The return address; the disp32 of the constant, for end_call(), if there is one. */
static uint8_t *push_address(struct builder *b, const struct call *call)
{
	mark(b, (struct state){.pc = b->pc, .spills = call->spills, .rsp = 8});
	if (call->address < 1UL << 31) {
		EMIT(b, 0x48, 0xc7, 0x04, 0x24); /* movq $address, (%rsp) */
		emit32(b, (uint32_t)call->address);
		return NULL;
	}
	EMIT(b, 0x48, 0x8d, 0x64, 0x24, 0x08);
	mark_pc(b, b->pc, call->spills);
	EMIT(b, 0xff, 0x35, 0, 0, 0, 0);
	return b->at;
}

static void end_call(struct builder *b, const struct call *call, uint8_t *push)
{
	if (push) {
		uint32_t disp = b->at - push;

		__builtin_memcpy(push - 4, &disp, 4);
		emit64(b, call->address);
	}
	emit_verify_miss(b, &call->verify);
	call->to_end[-1] = b->at - call->to_end;
	mark_pc(b, call->address, 0);
}

void emit_call(struct builder *b)
{
	const uint64_t target = insn_target(&b->insn, b->pc);
	struct call call;
	uint8_t *push;

	begin_call(b, &call, 0);
	push = push_address(b, &call);
	mark_pc(b, target, 0);
	emit_exit_jump(b, target, EXIT_LINK);
	end_call(b, &call, push);
}

void emit_call_indirect(struct builder *b)
{
	struct call call;
	uint8_t *push;

	emit_target(b);
	begin_call(b, &call, SPILL_RCX);
	push = push_address(b, &call);
	mark(b, (struct state){.where = AT_TARGET, .spills = SPILL_RCX});
	emit_table_jump(b);
	end_call(b, &call, push);
}

/* ---- the ways out ---- */

/* jmp *%gs:member */
static uint32_t emit_way(struct builder *b, uint8_t member)
{
	const uint32_t offset = b->at - b->cache->lookup.code;
	const uint8_t jump[] = {0x65, 0xff, 0x24, 0x25, member, 0, 0, 0};

	__builtin_memcpy(b->at, jump, sizeof(jump));
	b->at += 1 << WAY_SHIFT;
	return offset;
}

void emit_ways_out(struct builder *b)
{
	b->cache->jump_miss = emit_way(b, THREAD_JUMP_MISS);
	b->cache->return_miss = emit_way(b, THREAD_RETURN_MISS);
	b->cache->leave = emit_way(b, THREAD_LEAVE);
}
