// SPDX-License-Identifier: MIT
/* The protocol of the mmap page on pages that the test writes, with clocks that it sets. */
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/counter/user_page.h"

struct clocks {
	uint64_t pmc, tsc;
	uint32_t counter; /* asked for last */
	unsigned int calls;
};

static uint64_t fake_pmc(uint32_t counter, void *ctx)
{
	struct clocks *clocks = ctx;

	clocks->counter = counter;
	clocks->calls++;
	return clocks->pmc;
}

static uint64_t fake_tsc(void *ctx)
{
	return ((struct clocks *)ctx)->tsc;
}

static struct perf_event_mmap_page counting_page(void)
{
	struct perf_event_mmap_page page = {.index = 3,
					    .offset = 1000,
					    .time_enabled = 50,
					    .time_running = 50,
					    .pmc_width = 48};

	page.cap_bit0_is_deprecated = 1;
	page.cap_user_rdpmc = 1;
	return page;
}

static bool take(const struct perf_event_mmap_page *page, struct clocks *clocks,
		 struct tally_value *value)
{
	const struct tly_user_clock clock = {fake_pmc, fake_tsc, clocks};

	memset(value, 0xff, sizeof(*value));
	return tly_user_page_read(page, &clock, value);
}

static void test_sum(void **state)
{
	struct perf_event_mmap_page page = counting_page();
	struct clocks clocks = {.pmc = 234};
	struct tally_value value;

	(void)state;
	assert_true(take(&page, &clocks, &value));
	assert_int_equal(clocks.counter, 2);
	assert_int_equal(value.raw, 1234);
	assert_int_equal(value.scaled, 1234);
	assert_int_equal(value.time_enabled, 50);
	assert_int_equal(value.state, TALLY_COUNTED);
	assert_int_equal(value.source, TALLY_SOURCE_KERNEL);
	assert_int_equal(value.id, 0);
	assert_int_equal(value.lost, 0);
}

/* The kernel presets a sampling counter to minus its period, in as many bits as it has. */
static void test_sign_extension(void **state)
{
	static const struct {
		uint16_t width;
		uint64_t pmc, raw;
	} rows[] = {
		{48, 0x0000fffffffffff6, 990}, /* -10 */
		{48, 0x00007fffffffffff, 1000 + 0x7fffffffffff},
		{48, 0x0000800000000000, 1000 - 0x800000000000},
		{48, 0xabcd00000000000a, 1010}, /* above the width is noise */
		{40, 0x000000fffffffffe, 998},
		{32, 0x00000000ffffffff, 999},
		{64, 0xfffffffffffffc18, 0},
		{1, 1, 999},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct perf_event_mmap_page page = counting_page();
		struct clocks clocks = {.pmc = rows[i].pmc};
		struct tally_value value;

		page.pmc_width = rows[i].width;
		assert_true(take(&page, &clocks, &value));
		assert_int_equal(value.raw, rows[i].raw);
	}
}

static void test_pages_that_want_read(void **state)
{
	struct perf_event_mmap_page page = counting_page();
	struct clocks clocks = {0};
	struct tally_value value;

	(void)state;
	page.index = 0;
	assert_false(take(&page, &clocks, &value));
	page = counting_page();
	page.cap_user_rdpmc = 0;
	assert_false(take(&page, &clocks, &value));
	page = counting_page();
	/* None of these may have touched a counter, for the instruction could fault. */
	assert_int_equal(clocks.calls, 0);
	page = counting_page();
	page.time_running = 0; /* and no clock to tell how long by now */
	assert_false(take(&page, &clocks, &value));
}

static void test_pages_without_sense(void **state)
{
	struct perf_event_mmap_page page = counting_page();
	struct clocks clocks = {0};
	struct tally_value value;

	(void)state;
	page.pmc_width = 0;
	assert_false(take(&page, &clocks, &value));
	page.pmc_width = 65;
	assert_false(take(&page, &clocks, &value));
	page = counting_page();
	page.cap_user_time = 1;
	page.time_shift = 64;
	assert_false(take(&page, &clocks, &value));
	/* An update that never ends must not hang the reader. */
	page = counting_page();
	page.lock = 7;
	assert_false(take(&page, &clocks, &value));
}

/* 2 cycles a nanosecond: mult / 2^shift is one half. */
static struct perf_event_mmap_page timed_page(void)
{
	struct perf_event_mmap_page page = counting_page();

	page.cap_user_time = 1;
	page.time_shift = 10;
	page.time_mult = 512;
	page.time_offset = (uint64_t)-1000; /* the last update was at cycle 2000 */
	return page;
}

static void test_times_go_on(void **state)
{
	struct perf_event_mmap_page page = timed_page();
	struct clocks clocks = {.pmc = 0, .tsc = 2600};
	struct tally_value value;

	(void)state;
	assert_true(take(&page, &clocks, &value));
	assert_int_equal(value.time_enabled, 350);
	assert_int_equal(value.time_running, 350);
	page.time_running = 0; /* it has just come on the hardware for the first time */
	assert_true(take(&page, &clocks, &value));
	assert_int_equal(value.time_enabled, 350);
	assert_int_equal(value.time_running, 300);
	assert_int_equal(value.source, TALLY_SOURCE_SCALED);
	assert_int_equal(value.scaled, 1167); /* 1000 * 350 / 300 */
}

static void test_time_precision(void **state)
{
	struct perf_event_mmap_page page = timed_page();
	struct clocks clocks = {.tsc = (1ull << 60) + 12345};
	struct tally_value value;

	(void)state;
	/* The quotient and the remainder are multiplied apart, or 2^60 * mult would overflow. */
	page.time_shift = 31;
	page.time_mult = 1u << 30;
	page.time_offset = 0;
	assert_true(take(&page, &clocks, &value));
	assert_int_equal(value.time_enabled, 50 + (1ull << 59) + 6172);
	/* A shift above 31 needs a remainder mask of 64 bits. */
	page.time_shift = 40;
	page.time_mult = 1u << 31;
	clocks.tsc = 1ull << 39;
	assert_true(take(&page, &clocks, &value));
	assert_int_equal(value.time_enabled, 50 + (1ull << 30));
}

static void test_short_clock(void **state)
{
	struct perf_event_mmap_page page = timed_page();
	struct clocks clocks = {.tsc = 0x10};
	struct tally_value value;

	(void)state;
	page.cap_user_time_short = 1;
	page.time_mask = 0xff;
	page.time_cycles = 0x1f0; /* 8 bits: 0x10 is 0x20 cycles later, at 0x210 */
	page.time_offset = 0;
	assert_true(take(&page, &clocks, &value));
	assert_int_equal(value.time_enabled, 50 + 0x210 / 2);
}

/* A lock that changes during the read: the second picture counts. */
struct moving {
	struct perf_event_mmap_page *page;
	unsigned int calls;
};

static uint64_t move_once(uint32_t counter, void *ctx)
{
	struct moving *moving = ctx;

	(void)counter;
	if (!moving->calls++) {
		moving->page->lock += 2;
		moving->page->offset = 5000;
		return 1;
	}
	return 2;
}

static void test_retry(void **state)
{
	struct perf_event_mmap_page page = counting_page();
	struct moving moving = {&page, 0};
	const struct tly_user_clock clock = {move_once, fake_tsc, &moving};
	struct tally_value value;

	(void)state;
	assert_true(tly_user_page_read(&page, &clock, &value));
	assert_int_equal(moving.calls, 2);
	assert_int_equal(value.raw, 5002);
}

/*
 * A writer on another thread moves the count between offset and counter as the kernel does when the
 * event leaves and enters the hardware. Every consistent picture sums up to TOTAL.
 */
#define TOTAL  1000000
#define ROUNDS 200000

struct shared {
	struct perf_event_mmap_page page;
	uint64_t pmc;
	bool stop;
};

static uint64_t shared_pmc(uint32_t counter, void *ctx)
{
	(void)counter;
	return __atomic_load_n(&((struct shared *)ctx)->pmc, __ATOMIC_RELAXED);
}

static void *write_page(void *ctx)
{
	struct shared *shared = ctx;
	struct perf_event_mmap_page *page = &shared->page;

	for (uint64_t i = 0; !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED); i++) {
		uint64_t pmc = i % TOTAL;

		__atomic_store_n(&page->lock, page->lock + 1, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		__atomic_store_n(&page->offset, (int64_t)(TOTAL - pmc), __ATOMIC_RELAXED);
		__atomic_store_n(&page->time_enabled, i + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&shared->pmc, pmc, __ATOMIC_RELAXED);
		__atomic_store_n(&page->time_running, i + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&page->lock, page->lock + 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void test_concurrent_writer(void **state)
{
	struct shared shared = {.page = counting_page(),
				.pmc = TOTAL - 1000 /* the page starts with offset 1000 */};
	const struct tly_user_clock clock = {shared_pmc, fake_tsc, &shared};
	unsigned int read = 0, torn = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, write_page, &shared), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct tally_value value;

		if (!tly_user_page_read(&shared.page, &clock, &value))
			continue;
		read++;
		torn += value.raw != TOTAL || value.time_enabled != value.time_running;
	}
	__atomic_store_n(&shared.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(torn, 0);
	assert_true(read > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_sign_extension),
		cmocka_unit_test(test_pages_that_want_read),
		cmocka_unit_test(test_pages_without_sense),
		cmocka_unit_test(test_times_go_on),
		cmocka_unit_test(test_time_precision),
		cmocka_unit_test(test_short_clock),
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_concurrent_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
