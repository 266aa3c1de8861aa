/* SPDX-License-Identifier: MIT */
/* Tracepoints: system:event, both with globs, looked up in tracefs. */
#ifndef LIB_EVENT_TRACEPOINT_H
#define LIB_EVENT_TRACEPOINT_H

#include "lib/event/nearest.h"
#include "lib/event/parse.h"

/* Appends every tracepoint that matches. */
int tly_tracepoint_add(struct tly_parse *parse, struct tly_span system, struct tly_span event);

/*
 * Calls @visit for each tracepoint of the systems that match the glob @system, sorted. Stops when
 * it returns non-zero, and returns that; -ENOTSUP, -EACCES when tracefs is not there for us.
 */
int tly_tracepoint_walk(const struct tly_roots *roots, const char *system,
			int (*visit)(const char *system, const char *event, void *ctx), void *ctx);

/* The id of one tracepoint, attr.config of its event. */
int tly_tracepoint_id(const struct tly_roots *roots, const char *system, const char *event,
		      uint64_t *id);

/* Fill in the error for a machine without tracefs, and for one that keeps it from us. */
int tly_tracepoint_no_tracefs(struct tally_error *err);
int tly_tracepoint_refused(struct tally_error *err, const char *events);

/* Offers all tracepoints as suggestions: "sched_switch" is near "sched:sched_switch". */
void tly_tracepoint_suggest(const struct tly_roots *roots, struct tly_nearest *nearest);

#endif
