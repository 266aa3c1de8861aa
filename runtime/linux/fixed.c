// SPDX-License-Identifier: MIT
/*
 * The kernel puts mappings below each other, from an address on that is chosen at random for the
 * process, and the stack ends at another one. So all that is free above CEILING is taken, which is
 * below each address that may be chosen, and a stack is made that ends there:
 *
 *	... | the program's mappings, downwards | stack | CEILING, nothing | what was there
 *
 * How much that is goes by the kernel's choice, and counts for RLIMIT_AS: under such a limit nothing is
 * taken.
 *
 * The kernel has left a random distance between the strings at the end of its stack and what points
 * at them. In the copy there is none.
 */
#include "runtime/linux/fixed.h"

#include <asm/errno.h>
#include <asm/mman.h>
#include <linux/auxvec.h>
#include <linux/mman.h>
#include <linux/resource.h>
#include <stdbool.h>

#include "runtime/boot/stack.h"
#include "runtime/linux/memory.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* Mappings begin up to 2^32 pages below the end of the address space (vm.mmap_rnd_bits), less the
 * room for a stack. */
#define CEILING 0x6f0000000000UL

/* The hole below all that there is, and no other, has so much room. */
#define HOLE (64UL << 30)

#define STACK_LEAST (1UL << 20)
#define STACK_MOST  (1UL << 30)

/* ---- what is mapped ---- */

static int64_t take(uint64_t at, uint64_t size)
{
	const int64_t result =
		sys(__NR_mmap, at, size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0),
		    -1, 0);

	if (!sys_failed(result) && at && (uint64_t)result != at)
		sys(__NR_munmap, result, size);
	return result;
}

/* As many pieces of that size as the kernel finds above. */
static void fill(uint64_t size)
{
	enum { MOST = 512 };

	for (unsigned int i = 0; i < MOST; i++) {
		const int64_t at = take(0, size);

		if (sys_failed(at))
			return;
		if ((uint64_t)at < CEILING) {
			sys(__NR_munmap, at, size);
			return;
		}
		memory_own((uint64_t)at, (uint64_t)at + size);
	}
}

static uint64_t taken; /* from CEILING on */

static bool is_limited(void)
{
	struct rlimit limit;

	return sys(__NR_getrlimit, RLIMIT_AS, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

static bool take_all(void)
{
	const int64_t at = is_limited() ? -ENOMEM : take(0, HOLE);

	if (sys_failed(at))
		return false;
	/* Where the stack has no limit mappings lie above each other, from further below on. */
	if ((uint64_t)at < CEILING || take(CEILING, (uint64_t)at - CEILING) != (int64_t)CEILING) {
		sys(__NR_munmap, at, HOLE);
		return false;
	}
	taken = (uint64_t)at + HOLE - CEILING;
	memory_own(CEILING, CEILING + taken);
	fill(1UL << 20);
	fill(1UL << 16);
	fill(PAGE);
	return true;
}

/* ---- the stack ---- */

/* Two parts of the kernel's, and how far they move. */
struct parts {
	uint64_t top, top_end, top_by;		   /* argc to AT_NULL, and what auxv points at */
	uint64_t strings, strings_end, strings_by; /* arguments, environment, the file's name */
};

static uint64_t moved(const struct parts *parts, uint64_t pointer)
{
	if (pointer >= parts->strings && pointer < parts->strings_end)
		return pointer + parts->strings_by;
	if (pointer >= parts->top && pointer < parts->top_end)
		return pointer + parts->top_by;
	return pointer;
}

static uint64_t end_of_string(uint64_t string)
{
	return string + strlen((const char *)string) + 1;
}

/* Where what this entry points at ends, beside the strings; 0: it points at nothing. */
static uint64_t end_of(const struct auxv *entry)
{
	enum { RANDOM_BYTES = 16 };

	switch (entry->type) {
	case AT_RANDOM:
		return entry->value + RANDOM_BYTES;
	case AT_PLATFORM:
	case AT_BASE_PLATFORM:
		return end_of_string(entry->value);
	}
	return 0;
}

static void find_parts(struct parts *parts, uint64_t *top, uint64_t name)
{
	uint64_t *word = top + 1;
	struct auxv *entry;

	*parts = (struct parts){
		.top = (uint64_t)top,
		.strings = name,
		.strings_end = PAGE_UP(end_of_string(name)),
	};
	for (unsigned int list = 0; list < 2; list++, word++)
		for (; *word; word++)
			if (*word < parts->strings)
				parts->strings = *word;
	for (entry = (struct auxv *)word; entry->type != AT_NULL; entry++)
		if (end_of(entry) > parts->top_end)
			parts->top_end = end_of(entry);
	if ((uint64_t)(entry + 1) > parts->top_end)
		parts->top_end = (uint64_t)(entry + 1);
}

/* rsp is a multiple of 16. */
static void place_parts(struct parts *parts)
{
	const uint64_t strings = CEILING - (parts->strings_end - parts->strings);

	parts->strings_by = CEILING - parts->strings_end;
	parts->top_by = ((strings - (parts->top_end - parts->top)) & -16UL) - parts->top;
}

static void adjust(const struct parts *parts, uint64_t *top)
{
	uint64_t *word = top + 1;

	for (unsigned int list = 0; list < 2; list++, word++)
		for (; *word; word++)
			*word = moved(parts, *word);
	for (struct auxv *entry = (struct auxv *)word; entry->type != AT_NULL; entry++)
		if (end_of(entry) || entry->type == AT_EXECFN)
			entry->value = moved(parts, entry->value);
}

static uint64_t stack_size(void)
{
	struct rlimit limit = {0};

	sys(__NR_getrlimit, RLIMIT_STACK, &limit);
	if (limit.rlim_cur < STACK_LEAST)
		return STACK_LEAST;
	return limit.rlim_cur > STACK_MOST ? STACK_MOST : PAGE_DOWN(limit.rlim_cur);
}

static bool make_stack(uint64_t size)
{
	const uint64_t start = CEILING - size;
	const int64_t result = sys(__NR_mmap, start, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK |
					   MAP_GROWSDOWN | MAP_FIXED_NOREPLACE,
				   -1, 0);

	if (sys_failed(result))
		return false;
	if ((uint64_t)result == start)
		return true;
	sys(__NR_munmap, result, size);
	return false;
}

static uint64_t *move_stack(uint64_t *top, uint64_t name)
{
	struct parts parts;
	uint64_t *now;

	find_parts(&parts, top, name);
	place_parts(&parts);
	now = (uint64_t *)(parts.top + parts.top_by);
	memcpy((char *)parts.strings + parts.strings_by, (const char *)parts.strings,
	       parts.strings_end - parts.strings);
	memcpy(now, top, parts.top_end - parts.top);
	adjust(&parts, now);
	/* It is as large as was needed, and 128 KiB more. */
	sys(__NR_munmap, PAGE_DOWN(top) - STACK_LEAST,
	    parts.strings_end - PAGE_DOWN(top) + STACK_LEAST);
	return now;
}

uint64_t *fixed_boot(uint64_t *top, uint64_t name)
{
	/* No stack of Linux. */
	if ((end_of_string(name) + STACK_BEHIND_NAME) % PAGE)
		return NULL;
	if (!take_all())
		return NULL;
	if (make_stack(stack_size()))
		return move_stack(top, name);
	fixed_end();
	return NULL;
}

void fixed_end(void)
{
	const uint64_t size = __atomic_exchange_n(&taken, 0, __ATOMIC_ACQ_REL);

	if (size)
		memory_free((void *)CEILING, size);
}
