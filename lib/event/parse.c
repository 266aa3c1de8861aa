// SPDX-License-Identifier: MIT
/*
 * A recursive descent over the text, with one function for each rule:
 *
 *	list	  = item { "," item }
 *	item	  = [ name ] "{" event { "," event } "}" [ suffix ]  |  event
 *	event	  = "mem:" address [ "/" length ] [ ":" access ] [ suffix ]
 *		  | ("kprobe:" | "kretprobe:" | "uprobe:" | "uretprobe:") place [ suffix ]
 *		  | number ":" number [ terms ] [ suffix ]
 *		  | word ":" word [ terms ] [ suffix ]
 *		  | [ word "::" ] word { ( ":" | "." ) word [ "=" value ] } [ terms ] [ suffix ]
 *		  | word [ terms ] [ suffix ]
 *	suffix	  = ":" modifiers
 *	terms	  = "/" [ term { "," term } ] "/"
 *
 * The ':' before modifiers may be left out behind terms. White space is allowed around an event.
 */
#include "lib/event/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/event/breakpoint.h"
#include "lib/event/modifiers.h"
#include "lib/event/plain.h"
#include "lib/event/pmu_event.h"
#include "lib/event/probe.h"
#include "lib/event/tracepoint.h"
#include "lib/event/vendor.h"

struct tly_span tly_span_of(const char *text)
{
	return (struct tly_span){text, strlen(text)};
}

bool tly_span_is(struct tly_span span, const char *word)
{
	return strlen(word) == span.length && !memcmp(span.at, word, span.length);
}

int tly_parse_error(struct tly_parse *parse, int code, const char *at, const char *what, ...)
{
	char text[sizeof(parse->err->what)];
	va_list ap;

	va_start(ap, what);
	vsnprintf(text, sizeof(text), what, ap);
	va_end(ap);
	tly_error(parse->err, code, "%s", text);
	tly_error_at(parse->err, at - parse->text);
	return code;
}

int tly_parse_no_memory(struct tly_parse *parse)
{
	return tly_error(parse->err, -ENOMEM, "out of memory");
}

struct tly_event *tly_parse_add(struct tly_parse *parse, uint32_t type, uint64_t config,
				struct tly_span name)
{
	struct tly_event *event = tly_events_add(parse->events, type);

	if (!event)
		return NULL;
	event->attr.attr.config = config;
	event->attr.attr.exclude_guest = 1;
	event->event.name = tly_event_string(event, name.at, name.length);
	return event->event.name ? event : NULL;
}

/* Events */

static bool ends_word(char c)
{
	return !c || isspace((unsigned char)c) || strchr("/:,{}", c);
}

static struct tly_span take_word(const char **cursor)
{
	struct tly_span word = {.at = *cursor};

	while (!ends_word(**cursor))
		++*cursor;
	word.length = *cursor - word.at;
	return word;
}

static void skip_space(const char **cursor)
{
	while (isspace((unsigned char)**cursor))
		++*cursor;
}

/* What stands between an event's own text and its modifiers: its terms. */
static int parse_terms(struct tly_parse *parse, const char **cursor, struct tly_terms *terms)
{
	const char *open = *cursor;
	int ret;

	++*cursor;
	ret = tly_terms_parse(parse, cursor, terms);
	if (ret)
		return ret;
	if (**cursor != '/')
		return tly_parse_error(parse, -EINVAL, open, "the '/' of the terms is not closed");
	++*cursor;
	return 0;
}

static int apply_common_terms(struct tly_parse *parse, size_t first, const struct tly_terms *terms)
{
	for (size_t i = first; i < parse->events->nr; i++)
		for (size_t j = 0; j < terms->nr; j++) {
			const struct tly_term *term = &terms->terms[j];
			int ret = tly_term_apply(parse, parse->events->events[i], term);

			if (ret < 0)
				return ret;
			if (!ret) {
				tly_parse_error(
					parse, -EINVAL, term->name.at, "'%s' takes no term '%.*s'",
					parse->events->events[i]->event.name, TLY_SPAN(term->name));
				return tly_error_remedy(
					parse->err,
					"its terms are period, freq, name, call-graph, stack-size, "
					"max-stack, config, config1, config2, config3");
			}
		}
	return 0;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static int parse_breakpoint(struct tly_parse *parse, const char **cursor)
{
	*cursor += strlen("mem:");
	return tly_breakpoint_add(parse, cursor);
}

/* Whether all that follows the ':' at @p up to the event's end are modifiers. */
static bool only_modifiers(const char *p)
{
	size_t n = tly_modifiers_length(p + 1);

	return n && ends_word(p[1 + n]) && p[1 + n] != ':' && p[1 + n] != '/';
}

/* type:config in numbers; *@cursor is at the ':'. */
static int parse_numbers(struct tly_parse *parse, struct tly_span word, uint64_t type,
			 const char **cursor)
{
	struct tly_event *event;
	struct tly_span number;
	uint64_t config;

	++*cursor;
	number = take_word(cursor);
	if (type > UINT32_MAX || !tly_number(number, &config)) {
		tly_parse_error(parse, -EINVAL, word.at, "'%.*s:%.*s' is not a type and a config",
				TLY_SPAN(word), TLY_SPAN(number));
		return tly_error_remedy(parse->err, "two numbers, as in 1:2");
	}
	event = tly_parse_add(parse, type, config, (struct tly_span){word.at, *cursor - word.at});
	if (!event)
		return tly_parse_no_memory(parse);
	/* Types from here on are units of sysfs, which may refuse attr.exclude_ bits. */
	if (type >= PERF_TYPE_MAX)
		event->attr.attr.exclude_guest = 0;
	return 0;
}

static int parse_tracepoint(struct tly_parse *parse, struct tly_span system, const char **cursor)
{
	++*cursor;
	return tly_tracepoint_add(parse, system, take_word(cursor));
}

/* "a:b" is a mask of a vendor's event where this machine has an event a, else a tracepoint. */
static int parse_pair(struct tly_parse *parse, struct tly_span word, const char **cursor)
{
	int ret = tly_vendor_add(parse, word, cursor);

	if (ret)
		return ret;
	ret = parse_tracepoint(parse, word, cursor);
	if (ret == -ENOENT || ret == -ENOTSUP || ret == -EACCES)
		return tly_vendor_elsewhere(parse, word) ? -ENOENT : ret;
	return ret;
}

/* A word of which no more is known. */
static int parse_word(struct tly_parse *parse, struct tly_span word, const char **cursor)
{
	int ret = tly_pmu_add_event(parse, word);

	if (!ret)
		ret = tly_vendor_add(parse, word, cursor);
	if (!ret)
		ret = tly_vendor_elsewhere(parse, word);
	return ret ? ret : tly_plain_unknown(parse, word);
}

static int parse_unit(struct tly_parse *parse, struct tly_span word, const char **cursor)
{
	struct tly_terms terms;
	int ret = parse_terms(parse, cursor, &terms);

	if (!ret)
		ret = tly_pmu_add(parse, word, &terms,
				  (struct tly_span){word.at, *cursor - word.at});
	tly_terms_free(&terms);
	return ret;
}

/* What stands before terms is a unit; if it is none, it may be a vendor's event. */
static int parse_vendor_with_terms(struct tly_parse *parse, struct tly_span word,
				   const char **cursor)
{
	struct tly_pmu unit;

	return tly_pmu_find(parse->roots, word, &unit) ? tly_vendor_add(parse, word, cursor) : 0;
}

static int parse_named(struct tly_parse *parse, const char **cursor)
{
	struct tly_span word = take_word(cursor);
	size_t first = parse->events->nr;
	struct tly_terms terms;
	uint64_t type;
	int ret;

	if (!word.length)
		return tly_parse_error(parse, -EINVAL, word.at, "an event is missing before %s",
				       *word.at ? (char[]){'\'', *word.at, '\'', '\0'} : "the end");
	ret = tly_plain_add(parse, word);
	if (ret < 0)
		return ret;
	if (!ret) {
		if (**cursor == '/') {
			ret = parse_vendor_with_terms(parse, word, cursor);
			if (!ret)
				return parse_unit(parse, word, cursor);
		} else if (**cursor == ':' && tly_number(word, &type)) {
			ret = parse_numbers(parse, word, type, cursor);
		} else if (starts_with(*cursor, "::")) {
			ret = tly_vendor_add(parse, word, cursor);
		} else if (**cursor == ':' && !only_modifiers(*cursor)) {
			ret = parse_pair(parse, word, cursor);
		} else {
			ret = parse_word(parse, word, cursor);
		}
		if (ret < 0)
			return ret;
	}
	if (**cursor != '/')
		return 0;
	ret = parse_terms(parse, cursor, &terms);
	if (!ret)
		ret = apply_common_terms(parse, first, &terms);
	tly_terms_free(&terms);
	return ret;
}

static int name_events(struct tly_parse *parse, size_t first, const char *start, const char *end,
		       struct tly_span modifiers)
{
	bool single = parse->events->nr == first + 1;

	for (size_t i = first; i < parse->events->nr; i++) {
		struct tly_event *event = parse->events->events[i];
		char *name = NULL;
		int length;

		if (event->event.flags & TALLY_EVENT_NAMED)
			continue;
		/* One event is called as it was typed; what a glob found, by its own name. */
		length = single ? asprintf(&name, "%.*s", (int)(end - start), start)
				: asprintf(&name, "%s%s%.*s", event->event.name,
					   modifiers.length && !*event->event.pmu ? ":" : "",
					   TLY_SPAN(modifiers));
		if (length < 0)
			return tly_parse_no_memory(parse);
		event->event.name = tly_event_string(event, name, length);
		free(name);
		if (!event->event.name)
			return tly_parse_no_memory(parse);
	}
	return 0;
}

/* They follow a ':', or the '/' that closes terms. */
static bool has_modifiers(const char *start, const char *p)
{
	return *p == ':' || (isalpha((unsigned char)*p) && p > start && p[-1] == '/');
}

static int parse_event(struct tly_parse *parse, const char **cursor)
{
	struct tly_span modifiers = {.at = ""};
	size_t first = parse->events->nr;
	const char *start;
	int ret;

	skip_space(cursor);
	start = *cursor;
	if (starts_with(start, "mem:"))
		ret = parse_breakpoint(parse, cursor);
	else if (tly_probe_is(start))
		ret = tly_probe_add(parse, cursor);
	else
		ret = parse_named(parse, cursor);
	if (!ret && has_modifiers(start, *cursor)) {
		if (**cursor == ':')
			++*cursor;
		ret = tly_modifiers_parse(parse, cursor, &modifiers);
	}
	if (!ret)
		ret = name_events(parse, first, start, *cursor, modifiers);
	for (size_t i = first; !ret && i < parse->events->nr; i++) {
		ret = tly_modifiers_apply(parse, parse->events->events[i], modifiers);
		tly_modifiers_pin(parse->events->events[i], modifiers);
	}
	if (ret)
		return ret;
	skip_space(cursor);
	if (**cursor && **cursor != ',' && **cursor != '}' && **cursor != '{')
		return tly_parse_error(parse, -EINVAL, *cursor, "'%c' cannot follow an event",
				       **cursor);
	return 0;
}

/* Groups and lists */

static int apply_group_modifiers(struct tly_parse *parse, size_t first, struct tly_span modifiers)
{
	for (size_t i = first; i < parse->events->nr; i++) {
		struct tly_event *event = parse->events->events[i];
		int ret = tly_modifiers_apply(parse, event, modifiers);

		if (!ret)
			ret = tly_modifiers_name(parse, event, modifiers);
		if (ret)
			return ret;
		if (event->event.leader == i)
			tly_modifiers_pin(event, modifiers);
	}
	return 0;
}

static int check_members(struct tly_parse *parse, size_t first, const char *open)
{
	for (size_t i = first; i < parse->events->nr; i++) {
		const struct tly_event *event = parse->events->events[i];

		if (event->event.leader != i &&
		    (event->attr.attr.pinned || event->attr.attr.exclusive))
			return tly_parse_error(parse, -EINVAL, open,
					       "only the first event of a group can be pinned (D) "
					       "or exclusive (e), not '%s'",
					       event->event.name);
	}
	return 0;
}

/* *@cursor is at the '{'. */
static int parse_group(struct tly_parse *parse, const char **cursor)
{
	size_t first = parse->events->nr;
	struct tly_span modifiers;
	const char *open = *cursor;
	int ret;

	do {
		++*cursor;
		skip_space(cursor);
		if (**cursor == '{')
			return tly_parse_error(parse, -EINVAL, *cursor,
					       "a group cannot hold another group");
		ret = parse_event(parse, cursor);
		if (ret)
			return ret;
	} while (**cursor == ',');
	if (**cursor != '}')
		return tly_parse_error(parse, -EINVAL, open, "the '{' of the group is not closed");
	++*cursor;
	ret = tly_plain_split_group(parse, first);
	if (!ret)
		ret = check_members(parse, first, open);
	if (ret || **cursor != ':')
		return ret;
	++*cursor;
	ret = tly_modifiers_parse(parse, cursor, &modifiers);
	return ret ? ret : apply_group_modifiers(parse, first, modifiers);
}

/* Past the name that a group may have; the name says nothing to the kernel. */
static void skip_group_name(const char **cursor)
{
	const char *p = *cursor;

	take_word(&p);
	if (*p == '{')
		*cursor = p;
}

static int parse_list(struct tly_parse *parse)
{
	const char *cursor = parse->text;
	int ret;

	for (;;) {
		skip_space(&cursor);
		skip_group_name(&cursor);
		ret = *cursor == '{' ? parse_group(parse, &cursor) : parse_event(parse, &cursor);
		if (ret)
			return ret;
		skip_space(&cursor);
		if (!*cursor)
			return 0;
		if (*cursor != ',')
			return tly_parse_error(parse, -EINVAL, cursor, "',' is missing before '%c'",
					       *cursor);
		cursor++;
	}
}

/* A message about the grammar needs the place; one about a name has it in the name. */
static void say_where(struct tally_error *err, const char *text)
{
	size_t used = strlen(err->what);

	if (err->offset == TALLY_NO_OFFSET)
		return;
	snprintf(err->what + used, sizeof(err->what) - used, ", at character %zu of '%.100s'",
		 (size_t)err->offset + 1, text);
}

/* Names are quoted in messages as they are; what would break the line or the terminal is not. */
static void keep_to_one_line(char *message)
{
	for (; *message; message++)
		if (iscntrl((unsigned char)*message))
			*message = '?';
}

int tly_events_parse(struct tally_events *events, const char *text, const struct tly_roots *roots,
		     struct tally_error *err)
{
	struct tally_error scratch;
	struct tly_parse parse = {
		.events = events,
		.roots = roots,
		.text = text,
		.err = err ? err : &scratch,
		.nr_cores = -1,
	};
	size_t before = events->nr;
	int ret = parse_list(&parse);

	free(parse.cores);
	if (!ret)
		return 0;
	tly_events_truncate(events, before);
	if (ret == -EINVAL)
		say_where(parse.err, text);
	keep_to_one_line(parse.err->what);
	keep_to_one_line(parse.err->remedy);
	return ret;
}

int tally_events_parse(struct tally_events *events, const char *text, unsigned int flags,
		       struct tally_error *err)
{
	if (flags)
		return tly_error(err, -EINVAL, "tally_events_parse() takes no flags yet");
	return tly_events_parse(events, text, &tly_roots_default, err);
}
