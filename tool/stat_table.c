// SPDX-License-Identifier: MIT
#include "tool/stat_table.h"

#include <stdlib.h>

double stat_count(const struct stat_table *table, size_t place, size_t event)
{
	const struct stat_cell *cell = stat_cell(table, place, event);

	return table->runs > 1 ? cell->spread.mean : (double)cell->value.scaled;
}

bool stat_idle(const struct stat_table *table, size_t place)
{
	for (size_t event = 0; event < table->nr_events; event++) {
		const struct tally_value *value = &stat_cell(table, place, event)->value;

		if (value->state == TALLY_COUNTED && value->scaled)
			return false;
	}
	return true;
}

struct order {
	const struct stat_table *table;
	size_t event;
};

/* What was not counted comes behind what was; equals stay as they were. */
static int compare(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	const size_t *x = a, *y = b;
	const struct tally_value *v = &stat_cell(order->table, *x, order->event)->value;
	const struct tally_value *w = &stat_cell(order->table, *y, order->event)->value;
	bool counted_v = v->state == TALLY_COUNTED, counted_w = w->state == TALLY_COUNTED;

	if (counted_v != counted_w)
		return counted_v ? -1 : 1;
	if (counted_v && v->scaled != w->scaled)
		return v->scaled > w->scaled ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

void stat_order(const struct stat_table *table, size_t event, size_t *order)
{
	struct order context = {table, event};

	for (size_t i = 0; i < table->nr_places; i++)
		order[i] = i;
	qsort_r(order, table->nr_places, sizeof(*order), compare, &context);
}

double stat_running(const struct tally_value *value)
{
	if (!value->time_enabled || value->time_running >= value->time_enabled)
		return 100;
	return 100 * (double)value->time_running / (double)value->time_enabled;
}

static uint64_t subtract(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/*
 * Multiplexed events are scaled by the interval's own times: what the total was scaled by would
 * charge an interval for what others did not see.
 */
void stat_difference(const struct stat_event *event, const struct tally_value *now,
		     const struct tally_value *before, struct tally_value *difference)
{
	*difference = *now;
	if (now->state != TALLY_COUNTED || event->snapshot)
		return;
	difference->raw = subtract(now->raw, before->raw);
	difference->time_enabled = subtract(now->time_enabled, before->time_enabled);
	difference->time_running = subtract(now->time_running, before->time_running);
	difference->lost = subtract(now->lost, before->lost);
	/* The times of a cgroup may lag behind its count. */
	if (!difference->time_running && !difference->raw) {
		difference->scaled = 0;
		difference->state = TALLY_NOT_COUNTED;
		difference->source = TALLY_SOURCE_NONE;
	} else if (now->source == TALLY_SOURCE_SCALED && difference->time_running &&
		   difference->time_running < difference->time_enabled) {
		difference->scaled =
			(uint64_t)((double)difference->raw * (double)difference->time_enabled /
					   (double)difference->time_running +
				   0.5);
	} else {
		difference->scaled = difference->raw;
		if (now->source == TALLY_SOURCE_SCALED)
			difference->source = TALLY_SOURCE_KERNEL;
	}
}

void stat_check_times(struct tally_value *value, double most)
{
	if ((double)value->time_enabled <= most && (double)value->time_running <= most)
		return;
	value->time_enabled = value->time_running = 0;
	value->scaled = value->raw;
	if (value->source == TALLY_SOURCE_SCALED)
		value->source = TALLY_SOURCE_KERNEL;
}

void stat_unscale_snapshot(const struct stat_event *event, struct tally_value *value)
{
	if (!event->snapshot)
		return;
	value->scaled = value->raw;
	if (value->source == TALLY_SOURCE_SCALED)
		value->source = TALLY_SOURCE_KERNEL;
}

const char *stat_source_name(enum tally_source source)
{
	static const char *const names[] = {
		[TALLY_SOURCE_NONE] = "none",	  [TALLY_SOURCE_KERNEL] = "kernel",
		[TALLY_SOURCE_SCALED] = "scaled", [TALLY_SOURCE_USER] = "user-mode",
		[TALLY_SOURCE_MODEL] = "model",
	};

	return names[source];
}

const char *stat_state_name(enum tally_state state)
{
	static const char *const names[] = {
		[TALLY_COUNTED] = "counted",
		[TALLY_NOT_COUNTED] = "not counted",
		[TALLY_NOT_SUPPORTED] = "not supported",
		[TALLY_NOT_PERMITTED] = "not permitted",
	};

	return names[state];
}

void stat_table_free(struct stat_table *table)
{
	for (size_t i = 0; i < table->nr_events; i++)
		free(table->events[i].name);
	free(table->events);
	free(table->places);
	free(table->cells);
}
