/* SPDX-License-Identifier: MIT */
/* Reading a counter from the metadata page of its mapping (ABI: mmap.seqlock, rdpmc.formula). */
#ifndef LIB_COUNTER_USER_PAGE_H
#define LIB_COUNTER_USER_PAGE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include <tally/counter.h>

/* The two instructions that the protocol needs; tests put their own here. */
struct tly_user_clock {
	uint64_t (*pmc)(uint32_t counter, void *ctx);
	uint64_t (*tsc)(void *ctx);
	void *ctx;
};

/* Of this processor; NULL where user mode has no such instructions. */
const struct tly_user_clock *tly_user_clock_native(void);

/*
 * Takes raw and the times from @page and judges them. Returns false when the page does not allow it
 * now (no cap_user_rdpmc, index 0: not on the hardware) or makes no sense: then use read(2).
 */
bool tly_user_page_read(const struct perf_event_mmap_page *page, const struct tly_user_clock *clock,
			struct tally_value *value);

#endif
