// SPDX-License-Identifier: MIT
/*
 * A matrix of counters: events by tasks by processors. Groups are opened one after the other, each
 * in every (task, processor) before the next. What is learnt while opening (an event that will not
 * open, a group that does not fit, a precision that the unit lacks) changes the plan of the whole
 * group; its cells are closed and it starts anew, so that all cells of an event are opened alike.
 */
#include "lib/counter/counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tally/counter.h>

#include "abi/attr.h"
#include "abi/fatal.h"
#include "lib/cgroup.h"
#include "lib/counter/counter.h"
#include "lib/counter/cpulist.h"
#include "lib/error.h"
#include "lib/probe/attr_open.h"

#define READ_FORMAT                                                                                \
	(PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)
#define FORMAT_LOST (UINT64_C(1) << 4)

/* Not an error: the plan has changed, open the group anew. */
#define AGAIN 1

static size_t group_end(const struct tally_counters *counters, size_t leader)
{
	size_t end = leader + 1;

	while (end < counters->nr_events && counters->plans[end].event->leader == leader)
		end++;
	return end;
}

static void close_group(struct tally_counters *counters, size_t leader)
{
	for (size_t task = 0; task < counters->axes.nr_tasks; task++) {
		for (size_t cpu = 0; cpu < counters->axes.nr_cpus; cpu++) {
			for (size_t i = leader; i < group_end(counters, leader); i++) {
				struct tally_counter **c = tly_cell(counters, i, task, cpu);

				tally_counter_close(*c);
				*c = NULL;
			}
		}
	}
}

static void set_read_format(struct tally_counters *counters, uint64_t lost)
{
	for (size_t i = 0; i < counters->nr_events; i++) {
		struct perf_event_attr *attr = counters->plans[i].attr;

		attr->read_format |= READ_FORMAT | lost;
		if (!lost)
			attr->read_format &= ~FORMAT_LOST;
	}
}

/* Whether the kernel is younger than 6.0; asked only once an open was refused. */
static bool kernel_lacks_lost(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER0,
		.config = PERF_COUNT_SW_DUMMY,
		.read_format = FORMAT_LOST,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct tally_counter *counter;
	int code = tally_counter_open(&attr, 0, -1, NULL, 0, &counter, NULL);

	if (code == 0)
		tally_counter_close(counter);
	return code == -EINVAL;
}

/* What says something of the event; the rest says something of the caller's resources. */
static bool is_about_the_event(int code)
{
	switch (code) {
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -ESRCH:
	case -EBADF:
	case -EINTR:
		return false;
	}
	return true;
}

static void prepare_attr(const struct tally_counters *counters, struct perf_event_attr *attr,
			 bool leads)
{
	if (counters->axes.task_bound && (counters->flags & TALLY_OPEN_INHERIT))
		attr->inherit = 1;
	if (counters->flags & TALLY_OPEN_DISABLED)
		attr->disabled = leads;
	if (counters->flags & TALLY_OPEN_ENABLE_ON_EXEC)
		attr->enable_on_exec = leads;
}

static int open_cell(struct tally_counters *counters, size_t event, size_t task, size_t cpu,
		     size_t leader, struct tally_error *err)
{
	struct tly_plan *plan = &counters->plans[event];
	const struct tly_axes *axes = &counters->axes;
	struct tally_counter **c = tly_cell(counters, event, task, cpu);
	struct tally_counter *group = NULL;
	const struct perf_event_attr *group_attr = NULL;
	unsigned long flags = axes->cgroup >= 0 ? PERF_FLAG_PID_CGROUP : 0;
	pid_t pid = axes->cgroup >= 0 ? axes->cgroup : axes->tasks[task].pid;
	const char *filter = tally_event_filter(plan->event);
	int code;

	if (leader != event) {
		group = *tly_cell(counters, leader, task, cpu);
		group_attr = counters->plans[leader].attr;
	}
	prepare_attr(counters, plan->attr, !group);
	code = tly_counter_open(plan->attr, plan->event->name, group_attr, pid, axes->cpus[cpu],
				group, flags, c, err);
	if (code == 0 && filter) {
		code = tally_counter_set_filter(*c, filter, err);
		if (code < 0) {
			tally_counter_close(*c);
			*c = NULL;
		}
	}
	return code;
}

/* A descriptor for each cell, and some for the caller's own files. */
static void explain_descriptors(const struct tally_counters *counters, struct tally_error *err)
{
	const struct tly_axes *axes = &counters->axes;
	size_t needed = counters->nr_events * axes->nr_tasks * axes->nr_cpus + 64;
	struct rlimit limit;
	bool within = getrlimit(RLIMIT_NOFILE, &limit) == 0 && needed <= limit.rlim_max;
	char command[64];

	snprintf(command, sizeof(command),
		 within ? "ulimit -n %zu" : "sudo prlimit --pid $$ --nofile=%zu", needed);
	tly_error_remedy(err,
			 "it takes %zu x %zu x %zu (events x tasks x processors): %s, or measure "
			 "fewer",
			 counters->nr_events, axes->nr_tasks, axes->nr_cpus, command);
}

/*
 * @event was refused with @code as a member of the group of @leader (itself when it leads). Changes
 * the plan, from the least loss to the greatest, and returns AGAIN; 0 if it opens after all; else
 * the error.
 */
static int replan(struct tally_counters *counters, size_t event, size_t task, size_t cpu,
		  size_t leader, int code, struct tally_error *err)
{
	struct tly_plan *plan = &counters->plans[event];
	const size_t first = plan->event->leader;
	const uint32_t flags = plan->event->flags | counters->plans[first].event->flags;
	struct tally_error why;

	if (code == -EINVAL && !counters->lost_known) {
		counters->lost_known = true;
		if (kernel_lacks_lost()) {
			set_read_format(counters, 0);
			return AGAIN;
		}
	}
	if ((plan->event->flags & TALLY_EVENT_PRECISE_MAX) && plan->attr->precise_ip &&
	    !tly_is_permission(code) && is_about_the_event(code)) {
		plan->attr->precise_ip--;
		return AGAIN;
	}
	if ((counters->flags & TALLY_OPEN_USER_FALLBACK) && tly_is_permission(code) &&
	    !(plan->event->flags & TALLY_EVENT_MODIFIED) && !plan->attr->exclude_kernel &&
	    !tly_attr_is_kernels_own(plan->attr)) {
		plan->attr->exclude_kernel = 1;
		plan->attr->exclude_hv = 1;
		return AGAIN;
	}
	if (leader != event && (flags & TALLY_EVENT_WEAK) && is_about_the_event(code)) {
		for (size_t i = first; i < group_end(counters, first); i++)
			counters->plans[i].single = true;
		return AGAIN;
	}
	/* Once more, for the reason. */
	code = open_cell(counters, event, task, cpu, leader, &why);
	if (code == 0 || (code == -ESRCH && counters->axes.tasks[task].pid > 0))
		return code;
	if ((counters->flags & TALLY_OPEN_TOLERANT) && is_about_the_event(code)) {
		plan->error = malloc(sizeof(*plan->error));
		if (!plan->error)
			return tly_error(err, -ENOMEM, "out of memory");
		*plan->error = why;
		return AGAIN;
	}
	if (code == -EMFILE)
		explain_descriptors(counters, &why);
	if (err)
		*err = why;
	return code;
}

static bool unit_is_elsewhere(const struct tally_counters *counters, const struct tly_plan *plan,
			      size_t cpu)
{
	return plan->cpus && !counters->axes.task_bound &&
	       !tly_cpulist_has(plan->cpus, plan->nr_cpus, counters->axes.cpus[cpu]);
}

/* The first of the group that opens leads it, so that one event which does not takes no other. */
static int open_group_in(struct tally_counters *counters, size_t first, size_t task, size_t cpu,
			 struct tally_error *err)
{
	struct tly_task *t = &counters->axes.tasks[task];
	size_t leader = first;
	bool led = false;

	for (size_t i = first; i < group_end(counters, first); i++) {
		struct tly_plan *plan = &counters->plans[i];
		int code;

		if (plan->error || unit_is_elsewhere(counters, plan, cpu))
			continue;
		if (!led || plan->single)
			leader = i;
		code = open_cell(counters, i, task, cpu, leader, NULL);
		if (code < 0 && !(code == -ESRCH && t->pid > 0))
			code = replan(counters, i, task, cpu, leader, code, err);
		if (code == -ESRCH && t->pid > 0) {
			t->ended = true;
			return 0;
		}
		if (code)
			return code;
		led = true;
	}
	return 0;
}

static int open_group(struct tally_counters *counters, size_t first, struct tally_error *err)
{
	for (size_t task = 0; task < counters->axes.nr_tasks; task++) {
		for (size_t cpu = 0; cpu < counters->axes.nr_cpus; cpu++) {
			int code;

			if (counters->axes.tasks[task].ended)
				break;
			code = open_group_in(counters, first, task, cpu, err);
			if (code)
				return code;
		}
	}
	return 0;
}

static int open_all(struct tally_counters *counters, struct tally_error *err)
{
	for (size_t first = 0; first < counters->nr_events; first = group_end(counters, first)) {
		int code;

		/* Each AGAIN has used up one of the plan's few changes. */
		while ((code = open_group(counters, first, err)) == AGAIN)
			close_group(counters, first);
		if (code < 0)
			return code;
	}
	return 0;
}

static bool has_cells(const struct tally_counters *counters, size_t task)
{
	for (size_t cpu = 0; cpu < counters->axes.nr_cpus; cpu++)
		for (size_t event = 0; event < counters->nr_events; event++)
			if (*tly_cell(counters, event, task, cpu))
				return true;
	return false;
}

/* Of each id that the caller gave, at least one task must have lived to be measured. */
static int check_tasks(const struct tally_counters *counters, const struct tally_target *target,
		       struct tally_error *err)
{
	const struct tly_axes *axes = &counters->axes;

	for (size_t i = 0; i < axes->nr_tasks; i++) {
		const struct tly_task *task = &axes->tasks[i];
		bool alive = false;

		for (size_t j = 0; j < axes->nr_tasks && task->ended && !alive; j++)
			alive = axes->tasks[j].id == task->id &&
				(!axes->tasks[j].ended || has_cells(counters, j));
		if (!task->ended || alive)
			continue;
		tly_error(err, -ESRCH, "there is no %s %d, or it has ended",
			  target->kind == TALLY_TARGET_PROCESS ? "process" : "thread",
			  target->ids[task->id]);
		return tly_error_remedy(err, "see the running ones: ps -eL");
	}
	return 0;
}

/* Nothing is open, and for want of a right every time: the target cannot be measured. */
static int check_rights(const struct tally_counters *counters, struct tally_error *err)
{
	for (size_t i = 0; i < counters->nr_events; i++)
		if (!counters->plans[i].error || !tly_is_permission(counters->plans[i].error->code))
			return 0;
	if (err)
		*err = *counters->plans[0].error;
	return counters->plans[0].error->code;
}

static int plan_event(struct tally_counters *counters, size_t index, struct tally_event *event,
		      struct tally_error *err)
{
	struct tly_plan *plan = &counters->plans[index];
	uint32_t size = tly_attr_size(event->attr);
	int code;

	plan->event = event;
	plan->attr = calloc(1, size > sizeof(*plan->attr) ? size : sizeof(*plan->attr));
	if (!plan->attr)
		return tly_error(err, -ENOMEM, "out of memory");
	memcpy(plan->attr, event->attr, size);
	plan->attr->size = size;
	if (event->flags & TALLY_EVENT_PRECISE_MAX)
		plan->attr->precise_ip = 3;
	if (!event->cpus[0])
		return 0;
	code = tly_cpulist_parse(event->cpus, &plan->cpus, &plan->nr_cpus);
	if (code == -ENOMEM)
		return tly_error(err, code, "out of memory");
	if (code < 0)
		return tly_error(err, code, "%s: '%s' is no list of processors", event->name,
				 event->cpus);
	for (size_t i = 0; i < counters->axes.nr_cpus; i++)
		if (!unit_is_elsewhere(counters, plan, i))
			return 0;
	tly_error(err, -EINVAL, "%s is counted on processor %s only, which is not among the chosen",
		  event->name, event->cpus);
	return tly_error_remedy(err, "add processor %s, or measure all", event->cpus);
}

static int allocate(struct tally_counters *counters, struct tally_error *err)
{
	size_t nr;

	if (__builtin_mul_overflow(counters->axes.nr_tasks, counters->axes.nr_cpus, &nr) ||
	    __builtin_mul_overflow(nr, counters->nr_events, &nr))
		return tly_error(err, -ENOMEM, "too many counters");
	counters->plans = calloc(counters->nr_events, sizeof(*counters->plans));
	counters->cells = calloc(nr, sizeof(struct tally_counter *));
	counters->clocks = calloc(counters->axes.nr_cpus, sizeof(*counters->clocks));
	for (size_t i = 0; i < counters->axes.nr_cpus && counters->clocks; i++)
		counters->clocks[i] = -1;
	if (!counters->plans || !counters->cells || !counters->clocks)
		return tly_error(err, -ENOMEM, "out of memory for %zu counters", nr);
	return 0;
}

static void keep_time(struct tally_counters *counters)
{
	const struct tly_axes *axes = &counters->axes;

	if (axes->cgroup < 0 || fatal_open())
		return;
	for (size_t i = 0; i < axes->nr_cpus; i++)
		counters->clocks[i] = tly_cgroup_keep_time(axes->cgroup, axes->cpus[i]);
}

int tally_counters_open(const struct tally_events *events, const struct tally_target *target,
			unsigned int flags, struct tally_counters **counters,
			struct tally_error *err)
{
	struct tally_counters *c;
	int code;

	*counters = NULL;
	if (!tally_events_count(events)) {
		tly_error(err, -EINVAL, "no event was given to count");
		return tly_error_remedy(err, "name at least one event, such as task-clock");
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return tly_error(err, -ENOMEM, "out of memory");
	c->flags = flags;
	code = tly_axes_resolve(&c->axes, target, err);
	if (code < 0) {
		free(c);
		return code;
	}
	c->nr_events = tally_events_count(events);
	code = allocate(c, err);
	for (size_t i = 0; i < c->nr_events && code == 0; i++)
		code = plan_event(c, i, tally_events_at(events, i), err);
	if (code == 0) {
		set_read_format(c, FORMAT_LOST);
		keep_time(c);
		code = open_all(c, err);
	}
	if (code == 0)
		code = check_tasks(c, target, err);
	if (code == 0)
		code = check_rights(c, err);
	if (code < 0) {
		tally_counters_close(c);
		return code;
	}
	*counters = c;
	return 0;
}

void tally_counters_close(struct tally_counters *counters)
{
	if (!counters)
		return;
	if (counters->cells)
		for (size_t i = 0; i < counters->nr_events && counters->plans; i++)
			for (size_t task = 0; task < counters->axes.nr_tasks; task++)
				for (size_t cpu = 0; cpu < counters->axes.nr_cpus; cpu++)
					tally_counter_close(*tly_cell(counters, i, task, cpu));
	for (size_t i = 0; i < counters->nr_events && counters->plans; i++) {
		free(counters->plans[i].attr);
		free(counters->plans[i].error);
		free(counters->plans[i].cpus);
	}
	for (size_t i = 0; i < counters->axes.nr_cpus && counters->clocks; i++)
		if (counters->clocks[i] >= 0)
			close(counters->clocks[i]);
	free(counters->clocks);
	free(counters->plans);
	free(counters->cells);
	tly_axes_release(&counters->axes);
	free(counters);
}

size_t tally_counters_events(const struct tally_counters *counters)
{
	return counters->nr_events;
}

size_t tally_counters_tasks(const struct tally_counters *counters)
{
	return counters->axes.nr_tasks;
}

size_t tally_counters_cpus(const struct tally_counters *counters)
{
	return counters->axes.nr_cpus;
}

pid_t tally_counters_task(const struct tally_counters *counters, size_t task)
{
	return counters->axes.tasks[task].pid;
}

int tally_counters_cpu(const struct tally_counters *counters, size_t cpu)
{
	return counters->axes.cpus[cpu];
}

struct tally_counter *tally_counters_at(const struct tally_counters *counters, size_t event,
					size_t task, size_t cpu)
{
	return *tly_cell(counters, event, task, cpu);
}

const struct perf_event_attr *tally_counters_attr(const struct tally_counters *counters,
						  size_t event)
{
	return counters->plans[event].attr;
}

const struct tally_error *tally_counters_error(const struct tally_counters *counters, size_t event)
{
	return counters->plans[event].error;
}

/* Applies @operation to the leader of each group in each cell; goes on after an error. */
static int for_each_group(struct tally_counters *counters,
			  int (*operation)(struct tally_counter *counter, bool group))
{
	int first_error = 0;

	for (size_t task = 0; task < counters->axes.nr_tasks; task++) {
		for (size_t cpu = 0; cpu < counters->axes.nr_cpus; cpu++) {
			bool done = false; /* the group of the event at hand */

			for (size_t i = 0; i < counters->nr_events; i++) {
				const struct tly_plan *plan = &counters->plans[i];
				struct tally_counter *c = *tly_cell(counters, i, task, cpu);
				int code;

				if (plan->event->leader == i || plan->single)
					done = false;
				if (!c || done)
					continue;
				done = true;
				code = operation(c, true);
				if (code < 0 && !first_error)
					first_error = code;
			}
		}
	}
	return first_error;
}

int tally_counters_enable(struct tally_counters *counters)
{
	return for_each_group(counters, tally_counter_enable);
}

int tally_counters_disable(struct tally_counters *counters)
{
	return for_each_group(counters, tally_counter_disable);
}

int tally_counters_reset(struct tally_counters *counters)
{
	return for_each_group(counters, tally_counter_reset);
}
