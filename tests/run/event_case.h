/* SPDX-License-Identifier: MIT */
/*
 * Cases about descriptors of events, and the life of what they measure. All with software events,
 * which the kernel has everywhere, so that it says what is right; under `tally run --host=never`
 * they are the virtual PMU's. What is counted is only told as far as it must be the same.
 */
#ifndef TESTS_RUN_EVENT_CASE_H
#define TESTS_RUN_EVENT_CASE_H

#include <linux/perf_event.h>

#include "case.h"

enum { PAGE = 4096, RING = 5 * PAGE };

/* A bad address; the compiler is not to see through it. */
extern void *volatile nowhere;

/* Page faults in user mode. */
struct perf_event_attr faults(void);

int open_event(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);

/* An event of this thread, or the end of the case where there are none. */
int own_event(struct perf_event_attr *attr);
int own_faults(void);

uint64_t count_of(int fd);

/* Touches @nr pages that were never touched. */
void fault(int nr);

/* A child that touches @nr_pages when it reads a byte of *@go, and ends then or when that is
 * closed. */
pid_t start_child(int *go, int nr_pages);

/* Maps a ring, which stays. */
void map_ring(int fd);
/* The same, or the end of the case where none can be mapped. */
struct perf_event_mmap_page *ring_page(int fd);

/* A descriptor, by SCM_RIGHTS. */
void send_fd(int socket, int fd);
int receive_fd(int socket);

void report(const char *what, long result);

/* What it is, and 0 for addresses and the like. */
#define TRY(call)    report(#call, (call))
#define TRY_AT(call) report(#call, (long)(call) == -1 ? -1 : 0)

#endif
