// SPDX-License-Identifier: MIT
#include "monitor/numbers.h"

#include <dirent.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/task.h"
#include "monitor/monitor.h"

/* The last number in that line of the status of the thread @tid of @pid. */
static pid_t in_status(pid_t pid, pid_t tid, const char *name)
{
	char path[64], line[256];
	pid_t number = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	status = fopen(path, "re");
	if (!status)
		return 0;
	while (!number && fgets(line, sizeof(line), status))
		if (!strncmp(line, name, strlen(name)))
			number = atoi(strrchr(line, '\t') + 1);
	fclose(status);
	return number;
}

/* As the thread has it itself: the innermost is the last one there. */
static pid_t own_number(pid_t pid, pid_t tid)
{
	return in_status(pid, tid, "NSpid:");
}

pid_t numbers_process(pid_t tid)
{
	return in_status(tid, tid, "Tgid:");
}

pid_t numbers_thread(pid_t pid, pid_t own)
{
	char path[32];
	struct dirent *entry;
	pid_t found = 0;
	DIR *tasks;

	if (own_number(pid, pid) == own)
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !found && (entry = readdir(tasks)))
		if (own_number(pid, atoi(entry->d_name)) == own)
			found = atoi(entry->d_name);
	if (tasks)
		closedir(tasks);
	return found ? found : pid;
}

void numbers_tell(uint32_t page, uint64_t id, pid_t pid, pid_t tid)
{
	struct core_task *task;
	pid_t thread;

	if (!page || page > arena_used() || !pid)
		return;
	task = core_task(page);
	thread = numbers_thread(pid, tid);
	if (!task->live || task->id != id)
		return;
	task->first_pid = pid;
	__atomic_store_n(&task->first_tid, thread, __ATOMIC_RELEASE);
	syscall(__NR_futex, &task->first_tid, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
