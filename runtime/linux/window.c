// SPDX-License-Identifier: MIT
#include "runtime/linux/window.h"

#include <asm/mman.h>
#include <linux/mman.h>

#include "runtime/linux/aslr.h"
#include "runtime/linux/code_store.h"
#include "runtime/linux/memory.h"
#include "runtime/sys.h"

/* Where the libraries end that are below the program. */
#define LOW_START 0x10000000UL

/* Programs lie in its upper part, and cache and libraries below them: above 0x5a000000, up to where
 * Lisp systems insist on memory from 0x50000000 on. More caches are below that. */
#define PROGRAM_START	     0x60000000UL
#define PROGRAM_RANDOM_PAGES (1UL << 15)

#define CACHES_END 0x50000000UL

/* Of a window that lies elsewhere, as much for libraries. */
#define LIBRARIES (PROGRAM_START - CACHES_END)

#define HUGE_PAGE (2UL << 20)

/* More than this is data, whatever its protection. */
#define HINT_MAX (256UL << 20)

static uint64_t bottom, next, top;

/* More caches lie between these two. */
static uint64_t caches, caches_end;

static uint64_t random_base(void)
{
	uint64_t random = aslr_is_off() ? 0 : code_store_window();

	if (!random)
		random = aslr_random();
	return PROGRAM_START + random % PROGRAM_RANDOM_PAGES * PAGE;
}

static uint64_t map_at_once(uint64_t at, size_t size, uint64_t fixed)
{
	int64_t result = sys(__NR_mmap, at, size, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);

	if (sys_failed(result))
		return 0;
	return (uint64_t)result;
}

bool window_boot(size_t code, size_t program, size_t align, uint64_t *code_at, uint64_t *program_at)
{
	uint64_t start = 0, base = 0;

	if (align < PAGE)
		align = PAGE;
	for (int attempt = 0; attempt < 4 && !start; attempt++) {
		base = (random_base() + align - 1) & -align;
		if (base + program > WINDOW_LOW_END)
			break;
		start = map_at_once(base - code, code + program, MAP_FIXED_NOREPLACE);
		if (start && start != base - code) {
			sys(__NR_munmap, start, code + program);
			start = 0;
		}
	}
	if (!start) {
		/* Anywhere: with room to align in. */
		start = map_at_once(0, code + program + align, 0);
		if (!start)
			return false;
		base = (start + code + align - 1) & -align;
		start = base - code;
	}
	*code_at = start;
	*program_at = base;
	bottom = base + program <= WINDOW_LOW_END ? LOW_START : base + program - WINDOW_SIZE;
	next = top = start;
	caches = caches_end = bottom == LOW_START ? CACHES_END : top - LIBRARIES;
	return true;
}

/*
 * Below @from. To mappings of the size of a huge page and more the kernel adds as much, so that it
 * can align them, and takes no hint where that does not fit.
 */
static uint64_t below(uint64_t from, size_t size)
{
	if (size < HUGE_PAGE)
		return from - size;
	return (from - size - HUGE_PAGE) & -HUGE_PAGE;
}

/* The same for libraries, which do not lie among the caches. */
static uint64_t below_and_apart(uint64_t from, size_t size)
{
	const uint64_t first = __atomic_load_n(&caches, __ATOMIC_RELAXED);
	uint64_t at = below(from, size);

	if (at < caches_end && at + size > first)
		at = below(first, size);
	return at < bottom ? below(top, size) : at;
}

uint64_t window_hint(size_t size)
{
	uint64_t at, from = __atomic_load_n(&next, __ATOMIC_RELAXED);

	size = PAGE_UP(size);
	if (!size || size > HINT_MAX)
		return 0;
	do
		at = below_and_apart(from, size);
	while (!__atomic_compare_exchange_n(&next, &from, at, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	return at;
}

struct window_room window_room(void)
{
	return (struct window_room){bottom, caches};
}

void window_has_cache(uint64_t start)
{
	__atomic_store_n(&caches, start, __ATOMIC_RELAXED);
}

void window_freed(uint64_t start, uint64_t end)
{
	__atomic_compare_exchange_n(&next, &start, end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
