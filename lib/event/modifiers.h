/* SPDX-License-Identifier: MIT */
/* The letters behind an event's last ':', and behind a group's. */
#ifndef LIB_EVENT_MODIFIERS_H
#define LIB_EVENT_MODIFIERS_H

#include "lib/event/parse.h"

/* Takes the modifiers at *@cursor; at least one has to be there. */
int tly_modifiers_parse(struct tly_parse *parse, const char **cursor, struct tly_span *span);

/* Whether @text starts with modifiers; returns how many. */
size_t tly_modifiers_length(const char *text);

/*
 * Sets what they say; applied again for a group's they add to the event's own. D and e are not
 * among them, since they concern leaders alone: tly_modifiers_pin() sets those.
 */
int tly_modifiers_apply(struct tly_parse *parse, struct tly_event *event,
			struct tly_span modifiers);
void tly_modifiers_pin(struct tly_event *event, struct tly_span modifiers);

/* Adds to @event's name those letters of its group's that say what is counted. */
int tly_modifiers_name(struct tly_parse *parse, struct tly_event *event, struct tly_span modifiers);

#endif
