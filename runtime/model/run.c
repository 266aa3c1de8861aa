// SPDX-License-Identifier: MIT
/*
 * What compiled blocks call when something is not in the first level, or takes longer than they
 * can; and the counters, from what they have summed up. What was missed goes to a list that is gone
 * through later.
 */
#include "runtime/model/state.h"

static uint64_t next_time(struct model *m)
{
	const uint64_t now = m->time;

	m->time = now + NEAR_TICK;
	return now;
}

/* ---- misses ---- */

/* In instructions since the beginning; @sum has those of this run. */
static uint32_t when_is(const struct model *m, uint64_t sum)
{
	return m->insns + (uint32_t)(sum & ((1u << SUM_LOADS) - 1));
}

static inline void line_missed(struct model *m, uint64_t line, enum miss_kind kind, uint32_t when)
{
	if (__builtin_expect(m->nr_misses == MISSES_MAX, 0))
		model_miss(m);
	m->misses[m->nr_misses++] = (struct miss){.line = line, .when = when, .kind = kind};
}

/* @line is in no slot of @near. In line where it is asked for most. */
static inline __attribute__((always_inline)) void
find_line(struct model *m, struct near *near, uint64_t line, enum miss_kind kind, uint32_t when)
{
	const unsigned int missed = near_find(near, line, next_time(m));

	if (__builtin_expect(missed & NEAR_PAGE_MISSED, 0))
		model_miss_page(m, line >> NEAR_LINES, kind);
	if (__builtin_expect(missed & NEAR_LINE_MISSED, 1))
		line_missed(m, line, kind, when);
}

static __attribute__((noinline)) void find_line_apart(struct model *m, struct near *near,
						      uint64_t line, enum miss_kind kind,
						      uint32_t when)
{
	find_line(m, near, line, kind, when);
}

static inline void use_line(struct model *m, struct near *near, uint64_t line, enum miss_kind kind,
			    uint32_t when)
{
	const uint64_t slot = *near_slot(near, line);

	if (near_has(slot, line))
		near->times[near_way(near, slot)] = next_time(m);
	else
		find_line_apart(m, near, line, kind, when);
}

/* ---- fetches ---- */

/* It is in no slot. When a fetch is missed makes no difference to anybody. */
void model_fetch(struct model *m, uint64_t line)
{
	find_line(m, &m->code, line, MISS_FETCH, 0);
}

static void fetch(struct model *m, const struct block *b)
{
	const uint64_t last = (b->pc + b->length - 1) >> MACHINE_LINE_SHIFT;

	for (uint64_t line = b->pc >> MACHINE_LINE_SHIFT; line <= last; line++)
		use_line(m, &m->code, line, MISS_FETCH, 0);
}

/* ---- operands ---- */

static enum miss_kind kind_of(uint32_t what, uint32_t store)
{
	return what & store ? MISS_STORE : MISS_LOAD;
}

static void access(struct model *m, uint64_t address, uint8_t what, uint32_t when)
{
	const uint64_t last = (address + (what & BLOCK_SIZE)) >> MACHINE_LINE_SHIFT;

	for (uint64_t line = address >> MACHINE_LINE_SHIFT; line <= last; line++)
		use_line(m, &m->data, line, kind_of(what, BLOCK_STORE), when);
}

/* Of accesses in one line, only the first can miss it. */
void model_line(struct model *m, uint64_t line, uint32_t which, uint64_t sum)
{
	find_line(m, &m->data, line, kind_of(which, ACCESSES_STORE), when_is(m, sum));
}

/* The part of a string in the next line: an access, and where the rest begins. */
struct string {
	uint64_t at, left; /* bytes */
	uint8_t what;
	bool down;
};

static struct string string_of(const uint64_t *trace, const struct block_access *a)
{
	const uint64_t from = trace[a->word], to = trace[a->word + 1],
		       size = (a->what & BLOCK_SIZE) + 1u;
	struct string s = {.what = a->what & BLOCK_STORE, .down = to < from};

	/* Down it goes by elements: the first one ends behind where it begins. */
	s.left = s.down ? from - to : to - from;
	s.at = s.down ? from + size : from;
	return s;
}

/* How far it goes in the line that it is in. */
static uint64_t string_reach(const struct string *s)
{
	const uint64_t line = 1u << MACHINE_LINE_SHIFT;
	const uint64_t reach = s->down ? (s->at - 1) % line + 1 : line - s->at % line;

	return reach < s->left ? reach : s->left;
}

static void string_step(struct model *m, struct string *s, uint64_t reach, uint32_t when)
{
	if (s->down)
		s->at -= reach;
	access(m, s->at, s->what | (uint8_t)(reach - 1), when);
	if (!s->down)
		s->at += reach;
	s->left -= reach;
}

/* One string, or two of the same length together: as far as both stay in their lines each time. */
static void run_strings(struct model *m, struct string *one, struct string *other, uint32_t when)
{
	while (one->left) {
		uint64_t reach = string_reach(one);

		if (other->left && string_reach(other) < reach)
			reach = string_reach(other);
		string_step(m, one, reach, when);
		if (other->left)
			string_step(m, other, reach, when);
	}
}

static void run_string(struct model *m, const uint64_t *record, const struct block_access *a,
		       unsigned int nr, uint32_t when)
{
	struct string one = string_of(record, a), other = {0};

	if (nr > 1)
		other = string_of(record, &a[1]);
	run_strings(m, &one, &other, when);
}

static void run_accesses(struct model *m, const uint64_t *record, const struct block *b,
			 uint32_t which, uint32_t when)
{
	const struct block_access *a = &b->accesses[ACCESSES_FIRST(which)];
	const unsigned int nr = ACCESSES_NUMBER(which);

	if (a->what & BLOCK_STRING) {
		run_string(m, record, a, nr, when);
		return;
	}
	for (unsigned int i = 0; i < nr; i++, a++) {
		const uint64_t base = a->word ? record[a->word] : (uint64_t)b;

		access(m, base + (a->base ? m->fs_base : 0) + (uint64_t)(int64_t)a->delta, a->what,
		       when);
	}
}

void model_access(struct model *m, const uint64_t *record, uint32_t which, uint64_t sum)
{
	run_accesses(m, record, record_block(*record), which, when_is(m, sum));
}

/* ---- branches ---- */

void model_target(struct model *m, uint32_t behind, uint32_t pc)
{
	m->wrong += predict_target(&m->predictor, behind, pc);
}

/* ---- counters ---- */

static uint64_t part(uint64_t sum, unsigned int from, unsigned int to)
{
	return sum << (64 - to) >> (64 - to + from);
}

/* What was waited and issued becomes cycles. */
static void count_cycles(struct model *m)
{
	int64_t *counter = m->counter;
	const uint64_t front = m->front / WAIT_UNIT, back = m->back / WAIT_UNIT;
	const uint64_t cycles = m->slots / m->machine.width + front + back;

	m->slots %= m->machine.width;
	m->front %= WAIT_UNIT;
	m->back %= WAIT_UNIT;
	m->ref += cycles * m->machine.ref_num;
	m->bus += cycles;
	counter[CORE_CYCLES] += cycles;
	counter[CORE_STALLED_FRONTEND] += front;
	counter[CORE_STALLED_BACKEND] += back;
	counter[CORE_REF_CYCLES] += m->ref / m->machine.ref_den;
	counter[CORE_BUS_CYCLES] += m->bus / m->machine.bus;
	m->ref %= m->machine.ref_den;
	m->bus %= m->machine.bus;
}

static void begin(struct model *m, uint64_t fs_base, int64_t *counter)
{
	scan_keep(m->vectors);
	m->counter = counter;
	m->fs_base = fs_base;
	m->extra_slots = m->indirect = m->wrong = 0;
	m->depth = m->predictor.depth;
}

static void count_branches(const struct model *m)
{
	const uint64_t sum = m->sums[SUM_BRANCHES];
	const uint64_t conditions = part(m->sums[SUM_LINES], SUM_CONDITIONS, SUM_STORES);
	const uint64_t calls = sum >> SUM_CALLS;
	const uint64_t returns = calls - (uint64_t)(int32_t)(m->predictor.depth - m->depth);
	const uint64_t others = part(sum, SUM_JUMPS, SUM_CALLS) + calls + returns;
	int64_t *counter = m->counter;

	counter[CORE_BRANCHES] += conditions + others;
	counter[CORE_BRANCHES_CONDITIONAL] += conditions;
	counter[CORE_BRANCHES_TAKEN] += part(sum, SUM_TAKEN, SUM_JUMPS) + others;
	counter[CORE_BRANCHES_INDIRECT] += m->indirect;
	counter[CORE_CALLS] += calls;
	counter[CORE_RETURNS] += returns;
}

static void finish(struct model *m)
{
	const uint64_t *sums = m->sums;
	const uint64_t insns = part(sums[SUM_INSTRUCTIONS], 0, SUM_LOADS);
	const uint64_t lines = part(sums[SUM_LINES], 0, SUM_CONDITIONS);
	const uint64_t conditions = sums[SUM_STEPS] >> PREDICT_WRONG;
	const uint64_t wrong = m->wrong + conditions;
	int64_t *counter = m->counter;

	model_miss(m);
	model_count_misses(m);
	count_branches(m);
	counter[CORE_INSTRUCTIONS] += insns;
	counter[CORE_LOADS] += sums[SUM_INSTRUCTIONS] >> SUM_LOADS;
	counter[CORE_STORES] += sums[SUM_LINES] >> SUM_STORES;
	counter[CORE_L1I_LOADS] += lines;
	counter[CORE_ITLB_LOADS] += lines;
	counter[CORE_BRANCH_MISSES] += wrong;
	counter[CORE_BRANCH_MISSES_CONDITIONAL] += conditions;
	m->insns += (uint32_t)insns;
	m->slots += insns + m->extra_slots;
	m->front += wrong * m->machine.mispredict * WAIT_UNIT;
	count_cycles(m);
	scan_give_back(m->vectors);
}

/* ---- runs ---- */

void model_run(struct model *m, const uint64_t *trace, uint64_t *end, struct compiled_end *behind,
	       uint64_t pc, uint64_t fs_base, int64_t *counter)
{
	if (trace == end)
		return;
	begin(m, fs_base, counter);
	((struct block_head *)behind->code)->pc = (uint32_t)pc;
	*end = (uint64_t)behind->code;
	model_enter(m, trace);
	finish(m);
}

/* As compiled blocks do it. */
static void run_branch(struct model *m, const struct block *b, uint64_t pc)
{
	const uint64_t behind = b->pc + b->length;
	uint64_t *sum = &m->sums[SUM_BRANCHES];
	bool wrong;

	*sum = m->sums[SUM_STEPS] = 0;
	switch (b->end) {
	case BLOCK_ON:
		break;
	case BLOCK_CONDITIONAL:
		*sum = (uint64_t)(pc != behind) << SUM_TAKEN;
		wrong = predict_condition(&m->predictor, &m->history, behind, pc != behind);
		m->sums[SUM_STEPS] = (uint64_t)wrong << PREDICT_WRONG;
		break;
	case BLOCK_RETURN:
		m->wrong += predict_return(&m->predictor, pc);
		break;
	case BLOCK_CALL:
	case BLOCK_CALL_INDIRECT:
		*sum = 1UL << SUM_CALLS;
		predict_call(&m->predictor, behind);
		break;
	case BLOCK_JUMP:
	case BLOCK_JUMP_INDIRECT:
		*sum = 1UL << SUM_JUMPS;
		break;
	}
	if (b->end == BLOCK_JUMP_INDIRECT || b->end == BLOCK_CALL_INDIRECT) {
		m->indirect++;
		model_target(m, (uint32_t)behind, (uint32_t)pc);
	}
}

void model_run_part(struct model *m, const uint64_t *record, const struct block *part, uint64_t pc,
		    uint64_t fs_base, int64_t *counter)
{
	unsigned int nr;

	begin(m, fs_base, counter);
	fetch(m, part);
	for (unsigned int i = 0; i < part->nr_accesses; i += nr) {
		nr = block_strings(part, i) ? block_strings(part, i) : 1;
		run_accesses(m, record, part, ACCESSES(i, nr), when_is(m, 0));
	}
	m->sums[SUM_INSTRUCTIONS] = BLOCK_PART(part->counts, BLOCK_INSTRUCTIONS) |
				    BLOCK_PART(part->counts, BLOCK_LOAD_OPERANDS) << SUM_LOADS;
	m->sums[SUM_LINES] = part->cost >> 32 |
			     (uint64_t)(part->end == BLOCK_CONDITIONAL) << SUM_CONDITIONS |
			     BLOCK_PART(part->counts, BLOCK_STORE_OPERANDS) << SUM_STORES;
	run_branch(m, part, pc);
	m->extra_slots = (uint32_t)part->cost - BLOCK_PART(part->counts, BLOCK_INSTRUCTIONS);
	finish(m);
}
