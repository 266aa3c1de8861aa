// SPDX-License-Identifier: MIT
/*
 * Counting. While a thread is in code that counts, the lower half of xmm15 is how many instructions
 * it has executed and the upper half how many branches; other kinds of events have xmm14 and so on,
 * two in each register. What a basic block does is added before its last instruction:
 *
 *	...
 *	paddq AMOUNTS(%rip), %xmm15	the block's, the branch and what it goes by included
 *	cmp ...				so that the processor takes the two as one
 *	jcc ...
 *
 * No flag changes, no general register is needed and nobody waits for memory. The amounts lie where
 * the cache begins, one for each pair of numbers that has been needed (amount()).
 *
 * Whoever is interrupted in a block finds in struct state what has been done and not added yet, or
 * the other way round, so counts are exact at every instruction (recover.c). Where a fragment can
 * be entered, nothing is left to be added (count_entry()). At calls, indirect jumps and branches
 * that lead back the register is stored to the task's counters: so those who look at a thread from
 * elsewhere see what it has done but for a moment.
 *
 * Instructions of the program that touch the register get it, and keep it until something is to be
 * added (vectors.c). Where somebody waits for a counter to get to 0 it is looked now and then:
 * count_near.c.
 */
#include "runtime/translate/count.h"

#include "runtime/translate/build.h"
#include "runtime/translate/count_near.h"
#include "runtime/translate/tables.h"
#include "runtime/translate/vectors.h"

_Static_assert(AMOUNTS_BYTES % 64 == 0, "");

static uint8_t pairs_of(uint64_t kinds)
{
	uint8_t pairs = 0;

	for (unsigned int kind = 0; kind < COUNT_VECTOR_KINDS; kind++)
		if (kinds >> kind & 1)
			pairs |= 1u << kind / 2;
	return pairs;
}

/* It is older than BMI2, by which it is known here; who has neither counts as in due.c. */
static bool has_ptest(void)
{
	return tables_index() != INDEX_MOVZX;
}

unsigned int count_registers(const struct instrumentation *does)
{
	const uint8_t pairs = pairs_of(does->counted & CORE_KINDS_EXACT);

	if (!pairs || does->counted & (CORE_KINDS_MODEL | CORE_KINDS_FLOATING) ||
	    (does->checked && (does->extras & INSTRUMENT_FINE || !has_ptest())))
		return 0;
	return pairs == 1 ? 1 : COUNT_PAIRS;
}

/* ---- adding ---- */

/* Where @first and @second lie together, 64 bits each. */
static uint64_t amount(struct cache *cache, unsigned int first, unsigned int second)
{
	uint64_t *place = (uint64_t *)(cache->lookup.code + WAYS_OUT) +
			  2 * (second * (unsigned int)AMOUNTS + first);

	if (!place[0])
		place[0] = first;
	if (!place[1])
		place[1] = second;
	return (uint64_t)place;
}

/* Of @left as much as one addition can do. */
static int8_t portion(int8_t left, int most)
{
	return left > most ? most : left < -most ? -most : left;
}

static void emit_addition(struct builder *b, unsigned int pair, int8_t first, int8_t second)
{
	const bool subtracts = first < 0 || second < 0;

	EMIT(b, 0x66, 0x44, 0x0f);
	emit8(b, subtracts ? 0xfb : 0xd4);
	emit8(b, 0x05 | (7 - pair) << 3);
	emit_relative(b,
		      amount(b->cache, subtracts ? -first : first, subtracts ? -second : second));
}

/* The program is at @pc meanwhile. */
static void add_pair(struct builder *b, unsigned int pair, struct counts *what, uint64_t pc)
{
	int8_t none = 0;
	int8_t *of = &what->of[2 * pair];
	int8_t *second = 2 * pair + 1 < COUNT_VECTOR_KINDS ? of + 1 : &none;
	int8_t *left = &b->count.left.of[2 * pair];

	while (*of || *second) {
		const int8_t x = portion(*of, AMOUNTS - 1);
		const int8_t y = (x < 0) == (*second < 0) || !x
					 ? portion(*second, AMOUNTS_OF_SECOND - 1)
					 : 0;

		emit_addition(b, pair, x, y);
		*of -= x;
		*second -= y;
		left[0] -= x;
		if (second != &none)
			left[1] -= y;
		mark_pc(b, pc, 0);
	}
}

void count_emit(struct builder *b, struct counts what, uint64_t pc)
{
	vectors_take_back(b);
	for_each_vector(pair, b->count.pairs)
		add_pair(b, pair, &what, pc);
}

static bool is_nothing(const struct counts *counts)
{
	uint64_t words[COUNT_WORDS], all = 0;

	__builtin_memcpy(words, counts, sizeof(words));
	for (unsigned int i = 0; i < COUNT_WORDS; i++)
		all |= words[i];
	return !all;
}

/* With the instruction at hand. */
static struct counts all(const struct count *c)
{
	struct counts what = c->left;

	count_add(&what, &c->insn);
	return what;
}

static void add_all(struct builder *b)
{
	count_emit(b, all(&b->count), b->pc);
}

/* ---- where fragments are entered ---- */

void count_target(struct builder *b, uint64_t target)
{
	struct count *c = &b->count;

	if (c->nr_targets == COUNT_TARGETS)
		return;
	c->targets[c->nr_targets++] = target;
	c->some_targets |= 1UL << target % 64;
}

static bool is_target(const struct count *c, uint64_t pc)
{
	if (!(c->some_targets >> pc % 64 & 1))
		return false;
	for (unsigned int i = 0; i < c->nr_targets; i++)
		if (c->targets[i] == pc)
			return true;
	return false;
}

static bool is_even(const struct builder *b)
{
	return is_nothing(&b->count.left) && !b->theirs;
}

bool count_may_enter(const struct builder *b)
{
	return is_even(b);
}

/* For those who look at the thread from elsewhere: once each time that it goes round, wherever. */
static void store(struct builder *b)
{
	if (cache_is_slow(b->cache))
		return;
	vectors_store(b, b->count.pairs & ~b->theirs);
}

static bool leads_back(const struct builder *b)
{
	return insn_target(&b->insn, b->pc) <= b->pc;
}

/* ---- instructions ---- */

bool count_jcc_follows(const struct builder *b, uint64_t *target)
{
	const uint64_t pc = b->pc + b->insn.length;
	const uint8_t *next = b->code + b->insn.length;
	int32_t far;

	if (b->code != (const uint8_t *)b->pc || b->insn.length > 10 || is_target(&b->count, pc))
		return false;
	if ((next[0] & 0xf0) == 0x70) {
		*target = pc + 2 + (uint64_t)(int8_t)next[1];
		return true;
	}
	if (next[0] != 0x0f || (next[1] & 0xf0) != 0x80)
		return false;
	__builtin_memcpy(&far, next + 2, sizeof(far));
	*target = pc + 6 + (uint64_t)far;
	return true;
}

static void look_ahead(struct builder *b)
{
	uint64_t target;

	if (!count_jcc_follows(b, &target))
		return;
	count_set_mark(b, MARK_AHEAD);
	if (target <= b->pc)
		count_set_mark(b, MARK_BACK);
}

void count_entry(struct builder *b)
{
	const struct count *c = &b->count;

	if (!c->pairs)
		return;
	if (!b->asked && (insn_is_call(&b->insn) || is_target(c, b->pc))) {
		count_set_mark(b, MARK_ENTERED);
		if (count_keeps_near(b))
			count_meet(b, 0);
	}
	if (count_keeps_near(b) && count_leads_too_far(b))
		count_set_mark(b, MARK_LOOKS);
	if (count_keeps_near(b) && count_must_look(b)) {
		count_set_mark(b, MARK_ENTERED);
		count_set_mark(b, MARK_LOOKS);
	} else if (count_keeps_near(b)) {
		count_look_early(b);
	}
	if (!count_is_marked(b, MARK_ENTERED) || is_even(b))
		return;
	mark_pc(b, b->pc, 0);
	count_emit(b, c->left, b->pc);
}

/* Where who enters has to. */
static bool looks_first(const struct builder *b)
{
	return count_is_marked(b, MARK_LOOKS) && count_is_marked(b, MARK_ENTERED);
}

static bool looks_last(const struct builder *b)
{
	return count_is_marked(b, MARK_LOOKS) && !count_is_marked(b, MARK_ENTERED);
}

static void step_on(struct builder *b)
{
	if (b->count.checked)
		b->count.gone++;
}

static void before_plain(struct builder *b)
{
	struct count *c = &b->count;
	const uint8_t pairs = vectors_asked(b);

	if (!b->asked && !pairs)
		look_ahead(b);
	if (count_is_marked(b, MARK_AHEAD)) {
		const struct counts ahead = count_jcc(c);
		struct counts what = c->left;

		count_add(&what, &c->insn);
		count_add(&what, &ahead);
		if (count_is_marked(b, MARK_BACK))
			store(b);
		count_emit(b, what, b->pc);
		if (looks_last(b))
			count_look(b);
	} else if (looks_last(b)) { /* with what is left to be added */
		vectors_take_back(b);
		count_look(b);
	}
	if (pairs)
		vectors_lend(b, pairs);
	step_on(b);
}

void count_before(struct builder *b)
{
	struct count *c = &b->count;
	struct counts what;

	if (c->traced)
		return;
	if (!c->pairs) {
		due_before(b);
		return;
	}
	if (looks_first(b))
		count_look(b);
	c->insn = count_insn(c, &b->insn);
	if (b->insn.class == INSN_PLAIN) { /* if it leaves, it calls count_leave() */
		before_plain(b);
		return;
	}
	what = all(c);
	switch (b->insn.class) {
	case INSN_JMP:
		if (leads_back(b))
			store(b);
		step_on(b);
		return;
	case INSN_JCC:
	case INSN_LOOP:
		count_target(b, insn_target(&b->insn, b->pc));
		/* What the instruction before has done for it is done. */
		if (leads_back(b) && !is_nothing(&what))
			store(b);
		break;
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
	case INSN_JMP_INDIRECT:
		store(b);
	}
	count_emit(b, what, b->pc);
	if (looks_last(b))
		count_look(b);
	step_on(b);
}

void count_leave(struct builder *b)
{
	if (b->count.pairs)
		add_all(b);
}

void count_after(struct builder *b)
{
	enum { MUCH = 100 };
	struct count *c = &b->count;

	if (!c->pairs && !c->traced) {
		due_after(b);
		return;
	}
	count_add(&c->left, &c->insn);
	c->insn = (struct counts){0};
	if (c->left.of[CORE_LOADS] > MUCH || c->left.of[CORE_STORES] > MUCH) {
		mark_pc(b, b->pc, 0);
		count_emit(b, c->left, b->pc);
	}
}

void count_close(struct builder *b, bool goes_on)
{
	if (!b->count.pairs) {
		due_close(b);
		return;
	}
	if (!is_even(b)) {
		mark_pc(b, b->pc, 0);
		count_emit(b, b->count.left, b->pc);
	}
	if (!goes_on)
		return;
	if (count_keeps_near(b) && count_too_far(b, b->pc, 0))
		count_set_mark(b, MARK_LOOKS);
	if (count_is_marked(b, MARK_LOOKS)) {
		mark_pc(b, b->pc, 0);
		count_look(b);
	}
}

bool count_tells_taken(const struct builder *b)
{
	return b->count.pairs && b->count.kinds & CORE_KIND_BIT(CORE_BRANCHES_TAKEN);
}

bool count_is_taken(const struct builder *b, uint64_t target)
{
	return target != b->pc + b->insn.length;
}

void count_taken(struct builder *b, uint64_t target)
{
	const struct counts taken = {.of = {[CORE_BRANCHES_TAKEN] = count_is_taken(b, target)}};
	struct count *c = &b->count;
	const struct counts left = c->left, insn = c->insn;

	if (!c->pairs && !c->traced) {
		due_taken(b, target);
		return;
	}
	if (!count_tells_taken(b))
		return;
	count_add(&c->left, &insn);
	count_add(&c->left, &taken);
	c->insn = (struct counts){0};
	mark_pc(b, target, 0);
	count_emit(b, taken, target);
	c->left = left;
	c->insn = insn;
}

/* ---- for the builder ---- */

void count_start(struct builder *b, struct late *late)
{
	struct count *c = &b->count;

	/* What is traced is counted by the model. */
	c->traced = cache_traces(b->cache);
	c->kinds = b->cache->does.counted & (c->traced ? CORE_KINDS_FLOATING : CORE_KINDS_EXACT);
	for (unsigned int i = 0; i < COUNT_WORDS; i++)
		c->mask[i] = 0;
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		if (c->kinds >> kind & 1)
			c->mask[kind / 8] |= 0xffUL << kind % 8 * 8;
	c->pairs = cache_counts_in_vectors(b->cache) ? pairs_of(c->kinds) : 0;
	c->checked = c->kinds & b->cache->does.checked;
	if (c->kinds && !c->pairs && !c->traced)
		due_start(b, late);
	if (count_keeps_near(b))
		count_meet(b, COUNT_SLACK);
}

unsigned int count_before_bytes(const struct builder *b)
{
	const struct count *c = &b->count;
	const bool lends = b->theirs || (c->pairs && vectors_asked(b));
	unsigned int additions = 2;

	if (!c->pairs)
		return due_bytes(b);
	/* What lies on a way of many jumps. */
	for (unsigned int kind = 1; kind < COUNT_VECTOR_KINDS; kind += 2)
		if (c->left.of[kind] > AMOUNTS_OF_SECOND - 4)
			additions = 10;
	return b->cache->lookup.vectors *
		       (additions * COUNT_ADD_BYTES + (lends ? 5 : 1) * VECTOR_MOVE_BYTES) +
	       count_look_bytes(c);
}

unsigned int count_bytes(const struct builder *b)
{
	if (!b->count.pairs)
		return (b->count.due.nr_late + b->count.due.lates) * b->count.due.bytes;
	return b->cache->lookup.vectors * (10 * COUNT_ADD_BYTES + 5 * VECTOR_MOVE_BYTES) +
	       2 * count_look_bytes(&b->count) + count_near_bytes(b);
}

void count_thunk(struct builder *b, const struct counts *counts)
{
	struct count *c = &b->count;

	c->insn = *counts;
	c->left = c->due.added = (struct counts){0};
	if (!c->pairs)
		c->due.added = *counts;
	else
		for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
			c->left.of[kind] = -counts->of[kind];
}

void count_late(struct builder *b)
{
	if (!b->count.pairs)
		due_late(b);
	count_near_exits(b);
}

bool count_room(const struct builder *b)
{
	return b->count.pairs ? count_near_room(&b->count) : due_room(b);
}

struct counts count_state(const struct builder *b, const struct state *state)
{
	const struct count *c = &b->count;
	struct counts counts = c->left;

	if (c->kinds && !c->pairs && !c->traced)
		return due_state(b, state);
	if (c->apart)
		counts = (struct counts){0};
	else if (state->where != AT_PC || state->done || state->pc != b->pc)
		count_add(&counts, &c->insn);
	counts.vectors = c->apart ? COUNT_VECTORS : COUNT_VECTORS & ~b->theirs;
	return counts;
}
