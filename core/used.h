/* SPDX-License-Identifier: MIT */
/* What the kernel says that a thread has used, as the counters of software events. */
#ifndef CORE_USED_H
#define CORE_USED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kinds.h"

struct core_task;

/* Since the thread began; what is not known is 0. */
struct core_used {
	uint64_t run_time; /* ns */
	uint64_t minor_faults, major_faults;
	uint64_t switches, migrations;
};

/* The counters in @kinds of @task are there now, or beyond it. */
void core_used(struct core_task *task, uint64_t kinds, const struct core_used *used);

/*
 * As /proc/PID/task/TID has it, which is as of when the thread was last switched. @read: the file
 * called @name of that folder, as a string; false if there is none.
 */
typedef bool core_read_file(int32_t pid, int32_t tid, const char *name, char *text, size_t size);
void core_used_read(struct core_used *used, uint64_t kinds, int32_t pid, int32_t tid,
		    core_read_file *read);
void core_used_by_proc(struct core_task *task, uint64_t kinds, int32_t pid, int32_t tid,
		       core_read_file *read);

/* The faults in /proc/PID/stat, or of a thread. */
void core_used_stat(struct core_used *used, const char *stat);

/*
 * Threads that the kernel has ended, with their process or as the first one executed, tell nobody
 * what they had used. Of all together it is known: what the process had, but for its first thread,
 * of which the kernel still says it, and for those that ended by themselves, which say so. It is
 * about run time and faults alone.
 */

/* The caller's task ends by itself. */
void core_used_ended(struct core_task *task, const struct core_used *used);

/* The caller begins an image, alone; its process has used as much beside what it has itself. */
void core_used_alone(struct core_task *task, const struct core_used *others);

/*
 * Of @process at most the first thread is left, and all others have used @others: who has not told
 * gets what is missing, and of several one, if all are measured. Whether there is anybody.
 */
void core_used_lost(uint64_t process, const struct core_used *others);
bool core_used_any_lost(uint64_t process);

/* In such a text, the number at @text, behind blanks and colons; and the one behind @name at the
 * beginning of a line, 0 if there is none. */
uint64_t core_text_number(const char *text);
uint64_t core_text_field(const char *text, const char *name);

#endif
