// SPDX-License-Identifier: MIT
/* Rights that are missing. When the kernel refused for one, the level of paranoia says which. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/counter/refusal/refusal.h"

static bool namespaces_need_right(struct tly_refusal *r)
{
	return tly_refusal_get(r, "namespaces");
}

static bool processor_needs_right(struct tly_refusal *r)
{
	return tly_refusal_system_wide(r) && tly_refusal_paranoid() > 0;
}

static bool kernel_needs_right(struct tly_refusal *r)
{
	return !tly_refusal_get(r, "exclude_kernel") && tly_refusal_paranoid() > 1;
}

static bool physical_needs_right(struct tly_refusal *r)
{
	return tly_refusal_samples(r, PERF_SAMPLE_PHYS_ADDR) && tly_refusal_paranoid() > 1;
}

static bool raw_needs_right(struct tly_refusal *r)
{
	return r->attr->attr.type == PERF_TYPE_TRACEPOINT && tly_refusal_paranoid() > -1;
}

static bool probe_needs_right(struct tly_refusal *r)
{
	return tly_refusal_find_unit(r) &&
	       (!strcmp(r->detail, "kprobe") || !strcmp(r->detail, "uprobe"));
}

static bool task_is_of_another(struct tly_refusal *r)
{
	struct passwd entry, *owner = NULL;
	char path[32], text[1024];
	struct stat st;

	if (r->pid <= 0 || (r->flags & PERF_FLAG_PID_CGROUP) || !tly_probe_on_self(r))
		return false;
	snprintf(path, sizeof(path), "/proc/%d", r->pid);
	if (stat(path, &st) < 0)
		return false;
	getpwuid_r(st.st_uid, &entry, text, sizeof(text), &owner);
	if (owner)
		tly_refusal_detail(r, "%s", owner->pw_name);
	else
		tly_refusal_detail(r, "user %u", st.st_uid);
	return st.st_uid != geteuid();
}

/* Apart, since the right names root already. */
static bool task_is_of_root(struct tly_refusal *r)
{
	return task_is_of_another(r) && !strcmp(r->detail, "root");
}

static bool task_is_protected(struct tly_refusal *r)
{
	return r->pid > 0 && !(r->flags & PERF_FLAG_PID_CGROUP) && tly_probe_on_self(r);
}

const struct tly_cause tly_causes_of_rights[] = {
	{-EACCES, namespaces_need_right, "PERF_RECORD_NAMESPACES is for privileged users",
	 "{right}"},
	{-EACCES, processor_needs_right,
	 "kernel.perf_event_paranoid is {paranoid}, which keeps all tasks of a processor from users",
	 "sudo sysctl kernel.perf_event_paranoid=0, or {right}"},
	{-EACCES, kernel_needs_right,
	 "kernel.perf_event_paranoid is {paranoid}, which keeps the kernel's side from users",
	 "count user mode only (modifier u, as in cycles:u), or sudo sysctl "
	 "kernel.perf_event_paranoid=1, or {right}"},
	{-EACCES, physical_needs_right, "physical addresses are for privileged users", "{right}"},
	{-EACCES, probe_needs_right, "kprobes and uprobes are for privileged users", "{right}"},
	{-EACCES, task_is_of_root, "task {pid} belongs to root", "{right}"},
	{-EACCES, task_is_of_another, "task {pid} belongs to {detail}",
	 "run as {detail}, or {right}"},
	{-EACCES, task_is_protected,
	 "task {pid} is protected: it changed its user or capabilities, or is not dumpable",
	 "{right}"},
	{-EPERM, raw_needs_right,
	 "kernel.perf_event_paranoid is {paranoid}, which keeps the data of tracepoints from users",
	 "sudo sysctl kernel.perf_event_paranoid=-1, or {right}"},
	{0, NULL, NULL, NULL},
};
