/* SPDX-License-Identifier: MIT */
/* The ranges of memory.h and what can be done to them; memory.c gives them their meaning. */
#ifndef RUNTIME_LINUX_MEMORY_MAP_H
#define RUNTIME_LINUX_MEMORY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As many as the kernel allows a process mappings by default, half of it. */
#define MAP_RANGES_MAX 32768

enum range_kind {
	RANGE_PRIVATE, /* of the program; executable, or it would not be here */
	RANGE_SHARED,  /* of the program; a shared mapping of a file, whatever its protection */
	RANGE_OWN,     /* of the runtime */
};

struct range {
	uint64_t start, end;
	uint64_t device, inode; /* of the file; 0: it is none, or not known */
	uint64_t offset;	/* there */
	uint32_t file; /* of RANGE_PRIVATE that is what the file has: which (code_files.h); or 0 */
	uint8_t kind;
	uint8_t prot; /* as the program sees it */
	bool watched; /* the kernel has it without PROT_WRITE */
};

/* memory.c: @range has what @fd has from @offset on. */
void memory_identify(struct range *range, int fd, uint64_t offset);

/* The same for what became executable after it was mapped, from @start to @end: by what the
 * kernel says, and so slowly. With the translator locked. */
void memory_identify_mapped(uint64_t start, uint64_t end);

/* The range around @at; the first that ends behind @at; the next; NULL when there is none. */
struct range *map_at(uint64_t at);
struct range *map_from(uint64_t at);
struct range *map_next(const struct range *range);

/*
 * Cuts ranges at @start and @end, and returns map_from(@start): from there to @end each range can
 * be changed by itself. map_join() afterwards.
 */
struct range *map_cut(uint64_t start, uint64_t end);
void map_join(uint64_t start, uint64_t end);

/*
 * From *@at on, up to @end, the next piece without anything of the runtime's: for the program there
 * is a hole where that lies. With the translator locked.
 */
bool map_next_piece(uint64_t *at, uint64_t end, uint64_t *to);

bool map_has(uint64_t start, uint64_t end);
bool map_has_own(uint64_t start, uint64_t end);

/* With the translator locked: who may have been changing it, a child of vfork(2), has been
 * killed. */
void map_interrupted(void);

/* Where the map lies, for who reads that of another process, too. */
struct map_place {
	const struct range *ranges;
	const size_t *nr;
	const uint64_t *changes; /* how often it has changed */
};

struct map_place map_place(void);

/* Whether the next change fits. */
bool map_has_room(void);

void map_add(const struct range *range); /* nothing may be there */
/* These two return whether there was code. */
bool map_remove(uint64_t start, uint64_t end);
bool map_protect(uint64_t start, uint64_t end, unsigned int prot);

#endif
