// SPDX-License-Identifier: MIT
/*
 * Floating point arithmetic, counted by kinds that `tally run` names in sysfs: loops in which each
 * is known, beside events that are counted in other ways.
 */
#include <cpuid.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, RING = PAGE + 16 * PAGE, ROUNDS = 100000 };

/* ---- what is counted ---- */

/* As .../events/NAME has it. */
static uint64_t config_of(const char *name)
{
	char path[128], text[64];
	FILE *file;
	unsigned long kind;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/cpu/events/%s", name);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_int_equal(sscanf(text, "kind=%lu", &kind), 1);
	return kind << 48;
}

static int open_event(uint32_t type, uint64_t config, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.sample_period = period,
		.sample_type = period ? PERF_SAMPLE_IP | PERF_SAMPLE_READ : 0,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	assert_return_code(fd, errno);
	return fd;
}

static uint64_t count_of(int fd)
{
	uint64_t count;

	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	return count;
}

/* ---- loops ---- */

/* One scalar addition, a packed multiplication, a division, two others: 5 instructions, of 3 + 2
 * elements that count as operations of a kind. */
__attribute__((noinline)) static void sse(long n)
{
	__asm__ volatile("1: addsd %%xmm0, %%xmm1; mulps %%xmm2, %%xmm3; divss %%xmm0, %%xmm4;"
			 "maxpd %%xmm5, %%xmm6; sqrtpd %%xmm7, %%xmm7; ucomisd %%xmm0, %%xmm1;"
			 "cvtsd2ss %%xmm0, %%xmm8; dec %0; jnz 1b"
			 : "+r"(n)
			 :
			 : "xmm1", "xmm3", "xmm4", "xmm6", "xmm7", "xmm8", "cc");
}

__attribute__((noinline)) static void avx(long n)
{
	__asm__ volatile(
		"1: vfmadd231pd %%ymm0, %%ymm1, %%ymm2; vfnmsub132ss %%xmm3, %%xmm4, %%xmm5;"
		"vaddps %%ymm0, %%ymm1, %%ymm6; dec %0; jnz 1b; vzeroupper"
		: "+r"(n)
		:
		: "xmm2", "xmm5", "xmm6", "cc");
}

/* Of halves: an addition, three FMAs, of which one scalar, a root, a complex product. */
__attribute__((noinline)) static void half(long n)
{
	__asm__ volatile("1: vaddph %%xmm0, %%xmm1, %%xmm2; vfmadd231ph %%ymm0, %%ymm1, %%ymm3;"
			 "vfmadd231ph %%zmm0, %%zmm1, %%zmm4; vfnmsub213sh %%xmm0, %%xmm1, %%xmm5;"
			 "vsqrtsh %%xmm0, %%xmm1, %%xmm6; vfmulcph %%xmm0, %%xmm1, %%xmm7;"
			 "vcmpph $0, %%xmm0, %%xmm1, %%k1; vcvtph2ps %%xmm0, %%xmm2;"
			 "dec %0; jnz 1b; vzeroupper"
			 : "+r"(n)
			 :
			 : "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "cc");
}

struct expected {
	const char *name;
	unsigned int each; /* in a round */
};

static const struct expected of_sse[] = {
	{"fp_scalar_double", 1}, {"fp_scalar_single", 1}, {"fp_128_double", 2},
	{"fp_128_single", 1},	 {"fp_256_double", 0},	  {"flops_add", 1},
	{"flops_multiply", 4},	 {"flops_divide", 3},	  {"flops_fma", 0},
};

static const struct expected of_fma[] = {
	{"fp_256_double", 2}, {"fp_scalar_single", 2}, {"fp_256_single", 1},
	{"flops_fma", 10},    {"flops_add", 8},	       {"fp_128_double", 0},
};

static const struct expected of_halves[] = {
	{"fp_scalar_half", 3}, {"fp_128_half", 2},   {"fp_256_half", 2},  {"fp_512_half", 2},
	{"flops_fma", 98},     {"flops_add", 8},     {"flops_divide", 1}, {"flops_multiply", 0},
	{"fp_128_single", 0},  {"fp_512_double", 0},
};

/* Beside @beside, an event of another kind that changes how code counts; -1: nothing. */
static void count(const struct expected *expected, size_t nr, void (*work)(long), int beside)
{
	int fds[16], other = -1;

	if (beside >= 0)
		other = open_event(PERF_TYPE_HARDWARE, (uint64_t)beside, 0);
	for (size_t i = 0; i < nr; i++)
		fds[i] = open_event(PERF_TYPE_RAW, config_of(expected[i].name), 0);
	assert_return_code(prctl(PR_TASK_PERF_EVENTS_ENABLE), errno);
	work(ROUNDS);
	assert_return_code(prctl(PR_TASK_PERF_EVENTS_DISABLE), errno);
	for (size_t i = 0; i < nr; i++) {
		if (count_of(fds[i]) != (uint64_t)expected[i].each * ROUNDS)
			print_message("# %s\n", expected[i].name);
		assert_int_equal(count_of(fds[i]), (uint64_t)expected[i].each * ROUNDS);
		close(fds[i]);
	}
	if (other >= 0)
		close(other);
}

#define COUNT(expected, work, beside)                                                              \
	count(expected, sizeof(expected) / sizeof(*(expected)), work, beside)

static void arithmetic_is_counted(void **state)
{
	(void)state;
	COUNT(of_sse, sse, -1);
	COUNT(of_sse, sse, PERF_COUNT_HW_INSTRUCTIONS);
	COUNT(of_sse, sse, PERF_COUNT_HW_CPU_CYCLES);
}

static void fma_counts_twice(void **state)
{
	(void)state;
	if (!__builtin_cpu_supports("fma"))
		skip();
	COUNT(of_fma, avx, -1);
	COUNT(of_fma, avx, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
	COUNT(of_fma, avx, PERF_COUNT_HW_CPU_CYCLES);
}

static void halves_are_counted(void **state)
{
	unsigned int eax, ebx, ecx, edx;

	(void)state;
	if (!__builtin_cpu_supports("avx512f") ||
	    !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(edx & bit_AVX512FP16))
		skip();
	COUNT(of_halves, half, -1);
	COUNT(of_halves, half, PERF_COUNT_HW_INSTRUCTIONS);
	COUNT(of_halves, half, PERF_COUNT_HW_CPU_CYCLES);
}

/* Vendors' codes are the host's; one or the other is there. */
static void vendors_codes_are_known(void **state)
{
	static const uint64_t configs[] = {0x03c7, 0x0f03}; /* scalar; all of them */
	static const unsigned int each[] = {2, 8};
	unsigned int known = 0;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_RAW,
			.size = sizeof(attr),
			.config = configs[i],
			.disabled = 1,
			.exclude_kernel = 1,
		};
		const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

		if (fd < 0) {
			assert_int_equal(errno, EINVAL);
			continue;
		}
		known++;
		assert_return_code(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), errno);
		sse(ROUNDS);
		assert_return_code(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), errno);
		assert_int_equal(count_of(fd), (uint64_t)each[i] * ROUNDS);
		close(fd);
	}
	if (!known)
		skip(); /* an AMD before Zen 2 */
}

struct sample {
	struct perf_event_header header;
	uint64_t ip, value;
};

/* All overflows are there; without the model at the very instruction. */
static void sample(int beside, bool exact)
{
	enum { PERIOD = 4 * 1009 };
	const int other = beside < 0 ? -1 : open_event(PERF_TYPE_HARDWARE, (uint64_t)beside, 0);
	const int fd = open_event(PERF_TYPE_RAW, config_of("flops_multiply"), PERIOD);
	const struct perf_event_mmap_page *page =
		mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const struct sample *samples = (const struct sample *)((const char *)page + PAGE);
	uint64_t n;

	assert_ptr_not_equal(page, MAP_FAILED);
	assert_return_code(prctl(PR_TASK_PERF_EVENTS_ENABLE), errno);
	sse(ROUNDS);
	assert_return_code(prctl(PR_TASK_PERF_EVENTS_DISABLE), errno);
	assert_int_equal(count_of(fd), 4UL * ROUNDS);
	n = page->data_head / sizeof(*samples);
	if (exact)
		assert_int_equal(n, 4 * ROUNDS / PERIOD);
	else
		assert_true(n && n <= 4 * ROUNDS / PERIOD);
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(samples[i].header.type, PERF_RECORD_SAMPLE);
		assert_true(samples[i].ip - (uint64_t)sse < 100);
		if (!exact)
			continue;
		assert_int_equal(samples[i].value, (i + 1) * PERIOD);
		assert_int_equal(samples[i].ip, samples[0].ip);
		assert_int_equal(*(const uint8_t *)samples[i].ip, 0x0f); /* mulps */
		assert_int_equal(*(const uint8_t *)(samples[i].ip + 1), 0x59);
	}
	munmap((void *)page, RING);
	close(fd);
	if (other >= 0)
		close(other);
}

static void overflows_are_at_the_instruction(void **state)
{
	(void)state;
	sample(-1, true);
	sample(PERF_COUNT_HW_INSTRUCTIONS, true);
	sample(PERF_COUNT_HW_CPU_CYCLES, false);
}

int main(void)
{
	/* The others leave no room for code that checks this and nothing else. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overflows_are_at_the_instruction),
		cmocka_unit_test(arithmetic_is_counted),
		cmocka_unit_test(fma_counts_twice),
		cmocka_unit_test(halves_are_counted),
		cmocka_unit_test(vendors_codes_are_known),
	};

	return cmocka_run_group_tests_name("floating point", tests, NULL, NULL);
}
