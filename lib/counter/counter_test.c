// SPDX-License-Identifier: MIT
/* One counter and one group on the running kernel, checked against the system call itself. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
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
#include <unistd.h>

#include <cmocka.h>

#include <tally/counter.h>

#include "lib/counter/faults_test.h"
#include "tests/breakpoints.h"

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)
#define USER  .exclude_kernel = 1, .exclude_hv = 1
#define SOFTWARE(c)                                                                                \
	{                                                                                          \
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(struct perf_event_attr), .config = (c), \
		.read_format = TIMES | PERF_FORMAT_ID, .disabled = 1, USER                         \
	}

static struct tally_counter *open_counter(const struct perf_event_attr *attr,
					  struct tally_counter *leader)
{
	struct tally_counter *counter;
	struct tally_error err;

	if (tally_counter_open(attr, 0, -1, leader, 0, &counter, &err))
		fail_msg("%s (%s)", err.what, err.remedy);
	return counter;
}

static struct tally_value value_of(struct tally_counter *counter)
{
	struct tally_value value;

	assert_int_equal(tally_counter_read(counter, &value), 0);
	return value;
}

/* What runs between enabling and disabling has been used before. */
static int warm_up(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *counter = open_counter(&attr, NULL);

	(void)state;
	assert_int_equal(tally_counter_enable(counter, true), 0);
	fault(100);
	assert_int_equal(tally_counter_disable(counter, true), 0);
	assert_int_equal(tally_task_enable(), 0);
	assert_int_equal(tally_task_disable(), 0);
	tally_counter_close(counter);
	return 0;
}

static void test_counts_between_enable_and_disable(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *counter = open_counter(&attr, NULL);
	struct tally_value value;

	(void)state;
	assert_int_equal(value_of(counter).state, TALLY_NOT_COUNTED);
	fault(10);
	assert_int_equal(tally_counter_enable(counter, false), 0);
	fault(100);
	assert_int_equal(tally_counter_disable(counter, false), 0);
	fault(10);
	value = value_of(counter);
	assert_int_equal(value.raw, 100);
	assert_int_equal(value.scaled, 100);
	assert_int_equal(value.state, TALLY_COUNTED);
	assert_int_equal(value.source, TALLY_SOURCE_KERNEL);
	assert_true(value.time_enabled > 0);
	assert_int_equal(value.time_running, value.time_enabled);
	assert_int_equal(tally_counter_reset(counter, false), 0);
	assert_int_equal(value_of(counter).raw, 0);
	assert_int_equal(value_of(counter).time_enabled, value.time_enabled);
	tally_counter_close(counter);
	tally_counter_close(NULL);
}

/* What we return is what read(2) of the same descriptor returns, in every format. */
static void test_every_read_format(void **state)
{
	(void)state;
	for (uint64_t format = 0; format < 32; format++) {
		struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
		struct tally_counter *counter;
		struct tally_value value;
		uint64_t words[8], id, *word = words;

		attr.read_format = format;
		if (tally_counter_open(&attr, 0, -1, NULL, 0, &counter, NULL)) {
			/* PERF_FORMAT_LOST is of Linux 6.0. */
			assert_true(format & PERF_FORMAT_LOST);
			continue;
		}
		assert_int_equal(tally_counter_id(counter, &id), 0);
		tally_counter_enable(counter, false);
		fault(3);
		tally_counter_disable(counter, false);
		value = value_of(counter);
		assert_int_equal(value.raw, 3);
		assert_true(read(tally_counter_fd(counter), words, sizeof(words)) > 0);
		if (format & PERF_FORMAT_GROUP)
			assert_int_equal(*word++, 1);
		else
			assert_int_equal(*word++, 3);
		if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
			assert_int_equal(value.time_enabled, *word++);
		if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
			assert_int_equal(value.time_running, *word++);
		assert_int_equal(value.id, format & PERF_FORMAT_ID ? id : 0);
		tally_counter_close(counter);
	}
}

static void test_group(void **state)
{
	static const uint64_t configs[] = {PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MIN,
					   PERF_COUNT_SW_PAGE_FAULTS_MAJ};
	struct tally_counter *counters[3];
	struct tally_value values[3];
	uint64_t id;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct perf_event_attr attr = SOFTWARE(configs[i]);

		attr.disabled = i == 0;
		attr.read_format |= PERF_FORMAT_GROUP;
		counters[i] = open_counter(&attr, i ? counters[0] : NULL);
	}
	assert_int_equal(tally_counter_enable(counters[0], true), 0);
	fault(20);
	assert_int_equal(tally_counter_disable(counters[0], true), 0);
	assert_int_equal(tally_group_read(counters[0], values, 3), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tally_counter_id(counters[i], &id), 0);
		assert_int_equal(values[i].id, id);
		/* The times are the leader's, which came first. */
		assert_int_equal(values[i].time_running, values[0].time_running);
		/* The read of a member delivers the group too: its own value is found in it. */
		assert_int_equal(value_of(counters[i]).raw, values[i].raw);
		assert_int_equal(value_of(counters[i]).id, id);
	}
	assert_int_equal(values[0].raw, 20);
	assert_int_equal(values[1].raw, 20);
	assert_int_equal(values[2].raw, 0);
	assert_int_equal(tally_group_read(counters[0], values, 2), -ENOSPC);
	assert_int_equal(tally_counter_reset(counters[0], true), 0);
	assert_int_equal(value_of(counters[1]).raw, 0);
	/* The kernel takes a closed member out of the group. */
	tally_counter_close(counters[1]);
	assert_int_equal(tally_group_read(counters[0], values, 3), 2);
	tally_counter_close(counters[2]);
	tally_counter_close(counters[0]);
}

static void test_large_group(void **state)
{
	enum { NR = 100 };
	struct tally_counter *counters[NR];
	struct tally_value values[NR];

	(void)state;
	for (int i = 0; i < NR; i++) {
		struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);

		attr.disabled = i == 0;
		attr.read_format |= PERF_FORMAT_GROUP;
		counters[i] = open_counter(&attr, i ? counters[0] : NULL);
	}
	tally_counter_enable(counters[0], true);
	fault(7);
	tally_counter_disable(counters[0], true);
	assert_int_equal(tally_group_read(counters[0], values, NR), NR);
	for (int i = 0; i < NR; i++)
		assert_int_equal(values[i].raw, 7);
	assert_int_equal(tally_group_read(counters[0], values, NR - 1), -ENOSPC);
	for (int i = NR; i-- > 0;)
		tally_counter_close(counters[i]);
}

/* A member with its own format reads its own value alone, whatever the leader's is. */
static void test_member_in_single_format(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *leader, *member;

	(void)state;
	attr.read_format |= PERF_FORMAT_GROUP;
	leader = open_counter(&attr, NULL);
	attr.read_format = TIMES;
	attr.disabled = 0;
	attr.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
	member = open_counter(&attr, leader);
	tally_counter_enable(leader, false);
	fault(4);
	assert_int_equal(tally_counter_disable(member, false), 0);
	fault(4);
	tally_counter_disable(leader, false);
	assert_int_equal(value_of(leader).raw, 8);
	assert_int_equal(value_of(member).raw, 0);
	assert_true(value_of(member).time_enabled < value_of(leader).time_enabled);
	tally_counter_close(member);
	tally_counter_close(leader);
}

static void test_refresh_and_period(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *counter = open_counter(&attr, NULL);

	(void)state;
	/* A counting event has neither. */
	assert_int_equal(tally_counter_refresh(counter, 1), -EINVAL);
	assert_int_equal(tally_counter_set_period(counter, 10), -EINVAL);
	tally_counter_close(counter);

	attr.sample_period = 5;
	counter = open_counter(&attr, NULL);
	assert_int_equal(tally_counter_refresh(counter, 0), -EINVAL);
	assert_int_equal(tally_counter_refresh(counter, 2), 0);
	fault(100);
	/* The second overflow disabled it. */
	assert_int_equal(value_of(counter).raw, 10);
	assert_int_equal(tally_counter_set_period(counter, 0), -EINVAL);
	assert_int_equal(tally_counter_set_period(counter, 1), 0);
	tally_counter_close(counter);
}

/* By @nr faults sampled by @counter. */
static uint64_t bytes_written(struct tally_counter *counter,
			      const struct perf_event_mmap_page *ring, size_t nr)
{
	uint64_t before = ring->data_head;

	assert_int_equal(tally_counter_enable(counter, false), 0);
	fault(nr);
	assert_int_equal(tally_counter_disable(counter, false), 0);
	return ring->data_head - before;
}

static void test_output(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	const size_t page = sysconf(_SC_PAGESIZE);
	struct tally_counter *into, *from;
	struct perf_event_mmap_page *ring;

	(void)state;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER;
	into = open_counter(&attr, NULL);
	from = open_counter(&attr, NULL);
	assert_int_equal(tally_counter_pause_output(into, true), -EINVAL);
	ring = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE, MAP_SHARED, tally_counter_fd(into), 0);
	assert_true(ring != MAP_FAILED);
	assert_int_equal(tally_counter_set_output(from, into), 0);
	assert_int_equal(tally_counter_set_output(from, from), -EINVAL);
	assert_int_equal(bytes_written(from, ring, 3), 3 * 16);
	assert_int_equal(tally_counter_pause_output(into, true), 0);
	assert_int_equal(bytes_written(from, ring, 3), 0);
	assert_int_equal(tally_counter_pause_output(into, false), 0);
	assert_int_equal(tally_counter_set_output(from, NULL), 0);
	assert_int_equal(bytes_written(from, ring, 3), 0);
	munmap(ring, 5 * page);
	tally_counter_close(from);
	tally_counter_close(into);
}

static int tracepoint_id(const char *name)
{
	char path[128];
	FILE *file;
	int id;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	file = fopen(path, "re");
	if (!file) {
		print_message("# skipped: %s cannot be read\n", path);
		skip();
	}
	assert_int_equal(fscanf(file, "%d", &id), 1);
	fclose(file);
	return id;
}

static struct tally_counter *open_tracepoint(const char *name)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
				       .size = sizeof(attr),
				       .config = tracepoint_id(name),
				       .read_format = TIMES};

	return open_counter(&attr, NULL);
}

static void test_filter(void **state)
{
	struct tally_counter *counter = open_tracepoint("syscalls/sys_enter_write");
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct tally_error err;

	(void)state;
	assert_int_equal(tally_counter_set_filter(counter, "count >", &err), -EINVAL);
	assert_non_null(strstr(err.what, "count >"));
	assert_int_equal(tally_counter_set_filter(counter, "count == 11", &err), 0);
	tally_counter_reset(counter, false);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(write(null, "hello world", 11), 11);
		assert_int_equal(write(null, "hello world", 10), 10);
	}
	assert_int_equal(value_of(counter).raw, 5);
	assert_int_equal(tally_counter_set_filter(counter, "count == 10", &err), -EEXIST);
	assert_non_null(strstr(err.remedy, "&&"));
	tally_counter_close(counter);
	close(null);

	counter = open_counter(&attr, NULL);
	assert_int_equal(tally_counter_set_filter(counter, "count == 1", &err), -EINVAL);
	assert_non_null(strstr(err.remedy, "only tracepoints"));
	tally_counter_close(counter);
}

static volatile uint64_t watched[2];

static void test_modify_attributes(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = 2,
		.bp_addr = (uintptr_t)&watched[0],
		.bp_len = 8,
		.read_format = TIMES,
		USER,
	};
	struct perf_event_attr other = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *counter;
	struct tally_error err;

	(void)state;
	if (tally_counter_open(&attr, 0, -1, NULL, 0, &counter, &err)) {
		print_message("# skipped: %s\n", err.what);
		skip();
	}
	assert_false(breakpoints_forgotten());
	watched[0]++;
	attr.bp_addr = (uintptr_t)&watched[1];
	assert_int_equal(tally_counter_modify_attributes(counter, &attr, &err), 0);
	watched[0]++;
	watched[1]++;
	watched[1]++;
	assert_int_equal(value_of(counter).raw, 3);
	assert_int_equal(tally_counter_modify_attributes(counter, &other, &err), -EINVAL);
	assert_non_null(strstr(err.remedy, "bp_addr"));
	attr.size = 12;
	assert_int_equal(tally_counter_modify_attributes(counter, &attr, &err), -E2BIG);
	assert_int_equal(attr.size, 12);
	tally_counter_close(counter);

	counter = open_counter(&other, NULL);
	assert_int_equal(tally_counter_modify_attributes(counter, &other, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.what, "breakpoint"));
	tally_counter_close(counter);
}

/* The smallest program that a tracepoint takes: return 0. */
static int load_program(void)
{
	static const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_TRACEPOINT,
		.insns = (uintptr_t)code,
		.insn_cnt = 2,
		.license = (uintptr_t) "GPL",
	};
	int fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	if (fd < 0) {
		print_message("# skipped: BPF_PROG_LOAD: %s\n", strerror(errno));
		skip();
	}
	return fd;
}

static void test_bpf(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *first = open_tracepoint("syscalls/sys_enter_getuid");
	struct tally_counter *second = open_tracepoint("syscalls/sys_enter_getuid");
	struct tally_counter *other;
	uint32_t ids[2] = {0}, nr;
	int prog = load_program(), another = load_program();

	(void)state;
	assert_int_equal(tally_counter_query_bpf(first, NULL, 0, &nr), 0);
	assert_int_equal(nr, 0);
	assert_int_equal(tally_counter_set_bpf(first, 12345), -EBADF);
	assert_int_equal(tally_counter_set_bpf(first, prog), 0);
	assert_int_equal(tally_counter_set_bpf(first, prog), -EEXIST);
	assert_int_equal(tally_counter_set_bpf(second, another), 0);
	assert_int_equal(tally_counter_query_bpf(first, ids, 2, &nr), 0);
	assert_int_equal(nr, 2);
	assert_true(ids[0] && ids[1] && ids[0] != ids[1]);
	ids[1] = 0xdead;
	assert_int_equal(tally_counter_query_bpf(second, ids, 1, &nr), -ENOSPC);
	assert_int_equal(nr, 2);
	assert_int_equal(ids[1], 0xdead);
	other = open_counter(&attr, NULL);
	assert_int_equal(tally_counter_query_bpf(other, ids, 2, &nr), -EINVAL);
	tally_counter_close(other);
	tally_counter_close(first);
	tally_counter_close(second);
	close(prog);
	close(another);
}

static void test_task_enable(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *counter = open_counter(&attr, NULL);

	(void)state;
	assert_int_equal(tally_task_enable(), 0);
	fault(6);
	assert_int_equal(tally_task_disable(), 0);
	fault(6);
	assert_int_equal(value_of(counter).raw, 6);
	tally_counter_close(counter);
}

/* A software event is never on the hardware: the page says so and read(2) does it. */
static void test_read_user_falls_back(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *counter = open_counter(&attr, NULL);
	struct tally_value value;
	bool fast = true;

	(void)state;
	tally_counter_enable(counter, false);
	fault(9);
	tally_counter_disable(counter, false);
	assert_int_equal(tally_counter_read_user(counter, &value, &fast), 0);
	assert_false(fast);
	assert_int_equal(value.raw, 9);
	assert_int_equal(tally_counter_read_user(counter, &value, NULL), 0);
	tally_counter_close(counter);
}

/* With a PMU: the two ways of reading agree, the faster being at most a little behind. */
static void test_read_user_on_hardware(void **state)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_HW_INSTRUCTIONS,
				       .read_format = TIMES,
				       USER};
	struct tally_value user, before, after;
	struct tally_counter *counter;
	struct tally_error err;
	bool fast;

	(void)state;
	if (tally_counter_open(&attr, 0, -1, NULL, 0, &counter, &err)) {
		print_message("# skipped: %s\n", err.what);
		skip();
	}
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(tally_counter_read(counter, &before), 0);
		assert_int_equal(tally_counter_read_user(counter, &user, &fast), 0);
		assert_int_equal(tally_counter_read(counter, &after), 0);
		assert_true(before.raw <= user.raw && user.raw <= after.raw);
		assert_true(before.time_running <= after.time_running);
	}
	tally_counter_close(counter);
}

struct reader {
	struct tally_counter *leader;
	bool wrong;
};

static void *read_often(void *ctx)
{
	struct reader *reader = ctx;

	for (int i = 0; i < 5000; i++) {
		struct tally_value group[2], one;

		reader->wrong |= tally_group_read(reader->leader, group, 2) != 2;
		reader->wrong |= group[0].raw != 5 || group[1].raw != 5;
		reader->wrong |= tally_counter_read(reader->leader, &one) != 0 || one.raw != 5;
	}
	return NULL;
}

static void test_reads_may_overlap(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *leader, *member;
	struct reader readers[4];
	pthread_t threads[4];

	(void)state;
	attr.read_format |= PERF_FORMAT_GROUP;
	leader = open_counter(&attr, NULL);
	attr.disabled = 0;
	member = open_counter(&attr, leader);
	tally_counter_enable(leader, true);
	fault(5);
	tally_counter_disable(leader, true);
	for (int i = 0; i < 4; i++) {
		readers[i] = (struct reader){leader, false};
		assert_int_equal(pthread_create(&threads[i], NULL, read_often, &readers[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_false(readers[i].wrong);
	}
	tally_counter_close(member);
	tally_counter_close(leader);
}

static void test_refused_open(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *counter = (void *)1;
	struct tally_error err;

	(void)state;
	attr.read_format = 1ull << 33;
	assert_int_equal(tally_counter_open(&attr, 0, -1, NULL, 0, &counter, &err), -EINVAL);
	assert_null(counter);
	assert_int_equal(err.code, -EINVAL);
	assert_non_null(strstr(err.what, "bit 33 of attr.read_format"));
	assert_int_equal(tally_counter_open(&attr, 0, -1, NULL, 0, &counter, NULL), -EINVAL);
}

static void test_descriptor_closes_on_exec(void **state)
{
	struct perf_event_attr attr = SOFTWARE(PERF_COUNT_SW_PAGE_FAULTS);
	struct tally_counter *counter = open_counter(&attr, NULL);

	(void)state;
	assert_int_equal(fcntl(tally_counter_fd(counter), F_GETFD), FD_CLOEXEC);
	tally_counter_close(counter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_between_enable_and_disable),
		cmocka_unit_test(test_every_read_format),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_large_group),
		cmocka_unit_test(test_member_in_single_format),
		cmocka_unit_test(test_refresh_and_period),
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_modify_attributes),
		cmocka_unit_test(test_bpf),
		cmocka_unit_test(test_task_enable),
		cmocka_unit_test(test_read_user_falls_back),
		cmocka_unit_test(test_read_user_on_hardware),
		cmocka_unit_test(test_reads_may_overlap),
		cmocka_unit_test(test_refused_open),
		cmocka_unit_test(test_descriptor_closes_on_exec),
	};

	return cmocka_run_group_tests(tests, warm_up, NULL);
}
