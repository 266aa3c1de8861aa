// SPDX-License-Identifier: MIT
/* The call as such is refused, or the machine has run out of something. */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "lib/counter/refusal/refusal.h"

static bool call_is_missing(struct tly_refusal *r)
{
	(void)r;
	return tly_probe_call() == -ENOSYS;
}

static bool seccomp_refuses(struct tly_refusal *r)
{
	return prctl(PR_GET_SECCOMP) > 0 && tly_probe_call() == r->code;
}

static bool paranoid_refuses_all(struct tly_refusal *r)
{
	return tly_refusal_paranoid() > 2 && tly_probe_call() == r->code;
}

static bool something_refuses_all(struct tly_refusal *r)
{
	return tly_probe_call() == r->code;
}

static bool too_many_files(struct tly_refusal *r)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return false;
	tly_refusal_detail(r, "%llu", (unsigned long long)limit.rlim_cur);
	return true;
}

const struct tly_cause tly_causes_of_call[] = {
	{-ENOSYS, call_is_missing, "this kernel has no perf_event_open(2)",
	 "it was built without CONFIG_PERF_EVENTS, or this is a sandbox that does not have the "
	 "call: run outside of it"},
	{-EPERM, seccomp_refuses, "a seccomp filter refuses perf_event_open(2)",
	 "containers filter it by default: docker run --security-opt seccomp=unconfined, or a "
	 "profile that allows perf_event_open"},
	{-EACCES, seccomp_refuses, "a seccomp filter refuses perf_event_open(2)",
	 "containers filter it by default: docker run --security-opt seccomp=unconfined, or a "
	 "profile that allows perf_event_open"},
	{-EACCES, paranoid_refuses_all,
	 "kernel.perf_event_paranoid is {paranoid}, which forbids users every event",
	 "sudo sysctl kernel.perf_event_paranoid=2 (1 to see the kernel's side too), or run as "
	 "root"},
	{-EACCES, something_refuses_all, "perf_event_open(2) is forbidden here",
	 "a security module such as SELinux decides so: see the audit log (ausearch -m avc)"},
	{-EPERM, something_refuses_all, "perf_event_open(2) is forbidden here",
	 "a sandbox or security module decides so: allow perf_event_open in its profile"},
	{-EMFILE, too_many_files, "all {detail} descriptors of this process are in use",
	 "raise the limit: ulimit -n $(ulimit -H -n)"},
	{-ENFILE, tly_refusal_always, "the system has no descriptors left",
	 "raise the limit: sudo sysctl fs.file-max=1000000"},
	{-ENOMEM, tly_refusal_always, "the kernel has no memory left for it",
	 "measure fewer events"},
	{-EBUSY, tly_refusal_always, "another event has the unit for itself",
	 "end the other measurement; see who holds events: sudo lsof | grep perf_event"},
	{-EINTR, tly_refusal_always, "its uprobe is in use by ftrace, or a signal came in between",
	 "remove the probe from tracefs (uprobe_events), or try again"},
	{-EFAULT, tly_refusal_always, "the attr points to memory that is not there",
	 "check the pointers in it: the function or file name of a probe"},
	{0, NULL, NULL, NULL},
};
