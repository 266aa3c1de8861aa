// SPDX-License-Identifier: MIT
/* The events that the random calls are about; see differential.c. */
#ifndef CONFORMANCE_DIFFERENTIAL_H
#define CONFORMANCE_DIFFERENTIAL_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SLOTS 8
#define WORDS 4

struct slot {
	int fd;	      /* -1: free */
	int leader;   /* slot of the group's leader; -1: none but itself */
	bool exact;   /* its number is known */
	bool another; /* measures the helper: when that ran is not determined */
	struct perf_event_attr attr;
	uint64_t id;
	struct perf_event_mmap_page *page;
	unsigned int pages;
	bool writable;
	bool shared; /* others write to its buffer, too */
};

extern struct slot slots[SLOTS];

/* What watchpoints are about. */
extern volatile uint64_t words[WORDS];

const char *error_name(long result);

/* "me", "child", ...: the same in each run. */
const char *name_of_task(pid_t pid);

/* -1: nobody's. */
int slot_of_id(uint64_t id);

/* ---- differential_attr.c ---- */

/* Also the cgroups of samples, which the kernel alone knows where no hierarchy is mounted. */
extern bool of_cgroups_too;
/* Also watchpoints, which some kernels forget. */
extern bool watchpoints_too;

struct perf_event_attr draw_attr(void);
struct perf_event_attr draw_watchpoint(void);
bool is_exact(const struct perf_event_attr *attr);

/* Linux schedules by unit, and each clock is one of its own. */
uint64_t unit_of(const struct perf_event_attr *attr);

/* ---- differential_calls.c: each writes its line ---- */

void do_open(struct slot *slot);
void do_close(struct slot *slot);
void do_read(const struct slot *slot);
void do_ioctl(struct slot *slot);
void do_prctl(void);
void do_poll(const struct slot *slot);
void do_odd(struct slot *slot);

/* What read(2) gave, and what a sample says of it. Returns the words that it takes. */
size_t print_read(const uint64_t *from, size_t nr, const struct slot *slot);

/* ---- differential_ring.c ---- */

void do_map(struct slot *slot);
void do_unmap(struct slot *slot);
void do_drain(struct slot *slot);

/* ---- differential_record.c ---- */

void tell_record(const struct perf_event_header *header, const struct slot *slot);
void tell_no_more(void);

/* ---- differential_tasks.c ---- */

extern pid_t helper; /* 0: has ended */

void tasks_begin(const char *program);
void do_work(void);
void do_task(void);

#endif
