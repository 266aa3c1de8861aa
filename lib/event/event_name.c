// SPDX-License-Identifier: MIT
/* tally_event_name(): the parser backwards, for the attrs of files. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event/breakpoint.h"
#include "lib/event/names.h"
#include "lib/event/roots.h"
#include "lib/event/tracepoint.h"

struct search {
	const struct tly_roots *roots;
	uint64_t id;
	char *buf;
	size_t size;
	int length; /* 0: not found yet */
};

static int compare_id(const char *system, const char *event, void *ctx)
{
	struct search *search = ctx;
	uint64_t id;

	if (tly_tracepoint_id(search->roots, system, event, &id) || id != search->id)
		return 0;
	search->length = snprintf(search->buf, search->size, "%s:%s", system, event);
	return 1;
}

static int tracepoint_name(uint64_t id, char *buf, size_t size)
{
	struct search search = {.roots = &tly_roots_default, .id = id, .buf = buf, .size = size};

	tly_tracepoint_walk(search.roots, "*", compare_id, &search);
	return search.length ? search.length : snprintf(buf, size, "tracepoint:%" PRIu64, id);
}

static int base_name(const struct perf_event_attr *attr, char *buf, size_t size)
{
	const struct tly_generic *generic = tly_generic_of(attr->type, attr->config);
	char cache[32];

	if (generic)
		return snprintf(buf, size, "%s", generic->name);
	switch (attr->type) {
	case PERF_TYPE_HW_CACHE:
		if (tly_cache_name(attr->config, cache, sizeof(cache)))
			return snprintf(buf, size, "%s", cache);
		break;
	case PERF_TYPE_TRACEPOINT:
		return tracepoint_name(attr->config, buf, size);
	case PERF_TYPE_RAW:
		return snprintf(buf, size, "r%" PRIx64, (uint64_t)attr->config);
	case PERF_TYPE_BREAKPOINT:
		return tly_breakpoint_name(attr, buf, size);
	}
	return snprintf(buf, size, "%u:0x%" PRIx64, attr->type, (uint64_t)attr->config);
}

int tally_event_name(const struct perf_event_attr *attr, char *buf, size_t size)
{
	char modifiers[16], *p = modifiers;
	int length = base_name(attr, buf, size);

	*p++ = ':';
	if (attr->exclude_user || attr->exclude_kernel || attr->exclude_hv) {
		if (!attr->exclude_user)
			*p++ = 'u';
		if (!attr->exclude_kernel)
			*p++ = 'k';
		if (!attr->exclude_hv)
			*p++ = 'h';
	}
	for (unsigned int i = 0; i < attr->precise_ip; i++)
		*p++ = 'p';
	if (attr->exclude_host && !attr->exclude_guest)
		*p++ = 'G';
	*p = '\0';
	if (!modifiers[1])
		return length;
	return length + ((size_t)length < size
				 ? snprintf(buf + length, size - length, "%s", modifiers)
				 : (int)strlen(modifiers));
}
