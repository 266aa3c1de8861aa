// SPDX-License-Identifier: MIT
/* The call chains of samples, in user mode: who called is told wherever the sample is. */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <tally/record.h>

#include "recorder.h"

/* ---- of compiled code ---- */

static volatile unsigned int worked;

enum { DEPTH = 5 };

static __attribute__((noinline)) int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* As compilers make them, without frame pointers; the C library's in between. */
static __attribute__((noinline)) int descend(int depth, int *numbers, size_t nr)
{
	volatile char room[40];
	int result;

	room[depth] = 1;
	if (depth) {
		result = descend(depth - 1, numbers, nr);
	} else {
		qsort(numbers, nr, sizeof(*numbers), compare);
		result = numbers[0];
	}
	return result + room[depth];
}

static __attribute__((noinline)) void sort(void *numbers)
{
	for (unsigned int i = 0; i < 3000; i++)
		((int *)numbers)[i] = (int)(i * 7919 % 3001);
	((int *)numbers)[0] += descend(DEPTH, numbers, 3000);
}

static bool is_in(uint64_t ip, const void *function, size_t size)
{
	return ip - (uint64_t)function < size;
}

/* Who is beneath descend() in the chain is beneath its caller, and so on up to main(). */
static unsigned int frames_of(const struct tally_sample *sample, const void *function, size_t size)
{
	unsigned int nr = 0;

	for (uint64_t i = 0; i < sample->nr_ips; i++)
		nr += is_in(tally_u64(sample->ips + i), function, size);
	return nr;
}

static void chains_are_complete(struct recorder *r)
{
	/* Their sizes are not known to C; they are small, and what counts is who is called. */
	const size_t small = 0x100;
	const struct tally_sample *sample;
	unsigned int seen = 0, elsewhere = 0;

	while ((sample = recorder_next(r))) {
		if (!frames_of(sample, (const void *)compare, 16))
			continue;
		assert_int_equal(tally_u64(sample->ips), PERF_CONTEXT_USER);
		/* Of the model's, the odd chain is of where the thread has got to. */
		elsewhere += tally_u64(sample->ips + 1) != sample->ip;
		assert_true(frames_of(sample, (const void *)descend, small) >= DEPTH + 1);
		assert_true(frames_of(sample, (const void *)sort, small) >= 1);
		seen++;
	}
	assert_true(seen > 10);
	assert_true(elsewhere <= (r->attr.config == PERF_COUNT_HW_INSTRUCTIONS ? 0 : seen / 4));
}

static void call_chains(void **state)
{
	static const struct {
		uint64_t config, period;
	} events[] = {{PERF_COUNT_HW_INSTRUCTIONS, 4001}, {PERF_COUNT_HW_CPU_CYCLES, 1009}};
	static int numbers[3000];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct recorder r = recorder_begin_at(events[i].config, events[i].period,
						      PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);

		recorder_run(&r, sort, numbers);
		chains_are_complete(&r);
		recorder_end(&r);
	}
}

/* ---- at a return ---- */

/*
 * As compilers make them with frame pointers: to the end they say that rbp is saved where it was
 * pushed, which is below the stack once it is popped.
 */
void returning(void);
void calling(void);

enum { RETURN = 5, RETURNING_END = 6, CALLING_SIZE = 0x30 };

/* clang-format off */
__asm__(".text\n"
	"returning: .cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16; .cfi_offset rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"calling: .cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16; .cfi_offset rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	sub $16, %rsp\n"
	"	movl $50000, -8(%rbp)\n"
	"1:	call returning\n"
	"	decl -8(%rbp)\n"
	"	jnz 1b\n"
	"	leave\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n");
/* clang-format on */

int main(void);

static __attribute__((noinline)) void call_calling(void *unused)
{
	(void)unused;
	calling();
	worked++;
}

static void chains_at_a_return(void **state)
{
	struct recorder r = recorder_begin_at(PERF_COUNT_HW_INSTRUCTIONS, 1009,
					      PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	recorder_run(&r, call_calling, NULL);
	while ((sample = recorder_next(&r))) {
		if (!is_in(sample->ip, (const void *)returning, RETURNING_END))
			continue;
		assert_true(sample->nr_ips > 5);
		assert_true(is_in(tally_u64(sample->ips + 2), (const void *)calling, CALLING_SIZE));
		assert_true(is_in(tally_u64(sample->ips + 3), (const void *)call_calling, 0x40));
		assert_int_equal(frames_of(sample, (const void *)main, 0x400), 1);
		seen += sample->ip == (uint64_t)returning + RETURN;
	}
	assert_true(seen > 10);
	recorder_end(&r);
}

/* ---- through a handler, and as far as it goes ---- */

static __attribute__((noinline)) void on_signal(int number)
{
	(void)number;
	for (unsigned int i = 0; i < 200000; i++)
		worked++;
}

static __attribute__((noinline)) void interrupted(void *unused)
{
	(void)unused;
	worked = 0;
	raise(SIGUSR1);
	worked++;
}

/* Who was interrupted is in the chain of who handles it. */
static void chains_through_a_handler(void **state)
{
	struct recorder r = recorder_begin_at(PERF_COUNT_HW_INSTRUCTIONS, 20011,
					      PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	signal(SIGUSR1, on_signal);
	recorder_run(&r, interrupted, NULL);
	while ((sample = recorder_next(&r))) {
		if (!is_in(sample->ip, (const void *)on_signal, 0x40))
			continue;
		assert_true(frames_of(sample, (const void *)interrupted, 0x40) >= 1);
		assert_true(frames_of(sample, (const void *)main, 0x400) >= 1);
		seen++;
	}
	assert_true(seen > 10);
	recorder_end(&r);
}

static __attribute__((noinline)) unsigned int dig(unsigned int depth)
{
	if (depth)
		return dig(depth - 1) + worked;
	on_signal(0);
	return worked;
}

static void dig_deep(void *unused)
{
	(void)unused;
	dig(1000);
}

/* The place and its callers are as many as perf_event_max_stack says, which is 127. */
static void chains_have_an_end(void **state)
{
	struct recorder r = recorder_begin_at(PERF_COUNT_HW_INSTRUCTIONS, 20011,
					      PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	recorder_run(&r, dig_deep, NULL);
	while ((sample = recorder_next(&r))) {
		if (!is_in(sample->ip, (const void *)on_signal, 0x40))
			continue;
		assert_int_equal(sample->nr_ips, 1 + 127);
		assert_int_equal(frames_of(sample, (const void *)dig, 0x40), 126);
		seen++;
	}
	assert_true(seen > 10);
	recorder_end(&r);
}

/* ---- code of which nothing is said ---- */

/* made(frame): works a while with that frame pointer. */
static const uint8_t made_code[] = {
	0x55,			      /* push %rbp */
	0x48, 0x89, 0xfd,	      /* mov %rdi, %rbp */
	0xb9, 0x40, 0x42, 0x0f, 0x00, /* mov $1000000, %ecx */
	0xff, 0xc9,		      /* 1: dec %ecx */
	0x75, 0xfc,		      /* jnz 1b */
	0x5d, 0xc3,		      /* pop %rbp; ret */
};

enum { MADE_LOOP = 9, MADE_END = 13 };

static void run_made(void *made)
{
	struct {
		uint64_t next, back;
	} frame = {0, (uint64_t)made + PAGE + 1};

	((void (*)(void *))made)(&frame);
}

/* Of samples in the loop, whether the caller in the made frame is told. */
static void expect_caller(uint8_t *made, bool told)
{
	struct recorder r = recorder_begin_at(PERF_COUNT_HW_INSTRUCTIONS, 40009,
					      PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	recorder_run(&r, run_made, made);
	while ((sample = recorder_next(&r))) {
		if (sample->ip - (uint64_t)made - MADE_LOOP >= MADE_END - MADE_LOOP)
			continue;
		assert_int_equal(sample->nr_ips, told ? 3 : 2);
		assert_int_equal(tally_u64(sample->ips + 1), sample->ip);
		if (told)
			assert_int_equal(tally_u64(sample->ips + 2), made + PAGE + 1);
		seen++;
	}
	assert_in_range(seen, 40, 60);
	recorder_end(&r);
}

/* Frame pointers are believed where they lead into code, and that may come later. */
static void frame_pointers(void **state)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *made = mmap(NULL, 2 * PAGE, prot, flags, -1, 0);

	(void)state;
	assert_ptr_not_equal(made, MAP_FAILED);
	memcpy(made, made_code, sizeof(made_code));
	munmap(made + PAGE, PAGE);
	expect_caller(made, false);
	assert_ptr_equal(mmap(made + PAGE, PAGE, prot, flags | MAP_FIXED, -1, 0), made + PAGE);
	expect_caller(made, true);
	munmap(made, 2 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(call_chains),
		cmocka_unit_test(chains_at_a_return),
		cmocka_unit_test(chains_through_a_handler),
		cmocka_unit_test(chains_have_an_end),
		cmocka_unit_test(frame_pointers),
	};

	return cmocka_run_group_tests_name("run/chains", tests, NULL, NULL);
}
