/* SPDX-License-Identifier: MIT */
/*
 * A profile: the samples of a recording, added up by what they have in common, then by what is
 * asked for.
 *
 *	samples -> buckets	one for each (event, thread, processor, chain) that differs
 *	buckets -> rows		one for each combination of the sort keys
 *
 * There are few buckets, so rows and call trees can be made from them again and again.
 */
#ifndef TOOL_PROFILE_H
#define TOOL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/chains.h"
#include "tool/session.h"

enum key {
	KEY_COMM,
	KEY_PID,
	KEY_TID,
	KEY_CPU,
	KEY_EVENT,
	KEY_DSO,
	KEY_SYM,
	KEY_SRCLINE,
	NR_KEYS,
};

struct keys {
	enum key key[NR_KEYS];
	size_t nr;
};

/* "comm,dso,sym" and perf's names for them. On failure *@bad is the word that is no key. */
bool keys_parse(struct keys *keys, const char *text, const char **bad, size_t *bad_length);
bool keys_have(const struct keys *keys, enum key key);
/* What JSON and --sort call it. */
const char *key_name(enum key key);

struct profile;

struct profile *profile_new(struct session *session, const struct keys *keys);
void profile_free(struct profile *profile);
/* @chain: keep the whole call chain, else only where the sample hit. */
void profile_add(struct profile *profile, const struct session_item *item, bool chain);

struct profile_total {
	uint64_t samples, period;
};
/* What was added of @event; SIZE_MAX: of all events. */
struct profile_total profile_total(const struct profile *profile, size_t event);

/* The value of each key, as a number that only profile_key_text() explains. */
struct row {
	uint64_t self, total;	    /* periods: hit here, and hit here or in what it called */
	uint64_t self_nr, total_nr; /* samples */
	uint32_t value[NR_KEYS];    /* by key, 0 where it is not asked for */
	uint32_t last_bucket;	    /* guards against counting a recursion twice */
	uint32_t first_use;	    /* in table->uses */
};

#define NO_USE UINT32_MAX

/* A chain that a row is part of. */
struct use {
	uint32_t bucket;
	uint32_t frame; /* where in the chain */
	uint32_t next;	/* the row's next use, or NO_USE */
};

struct table {
	struct row *rows; /* sorted, the greatest first */
	size_t nr;
	struct use *uses; /* when asked for */
	uint64_t strays;  /* samples whose callers are not all known: chains_is_stray() */
};

/* profile_table() flags */
#define TABLE_CHILDREN	(1u << 0) /* rows also for callers; sorted by total */
#define TABLE_USES	(1u << 1) /* fill in uses, for call trees */
#define TABLE_OUTERMOST (1u << 2) /* of a recursion, the use that is the outermost call */

/* The rows of @event, SIZE_MAX: of all. */
struct table *profile_table(struct profile *profile, size_t event, unsigned int flags);
void table_free(struct table *table);

/* A row's value of @key as text; a number is written to @scratch. */
#define KEY_TEXT_SIZE 24
const char *profile_key_text(const struct profile *profile, enum key key, uint32_t value,
			     char scratch[KEY_TEXT_SIZE]);
const struct places *profile_places(const struct profile *profile);

/* One bucket, for what is made of chains. */
struct bucket_view {
	size_t event;
	uint64_t period, samples;
	const char *comm;
	const uint32_t *frames; /* as chains_frames() */
	size_t nr_frames;
};
struct bucket_view profile_bucket(struct profile *profile, uint32_t bucket);
size_t profile_buckets(const struct profile *profile);

#endif
