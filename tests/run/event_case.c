// SPDX-License-Identifier: MIT
#include "event_case.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void *volatile nowhere = (void *)8;

struct perf_event_attr faults(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

int open_event(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
}

int own_event(struct perf_event_attr *attr)
{
	int fd = open_event(attr, 0, -1, -1, 0);

	if (fd < 0 && (errno == EACCES || errno == EPERM || errno == ENOSYS || errno == ENOENT)) {
		say("skip: the kernel refuses perf_event_open(2)\n");
		_exit(0);
	}
	need(fd >= 0);
	return fd;
}

int own_faults(void)
{
	struct perf_event_attr attr = faults();

	return own_event(&attr);
}

uint64_t count_of(int fd)
{
	uint64_t count = 0;

	need(read(fd, &count, sizeof(count)) == sizeof(count));
	return count;
}

void fault(int nr)
{
	volatile char *memory = mmap(NULL, (size_t)nr * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED);
	madvise((void *)memory, (size_t)nr * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr; i++)
		memory[i * PAGE] = 1;
	munmap((void *)memory, (size_t)nr * PAGE);
}

pid_t start_child(int *go, int nr_pages)
{
	int ends[2];
	char byte;
	pid_t child;

	need(!pipe(ends));
	child = fork();
	if (!child) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) == 1)
			fault(nr_pages);
		_exit(0);
	}
	close(ends[0]);
	*go = ends[1];
	return child;
}

void map_ring(int fd)
{
	need(mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
}

void report(const char *what, long result)
{
	say("%s: %s\n", what, result_name(result));
}

struct perf_event_mmap_page *ring_page(int fd)
{
	struct perf_event_mmap_page *page =
		mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED) {
		say("skip: no ring can be mapped\n");
		_exit(0);
	}
	return page;
}

void send_fd(int socket, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec byte = {"x", 1};
	struct msghdr message = {
		.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	*head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	need(sendmsg(socket, &message, 0) == 1);
}

int receive_fd(int socket)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec bytes = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	need(recvmsg(socket, &message, 0) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}
