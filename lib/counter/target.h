/* SPDX-License-Identifier: MIT */
/* What a tally_target means on this machine now: which tasks, which processors. */
#ifndef LIB_COUNTER_TARGET_H
#define LIB_COUNTER_TARGET_H

#include <stdbool.h>

#include <tally/counter.h>

struct tly_task {
	pid_t pid;  /* 0: the calling thread, -1: all */
	size_t id;  /* index in tally_target.ids of what asked for it */
	bool ended; /* the kernel answered ESRCH */
};

struct tly_axes {
	struct tly_task *tasks; /* ascending, each once */
	size_t nr_tasks;
	int *cpus; /* -1: any */
	size_t nr_cpus;
	bool all_cpus;	 /* every online processor, or any */
	int cgroup;	 /* descriptor of its folder, or -1 */
	bool task_bound; /* of tasks, not system-wide */
};

/* Errors: -EINVAL nothing to measure, -ESRCH no such process, -ENOMEM, those of opening a cgroup.
 */
int tly_axes_resolve(struct tly_axes *axes, const struct tally_target *target,
		     struct tally_error *err);
void tly_axes_release(struct tly_axes *axes);

#endif
