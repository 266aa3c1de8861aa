/* SPDX-License-Identifier: MIT */
/*
 * A host for the tests of the core: everything that it is asked is what the test has put here, and
 * what it is told is written down here. The arena is ordinary memory.
 */
#ifndef CORE_FAKE_HOST_H
#define CORE_FAKE_HOST_H

#include <asm/perf_regs.h>
#include <linux/perf_event.h>

#include "core/core.h"
#include "core/host.h"

struct fake_told {
	uint32_t event;
	int what; /* revents of a wake, band of a signal */
	uint64_t address;
};

struct fake_log {
	struct fake_told of[64];
	size_t nr; /* that came, also beyond those that fit */
};

/* Each thread of a test has its own, as it is another caller; the arena they share. */
extern _Thread_local struct fake_host {
	uint64_t tsc;	 /* nanoseconds, with the settings of fake_begin() */
	uint64_t tick;	 /* how much later it is each time that somebody looks */
	uint64_t rate;	 /* of what fake_run() counts, a second: time passes; 0: it does not */
	uint64_t others; /* of that, when others ran */
	uint64_t clock;
	int cpu;
	int32_t tid, dead;	 /* of the caller, and of one who has died */
	struct core_task *task;	 /* the caller */
	void (*meanwhile)(void); /* once, when it has looked at the time */
	uint32_t halted;	 /* who was found to hold others up, */
	uint32_t *halted_lock;	 /* and then gives this back */

	uint64_t software[64]; /* by enum core_kind */
	uint64_t regs[PERF_REG_X86_64_MAX];
	uint64_t chain[600];
	size_t frames;
	struct perf_branch_entry branch[64];
	size_t branches;
	bool has_cause;
	struct core_cause cause;
	uint64_t before[PERF_REG_X86_64_MAX]; /* it: the registers */
	unsigned char *memory;		      /* of the caller, from memory_at on */
	uint64_t memory_at;
	size_t memory_size;

	/* What a thread does that is to come out before it has; NULL: it does not come. */
	void (*comes_out)(struct core_task *task);

	bool partly; /* no more than the threads can be mapped */
	bool keeper_gone;
	uint64_t kernels; /* what each event of the kernel's has counted that counts for ours */

	struct fake_log wakes, signals, traps, kicks, stills, keeps;
	uint64_t discarded; /* bytes */
	unsigned int crowds;
} fake;

/* A new arena, with a task at page 1 that is the caller. */
void fake_begin(void);
void fake_end(void);

int fake_setup(void **state);
int fake_teardown(void **state);
#define FAKE_CASE(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

/* The calling thread has a task, at @page. */
void fake_caller(uint32_t page);

/* An event of the caller that counts, as core_open() would have made it. */
uint32_t fake_event(const struct perf_event_attr *attr, enum core_kind kind);

/* The caller's code has counted @n of @kind, up to where an overflow is due if there is one. */
void fake_run(enum core_kind kind, uint64_t n);

#endif
