// SPDX-License-Identifier: MIT
/*
 * Samples of what the model computes, in user mode: they are of the instruction that missed, and
 * say how far its operand was. Nothing else of the process is changed by the model.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/record.h>

#include "by_fs.h"
#include "recorder.h"
#include "walk.h"

/* ---- where it was missed ---- */

/*
 * chase(first): the list alone. choose(bits): a branch for each of DICE bytes, which is taken where
 * the byte is odd, and that of the loop.
 */
void chase(void *first);
void choose(void *bytes);
extern const char chase_load[], choose_branch[];

enum { DICE = 1 << 14 };

__asm__(".text\n"
	".p2align 6\n"
	"chase:\n"
	"chase_load:\n"
	"	mov (%rdi), %rdi\n"
	"	test %rdi, %rdi\n"
	"	jnz chase\n"
	"	ret\n"
	"choose:\n"
	"	lea 16384(%rdi), %rsi\n"
	"1:	testb $1, (%rdi)\n"
	"choose_branch:\n"
	"	jnz 2f\n"
	"	nop\n"
	"2:	inc %rdi\n"
	"	cmp %rsi, %rdi\n"
	"	jne 1b\n"
	"	ret\n");

static const struct {
	uint64_t source;
	uint32_t latency;
} memory = {
	PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, LOC_RAM) | PERF_MEM_S(LVLNUM, RAM) |
		PERF_MEM_S(OP, LOAD) | PERF_MEM_S(SNOOP, NONE) | PERF_MEM_S(LOCK, NA),
	250,
};

/* Larger than the last level, and in steps that nobody fetches in advance. */
static void *make_long_list(void)
{
	enum { SIZE = 64 << 20, STEP = PAGE + 3 * CELL };
	char *list = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at;

	assert_ptr_not_equal(list, MAP_FAILED);
	for (at = 0; at + STEP < SIZE; at += STEP)
		*(void **)(list + at) = list + at + STEP;
	return list;
}

/* Each sample's word in the list is what was read there, and it came from far away. */
static void check_far_load(const struct tally_sample *sample)
{
	const uint64_t tlb = PERF_MEM_S(TLB, HIT) | PERF_MEM_S(TLB, WK);

	assert_int_equal(sample->data_src, memory.source | tlb);
	assert_int_equal(sample->weight & UINT32_MAX, memory.latency + 30);
	assert_int_equal(sample->addr % CELL, 0);
}

static struct recorder begin_model(uint64_t config, uint64_t period)
{
	return recorder_begin_at(config, period,
				 PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC |
					 PERF_SAMPLE_WEIGHT_STRUCT);
}

static void cache_misses(void **state)
{
	struct recorder r = begin_model(PERF_COUNT_HW_CACHE_MISSES, 97);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	recorder_run(&r, chase, make_long_list());
	while ((sample = recorder_next(&r))) {
		if (sample->ip != (uint64_t)chase_load)
			continue;
		assert_true(recorder_is_exact(&r));
		check_far_load(sample);
		seen++;
	}
	assert_in_range(seen, (64 << 20) / (PAGE + 3 * CELL) / 97 - 3, 400);
	recorder_end(&r);
}

/* Nearly all of the time is spent with one instruction. */
static void cycles(void **state)
{
	struct recorder r = begin_model(PERF_COUNT_HW_CPU_CYCLES, 20011);
	const struct tally_sample *sample;
	unsigned int seen = 0, elsewhere = 0;

	(void)state;
	recorder_run(&r, chase, make_long_list());
	while ((sample = recorder_next(&r))) {
		if (sample->ip != (uint64_t)chase_load || !recorder_is_exact(&r)) {
			elsewhere++;
			continue;
		}
		check_far_load(sample);
		seen++;
	}
	assert_true(seen > 20);
	assert_true(seen > 10 * elsewhere);
	recorder_end(&r);
}

static void branch_misses(void **state)
{
	static unsigned char dice[DICE];
	struct recorder r = begin_model(PERF_COUNT_HW_BRANCH_MISSES, 31);
	const struct tally_sample *sample;
	unsigned int seen = 0, elsewhere = 0;
	uint32_t random = 1;

	(void)state;
	for (unsigned int i = 0; i < DICE; i++) {
		random = random * 1664525 + 1013904223;
		dice[i] = random >> 24;
	}
	recorder_run(&r, choose, dice);
	while ((sample = recorder_next(&r))) {
		assert_true(recorder_is_exact(&r));
		if (sample->ip == (uint64_t)choose_branch)
			seen++;
		else
			elsewhere++;
	}
	assert_true(seen > DICE / 3 / 31);
	assert_true(elsewhere < 20);
	recorder_end(&r);
}

/* How far an operand was, the model is asked though nothing of its is counted. */
static void far_loads(void **state)
{
	struct recorder r = recorder_begin((struct perf_event_attr){
		.type = PERF_TYPE_HW_CACHE,
		.config = PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
			  PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16,
		.sample_period = 97,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC,
	});
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	recorder_run(&r, chase, make_long_list());
	while ((sample = recorder_next(&r))) {
		if (sample->ip != (uint64_t)chase_load)
			continue;
		assert_true(recorder_is_exact(&r));
		assert_int_equal(sample->data_src & 0xffff & ~31U, memory.source & 0xffff & ~31U);
		seen++;
	}
	assert_in_range(seen, (64 << 20) / (PAGE + 3 * CELL) / 97 - 3, 400);
	recorder_end(&r);
}

/* ---- what is not to change ---- */

/* Walks a list with vectors filled, and stores what is in them then. */
static void walk_with(const void *first, const uint8_t *vectors, uint8_t *after)
{
	__asm__ volatile("movups (%1), %%xmm0\n\tmovups 16(%1), %%xmm1\n\t"
			 "movups 32(%1), %%xmm2\n\tmovups 48(%1), %%xmm3\n\t"
			 "movups 64(%1), %%xmm4\n"
			 "1:\n\tmov (%0), %0\n\ttest %0, %0\n\tjnz 1b\n\t"
			 "movups %%xmm0, (%2)\n\tmovups %%xmm1, 16(%2)\n\t"
			 "movups %%xmm2, 32(%2)\n\tmovups %%xmm3, 48(%2)\n\t"
			 "movups %%xmm4, 64(%2)"
			 : "+r"(first)
			 : "r"(vectors), "r"(after)
			 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "memory");
}

/* What computes the misses borrows registers that are the program's. */
static void vectors(void **state)
{
	struct recorder r = recorder_begin_at(PERF_COUNT_HW_CACHE_MISSES, 0, 0);
	uint8_t before[5 * 16], after[5 * 16];

	(void)state;
	for (unsigned int i = 0; i < sizeof(before); i++)
		before[i] = (uint8_t)(i * 37 + 11);
	assert_return_code(ioctl(r.fd, PERF_EVENT_IOC_ENABLE, 0), errno);
	for (unsigned int i = 0; i < 10; i++) {
		memset(after, 0, sizeof(after));
		walk_with(make_list(1 + i % 3), before, after);
		assert_memory_equal(before, after, sizeof(before));
	}
	recorder_end(&r);
}

static volatile sig_atomic_t rung;

static void ring(int number)
{
	(void)number;
	rung++;
}

/*
 * A signal may come between the end of a string and what tells of it: the model goes no farther
 * than the string. All lie in one page.
 */
static void strings(void **state)
{
	enum { STRINGS = 1 << 20, MOST = 37, FEW = 20000 };
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	static uint8_t from[64], to[64];
	struct recorder r = recorder_begin((struct perf_event_attr){
		.type = PERF_TYPE_HW_CACHE,
		.config = PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
			  PERF_COUNT_HW_CACHE_RESULT_MISS << 16,
	});
	uint64_t misses;

	(void)state;
	signal(SIGALRM, ring);
	assert_return_code(ioctl(r.fd, PERF_EVENT_IOC_ENABLE, 0), errno);
	assert_return_code(setitimer(ITIMER_REAL, &often, NULL), errno);
	for (unsigned int i = 0; i < STRINGS; i++) {
		const void *source = from;
		uint64_t left = i % MOST, some = i % 23;
		void *target = to;

		/* Records of two lengths: what was there before is of another word. */
		__asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(left) : : "memory");
		target = to;
		__asm__ volatile("rep stosb" : "+D"(target), "+c"(some) : "a"(i) : "memory");
		target = to, source = from, some = 9;
		__asm__ volatile("repe cmpsb"
				 : "+D"(target), "+S"(source), "+c"(some)
				 :
				 : "memory", "cc");
	}
	setitimer(ITIMER_REAL, &never, NULL);
	assert_return_code(ioctl(r.fd, PERF_EVENT_IOC_DISABLE, 0), errno);
	assert_int_equal(read(r.fd, &misses, sizeof(misses)), sizeof(misses));
	assert_true(rung);
	assert_in_range(misses, 1, FEW);
	recorder_end(&r);
}

/* Pages that the process has mapped. */
static long mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!f || fscanf(f, "%ld", &pages) != 1)
		abort();
	fclose(f);
	return pages;
}

/* Forks down to the last generation, which tells whether it has more than the first one. */
static int generation(unsigned int left, long first)
{
	int status;
	pid_t pid;

	walk(make_list(1));
	if (!first)
		first = mapped();
	if (!left)
		return mapped() - first > 1024;
	pid = fork();
	if (!pid)
		_exit(generation(left - 1, first));
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

/* A child has a model of its own, of more than a MiB, and not those of its forebears. */
static void generations(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CACHE_MISSES,
		.exclude_kernel = 1,
		.inherit = 1,
	};
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	(void)state;
	if (fd < 0 && errno == ENOENT) {
		print_message("there is no such PMU");
		skip();
	}
	assert_return_code(fd, errno);
	assert_int_equal(generation(12, 0), 0);
	close(fd);
}

/* What is read by FS is where FS is at that time. */
static void fs_moves(void **state)
{
	enum { LOADS = 4096, STEP = 5 * CELL };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HW_CACHE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
			  PERF_COUNT_HW_CACHE_RESULT_MISS << 16,
		.exclude_kernel = 1,
		.disabled = 1,
	};
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	const char *bases = mmap(NULL, LOADS * STEP, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t misses = 0;

	(void)state;
	if (fd < 0 && errno == ENOENT) {
		print_message("there is no such PMU");
		skip();
	}
	assert_return_code(fd, errno);
	assert_ptr_not_equal(bases, MAP_FAILED);
	assert_return_code(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), errno);
	load_by_fs(bases, bases + LOADS * STEP, STEP);
	assert_return_code(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), errno);
	assert_int_equal(read(fd, &misses, sizeof(misses)), sizeof(misses));
	assert_in_range(misses, LOADS / 2, 2 * LOADS);
	close(fd);
	munmap((void *)bases, LOADS * STEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),	 cmocka_unit_test(generations),
		cmocka_unit_test(cache_misses),	 cmocka_unit_test(cycles),
		cmocka_unit_test(branch_misses), cmocka_unit_test(far_loads),
		cmocka_unit_test(strings),	 cmocka_unit_test(fs_moves),
	};

	return cmocka_run_group_tests_name("run/modelled", tests, NULL, NULL);
}
