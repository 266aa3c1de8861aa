// SPDX-License-Identifier: MIT
#include "tool/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/lookup.h"
#include "tool/memory.h"

static const struct {
	const char *name;
	enum key key;
} key_names[] = {
	{"comm", KEY_COMM},   {"pid", KEY_PID},	     {"tid", KEY_TID},	  {"cpu", KEY_CPU},
	{"event", KEY_EVENT}, {"dso", KEY_DSO},	     {"sym", KEY_SYM},	  {"srcline", KEY_SRCLINE},
	{"symbol", KEY_SYM},  {"command", KEY_COMM}, {"thread", KEY_TID},
};

bool keys_parse(struct keys *keys, const char *text, const char **bad, size_t *bad_length)
{
	*keys = (struct keys){0};
	for (const char *word = text;; word++) {
		size_t length = strcspn(word, ",");
		size_t i;

		for (i = 0; i < sizeof(key_names) / sizeof(key_names[0]); i++)
			if (strlen(key_names[i].name) == length &&
			    !strncmp(key_names[i].name, word, length))
				break;
		if (i == sizeof(key_names) / sizeof(key_names[0])) {
			*bad = word;
			*bad_length = length;
			return false;
		}
		if (!keys_have(keys, key_names[i].key))
			keys->key[keys->nr++] = key_names[i].key;
		word += length;
		if (!*word)
			return true;
	}
}

bool keys_have(const struct keys *keys, enum key key)
{
	for (size_t i = 0; i < keys->nr; i++)
		if (keys->key[i] == key)
			return true;
	return false;
}

const char *key_name(enum key key)
{
	for (size_t i = 0; i < sizeof(key_names) / sizeof(key_names[0]); i++)
		if (key_names[i].key == key)
			return key_names[i].name;
	return "";
}

struct bucket {
	uint32_t chain;
	uint32_t comm, pid, tid, cpu;
	uint32_t event;
	uint64_t period, samples;
};

struct profile {
	struct session *session;
	struct keys keys;
	bool have[NR_KEYS];
	struct chains *chains;

	struct bucket *buckets;
	size_t nr, room;
	struct lookup lookup;

	const char **comms;
	size_t nr_comms, comms_room;
	struct lookup by_comm;
	uint32_t last_comm;

	struct profile_total *totals;
	size_t nr_events;
};

struct profile *profile_new(struct session *session, const struct keys *keys)
{
	struct profile *profile = tool_alloc(1, sizeof(*profile));

	profile->session = session;
	profile->keys = *keys;
	for (size_t i = 0; i < keys->nr; i++)
		profile->have[keys->key[i]] = true;
	profile->chains = chains_new(session);
	profile->nr_events = tally_perfdata_events(session->reader);
	profile->totals = tool_alloc(profile->nr_events, sizeof(*profile->totals));
	return profile;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	chains_free(profile->chains);
	lookup_free(&profile->lookup);
	lookup_free(&profile->by_comm);
	free(profile->comms);
	free(profile->buckets);
	free(profile->totals);
	free(profile);
}

/* ---- samples to buckets ---- */

static bool comm_equal(const void *owner, uint32_t index, const void *key)
{
	return !strcmp(((const struct profile *)owner)->comms[index], key);
}

static uint32_t number_comm(struct profile *profile, const char *comm)
{
	uint32_t hash, index;

	/* Most samples are of the thread of the one before. */
	if (profile->last_comm < profile->nr_comms && profile->comms[profile->last_comm] == comm)
		return profile->last_comm;
	hash = lookup_hash_text(comm);
	index = lookup_find(&profile->by_comm, hash, comm_equal, profile, comm);
	if (index == LOOKUP_NONE) {
		index = profile->nr_comms++;
		profile->comms = tool_grow(profile->comms, &profile->comms_room, profile->nr_comms,
					   sizeof(char *));
		profile->comms[index] = comm;
		lookup_add(&profile->by_comm, hash, index);
	}
	profile->last_comm = index;
	return index;
}

static bool bucket_equal(const void *owner, uint32_t index, const void *key)
{
	const struct bucket *bucket = &((const struct profile *)owner)->buckets[index];
	const struct bucket *wanted = key;

	return bucket->chain == wanted->chain && bucket->comm == wanted->comm &&
	       bucket->pid == wanted->pid && bucket->tid == wanted->tid &&
	       bucket->cpu == wanted->cpu && bucket->event == wanted->event;
}

void profile_add(struct profile *profile, const struct session_item *item, bool chain)
{
	const uint64_t *words;
	size_t nr = session_stack(profile->session, item, true, &words);
	struct bucket wanted = {.event = item->event};
	uint32_t index;

	if (!chain && nr > 2)
		nr = 2; /* a marker and the address */
	wanted.chain = chains_find(profile->chains, item, words, nr);
	if (profile->have[KEY_COMM])
		wanted.comm = number_comm(profile, item->comm);
	if (profile->have[KEY_PID])
		wanted.pid = item->pid;
	if (profile->have[KEY_TID])
		wanted.tid = item->tid;
	if (profile->have[KEY_CPU])
		wanted.cpu = item->record->id.cpu;

	uint64_t parts[] = {(uint64_t)wanted.chain << 32 | wanted.comm,
			    (uint64_t)wanted.pid << 32 | wanted.tid,
			    (uint64_t)wanted.cpu << 32 | wanted.event};
	uint32_t hash = lookup_hash_words(0, parts, 3);

	index = lookup_find(&profile->lookup, hash, bucket_equal, profile, &wanted);
	if (index == LOOKUP_NONE) {
		index = profile->nr++;
		profile->buckets = tool_grow(profile->buckets, &profile->room, profile->nr,
					     sizeof(*profile->buckets));
		profile->buckets[index] = wanted;
		lookup_add(&profile->lookup, hash, index);
	}
	profile->buckets[index].period += item->period;
	profile->buckets[index].samples++;
	profile->totals[item->event].period += item->period;
	profile->totals[item->event].samples++;
}

struct profile_total profile_total(const struct profile *profile, size_t event)
{
	struct profile_total sum = {0};

	for (size_t i = 0; i < profile->nr_events; i++) {
		if (event != SIZE_MAX && event != i)
			continue;
		sum.samples += profile->totals[i].samples;
		sum.period += profile->totals[i].period;
	}
	return sum;
}

/* ---- buckets to rows ---- */

struct builder {
	struct profile *profile;
	struct table *table;
	struct lookup lookup;
	size_t room, nr_uses, uses_room;
	unsigned int flags;
};

static uint32_t hash_row(const struct row *row)
{
	uint64_t words[NR_KEYS / 2];

	_Static_assert(sizeof(words) == sizeof(row->value), "an even number of keys");
	memcpy(words, row->value, sizeof(words));
	return lookup_hash_words(0, words, NR_KEYS / 2);
}

static bool row_equal(const void *owner, uint32_t index, const void *key)
{
	const struct row *row = &((const struct builder *)owner)->table->rows[index];

	return !memcmp(row->value, ((const struct row *)key)->value, sizeof(row->value));
}

static struct row *find_row(struct builder *builder, const struct row *wanted)
{
	struct table *table = builder->table;
	uint32_t hash = hash_row(wanted);
	uint32_t index = lookup_find(&builder->lookup, hash, row_equal, builder, wanted);

	if (index == LOOKUP_NONE) {
		index = table->nr++;
		table->rows =
			tool_grow(table->rows, &builder->room, table->nr, sizeof(*table->rows));
		table->rows[index] = *wanted;
		lookup_add(&builder->lookup, hash, index);
	}
	return &table->rows[index];
}

static void set_place(const struct profile *profile, struct row *row, uint32_t function,
		      uint32_t source)
{
	if (profile->have[KEY_DSO])
		row->value[KEY_DSO] = places_function(profile->session->places, function)->dso;
	if (profile->have[KEY_SYM])
		row->value[KEY_SYM] = function;
	if (profile->have[KEY_SRCLINE])
		row->value[KEY_SRCLINE] = source;
}

static void add_total(struct builder *builder, const struct row *wanted, uint32_t bucket,
		      uint32_t frame)
{
	const struct bucket *b = &builder->profile->buckets[bucket];
	struct table *table = builder->table;
	struct row *row = find_row(builder, wanted);

	if (row->last_bucket == bucket)
		return;
	row->last_bucket = bucket;
	row->total += b->period;
	row->total_nr += b->samples;
	if (!(builder->flags & TABLE_USES) || builder->nr_uses == NO_USE)
		return;
	table->uses = tool_grow(table->uses, &builder->uses_room, builder->nr_uses + 1,
				sizeof(*table->uses));
	table->uses[builder->nr_uses] = (struct use){bucket, frame, row->first_use};
	row->first_use = builder->nr_uses++;
}

static void add_bucket(struct builder *builder, uint32_t index)
{
	struct profile *profile = builder->profile;
	const struct places *places = profile->session->places;
	const struct bucket *bucket = &profile->buckets[index];
	struct row wanted = {.last_bucket = UINT32_MAX, .first_use = NO_USE};
	size_t nr, nr_leaf;
	const uint32_t *frames = chains_frames(profile->chains, bucket->chain, &nr, &nr_leaf);
	struct row *self;

	wanted.value[KEY_COMM] = bucket->comm;
	wanted.value[KEY_PID] = bucket->pid;
	wanted.value[KEY_TID] = bucket->tid;
	wanted.value[KEY_CPU] = bucket->cpu;
	if (profile->have[KEY_EVENT])
		wanted.value[KEY_EVENT] = bucket->event;
	for (size_t i = nr_leaf; i < nr; i++)
		if (chains_is_stray(places, frames[i])) {
			builder->table->strays += bucket->samples;
			break;
		}
	if (nr && (builder->flags & TABLE_CHILDREN)) {
		for (size_t i = 0; i < nr; i++) {
			size_t at = builder->flags & TABLE_OUTERMOST ? nr - 1 - i : i;
			const struct frame *frame = places_frame(places, frames[at]);

			/* No caller: nothing is known of it, not even that it is one. */
			if (chains_is_stray(places, frames[at]))
				continue;
			set_place(profile, &wanted, frame->function, frame->source);
			add_total(builder, &wanted, index, at);
		}
	}
	/* The hit is the function's that is really there, on the line of what was inlined. */
	if (nr)
		set_place(profile, &wanted, places_frame(places, frames[nr_leaf - 1])->function,
			  places_frame(places, frames[0])->source);
	add_total(builder, &wanted, index, 0);
	self = find_row(builder, &wanted);
	self->self += bucket->period;
	self->self_nr += bucket->samples;
}

/* ---- order ---- */

struct order {
	const struct profile *profile;
	bool by_total;
};

const char *profile_key_text(const struct profile *profile, enum key key, uint32_t value,
			     char scratch[KEY_TEXT_SIZE])
{
	const struct places *places = profile->session->places;

	switch (key) {
	case KEY_COMM:
		return value < profile->nr_comms ? profile->comms[value] : "";
	case KEY_EVENT:
		return tally_perfdata_event(profile->session->reader, value)->name;
	case KEY_DSO:
		return places_dso_name(places, value);
	case KEY_SYM:
		return places_function(places, value)->name;
	case KEY_SRCLINE:
		return places_source(places, value);
	default:
		snprintf(scratch, KEY_TEXT_SIZE, "%d", (int)value);
		return scratch;
	}
}

/* Greatest first; among equals by name, so that one file always gives one report. */
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct row *x = a, *y = b;
	const struct order *order = context;
	const struct keys *keys = &order->profile->keys;

	if (order->by_total && x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	for (size_t i = 0; i < keys->nr; i++) {
		char scratch[2][KEY_TEXT_SIZE];
		uint32_t left = x->value[keys->key[i]], right = y->value[keys->key[i]];
		int difference;

		if (left == right)
			continue;
		difference =
			strcmp(profile_key_text(order->profile, keys->key[i], left, scratch[0]),
			       profile_key_text(order->profile, keys->key[i], right, scratch[1]));
		return difference ? difference : left < right ? -1 : 1;
	}
	return 0;
}

struct table *profile_table(struct profile *profile, size_t event, unsigned int flags)
{
	struct builder builder = {
		.profile = profile,
		.table = tool_alloc(1, sizeof(struct table)),
		.flags = flags,
	};
	struct order order = {profile, flags & TABLE_CHILDREN};

	for (size_t i = 0; i < profile->nr; i++)
		if (event == SIZE_MAX || profile->buckets[i].event == event)
			add_bucket(&builder, i);
	lookup_free(&builder.lookup);
	if (builder.table->nr)
		qsort_r(builder.table->rows, builder.table->nr, sizeof(struct row), compare_rows,
			&order);
	return builder.table;
}

void table_free(struct table *table)
{
	free(table->rows);
	free(table->uses);
	free(table);
}

const struct places *profile_places(const struct profile *profile)
{
	return profile->session->places;
}

size_t profile_buckets(const struct profile *profile)
{
	return profile->nr;
}

struct bucket_view profile_bucket(struct profile *profile, uint32_t index)
{
	const struct bucket *bucket = &profile->buckets[index];
	struct bucket_view view = {
		.event = bucket->event,
		.period = bucket->period,
		.samples = bucket->samples,
		.comm = bucket->comm < profile->nr_comms ? profile->comms[bucket->comm] : "",
	};
	size_t nr_leaf;

	view.frames = chains_frames(profile->chains, bucket->chain, &view.nr_frames, &nr_leaf);
	return view;
}
