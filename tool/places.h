/* SPDX-License-Identifier: MIT */
/*
 * Places: every distinct address of a recording, resolved once, with the functions and source lines
 * that it stands for. A place has one frame, or several when calls were inlined there.
 *
 * Functions, dsos and source lines are numbered, so that tables are built by comparing numbers.
 */
#ifndef TOOL_PLACES_H
#define TOOL_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/symbol.h>

struct places;

struct place {
	uint64_t ip;
	uint32_t space; /* 0 for the kernel, which is the same in all of them */
	uint16_t cpumode;
	bool caller; /* a return address: the call is before it */
	uint32_t first_frame;
	uint32_t nr_frames; /* 0: not yet made */
	struct tally_location at;
};

struct frame {
	uint32_t function;
	uint32_t source;
};

/* Addresses without a symbol are all one function of their dso. */
struct function {
	uint32_t dso;
	const char *name; /* "[unknown]" when there is none */
	bool nameless;
	char level;
	bool inlined;
	uint64_t identity; /* what tells two of one name apart */
};

struct places *places_new(struct tally_machine *machine);
void places_free(struct places *places);

/*
 * What places_frames() looks for beside the symbol: both need debug information to be read. Before
 * the first places_frames().
 */
#define PLACES_INLINE (1u << 0)
#define PLACES_SOURCE (1u << 1)
void places_want(struct places *places, unsigned int flags);

/*
 * The number of the place @ip of @pid, whose address space at @time is @space; @cpumode and @caller
 * as in struct place.
 */
uint32_t places_find(struct places *places, uint32_t pid, uint32_t space, uint64_t time,
		     uint16_t cpumode, uint64_t ip, bool caller);
size_t places_nr(const struct places *places);
/* Valid until the next places_find(). */
const struct place *places_at(const struct places *places, uint32_t place);

/*
 * The number of its innermost frame; the *@nr frames of a place, at least one, have numbers in a
 * row, the function that is really there last.
 */
uint32_t places_frames(struct places *places, uint32_t place, size_t *nr);
const struct frame *places_frame(const struct places *places, uint32_t frame);

/* Valid until the next places_frames(). */
/* Number 0 is the function of samples that have no address. */
const struct function *places_function(const struct places *places, uint32_t function);
/* NULL for the dso of addresses outside all mappings, which is number 0. */
struct tally_dso *places_dso(const struct places *places, uint32_t dso);
/* "sort.c:41", or "[unknown]", which is number 0. */
const char *places_source(const struct places *places, uint32_t source);

/* "libc.so.6", "[unknown]" */
const char *places_dso_name(const struct places *places, uint32_t dso);

#endif
