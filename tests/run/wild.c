// SPDX-License-Identifier: MIT
/*
 * Bad addresses where the runtime has memory of its own: whatever is mapped that a program like
 * this one, static and not position-independent, does not have. Natively that is nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "tests/run/kernels_maps.h"

enum { PAGE = 4096, FOREIGN = 64, PLACES = 4 };

extern const char __executable_start[];

struct mapping {
	uint64_t start, end;
};

static struct mapping foreign[FOREIGN];
static unsigned int nr_foreign;

static char maps[1 << 16];

static bool is_ours(uint64_t at)
{
	const uint64_t start = (uint64_t)__executable_start;

	return at >= start && at < (uint64_t)sbrk(0);
}

static void find_foreign(void)
{
	need(read_kernels_maps(maps, sizeof(maps)));
	for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n")) {
		struct mapping mapping;

		if (sscanf(line, "%lx-%lx", &mapping.start, &mapping.end) != 2 ||
		    strchr(line, '[') || is_ours(mapping.start) || nr_foreign == FOREIGN)
			continue;
		foreign[nr_foreign++] = mapping;
	}
}

/* Makes a call with each of the addresses at its argument @arg, and says how often it did not fail
 * with EFAULT. */
static void try(const char *name, unsigned int arg, long number, const uint64_t *usual)
{
	unsigned int others = 0;

	for (unsigned int i = 0; i < nr_foreign; i++) {
		const uint64_t start = foreign[i].start, end = foreign[i].end;
		const uint64_t places[PLACES] = {start, start + PAGE / 2, (start + end) / 2,
						 end - 8};

		for (unsigned int at = 0; at < PLACES; at++) {
			uint64_t args[6];

			memcpy(args, usual, sizeof(args));
			args[arg] = places[at];
			others += raw(number, args[0], args[1], args[2], args[3], args[4],
				      args[5]) != -EFAULT;
		}
	}
	say("%s, argument %u: %u\n", name, arg, others);
}

#define TRY(number, arg, ...) try(#number, arg, number, (const uint64_t[6]){__VA_ARGS__})

static void case_kernel_writes(void)
{
	const uint64_t file = (uint64_t)open("/proc/self/exe", O_RDONLY);
	int ends[2];
	struct pollfd one = {.fd = -1};

	need((int)file >= 0 && chdir("/") == 0 && pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
	find_foreign();
	TRY(SYS_read, 1, file, 0, 8);
	TRY(SYS_read, 1, file, 0, PAGE);
	TRY(SYS_pread64, 1, file, 0, 8, 0);
	TRY(SYS_getrandom, 0, 0, 8, 0);
	TRY(SYS_clock_gettime, 1, CLOCK_MONOTONIC);
	TRY(SYS_gettimeofday, 0, 0);
	TRY(SYS_fstat, 1, file);
	TRY(SYS_stat, 1, (uint64_t) "/");
	TRY(SYS_getcwd, 0, 0, 8);
	TRY(SYS_readlink, 1, (uint64_t) "/proc/self/exe", 0, 8);
	TRY(SYS_pipe2, 0, 0, 0);
	TRY(SYS_rt_sigprocmask, 2, SIG_BLOCK, 0, 0, 8);
	TRY(SYS_rt_sigaction, 2, SIGUSR1, 0, 0, 8);
	TRY(SYS_sigaltstack, 1, 0);
	TRY(SYS_getrlimit, 1, 0);
	TRY(SYS_sched_getaffinity, 2, 0, 8);
	TRY(SYS_ioctl, 2, (uint64_t)ends[0], FIONREAD);
	TRY(SYS_poll, 0, (uint64_t)&one, 1, 0);
	TRY(SYS_socketpair, 3, 1, 1, 0);
}

static void case_kernel_reads(void)
{
	int ends[2];

	need(pipe(ends) == 0);
	find_foreign();
	TRY(SYS_write, 1, (uint64_t)ends[1], 0, 8);
	TRY(SYS_open, 0, 0, O_RDONLY);
	TRY(SYS_stat, 0, 0, (uint64_t)maps);
	TRY(SYS_execve, 0, 0, 0, 0);
	TRY(SYS_bind, 1, (uint64_t)socket(AF_UNIX, SOCK_STREAM, 0), 0, 8);
	TRY(SYS_rt_sigprocmask, 1, SIG_BLOCK, 0, 0, 8);
	TRY(SYS_rt_sigaction, 1, SIGUSR1, 0, 0, 8);
	TRY(SYS_futex, 0, 0, 0 /* FUTEX_WAIT */, 12345, 0);
}

static void case_of_events(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	const int64_t fd = raw(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd == -EACCES || fd == -EPERM || fd == -ENOSYS || fd == -ENOENT) {
		say("skip: the kernel refuses perf_event_open(2)\n");
		return;
	}
	need(fd >= 0);
	find_foreign();
	TRY(SYS_perf_event_open, 0, 0, 0, -1UL, -1UL);
	TRY(SYS_read, 1, (uint64_t)fd, 0, 8);
	TRY(SYS_ioctl, 2, (uint64_t)fd, PERF_EVENT_IOC_ID);
	TRY(SYS_ioctl, 2, (uint64_t)fd, PERF_EVENT_IOC_PERIOD);
}

static bool is_free(uint64_t page)
{
	void *at = mmap((void *)page, PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return at == (void *)page;
}

/* A page with nothing behind it that the program could have; it stays. */
static uint64_t last_page(void)
{
	char *pages;

	for (unsigned int i = 0; i < nr_foreign; i++)
		if (is_free(foreign[i].start - PAGE))
			return foreign[i].start - PAGE;
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(pages != MAP_FAILED && munmap(pages + PAGE, PAGE) == 0);
	return (uint64_t)pages;
}

static void case_up_to_it(void)
{
	const int file = open("/proc/self/exe", O_RDONLY);
	int ends[2];
	uint64_t page;

	need(file >= 0 && pipe(ends) == 0);
	find_foreign();
	page = last_page();
	say("read %ld\n", raw(SYS_read, file, page, 2 * PAGE));
	say("pread %ld\n", raw(SYS_pread64, file, page + 100, 2 * PAGE, 0));
	say("write %ld\n", raw(SYS_write, ends[1], page, 2 * PAGE));
	say("a name %s\n", strerrorname_np((int)-raw(SYS_getcwd, page + PAGE - 1, 1)));
}

/* From memory of the program itself, and farther than there can be any. */
static void case_too_far(void)
{
	static char own[8];
	const int file = open("/proc/self/exe", O_RDONLY);
	int ends[2];

	need(file >= 0 && pipe2(ends, O_NONBLOCK) == 0);
	for (uint64_t size = UINT64_MAX; size >> 47; size >>= 1) {
		need(raw(SYS_read, file, own, size) == -EFAULT);
		need(raw(SYS_pread64, file, own, size, 0) == -EFAULT);
		need(raw(SYS_write, ends[1], own, size) == -EFAULT);
		need(raw(SYS_pwrite64, file, own, size, 0) == -EBADF);
	}
	say("EFAULT each time\n");
}

const struct test_case cases[] = {
	{"kernel-writes", case_kernel_writes},
	{"kernel-reads", case_kernel_reads},
	{"of-events", case_of_events},
	{"up-to-it", case_up_to_it},
	{"too-far", case_too_far},
	{NULL, NULL},
};
