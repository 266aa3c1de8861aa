// SPDX-License-Identifier: MIT
#include "core/count.h"

#include "core/arena.h"
#include "core/host.h"
#include "core/output.h"
#include "core/still.h"
#include "core/time.h"

void core_look_at_clock(struct core_task *task)
{
	/*
	 * Counts of events that take turns are scaled by their times. Then it matters when the
	 * kernel let others run, which costs a system call to know.
	 */
	if (core_settings()->counters && !task->everybody) {
		core_host_software(task, CORE_KIND_BIT(CORE_TASK_CLOCK));
		task->now = core_counter_read(task, CORE_TASK_CLOCK);
		task->looked = core_host_tsc();
		return;
	}
	task->looked = core_host_tsc();
	task->now = core_clock_at(task, task->looked);
}

void core_look(struct core_task *task)
{
	if (task->software)
		core_host_software(task, task->software);
	if (task->still)
		core_still_see(task);
	else
		core_look_at_clock(task);
}

/* The task whose lock is held for @event: NULL when it has ended. */
static const struct core_task *task_of(const struct core_event *event)
{
	return event->state == CORE_EXITED ? NULL : core_task(event->task);
}

bool core_count_time_passes(const struct core_event *event)
{
	const struct core_event *leader = core_leader(event);

	return core_enabled(event) && core_enabled(leader) && !leader->elsewhere;
}

/* What has passed since the stamp, added to @count. */
static void add_times(struct core_count *count, const struct core_task *task,
		      const struct core_event *event)
{
	/* The clock as seen from elsewhere may lag behind. */
	uint64_t passed = task->now > event->stamp ? task->now - event->stamp : 0;

	if (!core_count_time_passes(event))
		return;
	count->enabled += passed;
	if (event->state == CORE_ACTIVE)
		count->running += passed;
}

void core_count_times_passed(const struct core_task *task, struct core_event *event)
{
	add_times(&event->count, task, event);
	event->stamp = task->now;
}

/* The same of one that counts: so its leader is enabled. */
static inline void count_times_counted(const struct core_task *task, struct core_event *event)
{
	const uint64_t passed = task->now > event->stamp ? task->now - event->stamp : 0;

	event->stamp = task->now;
	if (core_leader(event)->elsewhere)
		return;
	event->count.enabled += passed;
	event->count.running += passed;
}

static inline void count_in(const struct core_task *task, struct core_event *event)
{
	core_count_times(task, event);
	event->start = core_count_counter(task, event);
	core_set_state(event, CORE_ACTIVE);
	if (event->period)
		core_sampling_in(event, event->start);
	if (event->maps)
		core_page_update(event);
}

static inline void count_out(const struct core_task *task, struct core_event *event,
			     enum core_state state)
{
	uint64_t counter = core_count_counter(task, event);

	count_times_counted(task, event);
	event->count.value += counter - event->start;
	core_set_state(event, state);
	if (event->period)
		core_sampling_out(event, counter);
	if (event->maps)
		core_page_update(event);
}

void core_count_out(const struct core_task *task, struct core_event *event, enum core_state state)
{
	count_out(task, event, state);
}

void core_count_group_in(const struct core_task *task, struct core_event *leader)
{
	core_for_each_in_group(event, leader)
		if (event->state == CORE_INACTIVE)
			count_in(task, event);
}

void core_count_group_out(const struct core_task *task, struct core_event *leader,
			  enum core_state state)
{
	core_for_each_in_group(event, leader)
		if (event->state == CORE_ACTIVE)
			count_out(task, event, state);
}

/* Of who waited for a counter its page has not heard of the time since. */
static void bring_up_to_date(const struct core_task *task, struct core_event *event)
{
	if (event->stamp == task->now)
		return;
	core_count_times_passed(task, event);
	if (event->maps)
		core_page_update(event);
}

void core_count_state(const struct core_task *task, struct core_event *event, enum core_state state)
{
	bring_up_to_date(task, event);
	if (event->members)
		core_for_each_in_group(member, core_event(event->next_member))
			bring_up_to_date(task, member);
	core_set_state(event, state);
}

/* Of a processor the clocks count the time that passes there, whoever runs. */
static bool counts_time_itself(const struct core_event *event)
{
	return event->everybody && !event->parent && !event->cgroup &&
	       core_kind_bit(event->kind) & CORE_KINDS_CLOCKS;
}

void core_count_reset(const struct core_task *task, struct core_event *event)
{
	event->count.value = 0;
	event->kept = 0; /* for now: the kernel's own is reset, too */
	event->before.value = 0;
	if (event->state == CORE_ACTIVE)
		event->start = core_count_counter(task, event);
	if (counts_time_itself(event)) {
		core_count_times(task, event);
		event->count.value = -event->count.running;
	}
	if (event->maps)
		core_page_update(event);
}

struct core_count core_count_own(const struct core_event *event)
{
	const struct core_task *task = task_of(event);
	struct core_count count = event->count;

	count.value += __atomic_load_n(&event->kept, __ATOMIC_RELAXED);
	if (!task)
		return count;
	add_times(&count, task, event);
	if (counts_time_itself(event))
		count.value += count.running;
	else if (event->state == CORE_ACTIVE)
		count.value += core_count_counter(task, event) - event->start;
	return count;
}

struct core_count core_count_of_copy(const struct core_event *copy)
{
	struct core_count count = core_count_own(copy);

	/* The times of a processor are its own, those of a cgroup the times of its tasks. */
	if (copy->everybody && !copy->cgroup)
		count.enabled = count.running = 0;
	if (counts_time_itself(core_opened_const(copy)))
		count.value = 0;
	return count;
}

struct core_count core_count_with_ended(const struct core_event *event)
{
	struct core_count count = core_count_own(event);

	core_count_add(&count, &event->ended);
	return count;
}
