// SPDX-License-Identifier: MIT
#include "runtime/translate/stops.h"

#include "runtime/translate/cache.h"
#include "runtime/translate/caches.h"

enum { STOPS_MAX = 32768 };

static _Alignas(PAGE_SIZE) uint64_t stops[STOPS_MAX]; /* ascending */
static unsigned int nr_stops;

/* Of the first one that is not below @pc. */
static unsigned int place_of(uint64_t pc)
{
	unsigned int low = 0, high = nr_stops;

	while (low < high) {
		const unsigned int middle = low + (high - low) / 2;

		if (stops[middle] < pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool stops_has(uint64_t pc)
{
	const unsigned int place = place_of(pc);

	return place < nr_stops && stops[place] == pc;
}

static void insert(uint64_t pc)
{
	const unsigned int place = place_of(pc);

	for (unsigned int i = nr_stops; i > place; i--)
		stops[i] = stops[i - 1];
	stops[place] = pc;
	nr_stops++;
}

/* Threads that are in code which goes over it have no breakpoint there: they would be here. */
static void forget(uint64_t pc)
{
	const uint64_t page = pc >> PAGE_SHIFT;
	struct cache *cache;

	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		if (cache_stops(cache))
			cache_forget_pages(cache, page, page);
}

unsigned int translate_stops_left(void)
{
	return STOPS_MAX - nr_stops;
}

bool translate_stop_at(uint64_t pc)
{
	if (stops_has(pc))
		return true;
	if (nr_stops == STOPS_MAX)
		return false;
	insert(pc);
	forget(pc);
	return true;
}
