/* SPDX-License-Identifier: MIT */
/*
 * The memory map, as far as the runtime must know it: sorted, disjoint ranges of
 *
 *	code	what the program may execute,
 *	shared	what it maps shared and writable of a file: it could be an alias of code,
 *	own	what belongs to the runtime: the program can neither unmap nor replace it.
 *
 * Everything else (stacks, heaps, data) is the kernel's business alone, so that a program with many
 * mappings pays nothing for the map. Two more parts of the runtime speak to it: the translator by
 * memory_code() and memory_watch() of translate.h, and the handler of SIGSEGV by memory_written().
 *
 * The map is read and changed with the translator locked. A call that changes code holds that lock
 * until the kernel and the map have both changed and what was translated is forgotten, so nothing
 * is ever translated from memory that is on its way, and nothing old executed in its place.
 */
#ifndef RUNTIME_LINUX_MEMORY_H
#define RUNTIME_LINUX_MEMORY_H

#include <linux/mman.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread;

#define PAGE	      4096UL
#define PAGE_DOWN(at) ((uint64_t)(at) & -PAGE)
#define PAGE_UP(at)   (((uint64_t)(at) + PAGE - 1) & -PAGE)

/* Where those of programs end; of the last page below the kernel lets nobody have anything. */
#define ADDRESS_MAX (1UL << 47)

/*
 * What can only be executed gets PROT_READ from the kernel, as the processor has it anyway where no
 * protection key forbids it: the translator reads code.
 */
static inline uint64_t memory_readable(uint64_t prot)
{
	return (prot & (PROT_READ | PROT_WRITE | PROT_EXEC)) == PROT_EXEC ? prot | PROT_READ : prot;
}

/*
 * Boot: the image that it maps, the vdso, the stack if it is executable. @prot as for mmap(2); only
 * executable ranges are kept. Private mappings.
 */
void memory_add(uint64_t start, uint64_t end, unsigned int prot);
/* The same of what @fd has from @offset on; -1: of nothing. */
void memory_add_file(uint64_t start, uint64_t end, unsigned int prot, int fd, uint64_t offset);

/*
 * Memory of the runtime's own: zeroed, private, readable and writable, below @below if that is not
 * 0; NULL when there is none. memory_own() claims what was mapped otherwise.
 */
void *memory_allocate(size_t size, uint64_t below);
/* The same of a descriptor's first @size bytes, shared; @prot as for mmap(2). */
void *memory_map_shared(int fd, uint64_t size, int prot);
/* Address space alone: nobody can read or write it. */
void *memory_reserve(size_t size);
void memory_free(void *at, size_t size);
void memory_own(uint64_t start, uint64_t end);

/*
 * The program faulted writing to @address. True if it may write there and the page was only
 * watched, be it that another thread's fault has ended that meanwhile: now it can be written, and
 * translate_written() must be called with the state before the instruction.
 */
bool memory_written(uint64_t address);

/*
 * Lets the kernel write on the program's behalf to all that the program may: true if any page was
 * watched.
 */
bool memory_unwatch_all(void);

/*
 * With the translator locked, and nothing translated any more: who was killed may have been moving
 * the map, or looking ahead, and may have left a page watched that is not noted as one: none is
 * from now on.
 */
void memory_interrupted(void);

/* The same for the pages from @start on, which a call is about to write to. */
void memory_unwatch(uint64_t start, size_t size);

/*
 * With the translator locked: the program may write to more from @start to @end than before. Code
 * that lies there under another address, too, is to be translated anew, so that it is watched here.
 */
void memory_distrust_aliases(uint64_t start, uint64_t end);

#endif
