// SPDX-License-Identifier: MIT
/*
 * Behind the first level: what fetches and accesses missed there goes, in the order in which it
 * happened, to the second TLB, to L2 and to the last level, and costs time.
 *
 * How much of a latency is waited for: instructions behind a load go on as far as the window
 * reaches, so that little of a short wait is felt, and several long ones overlap. A store is waited
 * for by nobody, but it holds a buffer. A fetch leaves nothing to do.
 */
#include "runtime/model/state.h"

/* ---- the prefetcher ---- */

/* How many lines it is ahead. */
#define AHEAD 4

static void prefetch(struct model *m, struct stream *s, uint64_t line)
{
	const unsigned int lines_of_page = MACHINE_PAGE_SHIFT - MACHINE_LINE_SHIFT;

	for (unsigned int i = 1; i <= AHEAD; i++) {
		const uint64_t next = line + (uint64_t)(int64_t)(s->step * (int)i);

		if (next >> lines_of_page != line >> lines_of_page)
			return;
		if (s->step > 0 ? next <= s->ahead : next >= s->ahead)
			continue;
		s->ahead = next;
		m->counter[CORE_L1D_PREFETCHES]++;
		if (m->l2.tags && far_use(&m->l2, next))
			continue;
		m->counter[CORE_LLC_PREFETCHES]++;
		if (m->llc.tags)
			far_use(&m->llc, next);
	}
}

/*
 * Two misses of neighbours make a stream; the third is ahead of already. Each page has its place,
 * so that misses at random cost little.
 */
static void follow(struct model *m, uint64_t line)
{
	const uint64_t page = line >> (MACHINE_PAGE_SHIFT - MACHINE_LINE_SHIFT);
	struct stream *s = &m->streams[page % STREAMS];
	const int64_t step = (int64_t)(line - s->last);

	if (s->step ? step == s->step : step == 1 || step == -1) {
		if (!s->step)
			s->ahead = line;
		s->step = (int32_t)step;
		s->last = line;
		prefetch(m, s, line);
		return;
	}
	*s = (struct stream){.last = line};
}

/* ---- lines ---- */

static inline enum level find(struct model *m, uint64_t line)
{
	if (m->l2.tags && far_use(&m->l2, line))
		return LEVEL_L2;
	return m->llc.tags && far_use(&m->llc, line) ? LEVEL_LLC : LEVEL_MEMORY;
}

/* Whether another load waits for memory. */
static bool overlaps(struct model *m, uint32_t when)
{
	const uint32_t since = when - m->last_memory;

	m->last_memory = when;
	return since < m->machine.window;
}

void model_miss(struct model *m)
{
	for (unsigned int i = 0; i < m->nr_misses; i++) {
		const struct miss *miss = &m->misses[i];
		enum level level = find(m, miss->line);

		if (level == LEVEL_MEMORY && miss->kind == MISS_LOAD && overlaps(m, miss->when))
			level = LEVEL_MEMORY_TOO;
		m->found[miss->kind][level]++;
		if (miss->kind != MISS_FETCH && m->machine.prefetches)
			follow(m, miss->line);
	}
	m->nr_misses = 0;
}

/* ---- counts, and time ---- */

/* Of which part of its latency a load makes the program wait, in units of a sixteenth. */
static const uint32_t felt[LEVELS] = {
	[LEVEL_L2] = WAIT_UNIT / 4,
	[LEVEL_LLC] = WAIT_UNIT / 2,
	[LEVEL_MEMORY] = WAIT_UNIT,
	[LEVEL_MEMORY_TOO] = WAIT_UNIT / 4,
};

static void count_waits(struct model *m)
{
	const uint64_t latencies[LEVELS] = {m->machine.l2_hit, m->machine.llc_hit,
					    m->machine.memory, m->machine.memory};

	for (unsigned int level = 0; level < LEVELS; level++) {
		m->front += m->found[MISS_FETCH][level] * latencies[level] * WAIT_UNIT;
		m->back += m->found[MISS_LOAD][level] * latencies[level] * felt[level] +
			   m->found[MISS_STORE][level] * latencies[level];
	}
}

void model_count_misses(struct model *m)
{
	uint64_t all[MISS_KINDS], far[MISS_KINDS], memory[MISS_KINDS];
	int64_t *counter = m->counter;

	for (unsigned int kind = 0; kind < MISS_KINDS; kind++) {
		memory[kind] = m->found[kind][LEVEL_MEMORY] + m->found[kind][LEVEL_MEMORY_TOO];
		far[kind] = m->found[kind][LEVEL_LLC] + memory[kind];
		all[kind] = m->found[kind][LEVEL_L2] + far[kind];
		counter[CORE_L2_REFERENCES] += m->l2.tags ? all[kind] : 0;
		counter[CORE_L2_MISSES] += m->l2.tags ? far[kind] : 0;
		counter[CORE_LLC_REFERENCES] += far[kind];
		counter[CORE_LLC_MISSES] += memory[kind];
	}
	counter[CORE_L1I_LOAD_MISSES] += all[MISS_FETCH];
	counter[CORE_L1D_LOAD_MISSES] += all[MISS_LOAD];
	counter[CORE_L1D_STORE_MISSES] += all[MISS_STORE];
	counter[CORE_LLC_LOADS] += far[MISS_LOAD];
	counter[CORE_LLC_STORES] += far[MISS_STORE];
	counter[CORE_LLC_LOAD_MISSES] += memory[MISS_LOAD];
	counter[CORE_LLC_STORE_MISSES] += memory[MISS_STORE];
	count_waits(m);
	__builtin_memset(m->found, 0, sizeof(m->found));
}

/* ---- pages ---- */

void model_miss_page(struct model *m, uint64_t page, enum miss_kind kind)
{
	const bool walk = !m->stlb.tags || !far_use(&m->stlb, page);
	const uint64_t wait = walk ? m->machine.walk : m->machine.stlb_hit;

	if (kind == MISS_FETCH) {
		m->counter[CORE_ITLB_LOAD_MISSES]++;
		m->front += wait * WAIT_UNIT;
		return;
	}
	m->counter[kind == MISS_STORE ? CORE_DTLB_STORE_MISSES : CORE_DTLB_LOAD_MISSES]++;
	m->counter[CORE_DTLB_WALKS] += walk;
	m->back += wait * (kind == MISS_STORE ? 1 : WAIT_UNIT / 4);
}
