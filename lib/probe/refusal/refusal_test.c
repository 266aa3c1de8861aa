// SPDX-License-Identifier: MIT
/*
 * One row for each cause of a refusal that a machine without a PMU can show: the call that provokes
 * it, the errno that it must keep, and words that the sentence and the remedy must have. Each runs
 * in a child of its own, which may give up rights first.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/attr.h>

#include "lib/probe/system.h"

#define NOBODY 65534
#define PARENT -1000
#define USER   .exclude_kernel = 1, .exclude_hv = 1

enum group { NO_GROUP, OF_CLOCK, OF_INHERITING_CLOCK, OF_A_MEMBER, OF_STDOUT };
enum needs { NOTHING, ROOT = 1, NO_PMU = 2, PARANOID_2 = 4 };

struct row {
	const char *name;
	struct perf_event_attr attr;
	int cpu; /* what to add to -1 */
	pid_t pid;
	unsigned long flags;
	enum group group;
	unsigned int needs;
	void (*prepare)(void); /* in the child, before the call */
	int code;
	const char *what, *remedy;
};

static int open_plain(struct perf_event_attr *attr, int group)
{
	int fd = syscall(SYS_perf_event_open, attr, 0, -1, group, 0);

	if (fd < 0)
		_exit(99);
	return fd;
}

static void be_nobody(void)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		_exit(99);
}

static void set_capabilities(uint64_t capabilities)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {
		{(uint32_t)capabilities, (uint32_t)capabilities, 0},
		{capabilities >> 32, capabilities >> 32, 0},
	};

	if (syscall(SYS_capset, &header, data) < 0)
		_exit(99);
}

/* As root of a container. */
static void lose_capabilities(void)
{
	if (prctl(PR_CAPBSET_DROP, CAP_PERFMON, 0, 0, 0) < 0)
		_exit(99);
	set_capabilities(0);
}

static void be_nobody_with_perfmon(void)
{
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		_exit(99);
	be_nobody();
	set_capabilities(UINT64_C(1) << CAP_PERFMON);
}

static void filter_calls(int code)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(99);
}

static void filter_with_eperm(void)
{
	filter_calls(EPERM);
}

static void filter_with_enosys(void)
{
	filter_calls(ENOSYS);
}

static void use_up(rlim_t soft, rlim_t hard)
{
	const struct rlimit limit = {soft, hard};

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		_exit(99);
	while (dup(0) >= 0)
		;
}

static void use_up_descriptors(void)
{
	use_up(32, 32);
}

static void use_up_soft_limit(void)
{
	use_up(32, 33);
}

static void use_up_breakpoints(void)
{
	static uint64_t watched[8];
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
				       .size = sizeof(attr),
				       .bp_type = 2,
				       .bp_len = 8,
				       USER};

	for (int i = 0; i < 8; i++) {
		attr.bp_addr = (uintptr_t)&watched[i];
		syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	}
}

#define SW(c)	   .type = PERF_TYPE_SOFTWARE, .size = sizeof(struct perf_event_attr), .config = c
#define FAULTS	   SW(PERF_COUNT_SW_PAGE_FAULTS)
#define SAMPLED(t) FAULTS, .sample_period = 1000, .sample_type = (t)
#define WATCH(kind, address, length)                                                               \
	.type = PERF_TYPE_BREAKPOINT, .size = sizeof(struct perf_event_attr), .bp_type = kind,     \
	.bp_addr = address, .bp_len = length

#define KERNEL_ADDRESS 0xffffffff81000000ull

/* Fields behind the header's struct, and sizes that have none. */
static struct {
	struct perf_event_attr attr;
	uint8_t tail[512 - sizeof(struct perf_event_attr)];
} future = {{FAULTS, USER}, {[511 - sizeof(struct perf_event_attr)] = 1}};

static const struct row rows[] = {
	{"hardware event without a PMU",
	 {.type = PERF_TYPE_HARDWARE, .size = sizeof(struct perf_event_attr), USER},
	 .needs = NO_PMU,
	 .code = -ENOENT,
	 .what = "cannot open cycles:u: this ",
	 .remedy = "task-clock"},
	{"cache event without a PMU",
	 {.type = PERF_TYPE_HW_CACHE, .size = sizeof(struct perf_event_attr), USER},
	 .needs = NO_PMU,
	 .code = -ENOENT,
	 .what = "no hardware PMU",
	 .remedy = "choose a software event"},
	{"raw event without a PMU",
	 {.type = PERF_TYPE_RAW, .size = sizeof(struct perf_event_attr), .config = 0xc0, USER},
	 .needs = NO_PMU,
	 .code = -ENOENT,
	 .what = "no hardware PMU",
	 .remedy = "choose a software event"},
	{"unknown software event",
	 {SW(12345), USER},
	 .code = -ENOENT,
	 .what = "no such software event",
	 .remedy = "perf_event.h"},
	{"unknown tracepoint",
	 {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(struct perf_event_attr), .config = 99999},
	 .needs = ROOT,
	 .code = -EINVAL,
	 .what = "no tracepoint has the id 99999",
	 .remedy = "id file"},
	{"unknown type",
	 {.type = 123456, .size = sizeof(struct perf_event_attr), USER},
	 .code = -ENOENT,
	 .what = "no unit has the type 123456",
	 .remedy = "/sys/bus/event_source"},

	{"size too small",
	 {.type = PERF_TYPE_SOFTWARE, .size = 12},
	 .code = -E2BIG,
	 .what = "attr.size is 12",
	 .remedy = "sizeof"},
	{"size too large",
	 {.type = PERF_TYPE_SOFTWARE, .size = 4097},
	 .code = -E2BIG,
	 .what = "attr.size is 4097",
	 .remedy = "4096"},

	{"reserved field",
	 {FAULTS, USER, .__reserved_2 = 1},
	 .code = -EINVAL,
	 .what = "__reserved_2 is not 0",
	 .remedy = "clear"},
	{"unknown bit of sample_type",
	 {SAMPLED(1ull << 40), USER},
	 .code = -EINVAL,
	 .what = "does not know bit 40 of attr.sample_type",
	 .remedy = "newer kernel"},
	{"unknown bit of read_format",
	 {FAULTS, USER, .read_format = 1ull << 20},
	 .code = -EINVAL,
	 .what = "does not know bit 20 of attr.read_format",
	 .remedy = "newer kernel"},
	{"unknown flag",
	 {FAULTS, USER},
	 .flags = 0x40,
	 .code = -EINVAL,
	 .what = "flags 0x40 do not exist",
	 .remedy = "PERF_FLAG_"},
	{"frequency above the limit",
	 {FAULTS, USER, .freq = 1, .sample_freq = 1ull << 40},
	 .code = -EINVAL,
	 .what = "samples a second",
	 .remedy = "kernel.perf_event_max_sample_rate"},
	{"period with bit 63",
	 {FAULTS, USER, .sample_period = 1ull << 63},
	 .code = -EINVAL,
	 .what = "period is above",
	 .remedy = "shorter"},
	{"branch stack without kind",
	 {SAMPLED(PERF_SAMPLE_BRANCH_STACK), USER, .branch_sample_type = PERF_SAMPLE_BRANCH_USER},
	 .code = -EINVAL,
	 .what = "names no kind of branch",
	 .remedy = "PERF_SAMPLE_BRANCH_ANY"},
	{"branch stack of a software event",
	 {SAMPLED(PERF_SAMPLE_BRANCH_STACK), USER,
	  .branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY},
	 .code = -EOPNOTSUPP,
	 .what = "does not support PERF_SAMPLE_BRANCH_STACK",
	 .remedy = "another event"},
	{"no registers",
	 {SAMPLED(PERF_SAMPLE_REGS_USER), USER},
	 .code = -EINVAL,
	 .what = "sample_regs_user names no register",
	 .remedy = "bits"},
	{"no interrupted registers",
	 {SAMPLED(PERF_SAMPLE_REGS_INTR), USER},
	 .code = -EINVAL,
	 .what = "sample_regs_intr names no register",
	 .remedy = "bits"},
#ifdef __x86_64__
	{"segment registers",
	 {SAMPLED(PERF_SAMPLE_REGS_USER), USER, .sample_regs_user = 1 << 12},
	 .code = -EINVAL,
	 .what = "sample_regs_user 0x1000 has registers that cannot be sampled",
	 .remedy = "perf_regs.h"},
#endif
	{"odd stack size",
	 {SAMPLED(PERF_SAMPLE_STACK_USER), USER, .sample_stack_user = 1001},
	 .code = -EINVAL,
	 .what = "1001 bytes of stack",
	 .remedy = "multiple of 8"},
	{"large stack size",
	 {SAMPLED(PERF_SAMPLE_STACK_USER), USER, .sample_stack_user = 65536},
	 .code = -EINVAL,
	 .what = "65536 bytes of stack",
	 .remedy = "below 65528"},
	{"AUX data without an AUX area",
	 {SAMPLED(PERF_SAMPLE_AUX), USER, .aux_sample_size = 4096},
	 .code = -EINVAL,
	 .what = "does not support attr.aux_sample_size",
	 .remedy = "leave it out"},
	{"AUX output of a software event",
	 {FAULTS, USER, .aux_output = 1},
	 .code = -EOPNOTSUPP,
	 .what = "does not support attr.aux_output",
	 .remedy = "another event"},
	{"two weights",
	 {SAMPLED(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT), USER},
	 .code = -EINVAL,
	 .what = "share one field",
	 .remedy = "one of them"},
	{"inherit_thread alone",
	 {FAULTS, USER, .inherit_thread = 1},
	 .code = -EINVAL,
	 .what = "without attr.inherit",
	 .remedy = "attr.inherit"},
	{"enable_on_exec and remove_on_exec",
	 {FAULTS, USER, .enable_on_exec = 1, .remove_on_exec = 1},
	 .code = -EINVAL,
	 .what = "contradict",
	 .remedy = "one of them"},
	{"sigtrap alone",
	 {FAULTS, USER, .sigtrap = 1},
	 .code = -EINVAL,
	 .what = "needs attr.remove_on_exec",
	 .remedy = "remove_on_exec"},
	{"sigtrap on a processor",
	 {FAULTS, .sigtrap = 1, .remove_on_exec = 1},
	 .pid = -1,
	 .cpu = 1,
	 .needs = ROOT,
	 .code = -EINVAL,
	 .what = "signals the measured task",
	 .remedy = "measure a task"},
	{"inherited counts without the thread",
	 {SAMPLED(PERF_SAMPLE_READ), USER, .inherit = 1},
	 .code = -EINVAL,
	 .what = "only together with the thread",
	 .remedy = "PERF_SAMPLE_TID"},
	{"unknown clock",
	 {FAULTS, USER, .use_clockid = 1, .clockid = 2},
	 .code = -EINVAL,
	 .what = "clock 2 cannot stamp",
	 .remedy = "CLOCK_MONOTONIC"},
	{"call chain too deep",
	 {SAMPLED(PERF_SAMPLE_CALLCHAIN), USER, .sample_max_stack = 65535},
	 .code = -EOVERFLOW,
	 .what = "call chains may have at most",
	 .remedy = "kernel.perf_event_max_stack"},

	{"breakpoint of no kind",
	 {WATCH(0, (uintptr_t)0, 4), USER},
	 .code = -EINVAL,
	 .what = "no such kind of breakpoint",
	 .remedy = "rw"},
	{"breakpoint of odd length",
	 {WATCH(2, 0x1000, 3), USER},
	 .code = -EINVAL,
	 .what = "cannot have this length",
	 .remedy = "1, 2, 4 or 8"},
	{"unaligned breakpoint",
	 {WATCH(2, 0x1001, 4), USER},
	 .code = -EINVAL,
	 .what = "not a multiple of the length",
	 .remedy = "align"},
	{"kernel breakpoint without the kernel",
	 {WATCH(4, KERNEL_ADDRESS, sizeof(long)), USER},
	 .code = -EINVAL,
	 .what = "the kernel is excluded",
	 .remedy = "u modifier"},
	{"no breakpoint left",
	 {WATCH(2, 0x1000, 8), USER},
	 .prepare = use_up_breakpoints,
	 .code = -ENOSPC,
	 .what = "all hardware breakpoints are in use",
	 .remedy = "four"},

	{"all tasks on any processor",
	 {FAULTS, USER},
	 .pid = -1,
	 .code = -EINVAL,
	 .what = "of one task or of one processor",
	 .remedy = "processor for pid -1"},
	{"cgroup on any processor",
	 {FAULTS, USER},
	 .flags = PERF_FLAG_PID_CGROUP,
	 .code = -EINVAL,
	 .what = "one processor at a time",
	 .remedy = "processor"},
	{"processor that is not there",
	 {FAULTS},
	 .pid = -1,
	 .cpu = 100000,
	 .needs = ROOT,
	 .code = -EINVAL,
	 .what = "no processor 99999",
	 .remedy = "online"},
	{"task that is not there",
	 {FAULTS, USER},
	 .pid = 1 << 30,
	 .code = -ESRCH,
	 .what = "no task 1073741824",
	 .remedy = "ps -eL"},
	{"file that is no cgroup",
	 {FAULTS},
	 .flags = PERF_FLAG_PID_CGROUP,
	 .pid = 1,
	 .cpu = 1,
	 .needs = ROOT,
	 .code = -EBADF,
	 .what = "descriptor 1 is not of a cgroup's folder",
	 .remedy = "cgroup file system"},
	{"group of a file",
	 {FAULTS, USER},
	 .group = OF_STDOUT,
	 .code = -EBADF,
	 .what = "descriptor 1 is not of an event",
	 .remedy = "leader"},
	{"output to an event without buffer",
	 {FAULTS, USER},
	 .group = OF_CLOCK,
	 .flags = PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP,
	 .code = -EINVAL,
	 .what = "no ring buffer",
	 .remedy = "SET_OUTPUT"},
	{"pinned member",
	 {FAULTS, USER, .pinned = 1},
	 .group = OF_CLOCK,
	 .code = -EINVAL,
	 .what = "only a group's leader can be pinned",
	 .remedy = "first event"},
	{"exclusive member",
	 {FAULTS, USER, .exclusive = 1},
	 .group = OF_CLOCK,
	 .code = -EINVAL,
	 .what = "can be exclusive",
	 .remedy = "first event"},
	{"member that inherits otherwise",
	 {FAULTS, USER},
	 .group = OF_INHERITING_CLOCK,
	 .code = -EINVAL,
	 .what = "opens alone but not in this group",
	 .remedy = "share one task"},
	{"member of a member",
	 {FAULTS, USER},
	 .group = OF_A_MEMBER,
	 .code = -EINVAL,
	 .what = "opens alone but not in this group",
	 .remedy = "split the group"},
	{"member on another processor",
	 {FAULTS, USER},
	 .group = OF_CLOCK,
	 .cpu = 1,
	 .code = -EINVAL,
	 .what = "opens alone but not in this group",
	 .remedy = "one task and processor"},

	{"no descriptor left",
	 {FAULTS, USER},
	 .prepare = use_up_descriptors,
	 .code = -EMFILE,
	 .what = "all 32 descriptors",
	 .remedy = "prlimit --pid $$"},
	{"soft limit of descriptors",
	 {FAULTS, USER},
	 .prepare = use_up_soft_limit,
	 .code = -EMFILE,
	 .what = "all 32 descriptors",
	 .remedy = "ulimit -n $(ulimit -H -n)"},
	{"seccomp filter",
	 {FAULTS, USER},
	 .prepare = filter_with_eperm,
	 .code = -EPERM,
	 .what = "a seccomp filter answers perf_event_open with Operation not permitted",
	 .remedy = ""},
	{"seccomp filter that denies the call",
	 {FAULTS, USER},
	 .prepare = filter_with_enosys,
	 .code = -ENOSYS,
	 .what = "a seccomp filter answers perf_event_open with Function not implemented",
	 .remedy = ""},

	{"kernel side as a user",
	 {FAULTS},
	 .needs = ROOT | PARANOID_2,
	 .prepare = be_nobody,
	 .code = -EACCES,
	 .what = "the kernel's side needs kernel.perf_event_paranoid 1 or less (it is 2), or CAP_PERFMON",
	 .remedy = "sudo sysctl kernel.perf_event_paranoid=1, or "},
	{"what only the kernel does",
	 {SW(PERF_COUNT_SW_CONTEXT_SWITCHES)},
	 .needs = ROOT | PARANOID_2,
	 .prepare = be_nobody,
	 .code = -EACCES,
	 .what = "it happens in the kernel, which needs kernel.perf_event_paranoid 1 or less (it is 2), or "
		 "CAP_PERFMON",
	 .remedy = "sudo sysctl kernel.perf_event_paranoid=1, or "},
	{"all tasks as root of a container",
	 {FAULTS, USER},
	 .pid = -1,
	 .cpu = 1,
	 .needs = ROOT | PARANOID_2,
	 .prepare = lose_capabilities,
	 .code = -EACCES,
	 .what = "all tasks of a processor need kernel.perf_event_paranoid 0 or less (it is 2)",
	 .remedy = "PERFMON"},
	{"all tasks as a user",
	 {FAULTS, USER},
	 .pid = -1,
	 .cpu = 1,
	 .needs = ROOT | PARANOID_2,
	 .prepare = be_nobody,
	 .code = -EACCES,
	 .what = "all tasks of a processor need kernel.perf_event_paranoid 0 or less (it is 2)",
	 .remedy = "sudo sysctl kernel.perf_event_paranoid=0"},
	{"namespaces as a user",
	 {FAULTS, USER, .namespaces = 1},
	 .needs = ROOT,
	 .prepare = be_nobody,
	 .code = -EACCES,
	 .what = "PERF_RECORD_NAMESPACES needs CAP_PERFMON, which this process lacks",
	 .remedy = "setcap cap_perfmon+ep /"},
	{"physical addresses as a user",
	 {SAMPLED(PERF_SAMPLE_PHYS_ADDR), USER},
	 .needs = ROOT | PARANOID_2,
	 .prepare = be_nobody,
	 .code = -EACCES,
	 .what = "physical addresses need kernel.perf_event_paranoid 1 or less (it is 2)",
	 .remedy = "root"},
	{"task of another user",
	 {FAULTS, USER},
	 .pid = PARENT,
	 .needs = ROOT,
	 .prepare = be_nobody,
	 .code = -EACCES,
	 .what = "belongs to root: measuring it needs CAP_PERFMON, which this process lacks",
	 .remedy = "run it as root, or sudo setcap"},
	{"kernel breakpoint as a user",
	 {WATCH(2, KERNEL_ADDRESS, 8), .exclude_hv = 1},
	 .needs = ROOT,
	 .prepare = be_nobody_with_perfmon,
	 .code = -EPERM,
	 .what = "a breakpoint on a kernel address needs CAP_SYS_ADMIN, which this process lacks",
	 .remedy = "run it as root"},
};

static int make_group(enum group group)
{
	struct perf_event_attr clock = {SW(PERF_COUNT_SW_TASK_CLOCK), USER};
	int fd;

	switch (group) {
	case NO_GROUP:
		return -1;
	case OF_STDOUT:
		return STDOUT_FILENO;
	case OF_INHERITING_CLOCK:
		clock.inherit = 1;
		return open_plain(&clock, -1);
	case OF_CLOCK:
		return open_plain(&clock, -1);
	case OF_A_MEMBER:
		fd = open_plain(&clock, -1);
		return open_plain(&clock, fd);
	}
	return -1;
}

static void provoke(const struct row *row, const struct perf_event_attr *attr,
		    struct tally_error *err)
{
	pid_t pid = row->pid == PARENT ? getppid() : row->pid;
	int group = make_group(row->group);

	if (row->prepare)
		row->prepare();
	err->code = tally_attr_open(attr, pid, row->cpu - 1, group, row->flags, err);
}

static void in_child(const struct row *row, const struct perf_event_attr *attr,
		     struct tally_error *err)
{
	int fds[2], status;
	pid_t pid;

	memset(err, 0, sizeof(*err));
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		provoke(row, attr, err);
		_exit(write(fds[1], err, sizeof(*err)) != sizeof(*err));
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], err, sizeof(*err)), sizeof(*err));
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -1;

	if (file) {
		assert_int_equal(fscanf(file, "%d", &level), 1);
		fclose(file);
	}
	return level;
}

static bool has_pmu(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr), USER, .disabled = 1};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void skip_unless(unsigned int needs)
{
	struct tally_system system = {0};
	const char *why = NULL;

	tly_system_facts(&system);
	if ((needs & ROOT) && !(geteuid() == 0 && system.cap_perfmon && system.cap_sys_admin))
		why = "needs root and its capabilities";
	else if ((needs & NO_PMU) && has_pmu())
		why = "this machine has a PMU";
	else if ((needs & PARANOID_2) && paranoid() != 2)
		why = "perf_event_paranoid is not 2";
	if (!why)
		return;
	print_message("# skipped: %s\n", why);
	skip();
}

static void check(const struct row *row, const struct perf_event_attr *attr)
{
	struct tally_error err;

	in_child(row, attr, &err);
	if (err.code != row->code || !strstr(err.what, row->what) ||
	    !strstr(err.remedy, row->remedy))
		fail_msg("code %d\n#  what: %s\n#  remedy: %s", err.code, err.what, err.remedy);
	assert_null(strchr(err.what, '\n'));
	assert_true(err.remedy[0]);
	assert_true(strlen(err.what) < sizeof(err.what) - 1);
	assert_true(strlen(err.remedy) < sizeof(err.remedy) - 1);
}

static void test_row(void **state)
{
	const struct row *row = *state;

	skip_unless(row->needs);
	check(row, &row->attr);
}

static void test_field_from_the_future(void **state)
{
	static const struct row row = {.code = -E2BIG,
				       .what = "does not know a field behind the ",
				       .remedy = "newer kernel"};

	(void)state;
	future.attr.size = sizeof(future);
	check(&row, &future.attr);
}

/* The data of most tracepoints tells of other tasks. */
static void test_tracepoint_data_as_a_user(void **state)
{
	static const struct row row = {
		.prepare = be_nobody,
		.code = -EPERM,
		.what = "the data of tracepoints needs kernel.perf_event_paranoid -1 (it is 2)",
		.remedy = "kernel.perf_event_paranoid=-1",
	};
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
				       .size = sizeof(attr),
				       .sample_period = 1,
				       .sample_type = PERF_SAMPLE_RAW,
				       USER};
	FILE *file = fopen("/sys/kernel/tracing/events/sched/sched_switch/id", "re");
	unsigned int id;

	(void)state;
	if (!file) {
		print_message("# skipped: tracefs cannot be read\n");
		skip();
	}
	assert_int_equal(fscanf(file, "%u", &id), 1);
	fclose(file);
	skip_unless(ROOT | PARANOID_2);
	attr.config = id;
	check(&row, &attr);
}

/* The type of a unit whose number is known at run time only, or a skip. */
static uint32_t type_of_unit(const char *name)
{
	char path[128];
	unsigned int type;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	file = fopen(path, "re");
	if (!file) {
		print_message("# skipped: this kernel has no %s unit\n", name);
		skip();
	}
	assert_int_equal(fscanf(file, "%u", &type), 1);
	fclose(file);
	return type;
}

/*
 * CAP_PERFMON opens kprobes but not uprobes, and no level of paranoia opens either, though the
 * level alone forbids the kernel's side of both.
 */
static void test_uprobe_with_perfmon(void **state)
{
	struct row row = {
		.prepare = be_nobody_with_perfmon,
		.code = -EACCES,
		.what = "a uprobe needs CAP_SYS_ADMIN, which this process lacks",
		.remedy = "run it as root",
	};
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type_of_unit("uprobe"),
		.uprobe_path = (uintptr_t) "/proc/self/exe",
		.probe_offset = 0x1000,
	};

	(void)state;
	skip_unless(ROOT);
	check(&row, &attr);
	row.prepare = be_nobody;
	check(&row, &attr);
}

static void test_kprobe_as_a_user(void **state)
{
	static const struct row row = {
		.prepare = be_nobody,
		.code = -EACCES,
		.what = "a kprobe needs CAP_PERFMON, which this process lacks",
		.remedy = "run it as root, or sudo setcap cap_perfmon+ep /",
	};
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type_of_unit("kprobe"),
		.kprobe_func = (uintptr_t) "do_exit",
	};

	(void)state;
	skip_unless(ROOT);
	check(&row, &attr);
}

/* The attr and its size are the caller's: a refusal must not write to them. */
static void test_attr_is_left_alone(void **state)
{
	struct tally_error err;
	uint32_t before = sizeof(future);

	(void)state;
	future.attr.size = before;
	assert_int_equal(tally_attr_open(&future.attr, 0, -1, -1, 0, &err), -E2BIG);
	assert_int_equal(future.attr.size, before);
}

/* A long tail of zeros asks for nothing. */
static void test_zero_tail_opens(void **state)
{
	struct {
		struct perf_event_attr attr;
		uint8_t tail[512];
	} large = {{FAULTS, USER}, {0}};
	int fd;

	(void)state;
	large.attr.size = sizeof(large);
	fd = tally_attr_open(&large.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	large.attr.size = 0;
	fd = tally_attr_open(&large.attr, 0, -1, -1, 0, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	close(fd);
}

static size_t open_descriptors(void)
{
	size_t nr = 0;

	for (int fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* Finding out opens dozens of events: none may stay. */
static void test_no_descriptor_leaks(void **state)
{
	size_t before = open_descriptors();
	struct tally_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!rows[i].prepare && !rows[i].group && rows[i].needs == NOTHING)
			assert_int_equal(tally_attr_open(&rows[i].attr, rows[i].pid,
							 rows[i].cpu - 1, -1, rows[i].flags, &err),
					 rows[i].code);
	assert_int_equal(open_descriptors(), before);
}

int main(void)
{
	enum { NR_ROWS = sizeof(rows) / sizeof(rows[0]) };
	struct CMUnitTest tests[NR_ROWS + 7];
	const struct CMUnitTest others[] = {
		cmocka_unit_test(test_field_from_the_future),
		cmocka_unit_test(test_tracepoint_data_as_a_user),
		cmocka_unit_test(test_uprobe_with_perfmon),
		cmocka_unit_test(test_kprobe_as_a_user),
		cmocka_unit_test(test_attr_is_left_alone),
		cmocka_unit_test(test_zero_tail_opens),
		cmocka_unit_test(test_no_descriptor_leaks),
	};

	for (size_t i = 0; i < NR_ROWS; i++)
		tests[i] =
			(struct CMUnitTest){rows[i].name, test_row, NULL, NULL, (void *)&rows[i]};
	memcpy(tests + NR_ROWS, others, sizeof(others));
	return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
