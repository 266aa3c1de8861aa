// SPDX-License-Identifier: MIT
/*
 * A fragment: decode an instruction, copy it, next. Nothing is gathered first and nothing is gone
 * over again, since most code of most programs runs a few times only.
 *
 * The builder goes on through the not-taken side of conditions, through forward jumps and behind
 * calls, as long as nothing was built for where it gets, so that a path that is usually taken
 * lies in one piece. Whatever ends it, there is one way to end: a jump to the next address.
 *
 * The same code runs as a rehearsal, to learn what the bytes of a fragment stand for: all that
 * depends on more than the program's code and the place in the cache is kept in the fragment
 * (nr_insns), and b->asked tells.
 */
#include "runtime/translate/build.h"

#include <linux/signal.h>

#include "runtime/translate/stops.h"
#include "runtime/translate/tables.h"

/* When a fragment is long enough. */
enum { MAX_INSNS = 96, MAX_EXITS = 12, MAX_ENTRIES = 16 };

/* Of code that is gone through once before an overflow, most is for nothing. */
enum { MAX_INSNS_FINE = 24 };

_Static_assert(MAX_INSNS <= sizeof((struct draft){0}.insns) / sizeof(struct position), "");
_Static_assert(MAX_EXITS <= sizeof((struct lists){0}.thunks) / sizeof(struct thunk), "");

/* The most that one instruction, its thunk and the jump at the end may become, with slack for wide
 * copies. */
#define INSN_BYTES  192
#define THUNK_BYTES 40

/* ---- entries and pages ---- */

struct entry *add_entry(struct builder *b, uint64_t pc, uint32_t body, unsigned int level)
{
	struct entry *entry = &b->cache->lookup.entries[b->cache->nr_entries];

	cache_set_level(b->cache, b->cache->nr_entries++, level);
	b->fragment->nr_entries++;
	*entry = (struct entry){
		.pc = pc,
		.body = body,
	};
	return entry;
}

bool has_page(const struct builder *b, uint64_t page)
{
	for (unsigned int i = 0; i < b->nr_pages; i++)
		if (b->pages[i] == page)
			return true;
	return false;
}

bool take_page(struct builder *b, uint64_t page)
{
	if (has_page(b, page))
		return true;
	if (b->nr_pages == KEPT_PAGES || !kept_reaches(b->fragment, page))
		return false;
	if (b->range.writable && !(b->fragment->flags & (FRAGMENT_STEP | FRAGMENT_CHECKED))) {
		if (cache_is_hot(b->cache, page))
			return false;
		memory_watch(page << PAGE_SHIFT, (page + 1) << PAGE_SHIFT);
	}
	b->pages[b->nr_pages++] = page;
	return true;
}

/* Reads the instruction at b->pc, once the pages that it comes from are watched. */
static bool next_insn(struct builder *b, struct build_fault *fault)
{
	const uint64_t page = b->pc >> PAGE_SHIFT;
	struct code_range beyond;

	if (!take_page(b, page) || !fetch(b, fault))
		return false;
	if ((b->pc + b->insn.length - 1) >> PAGE_SHIFT == page)
		return true;
	/* It goes over the border: what was read there may have changed before it was watched, and
	 * may be writable where what is before it is not. */
	if (b->pc + b->insn.length > b->range.end && !memory_code(b->range.end, &beyond))
		b->range.writable |= beyond.writable;
	return take_page(b, page + 1) && fetch(b, fault);
}

/* ---- fragments ---- */

/* Whether to go on at the target of a direct jump instead of jumping. */
static bool worth_following(const struct builder *b, uint64_t target)
{
	return target > b->pc && target < b->range.end && !b->range.writable &&
	       !cache_find(b->cache, target);
}

/* One instruction always fits. */
static bool full(const struct builder *b)
{
	const uint32_t bytes = offset_here(b) - b->fragment->start + count_bytes(b) +
			       trace_bytes(b) + filter_bytes(b);

	return b->nr_insns >= b->limit ||
	       (b->nr_insns &&
		(b->nr_exits + b->nr_thunks + b->count.due.nr_late >= MAX_EXITS ||
		 b->fragment->nr_entries >= MAX_ENTRIES || !count_room(b) || !filter_room(b) ||
		 bytes > FRAGMENT_BYTES - 3 * INSN_BYTES - MAX_EXITS * THUNK_BYTES));
}

/* The fragment ends right behind a call after all: what was an entry only stands for the pad. The
 * first entry stays, also of a fragment that is nothing but the jump at its end. */
static void retract_entry(const struct builder *b)
{
	struct entry *last = &b->cache->lookup.entries[b->cache->nr_entries - 1];

	if (b->fragment->nr_entries > 1 && last->body == offset_here(b))
		last->body = 0;
}

/*
 * Behind a call: the pad of the return leads to what follows. If that is there already the fragment
 * ends, and the entry made here only stands for the pad.
 */
static bool behind_call(struct builder *b)
{
	const bool known = cache_find(b->cache, b->pc);

	count_returned(b);
	add_entry(b, b->pc, known ? 0 : offset_here(b), b->count.gone)->pad = b->pad;
	return !known;
}

/* After the instruction that emit_insn() has dealt with: whether to go on at b->pc. */
static bool worth_going_on(struct builder *b, uint8_t class)
{
	switch (class) {
	case INSN_JCC:
		return !cache_find(b->cache, b->pc);
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		return behind_call(b);
	}
	return true;
}

static bool is_entry_here(const struct builder *b, uint32_t id)
{
	const struct entry *entry = &b->cache->lookup.entries[id];

	return entry->pc == b->pc && entry->body == offset_here(b);
}

/* A call site has one pad, so that the processor's prediction and the table agree: whoever comes by
 * another way jumps to it. */
static bool known_call(struct builder *b)
{
	const uint32_t last = b->cache->nr_entries - 1;

	if (!insn_is_call(&b->insn))
		return false;
	if (cache_find(b->cache, b->pc))
		return true;
	if (is_entry_here(b, last)) { /* it comes right behind another call */
		cache_set_level(b->cache, last, count_level(b));
		return false;
	}
	/* Amid a segment it gets its body with what comes late. */
	add_entry(b, b->pc, b->count.due.open ? 0 : offset_here(b), count_level(b));
	return false;
}

static bool is_stop(const struct cache *cache, uint64_t pc)
{
	return cache_stops(cache) && stops_has(pc);
}

/* Who has stopped goes on behind it. */
static void emit_stop(struct builder *b)
{
	if (!(b->fragment->flags & FRAGMENT_STOP))
		return;
	mark_pc(b, b->pc, 0);
	emit_exit_jump(b, b->pc, EXIT_STOP);
	b->fragment->behind_stop = (uint16_t)(offset_here(b) - b->fragment->start);
	mark_not_begun(b);
}

/*
 * The next instruction of a new fragment. Anything that it decides on more than the instruction
 * ends the fragment before or after it, so that a rehearsal needs to know their number only.
 */
static enum next build_next(struct builder *b, struct build_fault *fault)
{
	uint8_t class;
	bool last = false;
	enum next next;

	if (full(b) || (b->nr_insns && is_stop(b->cache, b->pc)) || !next_insn(b, fault))
		return STOP;
	class = b->insn.class;
	count_entry(b);
	trace_entry(b);
	if (b->nr_insns && !(b->fragment->flags & FRAGMENT_CHECKED) && known_call(b))
		return STOP;
	if (class == INSN_JMP)
		last = !worth_following(b, insn_target(&b->insn, b->pc));
	next = emit_insn(b);
	return next == GO_ON && (last || !worth_going_on(b, class)) ? STOP : next;
}

/* Behind the last instruction: the one way in which fragments end that do not end in a branch. */
static void emit_end(struct builder *b, enum next next)
{
	count_close(b, next != STOPPED);
	trace_close(b);
	if (next != STOPPED) {
		trace_leave(b);
		mark_pc(b, b->pc, 0);
		emit_exit_jump(b, b->pc,
			       b->fragment->flags & FRAGMENT_STEP ? EXIT_STEP : EXIT_LINK);
	}
}

/* What the fragment begins with: puts into @entry where that is. */
static void emit_arrival(struct builder *b, struct entry *entry)
{
	if (b->fragment->flags & FRAGMENT_LANDING)
		entry->landing = emit_landing(b, b->pc);
	if (b->fragment->flags & FRAGMENT_PAD)
		entry->pad = emit_pad(b, b->pc);
}

/* Whether the first instruction may be on a page that is not watched. */
static bool begins_hot(const struct builder *b, uint64_t pc)
{
	const uint64_t last = pc + INSN_MAX - 1;

	if (b->range.writable && cache_is_hot(b->cache, pc >> PAGE_SHIFT))
		return true;
	return (b->range.writable || last >= b->range.end) &&
	       cache_is_hot(b->cache, last >> PAGE_SHIFT);
}

static unsigned int most_insns(const struct cache *cache)
{
	if (cache_counts_in_vectors(cache))
		return COUNT_INSNS - 1;
	return cache->does.extras & INSTRUMENT_FINE ? MAX_INSNS_FINE : MAX_INSNS;
}

/* Begins a fragment at the end of the arrays; nobody knows it until it is published. */
static bool begin(struct builder *b, uint64_t pc, unsigned int flags, struct build_fault *fault)
{
	struct fragment *f = &b->cache->fragments[b->cache->nr_fragments];
	const int code = memory_code(pc, &b->range);

	if (code) {
		*fault = (struct build_fault){SIGSEGV, code, pc};
		return false;
	}
	b->cache->code_next = (b->cache->code_next + 15) & ~15u;
	b->at = b->cache->lookup.code + b->cache->code_next;
	b->pc = b->source_end = pc;
	b->limit = most_insns(b->cache);
	b->fragment = f;
	if (!(flags & FRAGMENT_STEP) && begins_hot(b, pc))
		flags |= FRAGMENT_CHECKED;
	flags |= filter_flags(b->cache, pc);
	*f = (struct fragment){
		.pc = pc,
		.start = b->cache->code_next,
		.entries = b->cache->nr_entries,
		.flags = flags,
	};
	return true;
}

/* For rehearsals. What the fragment was made from is there later, but where that may change. */
static void keep(const struct builder *b)
{
	struct fragment *f = b->fragment;

	if (b->range.writable)
		f->flags |= FRAGMENT_SOURCE;
	kept_put(b->cache, f,
		 &(struct kept){
			 .pages = b->pages,
			 .nr_pages = b->nr_pages,
			 .marks = b->marks,
			 .source = (const uint8_t *)f->pc,
			 .source_size = (uint16_t)(b->source_end - f->pc),
		 });
}

/* No way leads on but by the dispatcher. */
static void cut_links(struct builder *b)
{
	for (unsigned int i = 0; i < b->nr_exits; i++)
		if (b->draft->exits[i].to.kind == EXIT_LINK)
			b->draft->exits[i].to.kind = EXIT_STEP;
}

static void end(struct builder *b)
{
	struct fragment *f = b->fragment;

	emit_out_of_line(b);
	count_late(b);
	trace_late(b);
	filter_late(b);
	if (cache_is_slow(b->cache))
		cut_links(b);
	targets_add(b);
	f->nr_insns = b->nr_insns;
	f->size = (uint16_t)(offset_here(b) - f->start);
	keep(b);
	b->cache->code_next = offset_here(b);
	b->cache->nr_fragments++;
	cache_publish(b->cache, f, b->draft->exits, b->nr_exits);
}

/* Gives an entry the landing or pad that it lacks, in a fragment of its own. */
static void add_arrival(struct cache *cache, uint32_t id, enum arrival arrival)
{
	struct entry *e = &cache->lookup.entries[id], with;
	struct draft draft;
	struct lists lists;
	struct builder b = {.cache = cache, .draft = &draft, .lists = &lists};

	if (arrival == ARRIVE_DIRECT || (arrival == ARRIVE_JUMP ? e->landing : e->pad))
		return;
	if (!begin(&b, e->pc, arrival == ARRIVE_JUMP ? FRAGMENT_LANDING : FRAGMENT_PAD,
		   &(struct build_fault){0}))
		return;
	take_page(&b, b.pc >> PAGE_SHIFT);
	with = *e;
	emit_arrival(&b, &with);
	emit_end(&b, STOP);
	end(&b);
	/* Other threads find it here, so only now. */
	e->landing = with.landing;
	e->pad = with.pad;
}

/* Makes a fragment, up to what comes behind its instructions. */
static enum next build_fragment(struct builder *b, struct late *late, struct build_fault *fault)
{
	struct entry *entry = add_entry(b, b->pc, 0, 0);
	enum next next = GO_ON;

	emit_arrival(b, entry);
	entry->body = offset_here(b);
	if (b->fragment->flags & FRAGMENT_CHECKED) {
		if (plan_check(b, fault))
			emit_check(b);
		else
			next = STOP;
	}
	if (cache_is_slow(b->cache) && b->limit > 1)
		b->limit = 1;
	count_start(b, late);
	cache_set_level(b->cache, (uint32_t)(entry - b->cache->lookup.entries), b->count.gone);
	trace_start(b);
	emit_stop(b);
	while (next == GO_ON)
		next = build_next(b, fault);
	return next;
}

/* The heads of loops are known when their ends have been seen: then the fragment is made anew. */
static bool begin_again(struct builder *b, uint64_t pc, unsigned int flags,
			struct build_fault *fault)
{
	const unsigned int exits = b->nr_exits;

	b->cache->nr_entries = b->fragment->entries;
	*b = (struct builder){.cache = b->cache, .draft = b->draft, .lists = b->lists};
	for (unsigned int i = 0; i < exits; i++)
		count_target(b, b->draft->exits[i].to.pc);
	return begin(b, pc, flags, fault);
}

uint32_t build(struct cache *cache, uint64_t pc, enum arrival arrival, struct build_fault *fault)
{
	static const uint8_t arrivals[] = {0, FRAGMENT_LANDING, FRAGMENT_PAD};
	const unsigned int flags = arrivals[arrival] | (is_stop(cache, pc) ? FRAGMENT_STOP : 0);
	struct draft draft;
	struct lists lists;
	uint32_t id = cache_find(cache, pc);
	struct builder b = {.cache = cache, .draft = &draft, .lists = &lists};
	struct late late[LATE_MAX];
	enum next next;

	if (id) {
		add_arrival(cache, id, arrival);
		return id;
	}
	if (!begin(&b, pc, flags, fault))
		return 0;
	id = cache->nr_entries;
	next = build_fragment(&b, late, fault);
	if (targets_lack(&b)) {
		if (!begin_again(&b, pc, flags, fault))
			return 0;
		next = build_fragment(&b, late, fault);
	}
	if (!b.nr_insns) {
		cache->nr_entries = b.fragment->entries;
		return 0;
	}
	if (next != STOPPED)
		retract_entry(&b);
	emit_end(&b, next);
	end(&b);
	return id;
}

uint32_t build_step(struct cache *cache, uint64_t pc, struct build_fault *fault)
{
	struct draft draft;
	struct lists lists;
	struct builder b = {.cache = cache, .draft = &draft, .lists = &lists};
	struct late late[LATE_MAX];

	if (!begin(&b, pc, FRAGMENT_STEP, fault) || !next_insn(&b, fault))
		return 0;
	count_start(&b, late);
	trace_start(&b);
	emit_end(&b, emit_insn(&b));
	end(&b);
	return b.fragment->start;
}

struct state rehearse(struct cache *cache, const struct fragment *fragment, uint64_t address,
		      uint8_t *buffer)
{
	struct fragment f = *fragment;
	struct lists lists;
	struct builder b = {
		.cache = cache,
		.lists = &lists,
		.at = buffer,
		.shift = (intptr_t)(cache->lookup.code + f.start) - (intptr_t)buffer,
		.pc = f.pc,
		.fragment = &f,
		.asked = address,
		.state = {.pc = f.pc, .counts.vectors = COUNT_VECTORS},
	};
	struct late late[LATE_MAX];
	enum next next = GO_ON;

	b.copy = kept_source(cache, &f, &b.copied);
	kept_marks(cache, &f, b.marks);
	emit_arrival(&b, &(struct entry){0});
	if (f.checked)
		emit_check(&b);
	count_start(&b, late);
	trace_start(&b);
	emit_stop(&b);
	while (b.nr_insns < f.nr_insns && here(&b) <= address) {
		if (!fetch(&b, &(struct build_fault){0}))
			return b.state;
		count_entry(&b);
		trace_entry(&b);
		next = emit_insn(&b);
	}
	if (here(&b) <= address)
		emit_end(&b, next);
	emit_out_of_line(&b);
	count_late(&b);
	trace_late(&b);
	filter_late(&b);
	return b.likewise ? rehearse(cache, fragment, b.likewise, buffer) : b.state;
}

void fill_tables(struct cache *cache, enum arrival arrival, uint32_t id)
{
	const struct entry *entry = &cache->lookup.entries[id];

	if (arrival == ARRIVE_JUMP && entry->landing)
		tables_set(cache, TABLE_JUMPS, entry);
	if (arrival == ARRIVE_RETURN && entry->pad)
		tables_set(cache, TABLE_RETURNS, entry);
}
