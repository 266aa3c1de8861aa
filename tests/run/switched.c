// SPDX-License-Identifier: MIT
/*
 * A group of events that another process reads and switches while the program
 * runs: all of it at one place of the program, so events of one kind agree,
 * whatever is done to them together. Run by `tally run`.
 */
#include <linux/perf_event.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/conformance/workload.h"

enum { MEMBERS = 4, WINDOWS = 20000, ROUNDS = 1000, READS = 4, LOOPS = 300, PERIOD = 10007 };

/* More than a pipe holds at a time. */
enum { BLOCK = 1 << 18, PIECE = 1 << 14, CALLS = 6000 };

struct group {
	uint64_t nr, value[MEMBERS];
};

static volatile uint64_t *rounds;

static int open_event(struct perf_event_attr attr, pid_t pid, int group)
{
	attr.size = sizeof(attr);
	attr.read_format = PERF_FORMAT_GROUP;
	attr.exclude_kernel = attr.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static pid_t start_program(void)
{
	const pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (; !child; ++*rounds)
		work_loop(LOOPS);
	while (!*rounds)
		assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	return child;
}

/* One of the members may be sampled: its overflows are the program's own. */
static int open_group(pid_t pid, uint64_t config, uint64_t period)
{
	struct perf_event_attr attr = {.config = config, .disabled = 1, .sample_period = period};
	const int leader = open_event(attr, pid, -1);

	assert_true(leader >= 0);
	attr.disabled = attr.sample_period = 0;
	for (int i = 1; i < MEMBERS; i++)
		assert_true(open_event(attr, pid, leader) >= 0);
	return leader;
}

static struct group read_group(int leader)
{
	struct group found = {0};

	assert_int_equal(read(leader, &found, sizeof(found)), sizeof(found));
	return found;
}

static void assert_agrees(const struct group *group)
{
	assert_int_equal(group->nr, MEMBERS);
	for (int i = 1; i < MEMBERS; i++)
		assert_int_equal(group->value[i], group->value[0]);
}

static void agree(uint64_t config, uint64_t period)
{
	static const unsigned long calls[] = {PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE,
					      PERF_EVENT_IOC_RESET};
	const pid_t child = start_program();
	const int leader = open_group(child, config, period);
	struct group before = {0}, now;

	srand(1);
	for (int i = 0; i < WINDOWS; i++) {
		const unsigned long call = calls[rand() % 3];

		assert_int_equal(ioctl(leader, call, PERF_IOC_FLAG_GROUP), 0);
		for (int reads = 0; reads < READS; reads++) {
			now = read_group(leader);
			assert_agrees(&now);
		}
		if (call != PERF_EVENT_IOC_RESET)
			assert_true(now.value[0] >= before.value[0]);
		before = now;
	}
	/* Meanwhile it may have been without a processor. */
	assert_int_equal(ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP), 0);
	for (const uint64_t enough = *rounds + ROUNDS; *rounds < enough;)
		sched_yield();
	now = read_group(leader);
	assert_agrees(&now);
	assert_true(now.value[0] > before.value[0]);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(leader);
}

static void instructions(void **state)
{
	(void)state;
	agree(PERF_COUNT_HW_INSTRUCTIONS, 0);
}

static void branches_that_are_sampled(void **state)
{
	(void)state;
	agree(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, PERIOD);
}

static void what_is_modelled(void **state)
{
	(void)state;
	agree(PERF_COUNT_HW_CPU_CYCLES, 0);
}

static pid_t start_reader(int from)
{
	const pid_t child = fork();
	static char block[PIECE];

	assert_true(child >= 0);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!child)
		if (read(from, block, sizeof(block)) <= 0)
			_exit(1);
	return child;
}

/* Natively it is not, however often the processor is interrupted. */
static pid_t start_writer(int to, volatile uint64_t *cut_short)
{
	static char block[BLOCK];
	const pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!child) {
		*cut_short += write(to, block, sizeof(block)) != sizeof(block);
		work_loop(LOOPS);
		++*rounds;
	}
	return child;
}

/* What brings the program out of its code does not come in a call that follows.
 */
static void calls_are_not_cut_short(void **state)
{
	volatile uint64_t *cut_short = rounds + 1;
	int ends[2], leader, status;
	pid_t reader, writer;
	uint64_t enough;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	*cut_short = 0;
	reader = start_reader(ends[0]);
	writer = start_writer(ends[1], cut_short);
	leader = open_group(writer, PERF_COUNT_HW_INSTRUCTIONS, 0);
	for (enough = *rounds + CALLS; *rounds < enough;) {
		read_group(leader);
		ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
		read_group(leader);
		ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	}
	assert_int_equal(*cut_short, 0);
	kill(writer, SIGKILL);
	kill(reader, SIGKILL);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(waitpid(reader, &status, 0), reader);
	close(leader);
	close(ends[0]);
	close(ends[1]);
}

/* What the kernel then leaves out of a signal is who has sent it. */
static void no_signal_can_be_queued(void **state)
{
	const struct rlimit none = {0};
	int leader, status;
	pid_t child;

	(void)state;
	*rounds = 0;
	child = start_program();
	assert_int_equal(prlimit(child, RLIMIT_SIGPENDING, &none, NULL), 0);
	leader = open_group(child, PERF_COUNT_HW_INSTRUCTIONS, 0);
	for (int i = 0; i < WINDOWS; i++) {
		ioctl(leader, i % 2 ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
		assert_int_equal(waitpid(child, &status, WNOHANG), 0);
	}
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(leader);
}

/* ---- many of them ---- */

enum { CROWD = 60, LOOKS = 5, LOOK_NS = 200000000, SOON_NS = CROWD * 1000000 };

static int64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static int64_t look_at_all(const int *events)
{
	const int64_t since = nanoseconds();

	for (int i = 0; i < CROWD; i++)
		read_group(events[i]);
	return nanoseconds() - since;
}

/* Two sleeps for each of them, which take the longer the more there are who want the processor. */
static int64_t sleep_for_all(void)
{
	const struct timespec moment = {.tv_nsec = 20000};
	const int64_t since = nanoseconds();

	for (int i = 0; i < 2 * CROWD; i++)
		nanosleep(&moment, NULL);
	return nanoseconds() - since;
}

/*
 * Who reads them does not wait for each to get a processor. On a machine that has others to run,
 * too, he may wait for his own.
 */
static void a_crowd(void **state)
{
	const struct timespec moment = {.tv_nsec = LOOK_NS};
	pid_t programs[CROWD];
	int events[CROWD], slow = 0;

	(void)state;
	for (int i = 0; i < CROWD; i++) {
		programs[i] = start_program();
		events[i] = open_group(programs[i], PERF_COUNT_HW_INSTRUCTIONS, 0);
		assert_int_equal(ioctl(events[i], PERF_EVENT_IOC_ENABLE, 0), 0);
	}
	for (int i = 0; i < LOOKS; i++) {
		int64_t took;

		nanosleep(&moment, NULL);
		took = look_at_all(events);
		slow += took > SOON_NS && took > sleep_for_all() / 2;
	}
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(kill(programs[i], SIGKILL), 0);
		assert_int_equal(waitpid(programs[i], NULL, 0), programs[i]);
		close(events[i]);
	}
	assert_in_range(slow, 0, LOOKS / 2);
}

static int set_up(void **state)
{
	(void)state;
	rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return rounds == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions),
		cmocka_unit_test(branches_that_are_sampled),
		cmocka_unit_test(what_is_modelled),
		cmocka_unit_test(calls_are_not_cut_short),
		cmocka_unit_test(no_signal_can_be_queued),
		cmocka_unit_test(a_crowd),
	};

	return cmocka_run_group_tests_name("run: a group switched from elsewhere", tests, set_up,
					   NULL);
}
