// SPDX-License-Identifier: MIT
/*
 * What perf script and libtraceevent need to print the fields of a tracepoint on another machine:
 * the format files of tracefs, in the layout of trace-cmd's trace.dat, version 0.6:
 *
 *	"\x17\x08\x44" "tracing" "0.6\0"  u8 big endian  u8 sizeof(long)  u32 page size
 *	"header_page\0"  u64 size  file		"header_event\0"  u64 size  file
 *	u32 number of formats of the ftrace system, and of each	  u64 size  file
 *	u32 number of systems, and of each  name\0  u32 number of events, of each  u64 size  file
 *	u32 size of kallsyms (0)  u32 size of printk_formats  file  u64 size of saved_cmdlines  file
 */
#include "lib/perfdata/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tally/event.h>

#include "lib/event/roots.h"
#include "lib/event/tracepoint.h"

struct point {
	char system[128], event[128];
};

/* A size of @width bytes, then the file; size 0 when it cannot be read. */
static bool put_file(struct tly_bytes *out, const char *folder, const char *name, size_t width)
{
	size_t at = out->size;
	uint64_t size = 0;
	char path[1024];
	int ret;

	tly_bytes_put(out, &size, width);
	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return false;
	ret = tly_bytes_file(out, path);
	if (out->failed)
		return false;
	if (ret)
		out->size = at + width;
	size = out->size - at - width;
	memcpy(out->data + at, &size, width);
	return !ret;
}

static bool parse_name(const char *name, struct point *point)
{
	return sscanf(name, "%127[^:]:%127s", point->system, point->event) == 2;
}

/* By its name when that is one, else by its id: a name= term may have chosen the name. */
static bool find_point(const struct tly_written_event *event, struct point *point)
{
	char name[256];
	uint64_t id;

	if (event->attr->type != PERF_TYPE_TRACEPOINT)
		return false;
	if (parse_name(event->name, point) &&
	    !tly_tracepoint_id(&tly_roots_default, point->system, point->event, &id) &&
	    id == event->attr->config)
		return true;
	tally_event_name(event->attr, name, sizeof(name));
	return parse_name(name, point);
}

static int compare(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	int order = strcmp(x->system, y->system);

	return order ? order : strcmp(x->event, y->event);
}

/* The tracepoints of the events, each once, those of a system together. */
static size_t find_points(const struct tly_facts *facts, struct point *points)
{
	size_t nr = 0, once = 0;

	for (size_t i = 0; i < facts->nr_events; i++)
		nr += find_point(&facts->events[i], &points[nr]);
	qsort(points, nr, sizeof(*points), compare);
	for (size_t i = 0; i < nr; i++)
		if (!once || compare(&points[once - 1], &points[i]))
			points[once++] = points[i];
	return once;
}

static size_t system_end(const struct point *points, size_t from, size_t nr)
{
	size_t end = from + 1;

	while (end < nr && !strcmp(points[end].system, points[from].system))
		end++;
	return end;
}

static bool put_formats(struct tly_bytes *out, const char *events, const struct point *points,
			size_t nr)
{
	uint32_t nr_systems = 0;

	for (size_t i = 0; i < nr; i = system_end(points, i, nr))
		nr_systems++;
	tly_bytes_u32(out, 0); /* none of the ftrace system */
	tly_bytes_u32(out, nr_systems);
	for (size_t i = 0; i < nr;) {
		size_t end = system_end(points, i, nr);

		tly_bytes_put(out, points[i].system, strlen(points[i].system) + 1);
		tly_bytes_u32(out, (uint32_t)(end - i));
		for (; i < end; i++) {
			char name[300];

			snprintf(name, sizeof(name), "%s/%s/format", points[i].system,
				 points[i].event);
			if (!put_file(out, events, name, sizeof(uint64_t)))
				return false;
		}
	}
	return true;
}

static void put_start(struct tly_bytes *out)
{
	const uint16_t one = 1;
	uint8_t order[2];

	memcpy(order, &one, sizeof(order));
	tly_bytes_put(out,
		      "\x17\x08\x44"
		      "tracing"
		      "0.6",
		      14);
	tly_bytes_put(out, &(uint8_t){order[1]}, 1); /* 1 when the high byte comes first */
	tly_bytes_put(out, &(uint8_t){sizeof(long)}, 1);
	tly_bytes_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
}

static bool put_all(struct tly_bytes *out, const char *events, const struct point *points,
		    size_t nr)
{
	put_start(out);
	tly_bytes_put(out, "header_page", 12);
	if (!put_file(out, events, "header_page", sizeof(uint64_t)))
		return false;
	tly_bytes_put(out, "header_event", 13);
	if (!put_file(out, events, "header_event", sizeof(uint64_t)) ||
	    !put_formats(out, events, points, nr))
		return false;
	tly_bytes_u32(out, 0); /* kallsyms, which nobody reads */
	put_file(out, events, "../printk_formats", sizeof(uint32_t));
	put_file(out, events, "../saved_cmdlines", sizeof(uint64_t));
	return !out->failed;
}

bool tly_tracing_data(const struct tly_facts *facts, struct tly_bytes *out)
{
	struct point *points;
	char events[512];
	size_t nr;
	bool ok;

	if (tly_tracefs_events(&tly_roots_default, events, sizeof(events)))
		return false;
	points = calloc(facts->nr_events, sizeof(*points));
	if (!points) {
		out->failed = true;
		return false;
	}
	nr = find_points(facts, points);
	ok = nr && put_all(out, events, points, nr);
	free(points);
	return ok;
}
