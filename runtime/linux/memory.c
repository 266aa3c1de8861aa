// SPDX-License-Identifier: MIT
#include "runtime/linux/memory.h"

#include <asm/errno.h>
#include <asm/mman.h>
#include <asm/siginfo.h>
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/stat.h>

#include "runtime/linux/apart.h"
#include "runtime/linux/code_files.h"
#include "runtime/linux/code_store.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/faults.h"
#include "runtime/linux/memory_map.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/linux/window.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

/* Whether any range may be watched; a look without the lock saves the lock in most programs. */
static bool any_watched;
/* Whether any shared mapping of a file may ever have been code. */
static bool any_shared_code;

void memory_identify(struct range *range, int fd, uint64_t offset)
{
	struct stat file = {0};

	range->offset = offset;
	/* Aliases of code have to be known; where probes are has not. */
	if (range->kind == RANGE_PRIVATE && confined())
		return;
	sys(__NR_fstat, fd, &file);
	range->device = file.st_dev;
	range->inode = file.st_ino;
}

/* Of what is mapped there; its path may be another file's by now. */
static bool is_mapped(int fd, const struct maps_file *file)
{
	struct statx is;

	return !sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &is) && is.stx_ino == file->inode;
}

/* By its path, as what the kernel says of mappings is the device of another layer on some file
 * systems; and if it has none any more, by that. */
static void identify_entry(const struct maps_entry *entry, const struct maps_file *file)
{
	const int fd = (int)sys(__NR_openat, AT_FDCWD, file->path, O_PATH | O_CLOEXEC);
	const bool found = fd >= 0 && is_mapped(fd, file);

	for (struct range *r = map_cut(entry->start, entry->end); r && r->start < entry->end;
	     r = map_next(r)) {
		const uint64_t offset = file->offset + (r->start - entry->start);

		if (r->kind != RANGE_PRIVATE || r->inode)
			continue;
		if (found) {
			memory_identify(r, fd, offset);
		} else {
			r->device = maps_device(file);
			r->inode = file->inode;
			r->offset = offset;
		}
	}
	map_join(entry->start, entry->end);
	if (fd >= 0)
		sys(__NR_close, fd);
}

void memory_identify_mapped(uint64_t start, uint64_t end)
{
	struct maps_reader reader;
	struct maps_entry entry;
	struct maps_file file;
	bool more;

	if (confined() || !maps_open(&reader))
		return;
	more = maps_has_file(&reader, start, end);
	while (more && maps_next(&reader, &entry, &file) && entry.start < end)
		if (entry.end > start && entry.prot & PROT_EXEC && file.inode && !file.shared &&
		    map_has_room())
			identify_entry(&entry, &file);
	maps_close(&reader);
}

void memory_add_file(uint64_t start, uint64_t end, unsigned int prot, int fd, uint64_t offset)
{
	struct range range = {
		.start = PAGE_DOWN(start),
		.end = PAGE_UP(end),
		.prot = (uint8_t)prot,
	};

	if (range.start >= range.end)
		return;
	map_remove(range.start, range.end);
	if (!(prot & PROT_EXEC))
		return;
	if (fd >= 0)
		memory_identify(&range, fd, offset);
	if (fd >= 0 && !(prot & PROT_WRITE))
		range.file = code_file_number(fd);
	map_add(&range);
	code_store_mapped(range.start, range.end);
}

void memory_add(uint64_t start, uint64_t end, unsigned int prot)
{
	memory_add_file(start, end, prot, -1, 0);
}

/* The runtime's own memory */

void memory_own(uint64_t start, uint64_t end)
{
	struct range range = {PAGE_DOWN(start), PAGE_UP(end), .kind = RANGE_OWN};

	translate_lock();
	map_add(&range);
	translate_unlock();
}

/*
 * What mmap(2) has answered, with the translator locked since before: who has the lock finds all
 * that is mapped in the map, too (maps_layout.c).
 */
static void *claim(int64_t mapped, size_t size)
{
	struct range range = {(uint64_t)mapped, (uint64_t)mapped + size, .kind = RANGE_OWN};

	if (sys_failed(mapped))
		return NULL;
	map_add(&range);
	return (void *)mapped;
}

/* From the top down. */
static int64_t allocate_between(size_t size, uint64_t start, uint64_t end, int prot)
{
	for (uint64_t at = PAGE_DOWN(end - size); at >= start && at < end; at -= size) {
		int64_t result = sys(
			__NR_mmap, at, size, prot,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

		if (!sys_failed(result) && (uint64_t)result + size <= end)
			return result;
		if (!sys_failed(result))
			sys(__NR_munmap, result, size);
	}
	return -ENOMEM;
}

/* No lower than that, and below 2 GiB from the top on, where the heap of a program that lies there
 * comes last. */
#define LOWEST 0x11000UL

static void *allocate(size_t size, uint64_t below, int prot)
{
	int64_t result;
	void *at;

	size = PAGE_UP(size);
	translate_lock();
	if (below)
		result = allocate_between(size, LOWEST, below, prot);
	else
		result = apart_map(size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	at = claim(result, size);
	translate_unlock();
	return at;
}

void *memory_allocate(size_t size, uint64_t below)
{
	return allocate(size, below, PROT_READ | PROT_WRITE);
}

void *memory_reserve(size_t size)
{
	return allocate(size, 0, PROT_NONE);
}

void *memory_map_shared(int fd, uint64_t size, int prot)
{
	void *at;

	translate_lock();
	at = claim(apart_map(size, prot, MAP_SHARED, fd, 0), PAGE_UP(size));
	translate_unlock();
	return at;
}

void *memory_common(size_t size)
{
	void *at;

	if (confined())
		return NULL;
	translate_lock();
	at = claim(apart_map(PAGE_UP(size), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
		   PAGE_UP(size));
	translate_unlock();
	return at;
}

/* Code that is not for the program, as absolute addresses reach it. */
static void *allocate_low_code(size_t size)
{
	return allocate(size, WINDOW_LOW_END, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void *allocate_code(size_t size)
{
	enum { ALL = PROT_READ | PROT_WRITE | PROT_EXEC };
	const struct window_room room = window_room();
	int64_t result;
	void *at;

	translate_lock();
	result = allocate_between(size, room.start, room.end, ALL);
	if (!sys_failed(result))
		window_has_cache((uint64_t)result);
	else
		result = sys(__NR_mmap, window_hint(size), size, ALL,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	at = claim(result, size);
	translate_unlock();
	return at;
}

bool memory_translator(struct translate_memory *memory, bool blocks)
{
	*memory = (struct translate_memory){
		.code = allocate_code(TRANSLATE_CODE_SIZE),
		.tables = memory_allocate(TRANSLATE_TABLE_SIZE, WINDOW_LOW_END),
		.meta = memory_allocate(TRANSLATE_META_SIZE, 0),
		.blocks = blocks ? allocate_low_code(TRANSLATE_BLOCKS_SIZE) : NULL,
	};
	if (memory->code && memory->tables && memory->meta && (memory->blocks || !blocks))
		return true;
	if (memory->code)
		memory_free(memory->code, TRANSLATE_CODE_SIZE);
	if (memory->tables)
		memory_free(memory->tables, TRANSLATE_TABLE_SIZE);
	if (memory->meta)
		memory_free(memory->meta, TRANSLATE_META_SIZE);
	if (memory->blocks)
		memory_free(memory->blocks, TRANSLATE_BLOCKS_SIZE);
	return false;
}

void *memory_more(size_t size, bool code)
{
	return code ? allocate_low_code(size) : memory_allocate(size, 0);
}

/* Whether pages from @start to @end are there now. Kernels before 5.14 and gVisor do not know
 * how, which the first answer tells: each call is dear there. */
static bool populate(uint64_t start, uint64_t end, int advice)
{
	static bool unknown;
	uint64_t before;
	int64_t result;

	if (unknown)
		return false;
	before = faults_before_populating();
	result = sys(__NR_madvise, start, end - start, advice);
	unknown = result == -EINVAL;
	faults_populated(before);
	return !result;
}

void memory_populate(uint64_t start, uint64_t end)
{
	if (!confined())
		populate(PAGE_DOWN(start), PAGE_UP(end), MADV_POPULATE_WRITE);
}

void memory_less(void *memory, size_t size)
{
	memory_free(memory, size);
}

void memory_free(void *at, size_t size)
{
	uint64_t start = (uint64_t)at, end = start + PAGE_UP(size);

	translate_lock();
	map_remove(start, end);
	sys(__NR_munmap, start, end - start);
	translate_unlock();
	apart_freed(start, end);
}

/* Watching code that the program may write */

static bool may_write(const struct range *range)
{
	return range->prot & PROT_WRITE;
}

static void set_watched(uint64_t start, uint64_t end, bool watched)
{
	for (struct range *r = map_cut(start, end); r && r->start < end; r = map_next(r)) {
		unsigned int prot = r->prot;

		if (r->kind == RANGE_OWN || r->watched == watched || (watched && !may_write(r)))
			continue;
		if (watched)
			prot &= ~(unsigned int)PROT_WRITE;
		if (!sys(__NR_mprotect, r->start, r->end - r->start, memory_readable(prot)))
			r->watched = watched;
	}
	map_join(start, end);
}

void memory_interrupted(void)
{
	memory_looked_ahead();
	map_interrupted();
	for (struct range *r = map_from(0); r; r = map_next(r))
		if (r->kind != RANGE_OWN && may_write(r) &&
		    !sys(__NR_mprotect, r->start, r->end - r->start, memory_readable(r->prot)))
			r->watched = false;
}

/*
 * Where @alias shows the same bytes of a file as the range from @start to @end, which lies in
 * @range; false where it does not.
 */
static bool alias_of(const struct range *range, uint64_t start, uint64_t end,
		     const struct range *alias, uint64_t *alias_start, uint64_t *alias_end)
{
	uint64_t from = range->offset + (start - range->start), to = from + (end - start);
	uint64_t alias_to = alias->offset + (alias->end - alias->start);

	if (alias->kind != RANGE_SHARED || alias->inode != range->inode ||
	    alias->device != range->device || alias->offset >= to || alias_to <= from)
		return false;
	from = from > alias->offset ? from : alias->offset;
	to = to < alias_to ? to : alias_to;
	*alias_start = alias->start + (from - alias->offset);
	*alias_end = *alias_start + (to - from);
	return *alias_start != start;
}

/* Sets all aliases of a piece of @shared watched or not. */
static void set_aliases(const struct range *shared, uint64_t start, uint64_t end, bool watched)
{
	struct range range = *shared; /* the map changes under way */
	uint64_t at, to;

	for (uint64_t next = 0;;) {
		const struct range *alias = map_from(next);

		if (!alias)
			break;
		next = alias->end;
		if (alias_of(&range, start, end, alias, &at, &to))
			set_watched(at, to, watched);
	}
}

void memory_watch(uint64_t start, uint64_t end)
{
	any_watched = true;
	for (uint64_t at = start; at < end;) {
		const struct range *range = map_at(at);
		uint64_t to;

		if (!range)
			break;
		to = range->end < end ? range->end : end;
		if (range->kind == RANGE_SHARED)
			set_aliases(range, at, to, true);
		set_watched(at, to, true);
		at = to;
	}
}

/* Forgets what was translated from the page at @page, wherever the program has it mapped. */
static void invalidate_page(const struct range *range, uint64_t page)
{
	uint64_t at, to;

	translate_invalidate(page, page + PAGE);
	if (range->kind != RANGE_SHARED)
		return;
	for (const struct range *r = map_from(0); r; r = map_next(r))
		if (r->prot & PROT_EXEC && alias_of(range, page, page + PAGE, r, &at, &to))
			translate_invalidate(at, to);
}

/* First nothing is executed any more that was translated from the page, then it can change. */
bool memory_written(uint64_t address)
{
	uint64_t page = PAGE_DOWN(address);
	const struct range *range;
	bool allowed;

	translate_lock();
	range = map_at(page);
	/* If it is not watched any more, another thread has been here since the fault. */
	allowed = range && range->kind != RANGE_OWN && may_write(range);
	if (allowed && range->watched) {
		invalidate_page(range, page);
		if (range->kind == RANGE_SHARED)
			set_aliases(range, page, page + PAGE, false);
		set_watched(page, page + PAGE, false);
	}
	translate_unlock();
	return allowed;
}

void memory_distrust_aliases(uint64_t start, uint64_t end)
{
	uint64_t at, to;

	if (!any_shared_code)
		return;
	for (const struct range *w = map_from(start); w && w->start < end; w = map_next(w)) {
		if (w->kind != RANGE_SHARED || !may_write(w))
			continue;
		for (const struct range *r = map_from(0); r; r = map_next(r))
			if (r->prot & PROT_EXEC && alias_of(w, w->start, w->end, r, &at, &to))
				translate_invalidate(at, to);
	}
}

/* The first watched range from @at to @end, with the lock not held. */
static bool next_watched(uint64_t *at, uint64_t end, uint64_t *to)
{
	bool found = false;

	translate_lock();
	for (const struct range *r = map_from(*at); r && r->start < end && !found; r = map_next(r))
		if (r->watched) {
			*at = r->start > *at ? r->start : *at;
			*to = r->end < end ? r->end : end;
			found = true;
		}
	translate_unlock();
	return found;
}

static bool unwatch(uint64_t start, uint64_t end)
{
	bool any = false;

	for (uint64_t to; next_watched(&start, end, &to); any = true)
		for (; start < to; start += PAGE)
			memory_written(start);
	return any;
}

bool memory_unwatch_all(void)
{
	return any_watched && unwatch(0, ADDRESS_MAX);
}

void memory_unwatch(uint64_t start, size_t size)
{
	if (any_watched && size && start < ADDRESS_MAX && size < ADDRESS_MAX)
		unwatch(PAGE_DOWN(start), PAGE_UP(start + size));
}

/* What the translator asks */

/* Whether the program can write to it, here or where the same file is mapped again. */
static bool may_change(const struct range *range)
{
	any_shared_code |= range->kind == RANGE_SHARED;
	return may_write(range) || range->kind == RANGE_SHARED;
}

/* The kernel's half of the addresses are, too. */
static bool is_canonical(uint64_t address)
{
	return (uint64_t)((int64_t)(address << 16) >> 16) == address;
}

/* Between these alone memory_code() finds anything, unless both are 0. */
static uint64_t looked_from, looked_to;

bool memory_look_ahead(uint64_t pc)
{
	const struct range *range = map_at(pc);
	const uint64_t page = PAGE_DOWN(pc);

	if (confined() || !range || !(range->prot & PROT_EXEC) || may_change(range) ||
	    !populate(page, page + PAGE, MADV_POPULATE_READ))
		return false;
	looked_from = page;
	looked_to = page + PAGE;
	if (looked_to < range->end && populate(looked_to, looked_to + PAGE, MADV_POPULATE_READ))
		looked_to += PAGE;
	return true;
}

void memory_looked_ahead(void)
{
	looked_from = looked_to = 0;
}

int memory_code(uint64_t pc, struct code_range *code)
{
	const struct range *range = map_at(pc), *next;
	struct maps_entry entry;

	if (looked_to) {
		if (pc < looked_from || pc >= looked_to)
			return SEGV_MAPERR;
		*code = (struct code_range){looked_from, looked_to, false};
		return 0;
	}
	if (pc >= ADDRESS_MAX)
		return is_canonical(pc) ? SEGV_MAPERR : SI_KERNEL;
	if (range && range->prot & PROT_EXEC) {
		*code = (struct code_range){range->start, range->end, may_change(range)};
		for (next = map_next(range);
		     next && next->start == code->end && next->prot & PROT_EXEC &&
		     may_change(next) == code->writable;
		     next = map_next(next))
			code->end = next->end;
		return 0;
	}
	if (range && range->kind == RANGE_OWN)
		return SEGV_ACCERR;
	/* What became executable unseen: a stack that grew, personality(2), shmat(2). */
	if (!maps_find(pc, &entry))
		return SEGV_MAPERR;
	if (!(entry.prot & PROT_EXEC))
		return SEGV_ACCERR;
	if (map_has_room()) {
		map_protect(entry.start, entry.end, entry.prot);
		code_store_mapped(entry.start, entry.end);
		*code = (struct code_range){entry.start, entry.end, entry.prot & PROT_WRITE};
		return 0;
	}
	return SEGV_ACCERR;
}
