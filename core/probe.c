// SPDX-License-Identifier: MIT
/*
 * Probes: events that happen where an instruction of a file is about to be executed, wherever that
 * is mapped, or where a function that begins there returns. Whoever runs the code finds both out
 * (runtime/linux/uprobes.c); here is who wants to know.
 */
#include "core/arena.h"
#include "core/core.h"
#include "core/output.h"
#include "core/repair.h"
#include "core/sample.h"
#include "core/schedule.h"

static bool is_at(const struct core_event *event, const struct core_probe *place)
{
	return event->kind == CORE_PROBE && event->attr.probe_offset == place->offset &&
	       core_is_same_file(&event->file, &place->file);
}

size_t core_probe_places(struct core_task *task, struct core_probe *to, size_t from, size_t max)
{
	size_t n = 0;

	core_task_lock(task);
	core_for_each_event(event, task) {
		if (event->kind != CORE_PROBE || !core_is_met(event))
			continue;
		if (n >= from && n - from < max)
			to[n - from] = (struct core_probe){event->file, event->attr.probe_offset};
		n++;
	}
	core_task_unlock(task);
	return n;
}

size_t core_probe_counters(struct core_task *task, struct core_probe *to, size_t from, size_t max)
{
	size_t n = 0;

	core_task_lock(task);
	core_for_each_event(event, task) {
		if (!core_probe_counter(event))
			continue;
		if (n >= from && n - from < max)
			to[n - from] = (struct core_probe){event->file, core_probe_counter(event)};
		n++;
	}
	core_task_unlock(task);
	return n;
}

static bool has_counter(const struct core_task *task, const struct core_probe *counter)
{
	core_for_each_event(event, task)
		if (core_probe_counter(event) && core_probe_counter(event) == counter->offset &&
		    core_is_same_file(&event->file, &counter->file))
			return true;
	return false;
}

bool core_probe_counted(uint64_t process, const struct core_probe *counter)
{
	bool counted = false;

	core_tree_lock();
	for (uint32_t page = core_tree()->live; page && !counted; page = core_task(page)->next_live)
		counted = core_task(page)->process == process &&
			  has_counter(core_task(page), counter);
	core_tree_unlock();
	return counted;
}

bool core_probe_at(const struct core_task *task, const struct core_probe *place, bool returns)
{
	core_for_each_event(event, task)
		if (is_at(event, place) && core_is_met(event) &&
		    (!returns || core_is_return_probe(event)))
			return true;
	return false;
}

void core_probe_met(struct core_task *task, const struct core_probe_met *met)
{
	const bool returned = met->back;

	core_look_at_kept(task);
	core_task_lock(task);
	core_for_each_event(event, task)
		if (is_at(event, &met->place) && event->state == CORE_ACTIVE &&
		    core_is_return_probe(event) == returned)
			core_happened(event, &(struct core_hit){.probe = met});
	core_task_unlock(task);
	core_stop_kept(task);
	if (core_task_changed(task))
		core_task_update(task);
}
