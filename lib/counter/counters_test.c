// SPDX-License-Identifier: MIT
/* Lists of events on every kind of target, with work whose count is known. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/counter.h>
#include <tally/workload.h>

#include "lib/cgroup.h"
#include "lib/counter/cpulist.h"
#include "lib/counter/faults_test.h"
#include "lib/probe/system.h"

#define NOBODY 65534
#define SKIP(...)                                                                                  \
	do {                                                                                       \
		print_message("# skipped: " __VA_ARGS__);                                          \
		print_message("\n");                                                               \
		skip();                                                                            \
	} while (0)

static struct tally_events *parse(const char *names)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;

	assert_non_null(events);
	if (tally_events_parse(events, names, 0, &err))
		fail_msg("%s (%s)", err.what, err.remedy);
	return events;
}

static struct tally_counters *open_counters(const struct tally_events *events,
					    const struct tally_target *target, unsigned int flags)
{
	struct tally_counters *counters;
	struct tally_error err;

	if (tally_counters_open(events, target, flags, &counters, &err))
		fail_msg("%s (%s)", err.what, err.remedy);
	return counters;
}

static struct tally_value sum(struct tally_counters *counters, size_t event)
{
	struct tally_value value;

	assert_int_equal(tally_counters_sum(counters, event, &value), 0);
	return value;
}

static void skip_unless_root(void)
{
	if (geteuid() != 0)
		SKIP("needs root");
}

/* Root in a container is no more than others here. */
static void skip_unless_privileged(void)
{
	struct tally_system system = {0};

	tly_system_facts(&system);
	if (!system.cap_perfmon && !system.cap_sys_admin)
		SKIP("needs CAP_PERFMON");
}

/* What runs between enabling and disabling has been used before. */
static int warm_up(void **state)
{
	const struct tally_target target = {.kind = TALLY_TARGET_SELF};
	struct tally_events *events = parse("page-faults:u");
	struct tally_counters *counters = open_counters(events, &target, TALLY_OPEN_DISABLED);
	cpu_set_t set;

	(void)state;
	assert_int_equal(tally_counters_enable(counters), 0);
	fault(100);
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(tally_counters_disable(counters), 0);
	tally_counters_close(counters);
	tally_events_free(events);
	return 0;
}

static void test_self(void **state)
{
	struct tally_events *events = parse("page-faults:u,{task-clock:u,dummy:u}");
	const struct tally_target target = {.kind = TALLY_TARGET_SELF};
	struct tally_counters *counters = open_counters(events, &target, TALLY_OPEN_DISABLED);

	(void)state;
	assert_int_equal(tally_counters_events(counters), 3);
	assert_int_equal(tally_counters_tasks(counters), 1);
	assert_int_equal(tally_counters_cpus(counters), 1);
	assert_int_equal(tally_counters_task(counters, 0), 0);
	assert_int_equal(tally_counters_cpu(counters, 0), -1);
	fault(5);
	assert_int_equal(sum(counters, 0).state, TALLY_NOT_COUNTED);
	assert_int_equal(tally_counters_enable(counters), 0);
	fault(50);
	assert_int_equal(tally_counters_disable(counters), 0);
	fault(5);
	assert_int_equal(sum(counters, 0).scaled, 50);
	assert_int_equal(sum(counters, 0).state, TALLY_COUNTED);
	assert_int_equal(sum(counters, 0).source, TALLY_SOURCE_KERNEL);
	assert_true(sum(counters, 1).raw > 0);
	assert_int_equal(sum(counters, 2).raw, 0);
	assert_int_equal(sum(counters, 2).state, TALLY_COUNTED);
	assert_int_equal(tally_counters_reset(counters), 0);
	assert_int_equal(sum(counters, 0).raw, 0);
	tally_counters_close(counters);
	tally_counters_close(NULL);
	tally_events_free(events);
}

/* The list is the caller's: opening works on copies of its attrs. */
static void test_attrs(void **state)
{
	struct tally_events *events = parse("page-faults:u,{task-clock:u,dummy:u}");
	const struct tally_target target = {.kind = TALLY_TARGET_SELF};
	struct tally_counters *counters =
		open_counters(events, &target,
			      TALLY_OPEN_DISABLED | TALLY_OPEN_INHERIT | TALLY_OPEN_ENABLE_ON_EXEC);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const struct perf_event_attr *attr = tally_counters_attr(counters, i);
		const struct tally_event *event = tally_events_at(events, i);

		assert_int_equal(attr->inherit, 1);
		assert_int_equal(attr->disabled, i != 2);
		assert_int_equal(attr->enable_on_exec, i != 2);
		assert_int_equal(attr->config, event->attr->config);
		assert_true(attr->read_format & PERF_FORMAT_ID);
		assert_int_equal(event->attr->inherit, 0);
		assert_int_equal(event->attr->read_format, 0);
	}
	tally_counters_close(counters);
	tally_events_free(events);
}

static void *fault_in_thread(void *nr)
{
	fault((uintptr_t)nr);
	return NULL;
}

static void test_inherit(void **state)
{
	static const unsigned int flags[] = {0, TALLY_OPEN_INHERIT};
	const struct tally_target target = {.kind = TALLY_TARGET_SELF};
	struct tally_events *events = parse("page-faults:u");
	struct tally_counters *counters;
	pthread_t thread;
	uint64_t alone;

	(void)state;
	for (int i = 0; i < 2; i++) {
		counters = open_counters(events, &target, TALLY_OPEN_DISABLED | flags[i]);
		tally_counters_enable(counters);
		pthread_create(&thread, NULL, fault_in_thread, (void *)1000);
		pthread_join(thread, NULL);
		tally_counters_disable(counters);
		if (i == 0)
			alone = sum(counters, 0).raw;
		else
			assert_true(sum(counters, 0).raw >= 1000);
		tally_counters_close(counters);
	}
	assert_true(alone < 1000);
	tally_events_free(events);
}

/* The writes of a command between its exec and its end, counted by the kernel's own tracepoint. */
static void test_command(void **state)
{
	char *argv[] = {"dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=777", "status=none",
			NULL};
	struct tally_target target = {.kind = TALLY_TARGET_PROCESS, .nr_ids = 1};
	struct tally_events *events;
	struct tally_counters *counters;
	struct tally_workload *workload;
	struct tally_error err;
	pid_t pid;

	(void)state;
	skip_unless_privileged();
	events = tally_events_new();
	if (tally_events_parse(events, "syscalls:sys_enter_write", 0, &err) ||
	    tally_events_set_filter(events, "count == 1", &err)) {
		tally_events_free(events);
		SKIP("%s", err.what);
	}
	assert_int_equal(tally_workload_prepare(argv, -1, &workload, &err), 0);
	pid = tally_workload_pid(workload);
	target.ids = &pid;
	counters =
		open_counters(events, &target,
			      TALLY_OPEN_DISABLED | TALLY_OPEN_ENABLE_ON_EXEC | TALLY_OPEN_INHERIT);
	assert_int_equal(tally_workload_start(workload, &err), 0);
	assert_int_equal(tally_workload_wait(workload, true, NULL, NULL), 1);
	assert_int_equal(sum(counters, 0).raw, 777);
	assert_int_equal(sum(counters, 0).source, TALLY_SOURCE_KERNEL);
	tally_counters_close(counters);
	tally_workload_free(workload);
	tally_events_free(events);
}

/* Threads of this process that are there, waiting, and then fault as often as they are told. */
struct worker {
	pthread_t thread;
	pthread_barrier_t *start;
	size_t faults;
	pid_t tid;
};

static void *work(void *ctx)
{
	struct worker *worker = ctx;

	worker->tid = gettid();
	pthread_barrier_wait(worker->start); /* the tids are known */
	pthread_barrier_wait(worker->start); /* the counters are open */
	fault(worker->faults);
	return NULL;
}

static void start_workers(struct worker *workers, size_t nr, pthread_barrier_t *start)
{
	pthread_barrier_init(start, NULL, nr + 1);
	for (size_t i = 0; i < nr; i++) {
		workers[i].start = start;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	pthread_barrier_wait(start);
}

static void finish_workers(struct worker *workers, size_t nr, pthread_barrier_t *start)
{
	pthread_barrier_wait(start);
	for (size_t i = 0; i < nr; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_barrier_destroy(start);
}

static size_t row_of(const struct tally_counters *counters, pid_t tid)
{
	for (size_t i = 0; i < tally_counters_tasks(counters); i++)
		if (tally_counters_task(counters, i) == tid)
			return i;
	fail_msg("no row for %d", tid);
	return 0;
}

static uint64_t faults_of(struct tally_counters *counters, pid_t tid)
{
	struct tally_value value;

	assert_int_equal(tally_counters_read(counters, 0, row_of(counters, tid), 0, &value), 0);
	return value.raw;
}

static void test_threads_of_a_process(void **state)
{
	struct worker workers[2] = {{.faults = 1000}, {.faults = 3000}};
	const pid_t pid = getpid();
	const struct tally_target target = {.kind = TALLY_TARGET_PROCESS, .ids = &pid, .nr_ids = 1};
	struct tally_events *events = parse("page-faults:u");
	struct tally_counters *counters;
	pthread_barrier_t start;

	(void)state;
	start_workers(workers, 2, &start);
	counters = open_counters(events, &target, 0);
	assert_int_equal(tally_counters_tasks(counters), 3);
	finish_workers(workers, 2, &start);
	/* Of a thread that has ended the count stays. */
	assert_in_range(faults_of(counters, workers[0].tid), 1000, 1100);
	assert_in_range(faults_of(counters, workers[1].tid), 3000, 3100);
	assert_in_range(sum(counters, 0).raw, 4000, 4500);
	tally_counters_close(counters);
	tally_events_free(events);
}

static void test_chosen_threads(void **state)
{
	struct worker workers[2] = {{.faults = 1000}, {.faults = 3000}};
	struct tally_events *events = parse("page-faults:u");
	struct tally_target target = {.kind = TALLY_TARGET_THREADS, .nr_ids = 3};
	struct tally_counters *counters;
	pthread_barrier_t start;
	pid_t ids[3];

	(void)state;
	start_workers(workers, 2, &start);
	/* Named twice, counted once. */
	ids[0] = ids[1] = ids[2] = workers[1].tid;
	target.ids = ids;
	counters = open_counters(events, &target, 0);
	assert_int_equal(tally_counters_tasks(counters), 1);
	finish_workers(workers, 2, &start);
	assert_in_range(sum(counters, 0).raw, 3000, 3100);
	tally_counters_close(counters);
	tally_events_free(events);
}

static bool stop_spawning;

static void *nothing(void *ctx)
{
	return ctx;
}

static void *spawn(void *ctx)
{
	while (!__atomic_load_n(&stop_spawning, __ATOMIC_RELAXED)) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, nothing, NULL) == 0)
			pthread_join(thread, NULL);
	}
	return ctx;
}

/* Threads that end between being listed and being opened are no error. */
static void test_threads_that_come_and_go(void **state)
{
	const pid_t pid = getpid();
	const struct tally_target target = {.kind = TALLY_TARGET_PROCESS, .ids = &pid, .nr_ids = 1};
	struct tally_events *events = parse("page-faults:u,task-clock:u");
	pthread_t spawner;

	(void)state;
	__atomic_store_n(&stop_spawning, false, __ATOMIC_RELAXED);
	pthread_create(&spawner, NULL, spawn, NULL);
	for (int i = 0; i < 200; i++) {
		struct tally_counters *counters =
			open_counters(events, &target, TALLY_OPEN_INHERIT);

		assert_int_equal(sum(counters, 0).state, TALLY_COUNTED);
		tally_counters_close(counters);
	}
	__atomic_store_n(&stop_spawning, true, __ATOMIC_RELAXED);
	pthread_join(spawner, NULL);
	tally_events_free(events);
}

static void check_error(const struct tally_events *events, const struct tally_target *target,
			unsigned int flags, int code, const char *what, const char *remedy)
{
	struct tally_counters *counters = (void *)1;
	struct tally_error err = {0};

	assert_int_equal(tally_counters_open(events, target, flags, &counters, &err), code);
	assert_null(counters);
	assert_int_equal(err.code, code);
	if (!strstr(err.what, what) || !strstr(err.remedy, remedy))
		fail_msg("%s (%s)", err.what, err.remedy);
	assert_int_equal(tally_counters_open(events, target, flags, &counters, NULL), code);
}

static void test_targets_that_are_not_there(void **state)
{
	struct tally_events *events = parse("page-faults:u"), *none = tally_events_new();
	struct tally_target target = {.kind = TALLY_TARGET_PROCESS, .nr_ids = 1};
	pid_t ids[2] = {1 << 30, getpid()}, zombie;
	siginfo_t info;

	(void)state;
	target.ids = ids;
	check_error(events, &target, 0, -ESRCH, "no process 1073741824", "ps -e");
	target.kind = TALLY_TARGET_THREADS;
	target.nr_ids = 2;
	check_error(events, &target, TALLY_OPEN_TOLERANT, -ESRCH, "no thread 1073741824", "ps -eL");
	ids[0] = -3;
	check_error(events, &target, 0, -EINVAL, "-3 is no process id", "above 0");
	target.nr_ids = 0;
	check_error(events, &target, 0, -EINVAL, "no process was given", "at least one");
	target = (struct tally_target){.kind = TALLY_TARGET_SELF};
	check_error(none, &target, 0, -EINVAL, "no event", "task-clock");
	tally_events_free(none);

	zombie = fork();
	if (zombie == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, zombie, &info, WEXITED | WNOWAIT), 0);
	target = (struct tally_target){.kind = TALLY_TARGET_PROCESS, .ids = &zombie, .nr_ids = 1};
	check_error(events, &target, 0, -ESRCH, "or it has ended", "ps");
	waitpid(zombie, NULL, 0);
	tally_events_free(events);
}

/* One event of a list, or of a group, that this machine does not have takes none of the others. */
static void test_tolerant(void **state)
{
	static const char *const lists[] = {"cycles:u,page-faults:u", "{cycles:u,page-faults:u}"};
	const struct tally_target target = {.kind = TALLY_TARGET_SELF};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct tally_events *events = parse(lists[i]);
		struct tally_counters *counters =
			open_counters(events, &target, TALLY_OPEN_TOLERANT | TALLY_OPEN_DISABLED);

		if (!tally_counters_error(counters, 0)) {
			tally_counters_close(counters);
			tally_events_free(events);
			SKIP("this machine has a PMU");
		}
		assert_int_equal(sum(counters, 0).state, TALLY_NOT_SUPPORTED);
		assert_int_equal(sum(counters, 0).source, TALLY_SOURCE_NONE);
		assert_null(tally_counters_at(counters, 0, 0, 0));
		assert_non_null(
			strstr(tally_counters_error(counters, 0)->what, "cannot open cycles:u"));
		assert_null(tally_counters_error(counters, 1));
		tally_counters_enable(counters);
		fault(12);
		tally_counters_disable(counters);
		assert_int_equal(sum(counters, 1).scaled, 12);
		tally_counters_close(counters);
		check_error(events, &target, 0, -ENOENT, "no hardware PMU", "software event");
		tally_events_free(events);
	}
}

/* A group of which one event does not go with the leader: both are counted when it is weak. */
static void test_weak_group(void **state)
{
	static const char *const lists[] = {"{task-clock:u,page-faults:u}",
					    "{task-clock:u,page-faults:u}:W"};
	const struct tally_target target = {.kind = TALLY_TARGET_SELF};

	(void)state;
	for (int weak = 0; weak < 2; weak++) {
		struct tally_events *events = parse(lists[weak]);
		struct tally_counters *counters;

		/* Members must have their leader's clock. */
		tally_events_at(events, 1)->attr->use_clockid = 1;
		tally_events_at(events, 1)->attr->clockid = 1;
		if (!weak) {
			check_error(events, &target, 0, -EINVAL, "attr.use_clockid is not the",
				    "same inheritance and clock");
		} else {
			counters = open_counters(events, &target, TALLY_OPEN_DISABLED);
			/* Each leads itself now and starts disabled. */
			assert_int_equal(tally_counters_attr(counters, 1)->disabled, 1);
			tally_counters_enable(counters);
			fault(8);
			tally_counters_disable(counters);
			assert_int_equal(sum(counters, 1).raw, 8);
			assert_int_equal(sum(counters, 0).state, TALLY_COUNTED);
			tally_counters_close(counters);
		}
		tally_events_free(events);
	}
}

static void test_highest_precision(void **state)
{
	struct tally_events *events = parse("page-faults:uP");
	const struct tally_target target = {.kind = TALLY_TARGET_SELF};
	struct tally_counters *counters = open_counters(events, &target, 0);

	(void)state;
	/* Software events take any. */
	assert_int_equal(tally_counters_attr(counters, 0)->precise_ip, 3);
	tally_counters_close(counters);
	tally_events_free(events);
}

/* A unit with a cpumask (uncore) is opened on its processors only. */
static void test_unit_on_one_processor(void **state)
{
	struct tally_events *events;
	struct tally_target target = {.kind = TALLY_TARGET_SYSTEM};
	struct tally_counters *counters;
	struct tally_value value;
	int *online;
	size_t nr;

	(void)state;
	skip_unless_privileged();
	assert_int_equal(tly_cpulist_online(&online, &nr), 0);
	if (nr < 2) {
		free(online);
		SKIP("needs two processors");
	}
	events = parse("cpu-clock,page-faults");
	tally_events_at(events, 0)->cpus = "0";
	counters = open_counters(events, &target, 0);
	assert_non_null(tally_counters_at(counters, 0, 0, 0));
	assert_null(tally_counters_at(counters, 0, 0, 1));
	assert_non_null(tally_counters_at(counters, 1, 0, 1));
	assert_int_equal(tally_counters_read(counters, 0, 0, 1, &value), 0);
	assert_int_equal(value.state, TALLY_NOT_COUNTED);
	assert_int_equal(sum(counters, 0).state, TALLY_COUNTED);
	tally_counters_close(counters);
	target.cpus = online + 1;
	target.nr_cpus = 1;
	check_error(events, &target, 0, -EINVAL, "on processor 0 only", "add processor 0");
	tally_events_free(events);
	free(online);
}

static void test_system_wide(void **state)
{
	struct tally_events *events;
	const struct tally_target target = {.kind = TALLY_TARGET_SYSTEM};
	struct tally_counters *counters;
	int *online, status;
	uint64_t cells = 0;
	size_t nr;
	pid_t pid;

	(void)state;
	skip_unless_privileged();
	assert_int_equal(tly_cpulist_online(&online, &nr), 0);
	events = parse("page-faults:u");
	counters = open_counters(events, &target, TALLY_OPEN_DISABLED | TALLY_OPEN_INHERIT);
	assert_int_equal(tally_counters_cpus(counters), nr);
	assert_int_equal(tally_counters_task(counters, 0), -1);
	assert_int_equal(tally_counters_attr(counters, 0)->inherit, 0);
	tally_counters_enable(counters);
	pid = fork();
	if (pid == 0) {
		fault(2000);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	tally_counters_disable(counters);
	assert_true(sum(counters, 0).raw >= 2000);
	for (size_t i = 0; i < nr; i++) {
		struct tally_value value;

		assert_int_equal(tally_counters_cpu(counters, i), online[i]);
		assert_int_equal(tally_counters_read(counters, 0, 0, i, &value), 0);
		cells += value.raw;
	}
	assert_int_equal(cells, sum(counters, 0).raw);
	tally_counters_close(counters);
	tally_events_free(events);
	free(online);
}

static void move_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

/*
 * A task bound to each processor in turn: a cell that waits for the task to come back is not
 * multiplexed, and nothing may be scaled up for that.
 */
static void test_task_on_each_processor(void **state)
{
	struct tally_events *events;
	struct tally_target target = {.kind = TALLY_TARGET_SELF};
	struct tally_counters *counters;
	struct tally_value value;
	cpu_set_t before;
	int *online;
	size_t nr;

	(void)state;
	assert_int_equal(tly_cpulist_online(&online, &nr), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	if (nr < 2 || !CPU_ISSET(online[0], &before) || !CPU_ISSET(online[1], &before)) {
		free(online);
		SKIP("needs two processors");
	}
	events = parse("page-faults:u");
	target.cpus = online;
	target.nr_cpus = nr;
	counters = open_counters(events, &target, TALLY_OPEN_DISABLED);
	tally_counters_enable(counters);
	move_to(online[0]);
	fault(100);
	move_to(online[1]);
	fault(300);
	tally_counters_disable(counters);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(tally_counters_read(counters, 0, 0, 0, &value), 0);
	assert_int_equal(value.raw, 100);
	assert_true(value.time_running < value.time_enabled);
	assert_int_equal(value.scaled, 100);
	assert_int_equal(value.source, TALLY_SOURCE_KERNEL);
	assert_int_equal(tally_counters_read(counters, 0, 0, 1, &value), 0);
	assert_int_equal(value.scaled, 300);
	assert_int_equal(sum(counters, 0).raw, 400);
	assert_in_range(sum(counters, 0).scaled, 400, 401);
	tally_counters_close(counters);

	/* Of one processor alone, too. */
	target.nr_cpus = 1;
	counters = open_counters(events, &target, TALLY_OPEN_DISABLED);
	tally_counters_enable(counters);
	move_to(online[0]);
	fault(100);
	move_to(online[1]);
	fault(300);
	tally_counters_disable(counters);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(sum(counters, 0).scaled, 100);
	tally_counters_close(counters);
	tally_events_free(events);
	free(online);
}

static void write_pid(int cgroup, pid_t pid)
{
	int fd = openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%d", pid) > 0);
	close(fd);
}

static void test_cgroup(void **state)
{
	static const char name[] = "tally-test";
	struct tally_events *events;
	const struct tally_target target = {.kind = TALLY_TARGET_CGROUP, .cgroup = name};
	struct tally_counters *counters;
	struct tally_error err;
	int root, status;
	pid_t pid;

	(void)state;
	skip_unless_privileged();
	root = tly_cgroup_open("/", &err);
	if (root < 0)
		SKIP("%s", err.what);
	if (mkdirat(root, name, 0755) < 0 && errno != EEXIST) {
		close(root);
		SKIP("cannot make a cgroup: %s", strerror(errno));
	}
	events = parse("page-faults:u");
	counters = open_counters(events, &target, 0);
	pid = fork();
	if (pid == 0) {
		int fd = openat(root, name, O_RDONLY | O_DIRECTORY);

		fault(500);
		write_pid(fd, getpid());
		fault(1000);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_in_range(sum(counters, 0).raw, 1000, 1100);
	tally_counters_close(counters);
	unlinkat(root, name, AT_REMOVEDIR);
	check_error(events, &target, 0, -ENOENT, "cannot open cgroup 'tally-test'", "find /");
	close(root);
	tally_events_free(events);
}

static uint64_t nanoseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/*
 * The clock of a cgroup that ran before its first event was opened must not charge that event for
 * it. The kernel is seen to disturb these clocks also when other processes are measured at the
 * same moment, so that one good reading of several is enough; an event that is the first is never
 * read well.
 */
static void test_cgroup_times(void **state)
{
	struct tally_events *events = parse("dummy");
	const struct tally_target target = {.kind = TALLY_TARGET_CGROUP, .cgroup = "/"};
	const struct timespec moment = {.tv_nsec = 5000000};
	struct tally_error err;
	bool good = false;

	(void)state;
	for (int i = 0; i < 20 && !good; i++) {
		struct tally_counters *counters;
		uint64_t start, elapsed;

		if (tally_counters_open(events, &target, TALLY_OPEN_DISABLED, &counters, &err) < 0) {
			tally_events_free(events);
			SKIP("%s", err.what);
		}
		nanosleep(&moment, NULL);
		start = nanoseconds();
		tally_counters_enable(counters);
		tally_counters_disable(counters);
		elapsed = nanoseconds() - start;
		good = sum(counters, 0).time_enabled <= elapsed * tally_counters_cpus(counters);
		tally_counters_close(counters);
	}
	tally_events_free(events);
	assert_true(good);
}

/* Gives up the rights in a child; returns its exit status: 0 is good. */
static int as_nobody(int (*body)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(100);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void skip_unless_paranoid_2(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -1;

	skip_unless_root();
	if (file) {
		assert_int_equal(fscanf(file, "%d", &level), 1);
		fclose(file);
	}
	if (level != 2)
		SKIP("perf_event_paranoid is not 2");
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return __LINE__ % 90 + 1;                                                  \
	} while (0)

static int count_as_nobody(void)
{
	const struct tally_target target = {.kind = TALLY_TARGET_SELF};
	struct tally_events *events = tally_events_new();
	struct tally_counters *counters;
	struct tally_value value;
	struct tally_error err;

	CHECK(tally_events_parse(events, "page-faults,page-faults:k,page-faults:u,cs", 0, &err) ==
	      0);
	/* All that is asked for, or nothing. */
	CHECK(tally_counters_open(events, &target, 0, &counters, &err) == -EACCES);
	CHECK(strstr(err.remedy, "modifier u"));
	/* What may not be counted says so. */
	CHECK(tally_counters_open(events, &target, TALLY_OPEN_TOLERANT, &counters, &err) == 0);
	CHECK(tally_counters_sum(counters, 0, &value) == 0);
	CHECK(value.state == TALLY_NOT_PERMITTED);
	CHECK(tally_counters_sum(counters, 2, &value) == 0);
	CHECK(value.state == TALLY_COUNTED);
	tally_counters_close(counters);
	/* What did not ask for the kernel's side does without; what did does not. */
	CHECK(tally_counters_open(events, &target, TALLY_OPEN_TOLERANT | TALLY_OPEN_USER_FALLBACK,
				  &counters, &err) == 0);
	CHECK(tally_counters_error(counters, 0) == NULL);
	CHECK(tally_counters_attr(counters, 0)->exclude_kernel);
	CHECK(tally_events_at(events, 0)->attr->exclude_kernel == 0);
	CHECK(tally_counters_error(counters, 1)->code == -EACCES);
	/* User mode switches no context: 0 would be no answer. */
	CHECK(tally_counters_error(counters, 3)->code == -EACCES);
	CHECK(strstr(tally_counters_error(counters, 3)->what, "it happens in the kernel"));
	tally_counters_close(counters);
	tally_events_free(events);
	return 0;
}

static void test_fallback_to_user_mode(void **state)
{
	(void)state;
	skip_unless_paranoid_2();
	assert_int_equal(as_nobody(count_as_nobody), 0);
}

/* When no event at all is permitted the target cannot be measured: an error even if tolerant. */
static int count_system_as_nobody(void)
{
	const struct tally_target target = {.kind = TALLY_TARGET_SYSTEM};
	struct tally_events *events = tally_events_new();
	struct tally_counters *counters;
	struct tally_error err;

	CHECK(tally_events_parse(events, "page-faults:u,cpu-clock:u", 0, &err) == 0);
	CHECK(tally_counters_open(events, &target, TALLY_OPEN_TOLERANT, &counters, &err) ==
	      -EACCES);
	CHECK(strstr(err.what, "all tasks of a processor"));
	tally_events_free(events);
	return 0;
}

static void test_nothing_permitted(void **state)
{
	(void)state;
	skip_unless_paranoid_2();
	assert_int_equal(as_nobody(count_system_as_nobody), 0);
}

static int use_up_descriptors(void)
{
	const struct tally_target target = {.kind = TALLY_TARGET_SELF};
	struct tally_events *events = tally_events_new();
	const struct rlimit limit = {16, 16};
	struct tally_counters *counters;
	struct tally_error err;
	int before, after;

	for (int i = 0; i < 40; i++)
		CHECK(tally_events_parse(events, "page-faults:u", 0, &err) == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	before = dup(0);
	close(before);
	CHECK(tally_counters_open(events, &target, TALLY_OPEN_TOLERANT, &counters, &err) ==
	      -EMFILE);
	CHECK(strstr(err.what, "all 16 descriptors"));
	CHECK(strstr(err.remedy, "40 x 1 x 1 (events x tasks x processors): sudo prlimit"));
	/* What had been opened is closed again. */
	after = dup(0);
	CHECK(after == before);
	tally_events_free(events);
	return 0;
}

static void test_too_few_descriptors(void **state)
{
	(void)state;
	skip_unless_root();
	assert_int_equal(as_nobody(use_up_descriptors), 0);
}

static void test_cpulist(void **state)
{
	static const struct {
		const char *text;
		int code;
		size_t nr;
		int last;
	} rows[] = {
		{"0", 0, 1, 0},
		{"0-3,8\n", 0, 5, 8},
		{"5-5", 0, 1, 5},
		{"", 0, 0, 0},
		{"\n", 0, 0, 0},
		{"3,1", 0, 2, 1},
		{"65535", 0, 1, 65535},
		{"65536", -EINVAL, 0, 0},
		{"3-1", -EINVAL, 0, 0},
		{"1,", -EINVAL, 0, 0},
		{",1", -EINVAL, 0, 0},
		{"1-", -EINVAL, 0, 0},
		{"-1", -EINVAL, 0, 0},
		{"a", -EINVAL, 0, 0},
		{"1 2", -EINVAL, 0, 0},
		{"1\n2", -EINVAL, 0, 0},
		{"99999999999", -EINVAL, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t nr;
		int *cpus;

		assert_int_equal(tly_cpulist_parse(rows[i].text, &cpus, &nr), rows[i].code);
		assert_int_equal(nr, rows[i].nr);
		if (nr) {
			assert_int_equal(cpus[nr - 1], rows[i].last);
			assert_true(tly_cpulist_has(cpus, nr, rows[i].last));
			assert_false(tly_cpulist_has(cpus, nr, 4000));
		}
		free(cpus);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_attrs),
		cmocka_unit_test(test_inherit),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_threads_of_a_process),
		cmocka_unit_test(test_chosen_threads),
		cmocka_unit_test(test_threads_that_come_and_go),
		cmocka_unit_test(test_targets_that_are_not_there),
		cmocka_unit_test(test_tolerant),
		cmocka_unit_test(test_weak_group),
		cmocka_unit_test(test_highest_precision),
		cmocka_unit_test(test_unit_on_one_processor),
		cmocka_unit_test(test_system_wide),
		cmocka_unit_test(test_task_on_each_processor),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_cgroup_times),
		cmocka_unit_test(test_fallback_to_user_mode),
		cmocka_unit_test(test_nothing_permitted),
		cmocka_unit_test(test_too_few_descriptors),
		cmocka_unit_test(test_cpulist),
	};

	return cmocka_run_group_tests(tests, warm_up, NULL);
}
