/* SPDX-License-Identifier: MIT */
/*
 * The event list behind include/tally/event.h: events that own their strings and their attr.
 */
#ifndef LIB_EVENT_LIST_H
#define LIB_EVENT_LIST_H

#include <tally/event.h>

/* An attr of ours has room for the fields up to config3, whatever the header it is built with. */
#define TLY_ATTR_SIZE_CONFIG3 136

union tly_attr {
	struct perf_event_attr attr;
	unsigned char bytes[TLY_ATTR_SIZE_CONFIG3 > sizeof(struct perf_event_attr)
				    ? TLY_ATTR_SIZE_CONFIG3
				    : sizeof(struct perf_event_attr)];
};

struct tly_string;

struct tly_event {
	struct tally_event event; /* first: a struct tally_event of a list is one of these */
	union tly_attr attr;
	const char *filter;	    /* NULL: none */
	bool filterable;	    /* the kernel may take a filter for it */
	bool guest_host;	    /* G or H was given */
	bool core;		    /* counted by the processors' own unit event.pmu */
	struct tly_string *strings; /* what the pointers of event and attr point to */
};

struct tally_events {
	struct tly_event **events;
	size_t nr;
	size_t capacity;
};

/* Appends an event of @type, its own leader, with no name yet; NULL when memory is short. */
struct tly_event *tly_events_add(struct tally_events *events, uint32_t type);
/* Drops the events from @nr on. */
void tly_events_truncate(struct tally_events *events, size_t nr);

/* A string that lives as long as the event; NULL when memory is short. */
const char *tly_event_string(struct tly_event *event, const char *text, size_t length);

/*
 * Where attr.config, config1, config2 and config3 lie in an attr: NULL past 3. Asking for config3
 * makes attr.size cover it.
 */
uint64_t *tly_event_config(struct tly_event *event, unsigned int index);

#endif
