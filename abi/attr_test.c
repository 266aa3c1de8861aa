// SPDX-License-Identifier: MIT
/* The table against the struct as the compiler lays it out. */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <tally/attr.h>

#include "abi/attr.h"

#define ALL_ONES(field)                                                                            \
	{                                                                                          \
		struct perf_event_attr a = {.size = sizeof(a)};                                    \
                                                                                                   \
		memset(&a.field, 0xff, sizeof(a.field));                                           \
		check_alone(#field, &a, sizeof(a.field));                                          \
	}

#define ONE_BIT(field, most)                                                                       \
	{                                                                                          \
		struct perf_event_attr a = {.size = sizeof(a), .field = (most)};                   \
                                                                                                   \
		check_bits(#field, &a, most);                                                      \
	}

/* Of all items, the one called @name alone sees what the compiler stored in the field. */
static void check_alone(const char *name, struct perf_event_attr *attr, size_t bytes)
{
	const struct tly_attr_item *item = tly_attr_find(name, NULL);
	struct perf_event_attr mine = {.size = sizeof(mine)};

	assert_non_null(item);
	assert_int_equal(item->bytes, bytes);
	assert_true(tly_attr_set(&mine, item, UINT64_MAX));
	assert_memory_equal(&mine, attr, sizeof(mine));
	assert_true(tly_attr_set(&mine, item, 0));
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	assert_memory_equal(&mine, attr, sizeof(mine));
}

static void check_bits(const char *name, const struct perf_event_attr *attr, uint64_t most)
{
	const struct tly_attr_item *item = tly_attr_find(name, NULL);
	struct perf_event_attr mine = {.size = sizeof(mine)};

	assert_non_null(item);
	assert_int_equal(tly_attr_get(attr, item), most);
	assert_true(tly_attr_set(&mine, item, UINT64_MAX));
	assert_memory_equal(&mine, attr, sizeof(mine));
	for (size_t i = 0; i < tly_attr_nr_items; i++)
		if (&tly_attr_items[i] != item && strcmp(tly_attr_items[i].name, "size"))
			assert_int_equal(tly_attr_get(attr, &tly_attr_items[i]), 0);
}

static void test_fields(void **state)
{
	(void)state;
	ALL_ONES(config);
	ALL_ONES(sample_period);
	ALL_ONES(sample_freq);
	ALL_ONES(sample_type);
	ALL_ONES(read_format);
	ALL_ONES(wakeup_events);
	ALL_ONES(wakeup_watermark);
	ALL_ONES(bp_type);
	ALL_ONES(bp_addr);
	ALL_ONES(config1);
	ALL_ONES(bp_len);
	ALL_ONES(config2);
	ALL_ONES(branch_sample_type);
	ALL_ONES(sample_regs_user);
	ALL_ONES(sample_stack_user);
	ALL_ONES(clockid);
	ALL_ONES(sample_regs_intr);
	ALL_ONES(aux_watermark);
	ALL_ONES(sample_max_stack);
	ALL_ONES(__reserved_2);
	ALL_ONES(aux_sample_size);
	ALL_ONES(sig_data);
}

static void test_flags(void **state)
{
	(void)state;
	ONE_BIT(disabled, 1);
	ONE_BIT(inherit, 1);
	ONE_BIT(pinned, 1);
	ONE_BIT(exclusive, 1);
	ONE_BIT(exclude_user, 1);
	ONE_BIT(exclude_kernel, 1);
	ONE_BIT(exclude_hv, 1);
	ONE_BIT(exclude_idle, 1);
	ONE_BIT(mmap, 1);
	ONE_BIT(comm, 1);
	ONE_BIT(freq, 1);
	ONE_BIT(inherit_stat, 1);
	ONE_BIT(enable_on_exec, 1);
	ONE_BIT(task, 1);
	ONE_BIT(watermark, 1);
	ONE_BIT(precise_ip, 3);
	ONE_BIT(mmap_data, 1);
	ONE_BIT(sample_id_all, 1);
	ONE_BIT(exclude_host, 1);
	ONE_BIT(exclude_guest, 1);
	ONE_BIT(exclude_callchain_kernel, 1);
	ONE_BIT(exclude_callchain_user, 1);
	ONE_BIT(mmap2, 1);
	ONE_BIT(comm_exec, 1);
	ONE_BIT(use_clockid, 1);
	ONE_BIT(context_switch, 1);
	ONE_BIT(write_backward, 1);
	ONE_BIT(namespaces, 1);
	ONE_BIT(ksymbol, 1);
	ONE_BIT(bpf_event, 1);
	ONE_BIT(aux_output, 1);
	ONE_BIT(cgroup, 1);
	ONE_BIT(text_poke, 1);
	ONE_BIT(build_id, 1);
	ONE_BIT(inherit_thread, 1);
	ONE_BIT(remove_on_exec, 1);
	ONE_BIT(sigtrap, 1);
}

/* Name and number of each bit, from the header. */
static void test_mask_bits(void **state)
{
#define S(n)                                                                                       \
	{                                                                                          \
		"sample_type", #n, PERF_SAMPLE_##n                                                 \
	}
#define R(n)                                                                                       \
	{                                                                                          \
		"read_format", #n, PERF_FORMAT_##n                                                 \
	}
#define B(n)                                                                                       \
	{                                                                                          \
		"branch_sample_type", #n, PERF_SAMPLE_BRANCH_##n                                   \
	}
	static const struct {
		const char *of, *name;
		uint64_t bit;
	} bits[] = {
		S(IP),
		S(TID),
		S(TIME),
		S(ADDR),
		S(READ),
		S(CALLCHAIN),
		S(ID),
		S(CPU),
		S(PERIOD),
		S(STREAM_ID),
		S(RAW),
		S(BRANCH_STACK),
		S(REGS_USER),
		S(STACK_USER),
		S(WEIGHT),
		S(DATA_SRC),
		S(IDENTIFIER),
		S(TRANSACTION),
		S(REGS_INTR),
		S(PHYS_ADDR),
		S(AUX),
		S(CGROUP),
		S(DATA_PAGE_SIZE),
		S(CODE_PAGE_SIZE),
		S(WEIGHT_STRUCT),
		R(TOTAL_TIME_ENABLED),
		R(TOTAL_TIME_RUNNING),
		R(ID),
		R(GROUP),
		R(LOST),
		B(USER),
		B(KERNEL),
		B(HV),
		B(ANY),
		B(ANY_CALL),
		B(ANY_RETURN),
		B(IND_CALL),
		B(ABORT_TX),
		B(IN_TX),
		B(NO_TX),
		B(COND),
		B(CALL_STACK),
		B(IND_JUMP),
		B(CALL),
		B(NO_FLAGS),
		B(NO_CYCLES),
		B(TYPE_SAVE),
		B(HW_INDEX),
		B(PRIV_SAVE),
	};
	uint64_t sample_bits = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		const struct tly_attr_item *item = tly_attr_find(bits[i].name, bits[i].of);
		const struct tly_attr_item *mask = tly_attr_find(bits[i].of, NULL);
		struct perf_event_attr attr = {.size = sizeof(attr)};

		assert_non_null(item);
		tly_attr_set(&attr, item, 1);
		assert_true(tly_attr_get(&attr, mask) == bits[i].bit);
		if (!strcmp(bits[i].of, "sample_type"))
			sample_bits |= bits[i].bit;
	}
	/* No bit that this header defines is missing from the list above. */
	assert_true(sample_bits == PERF_SAMPLE_MAX - 1);
}

static void test_published_sizes(void **state)
{
	static const struct {
		const char *name;
		uint32_t size;
	} rows[] = {
		{"type", PERF_ATTR_SIZE_VER0},
		{"config1", PERF_ATTR_SIZE_VER0},
		{"config2", PERF_ATTR_SIZE_VER1},
		{"branch_sample_type", PERF_ATTR_SIZE_VER2},
		{"sample_stack_user", PERF_ATTR_SIZE_VER3},
		{"sample_regs_intr", PERF_ATTR_SIZE_VER4},
		{"aux_watermark", PERF_ATTR_SIZE_VER5},
		{"sample_max_stack", PERF_ATTR_SIZE_VER5},
		{"aux_sample_size", PERF_ATTR_SIZE_VER6},
		{"sig_data", PERF_ATTR_SIZE_VER7},
		{"config3", 136},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(tly_attr_item_size(tly_attr_find(rows[i].name, NULL)),
				 rows[i].size);
}

/* An attr ends where its size says, whatever follows it in memory. */
static void test_size_limits(void **state)
{
	struct perf_event_attr attr = {.size = PERF_ATTR_SIZE_VER1, .config2 = 5};
	const struct tly_attr_item *config2 = tly_attr_find("config2", NULL);
	const struct tly_attr_item *branches = tly_attr_find("branch_sample_type", NULL);

	(void)state;
	attr.branch_sample_type = 7;
	assert_int_equal(tly_attr_get(&attr, config2), 5);
	assert_int_equal(tly_attr_get(&attr, branches), 0);
	assert_false(tly_attr_set(&attr, branches, 1));
	assert_int_equal(attr.branch_sample_type, 7);
	attr.size = PERF_ATTR_SIZE_VER1 - 1;
	assert_int_equal(tly_attr_get(&attr, config2), 0);
	attr.size = 0;
	assert_int_equal(tly_attr_size(&attr), PERF_ATTR_SIZE_VER0);
	assert_int_equal(tly_attr_get(&attr, config2), 0);
	attr.size = PERF_ATTR_SIZE_VER2;
	assert_true(tly_attr_zero_after(&attr, PERF_ATTR_SIZE_VER2));
	assert_false(tly_attr_zero_after(&attr, PERF_ATTR_SIZE_VER1));
}

static void check_format(const struct perf_event_attr *attr, const char *expected)
{
	char text[512];
	int length = tally_attr_format(attr, text, sizeof(text));

	assert_string_equal(text, expected);
	assert_int_equal(length, strlen(expected));
}

static void test_format(void **state)
{
	struct perf_event_attr counting = {.type = PERF_TYPE_HARDWARE, .size = 128};
	struct perf_event_attr sampling = {
		.type = PERF_TYPE_SOFTWARE,
		.size = 128,
		.config = 0x1a,
		.sample_freq = 4000,
		.freq = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME | 1ull << 40,
		.read_format = PERF_FORMAT_ID | PERF_FORMAT_GROUP,
		.disabled = 1,
		.precise_ip = 2,
		.watermark = 1,
		.wakeup_watermark = 8192,
		.clockid = -5,
		.use_clockid = 1,
	};
	struct perf_event_attr breakpoint = {.type = PERF_TYPE_BREAKPOINT,
					     .size = 128,
					     .bp_type = 3,
					     .bp_addr = 0xffff1234,
					     .bp_len = 8};

	(void)state;
	check_format(&counting, "type=0 size=128");
	check_format(&sampling,
		     "type=1 size=128 config=0x1a sample_freq=4000 "
		     "sample_type=IP|TIME|0x10000000000 read_format=ID|GROUP disabled=1 freq=1 "
		     "watermark=1 precise_ip=2 use_clockid=1 wakeup_watermark=8192 clockid=-5");
	check_format(&breakpoint, "type=5 size=128 bp_type=3 bp_addr=0xffff1234 bp_len=8");
}

static void test_format_into_little_room(void **state)
{
	struct perf_event_attr attr = {.type = 6, .size = 128, .config = 1};
	const int needed = strlen("type=6 size=128 config=0x1");
	char text[10];

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(tally_attr_format(&attr, text, 8), needed);
	assert_string_equal(text, "type=6 ");
	assert_int_equal(text[8], 'x');
	assert_int_equal(tally_attr_format(&attr, NULL, 0), needed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_mask_bits),
		cmocka_unit_test(test_published_sizes),
		cmocka_unit_test(test_size_limits),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_format_into_little_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
