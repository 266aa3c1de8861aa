// SPDX-License-Identifier: MIT
#include "lib/event/tracepoint.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/event/vendor.h"
#include "lib/readfile.h"

#define NAME_SIZE 128 /* of a system or of an event; the kernel's own names are shorter */

static bool is_glob(const char *name)
{
	return strpbrk(name, "*?[");
}

static bool matches(const char *pattern, const char *name)
{
	return is_glob(pattern) ? !fnmatch(pattern, name, 0) : !strcmp(pattern, name);
}

static int walk_system(const char *events, const char *system,
		       int (*visit)(const char *system, const char *event, void *ctx), void *ctx)
{
	char path[PATH_MAX];
	char **names;
	ssize_t nr;
	int ret = 0;

	if (snprintf(path, sizeof(path), "%s/%s", events, system) >= (int)sizeof(path))
		return 0;
	nr = tly_read_folder(path, &names);
	/* Systems are folders among plain files (header_page, enable). */
	if (nr < 0)
		return nr == -ENOTDIR ? 0 : nr;
	for (ssize_t i = 0; i < nr && !ret; i++) {
		/* An event is a folder with an id; enable and filter are files beside it. */
		if (snprintf(path, sizeof(path), "%s/%s/%s/id", events, system, names[i]) >=
		    (int)sizeof(path))
			continue;
		if (!strcmp(names[i], "enable") || !strcmp(names[i], "filter") ||
		    access(path, F_OK))
			continue;
		ret = visit(system, names[i], ctx);
	}
	free(names);
	return ret;
}

int tly_tracepoint_walk(const struct tly_roots *roots, const char *system,
			int (*visit)(const char *system, const char *event, void *ctx), void *ctx)
{
	char events[PATH_MAX];
	char **systems;
	ssize_t nr;
	int ret;

	ret = tly_tracefs_events(roots, events, sizeof(events));
	if (ret)
		return ret;
	if (!is_glob(system)) {
		ret = walk_system(events, system, visit, ctx);
		return ret == -ENOENT ? 0 : ret;
	}
	nr = tly_read_folder(events, &systems);
	if (nr < 0)
		return nr;
	for (ssize_t i = 0; i < nr && !ret; i++)
		if (matches(system, systems[i]))
			ret = walk_system(events, systems[i], visit, ctx);
	free(systems);
	return ret;
}

int tly_tracepoint_id(const struct tly_roots *roots, const char *system, const char *event,
		      uint64_t *id)
{
	char events[PATH_MAX], path[PATH_MAX];
	int ret = tly_tracefs_events(roots, events, sizeof(events));

	if (ret)
		return ret;
	if (snprintf(path, sizeof(path), "%s/%s/%s/id", events, system, event) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return tly_read_number(path, id);
}

static int suggest(const char *system, const char *event, void *ctx)
{
	struct tly_nearest *nearest = ctx;
	char full[2 * NAME_SIZE];

	snprintf(full, sizeof(full), "%s:%s", system, event);
	tly_nearest_consider(nearest, memchr(nearest->wanted, ':', nearest->length) ? full : event,
			     full);
	return 0;
}

void tly_tracepoint_suggest(const struct tly_roots *roots, struct tly_nearest *nearest)
{
	tly_tracepoint_walk(roots, "*", suggest, nearest);
}

struct adding {
	struct tly_parse *parse;
	const char *event;
	const char *events; /* the tracefs folder */
	size_t added;
};

int tly_tracepoint_no_tracefs(struct tally_error *err)
{
	tly_error(err, -ENOTSUP, "tracepoints need tracefs, which is not mounted");
	return tly_error_remedy(err, "sudo mount -t tracefs nodev /sys/kernel/tracing");
}

int tly_tracepoint_refused(struct tally_error *err, const char *events)
{
	int length = strlen(events) - strlen("/events");

	tly_error(err, -EACCES, "tracepoints may not be read: permission denied on %s", events);
	return tly_error_remedy(err,
				"run as root, or let your group read them: "
				"sudo mount -o remount,mode=750,gid=$(id -g) %.*s",
				length, events);
}

static int add(const char *system, const char *event, void *ctx)
{
	struct adding *adding = ctx;
	struct tly_parse *parse = adding->parse;
	char path[PATH_MAX], name[2 * NAME_SIZE];
	struct tly_event *added;
	uint64_t id;
	int ret;

	if (!matches(adding->event, event))
		return 0;
	if (snprintf(path, sizeof(path), "%s/%s/%s/id", adding->events, system, event) >=
	    (int)sizeof(path))
		return 0;
	ret = tly_read_number(path, &id);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "%s:%s", system, event);
	added = tly_parse_add(parse, PERF_TYPE_TRACEPOINT, id, tly_span_of(name));
	if (!added)
		return -ENOMEM;
	added->filterable = true;
	adding->added++;
	return 0;
}

static int unknown(struct tly_parse *parse, struct tly_span span)
{
	struct tly_nearest nearest;
	char remedy[sizeof(parse->err->remedy)];

	tly_parse_error(parse, -ENOENT, span.at, "no tracepoint '%.*s'", TLY_SPAN(span));
	tly_nearest_init(&nearest, span.at, span.length);
	tly_tracepoint_suggest(parse->roots, &nearest);
	tly_vendor_suggest(&nearest);
	if (!tly_nearest_format(&nearest, remedy, sizeof(remedy)))
		return tly_error_remedy(parse->err, "'tally list tracepoint' shows those of this "
						    "machine");
	return tly_error_remedy(parse->err, "%s", remedy);
}

int tly_tracepoint_add(struct tly_parse *parse, struct tly_span system, struct tly_span event)
{
	struct tly_span span = {system.at, event.at + event.length - system.at};
	char events[PATH_MAX], system_name[NAME_SIZE], event_name[NAME_SIZE];
	struct adding adding = {.parse = parse, .event = event_name, .events = events};
	char name[2 * NAME_SIZE];
	int ret;

	if (system.length >= NAME_SIZE || event.length >= NAME_SIZE)
		return tly_parse_error(parse, -ENOENT, system.at,
				       "a tracepoint's name is at most %d characters long",
				       NAME_SIZE - 1);
	snprintf(system_name, sizeof(system_name), "%.*s", TLY_SPAN(system));
	snprintf(event_name, sizeof(event_name), "%.*s", TLY_SPAN(event));
	snprintf(name, sizeof(name), "%s:%s", system_name, event_name);
	ret = tly_tracefs_events(parse->roots, events, sizeof(events));
	if (ret)
		tly_tracepoint_no_tracefs(parse->err);
	/* Without globs one file tells, and no folder need be listed. */
	else if (is_glob(system_name) || is_glob(event_name))
		ret = tly_tracepoint_walk(parse->roots, system_name, add, &adding);
	else
		ret = add(system_name, event_name, &adding);
	if (ret == -ENOENT || ret == -ENOTDIR || (!ret && !adding.added))
		return unknown(parse, span);
	if (!ret)
		return 0;
	if (ret == -EACCES)
		tly_tracepoint_refused(parse->err, events);
	else if (ret == -ENOMEM)
		tly_parse_no_memory(parse);
	else if (ret != -ENOTSUP)
		tly_error(parse->err, ret, "tracepoint '%s' cannot be read: %s", name,
			  strerror(-ret));
	tly_error_at(parse->err, system.at - parse->text);
	return ret;
}
