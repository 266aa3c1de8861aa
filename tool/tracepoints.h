/* SPDX-License-Identifier: MIT */
/* What a tracepoint's payload says, by the formats that the recording brought along. */
#ifndef TOOL_TRACEPOINTS_H
#define TOOL_TRACEPOINTS_H

#include <stddef.h>
#include <stdint.h>

#include "tool/buffer.h"
#include "tool/session.h"

struct tracepoints;

/* NULL when the recording has no formats. */
struct tracepoints *tracepoints_new(struct session *session);
void tracepoints_free(struct tracepoints *tracepoints);

/* "prev_comm=bash prev_pid=12 ...", as the kernel's own trace shows it. */
void tracepoints_text(struct tracepoints *tracepoints, const struct session_item *item,
		      struct buffer *buffer);
/* The fields as a JSON object. */
void tracepoints_json(struct tracepoints *tracepoints, const struct session_item *item,
		      struct buffer *buffer);

#endif
