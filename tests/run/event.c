// SPDX-License-Identifier: MIT
/*
 * Descriptors of events, and the life of what they measure. All with software events, which the
 * kernel has everywhere, so that it says what is right; under `tally run --host=never` they are the
 * virtual PMU's. What is counted is only told as far as it must be the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

enum { PAGE = 4096, RING = 5 * PAGE };

/* The compiler is not to see through these. */
static void *volatile nowhere = (void *)8;
static volatile int too_many = 2000;

static struct perf_event_attr faults(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		      unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
}

/* An event of this thread, or the end of the case where there are none. */
static int own_event(struct perf_event_attr *attr)
{
	int fd = open_event(attr, 0, -1, -1, 0);

	if (fd < 0 && (errno == EACCES || errno == EPERM || errno == ENOSYS || errno == ENOENT)) {
		say("skip: the kernel refuses perf_event_open(2)\n");
		_exit(0);
	}
	need(fd >= 0);
	return fd;
}

static int own_faults(void)
{
	struct perf_event_attr attr = faults();

	return own_event(&attr);
}

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	need(read(fd, &count, sizeof(count)) == sizeof(count));
	return count;
}

/* Touches @nr pages that were never touched. */
static void fault(int nr)
{
	volatile char *memory = mmap(NULL, (size_t)nr * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED);
	madvise((void *)memory, (size_t)nr * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr; i++)
		memory[i * PAGE] = 1;
	munmap((void *)memory, (size_t)nr * PAGE);
}

static void report(const char *what, long result)
{
	say("%s: %s\n", what, result_name(result));
}

/* What it is, and 0 for addresses and the like. */
#define TRY(call)    report(#call, (call))
#define TRY_AT(call) report(#call, (long)(call) == -1 ? -1 : 0)

/* ---- calls ---- */

static void case_read(void)
{
	struct perf_event_attr attr = faults();
	char bytes[64];
	const struct iovec good[] = {{bytes, 16}, {bytes + 16, 16}};
	const struct iovec small[] = {{bytes, 8}, {bytes + 16, 16}};
	const struct iovec second_small[] = {{bytes, 16}, {bytes + 16, 8}};
	int fd;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	fd = own_event(&attr);
	TRY(read(fd, bytes, 0));
	TRY(read(fd, bytes, 15));
	TRY(read(fd, bytes, 16));
	TRY(read(fd, bytes, 64));
	TRY(read(fd, nowhere, 16));
	TRY(read(fd, nowhere, 8));
	TRY(readv(fd, good, 2));
	TRY(readv(fd, small, 2));
	TRY(readv(fd, second_small, 2));
	TRY(readv(fd, good, 0));
	TRY(readv(fd, good, too_many));
	TRY(preadv2(fd, good, 1, -1, 0));
	TRY(preadv2(fd, good, 1, 0, 0));
	TRY(pread(fd, bytes, 64, 0));
}

static void case_what_cannot_be_done(void)
{
	struct stat file;
	int fd = own_faults(), number;

	TRY(write(fd, "x", 1));
	TRY(pwrite(fd, "x", 1, 0));
	TRY(lseek(fd, 0, SEEK_SET));
	TRY(ftruncate(fd, 0));
	TRY(fsync(fd));
	TRY(fdatasync(fd));
	TRY(fallocate(fd, 0, 0, 1));
	TRY(fcntl(fd, F_GETPIPE_SZ));
	TRY(ioctl(fd, FIONREAD, &number));
	TRY(ioctl(fd, 0x1234, 0));
	need(!fstat(fd, &file));
	say("mode %o, size %d\n", (unsigned int)file.st_mode, (int)file.st_size);
}

static void case_ioctl(void)
{
	struct perf_event_attr attr = faults();
	int fd = own_faults();
	uint64_t number = 0;

	TRY(ioctl(fd, PERF_EVENT_IOC_ID, &number));
	say("an id: %d\n", number != 0);
	TRY(ioctl(fd, PERF_EVENT_IOC_ID, 8));
	TRY(ioctl(fd, PERF_EVENT_IOC_PERIOD, 8));
	TRY(ioctl(fd, PERF_EVENT_IOC_PERIOD, &number));
	TRY(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, 8));
	TRY(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "x"));
	TRY(ioctl(fd, PERF_EVENT_IOC_SET_BPF, 99));
	TRY(ioctl(fd, PERF_EVENT_IOC_SET_BPF, fd));
	TRY(ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, &number));
	TRY(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, 1));
	TRY(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, -1));
	TRY(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	TRY(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, 8));
	TRY(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	TRY(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	TRY(ioctl(fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	TRY(ioctl(fd, PERF_EVENT_IOC_RESET, 0));
}

static void case_fcntl(void)
{
	struct f_owner_ex owner = {7, 1};
	int fd = own_faults();

	TRY(fcntl(fd, F_GETFL));
	TRY(fcntl(fd, F_SETFL, O_NONBLOCK));
	TRY(fcntl(fd, F_GETFL));
	TRY(fcntl(fd, F_SETFL, O_ASYNC));
	TRY(fcntl(fd, F_GETFL));
	TRY(fcntl(fd, F_SETFL, O_DIRECT));
	TRY(fcntl(fd, F_GETFD));
	TRY(fcntl(fd, F_SETSIG, 99));
	TRY(fcntl(fd, F_SETSIG, SIGUSR1));
	TRY(fcntl(fd, F_GETSIG));
	TRY(fcntl(fd, F_SETOWN, 99999999));
	TRY(fcntl(fd, F_SETOWN, getpid()));
	say("owned by us: %d\n", fcntl(fd, F_GETOWN) == getpid());
	TRY(fcntl(fd, F_SETOWN_EX, &owner));
	owner = (struct f_owner_ex){F_OWNER_TID, getpid()};
	TRY(fcntl(fd, F_SETOWN_EX, &owner));
	TRY(fcntl(fd, F_GETOWN_EX, &owner));
	say("type %d, ours: %d\n", owner.type, owner.pid == getpid());
	TRY(fcntl(fd, F_SETOWN, 0));
	TRY(fcntl(fd, F_GETOWN));
}

static void case_open(void)
{
	struct {
		struct perf_event_attr attr;
		char tail[256];
	} large = {.attr = faults()};
	struct perf_event_attr attr = faults();
	int fd = own_faults(), flags;

	TRY_AT(open_event(&attr, 0, -1, -1, 1 << 20));
	TRY_AT(open_event(nowhere, 0, -1, -1, 0));
	TRY_AT(open_event(&attr, -1, -1, -1, 0));
	TRY_AT(open_event(&attr, 0, 100000, -1, 0));
	TRY_AT(open_event(&attr, 0, -1, 99, 0));
	TRY_AT(open_event(&attr, 0, -1, 1, 0));
	TRY_AT(open_event(&attr, 0x7fffffff, -1, -1, 0));
	TRY_AT(open_event(&attr, 0, -1, fd, 0));
	attr.size = 8;
	TRY_AT(open_event(&attr, 0, -1, -1, 0));
	say("size written back: %d\n", attr.size > 100);
	attr.size = 5000;
	TRY_AT(open_event(&attr, 0, -1, -1, 0));
	large.attr.size = sizeof(large);
	TRY_AT(open_event(&large.attr, 0, -1, -1, 0));
	large.tail[100] = 1;
	large.attr.size = sizeof(large);
	TRY_AT(open_event(&large.attr, 0, -1, -1, 0));
	attr.size = 0;
	TRY_AT(open_event(&attr, 0, -1, -1, 0));
	attr = faults();
	attr.config = 1000;
	TRY_AT(open_event(&attr, 0, -1, -1, 0));
	attr = faults();
	attr.type = 12345;
	TRY_AT(open_event(&attr, 0, -1, -1, 0));
	attr = faults();
	fd = open_event(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	flags = fcntl(fd, F_GETFD);
	say("closed on exec: %d\n", flags);
}

/* Numbers are given as for any other descriptor, and given again. */
static void case_numbers(void)
{
	int first = own_faults(), second = own_faults(), third;

	say("one behind the other: %d\n", second - first);
	close(first);
	third = own_faults();
	say("the same again: %d\n", third == first);
	for (int i = 0; i < 1000; i++)
		close(own_faults());
	close(second);
	say("and after many: %d\n", own_faults() == second);
	TRY(read(99, &first, sizeof(first)));
}

static void case_no_more_descriptors(void)
{
	struct perf_event_attr attr = faults();
	int fd = own_faults(), nr = 0, last = -1;

	while ((last = dup(fd)) >= 0)
		nr++;
	TRY_AT(open_event(&attr, 0, -1, -1, 0));
	say("they were many: %d\n", nr > 10);
	count_of(fd);
}

/* ---- where they go ---- */

static void case_dup(void)
{
	int fd = own_faults(), copy = dup(fd), other = open("/dev/null", O_RDONLY);
	char bytes[8];

	fault(10);
	say("counts: %d\n", count_of(copy) >= 10);
	close(fd);
	TRY(read(fd, bytes, 8));
	say("still counts: %d\n", count_of(copy) >= 10);
	need(dup2(copy, other) == other);
	close(copy);
	say("there, too: %d\n", count_of(other) >= 10);
	need(dup2(open("/dev/null", O_RDONLY), other) == other);
	TRY(read(other, bytes, 8));
}

/* The numbers are free for anything else then. */
static void case_close_range(void)
{
	int fd = own_faults(), kept = own_faults(), other;
	char bytes[8];

	need(!close_range((unsigned int)fd, (unsigned int)fd, CLOSE_RANGE_CLOEXEC));
	TRY(read(fd, bytes, sizeof(bytes)));
	need(!close_range((unsigned int)fd, (unsigned int)fd, 0));
	TRY(read(fd, bytes, sizeof(bytes)));
	other = open("/dev/null", O_RDONLY);
	say("the same number: %d\n", other == fd);
	TRY(read(other, bytes, sizeof(bytes)));
	TRY(ioctl(other, PERF_EVENT_IOC_RESET, 0));
	count_of(kept);
}

static void case_fork(void)
{
	int fd = own_faults(), status;
	pid_t child;

	fault(10);
	child = fork();
	if (!child) {
		say("the child reads: %d\n", count_of(fd) >= 10);
		TRY(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		_exit(0);
	}
	need(waitpid(child, &status, 0) == child);
	uint64_t before = count_of(fd);
	fault(10);
	say("disabled by the child: %d\n", count_of(fd) == before);
}

static void case_exec(void)
{
	char name[16];
	int fd = own_faults();

	fault(10);
	snprintf(name, sizeof(name), "%d", fd);
	execl("/proc/self/exe", case_argv[0], "_after_exec", name, NULL);
	need(!"exec");
}

static void case_after_exec(void)
{
	int fd = atoi(case_argv[2]);

	say("counts on: %d\n", count_of(fd) >= 10);
	TRY(ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	fault(10);
	say("and further: %d\n", count_of(fd) >= 10);
	close(fd);
	TRY(ioctl(fd, PERF_EVENT_IOC_RESET, 0));
}

static void send_fd(int socket, int fd)
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

static int receive_fd(int socket)
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

/* Of an event of the sender: it is the sender's that the receiver reads. */
static void case_pass(void)
{
	int ends[2], status;
	pid_t child;

	close(own_faults());
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	child = fork();
	if (!child) {
		int fd = own_faults();

		fault(10);
		send_fd(ends[1], fd);
		close(fd);
		pause();
	}
	int fd = receive_fd(ends[0]);
	say("counts of the sender: %d\n", count_of(fd) >= 10);
	TRY(ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	/* The sender may fault once more on its way to pause(2). */
	say("reset from here: %d\n", count_of(fd) < 10);
	kill(child, SIGKILL);
	need(waitpid(child, &status, 0) == child);
	say("and behind its end: %d\n", count_of(fd) < 10);
}

/* ---- whom they measure ---- */

static pid_t start_child(int *go, int nr_pages)
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

static void case_another_process(void)
{
	struct perf_event_attr attr = faults();
	int go, fd, status;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 20);
	fd = open_event(&attr, child, -1, -1, 0);
	need(fd >= 0);
	need(write(go, "x", 1) == 1);
	need(waitpid(child, &status, 0) == child);
	say("counts: %d\n", count_of(fd) >= 20);
	TRY_AT(open_event(&attr, child, -1, -1, 0));
}

static void case_inherit(void)
{
	struct perf_event_attr attr = faults();
	int status, fd;
	uint64_t before;

	attr.inherit = 1;
	fd = own_event(&attr);
	before = count_of(fd);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (!child) {
			if (i == 1 && !fork())
				fault(100);
			fault(100);
			while (wait(&status) > 0)
				;
			if (i == 2)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		need(waitpid(child, &status, 0) == child);
	}
	say("of four processes: %d\n", count_of(fd) - before >= 400);
	TRY_AT(mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

static void *fault_in_thread(void *nothing)
{
	fault(100);
	return nothing;
}

static void case_threads(void)
{
	struct perf_event_attr attr = faults();
	pthread_t threads[4];
	uint64_t before;
	int alone = own_faults(), fd;

	attr.inherit = 1;
	fd = own_event(&attr);
	before = count_of(alone);
	for (int i = 0; i < 4; i++)
		need(!pthread_create(&threads[i], NULL, fault_in_thread, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	say("of four threads: %d\n", count_of(fd) >= 400);
	say("of none: %d\n", count_of(alone) - before < 400);
}

/* As a profiler starts a command: it counts from its exec on, and ends with it. */
static void case_enable_on_exec(void)
{
	struct perf_event_attr attr = faults();
	int ends[2], status, fd;
	char byte;
	pid_t child;

	close(own_faults());
	need(!pipe(ends));
	child = fork();
	if (!child) {
		close(ends[1]);
		need(read(ends[0], &byte, 1) == 1);
		fault(50);
		execl("/proc/self/exe", case_argv[0], "_execed", NULL);
		_exit(1);
	}
	attr.disabled = attr.enable_on_exec = attr.inherit = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = open_event(&attr, child, -1, -1, PERF_FLAG_FD_CLOEXEC);
	need(fd >= 0);
	need(write(ends[1], "x", 1) == 1);
	need(waitpid(child, &status, 0) == child);
	say_status("the command", status);
	uint64_t counts[3];
	need(read(fd, counts, sizeof(counts)) == sizeof(counts));
	say("counts: %d, all the time: %d\n", counts[0] >= 100,
	    counts[1] && counts[1] == counts[2]);
}

static void case_execed(void)
{
	fault(100);
	_exit(3);
}

/* The same by vfork: the context goes to another memory. */
static void case_spawn(void)
{
	struct perf_event_attr attr = faults();
	uint64_t before;
	int status, fd;

	attr.inherit = 1;
	fd = own_event(&attr);
	before = count_of(fd);
	for (int i = 0; i < 3; i++) {
		pid_t child = vfork();

		if (!child) {
			execl(i == 1 ? "/nowhere" : "/proc/self/exe", case_argv[0], "_execed",
			      NULL);
			_exit(1);
		}
		need(waitpid(child, &status, 0) == child);
		say_status("child", status);
	}
	say("counts: %d\n", count_of(fd) - before >= 200);
}

static void case_groups(void)
{
	struct perf_event_attr attr = faults();
	uint64_t values[8] = {0};
	int leader, member;

	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	attr.disabled = 1;
	leader = own_event(&attr);
	attr.disabled = 0;
	attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	member = open_event(&attr, 0, -1, leader, 0);
	need(member >= 0);
	TRY_AT(open_event(&attr, 0, -1, member, 0));
	fault(10);
	TRY(read(leader, values, sizeof(values)));
	say("%d events, %d %d\n", (int)values[0], (int)values[1], (int)values[3]);
	need(!ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	fault(10);
	need(!ioctl(leader, PERF_EVENT_IOC_DISABLE, 0));
	TRY(read(leader, values, sizeof(values)));
	say("count: %d, the same: %d\n", values[1] >= 10, values[1] == values[3]);
	close(leader);
	TRY(read(member, values, sizeof(values)));
}

static void case_prctl(void)
{
	int fd = own_faults();
	uint64_t before;

	fault(10);
	TRY(prctl(PR_TASK_PERF_EVENTS_DISABLE));
	before = count_of(fd);
	fault(10);
	say("disabled: %d\n", count_of(fd) == before);
	TRY(prctl(PR_TASK_PERF_EVENTS_ENABLE));
	fault(10);
	say("enabled: %d\n", count_of(fd) > before);
}

/* ---- mappings ---- */

static void case_map(void)
{
	int fd = own_faults();
	char *ring;
	int status;

	TRY_AT(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
	TRY_AT(mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
	TRY_AT(mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, fd, 0));
	TRY_AT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE));
	ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(ring != MAP_FAILED);
	say("data at %d, %d bytes\n", (int)((struct perf_event_mmap_page *)ring)->data_offset,
	    (int)((struct perf_event_mmap_page *)ring)->data_size);
	TRY_AT(mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	TRY_AT(mremap(ring, RING, 2 * RING, MREMAP_MAYMOVE));
	char *again = mmap(NULL, RING, PROT_READ, MAP_SHARED, fd, 0);
	need(again != MAP_FAILED);
	say("the same: %d\n",
	    !memcmp(ring + offsetof(struct perf_event_mmap_page, data_head),
		    again + offsetof(struct perf_event_mmap_page, data_head), 64));
	pid_t child = fork();
	if (!child) {
		/* A child does not have them. */
		unsigned char there;

		report("mincore", mincore(ring, PAGE, &there));
		_exit(0);
	}
	need(waitpid(child, &status, 0) == child);
	TRY(munmap(again, RING));
	close(fd);
	say("and without the descriptor: %d\n",
	    (int)((struct perf_event_mmap_page *)ring)->data_size);
	TRY(munmap(ring, RING));
}

/* Whatever is said of a ring's memory, it stays, and leads nowhere else. */
static void case_map_advised(void)
{
	int fd = own_faults();
	struct perf_event_mmap_page *ring =
		mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	need(ring != MAP_FAILED);
	for (int advice = 0; advice < 25; advice++) {
		madvise(ring, RING, advice);
		madvise(ring, PAGE, advice);
	}
	say("another place: %s\n", result_name(remap_file_pages(ring, PAGE, 0, 1, 0)));
	say("its page is %s\n", ring->data_offset == PAGE ? "there" : "gone");
}

static void case_map_replaced(void)
{
	int fd = own_faults();
	char *ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	need(ring != MAP_FAILED);
	need(mmap(ring, RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		  0) == ring);
	say("replaced: %d\n", *ring);
	/* The ring has gone: another size can be had. */
	TRY_AT(mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

static void map_ring(int fd)
{
	need(mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
}

/* Its mappings are gone when it is: then another size can be had. */
static void case_map_of_the_dead(void)
{
	int fd = own_faults(), status;

	for (int killed = 0; killed < 2; killed++) {
		pid_t child = fork();

		if (!child) {
			map_ring(fd);
			if (killed)
				raise(SIGKILL);
			_exit(0);
		}
		need(waitpid(child, &status, 0) == child);
		char *other = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		report("after a child", other == MAP_FAILED ? -1 : 0);
		munmap(other, 3 * PAGE);
	}
}

/* There is not so much for one process to lock that rings could be left behind. */
static void case_map_again_and_again(void)
{
	int status, left = 0;

	for (int i = 0; i < 300; i++) {
		pid_t child = fork();

		if (!child) {
			map_ring(own_faults());
			if (i % 2)
				raise(SIGKILL);
			_exit(0);
		}
		need(waitpid(child, &status, 0) == child);
		left += status && !WIFSIGNALED(status);
	}
	say("without: %d\n", left);
}

static void case_map_until_exec(void)
{
	char name[16];
	int fd = own_faults();

	map_ring(fd);
	snprintf(name, sizeof(name), "%d", fd);
	execl("/proc/self/exe", case_argv[0], "_unmapped", name, NULL);
	need(!"exec");
}

static void case_unmapped(void)
{
	TRY_AT(mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(case_argv[2]), 0));
}

/* ---- waiting ---- */

static int poll_of(int fd, int timeout)
{
	struct pollfd item = {fd, POLLIN, 0};
	int result = poll(&item, 1, timeout);

	return result < 0 ? result : item.revents;
}

/* An event of @pid whose overflows wake: each page fault. */
static int sampled(pid_t pid, char **ring)
{
	struct perf_event_attr attr = faults();
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	attr.wakeup_events = 1;
	fd = pid ? open_event(&attr, pid, -1, -1, 0) : own_event(&attr);
	need(fd >= 0);
	*ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(*ring != MAP_FAILED);
	return fd;
}

static void case_poll_without_ring(void)
{
	int fd = own_faults(), pipes[2];
	struct pollfd two[2];
	fd_set in;
	struct timeval now = {0, 0};

	say("poll %d\n", poll_of(fd, 1000));
	need(!pipe(pipes));
	two[0] = (struct pollfd){pipes[0], POLLIN, 0};
	two[1] = (struct pollfd){fd, 0, 0};
	TRY(poll(two, 2, 1000));
	say("%d %d\n", two[0].revents, two[1].revents);
	need(write(pipes[1], "x", 1) == 1);
	TRY(poll(two, 2, 1000));
	say("%d %d\n", two[0].revents, two[1].revents);
	FD_ZERO(&in);
	FD_SET(fd, &in);
	TRY(select(fd + 1, &in, NULL, NULL, &now));
	say("readable %d\n", FD_ISSET(fd, &in) != 0);
}

static void case_poll_for_end(void)
{
	char *ring;
	int go, fd, status;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 0);
	fd = sampled(child, &ring);
	say("has not ended: %d\n", !(poll_of(fd, 10) & POLLHUP));
	need(write(go, "x", 1) == 1);
	while (!(poll_of(fd, 10000) & POLLHUP))
		;
	say("ended\n");
	say("for good: %d\n", (poll_of(fd, 1000) & POLLHUP) != 0);
	need(waitpid(child, &status, 0) == child);
}

static void case_poll_for_a_violent_end(void)
{
	char *ring;
	int go, fd, status;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 0);
	fd = sampled(child, &ring);
	need(!kill(child, SIGKILL));
	while (!(poll_of(fd, 10000) & POLLHUP))
		;
	say("ended\n");
	need(waitpid(child, &status, 0) == child);
	say_status("child", status);
}

static void case_poll_is_taken(void)
{
	char *ring;
	int go, fd, status;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 3);
	fd = sampled(child, &ring);
	need(write(go, "x", 1) == 1);
	need(waitpid(child, &status, 0) == child);
	say("samples: %d\n", ((struct perf_event_mmap_page *)ring)->data_head > 0);
	say("readable or ended: %d\n", (poll_of(fd, 1000) & (POLLIN | POLLHUP)) != 0);
}

/* Before it has executed anything. */
static pid_t stopped_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	need(!ptrace(PTRACE_ATTACH, pid, NULL, NULL));
	need(waitpid(pid, NULL, 0) == pid);
	return pid;
}

/* Nothing of a child that has been stopped may go to the next one. */
static void case_children_that_are_stopped(void)
{
	struct perf_event_attr attr = faults();
	int refused = 0;

	close(own_faults());
	attr.sample_period = 1;
	for (int i = 0; i < 100; i++) {
		pid_t first = stopped_child(), second = stopped_child();
		int fd = open_event(&attr, first, -1, -1, 0);

		refused += fd < 0;
		close(fd);
		kill(first, SIGKILL);
		kill(second, SIGKILL);
		need(waitpid(first, NULL, 0) == first && waitpid(second, NULL, 0) == second);
	}
	say("refused: %d\n", refused);
}

/* What the events of a traced task are told of its exec is there when its tracer is. */
static void case_exec_of_a_traced_child(void)
{
	struct perf_event_attr attr = faults();
	const struct perf_event_mmap_page *page;
	const char *data;
	pid_t child;
	int fd, status;

	close(own_faults());
	child = fork();
	if (!child) {
		need(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
		raise(SIGSTOP);
		execl("/nonexistent", "nonexistent", NULL);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	need(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.comm = attr.comm_exec = 1;
	fd = open_event(&attr, child, -1, -1, 0);
	need(fd >= 0);
	page = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(page != MAP_FAILED);
	data = (const char *)page + PAGE;
	need(!ptrace(PTRACE_CONT, child, NULL, NULL));
	need(waitpid(child, &status, 0) == child);
	say("stopped: %d\n", WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	for (uint64_t at = 0; at < page->data_head;) {
		const struct perf_event_header *header = (const void *)(data + at);

		say("record %u, exec %d: %s\n", header->type,
		    (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0,
		    (const char *)(header + 1) + 8);
		at += header->size;
	}
	need(!ptrace(PTRACE_CONT, child, NULL, NULL));
	need(waitpid(child, &status, 0) == child);
	say_status("then", status);
	say("%d bytes in all\n", (int)page->data_head);
}

static void case_epoll(void)
{
	struct epoll_event item = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef}, seen;
	int go, fd, status, epoll = epoll_create1(0);
	bool hung_up = false;
	char *ring;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 0);
	fd = sampled(child, &ring);
	TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &item));
	TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &item));
	need(epoll_wait(epoll, &seen, 1, 10) >= 0); /* what it faulted on its way here */
	need(write(go, "x", 1) == 1);
	for (int i = 0; i < 1000 && !hung_up; i++) {
		if (epoll_wait(epoll, &seen, 1, 10000) != 1)
			break;
		hung_up = seen.events & EPOLLHUP;
	}
	say("ended: %d, ours: %d\n", hung_up, seen.data.u64 == item.data.u64);
	need(waitpid(child, &status, 0) == child);
	TRY(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &item));
	TRY(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL));
	TRY(epoll_wait(epoll, &seen, 1, 10));
}

static volatile sig_atomic_t signals, code, descriptor, band;

static void on_overflow(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	signals++;
	code = info->si_code;
	descriptor = info->si_fd;
	band = (int)info->si_band;
}

static void case_signal(void)
{
	char *ring;
	int fd = sampled(0, &ring);

	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	handle(SIGRTMIN + 3, on_overflow, 0);
	need(!fcntl(fd, F_SETOWN, getpid()));
	need(!fcntl(fd, F_SETSIG, SIGRTMIN + 3));
	need(!fcntl(fd, F_SETFL, O_ASYNC));
	need(!ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	fault(10);
	getpid();
	say("signals: %d, POLL_HUP: %d, descriptor: %d, band: %x\n", (int)signals, code == POLL_HUP,
	    descriptor == fd, (unsigned int)band);
}

static volatile sig_atomic_t faulted, refused;
static sigjmp_buf behind;

static void on_fault(int number)
{
	(void)number;
	faulted++;
	siglongjmp(behind, 1);
}

/* SIGTRAP that is blocked waits, whatever else the program and who reads for it run into. */
static void case_blocked_sigtrap(void)
{
	struct perf_event_attr attr = faults();
	sigset_t set;
	siginfo_t info;
	int fd;

	attr.sample_period = 1;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	handle(SIGTRAP, on_overflow, 0);
	handle(SIGUSR1, on_overflow, 0);
	signal(SIGSEGV, on_fault);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	need(!sigprocmask(SIG_BLOCK, &set, NULL));
	fd = own_event(&attr);
	fault(1);
	for (int i = 0; i < 10; i++) {
		refused += raw(SYS_rt_sigaction, SIGUSR1, nowhere, NULL, 8) == -EFAULT;
		if (!sigsetjmp(behind, 1))
			*(volatile char *)nowhere = 1;
	}
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("signals: %d, bad addresses: %d, faults: %d\n", (int)signals, (int)refused,
	    (int)faulted);
	fd = own_event(&attr);
	fault(1);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("taken: %d, ", sigtimedwait(&set, &info, &(struct timespec){10, 0}) == SIGTRAP);
	say("TRAP_PERF: %d\n", info.si_code == 6);
	fd = own_event(&attr);
	fault(1);
	need(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("signals: %d, TRAP_PERF: %d\n", signals > 0, code == 6);
}

const struct test_case cases[] = {
	{"read", case_read},
	{"what_cannot_be_done", case_what_cannot_be_done},
	{"ioctl", case_ioctl},
	{"fcntl", case_fcntl},
	{"open", case_open},
	{"numbers", case_numbers},
	{"no_more_descriptors", case_no_more_descriptors},
	{"dup", case_dup},
	{"close_range", case_close_range},
	{"fork", case_fork},
	{"exec", case_exec},
	{"_after_exec", case_after_exec},
	{"pass", case_pass},
	{"another_process", case_another_process},
	{"inherit", case_inherit},
	{"threads", case_threads},
	{"enable_on_exec", case_enable_on_exec},
	{"_execed", case_execed},
	{"spawn", case_spawn},
	{"groups", case_groups},
	{"prctl", case_prctl},
	{"map", case_map},
	{"map_advised", case_map_advised},
	{"map_replaced", case_map_replaced},
	{"map_of_the_dead", case_map_of_the_dead},
	{"map_again_and_again", case_map_again_and_again},
	{"map_until_exec", case_map_until_exec},
	{"_unmapped", case_unmapped},
	{"poll_without_ring", case_poll_without_ring},
	{"poll_for_end", case_poll_for_end},
	{"poll_for_a_violent_end", case_poll_for_a_violent_end},
	{"poll_is_taken", case_poll_is_taken},
	{"children_that_are_stopped", case_children_that_are_stopped},
	{"exec_of_a_traced_child", case_exec_of_a_traced_child},
	{"epoll", case_epoll},
	{"signal", case_signal},
	{"blocked_sigtrap", case_blocked_sigtrap},
	{NULL, NULL},
};
