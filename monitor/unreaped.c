// SPDX-License-Identifier: MIT
/*
 * A process that has ended and that nobody has waited for yet. If the kernel ended it, nobody was
 * asked what its software events had counted; but of its first thread /proc still says it, and of
 * the process as a whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/task.h"
#include "core/used.h"
#include "monitor/monitor.h"

static struct {
	int pidfd;
	uint64_t process; /* 0: there is none */
	pid_t here;	  /* its number, as we see it */
} unreaped;

static bool read_file(const char *path, char *text, size_t size)
{
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Once it has been waited for, somebody else may have its number. */
static bool is_there(void)
{
	const int pidfd = unreaped.pidfd;

	return !(pidfd < 0 ? kill(unreaped.here, 0)
			   : (int)syscall(__NR_pidfd_send_signal, pidfd, 0, NULL, 0)) ||
	       errno != ESRCH;
}

static bool read_first(int32_t pid, int32_t tid, const char *name, char *text, size_t size)
{
	char path[64];

	(void)pid, (void)tid;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", unreaped.here, unreaped.here, name);
	return read_file(path, text, size) && is_there();
}

/* A clock of clock_gettime(2): the processor time of a process, as clock_getcpuclockid(3) has
 * it. */
static clockid_t clock_of(pid_t pid)
{
	enum { CPUCLOCK_SCHED = 2 };

	return (clockid_t)(~(unsigned int)pid << 3 | CPUCLOCK_SCHED);
}

/* The other threads are gone without a word. */
static void tell_others(void)
{
	struct core_used all = {0}, used = {0};
	char path[64], text[1024];
	struct timespec run = {0};

	snprintf(path, sizeof(path), "/proc/%d/stat", unreaped.here);
	if (clock_gettime(clock_of(unreaped.here), &run) || !read_file(path, text, sizeof(text)) ||
	    !is_there())
		return;
	core_used_stat(&all, text);
	all.run_time = (uint64_t)run.tv_sec * 1000000000 + (uint64_t)run.tv_nsec;
	core_used_read(&used, CORE_KINDS_CLOCKS | CORE_KINDS_FAULTS, unreaped.here, unreaped.here,
		       read_first);
	if (!is_there())
		return;
	all.run_time -= used.run_time;
	all.minor_faults -= used.minor_faults;
	all.major_faults -= used.major_faults;
	core_used_lost(unreaped.process, &all);
}

static pid_t number_of(int pidfd)
{
	char path[64], text[1024];
	const char *number;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	number = read_file(path, text, sizeof(text)) ? strstr(text, "\nPid:") : NULL;
	return number ? atoi(number + strlen("\nPid:")) : -1;
}

void unreaped_begin(int pidfd, pid_t number, uint64_t process)
{
	unreaped.here = pidfd < 0 ? number : number_of(pidfd);
	unreaped.process = unreaped.here > 0 ? process : 0;
	unreaped.pidfd = pidfd;
	if (unreaped.process && core_used_any_lost(process))
		tell_others();
}

void unreaped_end(void)
{
	unreaped.process = 0;
}

void unreaped_used(struct core_task *task, uint64_t kinds)
{
	if (unreaped.process && task->process == unreaped.process && task->tid == task->pid)
		core_used_by_proc(task, kinds, unreaped.here, unreaped.here, read_first);
}
