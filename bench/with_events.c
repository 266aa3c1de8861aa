/* SPDX-License-Identifier: MIT */
/*
 * `with-events EVENT[,EVENT...] COMMAND [ARG...]` executes a command with events open on it, as
 * little as any client could do about them:
 *
 *	-d		they stay disabled
 *	-F HZ, -c N	the first is sampled with call chains, at a frequency or each N; the samples
 *			are thrown away. How many there were, and of how much, goes to stderr
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING_PAGES 128
#define CACHE(id, op, result)                                                                      \
	PERF_COUNT_HW_CACHE_##id | PERF_COUNT_HW_CACHE_OP_##op << 8 |                              \
		PERF_COUNT_HW_CACHE_RESULT_##result << 16

static const struct name {
	const char *name;
	uint32_t type;
	uint64_t config;
} names[] = {
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"L1-dcache-loads", PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS)},
	{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS)},
	{"L1-dcache-stores", PERF_TYPE_HW_CACHE, CACHE(L1D, WRITE, ACCESS)},
	{"L1-dcache-store-misses", PERF_TYPE_HW_CACHE, CACHE(L1D, WRITE, MISS)},
	{"L1-icache-load-misses", PERF_TYPE_HW_CACHE, CACHE(L1I, READ, MISS)},
	{"LLC-loads", PERF_TYPE_HW_CACHE, CACHE(LL, READ, ACCESS)},
	{"LLC-load-misses", PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS)},
	{"dTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS)},
	{"iTLB-load-misses", PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, MISS)},
};

static const char usage[] = "usage: with-events [-d] [-F HZ | -c N] EVENT[,EVENT...] COMMAND...\n";

struct options {
	bool disabled, frequency;
	uint64_t period; /* or frequency; 0: nothing is sampled */
};

static int fail(const char *what)
{
	fprintf(stderr, "with-events: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct perf_event_attr attr_of(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i].name, name))
			return (struct perf_event_attr){
				.size = sizeof(struct perf_event_attr),
				.type = names[i].type,
				.config = names[i].config,
				.disabled = 1,
				.exclude_kernel = 1,
				.exclude_hv = 1,
			};
	errno = ENOENT;
	fail(name);
	__builtin_unreachable();
}

/* Opens all that @list names, for @pid; returns the descriptor of the first. */
static int open_all(char *list, pid_t pid, const struct options *options)
{
	char *rest = NULL;
	int first = -1;

	for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		struct perf_event_attr attr = attr_of(name);
		bool sampled = options->period && first < 0;
		int fd;

		attr.enable_on_exec = !options->disabled;
		/* A ring of an inherited event would have to be one processor's. */
		attr.inherit = !options->period;
		if (sampled) {
			attr.freq = options->frequency;
			attr.sample_period = options->period;
			attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
					   PERF_SAMPLE_CALLCHAIN;
			attr.watermark = 1;
			attr.wakeup_watermark = RING_PAGES * (uint32_t)getpagesize() / 2;
		}
		fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);
		if (fd < 0)
			fail(name);
		if (first < 0)
			first = fd;
	}
	return first;
}

/* Takes what is in the ring; returns how many samples were. */
static uint64_t take(struct perf_event_mmap_page *page, size_t size)
{
	const char *data = (const char *)page + getpagesize();
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t samples = 0, at = page->data_tail;

	while (at < head) {
		struct perf_event_header header;

		/* Records begin at multiples of its size, so it never goes around the end. */
		memcpy(&header, data + at % size, sizeof(header));
		samples += header.type == PERF_RECORD_SAMPLE;
		at += header.size;
	}
	__atomic_store_n(&page->data_tail, at, __ATOMIC_RELEASE);
	return samples;
}

/* Until the task has ended, whose event @fd is. */
static void watch(int fd)
{
	const size_t size = (size_t)RING_PAGES * (size_t)getpagesize();
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	uint64_t samples = 0, count;
	void *page =
		mmap(NULL, size + (size_t)getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		fail("mmap");
	while (poll(&ready, 1, -1) >= 0 && !(ready.revents & POLLHUP))
		samples += take(page, size);
	samples += take(page, size);
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		fail("read");
	fprintf(stderr, "%llu samples of %llu\n", (unsigned long long)samples,
		(unsigned long long)count);
}

/* The command in a child that begins when its events are there. */
static int sample(char *list, char **command, const struct options *options)
{
	int go[2], status, fd;
	char byte = 0;
	pid_t pid;

	if (pipe(go))
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		close(go[0]);
		execvp(*command, command);
		fail(*command);
	}
	fd = open_all(list, pid, options);
	if (write(go[1], &byte, 1) != 1)
		fail("write");
	watch(fd);
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct options options = {0};
	int option;

	while ((option = getopt(argc, argv, "+dF:c:")) != -1)
		switch (option) {
		case 'd':
			options.disabled = true;
			break;
		case 'F':
		case 'c':
			options.frequency = option == 'F';
			options.period = strtoull(optarg, NULL, 10);
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	if (argc - optind < 2) {
		fputs(usage, stderr);
		return 2;
	}
	if (options.period)
		return sample(argv[optind], argv + optind + 1, &options);
	open_all(argv[optind], 0, &options);
	execvp(argv[optind + 1], argv + optind + 1);
	return fail(argv[optind + 1]);
}
