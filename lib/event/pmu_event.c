// SPDX-License-Identifier: MIT
#include "lib/event/pmu_event.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/event/format.h"
#include "lib/event/names.h"

/* The formats and events of @pmu as suggestions for @term, or the whole list of them. */
static int unknown_term(struct tly_parse *parse, const struct tly_pmu *pmu, struct tly_span term)
{
	static const char *const folders[] = {"/format", "/events"};
	char remedy[sizeof(parse->err->remedy)] = "it takes config, config1, config2, config3";
	size_t used = strlen(remedy);
	struct tly_nearest nearest;

	tly_parse_error(parse, -ENOENT, term.at, "unit '%s' has no term or event '%.*s'", pmu->name,
			TLY_SPAN(term));
	tly_nearest_init(&nearest, term.at, term.length);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char **names;
		ssize_t nr = tly_pmu_names(pmu, folders[i], &names);

		for (ssize_t j = 0; j < nr; j++) {
			if (tly_pmu_is_attribute(names[j]))
				continue;
			tly_nearest_consider(&nearest, names[j], NULL);
			if (used + strlen(names[j]) + 3 < sizeof(remedy))
				used += sprintf(remedy + used, ", %s", names[j]);
		}
		free(names);
	}
	char near[sizeof(remedy)];

	return tly_error_remedy(parse->err, "%s",
				tly_nearest_format(&nearest, near, sizeof(near)) ? near : remedy);
}

static int malformed(struct tly_parse *parse, const char *at, const struct tly_pmu *pmu,
		     const char *folder, struct tly_span file)
{
	tly_parse_error(parse, -EINVAL, at,
			"unit '%s' describes '%.*s' in a way that cannot be understood", pmu->name,
			TLY_SPAN(file));
	return tly_error_remedy(parse->err, "see %s%s/%.*s, and give config= instead", pmu->path,
				folder, TLY_SPAN(file));
}

static int apply_format(struct tly_parse *parse, struct tly_event *event, const struct tly_pmu *pmu,
			const struct tly_term *term)
{
	struct tly_format format;
	char text[256];
	ssize_t n = tly_pmu_read(pmu, "/format", term->name, "", text, sizeof(text));
	uint64_t *config;

	if (n == -ENOENT || n == -ENOTDIR)
		return unknown_term(parse, pmu, term->name);
	config = n > 0 && tly_format_parse(text, &format) ? tly_event_config(event, format.config)
							  : NULL;
	if (!config)
		return malformed(parse, term->name.at, pmu, "/format", term->name);
	if (!term->is_number && (term->has_value || tly_format_width(&format) > 1))
		return tly_parse_error(parse, -EINVAL,
				       term->has_value ? term->value.at : term->name.at,
				       "term '%.*s' of unit '%s' wants a number of %u bits",
				       TLY_SPAN(term->name), pmu->name, tly_format_width(&format));
	if (!tly_format_fits(&format, term->number))
		return tly_parse_error(parse, -EINVAL, term->value.at,
				       "0x%" PRIx64 " is too large for term '%.*s' of unit '%s', "
				       "which has %u bits",
				       term->number, TLY_SPAN(term->name), pmu->name,
				       tly_format_width(&format));
	*config = (*config & ~format.bits) | tly_format_spread(&format, term->number);
	return 0;
}

/* The kernel writes numbers in the C locale, whatever ours is. */
static bool parse_scale(const char *text, double *scale)
{
	locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	char *end;

	if (c_locale == (locale_t)0)
		return false;
	*scale = strtod_l(text, &end, c_locale);
	freelocale(c_locale);
	return end > text && !*end && *scale > 0 && *scale < HUGE_VAL;
}

/* What the files beside an event say about its value. */
static int apply_attributes(struct tly_parse *parse, const char *at, struct tly_event *event,
			    const struct tly_pmu *pmu, const char *name)
{
	struct tly_span span = tly_span_of(name);
	char text[128];

	if (tly_pmu_read(pmu, "/events", span, ".unit", text, sizeof(text)) > 0) {
		event->event.unit = tly_event_string(event, text, strlen(text));
		if (!event->event.unit)
			return tly_parse_no_memory(parse);
	}
	if (tly_pmu_read(pmu, "/events", span, ".scale", text, sizeof(text)) > 0 &&
	    !parse_scale(text, &event->event.scale))
		return malformed(parse, at, pmu, "/events", span);
	if (tly_pmu_read(pmu, "/events", span, ".per-pkg", text, sizeof(text)) > 0 &&
	    strcmp(text, "0"))
		event->event.flags |= TALLY_EVENT_PER_PACKAGE;
	if (tly_pmu_read(pmu, "/events", span, ".snapshot", text, sizeof(text)) > 0 &&
	    strcmp(text, "0"))
		event->event.flags |= TALLY_EVENT_SNAPSHOT;
	return 0;
}

static const struct tly_term *find_term(const struct tly_terms *terms, struct tly_span name)
{
	for (size_t i = 0; i < terms->nr; i++)
		if (terms->terms[i].has_value && terms->terms[i].name.length == name.length &&
		    !memcmp(terms->terms[i].name.at, name.at, name.length))
			return &terms->terms[i];
	return NULL;
}

/*
 * Applies what an event of sysfs stands for. A value of "?" is a parameter, which one of the terms
 * that the user gave has to supply.
 */
static int apply_event(struct tly_parse *parse, struct tly_event *event, const struct tly_pmu *pmu,
		       struct tly_span typed, const char *name, const char *encoding,
		       const struct tly_terms *given)
{
	struct tally_error scratch;
	struct tly_parse inner = {
		.events = parse->events, .roots = parse->roots, .text = encoding, .err = &scratch};
	struct tly_terms terms;
	int ret;

	ret = tly_terms_parse(&inner, &encoding, &terms);
	for (size_t i = 0; !ret && i < terms.nr; i++) {
		const struct tly_term *term = &terms.terms[i];

		if (term->has_value && tly_span_is(term->value, "?")) {
			if (given && find_term(given, term->name))
				continue;
			ret = tly_parse_error(parse, -EINVAL, typed.at,
					      "event '%s' of unit '%s' needs a value for '%.*s'",
					      name, pmu->name, TLY_SPAN(term->name));
			tly_error_remedy(parse->err, "%s/%s,%.*s=.../", pmu->name, name,
					 TLY_SPAN(term->name));
			tly_terms_free(&terms);
			return ret;
		}
		ret = tly_term_apply(&inner, event, term);
		if (ret >= 0)
			ret = ret ? 0 : apply_format(&inner, event, pmu, term);
	}
	tly_terms_free(&terms);
	if (ret == -ENOMEM)
		return tly_parse_no_memory(parse);
	if (ret)
		return malformed(parse, typed.at, pmu, "/events", tly_span_of(name));
	return apply_attributes(parse, typed.at, event, pmu, name);
}

/* A generic event on a processor's own unit: "cpu_core/cycles/". */
static bool apply_generic(struct tly_event *event, const struct tly_pmu *pmu, struct tly_span name)
{
	const struct tly_generic *generic = tly_generic_find(name.at, name.length);
	struct perf_event_attr *attr = &event->attr.attr;
	uint64_t config;

	if (!pmu->core)
		return false;
	if (generic && generic->type == PERF_TYPE_HARDWARE) {
		attr->type = PERF_TYPE_HARDWARE;
		config = generic->config;
	} else if (tly_cache_parse(name.at, name.length, &config)) {
		attr->type = PERF_TYPE_HW_CACHE;
	} else {
		return false;
	}
	attr->config = tly_pmu_generic_config(pmu, config);
	return true;
}

static int apply_term(struct tly_parse *parse, struct tly_event *event, const struct tly_pmu *pmu,
		      const struct tly_term *term, const struct tly_terms *terms)
{
	char encoding[1024], name[NAME_MAX + 1];
	int ret;

	if (!term->has_value) {
		ssize_t n = tly_pmu_find_event(pmu, term->name, name, encoding, sizeof(encoding));

		if (n >= 0)
			return apply_event(parse, event, pmu, term->name, name, encoding, terms);
		if (n == -ENOMEM)
			return tly_parse_no_memory(parse);
	}
	ret = tly_term_apply(parse, event, term);
	if (ret)
		return ret < 0 ? ret : 0;
	if (!term->has_value) {
		uint64_t config;

		if (apply_generic(event, pmu, term->name))
			return 0;
		if (tly_raw_config(term->name, &config)) {
			*tly_event_config(event, 0) = config;
			return 0;
		}
	}
	return apply_format(parse, event, pmu, term);
}

int tly_pmu_bind(struct tly_parse *parse, struct tly_event *event, const struct tly_pmu *pmu)
{
	char text[1024];

	/* Units outside of the processors refuse all attr.exclude_ bits. */
	if (!pmu->core)
		event->attr.attr.exclude_guest = 0;
	event->core = pmu->core;
	event->event.pmu = tly_event_string(event, pmu->name, strlen(pmu->name));
	if (!event->event.pmu)
		return tly_parse_no_memory(parse);
	if (tly_pmu_read(pmu, "", tly_span_of("cpumask"), "", text, sizeof(text)) > 0) {
		event->event.cpus = tly_event_string(event, text, strlen(text));
		if (!event->event.cpus)
			return tly_parse_no_memory(parse);
	}
	return 0;
}

static int add_unit(struct tly_parse *parse, const struct tly_pmu *pmu,
		    const struct tly_terms *terms, const char *name)
{
	struct tly_event *event = tly_parse_add(parse, pmu->type, 0, tly_span_of(name));
	int ret = event ? tly_pmu_bind(parse, event, pmu) : tly_parse_no_memory(parse);

	for (size_t i = 0; !ret && i < terms->nr; i++)
		ret = apply_term(parse, event, pmu, &terms->terms[i], terms);
	return ret;
}

int tly_pmu_set(struct tly_parse *parse, struct tly_event *event, const struct tly_pmu *pmu,
		const char *term)
{
	struct tly_term set = {.name = tly_span_of(term), .is_number = true, .number = 1};

	return apply_format(parse, event, pmu, &set);
}

/* Several units */

struct adding {
	struct tly_parse *parse;
	const struct tly_terms *terms;
	struct tly_span word;
	struct tly_span text;
	size_t added;
};

/* Whether @name is @word with a number behind it: uncore_imc_0 and uncore_imc0 of uncore_imc. */
static bool is_numbered(const char *name, struct tly_span word)
{
	size_t n = word.length;

	if (strncmp(name, word.at, n) || !name[n])
		return false;
	if (name[n] == '_')
		n++;
	if (!isdigit((unsigned char)name[n]))
		return false;
	return name[n + strspn(name + n, "0123456789")] == '\0';
}

static bool stands_for(struct tly_span word, const char *name)
{
	static const char uncore[] = "uncore_";
	char pattern[NAME_MAX + 1];
	const char *bare = !strncmp(name, uncore, strlen(uncore)) ? name + strlen(uncore) : NULL;

	if (word.length > NAME_MAX)
		return false;
	snprintf(pattern, sizeof(pattern), "%.*s", TLY_SPAN(word));
	if (strpbrk(pattern, "*?["))
		return !fnmatch(pattern, name, 0) || (bare && !fnmatch(pattern, bare, 0));
	return is_numbered(name, word) || (bare && is_numbered(bare, word)) ||
	       (bare && !strcmp(pattern, bare));
}

static int add_if_meant(const struct tly_pmu *pmu, void *ctx)
{
	struct adding *adding = ctx;
	struct tly_span rest = {
		.at = adding->text.at + adding->word.length,
		.length = adding->text.length - adding->word.length,
	};
	char *name;
	int ret;

	if (!stands_for(adding->word, pmu->name))
		return 0;
	if (asprintf(&name, "%s%.*s", pmu->name, TLY_SPAN(rest)) < 0)
		return tly_parse_no_memory(adding->parse);
	ret = add_unit(adding->parse, pmu, adding->terms, name);
	free(name);
	adding->added++;
	return ret;
}

static int suggest_unit(const struct tly_pmu *pmu, void *ctx)
{
	tly_nearest_consider(ctx, pmu->name, NULL);
	return 0;
}

static int unknown_unit(struct tly_parse *parse, struct tly_span word)
{
	char remedy[sizeof(parse->err->remedy)];
	struct tly_nearest nearest;

	tly_nearest_init(&nearest, word.at, word.length);
	tly_pmu_each(parse->roots, suggest_unit, &nearest);
	tly_parse_error(parse, -ENOTSUP, word.at, "this machine has no unit '%.*s'",
			TLY_SPAN(word));
	if (tly_span_is(word, "cpu"))
		return tly_error_remedy(parse->err, "no hardware counters are visible here, as in "
						    "many virtual machines; software events work: "
						    "'tally list sw'");
	if (!tly_nearest_format(&nearest, remedy, sizeof(remedy)))
		return tly_error_remedy(parse->err, "'tally list pmu' shows those that it has");
	return tly_error_remedy(parse->err, "%s", remedy);
}

int tly_pmu_add(struct tly_parse *parse, struct tly_span word, const struct tly_terms *terms,
		struct tly_span text)
{
	struct adding adding = {.parse = parse, .terms = terms, .word = word, .text = text};
	struct tly_pmu pmu;
	char *name;
	int ret;

	if (!tly_pmu_find(parse->roots, word, &pmu)) {
		if (asprintf(&name, "%.*s", TLY_SPAN(text)) < 0)
			return tly_parse_no_memory(parse);
		ret = add_unit(parse, &pmu, terms, name);
		free(name);
		return ret;
	}
	ret = tly_pmu_each(parse->roots, add_if_meant, &adding);
	if (adding.added)
		return ret;
	return ret == -ENOMEM ? tly_parse_no_memory(parse) : unknown_unit(parse, word);
}

/* Events without their unit */

static int add_if_has(const struct tly_pmu *pmu, void *ctx)
{
	char encoding[1024], name[NAME_MAX + 1];
	struct adding *adding = ctx;
	struct tly_term term = {.name = adding->word, .number = 1};
	struct tly_terms terms = {.terms = &term, .nr = 1};
	char *full;
	int ret;

	if (tly_pmu_find_event(pmu, adding->word, name, encoding, sizeof(encoding)) < 0)
		return 0;
	if (asprintf(&full, "%s/%s/", pmu->name, name) < 0)
		return tly_parse_no_memory(adding->parse);
	ret = add_unit(adding->parse, pmu, &terms, full);
	free(full);
	adding->added++;
	return ret;
}

int tly_pmu_add_event(struct tly_parse *parse, struct tly_span word)
{
	struct adding adding = {.parse = parse, .word = word};
	int ret;

	ret = tly_pmu_each(parse->roots, add_if_has, &adding);
	if (adding.added)
		return ret ? ret : 1;
	return ret == -ENOMEM ? tly_parse_no_memory(parse) : 0;
}
