/* SPDX-License-Identifier: MIT */
/* The format file of a tracepoint. */
#ifndef LIB_EVENT_FIELDS_H
#define LIB_EVENT_FIELDS_H

#include <tally/event.h>

/*
 * Calls @visit for each field in @text, which is changed, that is not common to all tracepoints.
 * Stops when it returns non-zero, and returns that; -EINVAL when a line is not understood.
 */
int tly_fields_parse(char *text,
		     int (*visit)(const struct tally_tracepoint_field *field, void *ctx),
		     void *ctx);

#endif
