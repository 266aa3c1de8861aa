// SPDX-License-Identifier: MIT
/*
 * The way of the trace through the model. Nearly all time is spent here: so what happens nearly
 * always, that a line and a page are those that their sets were last used for, is decided by one
 * comparison, what is known of a block is added in two additions, and what was missed goes to a
 * list that is gone through later.
 */
#include "runtime/model/state.h"

/* ---- misses ---- */

/* @when: in instructions; of a piece they are counted in the lowest bits of `counts`. */
static void miss(struct model *m, uint64_t key, enum miss_kind kind, uint64_t counts,
		 int64_t *counter)
{
	if (m->nr_misses == MISSES_MAX)
		model_miss(m, counter);
	m->misses[m->nr_misses++] = (struct miss){
		.key = key,
		.when = m->insns + (uint16_t)counts,
		.kind = kind,
	};
}

/* ---- fetches ---- */

#define LINES_OF_PAGE (MACHINE_PAGE_SHIFT - MACHINE_LINE_SHIFT)

__attribute__((noinline)) static void fetch_lines(struct model *m, uint64_t first, uint64_t last,
						  uint64_t counts, int64_t *counter)
{
	for (uint64_t line = first; line <= last; line++) {
		const uint64_t page = line >> LINES_OF_PAGE;

		if (page != m->fetched_page) {
			m->fetched_page = page;
			if (!near_use(&m->itlb, page)) {
				counter[CORE_ITLB_LOAD_MISSES]++;
				miss(m, page, MISS_FETCH_PAGE, counts, counter);
			}
		}
		if (!near_use(&m->l1i, line)) {
			counter[CORE_L1I_LOAD_MISSES]++;
			miss(m, line, MISS_FETCH, counts, counter);
		}
	}
}

static inline void fetch(struct model *m, const struct block *b, uint64_t counts, int64_t *counter)
{
	const uint64_t first = b->pc >> MACHINE_LINE_SHIFT;
	const uint64_t last = (b->pc + b->length - 1) >> MACHINE_LINE_SHIFT;
	const uint64_t page = m->fetched_page << LINES_OF_PAGE;

	if (__builtin_expect((near_moved(&m->l1i, first) | near_moved(&m->l1i, last) |
			      ((first ^ page) | (last ^ page)) >> LINES_OF_PAGE) != 0,
			     0))
		fetch_lines(m, first, last, counts, counter);
}

/* ---- operands ---- */

static void use_page(struct model *m, uint64_t page, bool store, uint64_t counts, int64_t *counter)
{
	if (near_use(&m->dtlb, page))
		return;
	counter[store ? CORE_DTLB_STORE_MISSES : CORE_DTLB_LOAD_MISSES]++;
	miss(m, page, store ? MISS_STORE_PAGE : MISS_LOAD_PAGE, counts, counter);
}

static void use_line(struct model *m, uint64_t line, bool store, uint64_t counts, int64_t *counter)
{
	if (near_use(&m->l1d, line))
		return;
	counter[store ? CORE_L1D_STORE_MISSES : CORE_L1D_LOAD_MISSES]++;
	miss(m, line, store ? MISS_STORE : MISS_LOAD, counts, counter);
}

/* What is not used over and over. */
__attribute__((noinline)) static void moved(struct model *m, uint64_t address, uint8_t what,
					    uint64_t counts, int64_t *counter)
{
	const bool store = what & BLOCK_STORE;
	const uint64_t line = address >> MACHINE_LINE_SHIFT;
	const uint64_t last = (address + (what & BLOCK_SIZE)) >> MACHINE_LINE_SHIFT;

	use_page(m, line >> LINES_OF_PAGE, store, counts, counter);
	use_line(m, line, store, counts, counter);
	if (line == last)
		return;
	use_page(m, last >> LINES_OF_PAGE, store, counts, counter);
	use_line(m, last, store, counts, counter);
}

static inline void access(struct model *m, uint64_t address, uint8_t what, uint64_t counts,
			  int64_t *counter)
{
	const uint64_t end = address + (what & BLOCK_SIZE);

	if (__builtin_expect((near_moved(&m->l1d, address >> MACHINE_LINE_SHIFT) |
			      near_moved(&m->dtlb, address >> MACHINE_PAGE_SHIFT) |
			      (address ^ end) >> MACHINE_LINE_SHIFT) != 0,
			     0))
		moved(m, address, what, counts, counter);
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

static void string_step(struct model *m, struct string *s, uint64_t reach, uint64_t counts,
			int64_t *counter)
{
	if (s->down)
		s->at -= reach;
	access(m, s->at, s->what | (uint8_t)(reach - 1), counts, counter);
	if (!s->down)
		s->at += reach;
	s->left -= reach;
}

/* One string, or two of the same length together: as far as both stay in their lines each time. */
static void run_strings(struct model *m, struct string *one, struct string *other, uint64_t counts,
			int64_t *counter)
{
	while (one->left) {
		uint64_t reach = string_reach(one);

		if (other->left && string_reach(other) < reach)
			reach = string_reach(other);
		string_step(m, one, reach, counts, counter);
		if (other->left)
			string_step(m, other, reach, counts, counter);
	}
}

__attribute__((noinline)) static void odd_accesses(struct model *m, const uint64_t *trace,
						   const struct block *b, uint64_t fs_base,
						   uint64_t counts, int64_t *counter)
{
	for (unsigned int i = 0; i < b->nr_accesses; i++) {
		const struct block_access *a = &b->accesses[i];
		struct string one, other = {0};

		if (!(a->what & BLOCK_STRING)) {
			access(m, trace[a->word] + (a->base ? fs_base : 0) + (int64_t)a->delta,
			       a->what, counts, counter);
			continue;
		}
		one = string_of(trace, a);
		if (i + 1u < b->nr_accesses && a[1].what & BLOCK_STRING) {
			other = string_of(trace, &a[1]);
			i++;
		}
		run_strings(m, &one, &other, counts, counter);
	}
}

/* One jump by their number, and none between them: a loop would be predicted worse. */
static inline void accesses(struct model *m, const uint64_t *trace, const struct block *b,
			    uint64_t fs_base, uint64_t counts, int64_t *counter)
{
	const struct block_access *a = b->accesses;

#define ACCESS(a) access(m, trace[(a)->word] + (int64_t)(a)->delta, (a)->what, counts, counter)
	switch (b->shape) {
	case BLOCK_ODD:
		odd_accesses(m, trace, b, fs_base, counts, counter);
		return;
	default:
		for (const struct block_access *more = a + b->shape - 4; a < more; a++)
			ACCESS(a);
		/* fall through */
	case 4:
		ACCESS(a);
		a++;
		/* fall through */
	case 3:
		ACCESS(a);
		a++;
		/* fall through */
	case 2:
		ACCESS(a);
		a++;
		/* fall through */
	case 1:
		ACCESS(a);
		/* fall through */
	case 0:
		break;
	}
#undef ACCESS
}

/* ---- branches ---- */

/* Sums of one piece, in the form of block.h. */
struct sums {
	uint64_t counts, cost;
	uint64_t conditions, taken;
	uint64_t wrong; /* predictions */
};

/* All but conditions. */
static void other_branch(struct model *m, const struct block *b, uint64_t next, struct sums *sums,
			 int64_t *counter)
{
	struct predictor *p = &m->predictor;
	const uint64_t behind = b->pc + b->length;

	sums->taken++;
	if (b->end == BLOCK_RETURN) {
		counter[CORE_RETURNS]++;
		sums->wrong += predict_return(p, next);
	} else if (b->end == BLOCK_JUMP_INDIRECT || b->end == BLOCK_CALL_INDIRECT) {
		counter[CORE_BRANCHES_INDIRECT]++;
		sums->wrong += predict_target(p, behind, next);
	}
	if (b->end == BLOCK_CALL || b->end == BLOCK_CALL_INDIRECT) {
		counter[CORE_CALLS]++;
		predict_call(p, behind);
	}
}

static inline void branch(struct model *m, const struct block *b, uint64_t next, struct sums *sums,
			  int64_t *counter)
{
	const uint64_t behind = b->pc + b->length;

	if (b->end == BLOCK_CONDITIONAL) {
		sums->conditions++;
		sums->taken += next != behind;
		sums->wrong += predict_condition(&m->predictor, behind, next != behind);
	} else if (b->end != BLOCK_ON) {
		other_branch(m, b, next, sums, counter);
	}
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
	counter[CORE_BRANCHES_CONDITIONAL] += sums->conditions;
	counter[CORE_BRANCHES_TAKEN] += sums->taken;
	counter[CORE_BRANCH_MISSES] += sums->wrong;
	counter[CORE_L1I_LOADS] += sums->cost >> 32;
	counter[CORE_ITLB_LOADS] += sums->cost >> 32;
	m->insns += part(sums->counts, BLOCK_INSTRUCTIONS);
	m->slots += (uint32_t)sums->cost;
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

/* The next piece, up to @end at most. Returns where it ends. */
static const uint64_t *take(struct model *m, const uint64_t *trace, const uint64_t *end,
			    uint64_t fs_base, int64_t *counter)
{
	const struct block *b = (const struct block *)*trace;
	struct sums sums = {0};

	if (end - trace > PIECE_WORDS)
		end = trace + PIECE_WORDS;
	do {
		const uint64_t *next = trace + b->words;
		const struct block *next_block = (const struct block *)*next;

		fetch(m, b, sums.counts, counter);
		accesses(m, trace, b, fs_base, sums.counts, counter);
		sums.counts += b->counts;
		sums.cost += b->cost;
		branch(m, b, next_block->pc, &sums, counter);
		trace = next;
		b = next_block;
	} while (trace < end);
	model_miss(m, counter);
	count(m, &sums, counter);
	return trace;
}

void model_run(struct model *m, uint64_t *start, uint64_t *end, uint64_t pc, uint64_t fs_base,
	       int64_t *counter)
{
	const uint64_t *trace = start;

	m->after.pc = pc;
	*end = (uint64_t)&m->after;
	while (trace < end)
		trace = take(m, trace, end, fs_base, counter);
	count_cycles(m, counter);
}
