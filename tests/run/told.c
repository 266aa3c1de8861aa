// SPDX-License-Identifier: MIT
/*
 * Records of what tasks do, looked for at once: what a program has been told of when its call
 * returns, whoever did it. By a dummy event, which the kernel has everywhere.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

enum { PAGE = 4096, RING = 2 * PAGE };

struct watch {
	int fd;
	struct perf_event_mmap_page *page;
	uint64_t tail;
};

static struct watch watch_task(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.comm = 1,
		.task = 1,
		.exclude_kernel = 1,
	};
	struct watch watch = {
		.fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0),
	};

	if (watch.fd < 0 && (errno == EACCES || errno == EPERM || errno == ENOSYS)) {
		say("skip: the kernel refuses perf_event_open(2)\n");
		_exit(0);
	}
	need(watch.fd >= 0);
	watch.page = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, watch.fd, 0);
	need(watch.page != MAP_FAILED);
	return watch;
}

/* The types of the records that have come, without waiting. */
static void say_told(struct watch *watch)
{
	const char *data = (const char *)watch->page + PAGE;
	const uint64_t head = __atomic_load_n(&watch->page->data_head, __ATOMIC_ACQUIRE);

	while (watch->tail < head) {
		const struct perf_event_header *header = (const void *)(data + watch->tail % PAGE);

		need(header->size);
		say(" %s", header->type == PERF_RECORD_FORK   ? "fork"
			   : header->type == PERF_RECORD_COMM ? "comm"
			   : header->type == PERF_RECORD_EXIT ? "exit"
							      : "other");
		watch->tail += header->size;
	}
	say("\n");
}

/* The child runs whenever it likes; its parent knows. */
static void case_fork(void)
{
	struct watch watch = watch_task(0);

	for (int i = 0; i < 20; i++) {
		pid_t child = fork();

		if (!child) {
			pause();
			_exit(0);
		}
		need(child > 0);
		say_told(&watch);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

/* By a process that has nothing to do with events itself. */
static void case_name_of_another(void)
{
	int asked[2], done[2];
	struct watch watch;
	pid_t child;
	char byte;

	need(!pipe(asked) && !pipe(done));
	child = fork();
	if (!child) {
		close(asked[1]);
		if (read(asked[0], &byte, 1) == 1)
			prctl(PR_SET_NAME, "another");
		need(write(done[1], "", 1) == 1);
		need(read(asked[0], &byte, 1) == 0);
		_exit(0);
	}
	watch = watch_task(child);
	say_told(&watch);
	need(write(asked[1], "", 1) == 1 && read(done[0], &byte, 1) == 1);
	say_told(&watch);
	close(asked[1]);
	say_end("child", child);
	say_told(&watch);
}

const struct test_case cases[] = {
	{"fork", case_fork},
	{"name_of_another", case_name_of_another},
	{0},
};
