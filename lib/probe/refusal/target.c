// SPDX-License-Identifier: MIT
/* The task, the processor, the cgroup or the group. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "abi/attr.h"
#include "lib/cgroup.h"
#include "lib/probe/refusal/refusal.h"
#include "lib/readfile.h"

/* Which task and which processor */

static bool any_task_anywhere(struct tly_refusal *r)
{
	return r->pid == -1 && r->cpu == -1 && !(r->flags & PERF_FLAG_PID_CGROUP);
}

static bool cgroup_anywhere(struct tly_refusal *r)
{
	return (r->flags & PERF_FLAG_PID_CGROUP) && (r->cpu == -1 || r->pid == -1);
}

static bool processor_is_not_there(struct tly_refusal *r)
{
	char path[64];
	struct stat st;

	if (r->cpu == -1)
		return false;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", r->cpu);
	return r->cpu < -1 || (stat("/sys/devices/system/cpu", &st) == 0 && stat(path, &st) < 0);
}

static bool processor_is_offline(struct tly_refusal *r)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", r->cpu);
	return r->cpu >= 0 && tly_read_setting(path, 1) == 0;
}

static bool flags_are_unknown(struct tly_refusal *r)
{
	unsigned long unknown = r->flags & ~0xful;

	tly_refusal_detail(r, "%#lx", unknown);
	return unknown != 0;
}

static bool task_is_gone(struct tly_refusal *r)
{
	return r->pid != 0 && !(r->flags & PERF_FLAG_PID_CGROUP);
}

/* Groups */

static bool is_member(const struct tly_refusal *r)
{
	return r->group_fd != -1 && !(r->flags & PERF_FLAG_FD_NO_GROUP);
}

static bool cgroup_is_no_cgroup(struct tly_refusal *r)
{
	return (r->flags & PERF_FLAG_PID_CGROUP) && !tly_is_cgroup(r->pid);
}

static bool cgroup_is_elsewhere(struct tly_refusal *r)
{
	return (r->flags & PERF_FLAG_PID_CGROUP) && tly_probe_on_self(r);
}

static bool group_is_no_event(struct tly_refusal *r)
{
	tly_refusal_detail(r, "%d", r->group_fd);
	return r->group_fd != -1;
}

static bool output_has_no_buffer(struct tly_refusal *r)
{
	return (r->flags & PERF_FLAG_FD_OUTPUT) && r->group_fd != -1 && tly_probe_without_group(r);
}

static bool member_is_pinned(struct tly_refusal *r)
{
	bool pinned = tly_refusal_get(r, "pinned");

	tly_refusal_detail(r, "%s", pinned ? "pinned" : "exclusive");
	return is_member(r) && (pinned || tly_refusal_get(r, "exclusive"));
}

static uint64_t of_leader(const struct tly_refusal *r, const char *name)
{
	return tly_attr_get(r->leader, tly_attr_find(name, NULL));
}

static bool differs_from_leader(struct tly_refusal *r, const char *name)
{
	tly_refusal_detail(r, "attr.%s", name);
	return tly_refusal_get(r, name) != of_leader(r, name);
}

static bool member_differs(struct tly_refusal *r)
{
	return is_member(r) && r->leader &&
	       (differs_from_leader(r, "inherit") || differs_from_leader(r, "use_clockid") ||
		(tly_refusal_get(r, "use_clockid") && differs_from_leader(r, "clockid")));
}

static bool group_does_not_take_it(struct tly_refusal *r)
{
	return is_member(r) && tly_probe_without_group(r);
}

const struct tly_cause tly_causes_of_target[] = {
	{-EINVAL, flags_are_unknown, "the flags {detail} do not exist",
	 "pass PERF_FLAG_FD_NO_GROUP, _FD_OUTPUT, _PID_CGROUP and _FD_CLOEXEC only"},
	{-EINVAL, any_task_anywhere, "an event is of one task or of one processor",
	 "give a processor for pid -1, or a task for cpu -1"},
	{-EINVAL, cgroup_anywhere, "a cgroup is counted on one processor at a time",
	 "give the descriptor of the cgroup's folder as pid, and a processor"},
	{-EINVAL, processor_is_not_there, "there is no processor {cpu}",
	 "see those that there are: cat /sys/devices/system/cpu/online"},
	{-ENODEV, processor_is_not_there, "there is no processor {cpu}",
	 "see those that there are: cat /sys/devices/system/cpu/online"},
	{-ENODEV, processor_is_offline, "processor {cpu} is offline",
	 "echo 1 | sudo tee /sys/devices/system/cpu/cpu{cpu}/online"},
	{-ESRCH, task_is_gone, "there is no task {pid}, or it has ended",
	 "see the running ones: ps -eL"},
	{-EBADF, cgroup_is_no_cgroup, "descriptor {pid} is not of a cgroup's folder",
	 "open a folder of a cgroup file system"},
	{-EBADF, group_is_no_event, "descriptor {detail} is not of an event",
	 "pass the descriptor of the group's leader, or -1"},
	{-EINVAL, output_has_no_buffer, "the event to write to has no ring buffer",
	 "map the buffer first, or use PERF_EVENT_IOC_SET_OUTPUT"},
	{-EINVAL, member_is_pinned, "only a group's leader can be {detail}",
	 "put the modifier on the first event of the group"},
	{-EINVAL, member_differs, "{detail} is not the group leader's",
	 "give all events of the group the same inheritance and clock"},
	{-ENOENT, cgroup_is_elsewhere, "the folder is of another hierarchy than perf_event's",
	 "name a cgroup of the perf_event or of the unified hierarchy"},
	{-EINVAL, group_does_not_take_it, "it opens alone but not in this group",
	 "the members of a group share one task and processor and have to fit on the counters "
	 "together: split the group, or mark it weak ({...}:W)"},
	{0, group_does_not_take_it, "it opens alone but not in this group ({error})",
	 "split the group"},
	{0, NULL, NULL, NULL},
};
