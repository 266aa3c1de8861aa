// SPDX-License-Identifier: MIT
/*
 * What a process counts of itself stays the same while another one attaches events to it and takes
 * them off, as fast as it can: each time its thread is brought out of translated code, and goes on
 * in other code. Run by `tally run`.
 */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/conformance/workload.h"

enum { ATTACHED = 4000, LOOPS = 2000, STORES = 3, CALLS = 20, MEMBERS = 2, PERIOD = 10007 };

struct group {
	uint64_t nr, value[MEMBERS];
};

/* What the one that counts has found. */
static struct shared {
	uint64_t rounds;
	struct group expected, wrong; /* wrong.nr: not 0 if there was any */
} * shared;

static volatile uint64_t word;

static int open_event(struct perf_event_attr *attr, pid_t pid, int group)
{
	attr->size = sizeof(*attr);
	attr->exclude_kernel = attr->exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, attr, pid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static struct group count_once(int leader)
{
	struct group group = {0};

	ioctl(leader, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	ioctl(leader, PERF_EVENT_IOC_ENABLE, 0);
	work_loop(LOOPS);
	for (int i = 0; i < STORES; i++)
		work_store8(&word);
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	ioctl(leader, PERF_EVENT_IOC_DISABLE, 0);
	if (read(leader, &group, sizeof(group)) != sizeof(group))
		_exit(1);
	return group;
}

static _Noreturn void count_forever(bool samples)
{
	struct perf_event_attr attr = {
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.read_format = PERF_FORMAT_GROUP,
		.disabled = 1,
	};
	struct perf_event_attr branches = {.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS};
	struct perf_event_attr sampled = {.config = PERF_COUNT_HW_INSTRUCTIONS,
					  .sample_period = PERIOD};
	int leader = open_event(&attr, 0, -1);

	if (leader < 0 || open_event(&branches, 0, leader) < 0 ||
	    (samples && open_event(&sampled, 0, -1) < 0))
		_exit(1);
	count_once(leader);
	shared->expected = count_once(leader);
	for (;;) {
		struct group found = count_once(leader);

		for (int i = 0; i < MEMBERS; i++)
			if (found.value[i] != shared->expected.value[i] && !shared->wrong.nr)
				shared->wrong = found;
		__atomic_fetch_add(&shared->rounds, 1, __ATOMIC_RELEASE);
	}
}

static void attach_and_close(pid_t pid, struct perf_event_attr *attr)
{
	for (int i = 0; i < ATTACHED; i++) {
		int fd = open_event(attr, pid, -1);

		assert_true(fd >= 0);
		assert_int_equal(close(fd), 0);
	}
}

static void counts_beside(struct perf_event_attr *attr, bool samples)
{
	pid_t child;

	*shared = (struct shared){0};
	child = fork();
	assert_true(child >= 0);
	if (!child)
		count_forever(samples);
	while (!__atomic_load_n(&shared->rounds, __ATOMIC_ACQUIRE))
		assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	attach_and_close(child, attr);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	if (shared->wrong.nr)
		for (int i = 0; i < MEMBERS; i++)
			assert_int_equal(shared->wrong.value[i], shared->expected.value[i]);
}

/* Each alone, and beside samples. */
static void beside(struct perf_event_attr attr)
{
	counts_beside(&attr, false);
	counts_beside(&attr, true);
}

static void beside_counts(void **state)
{
	(void)state;
	beside((struct perf_event_attr){.config = PERF_COUNT_HW_INSTRUCTIONS});
}

static void beside_the_model(void **state)
{
	(void)state;
	beside((struct perf_event_attr){.config = PERF_COUNT_HW_CACHE_MISSES});
}

static void beside_samples(void **state)
{
	(void)state;
	beside((struct perf_event_attr){.config = PERF_COUNT_HW_INSTRUCTIONS, .sample_period = 3});
}

static void beside_samples_of_the_model(void **state)
{
	(void)state;
	beside((struct perf_event_attr){.config = PERF_COUNT_HW_CPU_CYCLES, .sample_period = 1009});
}

static int set_up(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_counts),
		cmocka_unit_test(beside_the_model),
		cmocka_unit_test(beside_samples),
		cmocka_unit_test(beside_samples_of_the_model),
	};

	return cmocka_run_group_tests_name("run: counts beside others'", tests, set_up, NULL);
}
