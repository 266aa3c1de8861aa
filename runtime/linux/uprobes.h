/* SPDX-License-Identifier: MIT */
/*
 * Probes of the run's own, where this process has them: uprobes.c. Those that the kernel puts into
 * code are not met, see probes.c.
 */
#ifndef RUNTIME_LINUX_UPROBES_H
#define RUNTIME_LINUX_UPROBES_H

#include <stdbool.h>
#include <stdint.h>

struct core_probe;
struct thread;

/* Has code stop at the probes of @thread, wherever they are mapped. False: there are too many. */
bool uprobes_follow(struct thread *thread);

/* With the translator locked: from @start to @end there is code that was not there. */
void uprobes_mapped(uint64_t start, uint64_t end);

/* Likewise, but it was mapped before, as whatever. */
void uprobes_became_code(uint64_t start, uint64_t end);

/* The program is about to go on at @pc, where it stops: tells whoever has a probe there, or in the
 * function that has just returned to it. Whether anybody has. */
bool uprobes_meet(struct thread *thread, uint64_t pc);

/* Where @probe is mapped as code in this process; 0: nowhere. */
uint64_t uprobes_place(const struct core_probe *probe);

/* With the translator locked: has code stop at @at, where a function returns to. False: stops have
 * become too many, and each instruction is to be looked at. */
bool uprobes_stop_at_return(uint64_t at);

#endif
