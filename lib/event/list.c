// SPDX-License-Identifier: MIT
#include "lib/event/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"

struct tly_string {
	struct tly_string *next;
	char text[];
};

struct tally_events *tally_events_new(void)
{
	return calloc(1, sizeof(struct tally_events));
}

static void free_event(struct tly_event *event)
{
	while (event->strings) {
		struct tly_string *string = event->strings;

		event->strings = string->next;
		free(string);
	}
	free(event);
}

void tly_events_truncate(struct tally_events *events, size_t nr)
{
	while (events->nr > nr)
		free_event(events->events[--events->nr]);
}

void tally_events_free(struct tally_events *events)
{
	if (!events)
		return;
	tly_events_truncate(events, 0);
	free(events->events);
	free(events);
}

struct tly_event *tly_events_add(struct tally_events *events, uint32_t type)
{
	struct tly_event *event;

	if (events->nr == events->capacity) {
		size_t capacity = events->capacity ? 2 * events->capacity : 8;
		struct tly_event **grown =
			reallocarray(events->events, capacity, sizeof(struct tly_event *));

		if (!grown)
			return NULL;
		events->events = grown;
		events->capacity = capacity;
	}
	event = calloc(1, sizeof(*event));
	if (!event)
		return NULL;
	event->attr.attr.type = type;
	event->attr.attr.size = sizeof(struct perf_event_attr);
	event->event = (struct tally_event){
		.name = "",
		.attr = &event->attr.attr,
		.leader = events->nr,
		.pmu = "",
		.unit = "",
		.scale = 1.0,
		.cpus = "",
	};
	events->events[events->nr++] = event;
	return event;
}

const char *tly_event_string(struct tly_event *event, const char *text, size_t length)
{
	struct tly_string *string = malloc(sizeof(*string) + length + 1);

	if (!string)
		return NULL;
	memcpy(string->text, text, length);
	string->text[length] = '\0';
	string->next = event->strings;
	event->strings = string;
	return string->text;
}

uint64_t *tly_event_config(struct tly_event *event, unsigned int index)
{
	struct perf_event_attr *attr = &event->attr.attr;

	switch (index) {
	case 0:
		return (uint64_t *)&attr->config;
	case 1:
		return (uint64_t *)&attr->config1;
	case 2:
		return (uint64_t *)&attr->config2;
	case 3:
		if (attr->size < TLY_ATTR_SIZE_CONFIG3)
			attr->size = TLY_ATTR_SIZE_CONFIG3;
		return (uint64_t *)&event->attr.bytes[TLY_ATTR_SIZE_CONFIG3 - sizeof(uint64_t)];
	default:
		return NULL;
	}
}

size_t tally_events_count(const struct tally_events *events)
{
	return events->nr;
}

struct tally_event *tally_events_at(const struct tally_events *events, size_t index)
{
	return index < events->nr ? &events->events[index]->event : NULL;
}

int tally_events_split(struct tally_events *events, size_t first, struct tally_events **rest)
{
	size_t nr = events->nr - first;
	struct tally_events *moved;

	*rest = NULL;
	if (first > events->nr || (nr && events->events[first]->event.leader < first))
		return -EINVAL;
	moved = tally_events_new();
	if (!moved)
		return -ENOMEM;
	moved->events = calloc(nr + 1, sizeof(struct tly_event *));
	if (!moved->events) {
		free(moved);
		return -ENOMEM;
	}
	moved->capacity = nr + 1;
	for (; moved->nr < nr; moved->nr++) {
		moved->events[moved->nr] = events->events[first + moved->nr];
		moved->events[moved->nr]->event.leader -= first;
	}
	events->nr = first;
	*rest = moved;
	return 0;
}

int tally_events_set_filter(struct tally_events *events, const char *filter,
			    struct tally_error *err)
{
	struct tly_event *last = events->nr ? events->events[events->nr - 1] : NULL;

	if (!last) {
		tly_error(err, -EINVAL, "a filter needs an event before it");
		tly_error_remedy(err, "give the event first: -e sched:sched_switch "
				      "--filter 'prev_pid > 0'");
		return -EINVAL;
	}
	if (!last->filterable) {
		tly_error(err, -EINVAL, "'%s' cannot be filtered: it is not a tracepoint",
			  last->event.name);
		tly_error_remedy(err, "filters are for tracepoints and probes, and belong "
				      "to the event right before them");
		return -EINVAL;
	}
	const char *copy = tly_event_string(last, filter, strlen(filter));

	if (!copy)
		return tly_error(err, -ENOMEM, "out of memory");
	last->filter = copy;
	return 0;
}

const char *tally_event_filter(const struct tally_event *event)
{
	return ((const struct tly_event *)event)->filter;
}
