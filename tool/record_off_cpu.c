// SPDX-License-Identifier: MIT
/*
 * Time off the processor, from context switches.
 *
 * The event is context-switches with a period of 1 and attr.context_switch, so that one thread's
 * story reads, in time order:
 *
 *	SAMPLE		 it is about to be switched out; the call chain is the one it waits in
 *	SWITCH out	 says whether it gave the processor up or was pushed off it (PREEMPT)
 *	  ...
 *	SWITCH		 it runs again
 *
 * The sample is held until the thread runs again, and then handed out with the nanoseconds in
 * between as its period and the moment it came back as its time. A thread that was only preempted
 * wanted to run: that is no waiting, and its sample is dropped. So are those of the idle task, and
 * the last one of a thread that has exited.
 */
#include "tool/record.h"

#include <stdlib.h>
#include <string.h>

struct waiting {
	uint32_t tid; /* 0: free */
	bool off;     /* its SWITCH out has been seen */
	bool exited;  /* its last switch is no waiting */
	uint64_t since;
	size_t size, max;
	struct perf_event_header *sample;
};

struct off_cpu {
	size_t time_at, period_at; /* within a sample */
	struct waiting *tasks;	   /* hash table, open addressing; entries stay once made */
	size_t nr_tasks, max_tasks;
	size_t next; /* of finish */
};

/* Fields of 8 bytes that come before the one of @bit, in the order in which a sample has them. */
static size_t offset_of(uint64_t sample_type, uint64_t bit)
{
	static const uint64_t order[] = {
		PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,	  PERF_SAMPLE_TID,
		PERF_SAMPLE_TIME,	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
		PERF_SAMPLE_STREAM_ID,	PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD,
	};
	size_t offset = sizeof(struct perf_event_header);

	for (size_t i = 0; order[i] != bit; i++)
		offset += sample_type & order[i] ? 8 : 0;
	return offset;
}

struct off_cpu *record_off_cpu_new(const struct tally_record_format *format)
{
	struct off_cpu *off_cpu = calloc(1, sizeof(*off_cpu));

	if (!off_cpu)
		return NULL;
	off_cpu->time_at = offset_of(format->sample_type, PERF_SAMPLE_TIME);
	off_cpu->period_at = offset_of(format->sample_type, PERF_SAMPLE_PERIOD);
	return off_cpu;
}

void record_off_cpu_free(struct off_cpu *off_cpu)
{
	if (!off_cpu)
		return;
	for (size_t i = 0; i < off_cpu->max_tasks; i++)
		free(off_cpu->tasks[i].sample);
	free(off_cpu->tasks);
	free(off_cpu);
}

static struct waiting *slot_of(struct waiting *tasks, size_t max, uint32_t tid)
{
	size_t i = tid * UINT32_C(2654435761) & (max - 1);

	while (tasks[i].tid && tasks[i].tid != tid)
		i = (i + 1) & (max - 1);
	return &tasks[i];
}

static struct waiting *find(struct off_cpu *off_cpu, uint32_t tid)
{
	struct waiting *task;

	if (2 * (off_cpu->nr_tasks + 1) > off_cpu->max_tasks) {
		size_t max = off_cpu->max_tasks ? 2 * off_cpu->max_tasks : 256;
		struct waiting *tasks = calloc(max, sizeof(*tasks));

		if (!tasks)
			return NULL;
		for (size_t i = 0; i < off_cpu->max_tasks; i++)
			if (off_cpu->tasks[i].tid)
				*slot_of(tasks, max, off_cpu->tasks[i].tid) = off_cpu->tasks[i];
		free(off_cpu->tasks);
		off_cpu->tasks = tasks;
		off_cpu->max_tasks = max;
	}
	task = slot_of(off_cpu->tasks, off_cpu->max_tasks, tid);
	if (!task->tid) {
		task->tid = tid;
		off_cpu->nr_tasks++;
	}
	return task;
}

static void hold(struct waiting *task, const struct tally_record *record)
{
	if (record->size > task->max) {
		struct perf_event_header *grown = realloc(task->sample, record->size);

		if (!grown)
			return;
		task->sample = grown;
		task->max = record->size;
	}
	memcpy(task->sample, record->raw, record->size);
	task->size = record->size;
	task->off = false;
}

static const struct perf_event_header *complete(const struct off_cpu *off_cpu, struct waiting *task,
						uint64_t now)
{
	uint64_t period = now - task->since;

	task->size = 0;
	memcpy((char *)task->sample + off_cpu->time_at, &now, sizeof(now));
	memcpy((char *)task->sample + off_cpu->period_at, &period, sizeof(period));
	return task->sample;
}

const struct perf_event_header *record_off_cpu_feed(struct off_cpu *off_cpu,
						    const struct tally_record *record)
{
	bool is_task = record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT;
	uint32_t tid = is_task ? record->task.tid : record->id.tid;
	struct waiting *task = tid ? find(off_cpu, tid) : NULL;

	if (!task)
		return NULL;
	switch (record->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		/* Its record may come after those of its last switch, from another ring. */
		task->exited = record->type == PERF_RECORD_EXIT;
		task->size = 0;
		return NULL;
	case PERF_RECORD_SAMPLE:
		if (!task->exited)
			hold(task, record);
		return NULL;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		break;
	default:
		return NULL;
	}
	if (!task->size)
		return NULL;
	if (!(record->misc & PERF_RECORD_MISC_SWITCH_OUT)) {
		if (task->off && record->id.time > task->since)
			return complete(off_cpu, task, record->id.time);
		task->size = 0;
	} else if (record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) {
		task->size = 0;
	} else {
		task->off = true;
		task->since = record->id.time;
	}
	return NULL;
}

const struct perf_event_header *record_off_cpu_finish(struct off_cpu *off_cpu, uint64_t now)
{
	while (off_cpu->next < off_cpu->max_tasks) {
		struct waiting *task = &off_cpu->tasks[off_cpu->next++];

		if (task->size && task->off && now > task->since)
			return complete(off_cpu, task, now);
	}
	return NULL;
}
