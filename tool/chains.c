// SPDX-License-Identifier: MIT
#include "tool/chains.h"

#include <stdlib.h>

#include "tool/lookup.h"
#include "tool/memory.h"

/* Trees are walked by recursion: this bounds it whatever a file says. */
#define MOST_FRAMES 8192

struct chain {
	size_t first; /* in places, or once @expanded in frames */
	uint32_t nr;
	uint32_t space;
	uint16_t leaf;
	bool expanded;
};

struct chains {
	struct session *session;
	struct chain *chains;
	size_t nr, room;
	struct lookup lookup;
	uint32_t *places; /* of all chains: what session_resolve() makes */
	size_t nr_places, places_room;
	uint32_t *frames;
	size_t nr_frames, frames_room;
};

struct key {
	const uint64_t *words;
	size_t nr;
	uint32_t space;
};

struct chains *chains_new(struct session *session)
{
	struct chains *chains = tool_alloc(1, sizeof(*chains));

	chains->session = session;
	return chains;
}

void chains_free(struct chains *chains)
{
	if (!chains)
		return;
	free(chains->chains);
	free(chains->places);
	free(chains->frames);
	lookup_free(&chains->lookup);
	free(chains);
}

static bool equal(const void *owner, uint32_t index, const void *key)
{
	const struct chains *chains = owner;
	const struct chain *chain = &chains->chains[index];
	const struct key *wanted = key;
	const uint32_t *places = chains->places + chain->first;

	if (chain->space != wanted->space || chain->nr != wanted->nr)
		return false;
	for (size_t i = 0; i < wanted->nr; i++) {
		uint64_t word = tally_u64(wanted->words + i);

		if (session_is_marker(places[i])
			    ? word < (uint64_t)PERF_CONTEXT_MAX || (uint32_t)word != places[i]
			    : word != places_at(chains->session->places, places[i])->ip)
			return false;
	}
	return true;
}

uint32_t chains_find(struct chains *chains, const struct session_item *item, const uint64_t *words,
		     size_t nr)
{
	struct key key = {words, nr, item->space};
	uint32_t hash = lookup_hash_words(item->space, words, nr);
	uint32_t index = lookup_find(&chains->lookup, hash, equal, chains, &key);

	if (index != LOOKUP_NONE)
		return index;
	index = chains->nr++;
	chains->chains =
		tool_grow(chains->chains, &chains->room, chains->nr, sizeof(*chains->chains));
	chains->chains[index] =
		(struct chain){.first = chains->nr_places, .nr = nr, .space = item->space};
	chains->places = tool_grow(chains->places, &chains->places_room, chains->nr_places + nr,
				   sizeof(*chains->places));
	session_resolve(chains->session, item, words, nr, chains->places + chains->nr_places);
	chains->nr_places += nr;
	lookup_add(&chains->lookup, hash, index);
	return index;
}

bool chains_is_stray(const struct places *places, uint32_t frame)
{
	return !places_function(places, places_frame(places, frame)->function)->dso;
}

/* Of words that are no addresses, one says it all. */
static bool follows_stray(const struct chains *chains, size_t first, uint32_t frame)
{
	const struct places *places = chains->session->places;

	return chains->nr_frames > first && chains_is_stray(places, frame) &&
	       chains_is_stray(places, chains->frames[chains->nr_frames - 1]);
}

static void expand(struct chains *chains, struct chain *chain)
{
	size_t first = chains->nr_frames;

	for (uint32_t i = 0; i < chain->nr; i++) {
		uint32_t place = chains->places[chain->first + i];
		size_t nr;

		if (session_is_marker(place))
			continue;
		uint32_t frame = places_frames(chains->session->places, place, &nr);

		chains->frames = tool_grow(chains->frames, &chains->frames_room,
					   chains->nr_frames + nr, sizeof(*chains->frames));
		if (chains->nr_frames == first)
			chain->leaf = nr;
		else if (follows_stray(chains, first, frame))
			continue;
		for (size_t j = 0; j < nr && chains->nr_frames - first < MOST_FRAMES; j++)
			chains->frames[chains->nr_frames++] = frame + j;
	}
	chain->first = first;
	chain->nr = chains->nr_frames - first;
	chain->expanded = true;
}

const uint32_t *chains_frames(struct chains *chains, uint32_t index, size_t *nr, size_t *leaf)
{
	struct chain *chain = &chains->chains[index];

	if (!chain->expanded)
		expand(chains, chain);
	*nr = chain->nr;
	*leaf = chain->leaf;
	return chains->frames + chain->first;
}
