// SPDX-License-Identifier: MIT
/*
 * What samples of hardware events say of the instruction that they are of, in user mode: it is that
 * very one, and its registers and its operand are told as they were. Written out in assembly, so
 * that all of that is known.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include <asm/perf_regs.h>

#include <tally/record.h>

#include "recorder.h"
#include "walk.h"

/* ---- which instruction ---- */

static int place_of(uint64_t ip, const char *const places[], int nr)
{
	for (int i = 0; i < nr; i++)
		if (ip == (uint64_t)places[i])
			return i;
	return -1;
}

/*
 * What a round executes of the kind that is sampled are @places: so each sample is as many of them
 * further than the one before as the period says.
 */
static void each_in_turn(struct recorder *r, const char *const places[], int nr)
{
	const struct tally_sample *sample;
	unsigned int seen = 0;
	int before = -1;

	recorder_run(r, walk, make_list(1));
	while ((sample = recorder_next(r))) {
		const int place = place_of(sample->ip, places, nr);

		assert_true(recorder_is_exact(r));
		if (before >= 0 && place >= 0) {
			assert_int_equal(place, (before + (int)r->attr.sample_period) % nr);
			seen++;
		}
		/* Behind the end of the list it is somebody else's code. */
		if (before >= 0 && place < 0)
			break;
		before = place;
	}
	assert_in_range(seen, (uint64_t)CELLS * (uint64_t)nr / r->attr.sample_period - 4,
			CELLS * 10);
	recorder_end(r);
}

static void instructions(void **state)
{
	static const char *const places[] = {walk_store,  walk_load, walk_call,	 leaf,
					     leaf_return, walk_back, walk_branch};
	struct recorder r = recorder_begin_at(PERF_COUNT_HW_INSTRUCTIONS, 101, PERF_SAMPLE_IP);

	(void)state;
	each_in_turn(&r, places, 7);
}

static void branches(void **state)
{
	static const char *const places[] = {walk_call, leaf_return, walk_branch};
	struct recorder r =
		recorder_begin_at(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 41, PERF_SAMPLE_IP);

	(void)state;
	each_in_turn(&r, places, 3);
}

/* choose(times): a condition that holds each other time, and one that always does but the last. */
void choose(void *times);
extern const char choose_skip[], choose_back[];

__asm__(".text\n"
	"choose:\n"
	"	test $1, %dil\n"
	"choose_skip:\n"
	"	jz 1f\n"
	"	nop\n"
	"1:\n"
	"	sub $1, %edi\n"
	"choose_back:\n"
	"	jnz choose\n"
	"	ret\n");

/* That a branch is taken is known where it leads. */
static void branches_that_are_taken(void **state)
{
	enum { TAKEN = 4, TIMES = 100000, PERIOD = 1001 }; /* docs/model.md */
	struct recorder r = recorder_begin((struct perf_event_attr){
		.type = PERF_TYPE_RAW,
		.config = (uint64_t)TAKEN << 48,
		.sample_period = PERIOD,
		.sample_type = PERF_SAMPLE_IP,
	});
	const struct tally_sample *sample;
	unsigned int skips = 0, backs = 0;

	(void)state;
	recorder_run(&r, choose, (void *)TIMES);
	while ((sample = recorder_next(&r))) {
		assert_true(recorder_is_exact(&r));
		skips += sample->ip == (uint64_t)choose_skip;
		backs += sample->ip == (uint64_t)choose_back;
	}
	assert_in_range(skips + backs, TIMES * 3 / 2 / PERIOD - 2, TIMES * 3 / 2 / PERIOD);
	assert_true(skips > 0 && backs > skips);
	recorder_end(&r);
}

/* ---- what it was like ---- */

#define REG(name)	      (1ULL << PERF_REG_X86_##name)
#define CACHE(id, op, result) ((id) | (op) << 8 | (result) << 16)
#define L1D_READS	      CACHE(0, 0, 0)
#define L1D_WRITES	      CACHE(0, 1, 0)

static struct recorder begin_cache(uint64_t config)
{
	return recorder_begin((struct perf_event_attr){
		.type = PERF_TYPE_HW_CACHE,
		.config = config,
		.sample_period = 31,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_REGS_INTR,
		.sample_regs_user = REG(IP) | REG(SP) | REG(DI),
		.sample_regs_intr = REG(IP) | REG(SP) | REG(DI),
	});
}

static uint64_t reg(const struct tally_regs *regs, unsigned int number)
{
	uint64_t value = 0;

	assert_true(tally_regs_get(regs, number, &value));
	return value;
}

static bool in_cells(uint64_t address)
{
	return address - (uint64_t)cells < sizeof(cells);
}

/* The load's own registers are gone when it is done; the return's are found by the stack. */
static void loads(void **state)
{
	struct recorder r = begin_cache(L1D_READS);
	const struct tally_sample *sample;
	unsigned int of_list = 0, of_stack = 0;

	(void)state;
	recorder_run(&r, walk, make_list(1));
	while ((sample = recorder_next(&r))) {
		assert_true(recorder_is_exact(&r));
		assert_int_equal(reg(&sample->regs_user, PERF_REG_X86_IP), sample->ip);
		assert_int_equal(reg(&sample->regs_intr, PERF_REG_X86_IP), sample->ip);
		if (sample->ip == (uint64_t)walk_load) {
			const struct cell *cell = (const struct cell *)sample->addr;

			assert_true(in_cells(sample->addr));
			assert_ptr_equal(cell->self, cell);
			assert_int_equal(reg(&sample->regs_user, PERF_REG_X86_DI), cell);
			assert_int_equal(reg(&sample->regs_intr, PERF_REG_X86_DI), cell->next);
			of_list++;
		} else if (sample->ip == (uint64_t)leaf_return) {
			const uint64_t sp = reg(&sample->regs_user, PERF_REG_X86_SP);

			assert_int_equal(sample->addr, sp);
			assert_int_equal(reg(&sample->regs_intr, PERF_REG_X86_SP), sp + 8);
			of_stack++;
		}
	}
	assert_in_range(of_list, CELLS / 31 - 3, CELLS);
	assert_in_range(of_stack, CELLS / 31 - 3, CELLS);
	recorder_end(&r);
}

static void stores(void **state)
{
	struct recorder r = begin_cache(L1D_WRITES);
	const struct tally_sample *sample;
	unsigned int of_list = 0, of_stack = 0;

	(void)state;
	recorder_run(&r, walk, make_list(1));
	while ((sample = recorder_next(&r))) {
		assert_true(recorder_is_exact(&r));
		if (sample->ip == (uint64_t)walk_store) {
			assert_true(in_cells(sample->addr));
			assert_int_equal(sample->addr % CELL, offsetof(struct cell, self));
			of_list++;
		} else if (sample->ip == (uint64_t)walk_call) {
			assert_int_equal(sample->addr,
					 reg(&sample->regs_user, PERF_REG_X86_SP) - 8);
			assert_int_equal(sample->addr, reg(&sample->regs_intr, PERF_REG_X86_SP));
			of_stack++;
		}
	}
	assert_in_range(of_list, CELLS / 31 - 3, CELLS);
	assert_in_range(of_stack, CELLS / 31 - 3, CELLS);
	recorder_end(&r);
}

/* ---- branches to themselves ---- */

void spin(void *times);
extern const char spin_branch[];

__asm__(".text\n"
	"spin:\n"
	"	mov %rdi, %rcx\n"
	"spin_branch:\n"
	"	loop spin_branch\n"
	"	ret\n");

static void branches_to_themselves(void **state)
{
	struct recorder r = recorder_begin((struct perf_event_attr){
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
		.sample_period = 1009,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER,
	});
	const struct tally_sample *sample;
	struct perf_branch_entry newest;
	unsigned int seen = 0;

	(void)state;
	recorder_run(&r, spin, (void *)20000);
	while ((sample = recorder_next(&r))) {
		if (sample->ip != (uint64_t)spin_branch)
			continue;
		assert_true(sample->nr_branches >= 16);
		memcpy(&newest, sample->branches, sizeof(newest));
		assert_int_equal(newest.from, spin_branch);
		assert_int_equal(newest.to, spin_branch);
		seen++;
	}
	assert_in_range(seen, 18, 20);
	recorder_end(&r);
}

/* ---- traps ---- */

/* The handler is told the instruction behind it, wherever somebody looks for an overflow. */
extern const char behind_trap[];
static unsigned int traps, elsewhere;

static void trapped(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info;
	traps++;
	elsewhere += ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] != (greg_t)behind_trap;
}

static void trap(void *times)
{
	for (uintptr_t i = 0; i < (uintptr_t)times; i++)
		__asm__ volatile("int3\n"
				 "	.globl behind_trap\n"
				 "behind_trap:\n"
				 "	nop"
				 :
				 :
				 : "memory");
}

static void traps_lie_behind(void **state)
{
	struct recorder r = recorder_begin_at(PERF_COUNT_HW_INSTRUCTIONS, 1013, PERF_SAMPLE_IP);
	const struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};

	(void)state;
	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
	recorder_run(&r, trap, (void *)5000);
	assert_int_equal(traps, 5000);
	assert_int_equal(elsewhere, 0);
	recorder_end(&r);
}

/* ---- breakpoints ---- */

static int open_here(struct perf_event_attr *attr)
{
	const int fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, -1, 0);

	assert_true(fd >= 0);
	return fd;
}

static __attribute__((noinline)) void stand_at(void)
{
	__asm__ volatile("nop");
}

static volatile sig_atomic_t ticks;

static void tick(int signo)
{
	(void)signo;
	ticks++;
}

/* However often the thread comes out of the code that executes the instruction, before it has:
 * to be sampled, or for a signal. */
static void breakpoints_are_hit_once(void **state)
{
	enum { TIMES = 50000 };
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = (uint64_t)stand_at,
		.bp_len = sizeof(long),
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct perf_event_attr beside = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(beside),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.sample_period = 13,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	const int fd = open_here(&attr), sampled = open_here(&beside);
	uint64_t hits;

	(void)state;
	assert_true(signal(SIGALRM, tick) != SIG_ERR);
	for (int i = 0; i < 100; i++)
		stand_at();
	assert_int_equal(read(fd, &hits, sizeof(hits)), sizeof(hits));
	assert_int_equal(hits, 100);
	close(sampled);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int i = 0; i < TIMES; i++)
		stand_at();
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(read(fd, &hits, sizeof(hits)), sizeof(hits));
	assert_int_equal(hits, 100 + TIMES);
	close(fd);
}

/* At the head of a loop and within it, from before it is executed first and later on, in a child
 * that inherits them too; alone, beside what is modelled, and beside samples. */
static void breakpoints_in_a_loop(void **state)
{
	enum { TIMES = 3000, PLACES = 3 };
	static const char *const places[PLACES] = {(const char *)choose, choose_skip, choose_back};
	static const struct perf_event_attr beside[] = {
		{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY},
		{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES},
		{.type = PERF_TYPE_HARDWARE,
		 .config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
		 .sample_period = 17},
		{.type = PERF_TYPE_HARDWARE,
		 .config = PERF_COUNT_HW_CACHE_MISSES,
		 .sample_period = 3},
		{.type = PERF_TYPE_HARDWARE,
		 .config = PERF_COUNT_HW_CPU_CYCLES,
		 .sample_period = 1001,
		 .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK,
		 .branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
		struct perf_event_attr attr = beside[i];
		uint64_t hits;
		int other, fd[PLACES], status;
		pid_t child;

		attr.size = sizeof(attr);
		attr.exclude_kernel = attr.exclude_hv = 1;
		other = open_here(&attr);
		for (unsigned int n = 0; n < PLACES; n++) {
			attr = (struct perf_event_attr){
				.type = PERF_TYPE_BREAKPOINT,
				.size = sizeof(attr),
				.bp_type = HW_BREAKPOINT_X,
				.bp_addr = (uint64_t)places[n],
				.bp_len = sizeof(long),
				.exclude_kernel = 1,
				.exclude_hv = 1,
				.inherit = 1,
			};
			fd[n] = open_here(&attr);
			choose((void *)TIMES);
		}
		child = fork();
		if (!child) {
			choose((void *)TIMES);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		for (unsigned int n = 0; n < PLACES; n++) {
			assert_int_equal(read(fd[n], &hits, sizeof(hits)), sizeof(hits));
			assert_int_equal(hits, TIMES * (PLACES - n + 1));
			close(fd[n]);
		}
		close(other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First, so that the others come too late for code caches of their own. */
		cmocka_unit_test(breakpoints_are_hit_once),
		cmocka_unit_test(breakpoints_in_a_loop),
		cmocka_unit_test(traps_lie_behind),
		cmocka_unit_test(instructions),
		cmocka_unit_test(branches),
		cmocka_unit_test(branches_that_are_taken),
		cmocka_unit_test(loads),
		cmocka_unit_test(stores),
		cmocka_unit_test(branches_to_themselves),
	};

	return cmocka_run_group_tests_name("run/precise", tests, NULL, NULL);
}
