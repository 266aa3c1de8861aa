// SPDX-License-Identifier: MIT
/*
 * The way of the trace through the model. All of it is spent here, so what happens nearly always,
 * a line or a page that was the last of its set, is decided by one comparison for all, and what
 * would need a decision for each kind of block goes to a list first and then all alike.
 */
#include "runtime/model/state.h"

/* ---- blocks ---- */

/* Sums of one piece, in the form of block.h. */
struct sums {
	uint64_t counts, branches;
	uint64_t slots, taken, line_fetches;
	uint64_t wrong; /* predictions */
};

static void miss(struct model *m, uint64_t key, uint32_t kind)
{
	m->misses[m->nr_misses++] = (struct miss){.key = key, .at = m->now, .kind = kind};
}

__attribute__((noinline)) static void fetch_lines(struct model *m, uint64_t first, uint64_t last,
						  int64_t *counter)
{
	for (uint64_t line = first; line <= last; line++) {
		const uint64_t page = line >> (MACHINE_PAGE_SHIFT - MACHINE_LINE_SHIFT);

		if (page != m->fetched_page) {
			m->fetched_page = page;
			if (!near_use(&m->itlb, page)) {
				counter[CORE_ITLB_LOAD_MISSES]++;
				miss(m, page, MISS_FETCH_PAGE);
			}
		}
		if (!near_use(&m->l1i, line)) {
			counter[CORE_L1I_LOAD_MISSES]++;
			miss(m, line, MISS_FETCH);
		}
	}
}

static inline void fetch(struct model *m, const struct block *b, struct sums *sums,
			 int64_t *counter)
{
	const uint64_t first = b->pc >> MACHINE_LINE_SHIFT;
	const uint64_t last = (b->pc + b->length - 1) >> MACHINE_LINE_SHIFT;
	const unsigned int lines_of_page = MACHINE_PAGE_SHIFT - MACHINE_LINE_SHIFT;

	sums->line_fetches += last - first + 1;
	if (__builtin_expect((near_moved(&m->l1i, first) | near_moved(&m->l1i, last) |
			      (last - first) >> 1 | ((first >> lines_of_page) ^ m->fetched_page) |
			      ((last >> lines_of_page) ^ m->fetched_page)) != 0,
			     0))
		fetch_lines(m, first, last, counter);
}

/* ---- operands ---- */

__attribute__((noinline)) static void data_missed(struct model *m, uint64_t address, uint8_t what,
						  int64_t *counter)
{
	const bool store = what & BLOCK_STORE;
	const uint64_t last = (address + (what & BLOCK_SIZE)) >> MACHINE_LINE_SHIFT;
	uint64_t seen = 0;

	for (uint64_t line = address >> MACHINE_LINE_SHIFT; line <= last; line++) {
		const uint64_t page = line >> (MACHINE_PAGE_SHIFT - MACHINE_LINE_SHIFT);

		if (page != seen && !near_use(&m->dtlb, page)) {
			counter[store ? CORE_DTLB_STORE_MISSES : CORE_DTLB_LOAD_MISSES]++;
			miss(m, page, store ? MISS_STORE_PAGE : MISS_LOAD_PAGE);
		}
		seen = page;
		if (!near_use(&m->l1d, line)) {
			counter[store ? CORE_L1D_STORE_MISSES : CORE_L1D_LOAD_MISSES]++;
			miss(m, line, store ? MISS_STORE : MISS_LOAD);
			m->last_miss.address = address;
		}
	}
}

static inline void access(struct model *m, uint64_t address, uint8_t what, int64_t *counter)
{
	const uint64_t end = address + (what & BLOCK_SIZE);

	if (__builtin_expect((near_moved(&m->l1d, address >> MACHINE_LINE_SHIFT) |
			      near_moved(&m->dtlb, address >> MACHINE_PAGE_SHIFT) |
			      (address ^ end) >> MACHINE_LINE_SHIFT) != 0,
			     0))
		data_missed(m, address, what, counter);
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

static void string_step(struct model *m, struct string *s, uint64_t reach, int64_t *counter)
{
	if (s->down)
		s->at -= reach;
	access(m, s->at, s->what | (uint8_t)(reach - 1), counter);
	if (!s->down)
		s->at += reach;
	s->left -= reach;
}

/* One string, or two of the same length together: as far as both stay in their lines each time. */
static void run_strings(struct model *m, struct string *one, struct string *other, int64_t *counter)
{
	while (one->left) {
		uint64_t reach = string_reach(one);

		if (m->nr_misses > MISSES_MAX - MISSES_SLACK)
			model_miss(m, counter);
		m->now++;
		if (other->left && string_reach(other) < reach)
			reach = string_reach(other);
		string_step(m, one, reach, counter);
		if (other->left)
			string_step(m, other, reach, counter);
	}
}

__attribute__((noinline)) static void add_strings(struct model *m, const uint64_t *trace,
						  const struct block *b, uint64_t fs_base,
						  int64_t *counter)
{
	for (unsigned int i = 0; i < b->nr_accesses; i++) {
		const struct block_access *a = &b->accesses[i];
		struct string one, other = {0};

		if (!(a->what & BLOCK_STRING)) {
			access(m, trace[a->word] + (a->base ? fs_base : 0) + (int64_t)a->delta,
			       a->what, counter);
			continue;
		}
		one = string_of(trace, a);
		if (i + 1u < b->nr_accesses && a[1].what & BLOCK_STRING) {
			other = string_of(trace, &a[1]);
			i++;
		}
		run_strings(m, &one, &other, counter);
	}
}

/* One jump by their number, and none between them: a loop would be predicted worse. */
static inline void accesses(struct model *m, const uint64_t *trace, const struct block *b,
			    const uint64_t bases[2], int64_t *counter)
{
	const struct block_access *a = b->accesses, *end = a + b->nr_accesses;

#define ACCESS(a)                                                                                  \
	access(m, trace[(a)->word] + bases[(a)->base] + (int64_t)(a)->delta, (a)->what, counter)
	switch (b->shape) {
	case BLOCK_STRINGS:
		add_strings(m, trace, b, bases[BLOCK_BASE_FS], counter);
		return;
	default:
		while (a < end - 6) {
			ACCESS(a);
			a++;
		}
		/* fall through */
	case 6:
		ACCESS(end - 6);
		/* fall through */
	case 5:
		ACCESS(end - 5);
		/* fall through */
	case 4:
		ACCESS(end - 4);
		/* fall through */
	case 3:
		ACCESS(end - 3);
		/* fall through */
	case 2:
		ACCESS(end - 2);
		/* fall through */
	case 1:
		ACCESS(end - 1);
		/* fall through */
	case 0:
		break;
	}
#undef ACCESS
	m->now += b->nr_accesses;
}

/* ---- branches ---- */

/* All but conditions. */
static void other_branch(struct model *m, const struct block *b, uint64_t next, struct sums *sums)
{
	struct predictor *p = &m->predictor;
	const uint64_t behind = b->pc + b->length;

	sums->taken++;
	if (b->end == BLOCK_RETURN)
		sums->wrong += predict_return(p, next);
	else if (b->end == BLOCK_JUMP_INDIRECT || b->end == BLOCK_CALL_INDIRECT)
		sums->wrong += predict_target(p, behind, next);
	if (b->end == BLOCK_CALL || b->end == BLOCK_CALL_INDIRECT)
		predict_call(p, behind);
}

/* Conditions are so many that they are put onto their list without asking. */
static inline void branch(struct model *m, const struct block *b, uint64_t next, struct sums *sums)
{
	const uint64_t behind = b->pc + b->length;
	const bool conditional = b->end == BLOCK_CONDITIONAL;

	m->conditions[m->nr_conditions] = behind << 1 | (next != behind);
	m->nr_conditions += conditional;
	sums->taken += conditional & (next != behind);
	if (b->end > BLOCK_CONDITIONAL)
		other_branch(m, b, next, sums);
}

static void run_conditions(struct model *m, struct sums *sums)
{
	for (unsigned int i = 0; i < m->nr_conditions; i++)
		sums->wrong += predict_condition(&m->predictor, m->conditions[i] >> 1,
						 m->conditions[i] & 1);
	m->nr_conditions = 0;
}

/* ---- pieces ---- */

static uint16_t part(uint64_t counts, unsigned int place)
{
	return counts >> 16 * place;
}

static void count(struct model *m, const struct sums *sums, int64_t *counter)
{
	counter[CORE_INSTRUCTIONS] += part(sums->counts, BLOCK_INSTRUCTIONS);
	counter[CORE_LOADS] += part(sums->counts, BLOCK_LOAD_OPERANDS);
	counter[CORE_STORES] += part(sums->counts, BLOCK_STORE_OPERANDS);
	counter[CORE_BRANCHES] += part(sums->counts, BLOCK_BRANCHES);
	counter[CORE_BRANCHES_CONDITIONAL] += part(sums->branches, BLOCK_CONDITIONALS);
	counter[CORE_CALLS] += part(sums->branches, BLOCK_CALLS);
	counter[CORE_RETURNS] += part(sums->branches, BLOCK_RETURNS);
	counter[CORE_BRANCHES_INDIRECT] += part(sums->branches, BLOCK_INDIRECTS);
	counter[CORE_BRANCHES_TAKEN] += sums->taken;
	counter[CORE_L1I_LOADS] += sums->line_fetches;
	counter[CORE_ITLB_LOADS] += sums->line_fetches;
	counter[CORE_BRANCH_MISSES] += sums->wrong;
	m->slots += sums->slots;
	m->front += sums->wrong * m->machine.mispredict * WAIT_UNIT;
}

/* What was waited and issued becomes cycles. */
static void count_cycles(struct model *m, int64_t *counter)
{
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

/* From blocks to lists, as many as they hold. Returns where it ends. */
static const uint64_t *take(struct model *m, const uint64_t *trace, const uint64_t *end,
			    const uint64_t bases[2], struct sums *sums, int64_t *counter)
{
	const struct block *b = (const struct block *)*trace;

	for (unsigned int n = 0; n < PIECE_RECORDS && m->nr_misses < MISSES_MAX - MISSES_SLACK;
	     n++) {
		const uint64_t *next = trace + b->words;
		const struct block *next_block = (const struct block *)*next;

		sums->counts += b->counts;
		sums->branches += b->branches;
		sums->slots += b->slots;
		fetch(m, b, sums, counter);
		accesses(m, trace, b, bases, counter);
		branch(m, b, next_block->pc, sums);
		trace = next;
		b = next_block;
		if (trace >= end)
			break;
	}
	return trace;
}

void model_run(struct model *m, uint64_t *start, uint64_t *end, uint64_t pc, uint64_t fs_base,
	       int64_t *counter)
{
	const uint64_t bases[] = {[BLOCK_BASE_NONE] = 0, [BLOCK_BASE_FS] = fs_base};
	const uint64_t *trace = start;

	m->after.pc = pc;
	*end = (uint64_t)&m->after;
	while (trace < end) {
		struct sums sums = {0};

		trace = take(m, trace, end, bases, &sums, counter);
		run_conditions(m, &sums);
		model_miss(m, counter);
		count(m, &sums, counter);
	}
	count_cycles(m, counter);
}
