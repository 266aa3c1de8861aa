// SPDX-License-Identifier: MIT
/* Descriptors, targets and groups over time: close, fork, exec, exit, inheritance under control. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

ABI_CASE("life.example life.counting-vs-sampling",
	 "open disabled, reset, enable, run, disable, read one word")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t count = 0;
	int fd = OPEN_SELF(&attr);

	CHECK_EQ(ioctl(fd, PERF_EVENT_IOC_RESET, 0), 0);
	CHECK_EQ(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	work_faults(25);
	CHECK_EQ(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	CHECK_EQ(read(fd, &count, sizeof(count)), sizeof(count));
	CHECK_CMP(count, >=, 25);
	CHECK_CMP(count, <, 100);
	CHECK_EQ(close(fd), 0);
}

ABI_CASE("life.timer-sampling", "a clock samples every 10 microseconds without any PMU")
{
	static const uint64_t clocks[] = {PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK};

	for (int i = 0; i < 2; i++) {
		struct perf_event_attr attr = abi_software(clocks[i]);
		const struct perf_event_header *header;
		unsigned int samples = 0;
		struct ring ring;
		int fd;

		attr.sample_period = 10000;
		attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
		fd = OPEN_SELF(&attr);
		ring = MAP(fd, 512);
		/* A virtual machine may be without its processors for most of a turn. */
		for (int turn = 0; turn < 10 && samples < 50; turn++) {
			START(fd);
			work_spin(50000000);
			STOP(fd);
			while ((header = NEXT_OF(&ring, PERF_RECORD_SAMPLE))) {
				CHECK_EQ(SAMPLE(&attr, header).pid, getpid());
				samples++;
			}
		}
		CHECK_CMP(samples, >=, 50); /* of 5000 a turn at best */
		CHECK_OK(close(fd));
		abi_unmap(&ring);
	}
}

ABI_CASE("life.fcntl", "read returns at once, whatever O_NONBLOCK says")
{
	int fd = abi_faults(-1, true);

	CHECK_EQ(CHECK_OK(fcntl(fd, F_GETFL)) & O_NONBLOCK, 0);
	CHECK_EQ(VALUE(fd), 0);
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK_EQ(CHECK_OK(fcntl(fd, F_GETFL)) & O_NONBLOCK, O_NONBLOCK);
	CHECK_EQ(VALUE(fd), 0);
	CHECK_OK(fcntl(fd, F_SETOWN, getpid()));
	CHECK_EQ(CHECK_OK(fcntl(fd, F_GETOWN)), getpid());
}

ABI_CASE("life.close", "a duplicate keeps the event alive")
{
	int fd = abi_faults(-1, false), copy = (int)CHECK_OK(dup(fd));
	uint64_t id = ID(fd);

	CHECK_OK(close(fd));
	CHECK_CMP(abi_faults_add(copy), >=, 10);
	CHECK_EQ(ID(copy), id);
	CHECK_OK(close(copy));
	CHECK_ERRNO(ioctl(copy, PERF_EVENT_IOC_ENABLE, 0), EBADF);
}

ABI_CASE("life.close-leader",
	 "members that count go on alone and may lead; those held back start at the next switch")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int leader, member;
	uint64_t words[3];

	leader = abi_faults(-1, true);
	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_GROUP;
	member = OPEN(&attr, 0, -1, leader);
	START(leader);
	CHECK_OK(close(leader));
	READ_WORDS(member, words, 2);
	CHECK_EQ(words[0], 1);
	work_faults(10);
	{
		uint64_t before = words[1];

		READ_WORDS(member, words, 2);
		CHECK_CMP(words[1], >=, before + 10);
	}
	abi_faults(member, false);
	READ_WORDS(member, words, 3);
	CHECK_EQ(words[0], 2);

	/* set free, but not started: that happens when the task is next put on a processor */
	leader = abi_faults(-1, true);
	member = abi_faults(leader, false);
	CHECK_EQ(abi_faults_add(member), 0);
	CHECK_OK(close(leader));
	usleep(1000);
	CHECK_CMP(abi_faults_add(member), >=, 10);
}

struct target {
	struct gate go, done;
};

static void fault_then_end(void *arg)
{
	struct target *target = arg;

	abi_wait(&target->go);
	work_faults(30);
}

ABI_CASE("life.target-exit", "the final totals stay readable; ENABLE returns 0 and does nothing")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct target target = {abi_gate(), abi_gate()};
	pid_t pid = SPAWN(fault_then_end, &target);
	uint64_t value;
	int fd;

	attr.disabled = 0;
	fd = OPEN(&attr, pid, -1, -1);
	abi_pass(&target.go);
	JOIN(pid);
	value = VALUE(fd);
	CHECK_CMP(value, >=, 30);
	STOP(fd);
	CHECK_EQ(CHECK_OK(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)), 0);
	work_faults(10);
	CHECK_EQ(VALUE(fd), value);
}

struct shared {
	int fd;
	uint64_t seen;
};

static void read_in_child(void *arg)
{
	struct shared *shared = arg;

	work_faults(500);
	CHECK_EQ(VALUE(shared->fd), shared->seen);
}

static void fault_500(void *arg)
{
	(void)arg;
	work_faults(500);
}

ABI_CASE("life.fork-descriptor", "a child reads the parent's event and adds nothing to it")
{
	struct shared shared = {.fd = abi_faults(-1, false)};

	work_faults(10);
	STOP(shared.fd);
	shared.seen = VALUE(shared.fd);
	CHECK_CMP(shared.seen, >=, 10);
	JOIN(SPAWN(read_in_child, &shared));
	CHECK_EQ(VALUE(shared.fd), shared.seen);
	START(shared.fd);
	JOIN(SPAWN(fault_500, NULL));
	STOP(shared.fd);
	CHECK_CMP(VALUE(shared.fd), <, shared.seen + 500);
}

static void exec_faults(void *arg)
{
	struct target *target = arg;

	abi_wait(&target->go);
	abi_exec("faults", 300);
}

ABI_CASE("life.exec-descriptor", "the event goes on measuring the task behind its execve")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct target target = {abi_gate(), abi_gate()};
	pid_t pid = SPAWN(exec_faults, &target);
	int fd;

	attr.disabled = 0;
	fd = OPEN(&attr, pid, -1, -1);
	abi_pass(&target.go);
	JOIN(pid);
	CHECK_CMP(VALUE(fd), >=, 300);
}

static void fault_and_exec(void *arg)
{
	struct target *target = arg;

	abi_wait(&target->go);
	work_faults(20);
	abi_exec("faults", 5000);
}

ABI_CASE("attr.remove_on_exec life.exec-descriptor",
	 "taken off by execve: the final count stays, poll tells POLLHUP")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct target target = {abi_gate(), abi_gate()};
	pid_t pid = SPAWN(fault_and_exec, &target);
	struct pollfd one = {.events = POLLIN};

	attr.disabled = 0;
	attr.remove_on_exec = 1;
	one.fd = OPEN(&attr, pid, -1, -1);
	abi_pass(&target.go);
	JOIN(pid);
	CHECK_CMP(VALUE(one.fd), >=, 20);
	CHECK_CMP(VALUE(one.fd), <, 5000);
	CHECK_EQ(CHECK_OK(poll(&one, 1, 0)), 1);
	CHECK_EQ(one.revents, POLLHUP);
}

ABI_CASE("attr.remove_on_exec", "taken out of its group, of which the rest goes on")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_GROUP;
	for (int leader = 0; leader < 2; leader++) {
		struct target target = {abi_gate(), abi_gate()};
		pid_t pid = SPAWN(fault_and_exec, &target);
		uint64_t left[3], taken[3];
		int fd[2];

		for (int i = 0; i < 2; i++) {
			attr.remove_on_exec = i != leader;
			fd[i] = OPEN(&attr, pid, -1, i ? fd[0] : -1);
		}
		abi_pass(&target.go);
		JOIN(pid);
		CHECK(read(fd[leader], left, sizeof(left)) > 0);
		if (left[0] == 2)
			abi_cannot("this kernel leaves it there, without counting");
		CHECK_EQ(left[0], 1);
		CHECK_CMP(left[1], >=, 5000);
		CHECK_EQ(read(fd[!leader], taken, sizeof(taken)), 2 * sizeof(uint64_t));
		CHECK_EQ(taken[0], 1);
		CHECK_CMP(taken[1], <, 5000);
	}
}

/* ---- inherited events under control ---- */

static void fault_in_rounds(void *arg)
{
	struct target *target = arg;

	for (int i = 0; i < 3; i++) {
		abi_wait(&target->go);
		work_faults(100);
		abi_pass(&target->done);
	}
}

static void target_round(struct target *target)
{
	abi_pass(&target->go);
	abi_wait(&target->done);
}

ABI_CASE("life.inherit-control life.inherit-fold",
	 "disable, enable and reset reach the copy in a live child")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct target target = {abi_gate(), abi_gate()};
	uint64_t value;
	pid_t pid;
	int fd;

	attr.inherit = 1;
	fd = OPEN_SELF(&attr);
	START(fd);
	pid = SPAWN(fault_in_rounds, &target);
	target_round(&target);
	CHECK_CMP(VALUE(fd), >=, 100); /* folded in while the child lives */
	STOP(fd);
	value = VALUE(fd);
	target_round(&target);
	CHECK_EQ(VALUE(fd), value);
	RESET(fd);
	CHECK_EQ(VALUE(fd), 0);
	START(fd);
	target_round(&target);
	CHECK_CMP(VALUE(fd), >=, 100);
	CHECK_CMP(VALUE(fd), <, value + 100);
	JOIN(pid);
}

static void *fault_once(void *arg)
{
	(void)arg;
	work_faults(1);
	return NULL;
}

ABI_CASE("life.legacy-inherit-crash",
	 "hundreds of inheriting threads come and go, and all of them count")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	pthread_t threads[50];
	int fd;

	attr.inherit = 1;
	fd = OPEN_SELF(&attr);
	START(fd);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 50; i++)
			CHECK_EQ(pthread_create(&threads[i], NULL, fault_once, NULL), 0);
		for (int i = 0; i < 50; i++)
			CHECK_EQ(pthread_join(threads[i], NULL), 0);
	}
	STOP(fd);
	CHECK_CMP(VALUE(fd), >=, 500);
}
