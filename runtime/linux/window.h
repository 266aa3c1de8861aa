/* SPDX-License-Identifier: MIT */
/*
 * The window: 2 GiB of address space that hold the code cache and, as far as the runtime has a say,
 * everything with code. Within it each instruction that addresses relative to rip reaches the same
 * memory from the cache as from its own place, with another displacement.
 *
 *	window.start                                                    window.end
 *	| free <-- more caches | <-- libraries | code cache | program (PIE) | heap (brk) --> |
 *
 * It ends below 2 GiB if that can be had, where absolute addresses reach and fit into immediates.
 * The program stands last, so that its heap can grow. If it is not position-independent, the window
 * has its cache and its libraries. These lie where they would without more caches, so that what is
 * modelled of them does not depend on what else is measured.
 */
#ifndef RUNTIME_LINUX_WINDOW_H
#define RUNTIME_LINUX_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOW_SIZE (2UL << 30)

/* A little below 2 GiB: AddressSanitizer's shadow begins at 0x7fff7000, and Wine insists on a page
 * at 0x7ffe0000. */
#define WINDOW_LOW_END 0x7ffe0000UL

/*
 * Boot: chooses the window, at random, and maps in it, inaccessible, @code bytes for the cache and
 * @program bytes for a position-independent program, aligned to @align. False when there is no
 * room.
 */
bool window_boot(size_t code, size_t program, size_t align, uint64_t *code_at,
		 uint64_t *program_at);

/*
 * Where to map @size bytes that have code: a hint for mmap(2), 0 for no preference.
 */
uint64_t window_hint(size_t size);

/* Where more caches may lie, from the end on; and that one lies at @start, which is the end now.
 * For one at a time. */
struct window_room {
	uint64_t start, end;
};

struct window_room window_room(void);
void window_has_cache(uint64_t start);

/* The program unmapped that: if it was the last that got a hint, it is the next. */
void window_freed(uint64_t start, uint64_t end);

#endif
