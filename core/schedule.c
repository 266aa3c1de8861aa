// SPDX-License-Identifier: MIT
#include "core/schedule.h"

#include "core/arena.h"
#include "core/core.h"
#include "core/count.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/output.h"
#include "core/repair.h"
#include "core/sum.h"

void core_task_lock(struct core_task *task)
{
	const bool torn = core_lock(&task->lock);

	core_look(task);
	if (!torn)
		return;
	/* Who had it may not have come to say what is wanted. */
	task->kick = true;
	core_task_change(task);
	core_schedule(task);
}

bool core_is_callers(const struct core_task *task)
{
	const struct core_task *caller = core_host_task();

	return caller && (caller == task || core_page(caller) == core_page(task));
}

void core_task_unlock(struct core_task *task)
{
	bool kick = task->kick;

	task->kick = false;
	/* Before: core_still_before_call() waits for it by the lock. */
	if (kick && task->live && !task->replaced && !core_is_callers(task))
		core_host_kick(task);
	__atomic_store_n(&task->still, false, __ATOMIC_RELAXED);
	core_unlock(&task->lock);
}

struct core_task *core_event_lock(const struct core_event *event)
{
	for (;;) {
		uint32_t page = __atomic_load_n(&event->task, __ATOMIC_RELAXED);
		struct core_task *task = core_task(page);

		if (__atomic_load_n(&event->state, __ATOMIC_ACQUIRE) == CORE_EXITED)
			return NULL;
		core_task_lock(task);
		/* It may be another event's by now, which is not there yet, and under no lock. */
		if (__atomic_load_n(&event->state, __ATOMIC_ACQUIRE) != CORE_EXITED &&
		    __atomic_load_n(&event->task, __ATOMIC_RELAXED) == page)
			return task;
		core_task_unlock(task);
	}
}

/* ---- in and out ---- */

void core_schedule_off(const struct core_task *task, struct core_event *event,
		       enum core_state state)
{
	if (event->state == CORE_ACTIVE)
		core_count_out(task, event, state);
	if (event->leader == core_index(event))
		core_count_group_out(task, event, CORE_INACTIVE);
}

/* ---- who may ---- */

/* Counters of the virtual PMU, as far as they have been given away. */
struct room {
	uint32_t counters; /* that are left */
	bool taken;	   /* some are not */
	bool exclusive;	   /* whoever has taken them wants no company */
	bool full;	   /* somebody waits: who comes later does, too */
};

static uint32_t counters_of(struct core_event *leader)
{
	uint32_t n = 0;

	core_for_each_in_group(event, leader)
		n += event->hardware && core_enabled(event);
	return n;
}

static bool take_room(struct room *room, struct core_event *leader)
{
	uint32_t counters = counters_of(leader);

	if (!counters)
		return true;
	if (room->full || room->exclusive || counters > room->counters ||
	    (leader->attr.exclusive && room->taken))
		return false;
	room->counters -= counters;
	room->taken = true;
	room->exclusive = leader->attr.exclusive;
	return true;
}

/* Whether what @leader measures is what runs in @task. */
static inline bool is_its_time(const struct core_task *task, const struct core_event *leader)
{
	if (task->everybody)
		return true;
	if (leader->cpu >= 0 && leader->cpu != task->cpu)
		return false;
	if (leader->cgroup && !core_host_in_cgroup(task, leader->cgroup))
		return false;
	return !leader->everybody || core_opened_const(leader)->state == CORE_ACTIVE;
}

/* The time of a cgroup is that in which its tasks run. For everybody else it just goes on. */
static void pass_time(const struct core_task *task, struct core_event *leader, bool elsewhere)
{
	if (leader->elsewhere == elsewhere)
		return;
	core_for_each_in_group(event, leader)
		core_count_times(task, event);
	leader->elsewhere = elsewhere;
}

static inline bool is_here(const struct core_task *task, struct core_event *leader)
{
	bool here = is_its_time(task, leader);

	if (leader->cgroup)
		pass_time(task, leader, !here || task->everybody);
	return here;
}

static void fail(const struct core_task *task, struct core_event *leader)
{
	core_schedule_off(task, leader, CORE_ERROR);
	core_count_state(task, leader, CORE_ERROR);
	core_poll_wake(leader);
}

/* To whoever has the timer, unless that goes already. */
static void tell_of_crowd(void)
{
	bool *crowded = &core_tree()->crowded;

	if (__atomic_load_n(crowded, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(crowded, true, __ATOMIC_ACQ_REL))
		return;
	if (!core_host_crowded())
		__atomic_store_n(crowded, false, __ATOMIC_RELEASE);
}

static void consider(struct core_task *task, struct core_event *leader, struct room *room)
{
	if (!is_here(task, leader) || !core_enabled(leader)) {
		core_schedule_off(task, leader, CORE_INACTIVE);
	} else if (take_room(room, leader)) {
		core_count_group_in(task, leader);
	} else if (leader->attr.pinned) {
		fail(task, leader);
	} else {
		core_schedule_off(task, leader, CORE_INACTIVE);
		room->full = true;
		task->crowded = true;
		tell_of_crowd();
	}
}

/*
 * The order in which groups get counters: those of the processor before those of the task, pinned
 * ones before the others. The others of the task take turns; those of the processor have done so
 * already, in page 0.
 */
enum rank { PINNED_EVERYBODY, PINNED, SHARED_EVERYBODY, SHARED, RANKS };

static enum rank rank_of(const struct core_event *leader)
{
	if (leader->attr.pinned)
		return leader->everybody ? PINNED_EVERYBODY : PINNED;
	return leader->everybody ? SHARED_EVERYBODY : SHARED;
}

static bool is_leader(const struct core_event *event)
{
	return event->leader == core_index(event);
}

static void consider_rank(struct core_task *task, enum rank rank, struct room *room)
{
	core_for_each_event(event, task)
		if (is_leader(event) && rank_of(event) == rank)
			consider(task, event, room);
}

static bool takes_turns(const struct core_task *task, const struct core_event *event)
{
	return is_leader(event) && rank_of(event) == (task->everybody ? SHARED_EVERYBODY : SHARED);
}

/* From task->turn to the end, and then from the beginning. */
static void consider_turns(struct core_task *task, struct room *room)
{
	struct core_event *first = core_event_or_null(task->turn);

	for (struct core_event *event = first; event; event = core_event_or_null(event->next))
		if (takes_turns(task, event))
			consider(task, event, room);
	core_for_each_event(event, task) {
		if (event == first)
			break;
		if (takes_turns(task, event))
			consider(task, event, room);
	}
}

/* ---- what the code has to do ---- */

struct wanted {
	uint64_t kinds, sampled, extras, places; /* as in struct core_task */
};

static uint64_t extras_of(const struct core_event *event)
{
	uint64_t extras = 0;

	if (event->kind == CORE_BREAKPOINT)
		extras |= core_is_stop(event) ? CORE_EXTRA_STOPS : CORE_EXTRA_BREAKPOINTS;
	if (event->kind == CORE_TRACE && !event->attr.exclude_user)
		extras |= CORE_EXTRA_TRACE;
	if (event->kind == CORE_PROBE)
		extras |= CORE_EXTRA_STOPS;
	if (!event->period)
		return extras;
	if (event->attr.sample_type & PERF_SAMPLE_BRANCH_STACK)
		extras |= event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK
				  ? CORE_EXTRA_CALL_STACK
				  : CORE_EXTRA_BRANCH_STACK;
	return extras;
}

/* What @event counts. Beside that, only the model knows how far away a sample's operand was; and
 * of what it counts itself where that is, if it is told of operands. */
static uint64_t wanted_by(const struct core_event *event)
{
	const uint64_t access =
		PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT;
	const uint64_t place =
		PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
	const bool is_of_code = core_kind_bit(event->kind) & CORE_KINDS_CODE;
	const bool asks = event->period && event->kind < CORE_HARDWARE_KINDS &&
			  event->attr.sample_type & (is_of_code ? access | place : access);

	if (core_is_sum(event->kind))
		return core_sum_kinds(event->kind);
	return CORE_KIND_BIT(event->kind) | (asks ? CORE_KIND_BIT(CORE_L1D_LOAD_MISSES) : 0);
}

/* So that sums of several are hardly ever the same; a program does not choose them to be. */
static uint64_t place_of(uint64_t address)
{
	const uint64_t odd = 0x9e3779b97f4a7c15;

	address = (address ^ address >> 32) * odd;
	return (address ^ address >> 29) * odd;
}

static uint64_t place_of_breakpoint(const struct core_event *event)
{
	return place_of(place_of(event->attr.bp_addr) + event->attr.bp_len * 8 +
			event->attr.bp_type);
}

static uint64_t place_of_probe(const struct core_event *event)
{
	const uint64_t file = place_of(event->file.device) + event->file.inode;

	return place_of(place_of(file) + event->attr.probe_offset);
}

/* What @event, which is active or core_is_met(), adds to what is wanted. */
static inline void add_wanted(const struct core_event *event, struct wanted *to)
{
	/* Most count one kind and nothing else. */
	if (event->kind < CORE_COUNTED_KINDS && !event->period) {
		to->kinds |= CORE_KIND_BIT(event->kind);
		return;
	}
	to->extras |= extras_of(event);
	if (event->kind == CORE_BREAKPOINT)
		to->places += place_of_breakpoint(event);
	if (event->kind == CORE_PROBE)
		to->places += place_of_probe(event);
	if (event->kind >= CORE_COUNTED_KINDS && !core_is_sum(event->kind))
		return;
	to->kinds |= wanted_by(event);
	if (event->period)
		to->sampled |= CORE_KIND_BIT(event->kind);
}

/* Says what is wanted now. Counters that count down are set anew by the task's own thread, since
 * the next overflow may be another event's. */
static void want(struct core_task *task, const struct wanted *now)
{
	if (now->kinds == task->wanted && now->sampled == task->sampled &&
	    now->extras == task->extras && now->places == task->places && !now->sampled)
		return;
	task->wanted = now->kinds;
	task->sampled = now->sampled;
	task->extras = now->extras;
	task->places = now->places;
	task->kick = true;
	core_task_change(task);
}

/*
 * Code counts for those, too, that wait for their turn: what is counted decides how fast the
 * program is, and counts are scaled by time. Were instructions counted while it is fast and cycles
 * while it is not, there would be more of them than a cycle can have.
 */
static inline void add_waiting(const struct core_task *task, const struct core_event *event,
			       struct wanted *to)
{
	const bool counts = event->kind < CORE_HARDWARE_KINDS || core_is_sum(event->kind);

	if (task->crowded && event->state == CORE_INACTIVE && event->hardware && counts &&
	    is_its_time(task, core_event(event->leader)))
		to->kinds |= wanted_by(event);
}

static void publish(struct core_task *task)
{
	struct wanted now = {0};

	core_for_each_event(event, task)
		if (core_is_met(event))
			add_wanted(event, &now);
		else
			add_waiting(task, event, &now);
	want(task, &now);
}

/* That of @leader's group comes to what is wanted already. */
static void publish_more(struct core_task *task, struct core_event *leader)
{
	struct wanted now = {task->wanted, task->sampled, task->extras, task->places};

	core_for_each_in_group(event, leader)
		if (core_is_met(event))
			add_wanted(event, &now);
	want(task, &now);
}

/* There is room for all, so none depends on another. */
static bool is_roomy(const struct core_task *task)
{
	return !core_settings()->counters && !task->exclusive;
}

static inline void consider_alone(const struct core_task *task, struct core_event *leader)
{
	if (!is_here(task, leader))
		core_schedule_off(task, leader, CORE_INACTIVE);
	else if (core_enabled(leader)) /* else it has been put off when it was disabled */
		core_count_group_in(task, leader);
}

static void consider_all(struct core_task *task)
{
	core_for_each_event(event, task)
		if (is_leader(event))
			consider_alone(task, event);
}

static void consider_by_rank(struct core_task *task)
{
	uint32_t counters = core_settings()->counters;
	struct room room = {.counters = counters ? counters : UINT32_MAX};

	for (enum rank rank = 0; rank < RANKS; rank++) {
		if (rank == (task->everybody ? SHARED_EVERYBODY : SHARED))
			consider_turns(task, &room);
		else
			consider_rank(task, rank, &room);
	}
}

void core_schedule(struct core_task *task)
{
	task->crowded = false;
	if (is_roomy(task))
		consider_all(task);
	else
		consider_by_rank(task);
	if (!task->everybody)
		publish(task);
}

void core_schedule_group(struct core_task *task, struct core_event *leader)
{
	if (!is_roomy(task)) {
		core_schedule(task);
		return;
	}
	consider_alone(task, leader);
	if (!task->everybody)
		publish(task);
}

void core_schedule_more(struct core_task *task, struct core_event *leader)
{
	if (!is_roomy(task)) {
		core_schedule(task);
		return;
	}
	consider_alone(task, leader);
	if (!task->everybody)
		publish_more(task, leader);
}

void core_schedule_all(void)
{
	for (uint32_t page = core_tree()->live; page; page = core_task(page)->next_live) {
		struct core_task *task = core_task(page);

		if (task->apart)
			continue;
		core_task_lock(task);
		core_schedule(task);
		core_task_unlock(task);
	}
}

/* ---- what cannot be counted ---- */

static bool does_all(const struct core_code *code, struct core_event *leader)
{
	struct wanted wants = {0};

	core_for_each_in_group(event, leader)
		if (event->state == CORE_ACTIVE)
			add_wanted(event, &wants);
	return !(wants.kinds & ~code->counted) && !(wants.sampled & ~code->checked) &&
	       !(wants.extras & ~code->extras);
}

/* The group is read as a whole, so none of it is as if it had been counted. */
static void miss(const struct core_task *task, struct core_event *leader)
{
	fail(task, leader);
	core_for_each_in_group(event, leader) {
		if (core_enabled(event))
			core_count_state(task, event, CORE_ERROR);
		if (event->state == CORE_ERROR)
			__atomic_store_n(&core_opened(event)->missed, true, __ATOMIC_RELAXED);
	}
}

void core_task_affords(struct core_task *task, const struct core_code *code)
{
	bool keeps = false;

	core_task_lock(task);
	core_for_each_event(event, task) {
		if (!is_leader(event) || does_all(code, event))
			continue;
		miss(task, event);
		keeps |= event->keeps;
	}
	core_schedule(task);
	core_task_unlock(task);
	if (keeps)
		core_host_kept(0, true, CORE_KEPT_SWITCH);
}

/* ---- turns ---- */

bool core_crowded(void)
{
	return __atomic_load_n(&core_tree()->crowded, __ATOMIC_RELAXED);
}

/* The group that was first comes last now. */
static void turn(struct core_task *task)
{
	struct core_event *event = core_event_or_null(task->turn ? task->turn : task->events);

	/* turn may be a group that has no turns any more, or none yet */
	while (event && !takes_turns(task, event))
		event = core_event_or_null(event->next);
	do
		event = event ? core_event_or_null(event->next) : NULL;
	while (event && !takes_turns(task, event));
	task->turn = event ? core_index(event) : 0;
}

void core_take_turn(struct core_task *task)
{
	core_task_lock(task);
	task->turn_due = false;
	if (task->crowded) {
		turn(task);
		core_schedule(task);
	}
	core_task_unlock(task);
}

/* A thread takes its turns itself, and while it runs: then its time is known exactly. */
static bool rotate(struct core_task *task)
{
	bool crowded = task->crowded;

	if (!crowded)
		return false;
	core_lock(&task->lock);
	task->turn_due = true;
	task->kick = true;
	core_task_change(task);
	core_task_unlock(task);
	return true;
}

void core_rotate(void)
{
	struct core_tree *tree = core_tree();
	bool crowded;

	core_tree_lock();
	__atomic_store_n(&tree->crowded, false, __ATOMIC_RELAXED);
	crowded = core_everybody()->crowded;
	if (crowded) {
		core_take_turn(core_everybody());
		core_schedule_all();
	}
	for (uint32_t page = tree->live; page; page = core_task(page)->next_live)
		crowded |= rotate(core_task(page));
	if (crowded)
		__atomic_store_n(&tree->crowded, true, __ATOMIC_RELAXED);
	core_tree_unlock();
}
