// SPDX-License-Identifier: MIT
#include "runtime/linux/self_comm.h"

#include <linux/fcntl.h>

#include "core/core.h"
#include "runtime/linux/tasks.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

static bool any; /* may be open */

static bool ends_in_comm(const char *path, size_t length)
{
	return length >= 5 && !strcmp(path + length - 5, "/comm");
}

void self_comm_opened(const char *path)
{
	if (!any)
		any = ends_in_comm(path, strlen(path));
}

/* "/proc/PID/comm" and "/proc/PID/task/TID/comm": of the last number. */
static int32_t thread_of(const char *path, size_t length)
{
	const char *at = path + length - 5;
	int32_t number = 0;

	while (at > path && at[-1] >= '0' && at[-1] <= '9')
		at--;
	for (; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (*at - '0');
	return number;
}

/* Whose name that file is; 0: it is another file. */
static int32_t named_by(int fd, char path[64])
{
	char link[32], own[32];
	int64_t n;

	format(link, sizeof(link), "/proc/self/fd/%d", (int64_t)fd);
	n = sys(__NR_readlink, link, path, 63);
	if (n <= 0)
		return 0;
	path[n] = '\0';
	if (!ends_in_comm(path, (size_t)n) ||
	    strncmp(path, own, format(own, sizeof(own), "/proc/%d/", sys(__NR_getpid))))
		return 0;
	return thread_of(path, (size_t)n);
}

static bool read_comm(const char *path, char comm[], size_t size)
{
	const int fd = (int)sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	int64_t n = fd < 0 ? -1 : sys(__NR_read, fd, comm, size - 1);

	if (fd >= 0)
		sys(__NR_close, fd);
	if (n > 0) /* without the end of the line that /proc adds: the name may have its own */
		n--;
	if (n >= 0)
		comm[n] = '\0';
	return n >= 0;
}

void self_comm_written(struct thread *thread, int fd)
{
	char path[64], comm[32]; /* with the end of the line */
	uint32_t page;
	int32_t tid;

	if (!any || !thread->page || !core_nr_events())
		return;
	tid = named_by(fd, path);
	page = tid ? tasks_find(tid) : 0;
	if (page && read_comm(path, comm, sizeof(comm)))
		core_task_comm(&thread->events, core_task(page), comm);
}
