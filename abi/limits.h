/* SPDX-License-Identifier: MIT */
/*
 * Each process of a run has more memory mapped than its program has: the arena and the code caches,
 * most of it never touched. RLIMIT_AS and RLIMIT_DATA count it all the same. So within a run the
 * kernel's limits are higher than those of the program, by as much:
 *
 *	kernel's limit = program's limit + LIMITS_...
 */
#ifndef ABI_LIMITS_H
#define ABI_LIMITS_H

#include <stdint.h>

#include "abi/arena.h"

/* Two caches of code and what belongs to them, stacks and the image of tally-rt: private memory. */
#define LIMITS_DATA (448UL << 20)
/*
 * Who has events has all of the arena mapped, besides the threads. Who has none has as much address
 * space reserved instead, so that a limit means the same before and after. Where the limit from
 * outside of the run cannot be raised by so much, nothing is reserved.
 */
#define LIMITS_LEAST_SPACE (LIMITS_DATA + ARENA_THREADS_SIZE + ARENA_EVENTS_SIZE)
#define LIMITS_SPACE	   (LIMITS_DATA + ARENA_THREADS_SIZE + ARENA_SIZE)

#define LIMITS_NONE UINT64_MAX /* RLIM_INFINITY */

/* What people are told where fork(2) has failed with EAGAIN. */
#define LIMITS_RAISE_PROCESSES                                                                     \
	"raise the process limit: ulimit -u, or pids.max of the cgroup (docker run --pids-limit, " \
	"podman run --pids-limit, TasksMax= of a service)"

static inline uint64_t limits_to_kernel(uint64_t program, uint64_t ours)
{
	return program < LIMITS_NONE - ours ? program + ours : LIMITS_NONE;
}

static inline uint64_t limits_to_program(uint64_t kernel, uint64_t ours)
{
	if (kernel == LIMITS_NONE)
		return kernel;
	return kernel > ours ? kernel - ours : 0;
}

#endif
