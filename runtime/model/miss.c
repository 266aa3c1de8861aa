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
		if (!m->l2.tags || !far_use(&m->l2, next))
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

/* ---- time ---- */

enum { LEVEL_L2 = 2, LEVEL_LLC, LEVEL_MEMORY };

static uint32_t latency(const struct machine *machine, unsigned int level)
{
	return level == LEVEL_L2    ? machine->l2_hit
	       : level == LEVEL_LLC ? machine->llc_hit
				    : machine->memory;
}

/* Of which part of its latency a load makes the program wait, in units of a sixteenth. */
static uint32_t felt(struct model *m, unsigned int level, uint32_t when)
{
	uint32_t since;

	if (level == LEVEL_L2)
		return WAIT_UNIT / 4;
	if (level == LEVEL_LLC)
		return WAIT_UNIT / 2;
	since = when - m->last_memory;
	m->last_memory = when;
	return since < m->machine.window ? WAIT_UNIT / 4 : WAIT_UNIT;
}

/* ---- lines ---- */

static unsigned int find(struct model *m, uint64_t line)
{
	if (m->l2.tags && far_use(&m->l2, line))
		return LEVEL_L2;
	return m->llc.tags && far_use(&m->llc, line) ? LEVEL_LLC : LEVEL_MEMORY;
}

static void count_level(const struct model *m, unsigned int level)
{
	const bool far = !m->l2.tags || level > LEVEL_L2;

	m->counter[CORE_L2_REFERENCES] += m->l2.tags != NULL;
	m->counter[CORE_L2_MISSES] += m->l2.tags && far;
	m->counter[CORE_LLC_REFERENCES] += far;
	m->counter[CORE_LLC_MISSES] += level == LEVEL_MEMORY;
}

static void fetch_missed(struct model *m, uint64_t line)
{
	const unsigned int level = find(m, line);

	count_level(m, level);
	m->front += (uint64_t)latency(&m->machine, level) * WAIT_UNIT;
}

static void data_missed(struct model *m, const struct miss *miss)
{
	const unsigned int level = find(m, miss->key);
	const uint64_t wait = latency(&m->machine, level);

	count_level(m, level);
	if (!m->l2.tags || level > LEVEL_L2) {
		m->counter[(miss->kind == MISS_STORE) ? CORE_LLC_STORES : CORE_LLC_LOADS]++;
		if (level == LEVEL_MEMORY)
			m->counter[(miss->kind == MISS_STORE) ? CORE_LLC_STORE_MISSES
							      : CORE_LLC_LOAD_MISSES]++;
	}
	m->back += (miss->kind == MISS_STORE) ? wait : wait * felt(m, level, miss->when);
	if (m->machine.prefetches)
		follow(m, miss->key);
}

/* ---- pages ---- */

static void page_missed(struct model *m, const struct miss *miss)
{
	const bool walk = !m->stlb.tags || !far_use(&m->stlb, miss->key);
	const uint64_t wait = walk ? m->machine.walk : m->machine.stlb_hit;

	if (miss->kind == MISS_FETCH_PAGE) {
		m->front += wait * WAIT_UNIT;
		return;
	}
	m->counter[CORE_DTLB_WALKS] += walk;
	m->back += wait * (miss->kind == MISS_STORE_PAGE ? 1 : WAIT_UNIT / 4);
}

/* ---- all ---- */

void model_miss(struct model *m)
{
	for (unsigned int i = 0; i < m->nr_misses; i++) {
		const struct miss *miss = &m->misses[i];

		if (miss->kind >= MISS_FETCH_PAGE)
			page_missed(m, miss);
		else if (miss->kind == MISS_FETCH)
			fetch_missed(m, miss->key);
		else
			data_missed(m, miss);
	}
	m->nr_misses = 0;
}
