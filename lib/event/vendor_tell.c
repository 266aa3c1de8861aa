// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"
#include "lib/event/vendor.h"

/* Calls @visit for each attribute of the event. */
static void each_attr(int idx, void (*visit)(const pfm_event_attr_info_t *attr, void *ctx),
		      void *ctx)
{
	for (int i = 0;; i++) {
		pfm_event_attr_info_t attr = {.size = sizeof(attr)};

		if (pfm_get_event_attr_info(idx, i, PFM_OS_PERF_EVENT_EXT, &attr) != PFM_SUCCESS)
			return;
		visit(&attr, ctx);
	}
}

/* Lists of names */

struct names {
	char *buf;
	size_t size, used;
	unsigned int nr;
};

/* "a, b, c" and in the end "..." if there are more than fit. */
static void add_name(struct names *names, const char *name)
{
	const char *comma = names->nr ? ", " : "";
	size_t length = strlen(comma) + strlen(name);

	names->nr++;
	if (names->used + length + sizeof(", ...") > names->size) {
		if (names->used + sizeof(", ...") <= names->size)
			strcpy(names->buf + names->used, ", ...");
		names->size = 0;
		return;
	}
	names->used += sprintf(names->buf + names->used, "%s%s", comma, name);
}

static void add_mask(const pfm_event_attr_info_t *attr, void *ctx)
{
	struct names *names = ctx;

	if (attr->type == PFM_ATTR_UMASK && names->size)
		add_name(names, attr->name);
}

static void add_units_here(struct names *names)
{
	pfm_pmu_info_t unit;

	for (int id = 0; id < TLY_VENDOR_UNITS; id++)
		if (tly_vendor_unit(id, &unit) && tly_vendor_is_here(&unit) && names->size)
			add_name(names, unit.name);
}

/* Attributes */

struct part {
	struct tly_span name;
	bool has_value;
};

static bool next_part(const char **attrs, struct part *part)
{
	const char *p = *attrs;

	if (!*p)
		return false;
	part->name.at = ++p;
	part->name.length = strcspn(p, ":.=");
	part->has_value = p[part->name.length] == '=';
	*attrs = p + strcspn(p, ":.");
	return true;
}

/* The first part of the attributes that is none of the event's. */
static bool find_unknown(const struct tly_vendor_text *text, struct part *part)
{
	const char *attrs = text->attrs;
	pfm_event_attr_info_t attr;

	while (next_part(&attrs, part))
		if (strncasecmp(part->name.at, "0x", 2) != 0 &&
		    !tly_vendor_attr(text->idx, part->name, &attr))
			return true;
	return false;
}

struct suggesting {
	const struct tly_vendor_text *text;
	struct tly_nearest nearest;
};

static void suggest_attr(const pfm_event_attr_info_t *attr, void *ctx)
{
	struct suggesting *suggesting = ctx;
	char shown[TLY_VENDOR_NAME];
	bool mask = attr->type == PFM_ATTR_UMASK;

	snprintf(shown, sizeof(shown), "%s:%s%s", suggesting->text->event, attr->name,
		 mask ? "" : "=");
	tly_nearest_consider(&suggesting->nearest, attr->name, shown);
}

static int unknown_attr(struct tly_parse *parse, const char *at, const struct tly_vendor_text *text,
			struct tly_span part)
{
	struct suggesting suggesting = {.text = text};
	char remedy[sizeof(parse->err->remedy)];

	tly_parse_error(parse, -ENOENT, at, "event '%s' of %s has no mask or modifier '%.*s'",
			text->event, text->unit, TLY_SPAN(part));
	tly_nearest_init(&suggesting.nearest, part.at, part.length);
	each_attr(text->idx, suggest_attr, &suggesting);
	if (!tly_nearest_format(&suggesting.nearest, remedy, sizeof(remedy)))
		return tly_error_remedy(parse->err, "'tally list %s' shows its masks", text->event);
	return tly_error_remedy(parse->err, "%s", remedy);
}

/* The modifiers that were given, and which values they take. */
static int wrong_value(struct tly_parse *parse, const char *at, const struct tly_vendor_text *text)
{
	const char *attrs = text->attrs;
	pfm_event_attr_info_t attr;
	struct part part;

	tly_parse_error(parse, -EINVAL, at, "a modifier of '%s' has a value that it does not take",
			text->event);
	while (next_part(&attrs, &part))
		if (tly_vendor_attr(text->idx, part.name, &attr) &&
		    attr.type == PFM_ATTR_MOD_INTEGER)
			return tly_error_remedy(parse->err, "%s: %s", attr.name, attr.desc);
	return tly_error_remedy(parse->err, "0 and 1 are values that it takes");
}

static int missing_mask(struct tly_parse *parse, const char *at, const struct tly_vendor_text *text)
{
	char list[sizeof(parse->err->remedy) / 2];
	struct names names = {.buf = list, .size = sizeof(list)};

	*list = '\0';
	tly_parse_error(parse, -EINVAL, at, "event '%s' of %s needs a mask", text->event,
			text->unit);
	each_attr(text->idx, add_mask, &names);
	return tly_error_remedy(parse->err, "append ':' and one of %s", list);
}

int tly_vendor_wrong(struct tly_parse *parse, const char *at, const struct tly_vendor_text *text,
		     int pfm_error)
{
	struct part part;

	switch (pfm_error) {
	case PFM_ERR_NOMEM:
		return tly_parse_no_memory(parse);
	case PFM_ERR_UMASK:
		return missing_mask(parse, at, text);
	case PFM_ERR_ATTR_VAL:
		return wrong_value(parse, at, text);
	case PFM_ERR_FEATCOMB:
		tly_parse_error(parse, -EINVAL, at, "the masks of '%s' cannot be counted together",
				text->event);
		return tly_error_remedy(parse->err, "make events of them: %s:..., %s:...",
					text->event, text->event);
	case PFM_ERR_ATTR_SET:
		tly_parse_error(parse, -EINVAL, at,
				"'%s%s' gives a modifier two values: its mask may have one already",
				text->event, text->attrs);
		return tly_error_remedy(parse->err, "leave the modifier out");
	case PFM_ERR_NOTSUPP:
		return tly_parse_error(parse, -ENOTSUP, at,
				       "the kernel has no device for the unit %s", text->unit);
	case PFM_ERR_ATTR:
		if (find_unknown(text, &part))
			return unknown_attr(parse, at, text, part.name);
		break;
	default:
		break;
	}
	tly_parse_error(parse, -EINVAL, at, "event '%s%s': %s", text->event, text->attrs,
			pfm_strerror(pfm_error));
	return tly_error_remedy(parse->err, "'tally list %s' shows its masks", text->event);
}

/* Units and events */

static void suggest_events(const pfm_pmu_info_t *unit, bool with_unit, struct tly_nearest *nearest)
{
	bool with_mask = memchr(nearest->wanted, ':', nearest->length);

	for (int i = unit->first_event; i >= 0; i = pfm_get_event_next(i)) {
		pfm_event_info_t event = {.size = sizeof(event)};
		char shown[TLY_VENDOR_NAME];

		if (pfm_get_event_info(i, PFM_OS_NONE, &event) != PFM_SUCCESS)
			continue;
		snprintf(shown, sizeof(shown), "%s%s%s", with_unit ? unit->name : "",
			 with_unit ? "::" : "", event.name);
		if (!with_mask)
			tly_nearest_consider(nearest, event.name, shown);
		for (int j = 0; with_mask && j < event.nattrs; j++) {
			pfm_event_attr_info_t attr = {.size = sizeof(attr)};

			if (pfm_get_event_attr_info(i, j, PFM_OS_NONE, &attr) != PFM_SUCCESS ||
			    attr.type != PFM_ATTR_UMASK)
				break;
			snprintf(shown, sizeof(shown), "%s:%s", event.name, attr.name);
			tly_nearest_consider(nearest, shown, NULL);
		}
	}
}

void tly_vendor_suggest(struct tly_nearest *nearest)
{
	pfm_pmu_info_t unit;

	if (pfm_initialize() != PFM_SUCCESS)
		return;
	for (int id = 0; id < TLY_VENDOR_UNITS; id++)
		if (tly_vendor_unit(id, &unit) && tly_vendor_is_here(&unit))
			suggest_events(&unit, false, nearest);
}

static bool find_unit(const char *name, pfm_pmu_info_t *unit)
{
	for (int id = 0; id < TLY_VENDOR_UNITS; id++)
		if (tly_vendor_unit(id, unit) && !strcasecmp(unit->name, name))
			return true;
	return false;
}

static int unknown_unit(struct tly_parse *parse, const char *at, const char *name)
{
	char remedy[sizeof(parse->err->remedy)];
	struct tly_nearest nearest;
	pfm_pmu_info_t unit;

	tly_parse_error(parse, -ENOENT, at, "no processor's unit is called '%s'", name);
	tly_nearest_init(&nearest, name, strlen(name));
	for (int id = 0; id < TLY_VENDOR_UNITS; id++)
		if (tly_vendor_unit(id, &unit))
			tly_nearest_consider(&nearest, unit.name, NULL);
	if (!tly_nearest_format(&nearest, remedy, sizeof(remedy)))
		return tly_error_remedy(parse->err, "'tally list --all-pmus' shows all of them");
	return tly_error_remedy(parse->err, "%s", remedy);
}

/* For the remedy: the units that this machine has. */
static int say_units_here(struct tally_error *err)
{
	char list[sizeof(err->remedy) - 80];
	struct names names = {.buf = list, .size = sizeof(list)};

	*list = '\0';
	add_units_here(&names);
	if (!names.nr)
		return tly_error_remedy(err, "this machine's processor is none that is known by "
					     "name: 'tally list' shows its events");
	return tly_error_remedy(err, "this machine has %s: 'tally list vendor' shows the events",
				list);
}

int tly_vendor_not_in_unit(struct tly_parse *parse, const char *at, const char *name,
			   const char *event)
{
	char remedy[sizeof(parse->err->remedy)];
	struct tly_nearest nearest;
	pfm_pmu_info_t unit;

	if (!find_unit(name, &unit))
		return unknown_unit(parse, at, name);
	if (!unit.is_present) {
		tly_parse_error(parse, -ENOTSUP, at, "%s is not this machine's: %s", unit.name,
				unit.desc);
		if (!strcmp(unit.name, "tally"))
			return tly_error_remedy(parse->err, "run the command under 'tally run', "
							    "which has it");
		return say_units_here(parse->err);
	}
	tly_parse_error(parse, -ENOENT, at, "the unit %s has no event '%s'", unit.name, event);
	tly_nearest_init(&nearest, event, strlen(event));
	suggest_events(&unit, true, &nearest);
	if (!tly_nearest_format(&nearest, remedy, sizeof(remedy)))
		return tly_error_remedy(parse->err, "'tally list %s::' shows what it has",
					unit.name);
	return tly_error_remedy(parse->err, "%s", remedy);
}

static bool unit_has(const pfm_pmu_info_t *unit, struct tly_span word)
{
	for (int i = unit->first_event; i >= 0; i = pfm_get_event_next(i)) {
		pfm_event_info_t event = {.size = sizeof(event)};

		if (pfm_get_event_info(i, PFM_OS_NONE, &event) == PFM_SUCCESS &&
		    strlen(event.name) == word.length &&
		    !strncasecmp(event.name, word.at, word.length))
			return true;
	}
	return false;
}

/* Spares looking through all the tables for what cannot stand there. */
static bool may_be_event(struct tly_span word)
{
	if (word.length < 3)
		return false;
	for (size_t i = 0; i < word.length; i++)
		if (!isalnum((unsigned char)word.at[i]) && !strchr("_-", word.at[i]))
			return false;
	return true;
}

int tly_vendor_elsewhere(struct tly_parse *parse, struct tly_span word)
{
	char list[60];
	struct names names = {.buf = list, .size = sizeof(list)};
	pfm_pmu_info_t unit;
	bool ours = false;
	const char *dot;

	if (pfm_initialize() != PFM_SUCCESS)
		return 0;
	dot = memchr(word.at, '.', word.length);
	if (dot)
		word.length = dot - word.at;
	if (!may_be_event(word))
		return 0;
	/* The newest have the highest numbers. */
	for (int id = TLY_VENDOR_UNITS; id-- && names.size;)
		if (tly_vendor_unit(id, &unit) && unit.type != PFM_PMU_TYPE_OS_GENERIC &&
		    unit_has(&unit, word)) {
			add_name(&names, unit.name);
			ours |= !strcmp(unit.name, "tally");
		}
	if (!names.nr)
		return 0;
	if (ours) {
		tly_parse_error(parse, -ENOENT, word.at, "'%.*s' is an event that tally run has",
				TLY_SPAN(word));
		tly_error_remedy(parse->err, "'tally::%.*s' is counted in user mode",
				 TLY_SPAN(word));
		return -ENOENT;
	}
	tly_parse_error(parse, -ENOENT, word.at, "'%.*s' is an event of other processors: %s",
			TLY_SPAN(word), list);
	say_units_here(parse->err);
	return -ENOENT;
}
