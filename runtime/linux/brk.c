// SPDX-License-Identifier: MIT
#include "runtime/linux/brk.h"

#include <asm/mman.h>
#include <linux/mman.h>
#include <stdbool.h>

#include "runtime/linux/event_mappings.h"
#include "runtime/linux/limits.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/memory_locked.h"
#include "runtime/linux/syscalls.h"
#include "runtime/lock.h"

static struct lock lock = {.kind = LOCK_BRK};
static struct brk_heap heap;

void brk_boot(uint64_t at)
{
	heap.start = heap.end = at;
}

uint64_t brk_end(void)
{
	return heap.end;
}

const struct brk_heap *brk_heap(void)
{
	return &heap;
}

void brk_lock(void)
{
	lock_take(&lock);
}

void brk_unlock(void)
{
	lock_give(&lock);
}

static bool grow(uint64_t from, uint64_t to)
{
	int64_t result = sys(__NR_mmap, from, to - from, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	/* Kernels before 4.17 take the address for a hint. */
	if (!sys_failed(result) && (uint64_t)result != from) {
		sys(__NR_munmap, result, to - from);
		return false;
	}
	return !sys_failed(result);
}

/* Whether it has grown by pages. */
static bool set(uint64_t wanted)
{
	uint64_t old_page = PAGE_UP(heap.end), page = PAGE_UP(wanted);

	if (wanted < heap.start || wanted - heap.start > limits_data())
		return false;
	if (page > old_page && !grow(old_page, page))
		return false;
	if (page < old_page && sys(__NR_munmap, page, old_page - page))
		return false;
	heap.end = wanted;
	return page > old_page;
}

int64_t sys_brk(struct thread *thread, struct syscall *call)
{
	uint64_t before, result;
	bool empty, grown;

	brk_lock();
	before = PAGE_UP(heap.end);
	empty = before == heap.start;
	grown = set(call->args[0]);
	result = heap.end;
	brk_unlock();
	if (grown) {
		event_mapped_heap(thread, heap.start, PAGE_UP(result) - heap.start, empty);
		memory_locked_more(before, PAGE_UP(result));
	}
	return (int64_t)result;
}
