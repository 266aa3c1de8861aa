// SPDX-License-Identifier: MIT
#include "core/test_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/time.h"

const struct core_rights all_rights = {.perfmon = true, .attach = true, .mlock = UINT64_MAX};

struct perf_event_attr test_attr(uint32_t type, uint64_t config)
{
	return (struct perf_event_attr){
		.type = type,
		.size = sizeof(struct perf_event_attr),
		.config = config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			       PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

struct perf_event_attr test_instructions(void)
{
	return test_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
}

void tree_begin(uint32_t counters)
{
	fake_begin();
	core_tree()->settings.counters = counters;
	core_tree()->settings.cpu_type = PERF_TYPE_RAW;
	fake.task = NULL;
	tree_clone(FIRST_PAGE, 0);
	tree_run(FIRST_PAGE);
}

void tree_end(void)
{
	fake_end();
}

int tree_setup(void **state)
{
	(void)state;
	tree_begin(0);
	return 0;
}

int tree_setup_two_counters(void **state)
{
	(void)state;
	tree_begin(2);
	return 0;
}

int tree_teardown(void **state)
{
	(void)state;
	tree_end();
	return 0;
}

struct core_task *tree_clone(uint32_t page, uint64_t flags)
{
	struct core_task *task = core_task(page);

	memset(task, 0, sizeof(*task));
	core_task_begin(task, fake.task, flags);
	task->pid = task->tid = (int32_t)(1000 + page);
	return task;
}

void tree_run(uint32_t page)
{
	if (fake.task)
		core_clock_stop(fake.task);
	fake.task = core_task(page);
	fake.tid = fake.task->tid;
	core_clock_start(fake.task);
	core_task_cpu(fake.task, fake.cpu);
	core_task_update(fake.task);
}

void tree_close(uint32_t event)
{
	core_close(event);
}

void tree_exit(void)
{
	core_task_exit(fake.task);
	fake.task = NULL;
	tree_run(FIRST_PAGE);
}

void tree_rotate(void)
{
	core_rotate();
	core_task_update(fake.task);
}

void tree_work(uint64_t instructions)
{
	core_task_update(fake.task);
	fake.tsc += instructions * 1000;
	fake.software[CORE_TASK_CLOCK] += instructions * 1000;
	fake_run(CORE_INSTRUCTIONS, instructions);
}

struct padded_attr test_padded(const struct perf_event_attr *attr)
{
	struct padded_attr padded;

	memset(&padded, 0, sizeof(padded));
	memcpy(padded.bytes, attr, sizeof(*attr));
	return padded;
}

int64_t test_open(const struct perf_event_attr *attr, const struct core_target *target,
		  uint64_t group, unsigned long flags, const struct core_rights *rights)
{
	uint64_t event;
	const int err = core_open(attr, target, group, flags, rights, &event);

	return err ? err : (int64_t)(uint32_t)event;
}

static int64_t open_at(const struct perf_event_attr *attr, struct core_task *task, int cpu,
		       uint32_t group)
{
	const struct core_target target = {
		.task = task, .cpu = cpu, .kept = attr->type == PERF_TYPE_TRACEPOINT};
	struct padded_attr padded = test_padded(attr);
	int err = core_attr_check(&padded.attr, padded.attr.size, true, &all_rights);
	int64_t opened;

	if (!err)
		err = core_open_check(&padded.attr, task ? task->tid : -1, cpu, 0, &all_rights);
	if (err)
		return err;
	opened = test_open(&padded.attr, &target, group, 0, &all_rights);
	if (opened > 0 && fake.task)
		core_opened_by(fake.task, true);
	return opened;
}

uint32_t tree_open(const struct perf_event_attr *attr, struct core_task *task, int cpu,
		   uint32_t group)
{
	int64_t event = open_at(attr, task, cpu, group);

	assert_true(event > 0);
	return (uint32_t)event;
}

int tree_refused(const struct perf_event_attr *attr, struct core_task *task, int cpu,
		 uint32_t group)
{
	int64_t err = open_at(attr, task, cpu, group);

	assert_true(err < 0);
	return (int)-err;
}

struct test_count tree_read(uint32_t event)
{
	struct test_count count = {0};

	assert_int_equal(core_read(event, &count, sizeof(count)), sizeof(count));
	return count;
}

uint64_t tree_value(uint32_t event)
{
	return tree_read(event).value;
}
