// SPDX-License-Identifier: MIT
/*
 * The program's calls that change its memory map. Where they touch what the map knows, they are
 * made with the translator locked.
 */
#include <asm/errno.h>
#include <asm/mman.h>
#include <linux/mman.h>

#include "runtime/linux/code_files.h"
#include "runtime/linux/code_store.h"
#include "runtime/linux/event_mappings.h"
#include "runtime/linux/maps_files.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/memory_locked.h"
#include "runtime/linux/memory_map.h"
#include "runtime/linux/semaphores.h"
#include "runtime/linux/syscalls.h"
#include "runtime/linux/unwind.h"
#include "runtime/linux/uprobes.h"
#include "runtime/linux/window.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

/* The pages that a call with @start and @size is about; false when no page is. */
static bool pages(uint64_t start, uint64_t size, uint64_t *end)
{
	*end = PAGE_UP(start + size);
	return size && !(start % PAGE) && *end > start;
}

/* Whether [@start, @end) has anything that the map knows; and anything of the runtime. */
static bool known(uint64_t start, uint64_t end, bool *own)
{
	bool any;

	translate_lock();
	any = map_has(start, end);
	*own = any && map_has_own(start, end);
	translate_unlock();
	return any;
}

/* There is no code of the program's any more. */
static void unmapped(uint64_t start, uint64_t end)
{
	translate_invalidate(start, end);
	unwind_forget();
}

static bool shared_file(uint64_t flags)
{
	return (flags & MAP_TYPE) != MAP_PRIVATE && !(flags & MAP_ANONYMOUS);
}

/* Code that nobody can have changed. */
static bool is_what_file_has(uint64_t prot, uint64_t flags)
{
	return prot & PROT_EXEC && !(prot & PROT_WRITE) && !(flags & MAP_ANONYMOUS) &&
	       (flags & MAP_TYPE) == MAP_PRIVATE;
}

/* Code, or a file that may be a library: loaders map it as a whole first, often only to be read. */
static bool belongs_in_window(uint64_t prot, uint64_t flags)
{
	return prot & PROT_EXEC ||
	       !(flags & MAP_ANONYMOUS || shared_file(flags) || prot & PROT_WRITE);
}

/* What is mapped, so that aliases of code are found, and probes. */
static void identify(struct range *range, const struct syscall *call)
{
	const uint64_t prot = call->args[2], flags = call->args[3];

	if (shared_file(flags))
		range->kind = RANGE_SHARED;
	if (!(flags & MAP_ANONYMOUS))
		memory_identify(range, (int)call->args[4], call->args[5]);
	if (is_what_file_has(prot, flags))
		range->file = code_file_number((int)call->args[4]);
}

static int64_t map_code(struct syscall *call)
{
	uint64_t prot = call->args[2], flags = call->args[3];
	struct range range = {.prot = (uint8_t)(prot & (PROT_READ | PROT_WRITE | PROT_EXEC))};
	bool code;
	int64_t result;

	translate_lock();
	result = map_has_room() ? sys(__NR_mmap, call->args[0], call->args[1],
				      memory_readable(prot), flags, call->args[4], call->args[5])
				: -ENOMEM;
	if (sys_failed(result)) {
		translate_unlock();
		return result;
	}
	range.start = (uint64_t)result;
	range.end = PAGE_UP(range.start + call->args[1]);
	code = map_remove(range.start, range.end);
	identify(&range, call);
	if (shared_file(flags) || prot & PROT_EXEC)
		map_add(&range);
	if (code)
		unmapped(range.start, range.end);
	if (prot & PROT_EXEC) {
		unwind_more();
		code_store_mapped(range.start, range.end);
		uprobes_mapped(range.start, range.end);
	}
	memory_distrust_aliases(range.start, range.end);
	translate_unlock();
	return result;
}

int64_t memory_map_call(struct thread *thread, struct syscall *call)
{
	uint64_t start = call->args[0], size = call->args[1], prot = call->args[2];
	uint64_t flags = call->args[3], end;
	bool replaces = flags & MAP_FIXED && !(flags & MAP_FIXED_NOREPLACE);
	bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	bool some = false, own = false;

	if (fixed && pages(start, size, &end))
		some = known(start, end, &own);
	if (own)
		return replaces ? -ENOMEM : -EEXIST;
	if (!start && !fixed && !(flags & MAP_32BIT) && belongs_in_window(prot, flags))
		call->args[0] = window_hint(size);
	if (some || prot & PROT_EXEC || shared_file(flags))
		return map_code(call);
	return syscall_pass(thread, call);
}

int64_t sys_mmap(struct thread *thread, struct syscall *call)
{
	int64_t result = memory_map_call(thread, call);

	if (!sys_failed(result)) {
		semaphores_mapped(thread, (uint64_t)result, (uint64_t)result + call->args[1]);
		event_mapped(thread, (uint64_t)result, call->args[1]);
		memory_locked_more((uint64_t)result, PAGE_UP((uint64_t)result + call->args[1]));
	}
	return result;
}

/* With the translator locked. */
static int64_t unmap(uint64_t start, uint64_t end)
{
	int64_t result = map_has_room() ? 0 : -ENOMEM;

	for (uint64_t at = start, to; !result && map_next_piece(&at, end, &to); at = to) {
		result = sys(__NR_munmap, at, to - at);
		if (!result && map_remove(at, to))
			unmapped(at, to);
	}
	return result;
}

int64_t sys_munmap(struct thread *thread, struct syscall *call)
{
	uint64_t start = call->args[0], end;
	bool own;
	int64_t result;

	if (!pages(start, call->args[1], &end))
		return syscall_pass(thread, call);
	window_freed(start, end);
	semaphores_unmapped(start, end);
	if (!known(start, end, &own))
		return syscall_pass(thread, call);
	translate_lock();
	result = unmap(start, end);
	translate_unlock();
	return result;
}

static int64_t protect(struct thread *thread, struct syscall *call);

/* As the kernel: what comes before the hole is protected. */
static int64_t protect_before_own(struct thread *thread, struct syscall *call, uint64_t end)
{
	uint64_t start = call->args[0], at = start, to;
	int64_t result = 0;
	bool before;

	translate_lock();
	before = map_next_piece(&at, end, &to) && at == start;
	translate_unlock();
	call->args[1] = to - start;
	if (before)
		result = protect(thread, call);
	return result ? result : -ENOMEM;
}

/* mprotect and pkey_mprotect */
static int64_t protect(struct thread *thread, struct syscall *call)
{
	uint64_t start = call->args[0], prot = call->args[2], end;
	bool own = false, code = false, some;
	int64_t result;

	if (!pages(start, call->args[1], &end))
		return syscall_pass(thread, call);
	some = known(start, end, &own);
	if (own)
		return protect_before_own(thread, call, end);
	if (!some && !(prot & PROT_EXEC))
		return syscall_pass(thread, call);
	/* Of a stack, all below @start too: memory_code() finds it when it is executed. */
	if (!some && prot & PROT_GROWSDOWN)
		return syscall_pass(thread, call);
	translate_lock();
	result = map_has_room() ? sys(call->number, start, call->args[1], memory_readable(prot),
				      call->args[3])
				: -ENOMEM;
	if (!result)
		code = map_protect(start, end, prot & (PROT_READ | PROT_WRITE | PROT_EXEC));
	if (code)
		translate_invalidate(start, end);
	if (prot & PROT_EXEC) {
		unwind_more();
		code_store_mapped(start, end);
		uprobes_became_code(start, end);
	}
	memory_distrust_aliases(start, end);
	translate_unlock();
	return result;
}

int64_t sys_mprotect(struct thread *thread, struct syscall *call)
{
	struct event_pieces pieces;
	int64_t result;

	event_protecting(thread, call, &pieces);
	result = protect(thread, call);
	if (!result)
		event_protected(thread, &pieces);
	return result;
}

/* Moves the map's range along with the kernel's; both are one mapping, of one protection. */
static void move(uint64_t start, uint64_t end, uint64_t to, uint64_t to_end, bool stays)
{
	const struct range *range = map_at(start);
	struct range moved = {0};

	if (to == start && to_end <= end) {
		map_remove(to_end, end);
		return;
	}
	if (range) {
		moved = *range;
		moved.offset += start - range->start;
	}
	moved.start = to;
	moved.end = to_end;
	if (!stays)
		map_remove(start, end);
	map_remove(to, to_end);
	if (range)
		map_add(&moved);
	code_store_mapped(to, to_end);
	uprobes_mapped(to, to_end);
}

static int64_t remap(struct thread *thread, struct syscall *call)
{
	uint64_t start = call->args[0], new_size = call->args[2], flags = call->args[3];
	uint64_t end, to = call->args[4], to_end = to;
	bool own = false, own_to = false, some, some_to = false;
	int64_t result;

	if (!pages(start, call->args[1], &end))
		return syscall_pass(thread, call);
	some = known(start, end, &own);
	if (flags & MREMAP_FIXED && pages(to, new_size, &to_end))
		some_to = known(to, to_end, &own_to);
	if (own)
		return -EFAULT;
	if (own_to)
		return -ENOMEM;
	if (!some && !some_to)
		return syscall_pass(thread, call);
	memory_unwatch(start, end - start);
	translate_lock();
	result = map_has_room() ? sys(__NR_mremap, start, call->args[1], new_size, flags, to)
				: -ENOMEM;
	if (!sys_failed(result)) {
		move(start, end, (uint64_t)result, PAGE_UP((uint64_t)result + new_size),
		     flags & MREMAP_DONTUNMAP);
		unmapped(start, end);
		if (to_end > to)
			unmapped(to, to_end);
	}
	translate_unlock();
	return result;
}

int64_t sys_mremap(struct thread *thread, struct syscall *call)
{
	const int64_t result = remap(thread, call);

	if (!sys_failed(result))
		memory_locked_more((uint64_t)result, PAGE_UP((uint64_t)result + call->args[2]));
	return result;
}

/*
 * Advice may empty pages of their contents. As with the kernel a hole does not keep what is behind
 * it from being advised; anything else that is wrong does.
 */
static int64_t advise(uint64_t start, uint64_t end, uint64_t advice, bool hole)
{
	int64_t result = hole ? -ENOMEM : 0;

	translate_lock();
	for (uint64_t at = start, to; map_next_piece(&at, end, &to); at = to) {
		const int64_t error = sys(__NR_madvise, at, to - at, advice);

		translate_invalidate(at, to);
		if (error)
			result = error;
		if (error && error != -ENOMEM)
			break;
	}
	translate_unlock();
	return result;
}

int64_t sys_madvise(struct thread *thread, struct syscall *call)
{
	uint64_t start = call->args[0], end;
	bool own = false, some = false;

	if (pages(start, call->args[1], &end))
		some = known(start, end, &own);
	if (!some)
		return syscall_pass(thread, call);
	return advise(start, end, call->args[2], own);
}

int64_t sys_shmat(struct thread *thread, struct syscall *call)
{
	int64_t result = syscall_pass(thread, call);

	if (!sys_failed(result))
		event_mapped_whole(thread, (uint64_t)result);
	return result;
}

/* shmat with SHM_EXEC is found by memory_code(); what it leaves behind goes here. */
int64_t sys_shmdt(struct thread *thread, struct syscall *call)
{
	int64_t result = syscall_pass(thread, call);
	const struct range *range;
	uint64_t start = call->args[0], end;

	if (result)
		return result;
	translate_lock();
	range = map_at(start);
	if (range && range->kind == RANGE_PRIVATE && range->start == start) {
		end = range->end;
		map_remove(start, end);
		unmapped(start, end);
	}
	translate_unlock();
	return 0;
}

/*
 * read, pread64, recvfrom: at a page that is watched the kernel would stop short, which of a file
 * nobody expects. Whatever else finds such a page gets EFAULT first: see syscall_pass().
 */
int64_t sys_read(struct thread *thread, struct syscall *call)
{
	memory_unwatch(call->args[1], call->args[2]);
	if (maps_files_any() && (uint32_t)call->number != __NR_recvfrom)
		maps_files_read((int)call->args[0], (uint32_t)call->number == __NR_pread64
							    ? call->args[3]
							    : MAPS_FILES_POSITION);
	return syscall_pass(thread, call);
}
