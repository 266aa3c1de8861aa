// SPDX-License-Identifier: MIT
/*
 * Where the fragment's own branches lead within it, to the heads of loops and to where paths come
 * together again, is no second fragment of the same code but an entry.
 */
#include "runtime/translate/build.h"

static bool is_entry(const struct builder *b, uint64_t pc)
{
	const struct fragment *f = b->fragment;

	for (uint32_t id = f->entries; id < f->entries + f->nr_entries; id++)
		if (b->cache->lookup.entries[id].pc == pc)
			return true;
	return false;
}

/* The fragment's instruction at @pc, or NULL. Its addresses only ever rise. */
static const struct position *position_of(const struct builder *b, uint64_t pc)
{
	const struct position *insns = b->draft->insns;
	unsigned int low = 0, high = b->nr_insns;

	while (low < high) {
		const unsigned int middle = (low + high) / 2;

		if (insns[middle].pc < pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low < b->nr_insns && insns[low].pc == pc ? &insns[low] : NULL;
}

/* Code that is traced, checks counters or comes out is not entered but where it begins. */
static bool may_have_targets(const struct builder *b)
{
	return !(b->fragment->flags & (FRAGMENT_CHECKED | FRAGMENT_STEP)) &&
	       (!cache_instruments(b->cache) || b->count.pairs) && !cache_is_slow(b->cache);
}

/* Where that is, if exit @i leads there. */
static const struct position *own_target(const struct builder *b, unsigned int i)
{
	const uint64_t target = b->draft->exits[i].to.pc;

	if (b->draft->exits[i].to.kind != EXIT_LINK || target < b->fragment->pc ||
	    target >= b->source_end || is_entry(b, target) || cache_find(b->cache, target))
		return NULL;
	return position_of(b, target);
}

/* Whether all who go there may: those who have gone farther than whoever comes from before may not.
 */
static bool may_enter(const struct builder *b, const struct position *at)
{
	if (!at->even || cache_waiting(b->cache, at->pc) > at->level)
		return false;
	for (unsigned int i = 0; i < b->nr_exits; i++)
		if (b->draft->exits[i].to.pc == at->pc && b->draft->exits[i].to.gone > at->level)
			return false;
	return true;
}

bool targets_level(const struct builder *b, uint64_t pc, unsigned int *level)
{
	const struct fragment *f = b->fragment;
	const struct position *at;
	uint32_t id;

	for (id = f->entries; id < f->entries + f->nr_entries; id++)
		if (b->cache->lookup.entries[id].pc == pc && b->cache->lookup.entries[id].body) {
			*level = cache_level(b->cache, id);
			return true;
		}
	id = cache_find(b->cache, pc);
	if (id) {
		*level = cache_level(b->cache, id);
		return true;
	}
	if (pc < f->pc || pc >= b->source_end)
		return false;
	at = position_of(b, pc);
	if (at)
		*level = at->level;
	return at;
}

void targets_add(struct builder *b)
{
	if (!may_have_targets(b))
		return;
	for (unsigned int i = 0; i < b->nr_exits; i++) {
		const struct position *at = own_target(b, i);

		if (at && may_enter(b, at))
			add_entry(b, at->pc, at->offset, at->level);
	}
}

bool targets_lack(const struct builder *b)
{
	if (!b->count.pairs || !may_have_targets(b))
		return false;
	for (unsigned int i = 0; i < b->nr_exits; i++) {
		const struct position *at = own_target(b, i);

		if (at && !may_enter(b, at))
			return true;
	}
	return false;
}
