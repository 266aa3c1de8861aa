// SPDX-License-Identifier: MIT
/*
 * Tracing, for the model (runtime/model/block.h): each block of the program's code begins by
 * writing a record (record.c), without touching flags that anybody asks for. A register is taken
 * for all operands that it reaches before it changes: to see which these are, the code is looked at
 * in advance, as far as the page goes. What can only be told later is put into the record before
 * its instruction. rsp is followed through pushes and pops; operands with an index are told by
 * their address.
 *
 * A block ends with a branch, before a call, to which other fragments jump (build.c), and around a
 * string instruction with a repeat count.
 * What is known of it in advance is written when it ends.
 */
#include "runtime/translate/trace.h"

#include "abi/machine.h"
#include "runtime/model/block.h"
#include "runtime/pmu/tracer.h"
#include "runtime/translate/build.h"
#include "runtime/translate/record.h"
#include "runtime/translate/vectors.h"

/* ---- what operands are reached by ---- */

enum reach {
	REACH_NONE,    /* no access, or none whose address could be told */
	REACH_STATIC,  /* relative to the block */
	REACH_FAR,     /* known, but too far from the block */
	REACH_BASE,    /* a register as it is, and a constant */
	REACH_ADDRESS, /* to be computed */
};

#define LOW_END (1UL << 31)

static bool fits_well(int64_t disp)
{
	return disp > -(1 << 30) && disp < 1 << 30;
}

static enum reach reach_of(const struct insn *insn, const struct insn_memory *m, uint64_t pc)
{
	if (m->access == ACCESS_NONE)
		return REACH_NONE;
	if (m->base == INSN_NO_REGISTER && (m->index == INSN_NO_REGISTER || m->vsib)) {
		const uint64_t address = record_static_address(insn, m, pc);

		/* What FS makes of it is added later. */
		if (m->prefixes & PREFIX_FS)
			return fits_well(m->disp) ? REACH_STATIC : REACH_NONE;
		return address < LOW_END ? REACH_STATIC : REACH_FAR;
	}
	/* Of vectors of indices nothing can be told without vector registers. */
	if ((m->index == INSN_NO_REGISTER || m->vsib) && fits_well(m->disp) &&
	    !(m->prefixes & PREFIX_ADDRESS))
		return REACH_BASE;
	return REACH_ADDRESS;
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

bool trace_moves_rsp(const struct insn *insn, int32_t *by)
{
	const uint8_t op = insn->opcode, reg = insn->modrm >> 3 & 7;
	const int32_t size = insn->prefixes & PREFIX_OPERAND && !(insn->rex & REX_W) ? 2 : 8;

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

static bool group_room(const struct builder *b, const struct group *g, const struct insn_memory *m)
{
	return b->trace.words + 4u < BLOCK_MAX_WORDS && record_room(g, record_registers(m)) &&
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

	for (unsigned int i = 0; i < e->nr_memory; i++) {
		const struct insn_memory *m = &e->memory[i];
		const enum reach reach = reach_of(insn, m, pc);

		if (!group_room(b, g, m))
			return;
		if (reach == REACH_BASE && !(changed >> m->base & 1) && !t->word_of[m->base])
			take_base(b, g, m->base);
		if (reach != REACH_ADDRESS && reach != REACH_FAR)
			continue;
		if (record_registers(m) & (changed | (moved ? 1 << REG_RSP : 0)) || taken(t, pc, i))
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

static void see(struct ahead *a, const struct insn *insn, const struct insn_effects *e)
{
	const uint16_t dead = e->written & ~(e->read | a->touched);

	if (dead)
		a->last = __builtin_ctz(dead);
	a->dead |= dead;
	a->touched |= e->read | e->written;
	if (e->flags_read & a->flags)
		a->flags |= INSN_IF; /* which nothing sets */
	a->flags &= ~due_flags_set(insn);
}

static bool has_operands(const struct builder *b)
{
	return b->cache->does.counted & CORE_KINDS_OPERANDS;
}

/* What is to come, as far as it is sure to be what is executed. */
static struct ahead take_ahead(struct builder *b, struct group *g, const struct insn_effects *now)
{
	struct ahead ahead = {.flags = DUE_FLAGS};
	struct insn insn = b->insn;
	struct insn_effects e = *now;
	uint64_t pc = b->pc;
	uint16_t changed = 0;
	bool moved = false;
	int32_t by;

	/* Code that may change is not there any more when it is asked what was seen. */
	if (b->asked ? b->copy != NULL : b->range.writable)
		return ahead;
	for (unsigned int i = 0; i < LOOK_INSNS && insn.class == INSN_PLAIN; i++) {
		see(&ahead, &insn, &e);
		if (trace_moves_rsp(&insn, &by)) {
			moved = true;
			e.written &= ~(1 << REG_RSP);
		}
		changed |= e.written;
		pc += insn.length;
		if (!look(b, pc, &insn) || repeats(&insn) || insn_is_call(&insn))
			return ahead;
		insn_effects(&insn, &e);
		if (has_operands(b))
			take(b, g, &insn, &e, pc, changed, moved);
	}
	return ahead;
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
		.base = m->prefixes & PREFIX_FS ? BLOCK_BASE_FS : BLOCK_BASE_NONE,
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
		delta = record_static_address(&b->insn, m, b->pc) - (uint64_t)block;
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
	t->unseen += t->words;
	record_end(b);
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
 * that as many accesses are told as there were. Before, they are where it ends as well, for who
 * comes out between its end and the stores that tell of that: the model would go on to whatever the
 * words had.
 */
static void take_string(struct builder *b, struct group *g, const struct insn_effects *e)
{
	struct trace *t = &b->trace;

	t->string = t->words;
	g->twice = true;
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
	record_more(b, &g, &(struct ahead){0});
}

/* Whether all that emitted code has is to be given back before it. */
static bool leaves(const struct insn *insn)
{
	return insn->class != INSN_PLAIN;
}

/* Whether the record that begins has to find out if there is room. */
static bool looks(struct builder *b)
{
	struct trace *t = &b->trace;

	if (!t->waits && !t->entered && !insn_is_call(&b->insn) &&
	    t->unseen + 2 * BLOCK_MAX_WORDS <= TRACER_UNSEEN)
		return false;
	t->entered = false;
	t->unseen = 0;
	return true;
}

void trace_before(struct builder *b)
{
	struct trace *t = &b->trace;
	const bool operands = has_operands(b);
	const bool string = operands && repeats(&b->insn);
	struct ahead ahead = {.flags = DUE_FLAGS};
	struct group g = {.nr = 0};
	struct insn_effects e;

	insn_effects(&b->insn, &e);
	if (!operands)
		e.nr_memory = 0;
	if (string || t->length + b->insn.length > BLOCK_MAX_LENGTH ||
	    t->words + 6 > BLOCK_MAX_WORDS || t->nr_taken + 3 > 32 ||
	    (t->block && t->block->nr_accesses + 3 > BLOCK_MAX_ACCESSES))
		trace_close(b);
	if (!t->open) {
		begin_block(b);
		if (string) {
			take_string(b, &g, &e);
		} else {
			take(b, &g, &b->insn, &e, b->pc, 0, false);
			ahead = take_ahead(b, &g, &e);
		}
		record_begin(b, &g, &ahead, looks(b));
	} else if (lacks(b, &e)) {
		take(b, &g, &b->insn, &e, b->pc, 0, false);
		ahead = take_ahead(b, &g, &e);
		record_more(b, &g, &ahead);
	}
	if (leaves(&b->insn))
		vectors_take_back(b);
	else
		vectors_lend(b, vectors_asked(b));
	for (unsigned int i = 0; i < e.nr_memory; i++)
		tell(b, &e.memory[i], i);
	if (t->block) {
		t->block->counts += counts_of(&e);
		t->block->cost += BLOCK_COST(insn_slots(&b->insn), 0);
		t->block->last = (uint8_t)t->block->length;
		t->block->length += b->insn.length;
		t->block->end = end_of(b->insn.class);
	}
	t->length += b->insn.length;
	t->last = string || b->insn.class != INSN_PLAIN;
}

void trace_after(struct builder *b)
{
	struct trace *t = &b->trace;
	struct insn_effects e;
	int32_t by;

	insn_effects(&b->insn, &e);
	record_written(b, e.written);
	if (!t->open)
		return;
	t->insns++;
	if (t->string)
		take_string_after(b);
	if (t->last) {
		trace_close(b);
		return;
	}
	if (trace_moves_rsp(&b->insn, &by)) {
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
	b->trace.on = cache_traces(b->cache);
	b->trace.waits = b->cache->does.checked;
	b->trace.entered = true;
	b->trace.open = false;
	b->trace.nr_headers = 0;
}

void trace_entry(struct builder *b)
{
	if (!b->trace.on || !leaves(&b->insn))
		return;
	mark_pc(b, b->pc, 0);
	vectors_take_back(b);
	if (!insn_is_call(&b->insn))
		return;
	/* Of who comes by another way the last record is another one. */
	trace_close(b);
	mark_pc(b, b->pc, 0);
}

void trace_leave(struct builder *b)
{
	if (!b->trace.on)
		return;
	mark_pc(b, b->pc, 0);
	record_give_back(b);
	vectors_take_back(b);
}

void trace_late(struct builder *b)
{
	record_late(b);
}

unsigned int trace_bytes(const struct builder *b)
{
	return b->trace.on ? 640 + 42 * b->trace.nr_headers : 0;
}

void trace_state(const struct builder *b, struct state *state)
{
	const struct trace *t = &b->trace;
	const bool done = state->where != AT_PC || state->done || state->pc != b->pc;
	struct insn_effects e = {.written = 0};

	state->counts.cut = t->open ? 1 + t->insns + done : 0;
	if (!t->on || b->count.apart)
		return;
	if (done && (t->held[0] || t->held[1]))
		insn_effects(&b->insn, &e);
	for (unsigned int i = 0; i < 2; i++)
		if (t->held[i] && !(e.written >> (t->held[i] - 1) & 1))
			state->held[i] = t->held[i];
}
