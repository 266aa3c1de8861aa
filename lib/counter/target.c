// SPDX-License-Identifier: MIT
#include "lib/counter/target.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/counter/cpulist.h"
#include "lib/error.h"

static int add_task(struct tly_axes *axes, pid_t pid, size_t id)
{
	struct tly_task *grown;

	/* Powers of two, without a capacity to keep. */
	if (!(axes->nr_tasks & (axes->nr_tasks - 1))) {
		size_t capacity = axes->nr_tasks ? 2 * axes->nr_tasks : 1;

		grown = reallocarray(axes->tasks, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		axes->tasks = grown;
	}
	axes->tasks[axes->nr_tasks++] = (struct tly_task){.pid = pid, .id = id};
	return 0;
}

static int no_process(pid_t pid, struct tally_error *err)
{
	if (access("/proc/self", F_OK)) {
		tly_error(err, -ENOENT,
			  "/proc is not mounted, and nothing else tells the threads of process %d",
			  pid);
		return tly_error_remedy(err, "mount it: mount -t proc proc /proc");
	}
	/* proc(5) mounted with hidepid shows no process of others. */
	if (kill(pid, 0) == 0 || errno == EPERM) {
		tly_error(err, -EACCES, "/proc does not show process %d, which is there", pid);
		return tly_error_remedy(err, "run as root, or mount /proc without hidepid");
	}
	tly_error(err, -ESRCH, "there is no process %d", pid);
	return tly_error_remedy(err, "see the running ones: ps -e");
}

/* Threads that end while they are listed are found out when they are opened. */
static int add_threads(struct tly_axes *axes, pid_t pid, size_t id, struct tally_error *err)
{
	struct dirent *entry;
	char path[64];
	int code = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir) {
		code = -errno;
		return code == -ENOENT
			       ? no_process(pid, err)
			       : tly_error(err, code, "cannot read %s: %s", path, strerror(-code));
	}
	while (!code && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			code = add_task(axes, (pid_t)strtol(entry->d_name, NULL, 10), id);
	closedir(dir);
	return code < 0 ? tly_error(err, code, "out of memory") : 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct tly_task *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* A task named twice, or by two processes' ids, is counted once. */
static void sort_tasks(struct tly_axes *axes)
{
	size_t kept = 0;

	if (axes->nr_tasks)
		qsort(axes->tasks, axes->nr_tasks, sizeof(*axes->tasks), by_pid);
	for (size_t i = 0; i < axes->nr_tasks; i++)
		if (!kept || axes->tasks[kept - 1].pid != axes->tasks[i].pid)
			axes->tasks[kept++] = axes->tasks[i];
	axes->nr_tasks = kept;
}

static int resolve_tasks(struct tly_axes *axes, const struct tally_target *target,
			 struct tally_error *err)
{
	int code = 0;

	switch (target->kind) {
	case TALLY_TARGET_SELF:
		code = add_task(axes, 0, 0);
		break;
	case TALLY_TARGET_SYSTEM:
		code = add_task(axes, -1, 0);
		break;
	case TALLY_TARGET_CGROUP:
		axes->cgroup = tly_cgroup_open(target->cgroup ? target->cgroup : "", err);
		if (axes->cgroup < 0)
			return axes->cgroup;
		code = add_task(axes, -1, 0);
		break;
	case TALLY_TARGET_THREADS:
	case TALLY_TARGET_PROCESS:
		for (size_t i = 0; i < target->nr_ids && !code; i++) {
			if (target->ids[i] <= 0) {
				tly_error(err, -EINVAL, "%d is no process id", target->ids[i]);
				return tly_error_remedy(err, "process ids are above 0");
			}
			if (target->kind == TALLY_TARGET_PROCESS) {
				code = add_threads(axes, target->ids[i], i, err);
				if (code < 0)
					return code;
			} else {
				code = add_task(axes, target->ids[i], i);
			}
		}
		sort_tasks(axes);
		break;
	default:
		return tly_error(err, -EINVAL, "unknown kind of target %d", target->kind);
	}
	if (code < 0)
		return tly_error(err, code, "out of memory");
	if (!axes->nr_tasks) {
		tly_error(err, -EINVAL, "no process was given to measure");
		return tly_error_remedy(err, "give at least one process or thread id");
	}
	return 0;
}

static int resolve_cpus(struct tly_axes *axes, const struct tally_target *target)
{
	if (!target->nr_cpus && !axes->task_bound) {
		axes->all_cpus = true;
		return tly_cpulist_online(&axes->cpus, &axes->nr_cpus);
	}
	axes->nr_cpus = target->nr_cpus ? target->nr_cpus : 1;
	axes->cpus = calloc(axes->nr_cpus, sizeof(*axes->cpus));
	if (!axes->cpus)
		return -ENOMEM;
	if (!target->nr_cpus) {
		axes->cpus[0] = -1;
		axes->all_cpus = true;
		return 0;
	}
	axes->nr_cpus = 0;
	for (size_t i = 0; i < target->nr_cpus; i++)
		if (!tly_cpulist_has(axes->cpus, axes->nr_cpus, target->cpus[i]))
			axes->cpus[axes->nr_cpus++] = target->cpus[i];
	return 0;
}

/*
 * The processors that were named have to be online: one that is not is the whole target's mistake,
 * whatever the events. They may be all that are.
 */
static int compare_online(struct tly_axes *axes, struct tally_error *err)
{
	int *online;
	size_t nr;
	int code = tly_cpulist_online(&online, &nr);

	if (code < 0)
		return tly_error(err, code, "out of memory");
	axes->all_cpus = true;
	for (size_t i = 0; i < nr && axes->all_cpus; i++)
		axes->all_cpus = tly_cpulist_has(axes->cpus, axes->nr_cpus, online[i]);
	for (size_t i = 0; i < axes->nr_cpus && code == 0; i++) {
		if (tly_cpulist_has(online, nr, axes->cpus[i]))
			continue;
		code = tly_error(err, -ENODEV, "there is no processor %d online", axes->cpus[i]);
		tly_error_remedy(err, "see those that there are: "
				      "cat /sys/devices/system/cpu/online");
	}
	free(online);
	return code;
}

int tly_axes_resolve(struct tly_axes *axes, const struct tally_target *target,
		     struct tally_error *err)
{
	int code;

	memset(axes, 0, sizeof(*axes));
	axes->cgroup = -1;
	axes->task_bound = target->kind == TALLY_TARGET_SELF ||
			   target->kind == TALLY_TARGET_THREADS ||
			   target->kind == TALLY_TARGET_PROCESS;
	code = resolve_tasks(axes, target, err);
	if (code < 0)
		goto fail;
	code = resolve_cpus(axes, target);
	if (code < 0) {
		tly_error(err, code, "out of memory");
		goto fail;
	}
	if (!axes->all_cpus) {
		code = compare_online(axes, err);
		if (code < 0)
			goto fail;
	}
	return 0;
fail:
	tly_axes_release(axes);
	return code;
}

void tly_axes_release(struct tly_axes *axes)
{
	free(axes->tasks);
	free(axes->cpus);
	if (axes->cgroup >= 0)
		close(axes->cgroup);
	memset(axes, 0, sizeof(*axes));
	axes->cgroup = -1;
}
