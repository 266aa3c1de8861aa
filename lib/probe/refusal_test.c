// SPDX-License-Identifier: MIT
/* One row a cause: the machine, what was asked, what the kernel said, and what people are told. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/probe/refusal.h"

static const struct tly_need own = {.paranoid = 2, .what = "user code"};
static const struct tly_need kernel = {.paranoid = 1, .what = "kernel code"};
static const struct tly_need probe = {.paranoid = TLY_PRIVILEGED, .what = "a kprobe"};
static const struct tly_need uprobe = {
	.paranoid = TLY_PRIVILEGED, .sys_admin = true, .what = "a uprobe"};
static const struct tly_need hardware = {.paranoid = 2, .pmu = true, .what = "user code"};

static const struct cause {
	int line;
	struct tally_system system;
	const struct tly_need *need;
	int code;
	enum tally_verdict verdict;
	const char *what, *remedy; /* words in the two sentences */
} causes[] = {
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2},
	 &kernel,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "kernel code needs perf_event_paranoid 1 or less (it is 2)",
	 "sudo sysctl kernel.perf_event_paranoid=1, or sudo setcap cap_perfmon+ep /"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 4},
	 &own,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "user code needs perf_event_paranoid 2 or less (it is 4), or CAP_SYS_ADMIN",
	 "sudo sysctl kernel.perf_event_paranoid=2, or run it as root"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 3, .cap_perfmon = true},
	 &own,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "user code needs perf_event_paranoid 2 or less (it is 3), or CAP_SYS_ADMIN",
	 "sudo sysctl kernel.perf_event_paranoid=2, or run it as root"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = -1, .cap_perfmon = true},
	 &uprobe,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "a uprobe needs CAP_SYS_ADMIN, which this process lacks",
	 "run it as root"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "docker", .cap_perfmon = true},
	 &uprobe,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "a uprobe needs CAP_SYS_ADMIN, which this process lacks",
	 "docker run --cap-add SYS_ADMIN ..."},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2},
	 &probe,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "a kprobe needs CAP_PERFMON, which this process lacks",
	 "sudo setcap cap_perfmon+ep /"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "docker"},
	 &kernel,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "perf_event_paranoid",
	 "docker run --cap-add PERFMON ..., or on the host: sudo sysctl kernel.perf_event_paranoid=1"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "docker", .may_gain_perfmon = true},
	 &kernel,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "perf_event_paranoid",
	 "on the host: sudo sysctl kernel.perf_event_paranoid=1, or sudo setcap"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "podman"},
	 &probe,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "CAP_PERFMON",
	 "podman run --cap-add PERFMON ..."},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "kubernetes"},
	 &probe,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "CAP_PERFMON",
	 "capabilities: {add: [PERFMON]}"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .cap_sys_admin = true, .user_namespace = true},
	 &probe,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "CAP_PERFMON, which holds only inside its user namespace",
	 "as root outside of the user namespace"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .cap_perfmon = true},
	 &own,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "in spite of CAP_PERFMON",
	 "lockdown"},

	{__LINE__,
	 {.seccomp = 2, .syscall_error = -EPERM, .container = "docker"},
	 &own,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "a seccomp filter answers perf_event_open with Operation not permitted",
	 "docker run --security-opt seccomp=unconfined --cap-add PERFMON"},
	{__LINE__,
	 {.seccomp = 2, .syscall_error = -ENOSYS},
	 &own,
	 -ENOSYS,
	 TALLY_MAY_NOT,
	 "a seccomp filter answers perf_event_open with Function not implemented",
	 "SystemCallFilter=perf_event_open"},
	{__LINE__,
	 {.syscall_error = -ENOSYS},
	 &own,
	 -ENOSYS,
	 TALLY_CANNOT,
	 "this kernel or sandbox has no perf_event_open",
	 "CONFIG_PERF_EVENTS"},
	{__LINE__,
	 {.syscall_error = -EPERM, .container = "kubernetes"},
	 &own,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "in front of the kernel",
	 "seccompProfile"},

	{__LINE__,
	 {.has_syscall = true, .virtualization = "kvm"},
	 &hardware,
	 -ENOENT,
	 TALLY_CANNOT,
	 "this virtual machine (kvm) has no hardware PMU",
	 "-cpu host,pmu=on"},
	{__LINE__,
	 {.has_syscall = true, .virtualization = "bhyve"},
	 &hardware,
	 -ENODEV,
	 TALLY_CANNOT,
	 "this virtual machine (bhyve) has no hardware PMU",
	 "bare-metal"},
	{__LINE__,
	 {.has_syscall = true},
	 &hardware,
	 -EOPNOTSUPP,
	 TALLY_CANNOT,
	 "the kernel shows no hardware PMU",
	 "dmesg"},
	{__LINE__,
	 {.has_syscall = true, .has_pmu = true},
	 &hardware,
	 -EOPNOTSUPP,
	 TALLY_CANNOT,
	 "this processor's PMU does not offer it (Operation not supported)",
	 ""},
	{__LINE__,
	 {.has_syscall = true, .has_pmu = true},
	 &hardware,
	 -EBUSY,
	 TALLY_MAY_NOT,
	 "every hardware counter is taken",
	 "kernel.nmi_watchdog=0"},
	{__LINE__,
	 {.has_syscall = true},
	 &own,
	 -EMFILE,
	 TALLY_MAY_NOT,
	 "no file descriptor is left",
	 "ulimit -n"},
	{__LINE__,
	 {.has_syscall = true},
	 &own,
	 -EINVAL,
	 TALLY_CANNOT,
	 "this kernel does not offer it (Invalid argument)",
	 ""},
};

static void test_causes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		const struct cause *cause = &causes[i];
		struct tally_error err;
		enum tally_verdict verdict =
			tly_refusal(&cause->system, cause->need, cause->code, &err);

		if (verdict != cause->verdict || err.code != cause->code ||
		    !strstr(err.what, cause->what) || !strstr(err.remedy, cause->remedy) ||
		    (!cause->remedy[0] && err.remedy[0]))
			fail_msg("line %d: verdict %d, code %d\n%s\n%s", cause->line, verdict,
				 err.code, err.what, err.remedy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
