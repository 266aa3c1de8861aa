// SPDX-License-Identifier: MIT
/* The call as such is refused, or the machine has run out of something. */
#include <errno.h>
#include <sys/resource.h>

#include "abi/fatal.h"
#include "lib/probe/refusal/refusal.h"

/*
 * What answers to flags that no kernel takes by anything but EINVAL is not the kernel, or not one
 * with this call.
 */
static bool stopped_before(struct tly_refusal *r)
{
	switch (r->code) {
	case -ENOSYS:
	case -ENODEV: /* gVisor */
	case -EPERM:
	case -EACCES:
		return !tly_refusal_system(r)->has_syscall;
	}
	return false;
}

static bool filter_refuses(struct tly_refusal *r)
{
	return stopped_before(r) && tly_refusal_system(r)->seccomp > 0;
}

static bool filter_ends(struct tly_refusal *r)
{
	return filter_refuses(r) && fatal_open();
}

/* A security module, asked before anything is looked at (capable or not). */
static bool everything_is_refused(struct tly_refusal *r)
{
	return tly_refusal_system(r)->paranoid <= 2 && tly_probe_call() == r->code;
}

static bool use_up_limit(struct tly_refusal *r, rlim_t *left)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return false;
	tly_refusal_detail(r, "%llu", (unsigned long long)limit.rlim_cur);
	*left = limit.rlim_max - limit.rlim_cur;
	return true;
}

static bool soft_limit_is_reached(struct tly_refusal *r)
{
	rlim_t left;

	return use_up_limit(r, &left) && left;
}

static bool hard_limit_is_reached(struct tly_refusal *r)
{
	rlim_t left;

	return use_up_limit(r, &left);
}

#define ELSEWHERE                                                                                  \
	"run on a Linux kernel built with CONFIG_PERF_EVENTS=y, outside of gVisor and the like"

const struct tly_cause tly_causes_of_call[] = {
	{0, filter_ends, "a seccomp filter ends who calls perf_event_open", "{filter}"},
	{0, filter_refuses, "a seccomp filter answers perf_event_open with {error}", "{filter}"},
	{-ENOSYS, stopped_before, "this kernel or sandbox has no perf_event_open", ELSEWHERE},
	{-ENODEV, stopped_before, "this sandbox has no perf_event_open", ELSEWHERE},
	{0, stopped_before, "something in front of the kernel answers perf_event_open with {error}",
	 "{filter}"},
	{-EACCES, everything_is_refused, "every event is refused: a security module or a lockdown",
	 TLY_SEE_LOCKDOWN},
	{-EPERM, everything_is_refused, "every event is refused: a security module or a lockdown",
	 TLY_SEE_LOCKDOWN},
	{-EMFILE, soft_limit_is_reached, "all {detail} descriptors of this process are in use",
	 "raise the limit: ulimit -n $(ulimit -H -n)"},
	{-EMFILE, hard_limit_is_reached, "all {detail} descriptors of this process are in use",
	 "measure fewer events, or raise the limit: sudo prlimit --pid $$ --nofile=1000000"},
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
