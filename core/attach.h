/* SPDX-License-Identifier: MIT */
/*
 * Events in the lists of tasks, groups, copies and creators. All with the tree's lock, and with
 * that of the task where one is named.
 */
#ifndef CORE_ATTACH_H
#define CORE_ATTACH_H

#include "core/event.h"
#include "core/task.h"

/* At the end of @task's list and, if @leader is not NULL, of that group. */
void core_attach_event(struct core_task *task, struct core_event *event, struct core_event *leader,
		       enum core_state state);

/* What @task has to know of its events, of this one. */
void core_note_event(struct core_task *task, const struct core_event *event);

/* In the list of those that live. */
void core_link_live(struct core_task *task);

/* @copy is one of @event's. */
void core_add_child(struct core_event *event, struct core_event *copy);

/* Off the list of its task, where it does not count any more. It stays in its group. */
void core_detach_event(struct core_task *task, struct core_event *event);

/* Out of its group: what it led goes on alone. @task: as above, NULL if that has ended. */
void core_leave_group(const struct core_task *task, struct core_event *event);

/*
 * A copy of @event for @task, whose state is that of @like, or NULL: there is no more room. It is
 * attached, and not scheduled yet.
 */
struct core_event *core_copy_event(struct core_task *task, struct core_event *event,
				   const struct core_event *like, struct core_event *leader);

/* Takes a copy from its event's list, which gets what it has counted. It does not count any more.
 */
void core_fold_copy(struct core_event *copy);

/* The copy of @event that @task has, or NULL. */
struct core_event *core_find_copy(const struct core_task *task, const struct core_event *event);

/* Ends @event, whose descriptor and mappings are gone, with all of its copies. */
void core_release_event(struct core_event *event);
/* Its descriptor is gone: it ends, at once or with its last mapping. */
void core_close_event(struct core_event *event);

/* @event is what @task is about to open; and what is that now: NULL if there is none, or if it has
 * been closed ahead of @task, and its slot may be another event's. */
void core_set_opening(struct core_task *task, const struct core_event *event);
struct core_event *core_opening(const struct core_task *task);

/* In and out of the list of what the caller has opened: prctl(2). */
void core_own_event(struct core_task *creator, struct core_event *event);
void core_disown_event(struct core_event *event);
void core_disown_events(struct core_task *creator);

#endif
