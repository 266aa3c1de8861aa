// SPDX-License-Identifier: MIT
/* PR_TASK_PERF_EVENTS_ENABLE and _DISABLE: what belongs to the caller. */
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

static int faults_of(pid_t pid, int group, bool disabled)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.disabled = disabled;
	return OPEN(&attr, pid, -1, group);
}

ABI_CASE("prctl.enable prctl.disable", "all groups of the caller start and stop, values stay")
{
	int fds[2] = {faults_of(0, -1, true), faults_of(0, -1, true)};
	uint64_t value;

	CHECK_EQ(CHECK_OK(prctl(32 /* PR_TASK_PERF_EVENTS_ENABLE */)), 0);
	CHECK_CMP(abi_faults_add(fds[0]), >=, 10);
	CHECK_CMP(abi_faults_add(fds[1]), >=, 10);
	CHECK_EQ(CHECK_OK(prctl(31 /* PR_TASK_PERF_EVENTS_DISABLE */)), 0);
	value = VALUE(fds[0]);
	CHECK_EQ(abi_faults_add(fds[0]), 0);
	CHECK_EQ(abi_faults_add(fds[1]), 0);
	CHECK_EQ(VALUE(fds[0]), value);
	CHECK_OK(prctl(PR_TASK_PERF_EVENTS_ENABLE));
	CHECK_CMP(abi_faults_add(fds[0]), >=, 10);
}

struct other {
	struct gate go, done;
};

static void disables(void *arg)
{
	struct other *other = arg;

	CHECK_OK(prctl(PR_TASK_PERF_EVENTS_DISABLE));
	abi_pass(&other->done);
	abi_wait(&other->go);
	work_faults(30);
	abi_pass(&other->done);
	abi_wait(&other->go);
	work_faults(30);
	abi_pass(&other->done);
	abi_wait(&other->go);
}

ABI_CASE("prctl.scope prctl.scope-remote",
	 "an event on another task obeys who created it, not the task")
{
	struct other other = {abi_gate(), abi_gate()};
	int fd, own = faults_of(0, -1, false);
	pid_t pid = SPAWN(disables, &other);
	uint64_t value;

	fd = faults_of(pid, -1, false);
	abi_wait(&other.done);
	CHECK_CMP(abi_faults_add(own), >=, 10); /* the child of ours disabled nothing of ours */
	abi_pass(&other.go);
	abi_wait(&other.done);
	CHECK_CMP(VALUE(fd), >=, 30);
	CHECK_OK(prctl(PR_TASK_PERF_EVENTS_DISABLE));
	value = VALUE(fd);
	abi_pass(&other.go);
	abi_wait(&other.done);
	CHECK_EQ(VALUE(fd), value);
	abi_pass(&other.go);
	JOIN(pid);
}

static void *enables(void *arg)
{
	(void)arg;
	CHECK_OK(prctl(PR_TASK_PERF_EVENTS_ENABLE));
	return NULL;
}

static void *opens(void *arg)
{
	*(int *)arg = faults_of(getpid(), -1, true);
	return NULL;
}

static void disables_at_once(void *arg)
{
	(void)arg;
	CHECK_OK(prctl(PR_TASK_PERF_EVENTS_DISABLE));
}

ABI_CASE("prctl.scope-thread", "events belong to the thread that created them")
{
	int mine = faults_of(0, -1, true), of_thread = -1;
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, enables, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(abi_faults_add(mine), 0);
	CHECK_EQ(pthread_create(&thread, NULL, opens, &of_thread), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_OK(prctl(PR_TASK_PERF_EVENTS_ENABLE));
	CHECK_CMP(abi_faults_add(mine), >=, 10);
	CHECK_EQ(abi_faults_add(of_thread), 0); /* counts this thread, was created by that one */
	JOIN(SPAWN(disables_at_once, NULL));
	CHECK_CMP(abi_faults_add(mine), >=, 10);
}

static void creates_and_executes(void *arg)
{
	(void)arg;
	abi_exec("enable", (unsigned int)faults_of(0, -1, true));
}

ABI_CASE("prctl.scope", "who executes another program goes on owning what it created")
{
	JOIN(SPAWN(creates_and_executes, NULL));
}

ABI_CASE("prctl.leaders-only", "ENABLE reaches a member that was disabled on its own")
{
	int leader = faults_of(0, -1, true), member = faults_of(0, leader, true);

	START(leader);
	CHECK_EQ(abi_faults_add(member), 0);
	CHECK_OK(prctl(PR_TASK_PERF_EVENTS_ENABLE));
	CHECK_CMP(abi_faults_add(member), >=, 10);
	STOP(member);
	CHECK_EQ(abi_faults_add(member), 0);
	CHECK_OK(prctl(PR_TASK_PERF_EVENTS_DISABLE));
	CHECK_EQ(abi_faults_add(leader), 0);
	CHECK_OK(prctl(PR_TASK_PERF_EVENTS_ENABLE));
	CHECK_CMP(abi_faults_add(leader), >=, 10);
	CHECK_CMP(abi_faults_add(member), >=, 10);
}
