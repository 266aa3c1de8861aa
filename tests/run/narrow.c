// SPDX-License-Identifier: MIT
/* Code that counts where memory below 2 GiB has room for little of it, or none: an error, or
 * counts that are right, for each set of events. Run by `tally run`. */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/run/in_child.h"

#define MIB (1UL << 20)
#define GIB (1UL << 30)

/* Enough for one more set, and not for two. */
#define ROOM (8 * MIB)

/* All there is, in pieces, but for @rooms times as much as a set needs. */
static void fill(unsigned int rooms)
{
	void *piece;

	for (uint64_t at = MIB; at < 2 * GIB; at += MIB) {
		piece = mmap((void *)at, MIB, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			     0);
		if (piece == MAP_FAILED || (uint64_t)piece >= 2 * GIB)
			continue;
		/* Pieces that were to be elsewhere are in nobody's way. */
		if ((uint64_t)piece == at && rooms && at >= 512 * MIB && at % (16 * MIB) == 0) {
			munmap(piece, MIB);
			if (mmap((void *)at, ROOM, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				 -1, 0) != (void *)at)
				continue;
			munmap((void *)at, ROOM);
			at += ROOM - MIB;
			rooms--;
		}
	}
}

enum { LOOPS = 100000, KINDS = 3 };

static const struct kind {
	uint64_t config;
	uint64_t least, most; /* of work() */
} kinds[KINDS] = {
	{PERF_COUNT_HW_INSTRUCTIONS, 2 * LOOPS, 2 * LOOPS + 4000},
	{PERF_COUNT_HW_BRANCH_INSTRUCTIONS, LOOPS, LOOPS + 2000},
	{PERF_COUNT_HW_CPU_CYCLES, LOOPS / 16, UINT64_MAX},
};

static __attribute__((noinline)) void work(void)
{
	__asm__ volatile("mov %0, %%ecx\n"
			 "1: dec %%ecx\n"
			 "jnz 1b"
			 :
			 : "i"(LOOPS)
			 : "ecx", "cc");
}

static int open_here(uint64_t config, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = period,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : UINT64_MAX;
}

enum { RIGHT, WRONG, NO_MEMORY };

/* The events of one set, each bit one of them, at once. */
static int measure(unsigned int set, uint64_t period)
{
	int fds[KINDS], result = RIGHT;

	for (unsigned int i = 0; i < KINDS; i++) {
		fds[i] = set >> i & 1 ? open_here(kinds[i].config, period) : -1;
		if (set >> i & 1 && fds[i] < 0)
			result = errno == ENOMEM ? NO_MEMORY : WRONG;
	}
	if (!result) {
		uint64_t before[KINDS], after[KINDS];

		for (unsigned int i = 0; i < KINDS; i++)
			before[i] = fds[i] >= 0 ? count_of(fds[i]) : 0;
		work();
		for (unsigned int i = 0; i < KINDS; i++)
			after[i] = fds[i] >= 0 ? count_of(fds[i]) : 0;
		for (unsigned int i = 0; i < KINDS; i++)
			if (fds[i] >= 0 && (after[i] - before[i] < kinds[i].least ||
					    after[i] - before[i] > kinds[i].most)) {
				fprintf(stderr, "# set %u, period %lu, kind %u: %lu\n", set, period,
					i, after[i] - before[i]);
				result = WRONG;
			}
	}
	for (unsigned int i = 0; i < KINDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return result;
}

/* One after another. @must: of what is counted without the model each can be. */
static int measure_all(bool must)
{
	for (unsigned int round = 0; round < 2; round++)
		for (unsigned int set = 1; set < 1 << KINDS; set++)
			for (uint64_t period = 0; period < 20000; period += 10007) {
				const int result = measure(set, period);

				if (result == WRONG || (result && must && !(set & 4)))
					return result;
			}
	return RIGHT;
}

static int without_room(void)
{
	fill(0);
	return measure_all(false);
}

static void no_count_is_wrong_without_room(void **state)
{
	(void)state;
	assert_int_equal(in_child(without_room), RIGHT);
}

static int with_room_for_one(void)
{
	fill(1);
	return measure_all(true);
}

static void one_set_after_another_has_the_room(void **state)
{
	(void)state;
	assert_int_equal(in_child(with_room_for_one), RIGHT);
}

static int with_room_for_two(void)
{
	fill(2);
	return measure_all(true);
}

static void one_set_after_another_has_one_of_two(void **state)
{
	(void)state;
	assert_int_equal(in_child(with_room_for_two), RIGHT);
}

/* ---- what is looked for ---- */

enum { TIMES = 10 };

static volatile int touched;

static __attribute__((noinline)) void touch(int value)
{
	touched = value;
}

static int open_breakpoint(uint32_t type, const volatile void *at, uint64_t length)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = type,
		.bp_addr = (uint64_t)at,
		.bp_len = length,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int measure_breakpoint(int fd)
{
	if (fd < 0)
		return errno == ENOMEM ? NO_MEMORY : WRONG;
	for (int i = 0; i < TIMES; i++)
		touch(i);
	return count_of(fd) == TIMES ? RIGHT : WRONG;
}

static int of_code_without_room(void)
{
	fill(0);
	return measure_breakpoint(open_breakpoint(HW_BREAKPOINT_X, touch, sizeof(long)));
}

static int of_data_without_room(void)
{
	fill(0);
	return measure_breakpoint(open_breakpoint(HW_BREAKPOINT_W, &touched, sizeof(touched)));
}

static int of_both_with_room_for_one(void)
{
	int result;

	fill(1);
	result = measure_breakpoint(open_breakpoint(HW_BREAKPOINT_X, touch, sizeof(long)));
	return result ? result
		      : measure_breakpoint(
				open_breakpoint(HW_BREAKPOINT_W, &touched, sizeof(touched)));
}

static void what_cannot_be_looked_for_is_told(void **state)
{
	(void)state;
	assert_int_equal(in_child(of_code_without_room), NO_MEMORY);
	assert_int_equal(in_child(of_data_without_room), NO_MEMORY);
	assert_int_not_equal(in_child(of_both_with_room_for_one), WRONG);
}

/* ---- at once ---- */

static pthread_barrier_t barrier;

static void *measure_at_once(void *set)
{
	int fd[KINDS], result = RIGHT;
	const unsigned int which = *(unsigned int *)set;

	for (unsigned int i = 0; i < KINDS; i++) {
		fd[i] = which >> i & 1 ? open_here(kinds[i].config, 0) : -1;
		if (which >> i & 1 && fd[i] < 0)
			result = errno == ENOMEM ? NO_MEMORY : WRONG;
	}
	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < KINDS && !result; i++) {
		uint64_t before;

		if (fd[i] < 0)
			continue;
		before = count_of(fd[i]);
		work();
		if (count_of(fd[i]) - before < kinds[i].least)
			result = WRONG;
	}
	pthread_barrier_wait(&barrier);
	return (void *)(long)result;
}

static int at_once(void)
{
	static unsigned int sets[] = {1, 2, 3, 4};
	enum { NR = sizeof(sets) / sizeof(*sets) };
	pthread_t threads[NR];
	bool any = false;
	void *result;

	fill(1);
	pthread_barrier_init(&barrier, NULL, NR);
	for (unsigned int i = 0; i < NR; i++)
		pthread_create(&threads[i], NULL, measure_at_once, &sets[i]);
	for (unsigned int i = 0; i < NR; i++) {
		pthread_join(threads[i], &result);
		if (result == (void *)WRONG)
			return WRONG;
		any |= result == (void *)RIGHT;
	}
	return any ? RIGHT : NO_MEMORY;
}

static void who_comes_too_late_is_told(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(in_child(at_once), RIGHT);
}

/* ---- later, and for others ---- */

static int open_of(pid_t tid, uint64_t config, bool disabled)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
		.disabled = disabled,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* What is read: all of it, or that there was something that could not be counted. */
static int is_told(int fd)
{
	uint64_t count;
	const ssize_t got = read(fd, &count, sizeof(count));

	return !got || (got == sizeof(count) && count >= kinds[0].least) ? RIGHT : WRONG;
}

static pid_t other;

/* It takes all the room that there is, or leaves it. */
static void *be_other(void *takes)
{
	int fds[KINDS] = {-1, -1, -1};

	other = gettid();
	for (unsigned int i = 1; takes && i < KINDS; i++)
		fds[i] = open_here(kinds[i].config, i == 1 ? 10007 : 0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	work();
	pthread_barrier_wait(&barrier);
	for (unsigned int i = 1; takes && i < KINDS; i++)
		close(fds[i]);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static int enabled_too_late(void)
{
	pthread_t thread;
	int fd, result;

	fill(1);
	fd = open_of(0, kinds[0].config, true);
	if (fd < 0)
		return NO_MEMORY;
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, be_other, &barrier);
	pthread_barrier_wait(&barrier);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	work();
	result = is_told(fd);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	/* The room is there again, and who enables the event again counts. */
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	work();
	pthread_join(thread, NULL);
	return result ? result : count_of(fd) == UINT64_MAX ? NO_MEMORY : is_told(fd);
}

static int counted_for_another(void)
{
	pthread_t thread;
	int fd, result;

	fill(0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, be_other, NULL);
	pthread_barrier_wait(&barrier);
	fd = open_of(other, kinds[0].config, false);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	result = fd < 0 ? NO_MEMORY : is_told(fd);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	/* Nor does it say something else of a thread that has ended. */
	return result ? result : is_told(fd);
}

static void who_reads_is_told(void **state)
{
	(void)state;
	assert_int_equal(in_child(enabled_too_late), RIGHT);
	assert_int_equal(in_child(counted_for_another), RIGHT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_count_is_wrong_without_room),
		cmocka_unit_test(one_set_after_another_has_the_room),
		cmocka_unit_test(one_set_after_another_has_one_of_two),
		cmocka_unit_test(what_cannot_be_looked_for_is_told),
		cmocka_unit_test(who_comes_too_late_is_told),
		cmocka_unit_test(who_reads_is_told),
	};

	return cmocka_run_group_tests_name("run: little memory", tests, NULL, NULL);
}
