// SPDX-License-Identifier: MIT
/* The reader on files put together here: where it finds damage, and in which order it hands out. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tally/perfdata.h>

#include "abi/record_build.h"
#include "lib/perfdata/format.h"

#define SAMPLE_TYPE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID)
#define HEADER_SIZE sizeof(struct tly_file_header)

static void put_attr(struct bytes *b, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_type = SAMPLE_TYPE,
		.sample_id_all = 1,
	};

	put(b, &attr, sizeof(attr));
}

/* A file of two events with the ids 11 and 12, 21, whose data is @data. */
static void build_file(struct bytes *file, const struct bytes *data, uint64_t features)
{
	const uint64_t ids[] = {11, 12, 21};
	struct tly_file_header header = {
		.magic = TLY_MAGIC,
		.size = sizeof(header),
		.attr_size = sizeof(struct perf_event_attr) + sizeof(struct tly_section),
		.features = {features},
	};

	header.attrs.offset = HEADER_SIZE + sizeof(ids);
	header.attrs.size = 2 * header.attr_size;
	header.data.offset = header.attrs.offset + header.attrs.size;
	header.data.size = data->size;
	file->size = 0;
	put(file, &header, sizeof(header));
	put(file, ids, sizeof(ids));
	put_attr(file, PERF_COUNT_SW_CPU_CLOCK);
	put64(file, HEADER_SIZE);
	put64(file, 16);
	put_attr(file, PERF_COUNT_SW_PAGE_FAULTS);
	put64(file, HEADER_SIZE + 16);
	put64(file, 8);
	put(file, data->data, data->size);
}

#define DATA_OFFSET (HEADER_SIZE + 24 + 2 * (sizeof(struct perf_event_attr) + 16))

static void put_record(struct bytes *data, struct bytes *record)
{
	set_size(record, record->size);
	put(data, record->data, record->size);
}

static void put_sample(struct bytes *data, uint64_t id, uint64_t time, uint64_t ip)
{
	static struct bytes b;

	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put64(&b, ip);
	put32(&b, 1);
	put32(&b, 1);
	put64(&b, time);
	put64(&b, id);
	put_record(data, &b);
}

static void put_lost(struct bytes *data, uint64_t id, uint64_t time, uint64_t lost)
{
	static struct bytes b;

	begin(&b, PERF_RECORD_LOST, 0);
	put64(&b, id);
	put64(&b, lost);
	put64(&b, 0); /* TID */
	put64(&b, time);
	put64(&b, id);
	put_record(data, &b);
}

static void put_round(struct bytes *data)
{
	static struct bytes b;

	begin(&b, TALLY_RECORD_FINISHED_ROUND, 0);
	put_record(data, &b);
}

static int open_bytes(const struct bytes *file, struct tally_perfdata **reader,
		      struct tally_error *err)
{
	int fd = memfd_create("reader-test", MFD_CLOEXEC), ret;
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, file->data, file->size), file->size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = tally_perfdata_open(path, reader, err);
	close(fd);
	return ret;
}

static struct tally_perfdata *open_data(const struct bytes *data)
{
	static struct bytes file;
	struct tally_perfdata *reader;
	struct tally_error err;

	build_file(&file, data, 0);
	if (open_bytes(&file, &reader, &err))
		fail_msg("%s", err.what);
	return reader;
}

static void test_events(void **state)
{
	static struct bytes data;
	struct tally_perfdata *reader;
	const struct tally_perfdata_event *event;

	(void)state;
	data.size = 0;
	put_sample(&data, 11, 1, 1);
	reader = open_data(&data);
	assert_int_equal(tally_perfdata_events(reader), 2);
	event = tally_perfdata_event(reader, 0);
	assert_string_equal(event->name, "cpu-clock");
	assert_int_equal(event->nr_ids, 2);
	assert_int_equal(event->ids[1], 12);
	assert_int_equal(event->attr->sample_type, SAMPLE_TYPE);
	event = tally_perfdata_event(reader, 1);
	assert_string_equal(event->name, "page-faults");
	assert_int_equal(event->ids[0], 21);
	assert_null(tally_perfdata_event(reader, 2));
	assert_true(tally_perfdata_info(reader)->unfinished); /* it has no features */
	tally_perfdata_close(reader);
}

static void test_records_find_their_event(void **state)
{
	static const struct {
		uint64_t id;
		size_t event;
	} cases[] = {{11, 0}, {21, 1}, {12, 0}};
	struct tally_perfdata_record record;
	struct tally_perfdata *reader;
	static struct bytes data;

	(void)state;
	data.size = 0;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		put_sample(&data, cases[i].id, 1, i);
	put_sample(&data, 99, 1, 1); /* of no event: counted */
	put_lost(&data, 21, 1, 1);
	put_lost(&data, 0, 0, 1); /* made up by a recorder */
	reader = open_data(&data);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			assert_int_equal(tally_perfdata_next(reader, &record, NULL), 1);
			assert_int_equal(record.event, cases[i].event);
			assert_int_equal(record.record.sample.ip, i);
			assert_int_equal(record.offset, DATA_OFFSET + i * 40);
		}
		assert_int_equal(tally_perfdata_info(reader)->unknown_samples, 0);
		assert_int_equal(tally_perfdata_next(reader, &record, NULL), 1);
		assert_int_equal(record.event, 1);
		assert_int_equal(tally_perfdata_info(reader)->unknown_samples, 1);
		assert_int_equal(tally_perfdata_next(reader, &record, NULL), 1);
		assert_true(record.event == SIZE_MAX);
		assert_int_equal(tally_perfdata_next(reader, &record, NULL), 0);
		assert_int_equal(tally_perfdata_next(reader, &record, NULL), 0);
		assert_int_equal(tally_perfdata_rewind(reader, NULL), 0);
	}
	tally_perfdata_close(reader);
}

/* One event asks for build-ids, and what the recorder made up has them too: in short, so that the
 * record alone does not tell. */
static void test_build_ids_are_of_all_events(void **state)
{
	static struct bytes data, file, b;

	(void)state;
	begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
	for (int i = 0; i < 4; i++)
		put64(&b, 1);
	put32(&b, 8);
	put(&b, "abcdefgh", 8);
	for (int i = 0; i < 5; i++)
		put32(&b, 0);
	put_string(&b, "/bin/tac");
	for (int i = 0; i < 3; i++) /* TID TIME ID */
		put64(&b, 0);
	data.size = 0;
	put_record(&data, &b);
	for (size_t asking = 0; asking < 3; asking++) {
		struct tally_perfdata_record record;
		struct tally_perfdata *reader;
		struct perf_event_attr attr;

		build_file(&file, &data, 0);
		if (asking < 2) {
			uint8_t *at = file.data + HEADER_SIZE + 24 + asking * (sizeof(attr) + 16);

			memcpy(&attr, at, sizeof(attr));
			attr.build_id = 1;
			memcpy(at, &attr, sizeof(attr));
		}
		assert_int_equal(open_bytes(&file, &reader, NULL), 0);
		assert_int_equal(tally_perfdata_next(reader, &record, NULL), 1);
		assert_int_equal(record.record.mmap.has_build_id, asking < 2);
		assert_string_equal(record.record.mmap.filename, "/bin/tac");
		tally_perfdata_close(reader);
	}
}

static void test_select(void **state)
{
	struct tally_perfdata_record record;
	struct tally_perfdata *reader;
	static struct bytes data;

	(void)state;
	data.size = 0;
	put_sample(&data, 11, 1, 1);
	put_lost(&data, 11, 2, 1);
	put_sample(&data, 11, 3, 1);
	reader = open_data(&data);
	tally_perfdata_select(reader, TALLY_SELECT_OTHERS);
	assert_int_equal(tally_perfdata_next(reader, &record, NULL), 1);
	assert_int_equal(record.record.type, PERF_RECORD_LOST);
	assert_int_equal(tally_perfdata_next(reader, &record, NULL), 0);
	assert_int_equal(tally_perfdata_rewind(reader, NULL), 0);
	tally_perfdata_select(reader, TALLY_SELECT_SAMPLES);
	for (uint64_t time = 1; time <= 3; time += 2) {
		assert_int_equal(tally_perfdata_next(reader, &record, NULL), 1);
		assert_int_equal(record.record.id.time, time);
	}
	assert_int_equal(tally_perfdata_next(reader, &record, NULL), 0);
	tally_perfdata_close(reader);
}

/* After two good samples comes @damage; it must be found where it is. */
static void damaged_after_two(const struct bytes *damage, uint64_t offset, const char *what)
{
	int (*const next[])(struct tally_perfdata *, struct tally_perfdata_record *,
			    struct tally_error *) = {tally_perfdata_next,
						     tally_perfdata_next_ordered};
	struct tally_perfdata_record record;
	struct tally_perfdata *reader;
	static struct bytes data;
	struct tally_error err;

	data.size = 0;
	put_sample(&data, 11, 2, 2);
	put_sample(&data, 11, 1, 1);
	put(&data, damage->data, damage->size);
	reader = open_data(&data);
	for (size_t i = 0; i < ARRAY_SIZE(next); i++) {
		assert_int_equal(next[i](reader, &record, &err), 1);
		assert_int_equal(next[i](reader, &record, &err), 1);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(next[i](reader, &record, &err), -EBADMSG);
			assert_int_equal(err.code, -EBADMSG);
			assert_int_equal(err.offset, DATA_OFFSET + 80 + offset);
			if (!strstr(err.what, what))
				fail_msg("'%s' does not say '%s'", err.what, what);
			assert_true(err.remedy[0]);
		}
		assert_int_equal(tally_perfdata_rewind(reader, NULL), 0);
	}
	tally_perfdata_close(reader);
}

static void test_damage_has_an_offset(void **state)
{
	static struct bytes b;

	(void)state;
	begin(&b, PERF_RECORD_SAMPLE, 0);
	set_size(&b, 7);
	damaged_after_two(&b, 0, "a record cannot be 7 bytes long");

	begin(&b, 0, 0);
	set_size(&b, 8);
	damaged_after_two(&b, 0, "no record type 0");

	begin(&b, 256, 0);
	set_size(&b, 8);
	damaged_after_two(&b, 0, "no record type 256");

	begin(&b, PERF_RECORD_COMM, 0);
	put64(&b, 1);
	set_size(&b, 16);
	damaged_after_two(&b, 0, "sample_id trailer");

	begin(&b, TALLY_RECORD_COMPRESSED, 0);
	put64(&b, UINT64_MAX);
	set_size(&b, 16);
	damaged_after_two(&b, 0, "compressed data is corrupt");

	begin(&b, TALLY_RECORD_COMPRESSED2, 0);
	put64(&b, 9);
	put64(&b, 0);
	set_size(&b, 24);
	damaged_after_two(&b, 0, "compressed data runs past its record");

	begin(&b, TALLY_RECORD_AUXTRACE, 0);
	set_size(&b, 8);
	damaged_after_two(&b, 0, "AUXTRACE");
}

/* One byte of the last record is missing; the size says that it should be there, or knows less. */
static void test_cut_off(void **state)
{
	struct tally_perfdata_record record;
	static struct bytes data, file;
	struct tally_perfdata *reader;
	struct tally_error err;
	uint64_t known;

	(void)state;
	data.size = 0;
	put_sample(&data, 11, 1, 1);
	put_sample(&data, 11, 2, 2);
	build_file(&file, &data, 0);
	file.size--;
	assert_int_equal(open_bytes(&file, &reader, &err), 0);
	assert_int_equal(tally_perfdata_next(reader, &record, &err), 1);
	assert_int_equal(tally_perfdata_next(reader, &record, &err), -EBADMSG);
	assert_int_equal(err.offset, DATA_OFFSET + 40);
	assert_non_null(strstr(err.what, "a record of 40 bytes is cut off after 39"));
	tally_perfdata_close(reader);

	/* Killed between the data and its size: what the size covers is whole, the rest a bonus. */
	known = 40;
	memcpy(file.data + offsetof(struct tly_file_header, data.size), &known, sizeof(known));
	assert_int_equal(open_bytes(&file, &reader, &err), 0);
	assert_int_equal(tally_perfdata_next(reader, &record, &err), 1);
	assert_int_equal(tally_perfdata_next(reader, &record, &err), 0);
	tally_perfdata_close(reader);
	file.size++;
	assert_int_equal(open_bytes(&file, &reader, &err), 0);
	assert_int_equal(tally_perfdata_next(reader, &record, &err), 1);
	assert_int_equal(tally_perfdata_next(reader, &record, &err), 1);
	assert_int_equal(tally_perfdata_next(reader, &record, &err), 0);
	tally_perfdata_close(reader);
}

/* Records are worth more than the facts about them: these are missed last. */
static void test_damaged_feature_is_told_last(void **state)
{
	struct tally_perfdata_record record;
	static struct bytes data, file;
	struct tally_perfdata *reader;
	struct tally_error err;

	(void)state;
	data.size = 0;
	put_sample(&data, 11, 1, 1);
	build_file(&file, &data, 1u << TLY_FEATURE_HOSTNAME | 1u << TLY_FEATURE_ARCH);
	put64(&file, file.size + 32);
	put64(&file, 8);
	put64(&file, file.size + 16 + 8 + 8);
	put64(&file, 8);
	put32(&file, 100); /* a host name longer than its section */
	put32(&file, 0);
	put32(&file, 4);
	put(&file, "x86", 4);
	assert_int_equal(open_bytes(&file, &reader, &err), 0);
	assert_null(tally_perfdata_info(reader)->hostname);
	assert_false(tally_perfdata_info(reader)->unfinished);
	assert_int_equal(tally_perfdata_next(reader, &record, &err), 1);
	assert_int_equal(tally_perfdata_next(reader, &record, &err), -EBADMSG);
	assert_int_equal(err.offset, DATA_OFFSET + 40 + 32);
	assert_non_null(strstr(err.what, "header feature 3"));
	tally_perfdata_close(reader);
}

static void test_payload_is_passed_over(void **state)
{
	struct tally_perfdata_record record;
	struct tally_perfdata *reader;
	static struct bytes data, b;

	(void)state;
	data.size = 0;
	begin(&b, TALLY_RECORD_AUXTRACE, 0);
	put64(&b, 33); /* no multiple of anything */
	put_record(&data, &b);
	for (int i = 0; i < 33; i++)
		put(&data, "\xff", 1);
	put_sample(&data, 11, 1, 1);
	reader = open_data(&data);
	assert_int_equal(tally_perfdata_next(reader, &record, NULL), 1);
	assert_int_equal(record.record.type, TALLY_RECORD_AUXTRACE);
	assert_int_equal(tally_perfdata_next(reader, &record, NULL), 1);
	assert_int_equal(record.record.type, PERF_RECORD_SAMPLE);
	assert_int_equal(record.offset, DATA_OFFSET + 16 + 33);
	assert_int_equal(tally_perfdata_next(reader, &record, NULL), 0);
	tally_perfdata_close(reader);
}

/* ---- order ---- */

static void expect_times(struct bytes *data, const uint64_t *times, size_t nr)
{
	struct tally_perfdata *reader = open_data(data);
	struct tally_perfdata_record record;

	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(tally_perfdata_next_ordered(reader, &record, NULL), 1);
		assert_int_equal(record.record.id.time, times[i]);
	}
	assert_int_equal(tally_perfdata_next_ordered(reader, &record, NULL), 0);
	tally_perfdata_close(reader);
}

/* A record of one round may be older than one of the round before, which is held back. */
static void test_order_over_rounds(void **state)
{
	static const uint64_t expected[] = {0, 10, 15, 20, 25, 30, 35};
	static struct bytes data;

	(void)state;
	data.size = 0;
	put_sample(&data, 11, 10, 0);
	put_sample(&data, 11, 30, 0);
	put_sample(&data, 11, 20, 0); /* of another ring */
	put_round(&data);
	put_sample(&data, 11, 35, 0);
	put_sample(&data, 11, 15, 0);
	put_sample(&data, 11, 25, 0);
	put_lost(&data, 11, 0, 1); /* no time: handed out when it is met */
	put_round(&data);
	expect_times(&data, expected, ARRAY_SIZE(expected));
}

/* The end of a round lets go what the round before had, and no more. */
static void test_rounds_bound_what_is_held(void **state)
{
	static const uint64_t expected[] = {10, 20, 5, 30};
	static struct bytes data;

	(void)state;
	data.size = 0;
	put_sample(&data, 11, 10, 0);
	put_sample(&data, 11, 20, 0);
	put_round(&data);
	put_sample(&data, 11, 30, 0);
	put_round(&data);	     /* lets go 10 and 20 */
	put_sample(&data, 11, 5, 0); /* against the promise: too late */
	expect_times(&data, expected, ARRAY_SIZE(expected));
}

static void test_order_is_stable(void **state)
{
	struct tally_perfdata_record record;
	struct tally_perfdata *reader;
	static struct bytes data;

	(void)state;
	data.size = 0;
	for (uint64_t i = 0; i < 300; i++)
		put_sample(&data, 11, 1000 - i / 100, i);
	reader = open_data(&data);
	for (uint64_t i = 0; i < 300; i++) {
		assert_int_equal(tally_perfdata_next_ordered(reader, &record, NULL), 1);
		assert_int_equal(record.record.sample.ip, 200 - i / 100 * 100 + i % 100);
	}
	assert_int_equal(tally_perfdata_next_ordered(reader, &record, NULL), 0);
	tally_perfdata_close(reader);
}

/* Random rings, drained in rounds: everything comes, and in order. */
static void test_random_rounds(void **state)
{
	uint64_t ring[4] = {1, 1, 1, 1}, now = 0, last = 0, nr = 0, seen = 0;
	struct tally_perfdata_record record;
	struct tally_perfdata *reader;
	static struct bytes data;

	(void)state;
	data.size = 0;
	for (int round = 0; round < 30; round++) {
		now += next_random() % 50 + 1;
		for (size_t i = 0; i < ARRAY_SIZE(ring); i++) {
			/* Emptied up to a moment that differs from ring to ring. */
			uint64_t until = now + next_random() % 20;

			for (; ring[i] < until; ring[i] += 1 + next_random() % 9) {
				put_sample(&data, next_random() & 1 ? 11 : 21, ring[i], i);
				nr++;
			}
		}
		now += 20;
		put_round(&data);
	}
	reader = open_data(&data);
	while (tally_perfdata_next_ordered(reader, &record, NULL) > 0) {
		assert_true(record.record.id.time >= last);
		last = record.record.id.time;
		seen++;
	}
	assert_int_equal(seen, nr);
	tally_perfdata_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_records_find_their_event),
		cmocka_unit_test(test_build_ids_are_of_all_events),
		cmocka_unit_test(test_select),
		cmocka_unit_test(test_damage_has_an_offset),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_damaged_feature_is_told_last),
		cmocka_unit_test(test_payload_is_passed_over),
		cmocka_unit_test(test_order_over_rounds),
		cmocka_unit_test(test_rounds_bound_what_is_held),
		cmocka_unit_test(test_order_is_stable),
		cmocka_unit_test(test_random_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
