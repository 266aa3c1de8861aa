/* SPDX-License-Identifier: MIT */
/* Tasks in PID name spaces of their own, and their numbers where the run began: the monitor sees
 * both. */
#ifndef MONITOR_NUMBERS_H
#define MONITOR_NUMBERS_H

#include <stdint.h>
#include <sys/types.h>

/* The process of the thread @tid; 0: there is none. */
pid_t numbers_process(pid_t tid);
/* The thread of @pid that has the number @own itself; @pid: it is none of the others. */
pid_t numbers_thread(pid_t pid, pid_t own);

/*
 * Says, if the task on @page is still @id, that it is of the process @pid, and which of its
 * threads: itself it has the number @tid. Wakes who waits for it.
 */
void numbers_tell(uint32_t page, uint64_t id, pid_t pid, pid_t tid);

#endif
