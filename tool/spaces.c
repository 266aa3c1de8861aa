// SPDX-License-Identifier: MIT
#include "tool/spaces.h"

#include <stdlib.h>

#include "tool/lookup.h"
#include "tool/memory.h"

struct mapping {
	uint64_t start, end, time;
	uint64_t content; /* hash of what is mapped: file and offset of address 0 */
};

struct process {
	uint32_t pid;
	uint32_t first; /* number of its first space */
	uint64_t *changes;
	size_t nr_changes, changes_room;
	struct mapping *mappings;
	size_t nr_mappings, mappings_room;
};

struct spaces {
	struct process *processes;
	size_t nr, room;
	struct lookup by_pid;
	uint32_t next;
	uint32_t last; /* index of the process that was asked for last */
};

struct spaces *spaces_new(void)
{
	struct spaces *spaces = tool_alloc(1, sizeof(*spaces));

	spaces->next = 1;
	return spaces;
}

void spaces_free(struct spaces *spaces)
{
	if (!spaces)
		return;
	for (size_t i = 0; i < spaces->nr; i++) {
		free(spaces->processes[i].changes);
		free(spaces->processes[i].mappings);
	}
	free(spaces->processes);
	lookup_free(&spaces->by_pid);
	free(spaces);
}

static bool pid_equal(const void *owner, uint32_t index, const void *key)
{
	return ((const struct spaces *)owner)->processes[index].pid == *(const uint32_t *)key;
}

static struct process *find(struct spaces *spaces, uint32_t pid)
{
	uint64_t word = pid;
	uint32_t hash, index;

	if (spaces->last < spaces->nr && spaces->processes[spaces->last].pid == pid)
		return &spaces->processes[spaces->last];
	hash = lookup_hash_words(0, &word, 1);
	index = lookup_find(&spaces->by_pid, hash, pid_equal, spaces, &pid);
	if (index == LOOKUP_NONE) {
		index = spaces->nr++;
		spaces->processes = tool_grow(spaces->processes, &spaces->room, spaces->nr,
					      sizeof(*spaces->processes));
		spaces->processes[index] = (struct process){.pid = pid, .first = spaces->next++};
		lookup_add(&spaces->by_pid, hash, index);
	}
	spaces->last = index;
	return &spaces->processes[index];
}

static void add_change(struct process *process, uint64_t time)
{
	process->changes = tool_grow(process->changes, &process->changes_room,
				     process->nr_changes + 1, sizeof(*process->changes));
	process->changes[process->nr_changes++] = time;
}

static void add_mapping(struct process *process, const struct tally_mmap *mmap, uint64_t time)
{
	uint64_t content =
		((uint64_t)lookup_hash_text(mmap->filename) << 32) ^ (mmap->pgoff - mmap->start);
	uint64_t end;

	if (__builtin_add_overflow(mmap->start, mmap->len, &end))
		end = UINT64_MAX;
	process->mappings = tool_grow(process->mappings, &process->mappings_room,
				      process->nr_mappings + 1, sizeof(*process->mappings));
	process->mappings[process->nr_mappings++] =
		(struct mapping){mmap->start, end, time, content};
}

void spaces_feed(struct spaces *spaces, const struct tally_record *record, uint64_t time)
{
	switch (record->type) {
	case PERF_RECORD_COMM:
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
			add_change(find(spaces, record->comm.pid), time);
		break;
	case PERF_RECORD_FORK:
		if (record->task.pid != record->task.ppid)
			add_change(find(spaces, record->task.pid), time);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		add_mapping(find(spaces, record->mmap.pid), &record->mmap, time);
		break;
	}
}

void spaces_follow(struct spaces *spaces, const struct tally_record *record)
{
	switch (record->type) {
	case PERF_RECORD_COMM:
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
			find(spaces, record->comm.pid)->first = spaces->next++;
		break;
	case PERF_RECORD_FORK:
		if (record->task.pid != record->task.ppid)
			find(spaces, record->task.pid)->first = spaces->next++;
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		find(spaces, record->mmap.pid)->first = spaces->next++;
		break;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Wherever two different mappings overlap, the later begins a space. Which is the later one is not
 * looked at: a change too many costs a little memory, a change too few would be a wrong name.
 */
static void find_overlaps(struct process *process)
{
	uint64_t end = 0, content = 0, time = 0;

	if (process->nr_mappings)
		qsort(process->mappings, process->nr_mappings, sizeof(*process->mappings),
		      by_start);
	for (size_t i = 0; i < process->nr_mappings; i++) {
		const struct mapping *m = &process->mappings[i];

		if (i && m->start < end && m->content != content) {
			add_change(process, m->time);
			add_change(process, time);
		}
		if (m->end > end || !i) {
			end = m->end;
			content = m->content;
			time = m->time;
		}
	}
	free(process->mappings);
	process->mappings = NULL;
	process->nr_mappings = process->mappings_room = 0;
}

void spaces_seal(struct spaces *spaces)
{
	spaces->next = 1;
	for (size_t i = 0; i < spaces->nr; i++) {
		struct process *process = &spaces->processes[i];

		find_overlaps(process);
		if (process->nr_changes)
			qsort(process->changes, process->nr_changes, sizeof(*process->changes),
			      by_value);
		process->first = spaces->next;
		spaces->next += process->nr_changes + 1;
	}
}

uint32_t spaces_at(struct spaces *spaces, uint32_t pid, uint64_t time)
{
	const struct process *process = find(spaces, pid);
	size_t low = 0, high = process->nr_changes;

	/* How many changes came at or before that time. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->changes[middle] <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return process->first + low;
}
