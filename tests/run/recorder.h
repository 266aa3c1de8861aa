/* SPDX-License-Identifier: MIT */
/* An event that is sampled as precisely as can be, and its samples one after the other. */
#ifndef TESTS_RUN_RECORDER_H
#define TESTS_RUN_RECORDER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include <tally/record.h>

enum { PAGE = 4096 };

struct recorder {
	struct perf_event_attr attr;
	struct tally_record record;
	int fd;
	struct perf_event_mmap_page *page;
	uint64_t tail;
};

/* Skips the test where there is no such PMU. */
struct recorder recorder_begin(struct perf_event_attr attr);
struct recorder recorder_begin_at(uint64_t config, uint64_t period, uint64_t sample_type);
void recorder_end(struct recorder *r);

/* What is sampled is work(argument). */
void recorder_run(struct recorder *r, void (*work)(void *), void *argument);

/* The next sample; it is valid until the next one. NULL: there are no more. */
const struct tally_sample *recorder_next(struct recorder *r);
bool recorder_is_exact(const struct recorder *r);

#endif
