// SPDX-License-Identifier: MIT
/*
 * Tracing, for the model (runtime/model/block.h): each block of the program's code begins with
 *
 *	mov %rcx, %gs:RCX
 *	movzbl %gs:TRACE + 1, %ecx	0 when the buffer is full (trace_buffer.h)
 *	jrcxz 1f
 *	jmp 2f
 * 1:	jmp drain			out of line; comes back to the beginning
 * 2:	mov %gs:TRACE, %rcx
 *	movq $code, (%rcx)		of the block (model/compile.h)
 *	mov %rdi, 8(%rcx)		registers from which operands of the block are reached
 *	...
 *	lea SIZE(%rcx), %rcx
 *	mov %rcx, %gs:TRACE		from here on there is a record
 *	mov %gs:RCX, %rcx
 *
 * without touching flags. A register is taken for all operands that it reaches before it changes:
 * to see which these are, the code is looked at in advance, as far as the page goes. What can only
 * be told later is put into the record in the same way before its instruction. rsp is followed
 * through pushes and pops; operands with an index are told by their address.
 *
 * A block ends with a branch, before a call, and around a string instruction with a repeat count.
 * What is known of it in advance is written when it ends; so is SIZE.
 */
#include "runtime/translate/trace.h"

#include "abi/machine.h"
#include "runtime/model/block.h"
#include "runtime/translate/build.h"

/* ---- what operands are reached by ---- */

enum reach {
	REACH_NONE,    /* no access, or none whose address could be told */
	REACH_STATIC,  /* relative to the block */
	REACH_FAR,     /* known, but too far from the block */
	REACH_BASE,    /* a register as it is, and a constant */
	REACH_ADDRESS, /* to be computed */
};

#define LOW_END (1UL << 31)

static uint64_t static_address(const struct insn *insn, const struct insn_memory *m, uint64_t pc)
{
	const uint64_t address = m->disp + (m->rip_relative ? pc + insn->length : 0);

	return insn->prefixes & PREFIX_ADDRESS ? (uint32_t)address : address;
}

static bool fits_well(int64_t disp)
{
	return disp > -(1 << 30) && disp < 1 << 30;
}

static enum reach reach_of(const struct insn *insn, const struct insn_memory *m, uint64_t pc)
{
	if (m->access == ACCESS_NONE)
		return REACH_NONE;
	if (m->base == INSN_NO_REGISTER && (m->index == INSN_NO_REGISTER || m->vsib)) {
		const uint64_t address = static_address(insn, m, pc);

		/* What FS makes of it is added later. */
		if (insn->prefixes & PREFIX_FS)
			return fits_well(m->disp) ? REACH_STATIC : REACH_NONE;
		return address < LOW_END ? REACH_STATIC : REACH_FAR;
	}
	/* Of vectors of indices nothing can be told without vector registers. */
	if ((m->index == INSN_NO_REGISTER || m->vsib) && fits_well(m->disp) &&
	    !(insn->prefixes & PREFIX_ADDRESS))
		return REACH_BASE;
	return REACH_ADDRESS;
}

static uint16_t registers_of(const struct insn_memory *m)
{
	uint16_t registers = 0;

	if (m->base != INSN_NO_REGISTER)
		registers |= 1 << m->base;
	if (m->index != INSN_NO_REGISTER && !m->vsib)
		registers |= 1 << m->index;
	return registers;
}

static bool is_string(const struct insn *insn)
{
	const uint8_t op = insn->opcode;

	return insn->encoding == INSN_LEGACY && insn->map == 0 &&
	       ((op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf));
}

static bool repeats(const struct insn *insn)
{
	return is_string(insn) && insn->prefixes & (PREFIX_REP | PREFIX_REPNE);
}

/* By how much a plain instruction moves rsp, if it does in a way that is known. */
static bool moves_rsp(const struct insn *insn, int32_t *by)
{
	const uint8_t op = insn->opcode, reg = insn->modrm >> 3 & 7;
	const int32_t size = insn->prefixes & PREFIX_OPERAND ? 2 : 8;

	*by = 0;
	if (insn->encoding != INSN_LEGACY || insn->map)
		return false;
	if ((op >= 0x50 && op <= 0x57) || op == 0x68 || op == 0x6a || op == 0x9c ||
	    (op == 0xff && reg == 6))
		*by = -size;
	else if ((op >= 0x58 && op <= 0x5f && op != 0x5c) || op == 0x9d)
		*by = size;
	else if ((op == 0x81 || op == 0x83) && insn->rex & REX_W &&
		 (insn->modrm == 0xc4 || insn->modrm == 0xec) && !(insn->rex & REX_B) &&
		 fits_well(insn->imm))
		*by = insn->modrm == 0xc4 ? (int32_t)insn->imm : -(int32_t)insn->imm;
	else
		return false;
	return !(op >= 0x58 && op <= 0x5f) || op + (insn->rex & REX_B ? 8 : 0) != 0x58 + REG_RSP;
}

/* ---- words ---- */

/* The words of one piece of code that takes some. */
struct group {
	uint16_t bases; /* registers to be stored as they are */
	unsigned int nr;
	struct {
		struct insn insn; /* for its prefixes and length */
		struct insn_memory memory;
		uint64_t pc;
		uint8_t word;
	} addresses[6];
};

static bool group_room(const struct builder *b, const struct group *g)
{
	return b->trace.words + 4u < BLOCK_MAX_WORDS && g->nr < 6 &&
	       b->trace.nr_taken < sizeof(b->trace.taken) / sizeof(*b->trace.taken);
}

static const struct trace_taken *taken(const struct trace *t, uint64_t pc, unsigned int operand)
{
	for (unsigned int i = 0; i < t->nr_taken; i++)
		if (t->taken[i].pc == pc && t->taken[i].operand == operand)
			return &t->taken[i];
	return NULL;
}

static void take_address(struct builder *b, struct group *g, const struct insn *insn,
			 const struct insn_memory *m, unsigned int operand, uint64_t pc)
{
	struct trace *t = &b->trace;

	t->taken[t->nr_taken++] =
		(struct trace_taken){.pc = pc, .operand = operand, .word = t->words};
	g->addresses[g->nr].insn = *insn;
	g->addresses[g->nr].memory = *m;
	g->addresses[g->nr].pc = pc;
	g->addresses[g->nr++].word = t->words++;
}

static void take_base(struct builder *b, struct group *g, uint8_t base)
{
	struct trace *t = &b->trace;

	g->bases |= 1 << base;
	t->word_of[base] = t->words++;
	if (base == REG_RSP)
		t->rsp = 0;
}

/*
 * What can be taken now of the operands of the instruction at @pc: @changed are the registers that
 * are not then what they are now. @moved: rsp is, but for a known distance.
 */
static void take(struct builder *b, struct group *g, const struct insn *insn,
		 const struct insn_effects *e, uint64_t pc, uint16_t changed, bool moved)
{
	struct trace *t = &b->trace;

	for (unsigned int i = 0; i < e->nr_memory && group_room(b, g); i++) {
		const struct insn_memory *m = &e->memory[i];
		const enum reach reach = reach_of(insn, m, pc);

		if (reach == REACH_BASE && !(changed >> m->base & 1) && !t->word_of[m->base])
			take_base(b, g, m->base);
		if (reach != REACH_ADDRESS && reach != REACH_FAR)
			continue;
		if (registers_of(m) & (changed | (moved ? 1 << REG_RSP : 0)) || taken(t, pc, i))
			continue;
		take_address(b, g, insn, m, i, pc);
	}
}

/* Decodes what is at @pc, on the page of the instruction at hand. */
static bool look(const struct builder *b, uint64_t pc, struct insn *insn)
{
	if ((pc ^ b->pc) >> PAGE_SHIFT)
		return false;
	return look_at(insn, pc, PAGE_SIZE - pc % PAGE_SIZE);
}

enum { LOOK_INSNS = 24 };

/* What is to come, as far as it is sure to be what is executed. */
static void take_ahead(struct builder *b, struct group *g, const struct insn_effects *now)
{
	struct insn insn = b->insn;
	struct insn_effects e = *now;
	uint64_t pc = b->pc;
	uint16_t changed = 0;
	bool moved = false;
	int32_t by;

	/* Code that may change is not there any more when it is asked what was seen. */
	if (b->asked ? b->copy != NULL : b->range.writable)
		return;
	for (unsigned int i = 0; i < LOOK_INSNS && insn.class == INSN_PLAIN; i++) {
		if (moves_rsp(&insn, &by)) {
			moved = true;
			e.written &= ~(1 << REG_RSP);
		}
		changed |= e.written;
		pc += insn.length;
		if (!look(b, pc, &insn) || repeats(&insn) || insn.class == INSN_CALL ||
		    insn.class == INSN_CALL_INDIRECT)
			return;
		insn_effects(&insn, &e);
		take(b, g, &insn, &e, pc, changed, moved);
	}
}

/* ---- emitting them ---- */

/* mov %reg, disp32(%rcx): where word @word of the record is. Its beginning, in a header, or its end
 * is in rcx. */
static void emit_word_store(struct builder *b, enum reg reg, uint8_t word, bool header)
{
	struct trace *t = &b->trace;

	emit8(b, 0x48 | (reg & 8 ? 4 : 0));
	emit8(b, 0x89);
	emit8(b, 0x81 | (reg & 7) << 3);
	emit32(b, 8 * word);
	if (header)
		return;
	t->open_ends[t->nr_open_ends].at = b->at - 4;
	t->open_ends[t->nr_open_ends++].word = word;
}

/* lea of the operand, into rdx. */
static void emit_lea(struct builder *b, const struct insn *insn, const struct insn_memory *m,
		     uint64_t pc)
{
	const uint8_t base = m->base, index = m->index;
	const bool has_base = base != INSN_NO_REGISTER, has_index = index != INSN_NO_REGISTER;

	if (!registers_of(m)) {
		EMIT(b, 0x48, 0xba); /* movabs */
		emit64(b, static_address(insn, m, pc));
		return;
	}
	if (insn->prefixes & PREFIX_ADDRESS)
		emit8(b, 0x67);
	emit8(b, 0x48 | (has_index && index & 8 ? 2 : 0) | (has_base && base & 8 ? 1 : 0));
	EMIT(b, 0x8d);
	emit8(b, (has_base ? 0x80 : 0) | REG_RDX << 3 | 4);
	emit8(b, m->scale << 6 | (has_index ? (index & 7) << 3 : 0x20) | (has_base ? base & 7 : 5));
	emit32(b, (uint32_t)m->disp);
}

static void emit_addresses(struct builder *b, const struct group *g, bool header)
{
	for (unsigned int i = 0; i < g->nr; i++) {
		const struct insn_memory *m = &g->addresses[i].memory;
		const uint16_t registers = registers_of(m);

		if (registers >> REG_RDX & 1)
			emit_fill(b, REG_RDX, THREAD_RDX);
		if (registers >> REG_RCX & 1)
			emit_fill(b, REG_RCX, THREAD_RCX);
		emit_lea(b, &g->addresses[i].insn, m, g->addresses[i].pc);
		if (registers >> REG_RCX & 1)
			emit_fill(b, REG_RCX, THREAD_TRACE);
		emit_word_store(b, REG_RDX, g->addresses[i].word, header);
	}
}

/* With rcx in its slot and the record in rcx. */
static void emit_words(struct builder *b, const struct group *g, bool header)
{
	const uint16_t rcx = 1 << REG_RCX;
	struct trace *t = &b->trace;

	for (unsigned int reg = 0; reg < 16; reg++)
		if ((g->bases & ~rcx) >> reg & 1)
			emit_word_store(b, reg, t->word_of[reg], header);
	if (!(g->bases & rcx) && !g->nr)
		return;
	emit_spill(b, REG_RDX, THREAD_RDX);
	mark_pc(b, b->pc, SPILL_RCX | SPILL_RDX);
	if (g->bases & rcx) {
		emit_fill(b, REG_RDX, THREAD_RCX);
		emit_word_store(b, REG_RDX, t->word_of[REG_RCX], header);
	}
	emit_addresses(b, g, header);
	emit_fill(b, REG_RDX, THREAD_RDX);
	mark_pc(b, b->pc, SPILL_RCX);
}

/* movq $code, (%rcx): where that address is, from the header's beginning. */
enum { HEADER_CODE = 9 + 9 + 2 + 2 + 5 + 9 + 3 };

static void emit_header(struct builder *b, const struct group *g)
{
	struct trace *t = &b->trace;
	uint8_t *header = b->at;

	emit_spill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, b->pc, SPILL_RCX);
	EMIT(b, 0x65, 0x0f, 0xb6, 0x0c, 0x25); /* movzbl %gs:TRACE + 1, %ecx */
	emit32(b, THREAD_TRACE + 1);
	EMIT(b, 0xe3, 2, 0xeb, 5, 0xe9, 0, 0, 0, 0);
	t->headers[t->nr_headers].pc = b->pc;
	t->headers[t->nr_headers].jump = b->at;
	t->headers[t->nr_headers++].header = header;
	emit_fill(b, REG_RCX, THREAD_TRACE);
	EMIT(b, 0x48, 0xc7, 0x01);
	emit32(b, 0);
	t->code = b->at;
	emit_words(b, g, true);
	EMIT(b, 0x48, 0x8d, 0x89, 0, 0, 0, 0); /* lea SIZE(%rcx), %rcx */
	t->open_ends[t->nr_open_ends].at = b->at - 4;
	t->open_ends[t->nr_open_ends++].word = 0;
	emit_spill(b, REG_RCX, THREAD_TRACE);
	t->open = true;
	mark_pc(b, b->pc, SPILL_RCX);
	emit_fill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, b->pc, 0);
}

static void emit_more(struct builder *b, const struct group *g)
{
	mark_pc(b, b->pc, 0);
	emit_spill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, b->pc, SPILL_RCX);
	emit_fill(b, REG_RCX, THREAD_TRACE);
	emit_words(b, g, false);
	emit_fill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, b->pc, 0);
}

/* ---- blocks ---- */

static void add_access(struct block *block, const struct insn *insn, const struct insn_memory *m,
		       int32_t delta, uint8_t word, unsigned int number)
{
	const unsigned int size = m->size && m->size <= 64 ? m->size : 64;
	struct block_access *a = &block->accesses[block->nr_accesses++];

	*a = (struct block_access){
		.delta = delta,
		.word = word,
		.base = insn->prefixes & PREFIX_FS && !is_string(insn) ? BLOCK_BASE_FS
								       : BLOCK_BASE_NONE,
		.what = (size - 1) | (m->access == ACCESS_W ? BLOCK_STORE : 0),
		.insn = number | (m->access == ACCESS_RW ? BLOCK_MODIFIES : 0),
	};
	if (repeats(insn))
		a->what |= BLOCK_STRING;
}

/* The operand in the block's description, now that its word is there. */
static void tell(struct builder *b, const struct insn_memory *m, unsigned int operand)
{
	const struct trace *t = &b->trace;
	const struct trace_taken *address = taken(t, b->pc, operand);
	struct block *block = t->block;
	int64_t delta = m->disp;
	uint8_t word = 0;

	if (!block || block->nr_accesses == BLOCK_MAX_ACCESSES)
		return;
	switch (reach_of(&b->insn, m, b->pc)) {
	case REACH_NONE:
		return;
	case REACH_STATIC:
		delta = static_address(&b->insn, m, b->pc) - (uint64_t)block;
		break;
	case REACH_BASE:
		word = t->word_of[m->base];
		if (m->base == REG_RSP)
			delta += t->rsp;
		break;
	case REACH_FAR:
	case REACH_ADDRESS:
		word = address ? address->word : 0;
		delta = 0;
		break;
	}
	if (word || reach_of(&b->insn, m, b->pc) == REACH_STATIC)
		add_access(block, &b->insn, m, (int32_t)delta, word, t->insns);
}

/* Whether something of the instruction at hand has not been taken yet. */
static bool lacks(const struct builder *b, const struct insn_effects *e)
{
	for (unsigned int i = 0; i < e->nr_memory; i++) {
		const enum reach reach = reach_of(&b->insn, &e->memory[i], b->pc);

		if (reach == REACH_BASE && !b->trace.word_of[e->memory[i].base])
			return true;
		if ((reach == REACH_ADDRESS || reach == REACH_FAR) && !taken(&b->trace, b->pc, i))
			return true;
	}
	return false;
}

static uint64_t counts_of(const struct insn_effects *e)
{
	unsigned int loads = 0, stores = 0;

	for (unsigned int i = 0; i < e->nr_memory; i++) {
		loads += e->memory[i].access & ACCESS_R ? 1 : 0;
		stores += e->memory[i].access & ACCESS_W ? 1 : 0;
	}
	return BLOCK_COUNT(1, BLOCK_INSTRUCTIONS) | BLOCK_COUNT(loads, BLOCK_LOAD_OPERANDS) |
	       BLOCK_COUNT(stores, BLOCK_STORE_OPERANDS);
}

static uint8_t end_of(uint8_t class)
{
	switch (class) {
	case INSN_JCC:
	case INSN_LOOP:
		return BLOCK_CONDITIONAL;
	case INSN_JMP:
		return BLOCK_JUMP;
	case INSN_JMP_INDIRECT:
		return BLOCK_JUMP_INDIRECT;
	case INSN_CALL:
		return BLOCK_CALL;
	case INSN_CALL_INDIRECT:
		return BLOCK_CALL_INDIRECT;
	case INSN_RET:
		return BLOCK_RETURN;
	}
	return BLOCK_ON;
}

static void finish_block(struct block *block)
{
	const uint64_t first = block->pc >> MACHINE_LINE_SHIFT;
	const uint64_t last = (block->pc + block->length - 1) >> MACHINE_LINE_SHIFT;

	block->cost += BLOCK_COST(0, last - first + 1);
	if (block->end != BLOCK_ON)
		block->counts += BLOCK_COUNT(1, BLOCK_BRANCHES);
}

static void begin_block(struct builder *b)
{
	struct trace *t = &b->trace;

	t->insns = t->string = t->length = 0;
	t->words = 1;
	t->nr_taken = t->nr_open_ends = 0;
	__builtin_memset(t->word_of, 0, sizeof(t->word_of));
	t->block = b->asked ? NULL : cache_block(b->cache);
	if (t->block)
		*t->block = (struct block){.pc = b->pc};
}

void trace_close(struct builder *b)
{
	struct trace *t = &b->trace;
	uint32_t code;

	if (!t->open)
		return;
	t->open = t->last = false;
	for (unsigned int i = 0; i < t->nr_open_ends; i++) {
		const uint8_t word = t->open_ends[i].word;
		const int32_t disp = word ? 8 * (word - t->words) : 8 * t->words;

		__builtin_memcpy(t->open_ends[i].at, &disp, 4);
	}
	if (!t->block)
		return;
	t->block->words = t->words;
	finish_block(t->block);
	code = (uint32_t)cache_block_done(b->cache, t->block);
	__builtin_memcpy(t->code - sizeof(code), &code, sizeof(code));
}

/* ---- instructions ---- */

/*
 * A string instruction with a repeat count is a block. Its registers are taken before and after, so
 * that as many accesses are told as there were.
 */
static void take_string(struct builder *b, struct group *g, const struct insn_effects *e)
{
	struct trace *t = &b->trace;

	t->string = t->words;
	for (unsigned int i = 0; i < e->nr_memory; i++) {
		take_base(b, g, e->memory[i].base);
		t->words++;
	}
}

static void take_string_after(struct builder *b)
{
	const struct trace *t = &b->trace;
	struct group g = {.nr = 0};
	struct insn_effects e;

	insn_effects(&b->insn, &e);
	for (unsigned int i = 0; i < e.nr_memory; i++) {
		g.bases |= 1 << e.memory[i].base;
		b->trace.word_of[e.memory[i].base] = t->string + 2 * i + 1;
	}
	emit_more(b, &g);
}

void trace_before(struct builder *b)
{
	struct trace *t = &b->trace;
	const uint8_t class = b->insn.class;
	const bool operands = !(b->cache->does.extras & INSTRUMENT_BRANCHES);
	const bool string = operands && repeats(&b->insn);
	struct group g = {.nr = 0};
	struct insn_effects e;

	insn_effects(&b->insn, &e);
	if (!operands)
		e.nr_memory = 0;
	if (string || t->length + b->insn.length > BLOCK_MAX_LENGTH || class == INSN_CALL ||
	    class == INSN_CALL_INDIRECT || t->words + 6 > BLOCK_MAX_WORDS || t->nr_taken + 3 > 32 ||
	    (t->block && t->block->nr_accesses + 3 > BLOCK_MAX_ACCESSES))
		trace_close(b);
	if (!t->open) {
		begin_block(b);
		if (string) {
			take_string(b, &g, &e);
		} else {
			take(b, &g, &b->insn, &e, b->pc, 0, false);
			if (operands)
				take_ahead(b, &g, &e);
		}
		emit_header(b, &g);
	} else if (lacks(b, &e)) {
		take(b, &g, &b->insn, &e, b->pc, 0, false);
		take_ahead(b, &g, &e);
		emit_more(b, &g);
	}
	for (unsigned int i = 0; i < e.nr_memory; i++)
		tell(b, &e.memory[i], i);
	if (t->block) {
		t->block->counts += counts_of(&e);
		t->block->cost += BLOCK_COST(insn_slots(&b->insn), 0);
		t->block->last = (uint8_t)t->block->length;
		t->block->length += b->insn.length;
		t->block->end = end_of(class);
	}
	t->length += b->insn.length;
	t->last = string || class != INSN_PLAIN;
}

void trace_after(struct builder *b)
{
	struct trace *t = &b->trace;
	struct insn_effects e;
	int32_t by;

	if (!t->open)
		return;
	t->insns++;
	if (t->string)
		take_string_after(b);
	if (t->last) {
		trace_close(b);
		return;
	}
	insn_effects(&b->insn, &e);
	if (moves_rsp(&b->insn, &by)) {
		t->rsp += by;
		e.written &= ~(1 << REG_RSP);
	}
	for (unsigned int reg = 0; reg < 16; reg++)
		if (e.written >> reg & 1)
			t->word_of[reg] = 0;
}

/* ---- for the builder ---- */

void trace_start(struct builder *b)
{
	b->trace.on = b->cache->blocks.memory != NULL;
	b->trace.open = false;
	b->trace.nr_headers = 0;
	if (!b->asked)
		compiled_apart(&b->cache->blocks.compiled);
}

/*
 * drain: lea header, %rcx; jmp *%gs:DRAIN
 */
void trace_late(struct builder *b)
{
	for (unsigned int i = 0; i < b->trace.nr_headers; i++) {
		uint8_t *jump = b->trace.headers[i].jump;
		const uint32_t relative = (uint32_t)(b->at - jump);

		__builtin_memcpy(jump - 4, &relative, 4);
		mark_pc(b, b->trace.headers[i].pc, SPILL_RCX);
		EMIT(b, 0x48, 0x8d, 0x0d);
		emit32(b, (uint32_t)(b->trace.headers[i].header - (b->at + 4)));
		EMIT(b, 0x65, 0xff, 0x24, 0x25);
		emit32(b, THREAD_DRAIN);
	}
}

unsigned int trace_bytes(const struct builder *b)
{
	return b->trace.on ? 640 + 16 * b->trace.nr_headers : 0;
}

uint8_t trace_state(const struct builder *b, const struct state *state)
{
	const bool done = state->where != AT_PC || state->done || state->pc != b->pc;

	return b->trace.open ? 1 + b->trace.insns + done : 0;
}

struct block *trace_block_at(uint64_t header)
{
	return record_block(*(const uint32_t *)(header + HEADER_CODE));
}
