// SPDX-License-Identifier: MIT
/* From open counters to a table: which places there are, and the values of each. */
#include "tool/stat.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/command.h"

double stat_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int out_of_memory(struct tally_error *err)
{
	*err = (struct tally_error){.code = -ENOMEM, .offset = TALLY_NO_OFFSET};
	strcpy(err->what, "out of memory");
	return -ENOMEM;
}

/* The name of a thread, or "" when it is gone already. */
static void read_comm(pid_t tid, char *comm, size_t size)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	comm[0] = '\0';
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(comm, (int)size, file))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(file);
}

static bool is_clock(const struct stat_event *event)
{
	return event->type == PERF_TYPE_SOFTWARE && (event->config == PERF_COUNT_SW_TASK_CLOCK ||
						     event->config == PERF_COUNT_SW_CPU_CLOCK);
}

/* What follows the last ':' may also be the name of a tracepoint, or what a breakpoint is of. */
static bool has_modifiers(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon && colon[1] && !colon[1 + strspn(colon + 1, "pPGHISDeW")];
}

static bool describe_event(const struct stat_set *set, size_t index, struct stat_event *event)
{
	const struct tally_event *source = tally_events_at(set->events, index);
	const struct perf_event_attr *attr = tally_counters_attr(set->counters, index);
	const struct tally_error *error = tally_counters_error(set->counters, index);

	*event = (struct stat_event){
		.unit = source->unit,
		.scale = source->scale,
		.cgroup = set->cgroup,
		.user_only = attr->exclude_kernel && !source->attr->exclude_kernel,
		.snapshot = source->flags & TALLY_EVENT_SNAPSHOT,
		.type = attr->type,
		.config = attr->config,
		.excludes = attr->exclude_user | attr->exclude_kernel << 1 | attr->exclude_hv << 2,
	};
	if (error)
		event->error = *error;
	if (is_clock(event)) {
		event->unit = "msec";
		event->scale = 1e-6;
	}
	if (event->user_only && !error) {
		if (asprintf(&event->name, "%s%s", source->name,
			     has_modifiers(source->name) ? "u" : ":u") < 0)
			event->name = NULL;
	} else {
		event->name = strdup(source->name);
	}
	return event->name;
}

static size_t count_places(const struct stat_session *stat, const struct tally_counters *counters)
{
	if (stat->options.per_cpu)
		return tally_counters_cpus(counters);
	if (stat->options.per_thread)
		return tally_counters_tasks(counters);
	return 1;
}

static void describe_place(const struct stat_session *stat, const struct tally_counters *counters,
			   size_t index, struct stat_place *place)
{
	*place = (struct stat_place){.cpu = -1, .tid = -1};
	if (stat->options.per_cpu) {
		place->cpu = tally_counters_cpu(counters, index);
	} else if (stat->options.per_thread) {
		place->tid = tally_counters_task(counters, index);
		read_comm(place->tid, place->comm, sizeof(place->comm));
	}
}

static int lay_out(struct stat_session *stat, struct tally_error *err)
{
	const struct tally_counters *first = stat->nr_sets ? stat->sets[0].counters : NULL;
	struct stat_table *table = &stat->table;
	size_t nr_events = 0, nr_cells;

	for (size_t i = 0; i < stat->nr_sets; i++)
		nr_events += tally_events_count(stat->sets[i].events);
	table->by_task = stat->options.target.target.kind == TALLY_TARGET_PROCESS ||
			 stat->options.target.target.kind == TALLY_TARGET_THREADS;
	table->by_cgroup = stat->options.target.target.kind == TALLY_TARGET_CGROUP;
	table->nr_places = first ? count_places(stat, first) : 1;
	nr_cells = table->nr_places * nr_events;
	table->events = calloc(nr_events + 1, sizeof(*table->events));
	table->places = calloc(table->nr_places, sizeof(*table->places));
	table->cells = calloc(nr_cells + 1, sizeof(*table->cells));
	stat->last = calloc(nr_cells + 1, sizeof(*stat->last));
	stat->order = calloc(table->nr_places, sizeof(*stat->order));
	if (!table->events || !table->places || !table->cells || !stat->last || !stat->order)
		return out_of_memory(err);
	for (size_t i = 0; i < stat->nr_sets; i++)
		for (size_t j = 0; j < tally_events_count(stat->sets[i].events); j++)
			if (!describe_event(&stat->sets[i], j, &table->events[table->nr_events++]))
				return out_of_memory(err);
	for (size_t i = 0; first && i < table->nr_places; i++)
		describe_place(stat, first, i, &table->places[i]);
	if (!first)
		table->places[0] = (struct stat_place){.cpu = -1, .tid = -1};
	return 0;
}

/*
 * A filter that the kernel does not understand is a mistake to be mended before anything runs, not
 * an event that this machine lacks.
 */
static int check_filters(const struct stat_set *set, struct tally_error *err)
{
	for (size_t i = 0; i < tally_events_count(set->events); i++) {
		const struct tally_error *error = tally_counters_error(set->counters, i);

		if (!error || error->code != -EINVAL ||
		    !tally_event_filter(tally_events_at(set->events, i)))
			continue;
		*err = *error;
		return error->code;
	}
	return 0;
}

int stat_open(struct stat_session *stat, pid_t command, struct tally_error *err)
{
	const struct stat_options *options = &stat->options;
	unsigned int flags = TALLY_OPEN_DISABLED | TALLY_OPEN_TOLERANT | TALLY_OPEN_USER_FALLBACK;

	if (!options->no_inherit)
		flags |= TALLY_OPEN_INHERIT;
	if (options->measure_command && !options->delay)
		flags |= TALLY_OPEN_ENABLE_ON_EXEC;
	for (size_t i = 0; i < stat->nr_sets; i++) {
		struct tally_target target = options->target.target;
		int rc;

		if (options->measure_command) {
			target.ids = &command;
			target.nr_ids = 1;
		}
		target.cgroup = stat->sets[i].cgroup;
		if (target.kind == TALLY_TARGET_CGROUP && !target.cgroup)
			target.kind = TALLY_TARGET_SYSTEM;
		rc = tally_counters_open(stat->sets[i].events, &target, flags,
					 &stat->sets[i].counters, err);
		if (rc == 0)
			rc = check_filters(&stat->sets[i], err);
		if (rc < 0)
			return rc;
	}
	return stat->table.places ? 0 : lay_out(stat, err);
}

void stat_close(struct stat_session *stat)
{
	for (size_t i = 0; i < stat->nr_sets; i++) {
		tally_counters_close(stat->sets[i].counters);
		stat->sets[i].counters = NULL;
	}
}

/* Tasks may end at any moment: what cannot be switched any more does not count either. */
void stat_enable(struct stat_session *stat)
{
	stat->enabled_at = stat->last_read = stat_now();
	for (size_t i = 0; i < stat->nr_sets; i++)
		tally_counters_enable(stat->sets[i].counters);
}

void stat_disable(struct stat_session *stat)
{
	for (size_t i = 0; i < stat->nr_sets; i++)
		tally_counters_disable(stat->sets[i].counters);
}

static void add(struct tally_value *sum, const struct tally_value *value)
{
	sum->raw += value->raw;
	sum->scaled += value->scaled;
	sum->time_enabled += value->time_enabled;
	sum->time_running += value->time_running;
	sum->lost += value->lost;
	if (value->state != TALLY_COUNTED)
		return;
	sum->state = TALLY_COUNTED;
	if (sum->source != TALLY_SOURCE_SCALED)
		sum->source = value->source;
}

/* System-wide, an event that opened and is not here has its unit on other processors. */
static bool is_absent(const struct stat_session *stat, struct tally_counters *counters,
		      size_t event, size_t place)
{
	return stat->options.per_cpu && !stat->table.by_task &&
	       !tally_counters_error(counters, event) &&
	       !tally_counters_at(counters, event, 0, place);
}

static void read_cell(const struct stat_session *stat, struct tally_counters *counters,
		      size_t event, size_t place, struct tally_value *value)
{
	struct tally_value one;
	size_t nr;
	int rc;

	if (!stat->options.per_cpu && !stat->options.per_thread) {
		rc = tally_counters_sum(counters, event, value);
		if (rc < 0)
			*value = (struct tally_value){.state = TALLY_NOT_COUNTED};
		return;
	}
	nr = stat->options.per_cpu ? tally_counters_tasks(counters) : tally_counters_cpus(counters);
	for (size_t i = 0; i < nr; i++) {
		rc = stat->options.per_cpu ? tally_counters_read(counters, event, i, place, &one)
					   : tally_counters_read(counters, event, place, i, &one);
		if (rc < 0)
			one = (struct tally_value){.state = TALLY_NOT_COUNTED};
		if (i == 0)
			*value = one;
		else
			add(value, &one);
	}
}

/* How much of the clocks of all processors of a place can have passed since @since, at most. */
static double most_time(const struct stat_session *stat, double since)
{
	const struct tally_counters *counters = stat->sets[0].counters;
	size_t nr = stat->options.per_cpu ? 1 : tally_counters_cpus(counters);

	return (stat_now() - since) * 1e9 * (double)nr;
}

static void read_all(struct stat_session *stat)
{
	struct stat_table *table = &stat->table;

	for (size_t place = 0; place < table->nr_places; place++) {
		size_t event = 0;

		for (size_t i = 0; i < stat->nr_sets; i++) {
			for (size_t j = 0; j < tally_events_count(stat->sets[i].events); j++) {
				struct tally_counters *counters = stat->sets[i].counters;
				struct stat_cell *cell = stat_cell(table, place, event);

				cell->absent = is_absent(stat, counters, j, place);
				read_cell(stat, counters, j, place, &cell->value);
				stat_unscale_snapshot(&table->events[event++], &cell->value);
			}
		}
	}
}

static void check_times(struct stat_session *stat, double since)
{
	const struct stat_table *table = &stat->table;

	for (size_t i = 0; i < table->nr_places * table->nr_events; i++)
		if (table->events[i % table->nr_events].cgroup)
			stat_check_times(&table->cells[i].value, most_time(stat, since));
}

void stat_read(struct stat_session *stat)
{
	const struct stat_table *table = &stat->table;

	for (size_t i = 0; table->runs && i < table->nr_places * table->nr_events; i++)
		stat->last[i] = table->cells[i].value;
	read_all(stat);
	check_times(stat, stat->enabled_at);
}

void stat_read_interval(struct stat_session *stat)
{
	const struct stat_table *table = &stat->table;
	double before = stat->last_read;

	stat->last_read = stat_now();
	read_all(stat);
	for (size_t i = 0; i < table->nr_places * table->nr_events; i++) {
		struct tally_value now = table->cells[i].value;

		stat_difference(&table->events[i % table->nr_events], &now, &stat->last[i],
				&table->cells[i].value);
		stat->last[i] = now;
	}
	check_times(stat, before);
}

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

void stat_add_run(struct stat_session *stat, double elapsed, const struct rusage *usage)
{
	struct stat_table *table = &stat->table;

	table->runs++;
	spread_add(&table->elapsed, elapsed);
	if (usage) {
		table->has_command = true;
		spread_add(&table->user, seconds(&usage->ru_utime));
		spread_add(&table->sys, seconds(&usage->ru_stime));
	}
	for (size_t i = 0; i < table->nr_places * table->nr_events; i++) {
		struct stat_cell *cell = &table->cells[i];

		if (cell->value.state == TALLY_COUNTED)
			spread_add(&cell->spread, (double)cell->value.scaled);
		else if (cell->spread.n)
			cell->value = stat->last[i];
	}
}

void stat_drop_run(struct stat_session *stat)
{
	const struct stat_table *table = &stat->table;

	for (size_t i = 0; i < table->nr_places * table->nr_events; i++)
		table->cells[i].value = stat->last[i];
}

/* The event stands beside the reason; without its name, equal reasons become one. */
static const char *without_name(const char *what, const char *name)
{
	static const char start[] = "cannot open ";
	size_t length = strlen(name);

	if (strncmp(what, start, strlen(start)))
		return what;
	what += strlen(start);
	return !strncmp(what, name, length) && !strncmp(what + length, ": ", 2)
		       ? what + length + 2
		       : what - strlen(start);
}

/* Of the hardware, which has few. */
static bool needs_counter(const struct stat_event *event)
{
	return event->type != PERF_TYPE_SOFTWARE && event->type != PERF_TYPE_TRACEPOINT &&
	       event->type != PERF_TYPE_BREAKPOINT;
}

void stat_reason(const struct stat_table *table, size_t place, size_t event, const char **what,
		 const char **remedy)
{
	const struct tally_value *value = &stat_cell(table, place, event)->value;
	const struct tally_error *error = &table->events[event].error;

	if (error->code) {
		*what = without_name(error->what, table->events[event].name);
		*remedy = error->remedy;
	} else if (table->waiting) {
		*what = "the delay was not over";
		*remedy = "shorten it (-D)";
	} else if (table->by_task && table->places[place].cpu >= 0 &&
		   !needs_counter(&table->events[event])) {
		*what = "nothing of the target ran on this processor";
		*remedy = "";
	} else if (table->by_task && table->places[place].cpu >= 0) {
		*what = "nothing of the target ran on this processor, or the event found no free "
			"counter there";
		*remedy = "count fewer events at once";
	} else if (value->time_enabled && needs_counter(&table->events[event])) {
		*what = "the event waited for a free counter all the time";
		*remedy = "count fewer events at once, or sudo sysctl kernel.nmi_watchdog=0, which "
			  "frees one";
	} else {
		*what = table->events[event].cgroup
				? "no task of the cgroup ran while the event was counting"
				: "nothing of the target ran while the event was counting";
		*remedy = "";
	}
}
