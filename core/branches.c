// SPDX-License-Identifier: MIT
#include "core/branches.h"

#include <stdbool.h>
#include <stdint.h>

#include "core/host.h"

#define MODES (PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV)

/* For each kind of branch the filters that let it through. System calls and what comes from the
 * kernel are far branches, which calls and returns are taken to mean as processors do. */
static uint64_t filters_of(unsigned int type)
{
	switch (type) {
	case PERF_BR_COND:
		return PERF_SAMPLE_BRANCH_COND;
	case PERF_BR_IND:
		return PERF_SAMPLE_BRANCH_IND_JUMP;
	case PERF_BR_CALL:
	case PERF_BR_COND_CALL:
		return PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_CALL;
	case PERF_BR_IND_CALL:
		return PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_IND_CALL;
	case PERF_BR_SYSCALL:
		return PERF_SAMPLE_BRANCH_ANY_CALL;
	case PERF_BR_RET:
	case PERF_BR_COND_RET:
	case PERF_BR_SYSRET:
		return PERF_SAMPLE_BRANCH_ANY_RETURN;
	default:
		return 0;
	}
}

static bool passes(uint64_t asked, unsigned int type)
{
	return (asked & (PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_CALL_STACK)) ||
	       (asked & filters_of(type));
}

/* What was asked not to be told, or not asked for. */
static struct perf_branch_entry told(struct perf_branch_entry entry, uint64_t asked)
{
	if (asked & PERF_SAMPLE_BRANCH_NO_FLAGS)
		entry.mispred = entry.predicted = entry.in_tx = entry.abort = 0;
	if (asked & PERF_SAMPLE_BRANCH_NO_CYCLES)
		entry.cycles = 0;
	if (!(asked & PERF_SAMPLE_BRANCH_TYPE_SAVE))
		entry.type = 0;
	return entry;
}

size_t core_branches(const struct perf_event_attr *attr,
		     struct perf_branch_entry to[static CORE_BRANCH_STACK])
{
	/* More than are told: those that do not pass make room for older ones. */
	struct perf_branch_entry last[2 * CORE_BRANCH_STACK];
	uint64_t asked = attr->branch_sample_type;
	size_t n = 0, nr;

	if (asked & MODES && !(asked & PERF_SAMPLE_BRANCH_USER))
		return 0;
	/* There are no transactions. */
	if (asked & PERF_SAMPLE_BRANCH_IN_TX && !(asked & PERF_SAMPLE_BRANCH_NO_TX))
		return 0;
	nr = core_host_branches(last, sizeof(last) / sizeof(last[0]),
				asked & PERF_SAMPLE_BRANCH_CALL_STACK);
	for (size_t i = 0; i < nr && n < CORE_BRANCH_STACK; i++)
		if (passes(asked, last[i].type))
			to[n++] = told(last[i], asked);
	return n;
}
