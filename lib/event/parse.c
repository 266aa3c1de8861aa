// SPDX-License-Identifier: MIT
/*
 * A recursive descent over the text, with one function for each rule:
 *
 *	list	  = item { "," item }
 *	item	  = [ name ] "{" event { "," event } "}" [ ":" modifiers ]  |  event
 *	event	  = "mem:" address [ "/" length ] [ ":" access ] [ ":" modifiers ]
 *		  | ("kprobe:" | "kretprobe:" | "uprobe:" | "uretprobe:") place [ ":" modifiers ]
 *		  | number ":" number [ terms ] [ ":" modifiers ]
 *		  | word ":" word [ terms ] [ ":" modifiers ]
 *		  | word [ terms ] [ ":" modifiers ]
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
#include "lib/event/names.h"
#include "lib/event/nearest.h"
#include "lib/event/tracepoint.h"

bool tly_span_is(struct tly_span span, const char *word)
{
	return strlen(word) == span.length && !memcmp(span.at, word, span.length);
}

static void place_error(struct tly_parse *parse, const char *at)
{
	tly_error_at(parse->err, at - parse->text);
}

int tly_parse_error(struct tly_parse *parse, int code, const char *at, const char *what, ...)
{
	char text[sizeof(parse->err->what)];
	va_list ap;

	va_start(ap, what);
	vsnprintf(text, sizeof(text), what, ap);
	va_end(ap);
	tly_error(parse->err, code, "%s", text);
	place_error(parse, at);
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

/* Modifiers */

static const char modifier_letters[] = "ukhGHIpPSDeW";

struct modifiers {
	struct tly_span span; /* length 0: none */
};

static bool has(struct tly_span modifiers, char letter)
{
	return memchr(modifiers.at, letter, modifiers.length);
}

static int parse_modifiers(struct tly_parse *parse, const char **cursor, struct tly_span *span)
{
	unsigned int precise = 0;

	*span = (struct tly_span){.at = *cursor};
	for (; isalnum((unsigned char)**cursor); ++*cursor, span->length++) {
		char c = **cursor;

		if (!strchr(modifier_letters, c)) {
			tly_parse_error(parse, -EINVAL, *cursor, "'%c' is not a modifier", c);
			return tly_error_remedy(parse->err,
						"the modifiers are u k h (user, kernel, "
						"hypervisor), G H (guest, host), I (not idle), "
						"p pp ppp P (precise), S (leader samples), D "
						"(pinned), e (exclusive), W (weak group)");
		}
		if (c == 'p' ? ++precise > 3 : has(*span, c))
			return tly_parse_error(parse, -EINVAL, *cursor,
					       "modifier '%c' is given too often", c);
	}
	if (!span->length)
		return tly_parse_error(parse, -EINVAL, *cursor, "modifiers are missing after ':'");
	return 0;
}

/*
 * u, k and h add to each other, within an event and from its group: the first of them excludes all
 * that was not named, the others let theirs in. So do G and H.
 */
static int apply_modifiers(struct tly_parse *parse, struct tly_event *event,
			   struct tly_span modifiers)
{
	struct perf_event_attr *attr = &event->attr.attr;
	bool user = has(modifiers, 'u'), kernel = has(modifiers, 'k');
	bool hv = has(modifiers, 'h'), guest = has(modifiers, 'G'), host = has(modifiers, 'H');
	unsigned int precise = attr->precise_ip;

	if (user || kernel || hv) {
		if (!attr->exclude_user && !attr->exclude_kernel && !attr->exclude_hv)
			attr->exclude_user = attr->exclude_kernel = attr->exclude_hv = 1;
		attr->exclude_user &= !user;
		attr->exclude_kernel &= !kernel;
		attr->exclude_hv &= !hv;
		event->event.flags |= TALLY_EVENT_MODIFIED;
	}
	if (guest || host) {
		if (!event->guest_host)
			attr->exclude_guest = attr->exclude_host = 1;
		attr->exclude_guest &= !guest;
		attr->exclude_host &= !host;
		event->guest_host = true;
		event->event.flags |= TALLY_EVENT_MODIFIED;
	}
	for (size_t i = 0; i < modifiers.length; i++)
		precise += modifiers.at[i] == 'p';
	if (precise > 3)
		return tly_parse_error(parse, -EINVAL, modifiers.at,
				       "'%s' gets more than three p modifiers with its group's",
				       event->event.name);
	attr->precise_ip = precise;
	attr->exclude_idle |= has(modifiers, 'I');
	if (has(modifiers, 'P'))
		event->event.flags |= TALLY_EVENT_PRECISE_MAX;
	if (has(modifiers, 'S'))
		event->event.flags |= TALLY_EVENT_LEADER_SAMPLING;
	if (has(modifiers, 'W'))
		event->event.flags |= TALLY_EVENT_WEAK;
	return 0;
}

static void pin(struct tly_event *event, struct tly_span modifiers)
{
	event->attr.attr.pinned |= has(modifiers, 'D');
	event->attr.attr.exclusive |= has(modifiers, 'e');
}

/* Adds to @event's name the letters of its group's that say what is counted. */
static int name_group_modifiers(struct tly_parse *parse, struct tly_event *event,
				struct tly_span modifiers)
{
	const char *name = event->event.name, *own = name + strlen(name);
	char letters[sizeof(modifier_letters) + 2], *p = letters;
	bool separated;

	if (event->event.flags & TALLY_EVENT_NAMED)
		return 0;
	/* The event's own modifiers are the letters behind a last ':' or '/', if all are such. */
	while (own > name && strchr(modifier_letters, own[-1]))
		own--;
	separated = own > name && (own[-1] == '/' || (own[-1] == ':' && *own));
	if (!separated)
		*p++ = ':';
	for (size_t i = 0; i < modifiers.length; i++)
		if (strchr("ukhGHIpP", modifiers.at[i]) &&
		    (modifiers.at[i] == 'p' || !separated || !strchr(own, modifiers.at[i])))
			*p++ = modifiers.at[i];
	*p = '\0';
	if (!letters[!separated])
		return 0;

	char *text = NULL;

	if (asprintf(&text, "%s%s", name, letters) < 0)
		return tly_parse_no_memory(parse);
	event->event.name = tly_event_string(event, text, strlen(text));
	free(text);
	return event->event.name ? 0 : tly_parse_no_memory(parse);
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

static bool raw_config(struct tly_span word, uint64_t *config)
{
	char text[2 + 16 + 1];

	if (word.length < 2 || word.length > 17 || word.at[0] != 'r')
		return false;
	for (size_t i = 1; i < word.length; i++)
		if (!isxdigit((unsigned char)word.at[i]))
			return false;
	snprintf(text, sizeof(text), "0x%.*s", (int)word.length - 1, word.at + 1);
	return tly_number((struct tly_span){text, strlen(text)}, config);
}

static const char *const tool_names[] = {"duration_time", "user_time", "system_time"};

static int unknown_event(struct tly_parse *parse, struct tly_span word)
{
	struct tly_nearest nearest;
	char remedy[sizeof(parse->err->remedy)], cache[32];

	for (size_t i = 0; i < sizeof(tool_names) / sizeof(tool_names[0]); i++)
		if (tly_span_is(word, tool_names[i])) {
			tly_parse_error(parse, -ENOENT, word.at, "'%s' is not an event",
					tool_names[i]);
			return tly_error_remedy(parse->err, "'tally stat' prints the elapsed, "
							    "user and system time of itself");
		}
	tly_parse_error(parse, -ENOENT, word.at, "no event '%.*s'", TLY_SPAN(word));
	tly_nearest_init(&nearest, word.at, word.length);
	for (const struct tly_generic *g = tly_generics; g->name; g++) {
		tly_nearest_consider(&nearest, g->name, NULL);
		tly_nearest_consider(&nearest, g->alias, NULL);
	}
	for (int64_t config = -1; (config = tly_cache_next(config)) >= 0;) {
		tly_cache_name(config, cache, sizeof(cache));
		tly_nearest_consider(&nearest, cache, NULL);
	}
	tly_tracepoint_suggest(parse->roots, &nearest);
	if (!tly_nearest_format(&nearest, remedy, sizeof(remedy)))
		return tly_error_remedy(parse->err,
					"'tally list' shows the events of this machine");
	return tly_error_remedy(parse->err, "%s", remedy);
}

/* Appends the event that @word names by itself. Returns -ENOENT without a message if none. */
static int add_plain(struct tly_parse *parse, struct tly_span word)
{
	const struct tly_generic *generic = tly_generic_find(word.at, word.length);
	uint64_t config;
	uint32_t type;

	if (generic) {
		type = generic->type;
		config = generic->config;
	} else if (tly_cache_parse(word.at, word.length, &config)) {
		type = PERF_TYPE_HW_CACHE;
	} else if (raw_config(word, &config)) {
		type = PERF_TYPE_RAW;
	} else {
		return -ENOENT;
	}
	return tly_parse_add(parse, type, config, word) ? 0 : tly_parse_no_memory(parse);
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
	size_t n = strspn(p + 1, modifier_letters);

	return n && ends_word(p[1 + n]) && p[1 + n] != ':' && p[1 + n] != '/';
}

static int parse_named(struct tly_parse *parse, const char **cursor, struct tly_terms *terms)
{
	size_t first = parse->events->nr;
	struct tly_span word = take_word(cursor);
	uint64_t type, config;
	int ret;

	if (!word.length)
		return tly_parse_error(parse, -EINVAL, word.at, "an event is missing before %s",
				       *word.at ? (char[]){'\'', *word.at, '\'', '\0'} : "the end");
	ret = add_plain(parse, word);
	if (ret == -ENOENT && **cursor == ':' && tly_number(word, &type)) {
		++*cursor;
		struct tly_span number = take_word(cursor);

		if (type > UINT32_MAX || !tly_number(number, &config)) {
			tly_parse_error(parse, -EINVAL, word.at,
					"'%.*s:%.*s' is not a type and a config", TLY_SPAN(word),
					TLY_SPAN(number));
			return tly_error_remedy(parse->err, "two numbers, as in 1:2");
		}
		ret = tly_parse_add(parse, type, config,
				    (struct tly_span){word.at, *cursor - word.at})
			      ? 0
			      : tly_parse_no_memory(parse);
	} else if (ret == -ENOENT && **cursor == ':' && !only_modifiers(*cursor)) {
		++*cursor;
		struct tly_span event = take_word(cursor);

		ret = tly_tracepoint_add(parse, word, event);
	} else if (ret == -ENOENT) {
		return unknown_event(parse, word);
	}
	if (ret)
		return ret;
	if (**cursor == '/') {
		ret = parse_terms(parse, cursor, terms);
		if (!ret)
			ret = apply_common_terms(parse, first, terms);
	}
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
					   modifiers.length ? ":" : "", TLY_SPAN(modifiers));
		if (length < 0)
			return tly_parse_no_memory(parse);
		event->event.name = tly_event_string(event, name, length);
		free(name);
		if (!event->event.name)
			return tly_parse_no_memory(parse);
	}
	return 0;
}

static int parse_event(struct tly_parse *parse, const char **cursor)
{
	struct tly_span modifiers = {.at = ""};
	size_t first = parse->events->nr;
	struct tly_terms terms = {0};
	const char *start;
	int ret;

	skip_space(cursor);
	start = *cursor;
	if (starts_with(start, "mem:"))
		ret = parse_breakpoint(parse, cursor);
	else
		ret = parse_named(parse, cursor, &terms);
	if (!ret &&
	    (**cursor == ':' || (terms.nr && isalpha((unsigned char)**cursor)) ||
	     (*cursor > start && (*cursor)[-1] == '/' && isalpha((unsigned char)**cursor)))) {
		if (**cursor == ':')
			++*cursor;
		ret = parse_modifiers(parse, cursor, &modifiers);
	}
	tly_terms_free(&terms);
	if (!ret)
		ret = name_events(parse, first, start, *cursor, modifiers);
	for (size_t i = first; !ret && i < parse->events->nr; i++) {
		ret = apply_modifiers(parse, parse->events->events[i], modifiers);
		pin(parse->events->events[i], modifiers);
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
		int ret = apply_modifiers(parse, event, modifiers);

		if (!ret)
			ret = name_group_modifiers(parse, event, modifiers);
		if (ret)
			return ret;
	}
	pin(parse->events->events[first], modifiers);
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
		size_t member = parse->events->nr;

		skip_space(cursor);
		if (**cursor == '{')
			return tly_parse_error(parse, -EINVAL, *cursor,
					       "a group cannot hold another group");
		ret = parse_event(parse, cursor);
		if (ret)
			return ret;
		for (; member < parse->events->nr; member++) {
			struct tly_event *event = parse->events->events[member];

			event->event.leader = first;
			if (member > first &&
			    (event->attr.attr.pinned || event->attr.attr.exclusive))
				return tly_parse_error(parse, -EINVAL, open,
						       "only the first event of a group can be "
						       "pinned (D) or exclusive (e), not '%s'",
						       event->event.name);
		}
	} while (**cursor == ',');
	if (**cursor != '}')
		return tly_parse_error(parse, -EINVAL, open, "the '{' of the group is not closed");
	++*cursor;
	if (**cursor != ':')
		return 0;
	++*cursor;
	ret = parse_modifiers(parse, cursor, &modifiers);
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

int tly_events_parse(struct tally_events *events, const char *text, const struct tly_roots *roots,
		     struct tally_error *err)
{
	struct tally_error scratch;
	struct tly_parse parse = {
		.events = events, .roots = roots, .text = text, .err = err ? err : &scratch};
	size_t before = events->nr;
	int ret = parse_list(&parse);

	if (ret)
		tly_events_truncate(events, before);
	return ret;
}

int tally_events_parse(struct tally_events *events, const char *text, unsigned int flags,
		       struct tally_error *err)
{
	if (flags)
		return tly_error(err, -EINVAL, "tally_events_parse() takes no flags yet");
	return tly_events_parse(events, text, &tly_roots_default, err);
}
