// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/event/parse.h"

static bool take_digits(struct tly_span text, unsigned int base, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = text.at[i];
		unsigned int digit;

		if (isdigit(c))
			digit = c - '0';
		else if (base == 16 && isxdigit(c))
			digit = tolower(c) - 'a' + 10;
		else
			return false;
		if (__builtin_mul_overflow(*value, base, value) ||
		    __builtin_add_overflow(*value, digit, value))
			return false;
	}
	return text.length;
}

bool tly_number(struct tly_span text, uint64_t *value)
{
	if (text.length > 2 && text.at[0] == '0' && (text.at[1] | 0x20) == 'x')
		return take_digits((struct tly_span){text.at + 2, text.length - 2}, 16, value);
	return take_digits(text, 10, value);
}

bool tly_raw_config(struct tly_span word, uint64_t *config)
{
	if (word.length < 2 || word.length > 17 || word.at[0] != 'r')
		return false;
	return take_digits((struct tly_span){word.at + 1, word.length - 1}, 16, config);
}

static bool ends_name(char c)
{
	return !c || c == ',' || c == '/' || c == '=';
}

static bool ends_value(char c)
{
	return !c || c == ',' || c == '/';
}

static int parse_term(struct tly_parse *parse, const char **cursor, struct tly_term *term)
{
	const char *p = *cursor;

	*term = (struct tly_term){.name.at = p, .number = 1};
	while (!ends_name(*p))
		p++;
	term->name.length = p - term->name.at;
	if (!term->name.length)
		return tly_parse_error(parse, -EINVAL, p, "a term is missing before '%s'",
				       *p ? (char[]){*p, '\0'} : "the end");
	if (*p == '=') {
		term->has_value = true;
		term->value.at = ++p;
		if (*p == '\'') {
			term->value.at = ++p;
			while (*p && *p != '\'')
				p++;
			if (!*p)
				return tly_parse_error(parse, -EINVAL, term->value.at - 1,
						       "the quote of term '%.*s' is not closed",
						       TLY_SPAN(term->name));
			term->value.length = p++ - term->value.at;
			if (!ends_value(*p))
				return tly_parse_error(parse, -EINVAL, p,
						       "',' or '/' must follow the quoted value of "
						       "term '%.*s'",
						       TLY_SPAN(term->name));
		} else {
			while (!ends_value(*p))
				p++;
			term->value.length = p - term->value.at;
			term->is_number = tly_number(term->value, &term->number);
		}
		if (!term->value.length)
			return tly_parse_error(parse, -EINVAL, term->value.at,
					       "term '%.*s' has no value after '='",
					       TLY_SPAN(term->name));
	}
	*cursor = p;
	return 0;
}

int tly_terms_parse(struct tly_parse *parse, const char **cursor, struct tly_terms *terms)
{
	size_t capacity = 0;
	int ret;

	*terms = (struct tly_terms){0};
	if (!**cursor || **cursor == '/')
		return 0;
	for (;;) {
		if (terms->nr == capacity) {
			capacity = capacity ? 2 * capacity : 8;
			struct tly_term *grown =
				reallocarray(terms->terms, capacity, sizeof(*terms->terms));

			if (!grown)
				return tly_parse_no_memory(parse);
			terms->terms = grown;
		}
		ret = parse_term(parse, cursor, &terms->terms[terms->nr]);
		if (ret)
			return ret;
		terms->nr++;
		if (**cursor != ',')
			return 0;
		++*cursor;
	}
}

void tly_terms_free(struct tly_terms *terms)
{
	free(terms->terms);
	*terms = (struct tly_terms){0};
}

static int bad_value(struct tly_parse *parse, const struct tly_term *term, const char *expected)
{
	return tly_parse_error(parse, -EINVAL, term->has_value ? term->value.at : term->name.at,
			       "term '%.*s' wants %s, not '%.*s'", TLY_SPAN(term->name), expected,
			       TLY_SPAN(term->value));
}

static int apply_config(struct tly_parse *parse, struct tly_event *event,
			const struct tly_term *term, unsigned int index)
{
	if (!term->is_number)
		return bad_value(parse, term, "a number (decimal or 0x...)");
	*tly_event_config(event, index) = term->number;
	return 1;
}

static int apply_config0(struct tly_parse *parse, struct tly_event *event,
			 const struct tly_term *term)
{
	return apply_config(parse, event, term, 0);
}

static int apply_config1(struct tly_parse *parse, struct tly_event *event,
			 const struct tly_term *term)
{
	return apply_config(parse, event, term, 1);
}

static int apply_config2(struct tly_parse *parse, struct tly_event *event,
			 const struct tly_term *term)
{
	return apply_config(parse, event, term, 2);
}

static int apply_config3(struct tly_parse *parse, struct tly_event *event,
			 const struct tly_term *term)
{
	return apply_config(parse, event, term, 3);
}

/* The kernel refuses periods and frequencies with the top bit set (ABI: attr.sample_period). */
static bool countable(const struct tly_term *term)
{
	return term->is_number && term->number && term->number <= INT64_MAX;
}

static int apply_period(struct tly_parse *parse, struct tly_event *event,
			const struct tly_term *term)
{
	if (!countable(term))
		return bad_value(parse, term, "a number of events from 1");
	event->attr.attr.freq = 0;
	event->attr.attr.sample_period = term->number;
	event->event.flags &= ~TALLY_EVENT_FREQ;
	event->event.flags |= TALLY_EVENT_PERIOD;
	return 1;
}

static int apply_freq(struct tly_parse *parse, struct tly_event *event, const struct tly_term *term)
{
	if (!countable(term))
		return bad_value(parse, term, "a number of samples per second from 1");
	event->attr.attr.freq = 1;
	event->attr.attr.sample_freq = term->number;
	event->event.flags &= ~TALLY_EVENT_PERIOD;
	event->event.flags |= TALLY_EVENT_FREQ;
	return 1;
}

static int apply_name(struct tly_parse *parse, struct tly_event *event, const struct tly_term *term)
{
	if (!term->has_value)
		return bad_value(parse, term, "a name");
	event->event.name = tly_event_string(event, term->value.at, term->value.length);
	if (!event->event.name)
		return tly_parse_no_memory(parse);
	event->event.flags |= TALLY_EVENT_NAMED;
	return 1;
}

static int apply_callgraph(struct tly_parse *parse, struct tly_event *event,
			   const struct tly_term *term)
{
	static const struct {
		const char *word;
		enum tally_callgraph callgraph;
	} words[] = {
		{"fp", TALLY_CALLGRAPH_FP},
		{"dwarf", TALLY_CALLGRAPH_DWARF},
		{"lbr", TALLY_CALLGRAPH_LBR},
		{"no", TALLY_CALLGRAPH_NONE},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (tly_span_is(term->value, words[i].word)) {
			event->event.callgraph = words[i].callgraph;
			return 1;
		}
	return bad_value(parse, term, "'fp', 'dwarf', 'lbr' or 'no'");
}

/* attr.sample_stack_user is a multiple of 8 that fits 16 bits (ABI: attr.sample_stack_user). */
static int apply_stack_size(struct tly_parse *parse, struct tly_event *event,
			    const struct tly_term *term)
{
	if (!term->is_number || !term->has_value || !term->number || term->number % 8 ||
	    term->number > UINT16_MAX)
		return bad_value(parse, term, "a multiple of 8 from 8 to 65528");
	event->event.stack_size = term->number;
	return 1;
}

static int apply_max_stack(struct tly_parse *parse, struct tly_event *event,
			   const struct tly_term *term)
{
	if (!term->is_number || !term->number || term->number > UINT16_MAX)
		return bad_value(parse, term, "a number of frames from 1 to 65535");
	event->attr.attr.sample_max_stack = term->number;
	return 1;
}

static int apply_aux_output(struct tly_parse *parse, struct tly_event *event,
			    const struct tly_term *term)
{
	if (term->number > 1 || (term->has_value && !term->is_number))
		return bad_value(parse, term, "0 or 1");
	event->attr.attr.aux_output = term->number;
	return 1;
}

static int apply_aux_sample_size(struct tly_parse *parse, struct tly_event *event,
				 const struct tly_term *term)
{
	if (!term->is_number || term->number > UINT32_MAX)
		return bad_value(parse, term, "a number of bytes");
	event->attr.attr.aux_sample_size = term->number;
	return 1;
}

static int refuse(struct tly_parse *parse, struct tly_event *event, const struct tly_term *term)
{
	(void)event;
	tly_parse_error(parse, -EINVAL, term->name.at, "term '%.*s' of perf is not one of tally's",
			TLY_SPAN(term->name));
	return tly_error_remedy(parse->err, "set it for the whole recording instead: "
					    "'tally help record' lists the options");
}

static const struct {
	const char *name;
	int (*apply)(struct tly_parse *parse, struct tly_event *event, const struct tly_term *term);
} common_terms[] = {
	{"config", apply_config0},
	{"config1", apply_config1},
	{"config2", apply_config2},
	{"config3", apply_config3},
	{"period", apply_period},
	{"freq", apply_freq},
	{"name", apply_name},
	{"call-graph", apply_callgraph},
	{"stack-size", apply_stack_size},
	{"max-stack", apply_max_stack},
	{"aux-output", apply_aux_output},
	{"aux-sample-size", apply_aux_sample_size},
	{"branch_type", refuse},
	{"time", refuse},
	{"nr", refuse},
	{"inherit", refuse},
	{"no-inherit", refuse},
	{"overwrite", refuse},
	{"no-overwrite", refuse},
	{"percore", refuse},
	{"metric-id", refuse},
};

int tly_term_apply(struct tly_parse *parse, struct tly_event *event, const struct tly_term *term)
{
	for (size_t i = 0; i < sizeof(common_terms) / sizeof(common_terms[0]); i++)
		if (tly_span_is(term->name, common_terms[i].name))
			return common_terms[i].apply(parse, event, term);
	return 0;
}
