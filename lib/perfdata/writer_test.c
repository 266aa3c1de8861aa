// SPDX-License-Identifier: MIT
/* The writer, through the reader: a file can be read at any moment, and says what it was told. */
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <tally/perfdata.h>

#include "abi/record_build.h"
#include "lib/perfdata/format.h"
#include "lib/perfdata/writer.h"

static const struct tally_perfdata_options plain = {.clockid = -1};

/* An attr longer than the struct we know; its last word is @extra. */
struct long_attr {
	struct perf_event_attr attr;
	uint64_t extra;
};

static struct long_attr make_attr(uint64_t config, uint64_t extra)
{
	return (struct long_attr){
		.attr = {.type = PERF_TYPE_SOFTWARE,
			 .size = sizeof(struct long_attr),
			 .config = config,
			 .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER,
			 .sample_id_all = 1},
		.extra = extra,
	};
}

static struct tally_perfdata_writer *
start(char path[64], const struct tally_perfdata_options *options, uint64_t extra)
{
	struct long_attr attrs[2] = {make_attr(PERF_COUNT_SW_CPU_CLOCK, extra),
				     make_attr(PERF_COUNT_SW_DUMMY, 0)};
	const struct tly_writer_event events[2] = {
		{.name = "energy", .unit = "Joules", .scale = 0.25, .attr = &attrs[0].attr},
		{.name = "dummy", .scale = 1, .attr = &attrs[1].attr, .leader = 0},
	};
	const uint64_t ids[] = {7, 8, 9};
	struct tally_perfdata_writer *writer;
	struct tally_error err;
	int fd;

	strcpy(path, "/tmp/tally-writer-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	if (tly_writer_new(path, events, 2, options, &writer, &err))
		fail_msg("%s", err.what);
	assert_int_equal(tally_perfdata_writer_ids(writer, 0, ids, 1), 0);
	assert_int_equal(tally_perfdata_writer_ids(writer, 0, ids + 1, 1), 0);
	assert_int_equal(tally_perfdata_writer_ids(writer, 1, ids + 2, 1), 0);
	assert_int_equal(tally_perfdata_writer_ids(writer, 2, ids, 1), -EINVAL);
	return writer;
}

static void write_sample(struct tally_perfdata_writer *writer, uint64_t id, uint64_t time)
{
	static struct bytes b;
	struct iovec piece;

	begin(&b, PERF_RECORD_SAMPLE, 0);
	put64(&b, id);
	put64(&b, time);
	set_size(&b, b.size);
	piece = (struct iovec){b.data, b.size};
	assert_int_equal(tally_perfdata_write(writer, &piece, 1, NULL), 0);
}

static struct tally_perfdata *read_back(const char *path)
{
	struct tally_perfdata *reader;
	struct tally_error err;

	if (tally_perfdata_open(path, &reader, &err))
		fail_msg("%s", err.what);
	return reader;
}

static int next_but_rounds(struct tally_perfdata *reader, struct tally_perfdata_record *record)
{
	int ret;

	do
		ret = tally_perfdata_next(reader, record, NULL);
	while (ret > 0 && record->record.type == TALLY_RECORD_FINISHED_ROUND);
	return ret;
}

/* Samples with the times from 1 to @nr, and nothing wrong behind them. */
static void expect_samples(struct tally_perfdata *reader, uint64_t nr)
{
	struct tally_perfdata_record record;

	for (uint64_t i = 1; i <= nr; i++) {
		assert_int_equal(next_but_rounds(reader, &record), 1);
		assert_int_equal(record.record.type, PERF_RECORD_SAMPLE);
		assert_int_equal(record.record.id.time, i);
		assert_int_equal(record.event, i % 3 == 2 ? 1 : 0);
	}
	assert_int_equal(next_but_rounds(reader, &record), 0);
}

static void readable_at_any_moment(int zstd_level)
{
	const struct tally_perfdata_options options = {.zstd_level = zstd_level, .clockid = -1};
	struct tally_perfdata_writer *writer;
	struct tally_perfdata *reader;
	char path[64];

	writer = start(path, &options, 0);
	for (uint64_t i = 1; i <= 20; i++) {
		write_sample(writer, 7 + i % 3, i);
		if (i % 4 == 0)
			assert_int_equal(tally_perfdata_writer_round(writer, NULL), 0);
		reader = read_back(path);
		assert_true(tally_perfdata_info(reader)->unfinished);
		expect_samples(reader, i);
		/* Names came with the records, since the features are not there yet. */
		assert_string_equal(tally_perfdata_event(reader, 0)->name, "energy");
		assert_string_equal(tally_perfdata_event(reader, 0)->unit, "Joules");
		assert_true(tally_perfdata_event(reader, 0)->scale == 0.25);
		assert_non_null(tally_perfdata_info(reader)->hostname);
		tally_perfdata_close(reader);
	}
	assert_int_equal(tally_perfdata_writer_ids(writer, 0, &(uint64_t){1}, 1), -EINVAL);
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
	reader = read_back(path);
	assert_false(tally_perfdata_info(reader)->unfinished);
	assert_int_equal(tally_perfdata_info(reader)->compressed, zstd_level != 0);
	expect_samples(reader, 20);
	tally_perfdata_close(reader);
	unlink(path);
}

static void test_readable_at_any_moment(void **state)
{
	(void)state;
	readable_at_any_moment(0);
	readable_at_any_moment(3);
}

static void test_nothing_recorded(void **state)
{
	struct tally_perfdata_record record;
	struct tally_perfdata_writer *writer;
	struct tally_perfdata *reader;
	char path[64];

	(void)state;
	writer = start(path, &plain, 0);
	assert_int_equal(tally_perfdata_writer_bytes(writer), 0);
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
	reader = read_back(path);
	assert_int_equal(tally_perfdata_events(reader), 2);
	assert_int_equal(tally_perfdata_next(reader, &record, NULL), 0);
	tally_perfdata_close(reader);
	unlink(path);
}

static void test_facts(void **state)
{
	const char *const argv[] = {"tally", "record", "a b", "it's", "", NULL};
	const struct tally_perfdata_options options = {
		.argv = argv, .clockid = CLOCK_MONOTONIC, .zstd_level = 1};
	const struct tally_perfdata_build_id long_id = {.filename = "/bin/cat",
							.size = 20,
							.build_id = "abcdefghijklmnopqrst",
							.pid = -1,
							.misc = PERF_RECORD_MISC_USER};
	const struct tally_perfdata_build_id short_id = {.filename = "[kernel.kallsyms]",
							 .size = 8,
							 .build_id = "01234567",
							 .pid = 5,
							 .misc = PERF_RECORD_MISC_KERNEL};
	struct tally_perfdata_build_id bad = {.filename = "x", .size = 21};
	const struct tally_perfdata_build_id *build_id;
	const struct tally_perfdata_info *info;
	struct tally_perfdata_writer *writer;
	struct tally_perfdata *reader;
	char path[64], host[256];

	(void)state;
	writer = start(path, &options, 0);
	tally_perfdata_writer_times(writer, 100, 900);
	write_sample(writer, 7, 100);
	assert_int_equal(tally_perfdata_writer_build_id(writer, &long_id), 0);
	assert_int_equal(tally_perfdata_writer_build_id(writer, &short_id), 0);
	assert_int_equal(tally_perfdata_writer_build_id(writer, &bad), -EINVAL);
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);

	reader = read_back(path);
	info = tally_perfdata_info(reader);
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	assert_string_equal(info->hostname, host);
	assert_string_equal(info->cmdline, "tally record 'a b' 'it'\\''s' ''");
	assert_int_equal(info->clockid, CLOCK_MONOTONIC);
	assert_true(info->wall_clock_ns > info->clock_ns && info->clock_ns);
	assert_int_equal(info->first_sample_time, 100);
	assert_int_equal(info->last_sample_time, 900);
	assert_int_equal(info->nr_cpus_online, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(info->total_mem_kb > 1024);
	assert_int_equal(info->nr_groups, 1);
	assert_int_equal(info->groups[0].leader, 0);
	assert_int_equal(info->groups[0].nr_members, 2);
	assert_int_equal(tally_perfdata_build_ids(reader), 2);
	build_id = tally_perfdata_build_id(reader, 0);
	assert_string_equal(build_id->filename, "/bin/cat");
	assert_int_equal(build_id->size, 20);
	assert_memory_equal(build_id->build_id, long_id.build_id, 20);
	assert_int_equal(build_id->pid, -1);
	assert_int_equal(build_id->misc, PERF_RECORD_MISC_USER);
	build_id = tally_perfdata_build_id(reader, 1);
	assert_string_equal(build_id->filename, "[kernel.kallsyms]");
	assert_int_equal(build_id->size, 8);
	assert_int_equal(build_id->pid, 5);
	tally_perfdata_close(reader);
	unlink(path);
}

/* perf refuses attrs longer than its own, so that only what says something is written. */
static void test_attrs_are_as_long_as_they_must_be(void **state)
{
	(void)state;
	for (uint64_t extra = 0; extra < 2; extra++) {
		size_t size = sizeof(struct perf_event_attr) + (extra ? sizeof(extra) : 0);
		struct tally_perfdata_writer *writer;
		struct tally_perfdata *reader;
		char path[64];

		writer = start(path, &plain, extra);
		assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
		reader = read_back(path);
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(tally_perfdata_event(reader, i)->attr->size, size);
		if (extra)
			assert_int_equal(tally_u64(&((const struct long_attr *)tally_perfdata_event(
							     reader, 0)
							     ->attr)
							    ->extra),
					 1);
		tally_perfdata_close(reader);
		unlink(path);
	}
}

static void test_cannot_be_created(void **state)
{
	struct long_attr attr = make_attr(0, 0);
	const struct tly_writer_event event = {.name = "x", .scale = 1, .attr = &attr.attr};
	struct tally_perfdata_writer *writer;
	struct tally_error err;

	(void)state;
	assert_int_equal(tly_writer_new("/nowhere/perf.data", &event, 1, &plain, &writer, &err),
			 -ENOENT);
	assert_null(writer);
	assert_non_null(strstr(err.what, "/nowhere/perf.data"));
	assert_true(err.remedy[0]);
}

/* A pipe has its ids in a record; more than fit in one are refused, not cut. */
static void test_too_many_ids_for_a_pipe(void **state)
{
	static uint64_t ids[9000];
	struct long_attr attr = make_attr(0, 0);
	const struct tly_writer_event event = {.name = "x", .scale = 1, .attr = &attr.attr};
	struct tally_perfdata_writer *writer;
	struct tally_error err;

	(void)state;
	/* Not a regular file, so it is written as a pipe. */
	assert_int_equal(tly_writer_new("/dev/null", &event, 1, &plain, &writer, &err), 0);
	assert_int_equal(tally_perfdata_writer_ids(writer, 0, ids, ARRAY_SIZE(ids)), 0);
	assert_int_equal(tally_perfdata_write(writer, NULL, 0, &err), -E2BIG);
	assert_non_null(strstr(err.what, "9000 ids of event 'x'"));
	assert_int_equal(tally_perfdata_write(writer, NULL, 0, &err), -E2BIG);
	assert_int_equal(tally_perfdata_finish(writer, &err), -E2BIG);
}

static void test_full_device(void **state)
{
	struct long_attr attr = make_attr(0, 0);
	const struct tly_writer_event event = {.name = "x", .scale = 1, .attr = &attr.attr};
	struct tally_perfdata_writer *writer;
	struct tally_error err;

	(void)state;
	assert_int_equal(tly_writer_new("/dev/full", &event, 1, &plain, &writer, &err), 0);
	assert_int_equal(tally_perfdata_write(writer, NULL, 0, &err), -ENOSPC);
	assert_non_null(strstr(err.what, "No space left"));
	assert_int_equal(tally_perfdata_finish(writer, &err), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readable_at_any_moment),
		cmocka_unit_test(test_nothing_recorded),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_attrs_are_as_long_as_they_must_be),
		cmocka_unit_test(test_cannot_be_created),
		cmocka_unit_test(test_too_many_ids_for_a_pipe),
		cmocka_unit_test(test_full_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
