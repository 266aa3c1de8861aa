/* SPDX-License-Identifier: MIT */
/*
 * A thread's trace on its way from translated code (runtime/translate/trace.c) to its model
 * (runtime/model/). The trace is taken in whenever the thread leaves translated code, so outside
 * of it there is none, and the thread's counters are true.
 *
 *	| ............. records | room for more | blocks of its own |
 *	start		      border, 64 KiB aligned
 *
 * The buffer is full when a record begins behind the border: then bit 15 of its address is 0, and
 * thread->trace_full is not below 0. Code looks where it is entered, and so often besides that not
 * more than TRACER_UNSEEN words follow of which it does not know whether there is room; where
 * somebody waits for a counter, before each record.
 */
#ifndef RUNTIME_PMU_TRACER_H
#define RUNTIME_PMU_TRACER_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/machine.h"
#include "core/host.h"
#include "runtime/thread.h"

enum { TRACER_UNSEEN = 256 };

/* Makes @thread, the caller, ready to run code that traces. False: there is no memory. */
bool tracer_begin(struct thread *thread);
void tracer_end(struct thread *thread);

/* @thread is the only one of a forked child: gives back what its parent's threads had. */
void tracer_forked(struct thread *thread);

/* The counters of @thread, the caller, wait for something else now. */
void tracer_follow(struct thread *thread);

/* Takes in what has been traced. The program is at thread->regs.rip. */
void tracer_drain(struct thread *thread);

/* The last record was begun and not executed to its end: struct counts tells of `cut`. From a
 * signal handler. */
void tracer_cut(struct thread *thread, uint8_t cut);

/* What has brought the counter of @kind to 0, when that was seen; until it is forgotten. */
bool tracer_cause(const struct thread *thread, enum core_kind kind, struct core_cause *cause);
void tracer_forget(struct thread *thread);

/* The machine of the models that are made from now on; the reference one before. */
void tracer_machine(const struct machine *machine);

#endif
