// SPDX-License-Identifier: MIT
#include "core/hold.h"

#include "core/core.h"
#include "core/count.h"
#include "core/repair.h"
#include "core/schedule.h"

/* Without a lock it may be wrong; then it is seen with one. */
static bool seems_to_have_copies(const struct core_event *event)
{
	return core_may_have_copies(event);
}

bool core_hold(struct core_hold *hold, uint64_t name)
{
	struct core_event *event = core_named(name);

	*hold = (struct core_hold){.event = event, .tree = seems_to_have_copies(event)};
	if (hold->tree)
		core_tree_lock();
	for (;;) {
		hold->task = core_event_lock(event);
		if ((hold->tree || hold->task) && !core_is_named(event, name)) {
			core_hold_end(hold);
			return false;
		}
		if (hold->tree || (hold->task && !core_may_have_copies(event)))
			return true;
		core_hold_leave_task(hold);
		core_tree_lock();
		hold->tree = true;
	}
}

void core_hold_leave_task(struct core_hold *hold)
{
	if (hold->task)
		core_task_unlock(hold->task);
	hold->task = NULL;
}

void core_hold_end(struct core_hold *hold)
{
	core_hold_leave_task(hold);
	if (hold->tree)
		core_tree_unlock();
	hold->tree = false;
}
