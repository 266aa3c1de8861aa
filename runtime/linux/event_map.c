// SPDX-License-Identifier: MIT
/*
 * Mappings of events. What the program maps is a piece of the arena's file, which the core has made
 * the ring of the event; here is kept where, since the core is to be told when it goes, and since
 * such a mapping can neither be split nor grow.
 */
#include <asm/errno.h>
#include <asm/mman.h>
#include <linux/mman.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/views.h"
#include "runtime/linux/control.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/event_attr.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_mappings.h"
#include "runtime/linux/faults.h"
#include "runtime/linux/fork_locks.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/linux/task.h"
#include "runtime/lock.h"
#include "runtime/sys.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

/* More rings than a program has processors times sets of events. */
enum { MAPS = 4096 };

struct map {
	uint64_t start, end; /* end 0: unused */
	uint64_t offset;     /* as the program gave it */
	uint64_t event;	     /* its name */
};

static struct map *maps;
static unsigned int nr_maps; /* all beyond are unused */
struct lock event_map_lock = {.kind = LOCK_EVENT_MAP};
static uint32_t owner; /* core/views.h: this memory; 0: has none */
static int told; /* of the processes in this memory, which the monitor knows of; the last one */

/*
 * Held while a mapping of an event comes, goes or moves, until what is kept here says so, too:
 * another thread may get the place of one that has just gone for the next. Taken before all other
 * locks.
 */
struct lock event_map_changing = {.kind = LOCK_EVENT_MAP_CHANGING};

static struct map *unused(void)
{
	if (!maps)
		maps = memory_allocate(MAPS * sizeof(*maps), 0);
	if (!maps)
		return NULL;
	for (unsigned int i = 0; i < nr_maps; i++)
		if (!maps[i].end)
			return &maps[i];
	return nr_maps < MAPS ? &maps[nr_maps++] : NULL;
}

static bool note(uint64_t start, uint64_t size, uint64_t offset, uint64_t event)
{
	struct map *map;

	lock_take(&event_map_lock);
	map = unused();
	if (map)
		*map = (struct map){
			.start = start,
			.end = start + size,
			.offset = offset,
			.event = event,
		};
	lock_give(&event_map_lock);
	return map;
}

static bool overlaps(const struct map *map, uint64_t start, uint64_t end)
{
	return map->end && start < end && map->start < end && start < map->end;
}

/* What lies in a range. */
enum found {
	NONE,
	WHOLE, /* nothing but whole mappings of events, */
	PART,  /* or some only in part: the kernel does not let them be cut */
};

static enum found look(uint64_t start, uint64_t end)
{
	enum found found = NONE;

	lock_take(&event_map_lock);
	for (unsigned int i = 0; i < nr_maps; i++) {
		if (!overlaps(&maps[i], start, end))
			continue;
		if (maps[i].start < start || end < maps[i].end)
			found = PART;
		else if (found == NONE)
			found = WHOLE;
	}
	lock_give(&event_map_lock);
	return found;
}

static void gone(uint64_t start, uint64_t end)
{
	for (unsigned int i = 0; i < nr_maps; i++) {
		struct map map = {0};

		lock_take(&event_map_lock);
		if (overlaps(&maps[i], start, end)) {
			map = maps[i];
			maps[i] = (struct map){0};
		}
		lock_give(&event_map_lock);
		if (map.end)
			core_view_end(owner, map.event, map.offset);
	}
}

static void moved(uint64_t start, uint64_t end, uint64_t to)
{
	lock_take(&event_map_lock);
	for (unsigned int i = 0; i < nr_maps; i++)
		if (maps[i].end && start <= maps[i].start && maps[i].start < end) {
			maps[i].start += to - start;
			maps[i].end += to - start;
		}
	lock_give(&event_map_lock);
}

void event_maps_forked(void)
{
	owner = 0;
	told = 0;
	for (unsigned int i = 0; i < nr_maps; i++)
		maps[i] = (struct map){0};
}

uint32_t event_maps_owner(void)
{
	return owner;
}

/* With the first mapping of each process in this memory, or before: whoever ends it, the monitor
 * sees it. */
static void need_owner(void)
{
	const int self = task_self()->pid;

	lock_take(&event_map_lock);
	if (!owner)
		owner = core_views_owner();
	if (told != self)
		control_send(&(struct control_message){.what = CONTROL_MAPPED, .owner = owner}, -1);
	told = self;
	lock_give(&event_map_lock);
}

void event_maps_beside(void)
{
	need_owner();
}

static int64_t unmap(struct thread *thread, uint64_t start, uint64_t size)
{
	struct syscall call = {__NR_munmap, {start, size}};
	int64_t result = sys_munmap(thread, &call);

	if (!result)
		gone(start, PAGE_UP(start + size));
	return result;
}

/* What is wrong with a mapping of an event whatever the event, and wherever it is to be. */
static int64_t check_mmap(const struct syscall *call)
{
	const uint64_t size = PAGE_UP(call->args[1]), type = call->args[3] & MAP_TYPE;

	if (call->args[1] && !size)
		return -ENOMEM;
	if (call->args[5] % PAGE || !size || type < MAP_SHARED || type > MAP_SHARED_VALIDATE)
		return -EINVAL;
	if (size > ADDRESS_MAX)
		return -ENOMEM;
	if (call->args[5] >= -size)
		return -EOVERFLOW;
	if (call->args[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE) && call->args[0] > ADDRESS_MAX - size)
		return -ENOMEM;
	if (call->args[2] & PROT_EXEC)
		return -EPERM; /* what has no file system may not be executed */
	return 0;
}

/* The place stays taken, by nothing: so that what the program maps there is like anything else, and
 * no other thread's mapping gets there first. */
static int64_t vacate(struct thread *thread, uint64_t start, uint64_t size)
{
	struct syscall call = {
		__NR_mmap,
		{start, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, UINT64_MAX, 0}};
	int64_t result = memory_map_call(thread, &call);

	if (sys_failed(result))
		return result;
	gone(start, PAGE_UP(start + size));
	return 0;
}

/* What the kernel refuses at once leaves what was there. Without a place of its own the same call
 * tells; of our events, which are pipes, it would not. */
static int64_t refused_elsewhere(const struct syscall *call)
{
	const uint64_t *args = call->args, size = PAGE_UP(args[1]);
	const uint64_t placed = MAP_FIXED | MAP_POPULATE | MAP_LOCKED;
	int64_t result;

	if (!(args[3] & MAP_ANONYMOUS) && event_of_fd(args[4]))
		return check_mmap(call);
	result = sys(__NR_mmap, 0, size, args[2], args[3] & ~placed, args[4], args[5]);
	if (!sys_failed(result))
		sys(__NR_munmap, result, size);
	/* For both there may be no room where one has it. */
	return !sys_failed(result) || result == -ENOMEM || result == -EAGAIN ? 0 : result;
}

int64_t event_map_release(struct thread *thread, const struct syscall *call, int64_t result)
{
	struct syscall release = {__NR_munmap, {call->args[0], PAGE_UP(call->args[1])}};

	if (sys_failed(result))
		sys_munmap(thread, &release);
	return result;
}

/*
 * Three ranges matter, and a mapping of an event may be in part in none of those that the kernel
 * would cut there:
 *
 *     start        + new_size   + old_size            to           + new_size
 *       |  stays, or is  |  is unmapped  |             |  is replaced  |
 *       |  moved as one  |               |             |
 */
static int64_t remap(struct thread *thread, struct syscall *call)
{
	const uint64_t start = call->args[0], flags = call->args[3], to = call->args[4];
	const uint64_t old_size = PAGE_UP(call->args[1]), new_size = PAGE_UP(call->args[2]);
	const uint64_t end = start + old_size, new_end = start + new_size;
	const bool fixed = flags & MREMAP_FIXED;
	const enum found from = look(start, old_size ? end : start + PAGE);
	const enum found replaced = fixed ? look(to, to + new_size) : NONE;
	int64_t result;

	if (start % PAGE || (from == NONE && replaced == NONE))
		return EVENT_CALL_OTHER;
	if (replaced == PART)
		return -EINVAL;
	if (from != NONE) {
		if (!old_size || new_size > old_size)
			return -EFAULT;
		if (flags & MREMAP_DONTUNMAP || look(new_end, end) == PART ||
		    (fixed && look(start, new_end) == PART))
			return -EINVAL;
	}
	result = sys_mremap(thread, call);
	if (sys_failed(result))
		return result;
	if (fixed)
		gone(to, to + new_size);
	if (from != NONE) {
		gone(new_end, end);
		moved(start, new_end, (uint64_t)result);
	}
	return result;
}

/* As the kernel answers for its own: it would take pages away, or give them to others. To the
 * arena's file they would be done. */
static int64_t advise(uint64_t advice)
{
	switch ((int)advice) {
	case MADV_REMOVE:
		return -ENODEV;
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_DOFORK:
	case MADV_DODUMP:
	case MADV_COLD:
	case MADV_PAGEOUT:
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
	case MADV_GUARD_INSTALL:
	case MADV_GUARD_REMOVE:
		return -EINVAL;
	default:
		return EVENT_CALL_OTHER;
	}
}

/* There is no file that it could be written to. */
static int64_t synchronize(uint64_t flags)
{
	return flags & MS_SYNC ? -EINVAL : EVENT_CALL_OTHER;
}

/* What of events lies where @call changes something; for mremap(2) also where that goes. */
static enum found concerned(const struct syscall *call)
{
	const uint64_t start = call->args[0], to = call->args[4];
	const bool remaps = (uint32_t)call->number == __NR_mremap;
	/* An old size of 0 stands for a copy. */
	const uint64_t size = remaps && !call->args[1] ? PAGE : call->args[1];
	enum found found = look(start, PAGE_UP(start + size));

	if (remaps && call->args[3] & MREMAP_FIXED) {
		enum found there = look(to, PAGE_UP(to + call->args[2]));

		found = there > found ? there : found;
	}
	return found;
}

static bool protects(const struct syscall *call)
{
	return (uint32_t)call->number == __NR_mprotect ||
	       (uint32_t)call->number == __NR_pkey_mprotect;
}

/* What is protected so already the kernel leaves alone, also where it would have to cut. */
static bool is_protected_so(const struct syscall *call)
{
	const uint64_t prot = call->args[2] & (PROT_READ | PROT_WRITE | PROT_EXEC);
	const uint64_t end = PAGE_UP(call->args[0] + call->args[1]);
	struct maps_entry entry;

	if ((uint32_t)call->number != __NR_mprotect)
		return false;
	for (uint64_t at = call->args[0]; at < end; at = entry.end)
		if (!maps_find(at, &entry) || entry.prot != prot)
			return false;
	return true;
}

/* With the lock. */
static int64_t change(struct thread *thread, struct syscall *call)
{
	const uint64_t start = call->args[0];
	enum found found;
	int64_t result;

	if ((uint32_t)call->number == __NR_mremap)
		return remap(thread, call);
	found = look(start, PAGE_UP(start + call->args[1]));
	if (found == NONE)
		return EVENT_CALL_OTHER;
	if (protects(call) && call->args[2] & PROT_EXEC)
		return -EACCES;
	if ((uint32_t)call->number == __NR_mmap) {
		result = refused_elsewhere(call);
		if (result)
			return result;
	}
	if (found == PART && protects(call) && is_protected_so(call))
		return EVENT_CALL_OTHER;
	/* What is behind it in the arena is others'. */
	if (found == PART || (uint32_t)call->number == __NR_remap_file_pages)
		return -EINVAL;
	switch ((uint32_t)call->number) {
	case __NR_munmap:
		return unmap(thread, call->args[0], call->args[1]);
	case __NR_mmap:
		result = vacate(thread, call->args[0], call->args[1]);
		return result ? result : EVENT_MAP_VACATED;
	default:
		return EVENT_CALL_OTHER;
	}
}

int64_t event_map_call(struct thread *thread, struct syscall *call)
{
	int64_t result;

	if (!__atomic_load_n(&nr_maps, __ATOMIC_RELAXED))
		return EVENT_CALL_OTHER;
	switch ((uint32_t)call->number) {
	case __NR_munmap:
	case __NR_mprotect:
	case __NR_pkey_mprotect:
	case __NR_mremap:
	case __NR_madvise:
	case __NR_msync:
	case __NR_remap_file_pages:
		break;
	case __NR_mmap:
		if (!(call->args[3] & MAP_FIXED) || call->args[3] & MAP_FIXED_NOREPLACE)
			return EVENT_CALL_OTHER;
		break;
	default:
		return EVENT_CALL_OTHER;
	}
	if (concerned(call) == NONE)
		return EVENT_CALL_OTHER;
	if ((uint32_t)call->number == __NR_madvise)
		return advise(call->args[2]);
	if ((uint32_t)call->number == __NR_msync)
		return synchronize(call->args[2]);
	lock_take(&event_map_changing);
	result = change(thread, call);
	lock_give(&event_map_changing);
	return result;
}

/* The program's mapping, of the arena instead of the pipe. */
static int64_t map_ring(struct thread *thread, const struct syscall *call, uint64_t offset)
{
	struct syscall changed = *call;
	uint64_t before;
	int64_t result;

	/* Who touches a ring of the kernel's has no fault, nor has who maps it. */
	changed.args[3] |= MAP_POPULATE;
	changed.args[4] = (uint64_t)descriptors.arena;
	changed.args[5] = offset;
	before = faults_before_populating();
	result = memory_map_call(thread, &changed);
	faults_populated(before);
	if (sys_failed(result))
		return result;
	event_mapped_ring(thread, (uint64_t)result, call->args[1]);
	/* As the kernel has them. */
	sys(__NR_madvise, result, call->args[1], MADV_DONTFORK);
	sys(__NR_madvise, result, call->args[1], MADV_DONTDUMP);
	return result;
}

int64_t event_mmap(struct thread *thread, struct syscall *call, uint64_t event)
{
	const uint64_t size = PAGE_UP(call->args[1]), prot = call->args[2];
	const uint64_t flags = call->args[3], offset = call->args[5];
	struct core_rights rights;
	int64_t at, result;

	if (flags & MAP_ANONYMOUS)
		return EVENT_CALL_OTHER;
	result = check_mmap(call);
	if (result)
		return result;
	if ((flags & MAP_TYPE) == MAP_PRIVATE)
		return -EINVAL;
	event_rights(&rights);
	need_owner();
	lock_take(&event_map_changing);
	at = core_view_begin(owner, event, offset, size, prot & PROT_WRITE, &rights);
	result = at < 0 ? at : map_ring(thread, call, (uint64_t)at);
	if (at >= 0 && !sys_failed(result) && !note((uint64_t)result, size, offset, event)) {
		sys(__NR_munmap, result, size);
		result = -ENOMEM;
	}
	if (at >= 0 && sys_failed(result))
		core_view_end(owner, event, offset);
	lock_give(&event_map_changing);
	return result;
}
