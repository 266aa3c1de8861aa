// SPDX-License-Identifier: MIT
#include "runtime/linux/semaphores.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "core/core.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/fork_locks.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/lock.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

enum { SEMAPHORES = 1024 }; /* in a process, as long as it executes the same image */

struct semaphore {
	struct core_probe place;
	uint64_t at; /* where it is one higher; 0: nowhere */
};

static _Alignas(PAGE) struct semaphore semaphores[SEMAPHORES];
static uint32_t nr_semaphores;
struct lock semaphores_lock = {.kind = LOCK_SEMAPHORES};

static bool any(void)
{
	return __atomic_load_n(&nr_semaphores, __ATOMIC_ACQUIRE);
}

/* ---- which ---- */

static void know(const struct core_probe *place)
{
	for (uint32_t i = 0; i < nr_semaphores; i++)
		if (core_is_same_probe(&semaphores[i].place, place))
			return;
	if (nr_semaphores == SEMAPHORES)
		return;
	semaphores[nr_semaphores].place = *place;
	__atomic_store_n(&nr_semaphores, nr_semaphores + 1, __ATOMIC_RELEASE);
}

static void know_all(struct thread *thread)
{
	enum { AT_ONCE = 64 };
	struct core_probe some[AT_ONCE];

	for (size_t from = 0, n;; from += AT_ONCE) {
		n = core_probe_counters(&thread->events, some, from, AT_ONCE);
		for (size_t i = 0; from + i < n && i < AT_ONCE; i++)
			know(&some[i]);
		if (n <= from + AT_ONCE)
			return;
	}
}

/* ---- where ---- */

static bool is_of(const struct maps_file *mapped, const struct core_file *file)
{
	struct stat is = {0};

	if (mapped->inode != file->inode)
		return false;
	if (!sys(__NR_newfstatat, AT_FDCWD, mapped->path, &is, 0) && is.st_ino == file->inode)
		return is.st_dev == file->device;
	return maps_device(mapped) == file->device; /* it has no path any more */
}

/* As the kernel: the first mapping that is private and can be written. */
static uint64_t find(const struct core_probe *place)
{
	struct maps_reader reader;
	struct maps_entry entry;
	struct maps_file file;
	uint64_t at = 0;

	if (!maps_open(&reader))
		return 0;
	while (!at && maps_next(&reader, &entry, &file)) {
		const uint64_t size = entry.end - entry.start;

		if (entry.prot & PROT_WRITE && !file.shared && place->offset >= file.offset &&
		    place->offset - file.offset < size && is_of(&file, &place->file))
			at = entry.start + (place->offset - file.offset);
	}
	maps_close(&reader);
	return at;
}

static bool add(uint64_t at, int much)
{
	int16_t value;

	/* As the kernel, which leaves alone what would be negative: the program has written to
	 * it. */
	if (copy_in(&value, at, sizeof(value)) || value + much < 0)
		return false;
	value = (int16_t)(value + much);
	return !copy_out(at, &value, sizeof(value));
}

/* With the lock. */
static void bring_up_to_date(const struct thread *thread)
{
	for (uint32_t i = 0; i < nr_semaphores; i++) {
		struct semaphore *s = &semaphores[i];
		const bool wanted = core_probe_counted(thread->events.process, &s->place);
		uint64_t at;

		if (wanted && !s->at) {
			at = find(&s->place);
			if (at && add(at, 1))
				s->at = at;
		} else if (!wanted && s->at) {
			add(s->at, -1);
			s->at = 0;
		}
	}
}

void semaphores_follow(struct thread *thread)
{
	if (!any() && !(thread->events.extras & CORE_EXTRA_STOPS))
		return;
	lock_take(&semaphores_lock);
	know_all(thread);
	bring_up_to_date(thread);
	lock_give(&semaphores_lock);
}

void semaphores_mapped(struct thread *thread, uint64_t start, uint64_t end)
{
	if (!any())
		return;
	semaphores_unmapped(start, end);
	lock_take(&semaphores_lock);
	bring_up_to_date(thread);
	lock_give(&semaphores_lock);
}

void semaphores_unmapped(uint64_t start, uint64_t end)
{
	if (!any())
		return;
	lock_take(&semaphores_lock);
	for (uint32_t i = 0; i < nr_semaphores; i++)
		if (semaphores[i].at >= start && semaphores[i].at < end)
			semaphores[i].at = 0;
	lock_give(&semaphores_lock);
}
