// SPDX-License-Identifier: MIT
/*
 * What code does for events differs by what they are: a process that has opened one after another
 * has been through dozens of kinds of code, and in the last one breakpoints are met as in the
 * first. Run by `tally run`.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define L1D(operation)                                                                             \
	(PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_##operation << 8 |                       \
	 PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16)

/* Any of the last ones together, or one of the others, most of which are modelled. */
static const struct perf_event_attr beside[] = {
	{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_BRANCH_MISSES},
	{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES},
	{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CACHE_MISSES},
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS},
	{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS},
	{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{.type = PERF_TYPE_HW_CACHE, .config = L1D(READ)},
	{.type = PERF_TYPE_HW_CACHE, .config = L1D(WRITE)},
};

enum { BESIDE = sizeof(beside) / sizeof(*beside), EXACT = 4, ALONE = BESIDE - EXACT };

/* With each of them: as they are or sampled, and with a breakpoint on code or without. */
enum { SETS = 4 * (ALONE + (1 << EXACT)) };

/* As bits. */
static unsigned int events_of(unsigned int set)
{
	const unsigned int way = set / 4;

	return way < ALONE ? 1u << way : (way - ALONE) << ALONE;
}

static bool is_sampled(unsigned int set)
{
	return set & 1;
}

static bool has_code(unsigned int set)
{
	return set & 2;
}

enum { WRITES = 30, READS = 50, CALLS = 20 };

struct place {
	_Alignas(64) uint64_t word;
};

static __attribute__((noinline)) void called(void)
{
	__asm__ volatile("");
}

static __attribute__((noinline)) void touch(struct place *place)
{
	uint64_t word = 0;

	for (int i = 0; i < WRITES; i++)
		__asm__ volatile("movq %1, %0" : "=m"(place->word) : "r"(word));
	for (int i = 0; i < READS; i++)
		__asm__ volatile("movq %1, %0" : "=r"(word) : "m"(place->word));
	for (int i = 0; i < CALLS; i++)
		called();
}

static uint64_t touches(uint32_t type)
{
	return (type & HW_BREAKPOINT_W ? WRITES : 0) + (type & HW_BREAKPOINT_R ? READS : 0);
}

static int open_here(struct perf_event_attr attr)
{
	attr.size = sizeof(attr);
	attr.exclude_kernel = attr.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int open_breakpoint(uint32_t type, const void *at, unsigned int length)
{
	return open_here((struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = type,
		.bp_addr = (uint64_t)at,
		.bp_len = length,
	});
}

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : UINT64_MAX;
}

struct opened {
	int beside[BESIDE], data, code;
	uint32_t type;
};

static bool open_set(struct opened *opened, unsigned int set, const struct place *place)
{
	bool good = true;

	*opened = (struct opened){.type = 1 + set % 3};
	for (unsigned int i = 0; i < BESIDE; i++) {
		struct perf_event_attr attr = beside[i];

		opened->beside[i] = -1;
		if (!(events_of(set) >> i & 1))
			continue;
		attr.sample_period = is_sampled(set) ? 1009 : 0;
		opened->beside[i] = open_here(attr);
		good &= opened->beside[i] >= 0;
	}
	opened->data = open_breakpoint(opened->type, place, 1 << set % 5 % 4);
	opened->code = has_code(set) ? open_breakpoint(HW_BREAKPOINT_X, called, sizeof(long)) : -1;
	return good && opened->data >= 0;
}

static void close_set(const struct opened *opened)
{
	for (unsigned int i = 0; i < BESIDE; i++)
		if (opened->beside[i] >= 0)
			close(opened->beside[i]);
	close(opened->data);
	if (opened->code >= 0)
		close(opened->code);
}

static bool hits_are_right(const struct opened *opened)
{
	return count_of(opened->data) == touches(opened->type) &&
	       (opened->code < 0 || count_of(opened->code) == CALLS);
}

static bool is_met(unsigned int set, struct place *place)
{
	struct opened opened;
	bool good = open_set(&opened, set, place);

	touch(place);
	good = good && hits_are_right(&opened);
	close_set(&opened);
	return good;
}

static void all_are_met(void **state)
{
	static struct place place;

	(void)state;
	for (unsigned int set = 0; set < SETS; set++)
		if (!is_met(set, &place))
			fail_msg("set %u", set);
}

/* ---- after children ---- */

enum { STEPPED = 20, TARGETS = 64, TARGET_BYTES = 16 };

static struct place jumped_to;

/* Where it jumps to it touches at once. One of many places, as not all that is executed is
 * learned. */
static __attribute__((noinline)) void jump_to(unsigned int target)
{
	uint64_t at = (uint64_t)target * TARGET_BYTES;

	__asm__ volatile("lea 1f(%%rip), %%rax\n"
			 "add %1, %%rax\n"
			 "jmp *%%rax\n"
			 ".balign 16\n"
			 "1:\n"
			 ".rept 64\n"
			 "movq %1, %0\n"
			 "jmp 2f\n"
			 ".balign 16\n"
			 ".endr\n"
			 "2:"
			 : "=m"(jumped_to.word)
			 : "r"(at)
			 : "rax");
}

static void jump(void)
{
	for (unsigned int target = 0; target < TARGETS; target++)
		jump_to(target);
}

/* In one set after another, as few as caches that their parent has by the time that it steps. */
static int jump_in_sets(void)
{
	const struct perf_event_attr branches = beside[5], instructions = beside[4];
	const int first = open_here(branches);
	int second;

	jump();
	close(first);
	second = open_here(instructions);
	jump();
	open_here(branches);
	jump();
	return second < 0;
}

static int do_nothing(void)
{
	return 0;
}

static int status_of_child(int (*run)(void))
{
	const pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(run());
	waitpid(child, &status, 0);
	return status;
}

/* Code that children have learned to make is of caches with the same numbers, which may do
 * something else here: each instruction is looked at, as somebody wants to see all branches. */
static void all_are_met_behind_jumps(void **state)
{
	int branches, data;

	(void)state;
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(status_of_child(jump_in_sets), 0);
	branches = open_here((struct perf_event_attr){
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.sample_period = 100003,
		.sample_type = PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER,
	});
	data = open_breakpoint(HW_BREAKPOINT_W, &jumped_to, sizeof(jumped_to.word));
	assert_true(branches >= 0 && data >= 0);
	/* Who forks takes in what there is. */
	assert_int_equal(status_of_child(do_nothing), 0);
	for (unsigned int i = 0; i < STEPPED; i++)
		jump();
	assert_int_equal(count_of(data), STEPPED * TARGETS);
	close(data);
	close(branches);
}

/* ---- as many at the same time ---- */

enum { THREADS = 40 };

static pthread_barrier_t barrier;

static struct measured {
	pthread_t thread;
	unsigned int set;
	struct place place;
	bool good;
} measured[THREADS];

static void *measure(void *argument)
{
	struct measured *m = (struct measured *)argument;
	struct opened opened;
	bool good = open_set(&opened, m->set, &m->place);

	pthread_barrier_wait(&barrier);
	touch(&m->place);
	pthread_barrier_wait(&barrier);
	m->good = good && hits_are_right(&opened);
	close_set(&opened);
	return NULL;
}

static void all_are_met_at_once(void **state)
{
	(void)state;
	assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		measured[i].set = i * SETS / THREADS;
		assert_int_equal(pthread_create(&measured[i].thread, NULL, measure, &measured[i]),
				 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(measured[i].thread, NULL);
	for (unsigned int i = 0; i < THREADS; i++)
		if (!measured[i].good)
			fail_msg("thread %u, set %u", i, measured[i].set);
}

/* ---- while there are children ---- */

enum { CHILDREN = 40, OF_CHILD = 18 };

static volatile bool stop;

static void *go_through(void *good)
{
	static struct place place;

	for (unsigned int set = 0; !stop; set = (set + 1) % SETS)
		*(bool *)good &= is_met(set, &place);
	return NULL;
}

static int run_child(unsigned int n)
{
	static struct place place;

	for (unsigned int i = 0; i < OF_CHILD; i++)
		if (!is_met((n + i * 5) % SETS, &place))
			return 1;
	return 0;
}

/* Of a process whose other thread makes such code all the time. */
static void children_meet_theirs(void **state)
{
	bool good = true;
	pthread_t thread;
	int status;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, go_through, &good), 0);
	for (unsigned int n = 0; n < CHILDREN; n++) {
		const pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(run_child(n));
		assert_int_equal(waitpid(child, &status, 0), child);
		if (status)
			fail_msg("child %u: %#x", n, (unsigned int)status);
	}
	stop = true;
	pthread_join(thread, NULL);
	assert_true(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* Nothing has been opened before. */
		cmocka_unit_test(all_are_met_behind_jumps),
		cmocka_unit_test(children_meet_theirs),
		cmocka_unit_test(all_are_met),
		cmocka_unit_test(all_are_met_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
