/* SPDX-License-Identifier: MIT */
/* For the tests of the state machine: a tree of tasks on the fake host, and short words for what is
 * done to events again and again. */
#ifndef CORE_TEST_TREE_H
#define CORE_TEST_TREE_H

#include <linux/perf_event.h>

#include "core/core.h"
#include "core/fake_host.h"

enum { FIRST_PAGE = 1, MS = 1000000 };

/* Root's, on everything. */
extern const struct core_rights all_rights;

/* What the tests open most: all read formats that need no group. */
struct perf_event_attr test_attr(uint32_t type, uint64_t config);
struct perf_event_attr test_instructions(void);

/* As long as the core knows it. */
struct padded_attr {
	union {
		struct perf_event_attr attr;
		unsigned char bytes[CORE_ATTR_SIZE];
	};
};
struct padded_attr test_padded(const struct perf_event_attr *attr);

/* The caller is the task at FIRST_PAGE, on processor 0. @counters: --counters=N. */
void tree_begin(uint32_t counters);
void tree_end(void);

int tree_setup(void **state);
int tree_setup_two_counters(void **state);
int tree_teardown(void **state);
#define TREE_CASE(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
#define TREE_CASE_TWO_COUNTERS(name)                                                               \
	cmocka_unit_test_setup_teardown(name, tree_setup_two_counters, tree_teardown)

/* A task at @page, made by the caller with @flags of clone(2). */
struct core_task *tree_clone(uint32_t page, uint64_t flags);
/* The task at @page is the caller from now on. */
void tree_run(uint32_t page);
/* The last descriptor of @event is gone. */
void tree_close(uint32_t event);

/* The caller ends; the task at FIRST_PAGE runs. */
void tree_exit(void);

/* Time for others to have counters. */
void tree_rotate(void);

/* The caller executes @instructions, which take as many microseconds. */
void tree_work(uint64_t instructions);

/* core_open() where nobody else closes anything: the index, or the error. */
int64_t test_open(const struct perf_event_attr *attr, const struct core_target *target,
		  uint64_t group, unsigned long flags, const struct core_rights *rights);

/* Opens @attr for @task, NULL for all; fails the test when that fails. */
uint32_t tree_open(const struct perf_event_attr *attr, struct core_task *task, int cpu,
		   uint32_t group);
/* The errno value. */
int tree_refused(const struct perf_event_attr *attr, struct core_task *task, int cpu,
		 uint32_t group);

struct test_count {
	uint64_t value, enabled, running, id, lost;
};
struct test_count tree_read(uint32_t event);
uint64_t tree_value(uint32_t event);

#endif
