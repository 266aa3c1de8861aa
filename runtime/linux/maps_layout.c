// SPDX-License-Identifier: MIT
/*
 * Another process is asked by reading its memory, as the kernel lets those do who may trace it: it has the same
 * variables as this one, as far from the beginning of its tally-rt, which is what its maps tell. It goes on
 * meanwhile, so that what is read may have been changing, and is read again.
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
static bool make_room(struct maps_layout *layout, size_t nr)
{
	enum { MORE = 16 };

	layout->nr = 0;
	layout->room = PAGE_UP((nr + MORE) * sizeof(struct range)) / sizeof(struct range);
	layout->ranges = memory_allocate(layout->room * sizeof(struct range), 0);
	return layout->ranges;
}

void maps_layout_free(struct maps_layout *layout)
{
	memory_free((void *)layout->ranges, layout->room * sizeof(struct range));
}

static void set_heap(struct maps_layout *layout, const struct brk_heap *heap)
{
	layout->heap_start = heap->start;
	layout->heap_end = PAGE_UP(heap->end);
}

static bool read_own(struct maps_layout *layout)
{
	const struct map_place place = map_place();

	if (!make_room(layout, __atomic_load_n(place.nr, __ATOMIC_RELAXED)))
		return false;
	translate_lock();
	layout->nr = *place.nr < layout->room ? *place.nr : layout->room;
	memcpy((void *)layout->ranges, place.ranges, layout->nr * sizeof(struct range));
	translate_unlock();
	set_heap(layout, brk_heap());
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

/* Whether it is a map, and of a process that has tally-rt at @base. */
static bool is_sound(const struct maps_layout *layout, uint64_t base)
{
	const struct range *ranges = layout->ranges;
	bool has_base = false;

	for (size_t i = 0; i < layout->nr; i++) {
		if (ranges[i].start >= ranges[i].end || (i && ranges[i].start < ranges[i - 1].end))
			return false;
		has_base |= ranges[i].kind == RANGE_OWN && ranges[i].start <= base &&
			    base < ranges[i].end;
	}
	return has_base;
}

static bool read_layout(int pid, uint64_t base, struct maps_layout *layout)
{
	enum { TRIES = 8 };
	const struct map_place place = map_place();
	struct brk_heap heap;
	size_t nr;

	for (unsigned int tries = 0; tries < TRIES; tries++) {
		if (!read_memory(pid, &nr, place.nr, base, sizeof(nr)) || nr > MAP_RANGES_MAX ||
		    !make_room(layout, nr))
			return false;
		layout->nr = nr;
		if (read_memory(pid, (void *)layout->ranges, place.ranges, base,
				nr * sizeof(struct range)) &&
		    read_memory(pid, &heap, brk_heap(), base, sizeof(heap)) &&
		    is_sound(layout, base)) {
			set_heap(layout, &heap);
			return true;
		}
		maps_layout_free(layout);
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

static bool read_of(int pid, struct maps_layout *layout)
{
	struct maps_reader reader;
	struct maps_entry entry;
	struct maps_file runtime, file;
	bool found = false;

	if (!runs(pid) || !maps_find_file((uint64_t)__ehdr_start, &entry, &runtime) ||
	    !maps_open_of(&reader, pid))
		return false;
	while (!found && maps_next(&reader, &entry, &file))
		found = is_same(&file, &runtime) && read_layout(pid, entry.start, layout);
	maps_close(&reader);
	return found;
}

bool maps_layout_is_own(int pid)
{
	char path[48];

	if (pid == sys(__NR_getpid))
		return true;
	format(path, sizeof(path), "/proc/self/task/%d", (int64_t)pid);
	return !sys(__NR_faccessat, AT_FDCWD, path, 0);
}

bool maps_layout_of(int pid, struct maps_layout *layout)
{
	if (confined())
		return false;
	return maps_layout_is_own(pid) ? read_own(layout) : read_of(pid, layout);
}
