// SPDX-License-Identifier: MIT
/* The flags argument; PERF_FLAG_PID_CGROUP is in cgroup.c. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

ABI_CASE("flag.fd_no_group", "the event does not join the group of group_fd")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t words[3];
	int leader, alone;

	attr.read_format = PERF_FORMAT_GROUP;
	leader = OPEN_SELF(&attr);
	alone = OPEN_FLAGS(&attr, 0, -1, leader, PERF_FLAG_FD_NO_GROUP);
	READ_WORDS(leader, words, 2);
	CHECK_EQ(words[0], 1);
	READ_WORDS(alone, words, 2);
	CHECK_EQ(words[0], 1);
	START(alone); /* and runs without the other */
	work_faults(10);
	READ_WORDS(alone, words, 2);
	CHECK_CMP(words[1], >=, 10);
	OPEN(&attr, 0, -1, leader);
	READ_WORDS(leader, words, 3);
	CHECK_EQ(words[0], 2);
}

ABI_CASE("flag.fd_output", "samples go to the buffer of group_fd, which has to have one")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	const unsigned long flags = PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP;
	const struct perf_event_header *header;
	unsigned int samples = 0;
	struct ring ring;
	int target, other;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ID;
	target = OPEN_SELF(&attr);
	CHECK_REFUSED(&attr, 0, -1, target, flags, EINVAL);
	ring = MAP(target, 8);
	other = OPEN_FLAGS(&attr, 0, -1, target, flags);
	START(other);
	work_faults(10);
	STOP(other);
	while ((header = NEXT_OF(&ring, PERF_RECORD_SAMPLE))) {
		CHECK_EQ(SAMPLE(&attr, header).id, ID(other));
		samples++;
	}
	CHECK_EQ(samples, VALUE(other));
	CHECK_CMP(samples, >=, 10);
	OPEN_FLAGS(&attr, 0, -1, -1, PERF_FLAG_FD_OUTPUT); /* no target: nothing happens */
}

ABI_CASE("flag.fd_output", "without FD_NO_GROUP the event joins the group as well")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct ring ring;
	uint64_t words[3];
	int target;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ID;
	attr.read_format = PERF_FORMAT_GROUP;
	target = OPEN_SELF(&attr);
	ring = MAP(target, 8);
	attr.disabled = 0;
	OPEN_FLAGS(&attr, 0, -1, target, PERF_FLAG_FD_OUTPUT);
	READ_WORDS(target, words, 3);
	CHECK_EQ(words[0], 2);
	START(target);
	work_faults(10);
	STOP(target);
	READ_WORDS(target, words, 3);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), words[1] + words[2]);
}

static void wait_for(void *gate)
{
	abi_wait(gate);
}

ABI_CASE("flag.fd_output", "where it is refused the group stays as those have it who inherited it")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_DUMMY);
	struct gate gate = abi_gate();
	uint64_t words[2];
	pid_t child;
	int leader;

	attr.comm = 1;
	attr.inherit = 1;
	attr.read_format = PERF_FORMAT_GROUP;
	leader = OPEN_SELF(&attr);
	child = SPAWN(wait_for, &gate);
	CHECK_REFUSED(&attr, 0, -1, leader, PERF_FLAG_FD_OUTPUT, EINVAL);
	READ_WORDS(leader, words, 2);
	CHECK_EQ(words[0], 1);
	abi_pass(&gate);
	JOIN(child);
}

ABI_CASE("flag.fd_cloexec", "F_GETFD tells it, and it is clear without the flag")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int with = OPEN_FLAGS(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), without = OPEN_SELF(&attr);

	CHECK_EQ(CHECK_OK(fcntl(with, F_GETFD)), FD_CLOEXEC);
	CHECK_EQ(CHECK_OK(fcntl(without, F_GETFD)), 0);
}

ABI_CASE("flag.combined", "CLOEXEC and NO_GROUP together keep their meanings")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t words[2];
	int leader, fd;

	attr.read_format = PERF_FORMAT_GROUP;
	leader = OPEN_SELF(&attr);
	fd = OPEN_FLAGS(&attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC | PERF_FLAG_FD_NO_GROUP);
	CHECK_EQ(CHECK_OK(fcntl(fd, F_GETFD)), FD_CLOEXEC);
	READ_WORDS(leader, words, 2);
	CHECK_EQ(words[0], 1);
}

struct holder {
	int fd;
	bool read_it;
};

static void exec_with_descriptor(void *arg)
{
	struct holder *holder = arg;

	abi_exec(holder->read_it ? "read" : "nothing", (unsigned int)holder->fd);
}

ABI_CASE("flag.fd_cloexec life.exec-descriptor",
	 "without the flag the descriptor survives execve and reads")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct holder holder = {.read_it = true};
	pid_t pid;
	int status;

	holder.fd = OPEN_SELF(&attr);
	JOIN(SPAWN(exec_with_descriptor, &holder));
	holder.fd = OPEN_FLAGS(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	pid = SPAWN(exec_with_descriptor, &holder);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5); /* closed */
}
