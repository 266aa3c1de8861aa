// SPDX-License-Identifier: MIT
/* Where descriptors of events go: numbers, dup, close, fork, exec, messages. */
#include "event_case.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

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

static bool enough;

static void *open_and_close(void *failed)
{
	struct perf_event_attr attr = faults();

	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		const int fd = open_event(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0)
			++*(int *)failed;
		close(fd);
	}
	return NULL;
}

/* To open one takes a number, and no other one at any time: that is the other thread's. */
static void case_number_beside(void)
{
	enum { ROUNDS = 1000 };
	const int fd = fcntl(own_faults(), F_DUPFD, 100), next = dup(fd), beside = next + 1;
	unsigned int state = 1;
	int failed = 0, lost = 0;
	pthread_t thread;

	close(next);
	need(!pthread_create(&thread, NULL, open_and_close, &failed));
	for (int i = 0; i < ROUNDS; i++) {
		const struct timespec moment = {.tv_nsec = rand_r(&state) % 60000};

		need(dup2(fd, beside) == beside);
		nanosleep(&moment, NULL);
		lost += fcntl(beside, F_GETFD) < 0;
		close(beside);
		nanosleep(&moment, NULL);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	need(!pthread_join(thread, NULL));
	say("not opened: %d, lost: %d\n", failed, lost);
}

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

/* An event that was only counted gets a ring: in user mode it becomes another one, which nobody
 * is to see. */
static void case_a_ring_for_what_was_counted(void)
{
	const int fd = own_faults(), copy = fcntl(fd, F_DUPFD, 50);
	uint64_t before;

	fault(100);
	TRY(fcntl(fd, F_SETFD, FD_CLOEXEC));
	TRY(fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC));
	TRY(fcntl(fd, F_SETSIG, SIGUSR2));
	TRY(fcntl(fd, F_SETOWN, getpid()));
	map_ring(fd);
	say("%d %x", fcntl(fd, F_GETFD), (unsigned int)fcntl(fd, F_GETFL));
	say(" %d %d", fcntl(fd, F_GETSIG) == SIGUSR2, fcntl(fd, F_GETOWN) == getpid());
	say(" %d\n", fcntl(copy, F_GETFD));
	say("counts: %d %d\n", count_of(fd) >= 100, count_of(copy) >= 100);
	TRY(ioctl(copy, PERF_EVENT_IOC_DISABLE, 0));
	before = count_of(fd);
	fault(100);
	say("stands: %d\n", count_of(fd) == before);
	close(fd);
	say("still there: %d\n", count_of(copy) == before);
}

/* Members that are on wait for their leader, also while the group gets a ring. */
static void case_a_ring_for_a_member(void)
{
	const uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.read_format = times,
		.disabled = 1,
	};
	const int leader = own_event(&attr);
	uint64_t before[3], after[3];
	int member;

	attr.disabled = 0;
	member = open_event(&attr, 0, -1, leader, 0);
	need(member >= 0);
	TRY(ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	fault(10);
	TRY(ioctl(leader, PERF_EVENT_IOC_DISABLE, 0));
	need(read(member, before, sizeof(before)) == sizeof(before));
	map_ring(member);
	need(read(member, after, sizeof(after)) == sizeof(after));
	say("as it was: %d\n", !memcmp(before, after, sizeof(before)));
	TRY(ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	fault(10);
	need(read(member, after, sizeof(after)) == sizeof(after));
	say("goes on: %d\n", after[0] > before[0] && after[1] > before[1]);
}

static void *switch_mine(void *on)
{
	need(!prctl(on ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE));
	return NULL;
}

static void switch_by(bool this_thread, bool on)
{
	pthread_t thread;

	if (this_thread) {
		switch_mine(on ? &thread : NULL);
		return;
	}
	need(!pthread_create(&thread, NULL, switch_mine, on ? &thread : NULL));
	need(!pthread_join(thread, NULL));
}

static void *map_there(void *fd)
{
	map_ring(*(int *)fd);
	return NULL;
}

/* prctl(2) is for what the calling thread has opened, whoever gives it a ring. */
static void case_a_ring_for_whose_event(void)
{
	pthread_t thread;

	for (int i = 0; i < 8; i++) {
		struct perf_event_attr attr = faults();
		const bool on = i & 1, mine = i & 2;
		uint64_t before;
		int fd;

		attr.disabled = i & 4 ? 1 : 0;
		fd = own_event(&attr);
		switch_by(mine, on);
		need(!pthread_create(&thread, NULL, map_there, &fd));
		need(!pthread_join(thread, NULL));
		before = count_of(fd);
		fault(100);
		say("on at first %d, switched %d, by this thread %d:", !attr.disabled, on, mine);
		say(" counts %d", count_of(fd) - before >= 100);
		switch_by(true, !on);
		before = count_of(fd);
		fault(100);
		say(", switched %d: counts %d\n", !on, count_of(fd) - before >= 100);
		close(fd);
	}
}

/* Of calls that name two descriptors it is the other one that is wrong first. */
static void case_other_descriptors(void)
{
	const int event = own_faults(), reads = open("/dev/null", O_RDONLY);
	const int writes = open("/dev/null", O_WRONLY), named = open("/dev/null", O_PATH);
	const int other = own_faults();
	loff_t at = 0;
	int ends[2];

	need(reads >= 0 && writes >= 0 && named >= 0 && !pipe(ends));
	need(write(ends[1], "x", 1) == 1);
	TRY(splice(event, NULL, 99, NULL, 1, 0));
	TRY(splice(99, NULL, event, NULL, 1, 0));
	TRY(splice(99, NULL, event, NULL, 0, 0));
	TRY(splice(99, NULL, event, NULL, 1, 64));
	TRY(splice(event, NULL, 99, NULL, 1, 64));
	TRY(splice(event, NULL, ends[1], NULL, 1, 0));
	TRY(splice(event, NULL, ends[0], NULL, 1, 0));
	TRY(splice(event, NULL, ends[1], &at, 1, 0));
	TRY(splice(event, &at, ends[1], NULL, 1, 0));
	TRY(splice(event, nowhere, ends[1], NULL, 1, 0));
	TRY(splice(event, nowhere, ends[1], &at, 1, 0));
	TRY(splice(event, NULL, event, NULL, 1, 0));
	TRY(splice(event, NULL, other, NULL, 1, 0));
	TRY(splice(event, &at, other, &at, 1, 0));
	TRY(splice(ends[0], NULL, event, NULL, 1, 0));
	TRY(splice(ends[1], NULL, event, NULL, 1, 0));
	TRY(splice(ends[0], &at, event, NULL, 1, 0));
	TRY(splice(ends[0], NULL, event, &at, 1, 0));
	TRY(splice(ends[0], NULL, event, nowhere, 1, 0));
	TRY(splice(reads, NULL, event, NULL, 1, 0));
	TRY(splice(writes, NULL, event, NULL, 1, 0));
	TRY(splice(event, NULL, reads, NULL, 1, 0));
	TRY(splice(event, NULL, writes, NULL, 1, 0));
	TRY(splice(event, NULL, named, NULL, 1, 0));
	TRY(tee(event, 99, 1, 0));
	TRY(tee(99, event, 1, 0));
	TRY(tee(99, event, 0, 0));
	TRY(tee(99, event, 0, 64));
	TRY(tee(ends[0], event, 1, 0));
	TRY(tee(ends[1], event, 1, 0));
	TRY(tee(event, ends[0], 1, 0));
	TRY(tee(event, ends[1], 1, 0));
	TRY(tee(event, other, 1, 0));
	TRY(sendfile(event, 99, NULL, 1));
	TRY(sendfile(99, event, NULL, 1));
	TRY(sendfile(99, event, &at, 1));
	TRY(sendfile(event, event, NULL, 1));
	TRY(sendfile(event, reads, NULL, 1));
	TRY(sendfile(event, writes, NULL, 1));
	TRY(sendfile(reads, event, NULL, 1));
	TRY(sendfile(writes, event, NULL, 1));
	TRY(sendfile(writes, event, NULL, 0));
	TRY(sendfile(event, 99, nowhere, 1));
	TRY(sendfile(99, event, nowhere, 1));
}

/* That nothing can be written there, or read, is found when there is something to be. */
static void case_send(void)
{
	const int event = own_faults();
	char path[] = "/tmp/event-XXXXXX";
	const int file = mkstemp(path), folder = open("/tmp", O_RDONLY);
	off_t first = 0, end = 5, before = -1;
	int pipes[2], sockets[2];

	need(file >= 0 && !unlink(path) && write(file, "hello", 5) == 5 && !pipe(pipes));
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	TRY(sendfile(event, file, NULL, 0));
	TRY(sendfile(event, file, NULL, 5));
	TRY(sendfile(event, file, &first, 5));
	TRY(sendfile(event, file, &first, 0));
	TRY(sendfile(event, file, &end, 5));
	TRY(sendfile(event, file, &before, 0));
	TRY(sendfile(event, folder, NULL, 0));
	TRY(sendfile(event, folder, NULL, 1));
	TRY(sendfile(event, pipes[0], NULL, 0));
	TRY(sendfile(event, sockets[0], NULL, 0));
	TRY(sendfile(event, event, NULL, 0));
	TRY(sendfile(pipes[1], event, NULL, 0));
	TRY(sendfile(pipes[1], event, NULL, 1));
	TRY(sendfile(sockets[0], event, NULL, 0));
	TRY(sendfile(file, event, NULL, 0));
	say("the file stands at %d\n", (int)lseek(file, 0, SEEK_CUR));
}

/* What is wrong with a call is found in the order of the kernel. */
static void case_like_a_file(void)
{
	const int fd = own_faults();
	struct iovec vector = {&(char[8]){0}, 8};
	int size = 0;

	TRY(fallocate(fd, 0, 0, 0));
	TRY(fallocate(fd, 0, 0, 1));
	TRY(fallocate(fd, 0, -1, 1));
	TRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 1));
	TRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1));
	TRY(pwritev2(fd, &vector, 1, -1, 0));
	TRY(pwritev2(fd, &vector, 1, 0, 0));
	TRY(pwritev2(fd, &vector, 1, -2, 0));
	TRY(pwritev(fd, &vector, 1, -1));
	TRY(preadv2(fd, &vector, 1, -2, 0));
	TRY(preadv(fd, &vector, 1, -1));
	TRY(fchownat(fd, "", 0, 0, AT_EMPTY_PATH));
	TRY(fchownat(fd, "", -1, -1, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
	TRY(fchownat(fd, "", 0, 0, AT_EMPTY_PATH | 1));
	TRY(fchownat(fd, "", 0, 0, 0));
	TRY(fchownat(fd, "a", 0, 0, AT_EMPTY_PATH));
	TRY(ioctl(fd, FIGETBSZ, &size));
	say("blocks of %d\n", size);
	TRY(ioctl(fd, FICLONE, fd));
	TRY(ioctl(fd, FICLONE, own_faults()));
}

/* It has no file system, and no times. */
static void case_of_no_file_system(void)
{
	const int fd = own_faults();
	const struct timespec times[2] = {{1, 0}, {2, 0}}, wrong[2] = {{1, -1}, {2, 0}};
	const struct timespec neither[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
	char path[] = "/tmp/event-XXXXXX";
	struct statfs of = {0};

	TRY(fstatfs(fd, &of));
	say("type %lx, names of %ld\n", (unsigned long)of.f_type, of.f_namelen);
	TRY(fstatfs(fd, nowhere));
	TRY(futimens(fd, NULL));
	TRY(futimens(fd, times));
	TRY(futimens(fd, wrong));
	TRY(syscall(SYS_utimensat, fd, NULL, nowhere, 0));
	TRY(syscall(SYS_utimensat, fd, NULL, NULL, AT_EMPTY_PATH));
	TRY(syscall(SYS_utimensat, fd, "", NULL, 0));
	TRY(syscall(SYS_utimensat, fd, "", NULL, AT_EMPTY_PATH));
	TRY(syscall(SYS_utimensat, fd, "a", NULL, 0));
	TRY(syscall(SYS_futimesat, fd, NULL, NULL));
	TRY(syscall(SYS_futimesat, fd, "a", NULL));
	TRY(futimens(fd, neither));
	/* Another file's, although the path is asked for from there. */
	TRY(syscall(SYS_utimensat, fd, "/proc/self/none", times, 0));
	need(close(mkstemp(path)) == 0);
	TRY(syscall(SYS_utimensat, fd, path, times, 0));
	need(!unlink(path));
	TRY(syncfs(fd));
	TRY(fchdir(fd));
	TRY(flock(fd, LOCK_SH));
	TRY(readahead(fd, 0, 1));
	TRY(sync_file_range(fd, 0, 1, 0));
	TRY(fgetxattr(fd, "user.a", NULL, 0));
	TRY(fsetxattr(fd, "user.a", "", 0, 0));
	TRY(flistxattr(fd, NULL, 0));
	TRY(fremovexattr(fd, "user.a"));
	TRY(copy_file_range(fd, NULL, fd, NULL, 1, 0));
}

static void lock_by(int fd, const char *what, int command, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};

	report(what, fcntl(fd, command, &lock));
	say("type %d\n", lock.l_type);
}

static void case_locked(void)
{
	const int fd = own_faults();

	lock_by(fd, "read", F_SETLK, F_RDLCK);
	lock_by(fd, "write", F_SETLK, F_WRLCK);
	lock_by(fd, "write and wait", F_SETLKW, F_WRLCK);
	lock_by(fd, "who has it", F_GETLK, F_WRLCK);
	lock_by(fd, "unlock", F_SETLK, F_UNLCK);
	lock_by(fd, "wrong", F_SETLK, 77);
	TRY(fcntl(fd, F_SETLK, nowhere));
	TRY(fcntl(fd, F_SETLEASE, F_WRLCK));
	TRY(fcntl(fd, F_SETLEASE, F_RDLCK));
	TRY(fcntl(fd, F_GETLEASE));
	TRY(fcntl(fd, F_NOTIFY, DN_MODIFY));
}

/* What the group is does not matter before it is known what the event is. */
static void case_of_no_type(void)
{
	struct perf_event_attr attr = faults();
	const int leader = own_faults();

	attr.type = 12345;
	TRY(open_event(&attr, 0, -1, -1, 0));
	TRY(open_event(&attr, 0, -1, leader, 0));
	TRY(open_event(&attr, 0, -1, 99, 0));
	TRY(open_event(&attr, 0, 0, leader, 0));
	attr.type = 12345678;
	TRY(open_event(&attr, 0, -1, leader, PERF_FLAG_FD_OUTPUT));
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = 999;
	TRY(open_event(&attr, 0, -1, leader, 0));
	attr.config = ~0ul;
	TRY(open_event(&attr, 0, -1, leader, 0));
}

const struct test_case cases[] = {
	{"other_descriptors", case_other_descriptors},
	{"send", case_send},
	{"like_a_file", case_like_a_file},
	{"of_no_file_system", case_of_no_file_system},
	{"locked", case_locked},
	{"of_no_type", case_of_no_type},
	{"a_ring_for_what_was_counted", case_a_ring_for_what_was_counted},
	{"a_ring_for_a_member", case_a_ring_for_a_member},
	{"a_ring_for_whose_event", case_a_ring_for_whose_event},
	{"numbers", case_numbers},
	{"no_more_descriptors", case_no_more_descriptors},
	{"number_beside", case_number_beside},
	{"dup", case_dup},
	{"close_range", case_close_range},
	{"fork", case_fork},
	{"exec", case_exec},
	{"_after_exec", case_after_exec},
	{"pass", case_pass},
	{NULL, NULL},
};
