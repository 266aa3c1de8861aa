// SPDX-License-Identifier: MIT
#include "lib/event/vendor.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"
#include "lib/event/modifiers.h"
#include "lib/event/pmu_event.h"

bool tly_vendor_unit(int id, pfm_pmu_info_t *unit)
{
	*unit = (pfm_pmu_info_t){.size = sizeof(*unit)};
	return pfm_get_pmu_info(id, unit) == PFM_SUCCESS;
}

bool tly_vendor_is_here(const pfm_pmu_info_t *unit)
{
	return unit->is_present && unit->type != PFM_PMU_TYPE_OS_GENERIC;
}

bool tly_vendor_attr(int idx, struct tly_span name, pfm_event_attr_info_t *attr)
{
	for (int i = 0;; i++) {
		*attr = (pfm_event_attr_info_t){.size = sizeof(*attr)};
		if (pfm_get_event_attr_info(idx, i, PFM_OS_PERF_EVENT_EXT, attr) != PFM_SUCCESS)
			return false;
		if (strlen(attr->name) == name.length &&
		    !strncasecmp(attr->name, name.at, name.length))
			return true;
	}
}

int tly_vendor_encode(const char *text, struct perf_event_attr *attr, int *cpu)
{
	pfm_perf_encode_arg_t arg = {.attr = attr, .size = sizeof(arg)};
	int rc;

	*attr = (struct perf_event_attr){.size = sizeof(*attr)};
	rc = pfm_get_os_event_encoding(text, PFM_PLM0 | PFM_PLM3 | PFM_PLMH, PFM_OS_PERF_EVENT_EXT,
				       &arg);
	*cpu = arg.cpu;
	return rc;
}

/* Which event is meant */

static bool find_in_unit(struct tly_vendor_text *text)
{
	char name[sizeof(*text)];

	snprintf(name, sizeof(name), "%s::%s", text->unit, text->event);
	text->idx = pfm_find_event(name);
	return text->idx >= 0;
}

/* Without a unit: the first of this machine's that has it. */
static bool find_here(struct tly_vendor_text *text)
{
	pfm_pmu_info_t unit;

	for (int id = 0; id < TLY_VENDOR_UNITS; id++) {
		if (!tly_vendor_unit(id, &unit) || !tly_vendor_is_here(&unit))
			continue;
		snprintf(text->unit, sizeof(text->unit), "%s", unit.name);
		if (find_in_unit(text))
			return true;
	}
	return false;
}

static bool is_end(char c)
{
	return !c || isspace((unsigned char)c) || strchr("/,{}", c);
}

static bool copy(char *to, size_t size, const char *from, size_t length)
{
	if (length >= size)
		return false;
	memcpy(to, from, length);
	to[length] = '\0';
	return true;
}

/*
 * Whether a last part is modifiers of ours, which all events take, and no attribute of the event.
 * For levels it is both, and means the same.
 */
static bool is_modifiers(int idx, const char *part)
{
	size_t length = tly_modifiers_length(part);
	pfm_event_attr_info_t attr;

	if (!length || !is_end(part[length]) || part[length] == '/')
		return false;
	if (length == 1 && strchr("ukh", *part))
		return true;
	if (!tly_vendor_attr(idx, (struct tly_span){part, length}, &attr))
		return true;
	return attr.type != PFM_ATTR_UMASK && strncmp(attr.name, part, length) != 0;
}

/* The attributes in @attrs, and where modifiers of ours begin. */
static const char *take_attrs(struct tly_vendor_text *text, const char *start)
{
	const char *end = start, *last = NULL;

	for (; !is_end(*end); end++)
		if (*end == ':')
			last = end;
	if (last && is_modifiers(text->idx, last + 1))
		end = last;
	return copy(text->attrs, sizeof(text->attrs), start, end - start) ? end : NULL;
}

/* What came of it */

static int find_device(const struct tly_pmu *pmu, void *ctx)
{
	struct tly_pmu *found = ctx;

	if (pmu->type != found->type)
		return 0;
	*found = *pmu;
	return 1;
}

static void take_bits(struct perf_event_attr *to, const struct perf_event_attr *from)
{
	to->exclude_user = from->exclude_user;
	to->exclude_kernel = from->exclude_kernel;
	to->exclude_hv = from->exclude_hv;
	to->exclude_guest = from->exclude_guest;
	to->exclude_host = from->exclude_host;
	to->precise_ip = from->precise_ip;
	to->pinned = from->pinned;
	to->exclusive = from->exclusive;
	to->freq = from->freq;
	to->sample_period = from->sample_period;
}

static int add(struct tly_parse *parse, struct tly_span name, const struct perf_event_attr *attr)
{
	struct tly_event *event = tly_parse_add(parse, attr->type, attr->config, name);
	struct tly_pmu device = {.type = attr->type};
	int ret = 0;

	if (!event)
		return tly_parse_no_memory(parse);
	*tly_event_config(event, 1) = attr->config1;
	*tly_event_config(event, 2) = attr->config2;
	take_bits(&event->attr.attr, attr);
	if (attr->type >= PERF_TYPE_MAX && tly_pmu_each(parse->roots, find_device, &device) == 1)
		ret = tly_pmu_bind(parse, event, &device);
	if (attr->freq)
		event->event.flags |= TALLY_EVENT_FREQ;
	else if (attr->sample_period)
		event->event.flags |= TALLY_EVENT_PERIOD;
	if (attr->exclude_user || attr->exclude_kernel)
		event->event.flags |= TALLY_EVENT_MODIFIED;
	return ret;
}

static int encode(struct tly_parse *parse, struct tly_span span, const struct tly_vendor_text *text)
{
	char name[sizeof(*text)];
	struct perf_event_attr attr;
	int rc, cpu;

	snprintf(name, sizeof(name), "%s::%s%s", text->unit, text->event, text->attrs);
	rc = tly_vendor_encode(name, &attr, &cpu);
	if (rc)
		return tly_vendor_wrong(parse, span.at, text, rc);
	if (cpu >= 0) {
		tly_parse_error(parse, -EINVAL, span.at, "'%s' cannot choose a processor",
				text->event);
		return tly_error_remedy(parse->err, "choose it for all events: -C %d", cpu);
	}
	return add(parse, span, &attr);
}

int tly_vendor_add(struct tly_parse *parse, struct tly_span word, const char **cursor)
{
	struct tly_vendor_text text = {.idx = -1};
	const char *event = word.at, *end = *cursor;
	bool has_unit = !strncmp(end, "::", 2);
	int ret;

	if (pfm_initialize() != PFM_SUCCESS)
		return 0;
	if (has_unit) {
		event = end + 2;
		if (!copy(text.unit, sizeof(text.unit), word.at, word.length))
			return tly_vendor_not_in_unit(parse, word.at, text.unit, "");
	}
	end = event;
	while (!is_end(*end) && *end != ':' && *end != '.')
		end++;
	if (!copy(text.event, sizeof(text.event), event, end - event))
		return has_unit ? tly_vendor_not_in_unit(parse, word.at, text.unit, "") : 0;
	if (has_unit && !find_in_unit(&text))
		return tly_vendor_not_in_unit(parse, word.at, text.unit, text.event);
	if (!has_unit && !find_here(&text))
		return 0;
	end = take_attrs(&text, end);
	if (!end)
		return tly_parse_error(parse, -EINVAL, word.at, "event '%s' has too many masks",
				       text.event);
	ret = encode(parse, (struct tly_span){word.at, end - word.at}, &text);
	*cursor = end;
	return ret ? ret : 1;
}
