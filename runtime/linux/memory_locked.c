// SPDX-License-Identifier: MIT
#include "runtime/linux/memory_locked.h"

#include <asm/mman.h>
#include <linux/mman.h>
#include <stdbool.h>

#include "runtime/linux/memory.h"
#include "runtime/linux/memory_map.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/linux/syscalls.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

/* What the program gets from now on is to be there, too: MCL_FUTURE. */
static bool all_future;

/* As mlockall(2) does, whatever cannot be had of it is passed over. */
static void lock(uint64_t start, uint64_t end)
{
	sys(__NR_mlock2, start, end - start, 0);
}

static bool next_piece(uint64_t *at, uint64_t end, uint64_t *to)
{
	bool any;

	translate_lock();
	any = map_next_piece(at, end, to);
	translate_unlock();
	return any;
}

static void lock_all_programs(struct maps_reader *reader)
{
	struct maps_entry entry;

	while (maps_next(reader, &entry, NULL))
		for (uint64_t at = entry.start, to; next_piece(&at, entry.end, &to); at = to)
			lock(at, to);
}

int64_t sys_mlockall(struct thread *thread, struct syscall *call)
{
	const uint64_t flags = call->args[0];
	struct maps_reader reader;
	int64_t result;

	if (flags & MCL_ONFAULT || !maps_open(&reader)) {
		result = syscall_pass(thread, call);
		if (!result)
			all_future = false;
		return result;
	}
	call->args[0] |= MCL_ONFAULT;
	result = syscall_pass(thread, call);
	call->args[0] = flags;
	if (!result) {
		all_future = flags & MCL_FUTURE;
		if (flags & MCL_CURRENT)
			lock_all_programs(&reader);
	}
	maps_close(&reader);
	return result;
}

int64_t sys_munlockall(struct thread *thread, struct syscall *call)
{
	const int64_t result = syscall_pass(thread, call);

	if (!result)
		all_future = false;
	return result;
}

void memory_locked_more(uint64_t start, uint64_t end)
{
	if (all_future)
		lock(start, end);
}

void memory_locked_forked(void)
{
	all_future = false;
}
