// SPDX-License-Identifier: MIT
/*
 * What is noted of the kernel's events that count for ours. Whoever has something to note has asked
 * the kernel, or has waited, since he found the event: it may be closed by now, and the slot be
 * another's, so all go by name.
 */
#include <errno.h>

#include "core/core.h"
#include "core/count.h"
#include "core/hold.h"

void core_kept_begins(uint64_t name, bool on, bool on_exec)
{
	struct core_hold hold;

	if (!core_hold(&hold, name))
		return;
	hold.event->kept_on = on;
	hold.event->kept_on_exec = on_exec;
	core_hold_end(&hold);
}

bool core_kept_follow(uint64_t name, bool *on, uint32_t *refreshed)
{
	struct core_hold hold;
	bool goes_on;

	if (!core_hold(&hold, name))
		return false;
	goes_on = hold.event->state != CORE_EXITED;
	if (goes_on) {
		*on = core_enabled(hold.event) && core_enabled(core_event(hold.event->leader));
		*refreshed = hold.event->refreshed;
		hold.event->kept_on = *on;
	}
	core_hold_end(&hold);
	return goes_on;
}

void core_kept_counted(uint64_t name, uint64_t value)
{
	struct core_hold hold;

	if (!core_hold(&hold, name))
		return;
	__atomic_store_n(&hold.event->kept, value, __ATOMIC_RELEASE);
	core_hold_end(&hold);
}

void core_kept_ended(uint64_t name)
{
	struct core_hold hold;

	if (!core_hold(&hold, name))
		return;
	__atomic_store_n(&hold.event->kept_ended, true, __ATOMIC_RELEASE);
	core_hold_end(&hold);
}

void core_kept_answer(uint64_t name, int with)
{
	struct core_hold hold;

	if (!core_hold(&hold, name))
		return;
	hold.event->answer = with;
	core_hold_end(&hold);
}

int core_kept_answered(uint64_t name)
{
	struct core_hold hold;
	int answer;

	if (!core_hold(&hold, name))
		return -EBADF;
	answer = hold.event->answer;
	core_hold_end(&hold);
	return answer;
}
