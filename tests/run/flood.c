// SPDX-License-Identifier: MIT
/*
 * More code than the code cache has room for, while other threads are in theirs: it is forgotten,
 * and all goes on, and counts. Run by `tally run`.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/conformance/workload.h"

/* Each function is a fragment, of which a cache has room for 256 Ki: it is full twice. */
enum { STRIDE = 16, FUNCTIONS = 1 << 17, SIZE = STRIDE * FUNCTIONS, ROUNDS = 5, THREADS = 2 };
enum { LOOPS = 1000 };

static bool enough;

struct beside {
	pthread_t thread;
	uint64_t rounds;
	bool counts, wrong;
	struct perf_event_attr attr;
};

static int open_event(struct perf_event_attr attr)
{
	attr.size = sizeof(attr);
	attr.exclude_kernel = attr.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t count_once(int fd)
{
	uint64_t count = 0;

	ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	work_loop(LOOPS);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

/* Counts the same again and again. */
static void *count_beside(void *arg)
{
	struct perf_event_attr instructions = {.config = PERF_COUNT_HW_INSTRUCTIONS, .disabled = 1};
	struct beside *beside = arg;
	const int also = beside->counts ? open_event(beside->attr) : -1;
	const int fd = open_event(instructions);
	uint64_t expected;

	count_once(fd);
	expected = count_once(fd);
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		beside->wrong |= count_once(fd) != expected || !expected;
		beside->rounds++;
	}
	close(fd);
	close(also);
	return NULL;
}

/* FUNCTIONS times: mov $number, %eax; ret */
static void write_functions(unsigned char *code, uint32_t first)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		unsigned char *at = code + (size_t)i * STRIDE;
		const uint32_t number = first + i;

		at[0] = 0xb8;
		memcpy(at + 1, &number, sizeof(number));
		at[5] = 0xc3;
	}
}

static void call_functions(const unsigned char *code, uint32_t first)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		const uintptr_t at = (uintptr_t)code + (size_t)i * STRIDE;

		if (((uint32_t(*)(void))at)() != first + i)
			fail_msg("function %u of %u returns something else", i, first);
	}
}

static void flood(void)
{
	unsigned char *code =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(code, MAP_FAILED);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		assert_int_equal(mprotect(code, SIZE, PROT_READ | PROT_WRITE), 0);
		write_functions(code, round * FUNCTIONS);
		assert_int_equal(mprotect(code, SIZE, PROT_READ | PROT_EXEC), 0);
		call_functions(code, round * FUNCTIONS);
	}
	assert_int_equal(munmap(code, SIZE), 0);
}

/* With @attr counted everywhere, or nothing but what counts beside. */
static void flood_with(const struct perf_event_attr *attr)
{
	struct beside beside[THREADS] = {0};
	const int fd = attr ? open_event(*attr) : -1;
	uint64_t before = 0, after = 0;

	if (attr)
		assert_true(fd >= 0);
	enough = false;
	for (int i = 0; i < THREADS; i++) {
		beside[i].counts = attr;
		if (attr)
			beside[i].attr = *attr;
		assert_int_equal(pthread_create(&beside[i].thread, NULL, count_beside, &beside[i]),
				 0);
	}
	if (attr)
		assert_int_equal(read(fd, &before, sizeof(before)), sizeof(before));
	flood();
	if (attr)
		assert_int_equal(read(fd, &after, sizeof(after)), sizeof(after));
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(beside[i].thread, NULL), 0);
		assert_false(beside[i].wrong);
		assert_true(beside[i].rounds);
	}
	/* What the calls alone are. */
	if (attr)
		assert_true(after - before >= 2UL * ROUNDS * FUNCTIONS);
	close(fd);
}

static void of_code_that_nobody_counts(void **state)
{
	(void)state;
	flood_with(NULL);
}

static void of_code_that_counts(void **state)
{
	const struct perf_event_attr attr = {.config = PERF_COUNT_HW_INSTRUCTIONS};

	(void)state;
	flood_with(&attr);
}

static void of_the_model(void **state)
{
	const struct perf_event_attr attr = {.config = PERF_COUNT_HW_CPU_CYCLES};

	(void)state;
	flood_with(&attr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_code_that_nobody_counts),
		cmocka_unit_test(of_code_that_counts),
		cmocka_unit_test(of_the_model),
	};

	return cmocka_run_group_tests_name("run: a full code cache", tests, NULL, NULL);
}
