// SPDX-License-Identifier: MIT
/*
 * Rights that are missing. What the kernel lets everybody do depends on the level of paranoia; what
 * is left takes CAP_PERFMON, and in places the older CAP_SYS_ADMIN. Probes come before the levels:
 * no level opens them, though the level forbids the kernel's side of a probe's event too.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/attr.h"
#include "lib/probe/refusal/refusal.h"

static bool lacks_perfmon(struct tly_refusal *r)
{
	const struct tally_system *system = tly_refusal_system(r);

	return system->user_namespace || !(system->cap_perfmon || system->cap_sys_admin);
}

static bool lacks_admin(struct tly_refusal *r)
{
	const struct tally_system *system = tly_refusal_system(r);

	return system->user_namespace || !system->cap_sys_admin;
}

static bool is_above_level(struct tly_refusal *r, int level)
{
	return lacks_perfmon(r) && tly_refusal_system(r)->paranoid > level;
}

/*
 * Distributions that know levels above 2 refuse everything there, whatever is to be measured, and
 * ask for the larger capability.
 */
static bool everything_needs_right(struct tly_refusal *r)
{
	return lacks_admin(r) && tly_refusal_system(r)->paranoid > 2 && tly_probe_call() == r->code;
}

static bool namespaces_need_right(struct tly_refusal *r)
{
	return tly_refusal_get(r, "namespaces") && lacks_perfmon(r);
}

static bool is_of_unit(struct tly_refusal *r, const char *unit)
{
	return tly_refusal_find_unit(r) && !strcmp(r->detail, unit);
}

static bool kprobe_needs_right(struct tly_refusal *r)
{
	return is_of_unit(r, "kprobe") && lacks_perfmon(r);
}

static bool uprobe_needs_right(struct tly_refusal *r)
{
	return is_of_unit(r, "uprobe") && lacks_admin(r);
}

static bool kernel_breakpoint_needs_right(struct tly_refusal *r)
{
	return tly_refusal_kernel_breakpoint(r) && lacks_admin(r);
}

static bool processor_needs_right(struct tly_refusal *r)
{
	return tly_refusal_system_wide(r) && is_above_level(r, 0);
}

static bool kernel_needs_right(struct tly_refusal *r)
{
	return !tly_refusal_get(r, "exclude_kernel") && is_above_level(r, 1);
}

static bool kernels_own_needs_right(struct tly_refusal *r)
{
	return tly_attr_is_kernels_own(&r->attr->attr) && kernel_needs_right(r);
}

static bool physical_needs_right(struct tly_refusal *r)
{
	return tly_refusal_samples(r, PERF_SAMPLE_PHYS_ADDR) && is_above_level(r, 1);
}

static bool raw_needs_right(struct tly_refusal *r)
{
	return r->attr->attr.type == PERF_TYPE_TRACEPOINT && is_above_level(r, -1);
}

static bool is_of_task(const struct tly_refusal *r)
{
	return r->pid > 0 && !(r->flags & PERF_FLAG_PID_CGROUP);
}

static bool task_is_of_another(struct tly_refusal *r)
{
	struct passwd entry, *owner = NULL;
	char path[32], text[1024];
	struct stat st;

	if (!is_of_task(r) || !lacks_perfmon(r) || !tly_probe_on_self(r))
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
	return is_of_task(r) && lacks_perfmon(r) && tly_probe_on_self(r);
}

const struct tly_cause tly_causes_of_rights[] = {
	{-EACCES, everything_needs_right,
	 "every event needs kernel.perf_event_paranoid 2 or less (it is {paranoid}), or "
	 "CAP_SYS_ADMIN",
	 "{sysctl}=2, or {admin right}"},
	{-EACCES, namespaces_need_right, "PERF_RECORD_NAMESPACES needs {perfmon}",
	 "{perfmon right}"},
	{-EACCES, kprobe_needs_right, "a kprobe needs {perfmon}", "{perfmon right}"},
	{-EACCES, uprobe_needs_right, "a uprobe needs {admin}", "{admin right}"},
	{-EPERM, kernel_breakpoint_needs_right, "a breakpoint on a kernel address needs {admin}",
	 "{admin right}"},
	{-EACCES, processor_needs_right,
	 "all tasks of a processor need kernel.perf_event_paranoid 0 or less (it is {paranoid}), "
	 "or CAP_PERFMON",
	 "{sysctl}=0, or {perfmon right}"},
	{-EACCES, kernels_own_needs_right,
	 "it happens in the kernel, which needs kernel.perf_event_paranoid 1 or less (it is "
	 "{paranoid}), or CAP_PERFMON",
	 "{sysctl}=1, or {perfmon right}"},
	{-EACCES, kernel_needs_right,
	 "the kernel's side needs kernel.perf_event_paranoid 1 or less (it is {paranoid}), or "
	 "CAP_PERFMON",
	 "measure user code only (modifier u, as in cycles:u), or {sysctl}=1, or "
	 "{perfmon right}"},
	{-EACCES, physical_needs_right,
	 "physical addresses need kernel.perf_event_paranoid 1 or less (it is {paranoid}), or "
	 "CAP_PERFMON",
	 "{sysctl}=1, or {perfmon right}"},
	{-EACCES, task_is_of_root, "task {pid} belongs to root: measuring it needs {perfmon}",
	 "{perfmon right}"},
	{-EACCES, task_is_of_another,
	 "task {pid} belongs to {detail}: measuring it needs {perfmon}",
	 "run as {detail}, or {perfmon right}"},
	{-EACCES, task_is_protected,
	 "task {pid} is protected: it changed its user or capabilities, or is not dumpable",
	 "{perfmon right}"},
	{-EPERM, raw_needs_right,
	 "the data of tracepoints needs kernel.perf_event_paranoid -1 (it is {paranoid}), or "
	 "CAP_PERFMON",
	 "{sysctl}=-1, or {perfmon right}"},
	{0, NULL, NULL, NULL},
};
