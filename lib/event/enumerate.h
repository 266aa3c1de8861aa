/* SPDX-License-Identifier: MIT */
#ifndef LIB_EVENT_ENUMERATE_H
#define LIB_EVENT_ENUMERATE_H

#include <tally/event.h>

#include "lib/event/roots.h"

/* tally_events_enumerate() with the machine's files elsewhere. */
int tly_events_enumerate(unsigned int kinds, const struct tly_roots *roots,
			 int (*visit)(const struct tally_event_info *info, void *ctx), void *ctx,
			 struct tally_error *err);

#endif
