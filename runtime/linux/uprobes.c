// SPDX-License-Identifier: MIT
/*
 * Probes of files, as events of the unit `uprobe` place them: what the kernel does by breakpoints
 * in the program's code is done by stops in what is made of that (translate/stops.h). A probe is
 * known by file and offset; where it is mapped the memory map says, as far as the kernel would
 * probe it: privately and not writable.
 */
#include "runtime/linux/uprobes.h"

#include "core/core.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/memory_map.h"
#include "runtime/linux/task.h"
#include "runtime/linux/uprobe_returns.h"
#include "runtime/translate/translate.h"

enum { PLACES_MAX = 4096 }; /* in a process, as long as it executes the same image */

/* ---- where they are ---- */

/* Of all threads, and those that were: with the translator's lock. */
static _Alignas(PAGE) struct core_probe places[PLACES_MAX];
static uint32_t nr_places;
/* Which they are, by a hash: less 1, and 0 is none. */
enum { HASHED = 2 * PLACES_MAX };
static _Alignas(PAGE) uint16_t by_hash[HASHED];

/* There was no room for one more stop, so each instruction is looked at. */
static bool crowded;

static bool stop_at(uint64_t at)
{
	crowded |= !translate_stop_at(at);
	return !crowded;
}

/* Room is left for probes in what others map: nobody tells the threads that have them already
 * that stops have become too many. */
bool uprobes_stop_at_return(uint64_t at)
{
	crowded |= translate_stops_left() <= PLACES_MAX;
	return !crowded && stop_at(at);
}

/* Whether there can be probes in @range. */
static bool is_probed(const struct range *range)
{
	return range->kind == RANGE_PRIVATE && range->inode && range->prot & PROT_EXEC &&
	       !(range->prot & PROT_WRITE);
}

/* Where @probe is in @range; 0: it is not. */
static uint64_t place_in(const struct range *range, const struct core_probe *probe)
{
	const uint64_t at = range->start + (probe->offset - range->offset);

	if (!is_probed(range) || range->inode != probe->file.inode ||
	    range->device != probe->file.device)
		return 0;
	return at >= range->start && at < range->end ? at : 0;
}

/* Where the number of @probe is in by_hash, or is to be. */
static uint16_t *number_of(const struct core_probe *probe)
{
	const uint64_t odd = 0x9e3779b97f4a7c15;
	uint64_t at = ((probe->offset * odd ^ probe->file.inode) * odd) >> 32;

	while (by_hash[at % HASHED] &&
	       !core_is_same_probe(&places[by_hash[at % HASHED] - 1], probe))
		at++;
	return &by_hash[at % HASHED];
}

/* With the lock. */
static bool know(const struct core_probe *probe)
{
	uint16_t *number = number_of(probe);

	if (*number)
		return true;
	if (nr_places == PLACES_MAX)
		return false;
	for (const struct range *r = map_from(0); r; r = map_next(r)) {
		const uint64_t at = place_in(r, probe);

		if (at && !stop_at(at))
			return false;
	}
	places[nr_places] = *probe;
	*number = (uint16_t)(nr_places + 1);
	__atomic_store_n(&nr_places, nr_places + 1, __ATOMIC_RELEASE);
	return true;
}

static bool know_all(const struct core_probe *probes, size_t n)
{
	bool all = true;

	translate_lock();
	if (n && !nr_places)
		memory_identify_mapped(0, ADDRESS_MAX);
	for (size_t i = 0; i < n && all; i++)
		all = know(&probes[i]);
	translate_unlock();
	return all;
}

bool uprobes_follow(struct thread *thread)
{
	enum { AT_ONCE = 64 };
	struct core_probe some[AT_ONCE];
	size_t n;

	for (size_t from = 0;; from += AT_ONCE) {
		n = core_probe_places(&thread->events, some, from, AT_ONCE);
		if (n <= from)
			return !n || !crowded;
		n -= from;
		if (!know_all(some, n < AT_ONCE ? n : AT_ONCE))
			return false;
	}
}

void uprobes_mapped(uint64_t start, uint64_t end)
{
	if (!nr_places)
		return;
	for (const struct range *r = map_from(start); r && r->start < end; r = map_next(r))
		for (uint32_t i = 0; i < nr_places; i++) {
			const uint64_t at = place_in(r, &places[i]);

			if (at)
				stop_at(at);
		}
}

void uprobes_became_code(uint64_t start, uint64_t end)
{
	if (!nr_places)
		return;
	memory_identify_mapped(start, end);
	uprobes_mapped(start, end);
}

uint64_t uprobes_place(const struct core_probe *probe)
{
	uint64_t at = 0;

	translate_lock();
	for (const struct range *r = map_from(0); r && !at; r = map_next(r))
		at = place_in(r, probe);
	translate_unlock();
	return at;
}

/* What is mapped at @pc; false: nothing where probes can be. */
static bool find(uint64_t pc, struct core_probe *probe)
{
	const struct range *range;
	bool found;

	translate_lock();
	range = map_at(pc);
	found = range && is_probed(range);
	if (found)
		*probe = (struct core_probe){
			.file = {range->device, range->inode},
			.offset = range->offset + (pc - range->start),
		};
	translate_unlock();
	return found;
}

/* ---- met ---- */

bool uprobes_meet(struct thread *thread, uint64_t pc)
{
	struct core_probe_met met = {.function = pc};
	bool some;

	if (!__atomic_load_n(&nr_places, __ATOMIC_ACQUIRE))
		return false;
	some = uprobe_returned(thread, pc);
	if (!find(pc, &met.place) || !core_probe_at(&thread->events, &met.place, false))
		return some;
	if (core_probe_at(&thread->events, &met.place, true))
		uprobe_await_return(thread, &met);
	core_probe_met(&thread->events, &met);
	return true;
}
