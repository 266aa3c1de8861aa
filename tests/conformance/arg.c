// SPDX-License-Identifier: MIT
/* The five arguments of perf_event_open and the descriptor that it returns. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

ABI_CASE("arg.entry", "the call returns a fresh descriptor, or -1 and leaves none")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int free_one = (int)CHECK_OK(dup(0)), fd;

	CHECK_OK(close(free_one));
	fd = OPEN_SELF(&attr);
	CHECK_EQ(fd, free_one);
	CHECK_OK(close(fd));

	attr.type = UINT32_MAX;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, ENOENT);
	CHECK_EQ(CHECK_OK(dup(0)), free_one);
}

ABI_CASE("arg.one-fd-per-event",
	 "the descriptor reads, polls, takes fcntl; it neither seeks nor writes")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct epoll_event interest = {.events = EPOLLIN};
	int fd = OPEN_SELF(&attr), other = OPEN_SELF(&attr), epoll;
	struct pollfd poll_one;
	uint64_t word;

	CHECK(fd != other);
	CHECK(ID(fd) != ID(other));
	CHECK_EQ(read(fd, &word, sizeof(word)), 8);
	CHECK_ERRNO(pread(fd, &word, sizeof(word), 0), ESPIPE);
	CHECK_ERRNO(lseek(fd, 0, SEEK_SET), ESPIPE);
	CHECK_ERRNO(write(fd, &word, sizeof(word)), EINVAL);
	CHECK_EQ(CHECK_OK(fcntl(fd, F_GETFL)) & O_ACCMODE, O_RDWR);
	poll_one.fd = fd;
	poll_one.events = POLLIN;
	CHECK_EQ(poll(&poll_one, 1, 0), 1); /* without a buffer: POLLHUP */
	epoll = (int)CHECK_OK(epoll_create1(0));
	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &interest));
	CHECK_OK(close(fd));
	CHECK_ERRNO(read(fd, &word, sizeof(word)), EBADF);
}

ABI_CASE("arg.attr-pointer attr.type errno.efault",
	 "attr is copied at the open; a bad pointer gives EFAULT")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = OPEN_SELF(&attr);

	memset(&attr, 0xff, sizeof(attr)); /* the open event must not care */
	work_faults(1);
	START(fd);
	work_faults(5);
	STOP(fd);
	CHECK_CMP(VALUE(fd), >=, 5);

	CHECK_REFUSED(NULL, 0, -1, -1, 0, EFAULT);
	CHECK_REFUSED(hole, 0, -1, -1, 0, EFAULT);
	attr = abi_attr(UINT32_MAX, 0);
	CHECK_REFUSED(&attr, 0, -1, -1, 0, ENOENT);
}

ABI_CASE("arg.pid-zero-cpu-any", "pid 0, cpu -1 follows the calling thread over processors")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int cpus[2], fd = OPEN_SELF(&attr);
	unsigned char *map = work_map(8);

	abi_need_two_cpus(cpus);
	work_faults(1);
	START(fd);
	for (unsigned int i = 0; i < 4; i++) {
		abi_pin(0, cpus[i % 2]);
		work_touch(map, 2 * i, 2);
	}
	STOP(fd);
	CHECK_CMP(VALUE(fd), >=, 8);
	CHECK_CMP(VALUE(fd), <=, 16);
}

struct remote {
	struct gate go, done;
	unsigned int rounds;
};

static void fault_on_demand(void *arg)
{
	struct remote *remote = arg;

	work_faults(1);
	for (unsigned int i = 0; i < remote->rounds; i++) {
		abi_wait(&remote->go);
		work_faults(10);
		abi_pass(&remote->done);
	}
}

static pid_t start_remote(struct remote *remote, unsigned int rounds)
{
	remote->go = abi_gate();
	remote->done = abi_gate();
	remote->rounds = rounds;
	return SPAWN(fault_on_demand, remote);
}

static void remote_round(struct remote *remote)
{
	abi_pass(&remote->go);
	abi_wait(&remote->done);
}

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

ABI_CASE("arg.pid-zero-cpu-one", "pid 0 with a processor counts only while the thread runs there")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t here[3], there[3];
	int cpus[2], fd;

	abi_need_two_cpus(cpus);
	attr.read_format = TIMES;
	abi_pin(0, cpus[0]);
	fd = OPEN(&attr, 0, cpus[0], -1);
	START(fd);
	work_faults(10);
	abi_pin(0, cpus[1]);
	READ_WORDS(fd, here, 3);
	CHECK_CMP(here[0], >=, 10);
	CHECK_CMP(here[2], >, 0);
	work_faults(100);
	work_spin(1000000);
	READ_WORDS(fd, there, 3);
	CHECK_EQ(there[0], here[0]);
	CHECK_EQ(there[2], here[2]);
	abi_pin(0, cpus[0]);
	work_faults(10);
	READ_WORDS(fd, there, 3);
	CHECK_CMP(there[0], >=, here[0] + 10);
	CHECK_CMP(there[0], <, here[0] + 100);
	CHECK_CMP(there[2], >, here[2]);
}

ABI_CASE("arg.pid-task-cpu-any", "pid > 0 counts that task, over processors")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int cpus[2], fd;
	struct remote remote;
	pid_t pid;

	abi_need_two_cpus(cpus);
	pid = start_remote(&remote, 2);
	fd = OPEN(&attr, pid, -1, -1);
	START(fd);
	abi_pin(pid, cpus[0]);
	work_faults(500); /* ours do not count */
	remote_round(&remote);
	abi_pin(pid, cpus[1]);
	remote_round(&remote);
	CHECK_CMP(VALUE(fd), >=, 20);
	CHECK_CMP(VALUE(fd), <, 200);
	JOIN(pid);
}

ABI_CASE("arg.pid-task-cpu-one", "pid > 0 with a processor counts that task on that processor only")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct remote remote;
	int cpus[2], fd;
	uint64_t before;
	pid_t pid;

	abi_need_two_cpus(cpus);
	pid = start_remote(&remote, 2);
	abi_pin(pid, cpus[0]);
	fd = OPEN(&attr, pid, cpus[0], -1);
	START(fd);
	remote_round(&remote);
	abi_pin(pid, cpus[1]);
	before = VALUE(fd);
	CHECK_CMP(before, >=, 10);
	remote_round(&remote);
	CHECK_EQ(VALUE(fd), before);
	JOIN(pid);
}

ABI_CASE("arg.pid-any-cpu-one", "pid -1 with a processor counts every task there")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int cpu = abi_first_cpu(), fd = OPEN(&attr, -1, cpu, -1);
	struct remote remote;
	pid_t pid;

	pid = start_remote(&remote, 1);
	abi_pin(pid, cpu);
	abi_pin(0, cpu);
	START(fd);
	work_faults(20);
	remote_round(&remote);
	STOP(fd);
	CHECK_CMP(VALUE(fd), >=, 30);
	JOIN(pid);
}

ABI_CASE("arg.pid-any-cpu-one arg.own-task-unprivileged errno.eacces",
	 "all tasks of a processor, or kernel mode, is refused to an ordinary user")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	abi_drop_rights();
	OPEN_SELF(&attr);
	abi_need_level(2, 2);
	CHECK_REFUSED(&attr, -1, 0, -1, 0, EACCES);
	attr.exclude_kernel = 0;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EACCES);
}

static const struct argument {
	struct abi_row about;
	int pid, cpu, group;
	unsigned long flags;
	int error;
} arguments[] = {
	{{"arg.pid-any-cpu-any", "pid -1, cpu -1: EINVAL"}, -1, -1, -1, 0, EINVAL},
	{{"arg.pid-below-minus-one", "pid -2: ESRCH"}, -2, -1, -1, 0, ESRCH},
	{{"arg.pid-below-minus-one", "pid -2 with a processor: ESRCH"}, -2, 0, -1, 0, ESRCH},
	{{"arg.cpu-below-minus-one", "cpu -2: EINVAL"}, 0, -2, -1, 0, EINVAL},
	{{"arg.cpu-nonexistent errno.einval.cpu", "cpu 2^30: EINVAL"}, 0, 1 << 30, -1, 0, EINVAL},
	{{"arg.group-leader errno.ebadf", "group_fd -2: EBADF"}, 0, -1, -2, 0, EBADF},
	{{"arg.group-member errno.ebadf", "group_fd that is not open: EBADF"},
	 0,
	 -1,
	 9999,
	 0,
	 EBADF},
	{{"arg.group-member errno.ebadf", "group_fd of stderr: EBADF"}, 0, -1, 2, 0, EBADF},
	{{"arg.flags-mask errno.einval.masks", "flags bit 4: EINVAL"}, 0, -1, -1, 1 << 4, EINVAL},
	{{"arg.flags-mask errno.einval.masks", "flags bit 31: EINVAL"},
	 0,
	 -1,
	 -1,
	 1UL << 31,
	 EINVAL},
	{{"arg.flags-mask errno.einval.masks", "flags bit 63: EINVAL"},
	 0,
	 -1,
	 -1,
	 1UL << 63,
	 EINVAL},
};

ABI_TABLE(arguments)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	OPEN_SELF(&attr); /* the attr itself is good */
	CHECK_REFUSED(&attr, row->pid, row->cpu, row->group, row->flags, row->error);
}

ABI_CASE("arg.pid-any-cpu-any", "pid -1, cpu -1 is refused to an ordinary user as well")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int fd;

	abi_drop_rights();
	fd = perf_open(&attr, -1, -1, -1, 0);
	CHECK_EQ(fd, -1);
	CHECK(errno == EINVAL || errno == EACCES);
}

ABI_CASE("arg.cpu-nonexistent errno.einval.cpu",
	 "the first number past the configured processors: EINVAL")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	char possible[256], *last;
	int beyond;

	if (abi_line("/sys/devices/system/cpu/possible", possible, sizeof(possible)))
		CANNOT("no list of processors in sysfs");
	last = possible + strlen(possible);
	while (last > possible && last[-1] >= '0' && last[-1] <= '9')
		last--;
	CHECK_EQ(sscanf(last, "%d", &beyond), 1);
	CHECK_REFUSED(&attr, 0, beyond + 1, -1, 0, EINVAL);
}

struct worker {
	struct gate go, done;
	pid_t tid;
};

static void *worker(void *arg)
{
	struct worker *me = arg;

	me->tid = (pid_t)syscall(SYS_gettid);
	work_faults(1);
	abi_pass(&me->done);
	abi_wait(&me->go);
	work_faults(50);
	abi_pass(&me->done);
	abi_wait(&me->go);
	return NULL;
}

ABI_CASE("arg.pid-is-thread", "a pid names one thread, not its siblings")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct worker one = {abi_gate(), abi_gate(), 0};
	int on_worker, on_main;
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, worker, &one), 0);
	abi_wait(&one.done);
	attr.inherit = 1;
	on_main = OPEN(&attr, getpid(), -1, -1);
	on_worker = OPEN(&attr, one.tid, -1, -1);
	START(on_main);
	START(on_worker);
	work_faults(200);
	abi_pass(&one.go);
	abi_wait(&one.done);
	STOP(on_main);
	STOP(on_worker);
	abi_pass(&one.go);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_CMP(VALUE(on_worker), >=, 50);
	CHECK_CMP(VALUE(on_worker), <, 200);
	CHECK_CMP(VALUE(on_main), >=, 200);
	CHECK_CMP(VALUE(on_main), <, 250);
}

ABI_CASE("arg.pid-permission errno.eacces", "another user's task gives EACCES, one's own opens")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct remote remote;
	pid_t own;

	abi_drop_rights();
	own = start_remote(&remote, 1);
	OPEN(&attr, own, -1, -1);
	remote_round(&remote);
	JOIN(own);
	if (getuid() == 0 || kill(1, 0) == 0 || errno != EPERM)
		CANNOT("process 1 is no other user's");
	CHECK_REFUSED(&attr, 1, -1, -1, 0, EACCES);
}

static void idle(void *arg)
{
	abi_wait(arg);
}

ABI_CASE("errno.esrch arg.pid-task-cpu-any", "a reaped task, a zombie and a pid never used: ESRCH")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct perf_event_attr wrong = abi_software(1000);
	struct gate gate = abi_gate();
	pid_t pid = SPAWN(idle, &gate);
	siginfo_t info;

	OPEN(&attr, pid, -1, -1);
	abi_pass(&gate);
	CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	CHECK_REFUSED(&attr, pid, -1, -1, 0, ESRCH); /* a zombie, which is still found */
	CHECK_REFUSED(&attr, pid, 0x7ffffff0, -1, 0, EINVAL);
	CHECK_REFUSED(&wrong, pid, -1, -1, 0, ENOENT);
	JOIN(pid);
	CHECK_REFUSED(&attr, pid, -1, -1, 0, ESRCH);
	CHECK_REFUSED(&attr, 0x7ffffff0, -1, -1, 0, ESRCH);
	CHECK_REFUSED(&wrong, 0x7ffffff0, -1, -1, 0, ESRCH);
}

/* ---- groups ---- */

ABI_CASE("arg.group-leader arg.group-member", "leader and members; a member cannot lead")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t words[4];
	int leader, member;

	attr.read_format = PERF_FORMAT_GROUP;
	leader = OPEN_SELF(&attr);
	READ_WORDS(leader, words, 2);
	CHECK_EQ(words[0], 1);
	member = OPEN(&attr, 0, -1, leader);
	READ_WORDS(leader, words, 3);
	CHECK_EQ(words[0], 2);
	CHECK_REFUSED(&attr, 0, -1, member, 0, EINVAL);
	CHECK_OK(close(member));
	CHECK_REFUSED(&attr, 0, -1, member, 0, EBADF);
}

ABI_CASE("arg.group-same-target", "a member on another task or another processor: EINVAL")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct gate gate = abi_gate();
	pid_t pid = SPAWN(idle, &gate);
	int leader = OPEN_SELF(&attr);

	OPEN(&attr, pid, -1, -1);
	CHECK_REFUSED(&attr, pid, -1, leader, 0, EINVAL);
	CHECK_REFUSED(&attr, 0, abi_first_cpu(), leader, 0, EINVAL);
	OPEN(&attr, 0, -1, leader);
	abi_pass(&gate);
	JOIN(pid);
}

ABI_CASE("arg.group-same-clock", "a member with another clock or inherit setting: EINVAL")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS), other = attr;
	int leader = OPEN_SELF(&attr);

	other.use_clockid = 1;
	other.clockid = CLOCK_MONOTONIC;
	OPEN_SELF(&other);
	CHECK_REFUSED(&other, 0, -1, leader, 0, EINVAL);
	other = attr;
	other.inherit = 1;
	OPEN_SELF(&other);
	CHECK_REFUSED(&other, 0, -1, leader, 0, EINVAL);
	OPEN(&attr, 0, -1, leader);
}

ABI_CASE("arg.group-atomic", "members count the same stretch of execution as their leader")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int leader, member;
	uint64_t a[3], b[3];

	attr.read_format = TIMES;
	leader = OPEN_SELF(&attr);
	attr.disabled = 0;
	member = OPEN(&attr, 0, -1, leader);
	START(leader);
	for (unsigned int i = 0; i < 20; i++)
		work_faults(10);
	STOP(leader);
	READ_WORDS(leader, a, 3);
	READ_WORDS(member, b, 3);
	CHECK_CMP(a[0], >=, 200);
	CHECK_EQ(a[0], b[0]);
	CHECK_EQ(a[1], b[1]);
	CHECK_EQ(a[2], b[2]);
}
