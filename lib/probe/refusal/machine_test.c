// SPDX-License-Identifier: MIT
/*
 * The same refusals on machines that are made up: one row for what was asked, where, what the
 * kernel said, and what people are told.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/probe/refusal/refusal.h"

#define SIZE	 .size = sizeof(struct perf_event_attr)
#define SOFTWARE SIZE, .type = PERF_TYPE_SOFTWARE
#define USER	 .exclude_kernel = 1, .exclude_hv = 1

static const struct perf_event_attr user = {SOFTWARE, USER};
static const struct perf_event_attr kernel = {SOFTWARE};
static const struct perf_event_attr namespaces = {SOFTWARE, USER, .namespaces = 1};
static const struct perf_event_attr watch = {SIZE, .type = PERF_TYPE_BREAKPOINT, .bp_type = 4,
					     .bp_len = 8, .bp_addr = 1ull << 63};
static const struct perf_event_attr hardware = {SIZE, .type = PERF_TYPE_HARDWARE, USER};

static const struct cause {
	int line;
	struct tally_system system;
	const struct perf_event_attr *attr;
	int code;
	enum tally_verdict verdict;
	const char *what, *remedy; /* words in the two sentences */
	bool any_task;		   /* else the caller's own */
} causes[] = {
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .may_gain_perfmon = true},
	 &kernel,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "the kernel's side needs kernel.perf_event_paranoid 1 or less (it is 2), or CAP_PERFMON",
	 ", or sudo sysctl kernel.perf_event_paranoid=1, or run it as root, or sudo setcap "
	 "cap_perfmon+ep /"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 1, .may_gain_perfmon = true},
	 &user,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "all tasks of a processor need kernel.perf_event_paranoid 0 or less (it is 1)",
	 "sudo sysctl kernel.perf_event_paranoid=0, or run it as root",
	 .any_task = true},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .may_gain_perfmon = true},
	 &namespaces,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "PERF_RECORD_NAMESPACES needs CAP_PERFMON, which this process lacks",
	 "run it as root, or sudo setcap cap_perfmon+ep /"},
	{__LINE__,
	 {.has_syscall = true, .cap_perfmon = true, .may_gain_sys_admin = true},
	 &watch,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "a breakpoint on a kernel address needs CAP_SYS_ADMIN, which this process lacks",
	 "run it as root"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "docker"},
	 &kernel,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "perf_event_paranoid",
	 "or on the host: sudo sysctl kernel.perf_event_paranoid=1, or docker run --cap-add "
	 "PERFMON ... (before Docker 23: SYS_ADMIN)"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "docker", .may_gain_perfmon = true},
	 &kernel,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "perf_event_paranoid",
	 "on the host: sudo sysctl kernel.perf_event_paranoid=1, or run it as root, or sudo setcap"},
	{__LINE__,
	 {.has_syscall = true, .container = "podman", .cap_perfmon = true},
	 &watch,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "CAP_SYS_ADMIN",
	 "podman run --cap-add SYS_ADMIN ..."},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "kubernetes"},
	 &namespaces,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "CAP_PERFMON",
	 "capabilities: {add: [PERFMON]}"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "lxc"},
	 &namespaces,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "CAP_PERFMON",
	 "start its container or service with CAP_PERFMON"},
	{__LINE__,
	 {.has_syscall = true,
	  .paranoid = 2,
	  .cap_sys_admin = true,
	  .may_gain_perfmon = true,
	  .user_namespace = true},
	 &namespaces,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "CAP_PERFMON, which holds only inside its user namespace here",
	 "as root outside of the user namespace"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .container = "podman", .user_namespace = true},
	 &namespaces,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "CAP_PERFMON",
	 "sudo podman run --cap-add PERFMON ..."},
	{__LINE__,
	 {.has_syscall = true, .container = "docker", .user_namespace = true},
	 &watch,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "CAP_SYS_ADMIN",
	 "run it as root outside of the user namespace"},
	{__LINE__,
	 {.has_syscall = true, .paranoid = 2, .cap_perfmon = true, .cap_sys_admin = true},
	 &user,
	 -EACCES,
	 TALLY_MAY_NOT,
	 "in spite of CAP_SYS_ADMIN",
	 "lockdown"},

	{__LINE__,
	 {.seccomp = 2, .container = "docker"},
	 &user,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "a seccomp filter answers perf_event_open with Operation not permitted",
	 "docker run --security-opt seccomp=unconfined --cap-add PERFMON ... (before Docker 23: "
	 "SYS_ADMIN)"},
	{__LINE__,
	 {.seccomp = 2, .container = "podman", .user_namespace = true},
	 &user,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "seccomp",
	 "podman run --security-opt seccomp=unconfined ..."},
	{__LINE__,
	 {.seccomp = 2, .container = "systemd-nspawn"},
	 &user,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "seccomp",
	 "systemd-nspawn --system-call-filter=perf_event_open ..."},
	{__LINE__,
	 {.seccomp = 2},
	 &user,
	 -ENOSYS,
	 TALLY_MAY_NOT,
	 "a seccomp filter answers perf_event_open with Function not implemented",
	 "SystemCallFilter=perf_event_open"},
	{__LINE__,
	 {0},
	 &user,
	 -ENOSYS,
	 TALLY_CANNOT,
	 "this kernel or sandbox has no perf_event_open",
	 "CONFIG_PERF_EVENTS"},
	{__LINE__,
	 {0},
	 &user,
	 -ENODEV,
	 TALLY_CANNOT,
	 "this sandbox has no perf_event_open",
	 "outside of gVisor"},
	{__LINE__,
	 {.container = "kubernetes"},
	 &user,
	 -EPERM,
	 TALLY_MAY_NOT,
	 "in front of the kernel",
	 "seccompProfile"},

	{__LINE__,
	 {.has_syscall = true},
	 &user,
	 -EBUSY,
	 TALLY_MAY_NOT,
	 "another event has the unit",
	 "lsof"},
	{__LINE__,
	 {.has_syscall = true},
	 &user,
	 -EMFILE,
	 TALLY_MAY_NOT,
	 "descriptors of this process",
	 "limit"},
};

static enum tally_verdict explain(const struct cause *cause, struct tally_error *err)
{
	struct tly_attr_copy copy;
	struct tly_refusal refusal = {
		.code = cause->code,
		.attr = &copy,
		.pid = cause->any_task ? -1 : 0,
		.cpu = cause->any_task ? 0 : -1,
		.group_fd = -1,
		.system = &cause->system,
	};

	assert_true(tly_attr_copy(&copy, cause->attr));
	return tly_refusal_cause(&refusal, err);
}

static void check(const struct cause *cause)
{
	struct tally_error err;
	enum tally_verdict verdict = explain(cause, &err);

	if (verdict != cause->verdict || err.code != cause->code ||
	    !strstr(err.what, cause->what) || !strstr(err.remedy, cause->remedy))
		fail_msg("line %d: verdict %d, code %d\n%s\n%s", cause->line, verdict, err.code,
			 err.what, err.remedy);
}

static void test_causes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		check(&causes[i]);
}

/* The row asks this machine whether there is a PMU, the texts the one that is made up. */
static void test_no_pmu(void **state)
{
	static const struct {
		const char *virtualization, *what, *remedy;
	} machines[] = {
		{"kvm", "this virtual machine (kvm) has no hardware PMU", "-cpu host,pmu=on"},
		{"bhyve", "this virtual machine (bhyve) has no hardware PMU", "bare-metal"},
		{NULL, "this machine has no hardware PMU", "dmesg"},
	};

	(void)state;
	if (tly_probe_pmu()) {
		print_message("# skipped: this machine has a PMU\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		check(&(struct cause){.line = __LINE__,
				      .system = {.has_syscall = true,
						 .virtualization = machines[i].virtualization},
				      .attr = &hardware,
				      .code = -ENOENT,
				      .verdict = TALLY_CANNOT,
				      .what = machines[i].what,
				      .remedy = machines[i].remedy});
}

/* Equal causes have equal texts, whichever event met them, so that a report can show each once. */
static void test_texts_are_of_the_cause(void **state)
{
	const struct tally_system filtered = {.seccomp = 2};
	const struct cause first = {.system = filtered, .attr = &user, .code = -EPERM};
	const struct cause other = {.system = filtered, .attr = &watch, .code = -EPERM};
	struct tally_error a, b;

	(void)state;
	explain(&first, &a);
	explain(&other, &b);
	assert_string_equal(a.what, b.what);
	assert_string_equal(a.remedy, b.remedy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_no_pmu),
		cmocka_unit_test(test_texts_are_of_the_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
