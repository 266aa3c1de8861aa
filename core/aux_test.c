// SPDX-License-Identifier: MIT
/* The AUX area: mapping, room, records, wakeups, and what samples take of it. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/fake_ring.h"
#include "core/ring.h"
#include "core/test_tree.h"

#define PAGE ARENA_PAGE

enum { TYPE = 4096, RECORD = sizeof(struct core_branch), AT = 9 * 4096 };

static int begin(void **state)
{
	tree_setup(state);
	core_tree()->settings.trace_type = TYPE;
	core_tree()->settings.max_sample_rate = UINT32_MAX;
	return 0;
}

static struct perf_event_attr trace(void)
{
	struct perf_event_attr attr = test_attr(TYPE, 0);

	attr.read_format = 0;
	attr.sample_type = PERF_SAMPLE_TID;
	attr.sample_id_all = 1;
	return attr;
}

struct area {
	uint32_t event;
	struct perf_event_attr attr;
	struct fake_ring ring;
	const struct core_branch *data;
	uint64_t size;
};

static int64_t map_aux(uint32_t event, struct perf_event_mmap_page *page, uint64_t offset,
		       uint64_t size, bool writable)
{
	page->aux_offset = offset;
	page->aux_size = size;
	return fake_ring_map(event, offset, size, writable, &all_rights);
}

static struct area area_of(const struct perf_event_attr *attr, unsigned int pages, bool writable)
{
	struct area area = {.attr = *attr, .size = pages * PAGE};
	int64_t at;

	area.event = tree_open(attr, fake.task, -1, 0);
	core_disable(area.event, false);
	area.ring = fake_map(area.event, 8, true);
	at = map_aux(area.event, area.ring.page, AT, area.size, writable);
	assert_true(at > 0);
	area.data = core_arena((uint64_t)at);
	return area;
}

static void on(const struct area *area)
{
	core_enable(area->event, false);
	core_task_update(fake.task);
}

static void off(const struct area *area)
{
	core_disable(area->event, false);
	core_task_update(fake.task);
}

/* Each different from all before. */
static uint64_t last;

static void branch(unsigned int times)
{
	while (times--) {
		const struct core_branch one = {last + 1, last + 2, 0};

		last += 2;
		core_trace(fake.task, &one, 1);
		core_task_update(fake.task);
	}
}

static void branches(unsigned int nr)
{
	static struct core_branch all[4096];

	for (unsigned int i = 0; i < nr; i++, last += 2)
		all[i] = (struct core_branch){last + 1, last + 2, 0};
	core_trace(fake.task, all, nr);
	core_task_update(fake.task);
}

static const struct tally_record *expect(struct area *area, uint32_t type)
{
	const struct tally_record *record = fake_next(&area->ring, &area->attr);

	assert_non_null(record);
	assert_int_equal(record->type, type);
	return record;
}

static void expect_aux(struct area *area, uint64_t offset, uint64_t size, uint64_t flags)
{
	const struct tally_record *record = expect(area, PERF_RECORD_AUX);

	assert_int_equal(record->aux.offset, offset);
	assert_int_equal(record->aux.size, size);
	assert_int_equal(record->aux.flags, flags);
	assert_int_equal(record->id.tid, fake.task->tid);
}

static void expect_aux_of(struct area *area, const struct core_task *task, uint64_t offset,
			  uint64_t size)
{
	const struct tally_record *record = expect(area, PERF_RECORD_AUX);

	assert_int_equal(record->aux.offset, offset);
	assert_int_equal(record->aux.size, size);
	assert_int_equal(record->id.tid, task->tid);
}

static void nothing_more(struct area *area)
{
	assert_null(fake_next(&area->ring, &area->attr));
}

/* ---- mapping ---- */

static void sizes_and_places(void **state)
{
	const struct perf_event_attr attr = trace(), other = test_instructions();
	uint32_t event = tree_open(&attr, fake.task, -1, 0);
	uint32_t counter = tree_open(&other, fake.task, -1, 0);
	struct perf_event_mmap_page page, *its;
	int64_t at;

	(void)state;
	assert_int_equal(map_aux(event, &page, 4 * PAGE, PAGE, true), -EINVAL); /* no ring */
	its = fake_map(event, 2, true).page;
	assert_int_equal(map_aux(event, its, 2 * PAGE, PAGE, true), -EINVAL); /* in the data */
	assert_int_equal(map_aux(event, its, 3 * PAGE, 3 * PAGE, true), -EINVAL);
	its->aux_offset = 3 * PAGE;
	its->aux_size = 2 * PAGE;
	assert_int_equal(fake_ring_map(event, 4 * PAGE, 2 * PAGE, true, &all_rights), -EINVAL);
	assert_int_equal(fake_ring_map(event, 3 * PAGE, PAGE, true, &all_rights), -EINVAL);
	at = fake_ring_map(event, 3 * PAGE, 2 * PAGE, true, &all_rights);
	assert_true(at > 0);
	/* Once it is there, it is what it is. */
	assert_int_equal(map_aux(event, its, 3 * PAGE, 4 * PAGE, true), -EINVAL);
	assert_int_equal(map_aux(event, its, 4 * PAGE, 2 * PAGE, true), -EINVAL);
	assert_int_equal(map_aux(event, its, 3 * PAGE, 2 * PAGE, true), at);
	its = fake_map(counter, 1, true).page;
	assert_int_equal(map_aux(counter, its, 2 * PAGE, PAGE, true), -EOPNOTSUPP);
}

static void it_is_locked_memory(void **state)
{
	const struct core_rights poor = {.perfmon = true, .attach = true, .mlock = 4 * PAGE};
	const struct perf_event_attr attr = trace();
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	core_tree()->settings.paranoid = 2;
	core_tree()->settings.mlock_kb = 0;
	event = tree_open(&attr, fake.task, -1, 0);
	ring = fake_map(event, 1, true);
	ring.page->aux_offset = 2 * PAGE;
	ring.page->aux_size = 4 * PAGE; /* and two of the ring */
	assert_int_equal(fake_ring_map(event, 2 * PAGE, 4 * PAGE, true, &poor), -EPERM);
	ring.page->aux_size = 2 * PAGE;
	assert_true(fake_ring_map(event, 2 * PAGE, 2 * PAGE, true, &poor) > 0);
	fake_aux_unmap(event, 2 * PAGE);
	assert_true(fake_ring_map(event, 2 * PAGE, 2 * PAGE, true, &poor) > 0);
}

static void unmapped_in_either_order(void **state)
{
	const struct perf_event_attr attr = trace();
	struct area area;

	(void)state;
	for (unsigned int ring_first = 0; ring_first < 2; ring_first++) {
		area = area_of(&attr, 4, true);
		on(&area);
		branches(3);
		fake.discarded = 0;
		if (ring_first) {
			fake_ring_unmap(area.event);
			branches(3); /* it is still there */
			off(&area);
			assert_int_equal(area.ring.page->aux_head, 6 * RECORD);
			fake_aux_unmap(area.event, AT);
		} else {
			fake_aux_unmap(area.event, AT);
			assert_int_equal(fake.discarded, 4 * PAGE);
			branches(3); /* they go nowhere */
			off(&area);
			fake_ring_unmap(area.event);
		}
		assert_int_equal(fake.discarded, (4 + 9) * PAGE);
		assert_int_equal(core_event(area.event)->ring, 0);
		tree_close(area.event);
	}
}

/* ---- what arrives ---- */

static void from_enabling_to_disabling(void **state)
{
	const struct perf_event_attr attr = trace();
	struct area area = area_of(&attr, 4, true);
	const struct tally_record *record;
	const uint64_t first = last + 7;

	(void)state;
	branches(3);
	on(&area);
	branches(5);
	branch(5);
	assert_int_equal(area.ring.page->aux_head, 0); /* nobody has been told */
	off(&area);
	branches(3);
	assert_int_equal(area.ring.page->aux_head, 10 * RECORD);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(area.data[i].from, first + 2 * i);
		assert_int_equal(area.data[i].to, first + 2 * i + 1);
	}
	assert_int_equal(area.data[10].from, 0);
	record = expect(&area, PERF_RECORD_ITRACE_START);
	assert_int_equal(record->itrace_start.tid, fake.task->tid);
	expect_aux(&area, 0, 10 * RECORD, 0);
	on(&area);
	off(&area);
	nothing_more(&area);
	on(&area);
	branch(1);
	tree_exit();
	record = expect(&area, PERF_RECORD_AUX);
	assert_int_equal(record->aux.offset, 10 * RECORD);
	assert_int_equal(record->aux.size, RECORD);
}

static void the_watermark_wakes(void **state)
{
	struct perf_event_attr attr = trace();
	struct area area;

	(void)state;
	attr.aux_watermark = 5 * RECORD;
	area = area_of(&attr, 4, true);
	on(&area);
	expect(&area, PERF_RECORD_ITRACE_START);
	branch(4);
	assert_int_equal(core_poll(area.event), 0);
	branches(8);
	assert_int_equal(core_poll(area.event), POLLIN | POLLRDNORM);
	expect_aux(&area, 0, 5 * RECORD, 0);
	expect_aux(&area, 5 * RECORD, 5 * RECORD, 0);
	nothing_more(&area);
	assert_int_equal(area.ring.page->aux_head, 10 * RECORD);
}

/* What does not fit is cut, and nothing comes behind it until somebody enables it again. */
static void a_full_area_stops_the_event(void **state)
{
	const struct perf_event_attr attr = trace();
	struct area area = area_of(&attr, 1, true);
	const unsigned int fit = PAGE / RECORD;

	(void)state;
	on(&area);
	expect(&area, PERF_RECORD_ITRACE_START);
	branches(fit + 3);
	assert_int_equal(core_event(area.event)->state, CORE_OFF);
	assert_int_equal(core_poll(area.event), POLLIN | POLLRDNORM);
	expect_aux(&area, 0, 86 * RECORD, 0); /* half of it: the watermark */
	expect_aux(&area, 86 * RECORD, (fit - 86) * RECORD, PERF_AUX_FLAG_TRUNCATED);
	assert_int_equal(area.ring.page->aux_head, fit * RECORD);
	branches(1);
	nothing_more(&area);
	/* There is still no room: it is not begun. */
	on(&area);
	assert_int_equal(core_event(area.event)->state, CORE_OFF);
	assert_int_equal(core_poll(area.event), POLLIN | POLLRDNORM);
	nothing_more(&area);
	area.ring.page->aux_tail = fit * RECORD;
	on(&area);
	branches(1);
	off(&area);
	/* From the beginning again: no record lies over the end. */
	expect_aux(&area, PAGE, RECORD, 0);
	nothing_more(&area);
	assert_int_equal(area.data[0].to, last);
	assert_int_equal(area.ring.page->aux_head, PAGE + RECORD);
}

/* A reader that keeps up sees each branch, in order. */
static void round_and_round(void **state)
{
	const struct perf_event_attr attr = trace();
	struct area area = area_of(&attr, 1, true);
	uint64_t seen = last;

	(void)state;
	on(&area);
	expect(&area, PERF_RECORD_ITRACE_START);
	for (unsigned int i = 0; i < 1000; i++) {
		const struct tally_record *record;

		branches(1 + i % 80);
		while ((record = fake_next(&area.ring, &area.attr))) {
			assert_int_equal(record->type, PERF_RECORD_AUX);
			assert_int_equal(record->aux.flags, 0);
			for (uint64_t at = 0; at < record->aux.size; at += RECORD, seen += 2)
				assert_int_equal(
					area.data[(record->aux.offset + at) % PAGE / RECORD].from,
					seen + 1);
			area.ring.page->aux_tail = record->aux.offset + record->aux.size;
		}
	}
	off(&area);
	assert_true(area.ring.page->aux_head > 100 * PAGE);
}

static void what_is_read_only_is_overwritten(void **state)
{
	const struct perf_event_attr attr = trace();
	struct area area = area_of(&attr, 1, false);
	const unsigned int fit = PAGE / RECORD;

	(void)state;
	on(&area);
	expect(&area, PERF_RECORD_ITRACE_START);
	branches(10 * fit + 2);
	assert_int_equal(core_poll(area.event), 0);
	nothing_more(&area);
	off(&area);
	expect_aux(&area, 10 * PAGE + 2 * RECORD, PAGE, PERF_AUX_FLAG_OVERWRITE);
	assert_int_equal(area.ring.page->aux_head, 10 * PAGE + 2 * RECORD);
	assert_int_equal(area.data[1].to, last);
	assert_int_equal(area.data[2].to, last + 2 - 2 * fit);
}

static void copies_go_to_the_same_area(void **state)
{
	struct perf_event_attr attr = trace();
	struct area area = {.attr = attr, .size = 4 * PAGE};
	struct core_task *child;
	int64_t at;

	(void)state;
	area.attr.inherit = attr.inherit = 1;
	area.event = tree_open(&attr, fake.task, 0, 0);
	core_task_update(fake.task);
	area.ring = fake_map(area.event, 8, true);
	at = map_aux(area.event, area.ring.page, AT, area.size, true);
	assert_true(at > 0);
	branches(2); /* it began before there was an area */
	expect(&area, PERF_RECORD_ITRACE_START);
	nothing_more(&area);
	child = tree_clone(2, 0);
	tree_run(2);
	branches(3);
	expect_aux_of(&area, core_task(FIRST_PAGE), 0, 2 * RECORD);
	branches(1);
	nothing_more(&area);
	tree_exit();
	expect_aux_of(&area, child, 2 * RECORD, 4 * RECORD);
	branches(1);
	off(&area);
	expect_aux_of(&area, core_task(FIRST_PAGE), 6 * RECORD, RECORD);
	nothing_more(&area);
}

/* Somebody else has disabled it: what was executed until the thread knows is not lost. */
static void until_the_thread_follows(void **state)
{
	const struct perf_event_attr attr = trace();
	struct area area = area_of(&attr, 4, true);

	(void)state;
	on(&area);
	expect(&area, PERF_RECORD_ITRACE_START);
	core_disable(area.event, false);
	core_trace(fake.task, &(struct core_branch){1, 2, 0}, 1);
	nothing_more(&area);
	core_task_update(fake.task);
	expect_aux(&area, 0, RECORD, 0);
	core_enable(area.event, false);
	core_task_update(fake.task);
	branches(1);
	tree_close(area.event); /* the mappings stay */
	branches(1);
	off(&area);
	expect_aux(&area, RECORD, 2 * RECORD, 0);
}

/* ---- opening ---- */

static void one_at_a_time(void **state)
{
	struct perf_event_attr attr = trace();
	struct core_task *other = tree_clone(2, 0);
	uint32_t first = tree_open(&attr, fake.task, 0, 0);

	(void)state;
	assert_int_equal(tree_refused(&attr, fake.task, 0, 0), EBUSY);
	assert_int_equal(tree_refused(&attr, fake.task, -1, 0), EBUSY);
	assert_int_equal(tree_refused(&attr, NULL, 1, 0), EBUSY);
	tree_open(&attr, fake.task, 1, 0);
	tree_open(&attr, other, 0, 0);
	tree_close(first);
	tree_open(&attr, fake.task, 0, 0);
}

static void set_action(struct padded_attr *attr, uint32_t action)
{
	memcpy(attr->bytes + CORE_AT_AUX_ACTION, &action, sizeof(action));
	attr->attr.size = CORE_ATTR_SIZE;
}

static int64_t open_padded(const struct padded_attr *attr, uint32_t group)
{
	const struct core_target target = {.task = fake.task, .cpu = -1};
	int64_t opened = test_open(&attr->attr, &target, group, 0, &all_rights);

	if (opened > 0)
		core_opened_by(fake.task, true);
	return opened;
}

static void who_may_use_it(void **state)
{
	struct perf_event_attr attr = trace(), sampler = test_instructions();
	struct padded_attr padded = test_padded(&sampler), first = test_padded(&attr);
	uint32_t leader, plain;

	(void)state;
	leader = tree_open(&attr, fake.task, -1, 0);
	plain = tree_open(&sampler, fake.task, -1, 0);
	sampler.aux_output = 1;
	assert_int_equal(tree_refused(&sampler, fake.task, -1, leader), EOPNOTSUPP);
	sampler.aux_output = 0;
	sampler.aux_sample_size = 4096;
	assert_int_equal(tree_refused(&sampler, fake.task, -1, 0), EINVAL);
	assert_int_equal(tree_refused(&sampler, fake.task, -1, plain), EINVAL);
	tree_open(&sampler, fake.task, -1, leader);
	set_action(&padded, CORE_AUX_PAUSE | CORE_AUX_RESUME);
	assert_int_equal(open_padded(&padded, leader), -EINVAL);
	set_action(&padded, CORE_AUX_PAUSE);
	assert_int_equal(open_padded(&padded, 0), -EINVAL);
	assert_true(open_padded(&padded, leader) > 0);
	set_action(&padded, CORE_AUX_START_PAUSED);
	assert_int_equal(open_padded(&padded, leader), -EOPNOTSUPP);
	tree_close(leader);
	set_action(&first, CORE_AUX_START_PAUSED);
	assert_true(open_padded(&first, 0) > 0);
}

/* ---- in groups ---- */

static void expect_sample(struct fake_ring *ring, const struct perf_event_attr *attr,
			  unsigned int nr)
{
	const struct tally_record *record = fake_next(ring, attr);
	const struct core_branch *of;

	assert_non_null(record);
	assert_int_equal(record->type, PERF_RECORD_SAMPLE);
	assert_int_equal(record->sample.aux_size, nr * RECORD);
	of = (const void *)record->sample.aux;
	for (unsigned int i = 0; i < nr; i++)
		assert_int_equal(of[i].to, last - 2 * (nr - 1 - i));
}

static void samples_take_the_last_of_it(void **state)
{
	static const bool writable[] = {true, false};
	struct perf_event_attr attr = trace(), sampler = test_instructions();
	struct fake_ring ring;
	struct area area;
	uint32_t event;

	(void)state;
	sampler.read_format = 0;
	sampler.sample_period = 10;
	sampler.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_AUX;
	sampler.aux_sample_size = 2000; /* 83 records and 8 bytes */
	for (unsigned int i = 0; i < 2; i++) {
		area = area_of(&attr, 1, writable[i]);
		event = tree_open(&sampler, fake.task, -1, area.event);
		ring = fake_map(event, 8, true);
		core_task_update(fake.task);
		fake_run(CORE_INSTRUCTIONS, 10); /* the leader is off: nothing is sampled */
		assert_null(fake_next(&ring, &sampler));
		on(&area);
		fake_run(CORE_INSTRUCTIONS, 10);
		expect_sample(&ring, &sampler, 0);
		branches(3);
		fake_run(CORE_INSTRUCTIONS, 10);
		expect_sample(&ring, &sampler, 3);
		branches(120);
		fake_run(CORE_INSTRUCTIONS, 10);
		expect_sample(&ring, &sampler, 83);
		area.ring.page->aux_tail = 120 * RECORD;
		branches(60); /* over the end */
		fake_run(CORE_INSTRUCTIONS, 10);
		expect_sample(&ring, &sampler, 83);
		fake_ring_unmap(event);
		tree_close(event);
		fake_aux_unmap(area.event, AT);
		fake_ring_unmap(area.event);
		tree_close(area.event);
	}
}

static void a_sample_pauses_and_another_resumes(void **state)
{
	struct perf_event_attr attr = trace(), sampler = test_instructions();
	struct area area = area_of(&attr, 4, true);
	struct padded_attr pauses, resumes;

	(void)state;
	sampler.sample_period = 10;
	pauses = test_padded(&sampler);
	set_action(&pauses, CORE_AUX_PAUSE);
	sampler.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	resumes = test_padded(&sampler);
	set_action(&resumes, CORE_AUX_RESUME);
	assert_true(open_padded(&pauses, area.event) > 0);
	assert_true(open_padded(&resumes, area.event) > 0);
	on(&area);
	branches(1);
	fake_run(CORE_INSTRUCTIONS, 10);
	branches(2);
	fake_run(CORE_BRANCHES, 10);
	branches(3);
	off(&area);
	assert_int_equal(area.ring.page->aux_head, 4 * RECORD);
}

#define AUX_CASE(name) cmocka_unit_test_setup_teardown(name, begin, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AUX_CASE(sizes_and_places),
		AUX_CASE(it_is_locked_memory),
		AUX_CASE(unmapped_in_either_order),
		AUX_CASE(from_enabling_to_disabling),
		AUX_CASE(the_watermark_wakes),
		AUX_CASE(a_full_area_stops_the_event),
		AUX_CASE(round_and_round),
		AUX_CASE(what_is_read_only_is_overwritten),
		AUX_CASE(copies_go_to_the_same_area),
		AUX_CASE(until_the_thread_follows),
		AUX_CASE(one_at_a_time),
		AUX_CASE(who_may_use_it),
		AUX_CASE(samples_take_the_last_of_it),
		AUX_CASE(a_sample_pauses_and_another_resumes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
