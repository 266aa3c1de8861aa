// SPDX-License-Identifier: MIT
/*
 * This process samples itself: the registers of getcontext(), a copy of its own stack. What comes
 * out is compared with the C library's backtrace().
 */
#include <asm/perf_regs.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/symbol.h>

#define MAX_FRAMES 256

static struct tally_symbols *symbols;
static struct tally_machine *machine;
static bool fed;

static struct capture {
	uint64_t regs[24];
	size_t stack_size; /* to copy; set before */
	size_t copied;
	uint8_t stack[256 * 1024];
	void *expected[MAX_FRAMES];
	int nr_expected;
	uint64_t ips[MAX_FRAMES];
	size_t nr;
	bool truncated;
} capture;

static int set_up(void **state)
{
	(void)state;
	symbols = tally_symbols_new(NULL);
	machine = tally_machine_new(symbols);
	fed = false;
	memset(&capture, 0, sizeof(capture));
	capture.stack_size = sizeof(capture.stack);
	return machine ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	tally_symbols_free(symbols);
	return 0;
}

/* As much of the stack as there is; through the kernel, since a sanitizer guards parts of it. */
static void copy_stack(uint64_t sp)
{
	int fd = open("/proc/self/mem", O_RDONLY);

	while (capture.copied < capture.stack_size) {
		size_t size = capture.stack_size - capture.copied;
		uint64_t at = sp + capture.copied, page_end = (at | 4095) + 1;

		if (size > page_end - at)
			size = page_end - at;
		if (pread(fd, capture.stack + capture.copied, size, (off_t)at) != (ssize_t)size)
			break;
		capture.copied += size;
	}
	close(fd);
}

__attribute__((noinline)) static int take(void)
{
	ucontext_t context;
	const greg_t *regs = context.uc_mcontext.gregs;

	getcontext(&context);
	capture.regs[PERF_REG_X86_BX] = regs[REG_RBX];
	capture.regs[PERF_REG_X86_BP] = regs[REG_RBP];
	capture.regs[PERF_REG_X86_SP] = regs[REG_RSP];
	capture.regs[PERF_REG_X86_IP] = regs[REG_RIP];
	capture.regs[PERF_REG_X86_R12] = regs[REG_R12];
	capture.regs[PERF_REG_X86_R13] = regs[REG_R13];
	capture.regs[PERF_REG_X86_R14] = regs[REG_R14];
	capture.regs[PERF_REG_X86_R15] = regs[REG_R15];
	copy_stack(regs[REG_RSP]);
	capture.nr_expected = backtrace(capture.expected, MAX_FRAMES);
	return capture.nr_expected;
}

static void unwind_with(uint64_t mask, size_t max)
{
	struct tally_sample sample = {.stack_size = capture.copied,
				      .stack_dyn_size = capture.copied,
				      .stack = capture.stack,
				      .regs_user = {.abi = PERF_SAMPLE_REGS_ABI_64, .mask = mask}};
	uint64_t values[24];

	/* Not before: backtrace() loads a library. */
	if (!fed)
		assert_int_equal(tally_machine_feed_proc(machine, getpid(), NULL), 0);
	fed = true;
	for (unsigned int reg = 0; reg < 24; reg++) {
		if (mask & 1U << reg)
			values[sample.regs_user.nr++] = capture.regs[reg];
	}
	sample.regs_user.values = values;
	capture.nr = tally_machine_unwind(machine, getpid(), 0, &sample, capture.ips, max,
					  &capture.truncated);
}

#define ALL_REGS                                                                                   \
	(1U << PERF_REG_X86_BX | 1U << PERF_REG_X86_BP | 1U << PERF_REG_X86_SP |                   \
	 1U << PERF_REG_X86_IP | 0xf0U << PERF_REG_X86_R8)

/* Every frame is the one that backtrace() saw; returns how many more it saw. */
static int compare_frames(void)
{
	int skipped = 0;

	assert_true(capture.nr > 2);
	assert_int_equal(capture.ips[0], capture.regs[PERF_REG_X86_IP]);
	/* A sanitizer wraps backtrace() in a function of its own: begin at the caller of take(). */
	while (skipped < capture.nr_expected &&
	       (uintptr_t)capture.expected[skipped] != capture.ips[1])
		skipped++;
	assert_true(capture.nr_expected - skipped >= (int)capture.nr - 1);
	for (size_t i = 1; i < capture.nr; i++)
		assert_int_equal(capture.ips[i], (uintptr_t)capture.expected[skipped + i - 1]);
	return capture.nr_expected - skipped - ((int)capture.nr - 1);
}

static void check(void)
{
	unwind_with(ALL_REGS, MAX_FRAMES);
	assert_int_equal(compare_frames(), 0);
	assert_false(capture.truncated);
}

static volatile int sink;

__attribute__((noinline)) static int recurse(int depth)
{
	char buffer[64];
	int result;

	if (!depth)
		return take();
	memset(buffer, depth, sizeof(buffer));
	result = recurse(depth - 1) + 1;
	sink += buffer[depth % 64];
	return result;
}

static void test_deep_recursion(void **state)
{
	(void)state;
	assert_true(recurse(100) > 100);
	assert_true(capture.nr_expected > 100);
	check();
}

__attribute__((noinline)) static int large_frame(int value)
{
	volatile int data[33];

	data[value] = value;
	value = take() + data[value];
	return value + 1;
}

/* A frame of unknown size, realigned: the CFA is then saved where an expression says. */
__attribute__((noinline)) static int realigned(int size)
{
	volatile char *memory = __builtin_alloca(size);
	volatile int aligned[16] __attribute__((aligned(128)));
	int result;

	memory[size / 2] = 1;
	aligned[size % 16] = 2;
	result = large_frame(size % 33);
	return result + memory[size / 2] + aligned[size % 16];
}

static void test_realigned_frame(void **state)
{
	(void)state;
	sink = realigned(100 + (int)(getpid() % 7));
	check();
}

static int compare(const void *a, const void *b)
{
	if (!capture.nr_expected)
		recurse(3);
	return *(const int *)a - *(const int *)b;
}

static void test_through_the_library(void **state)
{
	int values[] = {3, 1, 2};

	(void)state;
	qsort(values, 3, sizeof(*values), compare);
	assert_true(capture.nr_expected > 6);
	check();
}

static void handler(int signal)
{
	(void)signal;
	recurse(2);
}

static void test_through_a_signal(void **state)
{
	(void)state;
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	check();
}

static void *in_thread(void *arg)
{
	(void)arg;
	sink = recurse(5);
	return NULL;
}

static void test_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	check();
}

static void test_cut_stack(void **state)
{
	(void)state;
	capture.stack_size = 3000;
	sink = recurse(100);
	unwind_with(ALL_REGS, MAX_FRAMES);
	assert_true(capture.truncated);
	assert_true(compare_frames() > 10);
}

static void test_limits(void **state)
{
	(void)state;
	sink = recurse(20);
	unwind_with(ALL_REGS, 0);
	assert_int_equal(capture.nr, 0);
	unwind_with(ALL_REGS, 5);
	assert_int_equal(capture.nr, 5);
	/* Without a stack pointer or an instruction pointer there is nothing to go by. */
	unwind_with(1U << PERF_REG_X86_IP, MAX_FRAMES);
	assert_int_equal(capture.nr, 1);
	unwind_with(1U << PERF_REG_X86_SP, MAX_FRAMES);
	assert_int_equal(capture.nr, 0);
	capture.copied = 0;
	unwind_with(ALL_REGS, MAX_FRAMES);
	assert_true(capture.nr <= 1);
	assert_true(capture.truncated);
}

/* Registers and stacks that nobody ever had must end the walk, not the process. */
static void test_random_stacks(void **state)
{
	unsigned int seed = 4711;

	(void)state;
	sink = recurse(20);
	for (int round = 0; round < 2000; round++) {
		size_t word = (size_t)rand_r(&seed) % (capture.copied / 8) * 8;
		unsigned int reg = rand_r(&seed) % 24;
		uint64_t value = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 33);

		if (round % 3)
			value = capture.regs[rand_r(&seed) % 24] + rand_r(&seed) % 64;
		memcpy(capture.stack + word, &value, sizeof(value));
		if (round % 10 == 0 && reg != PERF_REG_X86_IP)
			capture.regs[reg] = value;
		unwind_with(ALL_REGS, MAX_FRAMES);
		assert_true(capture.nr <= MAX_FRAMES);
	}
}

/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const uint8_t jit_code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

static void test_code_without_information(void **state)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool found = false;

	(void)state;
	if (code == MAP_FAILED) {
		print_message("# SKIP no memory may be written and executed\n");
		skip();
	}
	memcpy(code, jit_code, sizeof(jit_code));
	sink = ((int (*)(int (*)(void)))(uintptr_t)code)(take);
	unwind_with(ALL_REGS, MAX_FRAMES);
	for (size_t i = 0; i < capture.nr; i++) {
		found |= capture.ips[i] == (uintptr_t)code + 6;
		if (capture.ips[i] == (uintptr_t)code + 6) {
			struct tally_location location;

			assert_true(i + 1 < capture.nr);
			tally_machine_resolve(machine, getpid(), 0, PERF_RECORD_MISC_USER,
					      capture.ips[i + 1], &location);
			assert_string_equal(location.symbol->name, "test_code_without_information");
		}
	}
	assert_true(found);
	munmap(code, 4096);
}

static void test_other_abi(void **state)
{
	struct tally_sample sample = {.regs_user = {.abi = PERF_SAMPLE_REGS_ABI_NONE}};
	uint64_t ips[4];
	bool truncated = true;

	(void)state;
	assert_int_equal(tally_machine_unwind(machine, 1, 0, &sample, ips, 4, &truncated), 0);
	assert_false(truncated);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_deep_recursion),
		TEST(test_realigned_frame),
		TEST(test_through_the_library),
		TEST(test_through_a_signal),
		TEST(test_thread),
		TEST(test_cut_stack),
		TEST(test_limits),
		TEST(test_random_stacks),
		TEST(test_code_without_information),
		TEST(test_other_abi),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
