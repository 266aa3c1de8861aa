// SPDX-License-Identifier: MIT
/* Records of what happens to tasks, read back by the library's decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <tally/record.h>

#include "core/arena.h"
#include "core/fake_host.h"
#include "core/fake_ring.h"
#include "core/output.h"
#include "core/sideband.h"

/* One that counts nothing and listens, with the whole trailer. */
static struct perf_event_attr listener(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER,
		.sample_id_all = 1,
	};
}

struct listening {
	struct perf_event_attr attr;
	struct core_event *event;
	struct fake_ring ring;
};

static struct listening listen(const struct perf_event_attr *attr)
{
	uint32_t event = fake_event(attr, CORE_ZERO);

	return (struct listening){*attr, core_event(event), fake_map(event, 16, true)};
}

static const struct tally_record *next(struct listening *listening)
{
	return fake_next(&listening->ring, &listening->attr);
}

/* The next record, of @type, with the caller's identity, and no other behind it. */
static const struct tally_record *only(struct listening *listening, uint32_t type)
{
	const struct tally_record *record = next(listening);

	assert_non_null(record);
	assert_int_equal(record->type, type);
	assert_int_equal(record->size % 8, 0);
	assert_int_equal(record->id.pid, 1000);
	assert_int_equal(record->id.tid, 1001);
	assert_int_equal(record->id.time, fake.tsc);
	assert_int_equal(record->id.id, listening->event->id);
	assert_int_equal(record->id.stream_id, listening->event->id);
	assert_int_equal(record->id.cpu, fake.cpu);
	assert_int_equal(listening->ring.tail, listening->ring.page->data_head);
	return record;
}

static void nothing(struct listening *listening)
{
	assert_null(next(listening));
}

/* ---- who is told ---- */

static void only_who_asked_and_is_enabled(void **state)
{
	struct perf_event_attr attr = listener();
	struct listening asked, deaf = listen(&attr);

	(void)state;
	attr.comm = 1;
	asked = listen(&attr);
	core_task_comm(fake.task, fake.task, "one");
	only(&asked, PERF_RECORD_COMM);
	nothing(&deaf);
	core_disable(core_index(asked.event), false);
	core_task_comm(fake.task, fake.task, "two");
	nothing(&asked);
	core_enable(core_index(asked.event), false);
	core_task_comm(fake.task, fake.task, "three");
	assert_string_equal(only(&asked, PERF_RECORD_COMM)->comm.comm, "three");
}

static void on_its_processor_and_in_its_cgroup(void **state)
{
	struct perf_event_attr attr = listener();
	struct listening l;

	(void)state;
	attr.comm = 1;
	l = listen(&attr);
	l.event->cpu = 1;
	fake.task->cpu = 0;
	core_task_comm(fake.task, fake.task, "elsewhere");
	nothing(&l);
	fake.task->cpu = 1;
	core_task_comm(fake.task, fake.task, "here");
	only(&l, PERF_RECORD_COMM);
	l.event->cgroup = 4; /* the fake host's are the pids */
	core_task_comm(fake.task, fake.task, "outside");
	nothing(&l);
	l.event->cgroup = 1000;
	core_task_comm(fake.task, fake.task, "inside");
	only(&l, PERF_RECORD_COMM);
}

/* Also of more than are looked at in one go. */
static void the_newest_first(void **state)
{
	enum { MANY = 150 };
	struct perf_event_attr attr = listener();
	uint64_t last = UINT64_MAX;
	struct listening l;
	unsigned int told = 0;

	(void)state;
	attr.comm = 1;
	l = listen(&attr);
	for (unsigned int i = 1; i < MANY; i++)
		assert_int_equal(core_set_output(fake_event(&attr, CORE_ZERO), core_index(l.event)),
				 0);
	core_task_comm(fake.task, fake.task, "all");
	for (const struct tally_record *record; (record = next(&l)); told++) {
		assert_true(record->id.id < last);
		last = record->id.id;
	}
	assert_int_equal(told, MANY);
	assert_int_equal(last, l.event->id);
}

static void without_a_trailer(void **state)
{
	struct perf_event_attr attr = listener();
	const struct tally_record *record;
	struct listening l;

	(void)state;
	attr.comm = 1;
	attr.sample_id_all = 0;
	l = listen(&attr);
	core_task_comm(fake.task, fake.task, "short");
	record = next(&l);
	assert_int_equal(record->size, 8 + 8 + 8);
	assert_string_equal(record->comm.comm, "short");
}

/* ---- names ---- */

static void names(void **state)
{
	static const struct {
		const char *name, *told;
		size_t padded;
	} cases[] = {
		{"", "", 8},
		{"a", "a", 8},
		{"abcdefg", "abcdefg", 8},
		{"abcdefgh", "abcdefgh", 16},
		{"abcdefghijklmno", "abcdefghijklmno", 16},
		{"abcdefghijklmnop", "abcdefghijklmno", 16},
	};
	struct perf_event_attr attr = listener();
	const struct tally_record *record;
	struct listening l;

	(void)state;
	attr.comm = 1;
	l = listen(&attr);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		core_task_comm(fake.task, fake.task, cases[i].name);
		record = only(&l, PERF_RECORD_COMM);
		assert_int_equal(record->misc, 0);
		assert_int_equal(record->comm.pid, 1000);
		assert_int_equal(record->comm.tid, 1001);
		assert_string_equal(record->comm.comm, cases[i].told);
		assert_int_equal(record->body_size, 8 + cases[i].padded);
		/* up to the end with zeros */
		for (size_t at = strlen(cases[i].told); at < cases[i].padded; at++)
			assert_int_equal(record->comm.comm[at], 0);
	}
	core_task_exec(fake.task, "exec");
	assert_int_equal(only(&l, PERF_RECORD_COMM)->misc, PERF_RECORD_MISC_COMM_EXEC);
}

/* ---- tasks ---- */

static void task_is(const struct tally_record *record, uint32_t pid, uint32_t tid, uint32_t ppid,
		    uint32_t ptid)
{
	assert_int_equal(record->misc, 0);
	assert_int_equal(record->task.pid, pid);
	assert_int_equal(record->task.tid, tid);
	assert_int_equal(record->task.ppid, ppid);
	assert_int_equal(record->task.ptid, ptid);
	assert_int_equal(record->task.time, fake.tsc);
}

static void forks_and_exits(void **state)
{
	const struct core_task thread = {.pid = 1000, .tid = 1002, .ppid = 999};
	const struct core_task process = {.pid = 1003, .tid = 1003, .ppid = 1000};
	struct perf_event_attr attr = listener();
	struct listening l;

	(void)state;
	attr.task = 1;
	l = listen(&attr);
	core_tell_fork(fake.task, &thread);
	task_is(only(&l, PERF_RECORD_FORK), 1000, 1002, 1000, 1001);
	core_tell_fork(fake.task, &process);
	task_is(only(&l, PERF_RECORD_FORK), 1003, 1003, 1000, 1001);
	core_tell_exit(fake.task);
	task_is(only(&l, PERF_RECORD_EXIT), 1000, 1001, 999, 999);
}

/* It is the parent's doing, though the child tells it. */
static void who_tells_of_a_fork(void **state)
{
	struct core_task child = {.pid = 1003, .tid = 1003, .ppid = 1000}, *parent = fake.task;
	struct perf_event_attr attr = listener();
	const struct tally_record *record;
	struct listening l;

	(void)state;
	attr.task = 1;
	l = listen(&attr);
	fake.task = &child;
	core_tell_fork(parent, &child);
	record = only(&l, PERF_RECORD_FORK);
	fake.task = parent;
	assert_int_equal(record->id.pid, 1000);
	assert_int_equal(record->id.tid, 1001);
}

/* A thread may name another one of its process: who is told is he who does. */
static void names_of_other_threads(void **state)
{
	struct core_task other = {.pid = 1000, .tid = 1007};
	struct perf_event_attr attr = listener();
	const struct tally_record *record;
	struct listening l;

	(void)state;
	attr.comm = 1;
	l = listen(&attr);
	core_task_comm(fake.task, &other, "other");
	record = only(&l, PERF_RECORD_COMM);
	assert_int_equal(record->comm.tid, 1007);
	assert_string_equal(record->comm.comm, "other");
	assert_string_equal(other.comm, "other");
	assert_int_equal(record->id.tid, 1001);
}

/* Who wants to know of mappings or names has to know of tasks. */
static void what_implies_tasks(void **state)
{
	const struct core_task child = {.pid = 1003, .tid = 1003};

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct perf_event_attr attr = listener();
		struct listening l;

		attr.task = i == 0;
		attr.comm = i == 1;
		attr.mmap = i == 2;
		attr.mmap2 = i == 3;
		attr.mmap_data = i == 4;
		attr.context_switch = i == 5;
		l = listen(&attr);
		core_tell_fork(fake.task, &child);
		if (i < 5)
			only(&l, PERF_RECORD_FORK);
		else
			nothing(&l);
	}
}

static void counts_of_who_ends(void **state)
{
	struct perf_event_attr attr = listener();
	const struct tally_record *record;
	struct tally_record_format format;
	struct listening l;

	(void)state;
	attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	l = listen(&attr);
	l.event->count.value = 77;
	core_tell_read(l.event);
	record = only(&l, PERF_RECORD_READ);
	tally_record_format_init(&format, &attr);
	assert_int_equal(record->read.pid, 1000);
	assert_int_equal(record->read.tid, 1001);
	assert_int_equal(tally_read_entry(&format, &record->read.values, 0).value, 77);
	assert_int_equal(tally_read_entry(&format, &record->read.values, 0).id, l.event->id);
	assert_int_equal(record->body_size, 8 + 24);
}

static void told_by_somebody_else(void **state)
{
	struct perf_event_attr attr = listener();
	const struct tally_record *record;
	struct listening l;

	(void)state;
	attr.task = 1;
	l = listen(&attr);
	fake.task = NULL; /* the monitor, which has no task of its own */
	core_tell_exit(core_task(1));
	record = only(&l, PERF_RECORD_EXIT);
	assert_int_equal(record->task.tid, 1001);
}

static void name_spaces(void **state)
{
	const struct core_task child = {.pid = 1003, .tid = 1003};
	struct perf_event_attr attr = listener();
	const struct tally_record *record;
	struct perf_ns_link_info link;
	struct listening l;

	(void)state;
	attr.namespaces = 1;
	l = listen(&attr);
	core_namespaces(fake.task);
	record = only(&l, PERF_RECORD_NAMESPACES);
	assert_int_equal(record->namespaces.tid, 1001);
	assert_int_equal(record->namespaces.nr, NR_NAMESPACES);
	for (size_t i = 0; i < NR_NAMESPACES; i++) {
		memcpy(&link, (const char *)record->namespaces.entries + i * sizeof(link),
		       sizeof(link));
		assert_int_equal(link.dev, 4);
		assert_int_equal(link.ino, 100 + i);
	}
	core_tell_begun(fake.task, &child);
	assert_int_equal(only(&l, PERF_RECORD_NAMESPACES)->namespaces.tid, 1003);
}

/* ---- mappings ---- */

static struct core_mapping mapping(uint32_t prot)
{
	return (struct core_mapping){
		.start = 0x10000,
		.length = 0x2000,
		.offset = 0x3000,
		.major = 8,
		.minor = 1,
		.inode = 55,
		.inode_generation = 66,
		.prot = prot,
		.flags = MAP_PRIVATE,
		.path = "/bin/true",
		.build_id_size = 20,
		.build_id = "0123456789abcdefghi",
	};
}

static void mapping_is(const struct tally_record *record, uint16_t misc)
{
	assert_int_equal(record->misc, misc);
	assert_int_equal(record->mmap.pid, 1000);
	assert_int_equal(record->mmap.tid, 1001);
	assert_int_equal(record->mmap.start, 0x10000);
	assert_int_equal(record->mmap.len, 0x2000);
	assert_int_equal(record->mmap.pgoff, 0x3000);
	assert_string_equal(record->mmap.filename, "/bin/true");
}

static void mappings(void **state)
{
	const struct core_mapping code = mapping(PROT_READ | PROT_EXEC), data = mapping(PROT_READ);
	struct perf_event_attr attr = listener();
	struct listening codes, datas;

	(void)state;
	attr.comm = 1;
	listen(&attr);
	attr.comm = 0;
	assert_false(fake.task->mappings); /* to find out what is mapped takes long */
	attr.mmap = 1;
	codes = listen(&attr);
	assert_true(fake.task->mappings);
	attr.mmap = 0;
	attr.mmap_data = 1;
	datas = listen(&attr);
	core_mapped(fake.task, &code);
	mapping_is(only(&codes, PERF_RECORD_MMAP), PERF_RECORD_MISC_USER);
	nothing(&datas);
	core_mapped(fake.task, &data);
	mapping_is(only(&datas, PERF_RECORD_MMAP),
		   PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA);
	nothing(&codes);
}

static void mappings_at_length(void **state)
{
	struct core_mapping code = mapping(PROT_READ | PROT_EXEC);
	struct perf_event_attr attr = listener();
	const struct tally_record *record;
	struct listening plain, ids;

	(void)state;
	attr.mmap2 = 1;
	listen(&attr);
	assert_false(fake.task->mappings); /* mmap has to be asked for */
	attr.mmap = 1;
	plain = listen(&attr);
	attr.build_id = 1;
	ids = listen(&attr);
	core_mapped(fake.task, &code);
	record = only(&plain, PERF_RECORD_MMAP2);
	mapping_is(record, PERF_RECORD_MISC_USER);
	assert_false(record->mmap.has_build_id);
	assert_int_equal(record->mmap.maj, 8);
	assert_int_equal(record->mmap.min, 1);
	assert_int_equal(record->mmap.ino, 55);
	assert_int_equal(record->mmap.ino_generation, 66);
	assert_int_equal(record->mmap.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(record->mmap.flags, MAP_PRIVATE);
	record = only(&ids, PERF_RECORD_MMAP2);
	mapping_is(record, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
	assert_true(record->mmap.has_build_id);
	assert_int_equal(record->mmap.build_id_size, 20);
	assert_memory_equal(record->mmap.build_id, code.build_id, 20);
	assert_int_equal(record->mmap.prot, PROT_READ | PROT_EXEC);
	code.build_id_size = 0;
	core_mapped(fake.task, &code);
	record = only(&ids, PERF_RECORD_MMAP2);
	mapping_is(record, PERF_RECORD_MISC_USER);
	assert_int_equal(record->mmap.ino, 55);
}

/* ---- the rest ---- */

static void switch_is(struct listening *listening, uint32_t type, uint16_t misc, uint64_t time)
{
	const struct tally_record *record = next(listening);

	assert_non_null(record);
	assert_int_equal(record->type, type);
	assert_int_equal(record->misc, misc);
	assert_int_equal(record->id.time, time);
	assert_int_equal(record->body_size, type == PERF_RECORD_SWITCH ? 0 : 8);
}

static void switches(void **state)
{
	const uint16_t out = PERF_RECORD_MISC_SWITCH_OUT;
	struct perf_event_attr attr = listener();
	struct listening l, wide;

	(void)state;
	attr.context_switch = 1;
	l = listen(&attr);
	wide = listen(&attr);
	wide.event->everybody = true;
	core_switched(fake.task, 5000, false);
	switch_is(&l, PERF_RECORD_SWITCH, out, 5000);
	switch_is(&l, PERF_RECORD_SWITCH, 0, fake.tsc);
	switch_is(&wide, PERF_RECORD_SWITCH_CPU_WIDE, out, 5000);
	switch_is(&wide, PERF_RECORD_SWITCH_CPU_WIDE, 0, fake.tsc);
	core_switched(fake.task, 6000, true);
	switch_is(&l, PERF_RECORD_SWITCH, out | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, 6000);
	switch_is(&l, PERF_RECORD_SWITCH, 0, fake.tsc);
	core_tell_first_run(fake.task);
	switch_is(&l, PERF_RECORD_SWITCH, 0, fake.tsc);
	nothing(&l);
}

static void cgroups(void **state)
{
	struct perf_event_attr attr = listener();
	const struct tally_record *record;
	struct listening l;

	(void)state;
	attr.cgroup = 1;
	l = listen(&attr);
	core_cgroup_made(fake.task, 42, "/new");
	record = only(&l, PERF_RECORD_CGROUP);
	assert_int_equal(record->cgroup.id, 42);
	assert_string_equal(record->cgroup.path, "/new");
}

static void rates(void **state)
{
	const struct perf_event_attr attr = listener();
	struct listening l = listen(&attr);
	const struct tally_record *record;

	(void)state;
	core_tell_throttle(l.event, PERF_RECORD_THROTTLE);
	record = only(&l, PERF_RECORD_THROTTLE);
	assert_int_equal(record->throttle.time, fake.tsc);
	assert_int_equal(record->throttle.id, l.event->id);
	assert_int_equal(record->throttle.stream_id, l.event->id);
	core_tell_lost_samples(l.event, 9);
	assert_int_equal(only(&l, PERF_RECORD_LOST_SAMPLES)->lost_samples.lost, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE_CASE(only_who_asked_and_is_enabled),
		FAKE_CASE(on_its_processor_and_in_its_cgroup),
		FAKE_CASE(the_newest_first),
		FAKE_CASE(without_a_trailer),
		FAKE_CASE(names),
		FAKE_CASE(forks_and_exits),
		FAKE_CASE(who_tells_of_a_fork),
		FAKE_CASE(names_of_other_threads),
		FAKE_CASE(what_implies_tasks),
		FAKE_CASE(counts_of_who_ends),
		FAKE_CASE(told_by_somebody_else),
		FAKE_CASE(name_spaces),
		FAKE_CASE(mappings),
		FAKE_CASE(mappings_at_length),
		FAKE_CASE(switches),
		FAKE_CASE(cgroups),
		FAKE_CASE(rates),
	};

	return cmocka_run_group_tests_name("core/sideband", tests, NULL, NULL);
}
