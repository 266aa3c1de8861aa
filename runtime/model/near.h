/* SPDX-License-Identifier: MIT */
/*
 * The first level: a cache, by lines, and the TLB that goes with it, by pages, both set-associative
 * with true LRU.
 *
 * It is asked all the time, by code that is made for that (compile.c): so a line that is in the
 * cache, and whose page is in the TLB, has a slot in a table, found by the low bits of its key,
 * which tells where the time of its last use is. To be in the slot is a hit in both, and to write
 * that time is all that a hit does. Slots are many times as many as lines, so that two hardly ever
 * want the same; who is not in a slot is looked for in his set.
 *
 *	slots	| key << NEAR_PLACE_BITS | place | ...	by the low bits of the key; 0: free
 *					   |
 *	times	| time | time | ... |	<--+		one a way, of each set
 *	keys	| page's way << NEAR_KEY_BITS | key | ...
 *	pages	| key, time, lines in slots, a late one | ...	one a way, of each set of the TLB
 *
 * A place is that of the time among the words of the model. Who knows the key takes it away, and
 * what is left is the place, or too large for one.
 *
 * Who comes here for a miss has most of this far away: programs that miss much, and the code that is
 * made of them, fill the caches of the processor below. So what goes together lies together.
 *
 * Keys are never 0, since neither the first line nor the first page of an address space can
 * be used. Compiled code that looks only at the upper half of a slot takes the first 32 KiB, where
 * hardly anybody has code, for what is in a free one: then place 0 gets a time, to which nothing is
 * lost.
 *
 * A page is used when a line of it is. So what is kept of a page is a time at which it was used,
 * and it was used last at the latest of this one and of the times of its lines in slots: that is
 * looked for when a page has to go (near.c). A line that leaves its slot leaves its time to its
 * page.
 */
#ifndef RUNTIME_MODEL_NEAR_H
#define RUNTIME_MODEL_NEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/machine.h"
#include "runtime/model/scan.h"

/* Ways of all sets are numbered; those that fill the last four of a set count, too. */
struct near_sets {
	uint64_t mask; /* of keys that choose the set */
	uint32_t room; /* of a set */
};

struct near_page {
	uint64_t key;
	uint64_t time;
	uint64_t lines;	 /* that are in slots, as bits */
	uint64_t recent; /* one of them that was used late, when that was looked for */
};

/* Times are multiples of this, so that the way fits below. */
#define NEAR_TICK MACHINE_MAX_WAYS

/* All keys of lines fit above: addresses of programs have 47 bits. */
#define NEAR_PLACE_BITS (64 - (47 - MACHINE_LINE_SHIFT))

/* Ways of a first level, at most, with those that fill sets. */
#define NEAR_MAX_WAYS (MACHINE_MAX_L1_SETS * MACHINE_MAX_WAYS)

enum { NEAR_GUESSES = 256 };

struct near {
	uint64_t *slots;
	uint64_t slots_mask;
	uint64_t first; /* the place of the first time */
	struct near_sets line_sets, page_sets;
	uint64_t *times, *keys; /* of lines */
	struct near_page *pages;
	uint16_t page_ways[NEAR_GUESSES]; /* where a page with such low bits was found last */
};

/* Of a line, below the way that its page had when it got its slot. */
enum { NEAR_KEY_BITS = 48 };

/* By how many bits the key of a line is longer than that of its page. */
#define NEAR_LINES (MACHINE_PAGE_SHIFT - MACHINE_LINE_SHIFT)

static inline uint64_t *near_slot(const struct near *near, uint64_t line)
{
	return &near->slots[line & near->slots_mask];
}

/* Whether @slot, which is its, has @line. */
static inline bool near_has(uint64_t slot, uint64_t line)
{
	return slot >> NEAR_PLACE_BITS == line;
}

/* Of what is in a slot. */
static inline uint64_t near_way(const struct near *near, uint64_t slot)
{
	return (slot & ((1UL << NEAR_PLACE_BITS) - 1)) - near->first;
}

static inline uint64_t near_in_slot(const struct near *near, uint64_t line, uint64_t way)
{
	return line << NEAR_PLACE_BITS | (near->first + way);
}

/* Which of the lines of its page it is. */
static inline uint64_t near_line(uint64_t line)
{
	return line & ((1u << NEAR_LINES) - 1);
}

static inline uint64_t near_bit(uint64_t line)
{
	return 1UL << near_line(line);
}

/* The line that has @way, and @key, as it is kept, is not in its slot any more, if @was, all ones,
 * says that it was: no branch, since nobody could foresee it. */
static inline void near_leave(const struct near *near, uint64_t key, uint64_t way, uint64_t was)
{
	struct near_page *page = &near->pages[key >> NEAR_KEY_BITS];
	const uint64_t time = near->times[way] & was;

	page->time = page->time > time ? page->time : time;
	page->lines &= ~(near_bit(key) & was);
}

static inline uint64_t near_set(const struct near_sets *sets, uint64_t key)
{
	return (key & sets->mask) * sets->room;
}

/* In which ways of the set that begins at @set @line may be: a bit for each. */
static inline uint32_t near_ways(const struct near *near, uint64_t set, uint64_t line)
{
	const uint64_t *keys = near->keys + set;

	if (__builtin_expect(near->line_sets.room == 8, 1))
		return scan_eight_keys_for(keys, (uint32_t)line);
	return scan_keys_for(keys, near->line_sets.room * sizeof(*keys), (uint32_t)line);
}

static inline uint64_t near_lesser(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static inline uint64_t near_greater(uint64_t one, uint64_t other)
{
	return one < other ? other : one;
}

/* Of four ways from @way on, the least time with its way. */
static inline uint64_t near_oldest_of_four(const uint64_t *times, uint64_t way)
{
	times += way;
	return near_lesser(near_lesser(times[0] + way, times[1] + way + 1),
			   near_lesser(times[2] + way + 2, times[3] + way + 3));
}

/* Which way of a set has the least time. */
static inline uint64_t near_oldest(const uint64_t *times, uint32_t room)
{
	uint64_t least = near_oldest_of_four(times, 0);

	if (__builtin_expect(room == 8, 1))
		return near_lesser(least, near_oldest_of_four(times, 4)) % NEAR_TICK;
	for (uint64_t way = 4; way < room; way += 4)
		least = near_lesser(least, near_oldest_of_four(times, way));
	return least % NEAR_TICK;
}

/* The way of the line whose use is the longest ago is free. */
static inline uint64_t near_evict(const struct near *near, uint64_t set)
{
	const uint64_t way = set + near_oldest(near->times + set, near->line_sets.room);
	const uint64_t key = near->keys[way];
	const uint64_t line = key & ((1UL << NEAR_KEY_BITS) - 1);
	uint64_t *slot = near_slot(near, line);
	const uint64_t was = -(uint64_t)(*slot == near_in_slot(near, line, way));

	near_leave(near, key, way, was);
	*slot &= ~was;
	return way;
}

/* @line has @way from now on, and a slot, as it and its page are used. */
static inline void near_settle(const struct near *near, uint64_t line, uint64_t way,
			       uint64_t page_way, uint64_t now)
{
	struct near_page *page = &near->pages[page_way];
	uint64_t *slot = near_slot(near, line);
	uint64_t other;

	if (__builtin_expect(*slot != 0, 0)) {
		other = near_way(near, *slot);
		near_leave(near, near->keys[other], other, ~0UL);
	}
	near->times[way] = now;
	near->keys[way] = page_way << NEAR_KEY_BITS | line;
	page->time = now;
	page->lines |= near_bit(line);
	*slot = near_in_slot(near, line, way);
}

#define NEAR_LINE_MISSED 1
#define NEAR_PAGE_MISSED 2

/* The rest of near_find(): the page is not where its like was found last; the line may be in
 * @ways. */
unsigned int near_find_page(struct near *near, uint64_t line, uint64_t now);
unsigned int near_find_line(struct near *near, uint64_t line, uint64_t now, uint64_t page_way,
			    uint32_t ways);

/*
 * Uses a line that is in no slot, and its page, at a time that is later than all before; which of
 * them were not there. Mostly the line is not, and the page is.
 */
static inline __attribute__((always_inline)) unsigned int near_find(struct near *near,
								    uint64_t line, uint64_t now)
{
	const uint64_t page = line >> NEAR_LINES, set = near_set(&near->line_sets, line);
	const uint64_t page_way = near->page_ways[page % NEAR_GUESSES];
	uint32_t ways;

	if (__builtin_expect(near->pages[page_way].key != page, 0))
		return near_find_page(near, line, now);
	ways = near_ways(near, set, line);
	if (__builtin_expect(ways, 0))
		return near_find_line(near, line, now, page_way, ways);
	near_settle(near, line, near_evict(near, set), page_way, now);
	return NEAR_LINE_MISSED;
}

/*
 * The part of the state that a cache takes from @memory on; neither slots nor times of lines are
 * among it: @times, from word @first of the model on, of all that there can be. Returns how much it
 * is.
 */
uint64_t near_size(const struct machine_cache *lines, const struct machine_cache *pages);
uint64_t near_place(struct near *near, const struct machine_cache *lines,
		    const struct machine_cache *pages, uint64_t *times, uint64_t first,
		    uint8_t *memory);

#endif
