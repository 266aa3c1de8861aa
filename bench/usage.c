/* SPDX-License-Identifier: MIT */
/*
 * `usage COMMAND [ARG...]` runs a command and writes to descriptor 3 what it and its children
 * took: wall seconds, CPU seconds, peak resident KiB, wait status.
 *
 * A process starts with the peak of the one that forked it, so a measuring script would put its own
 * size under every figure. This one is small.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double start = now();
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 2)
		return 2;
	pid = fork();
	if (pid < 0)
		return 1;
	if (!pid) {
		close(3);
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	if (wait4(pid, &status, 0, &usage) != pid)
		return 1;
	dprintf(3, "%.6f %.6f %ld %d\n", now() - start,
		seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss, status);
	return 0;
}
