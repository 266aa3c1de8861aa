// SPDX-License-Identifier: MIT
/* Every record type with every trailer, and what the decoder must refuse. */
#include "abi/record_build.h"

static struct tally_record_format trailer_format(uint64_t sample_type)
{
	union {
		struct perf_event_attr attr;
		uint64_t words[32];
	} u = {.attr = {.size = PERF_ATTR_SIZE_VER0,
			.sample_type = sample_type,
			.read_format = PERF_FORMAT_ID,
			.sample_id_all = 1}};
	struct tally_record_format format;

	tally_record_format_init(&format, &u.attr);
	return format;
}

static void put_trailer(struct bytes *b, uint64_t type)
{
	if (type & PERF_SAMPLE_TID) {
		put32(b, 101);
		put32(b, 102);
	}
	if (type & PERF_SAMPLE_TIME)
		put64(b, 103);
	if (type & PERF_SAMPLE_ID)
		put64(b, 104);
	if (type & PERF_SAMPLE_STREAM_ID)
		put64(b, 105);
	if (type & PERF_SAMPLE_CPU) {
		put32(b, 106);
		put32(b, 0);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		put64(b, 104);
}

/* Builds the body of one record and checks it decoded. */
struct record_case {
	uint32_t type;
	uint16_t misc;
	const char *name;
	void (*build)(struct bytes *b);
	void (*check)(const struct tally_record *r);
};

static void build_mmap(struct bytes *b)
{
	put32(b, 1);
	put32(b, 2);
	put64(b, 0x1000);
	put64(b, 0x2000);
	put64(b, 0x3000);
	put_string(b, "/bin/cat");
}

static void check_mmap(const struct tally_record *r)
{
	assert_false(r->mmap.is_mmap2);
	assert_int_equal(r->mmap.pid, 1);
	assert_int_equal(r->mmap.tid, 2);
	assert_int_equal(r->mmap.start, 0x1000);
	assert_int_equal(r->mmap.len, 0x2000);
	assert_int_equal(r->mmap.pgoff, 0x3000);
	assert_string_equal(r->mmap.filename, "/bin/cat");
}

static void build_mmap2(struct bytes *b)
{
	put32(b, 1);
	put32(b, 2);
	put64(b, 0x1000);
	put64(b, 0x2000);
	put64(b, 0x3000);
	put32(b, 8);
	put32(b, 3);
	put64(b, 77);
	put64(b, 78);
	put32(b, 5);
	put32(b, 2);
	put_string(b, "//anon");
}

static void check_mmap2(const struct tally_record *r)
{
	assert_true(r->mmap.is_mmap2);
	assert_false(r->mmap.has_build_id);
	assert_int_equal(r->mmap.maj, 8);
	assert_int_equal(r->mmap.min, 3);
	assert_int_equal(r->mmap.ino, 77);
	assert_int_equal(r->mmap.ino_generation, 78);
	assert_int_equal(r->mmap.prot, 5);
	assert_int_equal(r->mmap.flags, 2);
	assert_int_equal(r->mmap.start, 0x1000);
	assert_string_equal(r->mmap.filename, "//anon");
}

static void build_mmap2_build_id(struct bytes *b)
{
	put32(b, 1);
	put32(b, 2);
	put64(b, 0x1000);
	put64(b, 0x2000);
	put64(b, 0x3000);
	put32(b, 20);
	put(b, "abcdefghijklmnopqrst", 20);
	put32(b, 5);
	put32(b, 2);
	put_string(b, "/bin/tac");
}

static void check_mmap2_build_id(const struct tally_record *r)
{
	assert_true(r->mmap.has_build_id);
	assert_int_equal(r->mmap.build_id_size, 20);
	assert_memory_equal(r->mmap.build_id, "abcdefghijklmnopqrst", 20);
	assert_int_equal(r->mmap.prot, 5);
	assert_int_equal(r->mmap.flags, 2);
	assert_string_equal(r->mmap.filename, "/bin/tac");
}

static void build_lost(struct bytes *b)
{
	put64(b, 11);
	put64(b, 12);
}

static void check_lost(const struct tally_record *r)
{
	assert_int_equal(r->lost.id, 11);
	assert_int_equal(r->lost.lost, 12);
}

static void build_comm(struct bytes *b)
{
	put32(b, 21);
	put32(b, 22);
	put_string(b, "eight888");
}

static void check_comm(const struct tally_record *r)
{
	assert_int_equal(r->comm.pid, 21);
	assert_int_equal(r->comm.tid, 22);
	assert_string_equal(r->comm.comm, "eight888");
}

static void build_task(struct bytes *b)
{
	for (uint32_t i = 31; i < 35; i++)
		put32(b, i);
	put64(b, 35);
}

static void check_task(const struct tally_record *r)
{
	assert_int_equal(r->task.pid, 31);
	assert_int_equal(r->task.ppid, 32);
	assert_int_equal(r->task.tid, 33);
	assert_int_equal(r->task.ptid, 34);
	assert_int_equal(r->task.time, 35);
}

static void build_throttle(struct bytes *b)
{
	put64(b, 41);
	put64(b, 42);
	put64(b, 43);
}

static void check_throttle(const struct tally_record *r)
{
	assert_int_equal(r->throttle.time, 41);
	assert_int_equal(r->throttle.id, 42);
	assert_int_equal(r->throttle.stream_id, 43);
}

static void build_read(struct bytes *b)
{
	put32(b, 51);
	put32(b, 52);
	put64(b, 53);
	put64(b, 54);
}

static void check_read_record(const struct tally_record *r)
{
	struct tally_record_format format = {.read_format = PERF_FORMAT_ID};

	assert_int_equal(r->read.pid, 51);
	assert_int_equal(r->read.tid, 52);
	assert_int_equal(tally_read_entry(&format, &r->read.values, 0).value, 53);
	assert_int_equal(tally_read_entry(&format, &r->read.values, 0).id, 54);
}

static void build_three_words(struct bytes *b)
{
	put64(b, 61);
	put64(b, 62);
	put64(b, 63);
}

static void check_aux(const struct tally_record *r)
{
	assert_int_equal(r->aux.offset, 61);
	assert_int_equal(r->aux.size, 62);
	assert_int_equal(r->aux.flags, 63);
}

static void build_two_u32(struct bytes *b)
{
	put32(b, 71);
	put32(b, 72);
}

static void check_itrace_start(const struct tally_record *r)
{
	assert_int_equal(r->itrace_start.pid, 71);
	assert_int_equal(r->itrace_start.tid, 72);
}

static void check_switch_cpu_wide(const struct tally_record *r)
{
	assert_int_equal(r->context_switch.pid, 71);
	assert_int_equal(r->context_switch.tid, 72);
}

static void build_nothing(struct bytes *b)
{
	(void)b;
}

static void check_switch(const struct tally_record *r)
{
	assert_int_equal(r->misc, PERF_RECORD_MISC_SWITCH_OUT);
	assert_int_equal(r->context_switch.pid, 0);
	assert_int_equal(r->context_switch.tid, 0);
}

static void build_word(struct bytes *b)
{
	put64(b, 81);
}

static void check_lost_samples(const struct tally_record *r)
{
	assert_int_equal(r->lost_samples.lost, 81);
}

static void check_aux_output_hw_id(const struct tally_record *r)
{
	assert_int_equal(r->aux_output_hw_id.hw_id, 81);
}

static void build_namespaces(struct bytes *b)
{
	put32(b, 91);
	put32(b, 92);
	put64(b, 2);
	for (uint64_t i = 93; i < 97; i++)
		put64(b, i);
}

static void check_namespaces(const struct tally_record *r)
{
	assert_int_equal(r->namespaces.pid, 91);
	assert_int_equal(r->namespaces.tid, 92);
	assert_int_equal(r->namespaces.nr, 2);
	for (int i = 0; i < 4; i++)
		assert_int_equal(tally_u64((const uint64_t *)r->namespaces.entries + i), 93 + i);
}

static void build_ksymbol(struct bytes *b)
{
	put64(b, 111);
	put32(b, 112);
	put16(b, PERF_RECORD_KSYMBOL_TYPE_BPF);
	put16(b, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	put_string(b, "bpf_prog_1");
}

static void check_ksymbol(const struct tally_record *r)
{
	assert_int_equal(r->ksymbol.addr, 111);
	assert_int_equal(r->ksymbol.len, 112);
	assert_int_equal(r->ksymbol.ksym_type, PERF_RECORD_KSYMBOL_TYPE_BPF);
	assert_int_equal(r->ksymbol.flags, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	assert_string_equal(r->ksymbol.name, "bpf_prog_1");
}

static void build_bpf_event(struct bytes *b)
{
	put16(b, PERF_BPF_EVENT_PROG_UNLOAD);
	put16(b, 121);
	put32(b, 122);
	put(b, "tagtagta", 8);
}

static void check_bpf_event(const struct tally_record *r)
{
	assert_int_equal(r->bpf_event.type, PERF_BPF_EVENT_PROG_UNLOAD);
	assert_int_equal(r->bpf_event.flags, 121);
	assert_int_equal(r->bpf_event.id, 122);
	assert_memory_equal(r->bpf_event.tag, "tagtagta", 8);
}

static void build_cgroup(struct bytes *b)
{
	put64(b, 131);
	put_string(b, "/system.slice");
}

static void check_cgroup(const struct tally_record *r)
{
	assert_int_equal(r->cgroup.id, 131);
	assert_string_equal(r->cgroup.path, "/system.slice");
}

static void build_text_poke(struct bytes *b)
{
	put64(b, 141);
	put16(b, 1);
	put16(b, 5);
	put(b, "\xcc\xe9\x01\x02\x03\x04\x00\x00\x00\x00\x00", 12);
}

static void check_text_poke(const struct tally_record *r)
{
	assert_int_equal(r->text_poke.addr, 141);
	assert_int_equal(r->text_poke.old_len, 1);
	assert_int_equal(r->text_poke.new_len, 5);
	assert_memory_equal(r->text_poke.bytes, "\xcc\xe9\x01\x02\x03\x04", 6);
}

static const struct record_case record_cases[] = {
	{PERF_RECORD_MMAP, 0, "MMAP", build_mmap, check_mmap},
	{PERF_RECORD_LOST, 0, "LOST", build_lost, check_lost},
	{PERF_RECORD_COMM, 0, "COMM", build_comm, check_comm},
	{PERF_RECORD_EXIT, 0, "EXIT", build_task, check_task},
	{PERF_RECORD_THROTTLE, 0, "THROTTLE", build_throttle, check_throttle},
	{PERF_RECORD_UNTHROTTLE, 0, "UNTHROTTLE", build_throttle, check_throttle},
	{PERF_RECORD_FORK, 0, "FORK", build_task, check_task},
	{PERF_RECORD_READ, 0, "READ", build_read, check_read_record},
	{PERF_RECORD_MMAP2, 0, "MMAP2", build_mmap2, check_mmap2},
	{PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, "MMAP2", build_mmap2_build_id,
	 check_mmap2_build_id},
	{PERF_RECORD_AUX, 0, "AUX", build_three_words, check_aux},
	{PERF_RECORD_ITRACE_START, 0, "ITRACE_START", build_two_u32, check_itrace_start},
	{PERF_RECORD_LOST_SAMPLES, 0, "LOST_SAMPLES", build_word, check_lost_samples},
	{PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, "SWITCH", build_nothing, check_switch},
	{PERF_RECORD_SWITCH_CPU_WIDE, 0, "SWITCH_CPU_WIDE", build_two_u32, check_switch_cpu_wide},
	{PERF_RECORD_NAMESPACES, 0, "NAMESPACES", build_namespaces, check_namespaces},
	{PERF_RECORD_KSYMBOL, 0, "KSYMBOL", build_ksymbol, check_ksymbol},
	{PERF_RECORD_BPF_EVENT, 0, "BPF_EVENT", build_bpf_event, check_bpf_event},
	{PERF_RECORD_CGROUP, 0, "CGROUP", build_cgroup, check_cgroup},
	{PERF_RECORD_TEXT_POKE, 0, "TEXT_POKE", build_text_poke, check_text_poke},
	{PERF_RECORD_AUX_OUTPUT_HW_ID, 0, "AUX_OUTPUT_HW_ID", build_word, check_aux_output_hw_id},
};

static void check_trailer(const struct tally_record *r, const struct tally_record_format *format)
{
	uint64_t type = format->sample_id_all ? format->sample_type & ALL_IDS : 0;
	const uint8_t *end = (const uint8_t *)r->raw + r->size;
	size_t in_sample, from_end;

	assert_int_equal(r->id.has, type);
	assert_int_equal(r->id.pid, type & PERF_SAMPLE_TID ? 101 : 0);
	assert_int_equal(r->id.tid, type & PERF_SAMPLE_TID ? 102 : 0);
	assert_int_equal(r->id.time, type & PERF_SAMPLE_TIME ? 103 : 0);
	assert_int_equal(r->id.id, type & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER) ? 104 : 0);
	assert_int_equal(r->id.stream_id, type & PERF_SAMPLE_STREAM_ID ? 105 : 0);
	assert_int_equal(r->id.cpu, type & PERF_SAMPLE_CPU ? 106 : 0);
	if (tally_record_id_position(format, &in_sample, &from_end)) {
		assert_int_equal(from_end != 0, format->sample_id_all);
		if (from_end)
			assert_int_equal(tally_u64(end - from_end), 104);
	}
	if (tally_record_time_position(format, &in_sample, &from_end)) {
		assert_int_equal(from_end != 0, format->sample_id_all);
		if (from_end)
			assert_int_equal(tally_u64(end - from_end), 103);
	}
}

/* Every type with every combination of trailer fields, and each cut at every byte. */
static void test_each_record_type(void **state)
{
	static const uint64_t fields[] = {
		PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
		PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,	 PERF_SAMPLE_IDENTIFIER,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(record_cases); i++) {
		const struct record_case *rc = &record_cases[i];

		assert_string_equal(tally_record_type_name(rc->type), rc->name);
		for (unsigned int mask = 0; mask < 1u << ARRAY_SIZE(fields); mask++) {
			struct tally_record_format format;
			struct tally_record record;
			static struct bytes b;
			uint64_t type = PERF_SAMPLE_IP;

			for (size_t j = 0; j < ARRAY_SIZE(fields); j++)
				if (mask >> j & 1)
					type |= fields[j];
			format = trailer_format(type);
			begin(&b, rc->type, rc->misc);
			rc->build(&b);
			put_trailer(&b, type);
			record = decode_ok(&format, &b);
			assert_int_equal(record.type, rc->type);
			rc->check(&record);
			check_trailer(&record, &format);
			release(&record);
			if (mask == 0 || mask == 1u << 1 || mask + 1 == 1u << ARRAY_SIZE(fields))
				cut_everywhere(&format, &b);
		}
	}
}

static void test_no_trailer_without_sample_id_all(void **state)
{
	struct tally_record_format format = trailer_format(ALL_IDS);
	static struct bytes b;
	struct tally_record record;

	(void)state;
	format.sample_id_all = false;
	format.trailer_size = 0;
	begin(&b, PERF_RECORD_LOST, 0);
	build_lost(&b);
	record = decode_ok(&format, &b);
	check_lost(&record);
	check_trailer(&record, &format);
	assert_int_equal(record.body_size, 16);
	release(&record);
}

/* Types of the future have the trailer; perf.data's own have none. */
static void test_unknown_types(void **state)
{
	struct tally_record_format format = trailer_format(ALL_IDS);
	static struct bytes b;
	struct tally_record record;

	(void)state;
	begin(&b, 63, 0);
	put64(&b, 1);
	put_trailer(&b, ALL_IDS);
	record = decode_ok(&format, &b);
	assert_int_equal(record.body_size, 8);
	check_trailer(&record, &format);
	release(&record);

	begin(&b, 64, 0);
	put64(&b, 1);
	record = decode_ok(&format, &b);
	assert_int_equal(record.body_size, 8);
	assert_int_equal(record.id.has, 0);
	release(&record);

	assert_null(tally_record_type_name(0));
	assert_null(tally_record_type_name(PERF_RECORD_MAX));
	assert_null(tally_record_type_name(UINT32_MAX));
}

static void test_strings_end_in_the_record(void **state)
{
	static const uint32_t types[] = {PERF_RECORD_MMAP, PERF_RECORD_MMAP2, PERF_RECORD_COMM,
					 PERF_RECORD_KSYMBOL, PERF_RECORD_CGROUP};
	struct tally_record_format format = trailer_format(PERF_SAMPLE_TIME);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		static struct bytes b;
		struct tally_record record;
		const char *why = NULL;
		uint8_t *buf;

		begin(&b, types[i], 0);
		for (int j = 0; j < 20; j++)
			put64(&b, UINT64_MAX);
		put64(&b, 0); /* a terminator, but in the trailer */
		set_size(&b, b.size);
		buf = exact(&b, b.size);
		assert_int_equal(tally_record_decode(&format, buf, b.size, &record, &why),
				 -EBADMSG);
		assert_string_equal(why, "its string has no end");
		free(buf);
	}
}

static void test_build_id_size(void **state)
{
	struct tally_record_format format = trailer_format(0);
	static struct bytes b;
	struct tally_record record;
	uint8_t *buf;

	(void)state;
	format.build_id = true;
	begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
	build_mmap2_build_id(&b);
	set_size(&b, b.size);
	b.data[8 + 32] = 21;
	buf = exact(&b, b.size);
	assert_int_equal(tally_record_decode(&format, buf, b.size, &record, NULL), -EBADMSG);
	free(buf);
}

/* What an event that did not ask for build-ids gets behind one that did: see is_build_id(). */
static void test_mark_without_a_build_id(void **state)
{
	static const uint32_t majors[] = {0, 8, 21, 254, 259, 0x01000014};
	struct tally_record_format format = trailer_format(0);
	struct tally_record record;
	static struct bytes b;
	uint8_t *buf;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(majors); i++) {
		begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
		build_mmap2(&b);
		set_size(&b, b.size);
		memcpy(b.data + 8 + 32, &majors[i], sizeof(majors[i]));
		buf = exact(&b, b.size);
		assert_int_equal(tally_record_decode(&format, buf, b.size, &record, NULL), b.size);
		assert_false(record.mmap.has_build_id);
		assert_int_equal(record.mmap.maj, majors[i]);
		assert_int_equal(record.mmap.min, 3);
		assert_int_equal(record.mmap.ino, 77);
		assert_int_equal(record.mmap.ino_generation, 78);
		assert_string_equal(record.mmap.filename, "//anon");
		free(buf);
	}
}

/* As long as linkers make them, they need not have been asked for. */
static void test_build_id_that_was_added_later(void **state)
{
	static const struct {
		uint8_t size;
		bool believed;
	} cases[] = {{1, false}, {8, false}, {16, true}, {19, false}, {20, true}};
	struct tally_record_format format = trailer_format(0);
	struct tally_record record;
	static struct bytes b;
	uint8_t *buf;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (int asked = 0; asked < 2; asked++) {
			begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
			build_mmap2_build_id(&b);
			set_size(&b, b.size);
			b.data[8 + 32] = cases[i].size;
			memset(b.data + 8 + 36 + cases[i].size, 0, 20 - cases[i].size);
			buf = exact(&b, b.size);
			format.build_id = asked;
			assert_int_equal(tally_record_decode(&format, buf, b.size, &record, NULL),
					 b.size);
			assert_int_equal(record.mmap.has_build_id, asked || cases[i].believed);
			if (record.mmap.has_build_id)
				assert_int_equal(record.mmap.build_id_size, cases[i].size);
			free(buf);
		}
	}
}

static void test_header_size(void **state)
{
	struct tally_record_format format = {0};
	static struct bytes b;
	struct tally_record record;

	(void)state;
	begin(&b, PERF_RECORD_SWITCH, 0);
	for (unsigned int size = 0; size < 8; size++) {
		const char *why = NULL;

		set_size(&b, size);
		assert_int_equal(tally_record_decode(&format, b.data, 8, &record, &why), -EBADMSG);
		assert_non_null(why);
	}
	set_size(&b, 8);
	assert_int_equal(tally_record_decode(&format, b.data, 8, &record, NULL), 8);
}

static void test_format_follows_attr_size(void **state)
{
	static const struct {
		uint32_t size;
		bool branch, user, intr;
	} cases[] = {
		{0, false, false, false},
		{PERF_ATTR_SIZE_VER0, false, false, false},
		{PERF_ATTR_SIZE_VER1, false, false, false},
		{PERF_ATTR_SIZE_VER2, true, false, false},
		{PERF_ATTR_SIZE_VER3, true, true, false},
		{PERF_ATTR_SIZE_VER4, true, true, true},
		{PERF_ATTR_SIZE_VER7, true, true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t bytes = cases[i].size ? cases[i].size : PERF_ATTR_SIZE_VER0;
		struct perf_event_attr attr = {
			.size = cases[i].size,
			.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_IP | PERF_SAMPLE_CPU,
			.sample_id_all = 1,
			.read_format = PERF_FORMAT_ID,
			.branch_sample_type = 1,
			.sample_regs_user = 2,
			.sample_regs_intr = 3,
		};
		/* Only what the size promises exists. */
		struct perf_event_attr *part = malloc(bytes);
		struct tally_record_format format;

		assert_non_null(part);
		memcpy(part, &attr, bytes);
		tally_record_format_init(&format, part);
		assert_int_equal(format.branch_sample_type, cases[i].branch ? 1 : 0);
		assert_int_equal(format.sample_regs_user, cases[i].user ? 2 : 0);
		assert_int_equal(format.sample_regs_intr, cases[i].intr ? 3 : 0);
		assert_int_equal(format.trailer_size, 16);
		assert_int_equal(format.read_format, PERF_FORMAT_ID);
		free(part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_record_type),
		cmocka_unit_test(test_no_trailer_without_sample_id_all),
		cmocka_unit_test(test_unknown_types),
		cmocka_unit_test(test_strings_end_in_the_record),
		cmocka_unit_test(test_build_id_size),
		cmocka_unit_test(test_mark_without_a_build_id),
		cmocka_unit_test(test_build_id_that_was_added_later),
		cmocka_unit_test(test_header_size),
		cmocka_unit_test(test_format_follows_attr_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
