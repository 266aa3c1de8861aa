/* SPDX-License-Identifier: MIT */
/*
 * The code cache: where emitted code lies, what of the program it stands for, and how its pieces
 * jump to each other.
 *
 *	fragment  a run of emitted code, made at once from a run of the program's
 *	entry     a place in a fragment where a program address begins; found by that address
 *	exit      a place in a fragment that leaves it: a rel32 that leads to an entry or a target
 *	target    where exits lead as long as there is no entry: its stub tells the dispatcher
 *
 * All numbers are offsets and indices of 32 bits. Index 0 is never used, so 0 is "none".
 *
 * When any part is full all is forgotten, once no thread is inside any more.
 */
#ifndef RUNTIME_TRANSLATE_CACHE_H
#define RUNTIME_TRANSLATE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/model/compile.h"
#include "runtime/translate/offsets.h"
#include "runtime/translate/translate.h"

#define PAGE_SHIFT 12
#define PAGE_SIZE  (1u << PAGE_SHIFT)

enum exit_kind {
	EXIT_LINK, /* goes on at target */
	EXIT_SYSCALL,
	EXIT_INT80,
	EXIT_RDPMC,
	EXIT_DETACH,
	EXIT_STOP,	 /* stops.h */
	EXIT_STALE,	 /* the fragment of target is not what the program has there any more */
	EXIT_DUE,	 /* a counter is, or would be at the next exit, what somebody waits for */
	EXIT_DUE_BEHIND, /* likewise, where something of the fragment has been executed */
	EXIT_TAKEN,	 /* likewise, since the branch at thread->target was taken */
	EXIT_STEP,	 /* a fragment of one instruction, not to be found again, is done */
};

/* Either all exits of the kind EXIT_LINK to a place share a target; or one that is of another kind
 * has its own, which nobody finds. */
struct target {
	uint64_t pc;	/* where the program is then */
	uint32_t exits; /* the first one */
	uint8_t kind;
	uint8_t length; /* of the instruction there, where that matters */
	uint16_t gone;	/* how far the farthest of them has gone: count_near.c */
};

struct exit {
	uint32_t site; /* where the rel32 is */
	uint32_t next; /* with the same target or entry */
};

struct entry {
	uint64_t pc;
	uint32_t body;	  /* 0: there is none, or no longer */
	uint32_t landing; /* where indirect jumps and calls to pc arrive */
	uint32_t pad;	  /* where returns to pc arrive */
	uint32_t exits;	  /* the first one that leads to body */
};

enum fragment_flag {
	FRAGMENT_LANDING = 1,  /* begins with a landing, */
	FRAGMENT_PAD = 2,      /* or with a return pad; */
	FRAGMENT_CHECKED = 16, /* compares the program's code with what it was made from */
	FRAGMENT_STEP = 8,     /* one instruction, made to be executed once */
	FRAGMENT_STOP = 4,     /* begins with an exit: stops.h */
	FRAGMENT_EACH = 32,    /* compares each operand by itself: filter.c */
	FRAGMENT_SOURCE = 64,  /* its code may change, and is kept: kept.h */
};

/* Most code runs once, and has so much for each few of its instructions: what few fragments need
 * lies elsewhere (kept.h). */
struct fragment {
	uint64_t pc;
	uint32_t start;	      /* offset */
	uint32_t entries;     /* index of the first one; the others follow */
	uint32_t page_next;   /* of the fragments that depend on the page of pc */
	uint32_t kept;	      /* offset of what is kept of it beside this; 0: nothing */
	uint16_t size;	      /* bytes of code */
	uint16_t behind_stop; /* offset from start */
	uint32_t nr_insns : 7;
	uint32_t nr_entries : 7;
	uint32_t checked : 6;	  /* bytes that it compares */
	uint32_t other_pages : 2; /* without whose code it would be another, beside that of pc */
	uint32_t flags : 7;
};

_Static_assert(sizeof(struct fragment) == 32, "");

static inline uint32_t fragment_end(const struct fragment *f)
{
	return f->start + f->size;
}

/* What the assembly in enter.S reads; see offsets.h. */
struct lookup {
	uint64_t *slots; /* of the hash; struct slots_head lies before it */
	struct entry *entries;
	uint8_t *code;
	struct tables *tables;
	uint32_t jump_shift; /* the lowest bit of a target that chooses its place among the jumps */
	uint32_t vectors;    /* how many registers from xmm15 down are the code's: vectors.h, */
	uint32_t home;	     /* and where in the thread what they have belongs */
	uint32_t looks;	     /* whether they are counters that it looks at: count_near.c */
};

/* A slot of the hash by address, read and written in one piece, has the low half of the address
 * below, and above an entry, or a target with this bit. All of it 0: free. */
#define SLOT_TARGET (1u << 31)

struct slots_head {
	uint32_t used;
	uint32_t mask; /* bits of the hash that say where to begin to look */
};

/* The most that one fragment may be. */
#define FRAGMENT_BYTES	 4096
#define FRAGMENT_EXITS	 64
#define FRAGMENT_ENTRIES 64

/* What is used from one end on. */
enum cache_array {
	ARRAY_CODE,
	ARRAY_STUBS,
	ARRAY_FRAGMENTS,
	ARRAY_ENTRIES,
	ARRAY_LEVELS,
	ARRAY_TARGETS,
	ARRAY_EXITS,
	ARRAY_KEPT,
	ARRAY_BLOCKS,
	ARRAY_HOT,
	ARRAY_COLD,
	CACHE_ARRAYS,
};

struct cache {
	struct lookup lookup;
	struct instrumentation does;
	struct fragment *fragments;
	struct target *targets;
	struct exit *exits;
	uint16_t *levels; /* of entries, if it looks: how far who enters may have gone, at most */
	struct page *pages;
	uint8_t *kept;
	struct meta *meta; /* where all of them are */
	uint32_t nr_fragments, nr_entries, nr_targets, nr_exits, nr_pages, nr_kept;
	uint32_t free_targets; /* the first one; of these `exits` is the next */
	uint32_t code_next;
	uint32_t stubs;				/* where that of target 0 would be */
	uint32_t jump_miss, return_miss, leave; /* the ways to them */
	struct {
		uint8_t *memory; /* NULL: there has been nothing to trace yet */
		uint32_t next;
		struct compiled compiled;
	} blocks;	      /* runtime/model/block.h: what the code says that it executes */
	uint32_t popped_miss; /* within return_miss, for a target that is popped already */
	uint64_t populated;   /* bytes of the arrays, in this process */
	uint64_t there[CACHE_ARRAYS]; /* how far they are populated; 0: not yet */
	uint64_t each[16];	      /* by some bits of pc: where fragments are FRAGMENT_EACH */
	uint64_t pages_there[6];      /* as bits, which of the pages of memory of `pages` */
	uint64_t chosen;	      /* instrument.c: when somebody last wanted it, */
	uint32_t changes;	      /* and whether it may be about to become another: odd */
};

/* The entry with code for @pc, or 0. With the lock held: else it may have none by now. */
uint32_t cache_find(const struct cache *cache, uint64_t pc);

/* Where that code is, or 0. Needs no lock. */
uint32_t cache_body(const struct cache *cache, uint64_t pc);

/* That of an entry: count_near.c. In a cache that does not look it is 0. */
static inline unsigned int cache_level(const struct cache *cache, uint32_t entry)
{
	return cache->lookup.looks ? cache->levels[entry] : 0;
}

static inline void cache_set_level(struct cache *cache, uint32_t entry, unsigned int level)
{
	if (cache->lookup.looks)
		cache->levels[entry] = (uint16_t)level;
}

/* Whether its code does more than the program's: then it is entered only where the emitter knew. */
static inline bool cache_instruments(const struct cache *cache)
{
	return cache->does.counted | cache->does.checked | cache->does.extras;
}

/* How far exits to @pc have gone, for which there is no entry yet. */
unsigned int cache_waiting(const struct cache *cache, uint64_t pc);

/* Where the next block is to be described, in zeroed memory; and that this has been done: returns
 * the address of its code. */
struct block *cache_block(struct cache *cache);
uint64_t cache_block_done(struct cache *cache, const struct block *block);

/* Whether its code tells the model what it does: trace.c. */
static inline bool cache_traces(const struct cache *cache)
{
	return cache->does.counted & CORE_KINDS_MODEL;
}

/* Whether it counts in vector registers: count.c. */
static inline bool cache_counts_in_vectors(const struct cache *cache)
{
	return cache->lookup.vectors && !cache_traces(cache);
}

/* Whether its code comes out behind each instruction. */
static inline bool cache_is_slow(const struct cache *cache)
{
	return cache->does.extras & INSTRUMENT_STEPS;
}

/* Whether it comes out before instructions that may touch what is watched: filter.c. */
static inline bool cache_filters(const struct cache *cache)
{
	return cache->does.extras & CORE_EXTRA_BREAKPOINTS && !cache_is_slow(cache);
}

/* Whether its code stops where somebody wants to know: stops.h. Where it comes out behind each
 * instruction nothing has to be done for that. */
static inline bool cache_stops(const struct cache *cache)
{
	return cache->does.extras & CORE_EXTRA_STOPS && !cache_is_slow(cache);
}

/* Room for one more fragment with all that may belong to it; false: the cache has to be flushed. */
bool cache_room(const struct cache *cache);

void cache_init(struct cache *cache, const struct translate_memory *memory);

/* It has been left nothing, and will be filled. */
void cache_begin(struct cache *cache);

/* Asks for the memory that one more fragment may need. */
void cache_populate(struct cache *cache);

/*
 * With the lock held, whether a thread may be in its code: inside.c. Who goes there later does not
 * meet what has been changed before.
 */
bool cache_entered(const struct cache *cache);

/* Makes every thread leave that is inside, at the next branch. */
void cache_disconnect(struct cache *cache);

/* Forgets everything. Nobody is inside. */
void cache_empty(struct cache *cache);

/* It is empty, and from now on of code that does what @does says; with memory for blocks, if
 * that is traced. Nobody is inside. */
void cache_become(struct cache *cache, const struct instrumentation *does);

/* Of a fragment that is not published yet. */
struct draft_exit {
	struct target to;
	uint32_t site; /* where the rel32 is */
};

/*
 * Takes the fragment that was built at the end of the arrays into the hash. Its exits lead to where
 * there is code; other exits that wait for what it has lead there.
 */
void cache_publish(struct cache *cache, struct fragment *fragment, const struct draft_exit *exits,
		   unsigned int nr_exits);

/* Nobody finds the fragment any more. */
void cache_kill(struct cache *cache, struct fragment *fragment);

/* Somebody wrote to a page that was watched: kills what was made of it. */
void cache_written(struct cache *cache, uint64_t page);

/* Whether that happens so often that the page had better not be watched. */
bool cache_is_hot(const struct cache *cache, uint64_t page);

/* Kills what was made of pages @first to @last. */
void cache_forget_pages(struct cache *cache, uint64_t first, uint64_t last);

/* Kills what was made of other pages than those that are @kept. */
void cache_forget_unless(struct cache *cache, bool (*kept)(uint64_t page));

enum { CACHE_GROUP_NONE, CACHE_GROUP_SHOWN, CACHE_GROUPS };

/*
 * Pages have groups, CACHE_GROUPS and up. What was made of them is not found any more until it is
 * shown, a whole group at a time: it stays as it is, but nobody gets there, from other groups
 * either. Of pages of CACHE_GROUP_SHOWN everything is found, and what was made of pages of none, or
 * of several groups, is killed.
 */
void cache_withhold(struct cache *cache, unsigned int (*group)(uint64_t page));

/* What is withheld of pages @first to @last is never found again. */
void cache_forget_withheld(struct cache *cache, uint64_t first, uint64_t last);

/* Finds again what was withheld of pages @first to @last. */
void cache_show(struct cache *cache, uint64_t first, uint64_t last);

/* The fragment that has code at @offset, or NULL. */
struct fragment *cache_fragment_at(const struct cache *cache, uint32_t offset);

/* The ways out lie at the start of the code, in the order of the members of struct cache. */
#define WAYS_OUT 64

/* The stub of a target: movl $target, %gs:EXIT; jmp leave */
#define STUB_BYTES 17

static inline uint32_t stub_of(const struct cache *cache, uint32_t target)
{
	return cache->stubs + target * STUB_BYTES;
}

#endif
