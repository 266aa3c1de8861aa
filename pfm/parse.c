// SPDX-License-Identifier: MIT
/*
 *	[UNIT::]EVENT[:ATTRIBUTE[=VALUE]]...
 *
 * Nothing is copied: names are looked up where they stand in the string.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pfm/event.h"
#include "pfm/host.h"
#include "pfm/tracepoints.h"

enum { MAX_NESTING = 4 }; /* of attributes that stand for others */

struct span {
	const char *start;
	size_t len;
};

static bool span_is(struct span span, const char *name)
{
	return strncasecmp(name, span.start, span.len) == 0 && name[span.len] == '\0';
}

/* rNNN, with 1 to 16 hexadecimal digits. */
static bool is_raw(struct span name, uint64_t *code)
{
	if (name.len < 2 || name.len > 17 || name.start[0] != 'r')
		return false;
	for (size_t i = 1; i < name.len; i++)
		if (!isxdigit((unsigned char)name.start[i]))
			return false;
	*code = strtoull(name.start + 1, NULL, 16);
	return true;
}

static bool find_system(struct request *request, const struct table_pmu *pmu, struct span name)
{
	size_t n;
	const struct tracepoint_system *systems = tly_pfm_tracepoint_systems(&n);

	for (size_t i = 0; i < n; i++) {
		if (!span_is(name, systems[i].name))
			continue;
		request->event = (struct event){
			.pmu = pmu, .system = &systems[i], .number = pmu->n_events + i};
		return true;
	}
	return false;
}

static bool find_in_unit(struct request *request, const struct table_pmu *pmu, struct span name)
{
	int number;

	if (pmu->encoder == TABLE_ENCODE_PERF_RAW) {
		if (!is_raw(name, &request->raw))
			return false;
		request->has_raw = true;
		number = 0;
	} else {
		number = tly_pfm_table_find_event(pmu, name.start, name.len);
	}
	if (number < 0)
		return pmu->encoder == TABLE_ENCODE_PERF && find_system(request, pmu, name);
	request->event =
		(struct event){.pmu = pmu, .entry = table_event(pmu, number), .number = number};
	return true;
}

/* Units are asked in this order: the model's own, what all of a vendor have, the kernel's. */
static int rank_of(const struct table_pmu *pmu)
{
	if (pmu->type == PFM_PMU_TYPE_OS_GENERIC)
		return 2;
	return table_is_architected(pmu);
}

static bool find_in_present(struct request *request, struct span name)
{
	for (int rank = 0; rank < 3; rank++) {
		for (size_t i = 0; i < tly_pfm_table.n_pmus; i++) {
			const struct table_pmu *pmu = table_pmus() + i;

			if (rank_of(pmu) == rank && host_has(pmu) &&
			    find_in_unit(request, pmu, name))
				return true;
		}
	}
	return false;
}

static bool find_in_device(struct request *request, const struct sysfs_unit *device,
			   struct span name)
{
	for (size_t i = 0; i < device->n_events; i++) {
		if (!span_is(name, device->events[i].name))
			continue;
		request->event = (struct event){.pmu = &device->pmu, .device = device, .number = i};
		memcpy(request->config, device->events[i].config, sizeof(request->config));
		return true;
	}
	return false;
}

/* The unit has no table: a device may be called so. */
static int find_on_devices(struct request *request, struct span unit, struct span name)
{
	const struct sysfs_unit *device = tly_pfm_sysfs_find(unit.start, unit.len);

	return device && find_in_device(request, device, name) ? PFM_SUCCESS : PFM_ERR_NOTFOUND;
}

static int find_event(struct request *request, const char **string)
{
	const char *unit = *string, *separator = strstr(unit, "::");
	struct span name = {.start = separator ? separator + 2 : unit};
	const struct table_pmu *pmu;

	name.len = strcspn(name.start, ":.");
	*string = name.start + name.len;
	if (name.len == 0)
		return PFM_ERR_NOTFOUND;
	if (!separator)
		return find_in_present(request, name) ? PFM_SUCCESS : PFM_ERR_NOTFOUND;
	pmu = tly_pfm_table_find_pmu(unit, separator - unit);
	if (!pmu)
		return find_on_devices(request, (struct span){unit, separator - unit}, name);
	if (!(host_has(pmu) || tly_pfm_host.encode_inactive))
		return PFM_ERR_NOTFOUND;
	return find_in_unit(request, pmu, name) ? PFM_SUCCESS : PFM_ERR_NOTFOUND;
}

/* The next attribute of a list that begins with a separator. */
static bool next_attribute(const char **list, struct span *name, struct span *value,
			   bool *has_value)
{
	if (**list == '\0')
		return false;
	name->start = *list + 1;
	name->len = strcspn(name->start, ":.=");
	*value = (struct span){.start = name->start + name->len};
	*has_value = *value->start == '=';
	if (*has_value) {
		value->start++;
		value->len = strcspn(value->start, ":.");
	}
	*list = value->start + value->len;
	return true;
}

static bool parse_bool(struct span value, uint64_t *number)
{
	if (value.len != 1)
		return false;
	switch (tolower((unsigned char)*value.start)) {
	case '1':
	case 'y':
	case 't':
		*number = 1;
		return true;
	case '0':
	case 'n':
	case 'f':
		*number = 0;
		return true;
	default:
		return false;
	}
}

static bool parse_integer(struct span value, uint64_t *number)
{
	char *end;

	if (value.len == 0)
		return false;
	errno = 0;
	*number = strtoull(value.start, &end, 0);
	return end == value.start + value.len && !errno;
}

static int parse_value(const struct modifier *mod, struct span value, bool has_value,
		       uint64_t *number)
{
	bool ok;

	*number = 1;
	if (mod->type == PFM_ATTR_MOD_INTEGER)
		ok = has_value && parse_integer(value, number);
	else
		ok = !has_value || parse_bool(value, number);
	return ok ? PFM_SUCCESS : PFM_ERR_ATTR_VAL;
}

/* A modifier may be repeated, with the same value. */
static int set_modifier(unsigned int *given, uint64_t *values, unsigned int i, uint64_t value)
{
	if (*given >> i & 1 && values[i] != value)
		return PFM_ERR_ATTR_SET;
	*given |= 1U << i;
	values[i] = value;
	return PFM_SUCCESS;
}

static int find_modifier(const struct modifier *mods, unsigned int n, unsigned int allowed,
			 struct span name)
{
	for (unsigned int i = 0; i < n; i++)
		if (allowed >> i & 1 && span_is(name, mods[i].name))
			return i;
	return -1;
}

/* Returns whether the unit has such a field. */
static bool parse_field(struct request *request, struct span name, struct span value,
			bool has_value, int *rc)
{
	const struct sysfs_unit *device = request->event.device;
	uint64_t number = 1;
	size_t i = 0;

	while (i < device->n_fields && !span_is(name, device->fields[i].name))
		i++;
	if (i == device->n_fields)
		return false;
	*rc = PFM_SUCCESS;
	if (has_value && !parse_integer(value, &number))
		*rc = PFM_ERR_ATTR_VAL;
	else if (request->fields_given >> i & 1 &&
		 tly_pfm_field_get(&device->fields[i], request->config) != number)
		*rc = PFM_ERR_ATTR_SET;
	else if (!tly_pfm_field_set(&device->fields[i], number, request->config))
		*rc = PFM_ERR_ATTR_VAL;
	request->fields_given |= 1ULL << i;
	return true;
}

static int parse_modifier(struct request *request, struct span name, struct span value,
			  bool has_value)
{
	unsigned int allowed = tly_pfm_mods_of(&request->event, request->os);
	int rc, i = find_modifier(tly_pfm_mods, N_MODS, allowed, name);
	uint64_t number;

	if (request->event.device && parse_field(request, name, value, has_value, &rc))
		return rc;
	if (i >= 0) {
		rc = parse_value(&tly_pfm_mods[i], value, has_value, &number);
		return rc ? rc : set_modifier(&request->given, request->value, i, number);
	}
	allowed = tly_pfm_perf_mods_of(&request->event, request->os);
	i = find_modifier(tly_pfm_perf_mods, N_PERF_MODS, allowed, name);
	if (i < 0)
		return PFM_ERR_ATTR;
	rc = parse_value(&tly_pfm_perf_mods[i], value, has_value, &number);
	return rc ? rc : set_modifier(&request->perf_given, request->perf_value, i, number);
}

/* 0xNN: takes the place of all masks. */
static int parse_raw_mask(struct request *request, struct span name)
{
	char *end;

	switch (request->event.pmu->encoder) {
	case TABLE_ENCODE_INTEL:
	case TABLE_ENCODE_X86_ARCH:
	case TABLE_ENCODE_AMD64:
	case TABLE_ENCODE_AMD64_L3:
	case TABLE_ENCODE_AMD64_NB:
		break;
	default:
		return PFM_ERR_ATTR;
	}
	if (request->has_raw || request->names_mask)
		return PFM_ERR_ATTR;
	request->raw = strtoull(name.start, &end, 16);
	if (end != name.start + name.len)
		return PFM_ERR_ATTR;
	request->has_raw = true;
	return PFM_SUCCESS;
}

static bool is_raw_mask(struct span name)
{
	return name.len >= 2 && name.start[0] == '0' &&
	       tolower((unsigned char)name.start[1]) == 'x';
}

static int find_mask(const struct request *request, struct span name)
{
	const struct tracepoint_system *system = request->event.system;

	if (request->event.device)
		return -1;
	if (!system)
		return tly_pfm_table_find_mask(request->event.entry, name.start, name.len);
	for (size_t i = 0; i < system->n_points; i++)
		if (span_is(name, system->points[i]))
			return i;
	return -1;
}

static int parse_attributes(struct request *request, const char *list, int depth);

static int parse_mask(struct request *request, unsigned int mask, int depth)
{
	const char *equiv;

	if (request->event.system) {
		if (request->tracepoint >= 0 && request->tracepoint != (int)mask)
			return PFM_ERR_FEATCOMB;
		request->tracepoint = mask;
		return PFM_SUCCESS;
	}
	if (request->has_raw)
		return PFM_ERR_ATTR;
	request->names_mask = true;
	equiv = table_string(table_masks(request->event.entry)[mask].equiv);
	if (equiv)
		return depth < MAX_NESTING ? parse_attributes(request, equiv, depth + 1)
					   : PFM_ERR_ATTR;
	request_add_mask(request, mask);
	return PFM_SUCCESS;
}

/* list begins with a separator, but for lists of the table. */
static int parse_attributes(struct request *request, const char *list, int depth)
{
	struct span name, value;
	bool has_value;
	char first[256];

	if (*list && *list != ':' && *list != '.') {
		if (snprintf(first, sizeof(first), ":%s", list) >= (int)sizeof(first))
			return PFM_ERR_TOOMANY;
		list = first;
	}
	while (next_attribute(&list, &name, &value, &has_value)) {
		int mask, rc;

		if (is_raw_mask(name)) {
			rc = parse_raw_mask(request, name);
		} else {
			/* Some masks have names of modifiers; those are meant with a value. */
			mask = name.len && !has_value ? find_mask(request, name) : -1;
			rc = mask >= 0 ? parse_mask(request, mask, depth)
				       : parse_modifier(request, name, value, has_value);
		}
		if (rc) {
			tly_pfm_verbose("%s: %.*s", pfm_strerror(rc), (int)name.len, name.start);
			return rc;
		}
	}
	return PFM_SUCCESS;
}

/* Some names stand for others altogether, attributes included. */
static int resolve_alias(struct request *request)
{
	const struct event *event = &request->event;
	const char *equiv = event->entry ? table_string(event->entry->equiv) : NULL;
	struct span name = {.start = equiv};

	if (!equiv)
		return PFM_SUCCESS;
	name.len = strcspn(equiv, ":.");
	if (!find_in_unit(request, event->pmu, name))
		return PFM_ERR_NOTFOUND;
	return parse_attributes(request, equiv + name.len, 1);
}

int tly_pfm_parse(const char *string, pfm_os_t os, struct request *request)
{
	const char *list = string;
	int rc;

	*request = (struct request){.os = os, .tracepoint = -1};
	if (strpbrk(string, ", \t\n\v\f\r"))
		return PFM_ERR_INVAL;
	rc = find_event(request, &list);
	if (rc) {
		tly_pfm_verbose("%s: %s", pfm_strerror(rc), string);
		return rc;
	}
	rc = resolve_alias(request);
	/* A mask by number may take the place of those that the name stood for. */
	request->names_mask = false;
	return rc ? rc : parse_attributes(request, list, 0);
}
