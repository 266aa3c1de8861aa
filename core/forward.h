/* SPDX-License-Identifier: MIT */
/*
 * Records of events of the kernel's that go to rings of ours.
 *
 *	the kernel's event --> its ring, mapped here --core_forward()--> ring of ours
 *
 * A ring that feeds an event of ours may be mapped by two, who opened it and the monitor; each
 * forwards when it finds something, and what the one has taken the other does not find any more.
 */
#ifndef CORE_FORWARD_H
#define CORE_FORWARD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

struct core_forward {
	uint64_t event; /* of ours, by name, whose ring it is */
	bool feeds;	/* its records shall be that one's */
	bool sample_id_all;
	uint64_t sample_type, read_format;
	int64_t ahead; /* of our clock is the one that it tells the time by, ns */
	struct perf_event_mmap_page *page; /* NULL: it has no ring of its own here */
	uint64_t size;			   /* of the mapping: a page, and 2^n of data */
};

/* All that has come. One at a time in a process. */
void core_forward(const struct core_forward *from);

/* The same for who must not wait for others, whom a tracer may have stopped there: they see to
 * it then. */
void core_forward_soon(const struct core_forward *from);

#endif
