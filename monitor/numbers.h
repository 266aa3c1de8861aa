/* SPDX-License-Identifier: MIT */
/* Tasks in PID name spaces of their own, and their numbers where the run began: the monitor sees
 * both. */
#ifndef MONITOR_NUMBERS_H
#define MONITOR_NUMBERS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Says, if the task on @page is still @id, that it is of the process @pid, and which of its
 * threads: itself it has the number @tid. Wakes who waits for it.
 */
void numbers_tell(uint32_t page, uint64_t id, pid_t pid, pid_t tid);

#endif
