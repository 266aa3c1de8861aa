/* SPDX-License-Identifier: MIT */
/*
 * The parser of event names: what its files share.
 *
 *	parse.c		lists and groups; decides what kind of event a text is
 *	modifiers.c	the letters behind the last ':'
 *	terms.c		/term=value,.../ and the terms that every event takes
 *	plain.c, pmu.c, tracepoint.c, breakpoint.c, probe.c, vendor.c	one kind of event each
 */
#ifndef LIB_EVENT_PARSE_H
#define LIB_EVENT_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/event/list.h"
#include "lib/event/roots.h"

/* A piece of the text being parsed. */
struct tly_span {
	const char *at;
	size_t length;
};

#define TLY_SPAN(s) (int)(s).length, (s).at /* for "%.*s" */

struct tly_span tly_span_of(const char *text);
bool tly_span_is(struct tly_span span, const char *word);

struct tly_pmu;

struct tly_parse {
	struct tally_events *events;
	const struct tly_roots *roots;
	const char *text;
	struct tally_error *err; /* never NULL */
	struct tly_pmu *cores;	 /* as tly_pmu_cores() has it */
	int nr_cores;		 /* -1: not looked for yet */
};

/* As tly_error(), with the position of @at in the text. */
int tly_parse_error(struct tly_parse *parse, int code, const char *at, const char *what, ...)
	__attribute__((format(printf, 4, 5)));
int tly_parse_no_memory(struct tly_parse *parse);

struct tly_term {
	struct tly_span name;
	struct tly_span value; /* length 0 when there is none */
	bool has_value;
	bool is_number;
	uint64_t number; /* 1 when there is no value */
};

struct tly_terms {
	struct tly_term *terms;
	size_t nr;
};

/*
 * Parses "term[=value],..." up to a '/' or the end of the text, which *@cursor then points to. The
 * terms point into the text. Release with tly_terms_free(), also after an error.
 */
int tly_terms_parse(struct tly_parse *parse, const char **cursor, struct tly_terms *terms);
void tly_terms_free(struct tly_terms *terms);

/*
 * Applies a term that any event takes (period, freq, name, call-graph, config...). Returns 1 when
 * it was one, 0 when it is none, or a negative errno.
 */
int tly_term_apply(struct tly_parse *parse, struct tly_event *event, const struct tly_term *term);

/* Decimal or 0x hexadecimal, all of it; false when it is not, or does not fit. */
bool tly_number(struct tly_span text, uint64_t *value);
/* "r1a2": hexadecimal behind an r. */
bool tly_raw_config(struct tly_span word, uint64_t *config);

/* Appends an event of a kind that counts on the processors: guests are left out. */
struct tly_event *tly_parse_add(struct tly_parse *parse, uint32_t type, uint64_t config,
				struct tly_span name);

/* tally_events_parse() with the machine's files elsewhere. */
int tly_events_parse(struct tally_events *events, const char *text, const struct tly_roots *roots,
		     struct tally_error *err);

#endif
