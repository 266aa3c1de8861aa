// SPDX-License-Identifier: MIT
/*
 * Another process is asked by reading its memory, as the kernel lets those do who may trace it: it
 * has the same variables as this one, as far from the beginning of its tally-rt, which is what its
 * maps tell. It goes on meanwhile, so that what is read may have been changing, and is read again.
 */
#include "runtime/linux/maps_layout.h"

#include <linux/fcntl.h>

#include "runtime/linux/brk.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/files.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/linux/uio.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/* For @nr ranges, and a few more that come meanwhile: what is allocated here is one. */
static bool make_room(struct maps_known *known, size_t nr)
{
	enum { MORE = 16 };

	known->room = PAGE_UP((nr + MORE) * sizeof(struct range)) / sizeof(struct range);
	known->layout.ranges = memory_allocate(known->room * sizeof(struct range), 0);
	return known->layout.ranges;
}

void maps_known_free(struct maps_known *known)
{
	memory_free((void *)known->layout.ranges, known->room * sizeof(struct range));
}

static void set_heap(struct maps_layout *layout, const struct brk_heap *heap)
{
	layout->heap_start = heap->start;
	layout->heap_end = PAGE_UP(heap->end);
}

static bool read_own(struct maps_known *known)
{
	const struct map_place place = map_place();
	size_t nr;

	known->pid = 0;
	if (!make_room(known, __atomic_load_n(place.nr, __ATOMIC_RELAXED)))
		return false;
	translate_lock();
	nr = *place.nr < known->room ? *place.nr : known->room;
	memcpy((void *)known->layout.ranges, place.ranges, nr * sizeof(struct range));
	known->layout.nr = nr;
	known->changes = *place.changes;
	translate_unlock();
	set_heap(&known->layout, brk_heap());
	return true;
}

/* Of this process in one where tally-rt begins at @base. */
static uint64_t there(const void *variable, uint64_t base)
{
	return (uint64_t)variable - (uint64_t)__ehdr_start + base;
}

static bool read_memory(int pid, void *to, const void *variable, uint64_t base, size_t size)
{
	const struct vector local = {to, size},
			    remote = {(const void *)there(variable, base), size};

	return sys(__NR_process_vm_readv, pid, &local, 1, &remote, 1, 0) == (int64_t)size;
}

/*
 * Whether it is a map, and of a process that has tally-rt at @base. In the middle of a change, at
 * which its thread may stay for long, some range is there twice, or has one end of the next: it can
 * be searched all the same.
 */
static bool is_sound(const struct maps_layout *layout, uint64_t base)
{
	const struct range *ranges = layout->ranges;
	bool has_base = false;

	for (size_t i = 0; i < layout->nr; i++) {
		if (i &&
		    (ranges[i].start < ranges[i - 1].start || ranges[i].end < ranges[i - 1].end))
			return false;
		has_base |= ranges[i].kind == RANGE_OWN && ranges[i].start <= base &&
			    base < ranges[i].end;
	}
	return has_base;
}

static bool read_changes(int pid, uint64_t base, uint64_t *changes)
{
	return read_memory(pid, changes, map_place().changes, base, sizeof(*changes));
}

/* From where tally-rt would begin at @base, if it did. */
static bool read_from(int pid, uint64_t base, struct maps_known *known)
{
	enum { TRIES = 8 };
	const struct map_place place = map_place();
	struct brk_heap heap;
	size_t nr;

	known->pid = pid;
	known->base = base;
	for (unsigned int tries = 0; tries < TRIES; tries++) {
		if (!read_changes(pid, base, &known->changes) ||
		    !read_memory(pid, &nr, place.nr, base, sizeof(nr)) || nr > MAP_RANGES_MAX ||
		    !make_room(known, nr))
			return false;
		known->layout.nr = nr;
		if (read_memory(pid, (void *)known->layout.ranges, place.ranges, base,
				nr * sizeof(struct range)) &&
		    read_memory(pid, &heap, brk_heap(), base, sizeof(heap)) &&
		    is_sound(&known->layout, base)) {
			set_heap(&known->layout, &heap);
			return true;
		}
		maps_known_free(known);
	}
	return false;
}

static bool is_same(const struct maps_file *a, const struct maps_file *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor &&
	       a->offset == b->offset;
}

static bool runs(int pid)
{
	char path[32];

	format(path, sizeof(path), "/proc/%d/exe", (int64_t)pid);
	return files_lead_to_runtime(-1, path);
}

static bool read_of(int pid, struct maps_known *known)
{
	struct maps_reader reader;
	struct maps_entry entry;
	struct maps_file runtime, file;
	bool found = false;

	if (!runs(pid) || !maps_find_file((uint64_t)__ehdr_start, &entry, &runtime) ||
	    !maps_open_of(&reader, pid))
		return false;
	while (!found && maps_next(&reader, &entry, &file))
		found = is_same(&file, &runtime) && read_from(pid, entry.start, known);
	maps_close(&reader);
	return found;
}

bool maps_is_own(int pid)
{
	char path[48];

	if (pid == sys(__NR_getpid))
		return true;
	format(path, sizeof(path), "/proc/self/task/%d", (int64_t)pid);
	return !sys(__NR_faccessat, AT_FDCWD, path, 0);
}

bool maps_known_of(int pid, struct maps_known *known)
{
	if (confined())
		return false;
	return maps_is_own(pid) ? read_own(known) : read_of(pid, known);
}

bool maps_known_still(const struct maps_known *known)
{
	uint64_t changes;

	if (known->pid)
		return read_changes(known->pid, known->base, &changes) && changes == known->changes;
	translate_lock();
	changes = *map_place().changes;
	translate_unlock();
	return changes == known->changes;
}
