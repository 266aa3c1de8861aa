// SPDX-License-Identifier: MIT
#include "tool/filter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tool/memory.h"

void words_parse(struct words *words, const char *text)
{
	size_t nr = 1;
	char *p;

	words_free(words);
	words->text = p = tool_copy(text, strlen(text));
	for (const char *c = text; *c; c++)
		nr += *c == ',';
	words->items = tool_alloc(nr, sizeof(*words->items));
	for (char *word; (word = strsep(&p, ","));)
		if (*word)
			words->items[words->nr++] = word;
}

bool words_have(const struct words *words, const char *word)
{
	for (size_t i = 0; i < words->nr; i++)
		if (!strcmp(words->items[i], word))
			return true;
	return !words->nr;
}

void words_free(struct words *words)
{
	free(words->text);
	free(words->items);
	*words = (struct words){0};
}

/* "12.5" seconds as nanoseconds; *@end after it. */
static bool parse_seconds(const char *text, uint64_t *nanoseconds, const char **end)
{
	uint64_t seconds = 0, fraction = 0, unit = 100000000;
	const char *p = text;

	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(seconds, 10, &seconds) ||
		    __builtin_add_overflow(seconds, *p - '0', &seconds))
			return false;
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p); p++, unit /= 10)
			fraction += (*p - '0') * unit;
	*end = p;
	return p != text && !__builtin_mul_overflow(seconds, 1000000000, nanoseconds) &&
	       !__builtin_add_overflow(*nanoseconds, fraction, nanoseconds);
}

static bool parse_percent(const char *text, double *value, const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	*value = strtod(text, &stop);
	*end = stop + 1;
	return *stop == '%' && *value <= 100;
}

static bool parse_percents(const char *text, double *from, double *to)
{
	const char *p;

	return parse_percent(text, from, &p) && *p == '-' && parse_percent(p + 1, to, &p) && !*p &&
	       *from <= *to;
}

static bool parse_span(const char *text, uint64_t *start, uint64_t *end)
{
	const char *p = text;

	if (*p != ',' && !parse_seconds(p, start, &p))
		return false;
	if (*p++ != ',')
		return false;
	if (*p && !parse_seconds(p, end, &p))
		return false;
	return !*p && *start <= *end;
}

bool filter_resolve_time(struct filter *filter, uint64_t first, uint64_t last)
{
	double from, to;

	filter->start = 0;
	filter->end = UINT64_MAX;
	if (!filter->time)
		return true;
	if (parse_percents(filter->time, &from, &to)) {
		double span = last > first ? last - first : 0;

		filter->start = first + (uint64_t)(span * from / 100);
		filter->end = to < 100 ? first + (uint64_t)(span * to / 100) : last;
		return true;
	}
	return parse_span(filter->time, &filter->start, &filter->end);
}

bool filter_has_id(const int *ids, size_t nr, uint32_t id)
{
	for (size_t i = 0; i < nr; i++)
		if ((uint32_t)ids[i] == id)
			return true;
	return !nr;
}

bool filter_has_dso(const struct filter *filter, const struct tally_dso *dso)
{
	if (!dso)
		return words_have(&filter->dsos, UNKNOWN);
	return words_have(&filter->dsos, tally_dso_short_name(dso)) ||
	       words_have(&filter->dsos, tally_dso_name(dso));
}

void filter_free(struct filter *filter)
{
	words_free(&filter->comms);
	words_free(&filter->dsos);
	words_free(&filter->symbols);
	free(filter->pids);
	free(filter->tids);
	free(filter->cpus);
}
