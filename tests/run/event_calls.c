// SPDX-License-Identifier: MIT
/* What each call on an event answers. */
#include "event_case.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The compiler is not to see through it. */
static volatile int too_many = 2000;

static void case_read(void)
{
	struct perf_event_attr attr = faults();
	char bytes[64];
	const struct iovec good[] = {{bytes, 16}, {bytes + 16, 16}};
	const struct iovec small[] = {{bytes, 8}, {bytes + 16, 16}};
	const struct iovec second_outside[] = {{bytes, 16}, {(void *)-4096L, 16}};
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
	TRY(syscall(SYS_read, fd, bytes, SIZE_MAX));
	TRY(syscall(SYS_read, fd, bytes, SIZE_MAX / 2));
	TRY(readv(fd, good, 2));
	TRY(readv(fd, small, 2));
	TRY(readv(fd, second_small, 2));
	TRY(readv(fd, good, 0));
	TRY(readv(fd, second_outside, 2));
	TRY(readv(fd, good, too_many));
	TRY(preadv2(fd, good, 1, -1, 0));
	TRY(preadv2(fd, good, 1, 0, 0));
	TRY(pread(fd, bytes, 64, 0));
	TRY(pread(fd, bytes, 64, -1));
}

static void case_what_cannot_be_done(void)
{
	struct statx extended;
	char *volatile no_path = NULL;
	struct stat file;
	int fd = own_faults(), number;

	TRY(write(fd, "x", 1));
	TRY(pwrite(fd, "x", 1, 0));
	TRY(pwrite(fd, "x", 1, -1));
	TRY(lseek(fd, 0, SEEK_SET));
	TRY(lseek(fd, 0, 77));
	TRY(ftruncate(fd, 0));
	TRY(fsync(fd));
	TRY(fdatasync(fd));
	TRY(fallocate(fd, 0, 0, 1));
	TRY(fcntl(fd, F_GETPIPE_SZ));
	TRY(ioctl(fd, FIONREAD, &number));
	TRY(ioctl(fd, 0x1234, 0));
	need(!fstat(fd, &file));
	say("mode %o, size %d\n", (unsigned int)file.st_mode, (int)file.st_size);
	need(!statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended));
	say("mode %o, size %d\n", extended.stx_mode, (int)extended.stx_size);
	TRY(statx(fd, "", 0, STATX_BASIC_STATS, &extended));
	TRY(statx(fd, "x", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended));
	TRY(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, nowhere));
	/* From Linux 6.11 on. */
	if (!syscall(SYS_newfstatat, fd, no_path, &file, AT_EMPTY_PATH))
		say("mode %o\n", (unsigned int)file.st_mode);
}

/* An event is no pipe, whatever it is made of. */
static void case_splice(void)
{
	char bytes[8];
	const struct iovec some = {bytes, 8}, none = {bytes, 0};
	const int fd = own_faults(), file = open("/proc/self/exe", O_RDONLY);
	const int null = open("/dev/null", O_WRONLY);
	int pipes[2];

	need(!pipe(pipes) && write(pipes[1], "some", 4) == 4 && file >= 0 && null >= 0);
	TRY(splice(fd, NULL, pipes[1], NULL, 8, 0));
	TRY(splice(pipes[0], NULL, fd, NULL, 8, 0));
	TRY(splice(file, NULL, fd, NULL, 8, 0));
	TRY(splice(fd, NULL, null, NULL, 8, 0));
	TRY(splice(fd, NULL, pipes[1], NULL, 0, 0));
	TRY(splice(fd, NULL, pipes[1], NULL, 8, 0x100));
	TRY(tee(fd, pipes[1], 8, 0));
	TRY(tee(pipes[0], fd, 8, 0));
	TRY(tee(fd, pipes[1], 0, 0));
	TRY(tee(fd, pipes[1], 0, 0x100));
	TRY(vmsplice(fd, &some, 1, 0));
	TRY(vmsplice(fd, &none, 1, 0));
	TRY(vmsplice(fd, &some, 0, 0));
	TRY(vmsplice(fd, &some, (size_t)too_many, 0));
	TRY(vmsplice(fd, nowhere, 1, 0));
	TRY(vmsplice(fd, &some, 1, 0x100));
	TRY(sendfile(fd, file, NULL, 8));
	TRY(sendfile(null, fd, NULL, 8));
	TRY(read(pipes[0], bytes, 8));
}

static void case_open_by_its_path(void)
{
	char path[32];
	int fd = own_faults(), named;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	TRY(open(path, O_RDONLY));
	TRY(open(path, O_RDWR | O_CLOEXEC));
	TRY(open(path, O_WRONLY));
	named = open(path, O_PATH);
	say("named: %d\n", named >= 0);
	TRY(read(named, path, 8));
	fault(10);
	say("counts: %d\n", count_of(fd) >= 10);
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

static sigjmp_buf back;

static void on_segv(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void case_faults_that_end_in_a_signal(void)
{
	const struct sigaction action = {.sa_handler = on_segv};
	int fd = own_faults();
	uint64_t before;

	need(!sigaction(SIGSEGV, &action, NULL));
	if (!sigsetjmp(back, 1))
		*(volatile char *)nowhere = 1;
	before = count_of(fd);
	for (volatile int i = 0; i < 50; i++)
		if (!sigsetjmp(back, 1))
			*(volatile char *)nowhere = 1;
	say("counted: %d\n", count_of(fd) - before >= 50);
	before = count_of(fd);
	for (volatile int i = 0; i < 50; i++)
		if (!sigsetjmp(back, 1))
			((void (*)(void))nowhere)();
	say("where nothing can be executed: %d\n", count_of(fd) - before >= 50);
}

const struct test_case cases[] = {
	{"read", case_read},
	{"what_cannot_be_done", case_what_cannot_be_done},
	{"splice", case_splice},
	{"open_by_its_path", case_open_by_its_path},
	{"ioctl", case_ioctl},
	{"fcntl", case_fcntl},
	{"open", case_open},
	{"groups", case_groups},
	{"prctl", case_prctl},
	{"faults_that_end_in_a_signal", case_faults_that_end_in_a_signal},
	{NULL, NULL},
};
