// SPDX-License-Identifier: MIT
#include "lib/symbol/comm.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A chain of forks this long without a name in between is made up. */
#define MAX_FORKS 1024

struct name {
	struct tly_moment since;
	const char *comm;    /* NULL: not known yet, ask the parent */
	uint64_t generation; /* an inherited name: when it was found out */
	uint32_t parent;
	bool inherited;
};

struct thread {
	struct name *names; /* in order of time */
	size_t nr, size;
};

void tly_comms_free(struct tly_comms *comms)
{
	for (size_t i = 0; i < comms->threads.size; i++) {
		struct thread *thread = comms->threads.entries[i].value;

		if (thread)
			free(thread->names);
		free(thread);
	}
	free(comms->threads.entries);
	memset(&comms->threads, 0, sizeof(comms->threads));
}

static struct thread *get_thread(struct tly_comms *comms, uint32_t tid)
{
	struct thread *thread = tly_idmap_get(&comms->threads, tid);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (thread && tly_idmap_add(&comms->threads, tid, thread)) {
		free(thread);
		thread = NULL;
	}
	return thread;
}

static int add(struct tly_comms *comms, uint32_t tid, const struct name *name)
{
	struct thread *thread = get_thread(comms, tid);
	size_t at;

	if (!thread)
		return -ENOMEM;
	if (thread->nr == thread->size) {
		size_t size = thread->size ? thread->size * 2 : 2;
		struct name *names = reallocarray(thread->names, size, sizeof(*names));

		if (!names)
			return -ENOMEM;
		thread->names = names;
		thread->size = size;
	}
	for (at = thread->nr; at && tly_moment_before(name->since, thread->names[at - 1].since);)
		at--;
	memmove(&thread->names[at + 1], &thread->names[at],
		(thread->nr - at) * sizeof(*thread->names));
	thread->names[at] = *name;
	thread->nr++;
	comms->generation++;
	return 0;
}

int tly_comms_name(struct tly_comms *comms, uint32_t tid, const char *comm, struct tly_moment since)
{
	struct name name = {.since = since, .comm = tly_strings_intern(comms->strings, comm)};

	return name.comm ? add(comms, tid, &name) : -ENOMEM;
}

int tly_comms_fork(struct tly_comms *comms, uint32_t tid, uint32_t parent, struct tly_moment since)
{
	struct name name = {.since = since, .parent = parent, .inherited = true};

	return add(comms, tid, &name);
}

/* The entry that holds at @time; the first one when it is earlier than all. */
static struct name *entry_at(struct tly_comms *comms, uint32_t tid, uint64_t time)
{
	struct thread *thread = tly_idmap_get(&comms->threads, tid);
	size_t low = 0, nr;

	if (!thread)
		return NULL;
	nr = thread->nr;
	while (nr > 1) {
		size_t half = nr / 2;

		if (thread->names[low + half].since.time <= time)
			low += half;
		nr -= half;
	}
	return &thread->names[low];
}

const char *tly_comms_find(struct tly_comms *comms, uint32_t tid, uint64_t time)
{
	struct name *first = entry_at(comms, tid, time), *name = first;

	if (!first || !first->inherited)
		return first ? first->comm : NULL;
	if (first->generation == comms->generation)
		return first->comm;
	for (int forks = 0; name && name->inherited && forks < MAX_FORKS; forks++)
		name = entry_at(comms, name->parent, name->since.time);
	first->comm = name && !name->inherited ? name->comm : NULL;
	first->generation = comms->generation;
	return first->comm;
}
