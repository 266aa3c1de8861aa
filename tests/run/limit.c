// SPDX-License-Identifier: MIT
/* Limits on memory hold for what the program has, and read as they were set. */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#define MIB (1UL << 20)

static const char *text_of(rlim_t value)
{
	static _Thread_local char text[2][32];
	static _Thread_local int which;

	which = !which;
	if (value == RLIM_INFINITY)
		return "none";
	snprintf(text[which], sizeof(text[which]), "%lu", (unsigned long)value);
	return text[which];
}

static void say_limit(const char *what, __rlimit_resource_t resource)
{
	struct rlimit limit, raw_limit;

	need(getrlimit(resource, &limit) == 0);
	need(raw(SYS_getrlimit, resource, &raw_limit) == 0);
	say("%s %s", what, text_of(limit.rlim_cur));
	say(" %s %d\n", text_of(limit.rlim_max), memcmp(&limit, &raw_limit, sizeof(limit)));
}

static void set(__rlimit_resource_t resource, rlim_t now, rlim_t max)
{
	struct rlimit limit = {now, max}, old = {0};

	say("set %s", result_name(prlimit(0, resource, &limit, &old)));
	say(" before %s", text_of(old.rlim_cur));
	say(" %s\n", text_of(old.rlim_max));
}

static void *map(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void say_map(const char *what, size_t size)
{
	void *memory = map(size);

	say("%s %s\n", what, memory == MAP_FAILED ? errno_name(errno) : "mapped");
	if (memory != MAP_FAILED)
		munmap(memory, size);
}

static void try_both(__rlimit_resource_t resource)
{
	say_limit("at first", resource);
	set(resource, 400 * MIB, 800 * MIB);
	say_limit("then", resource);
	say_map("less", 300 * MIB);
	say_map("more", 1500 * MIB);
	set(resource, 700 * MIB, 800 * MIB);
	say_map("less", 600 * MIB);
	say_map("more", 1500 * MIB);
	set(resource, 900 * MIB, 800 * MIB);
	say_limit("at last", resource);
}

static void case_address_space(void)
{
	try_both(RLIMIT_AS);
}

static void case_data(void)
{
	try_both(RLIMIT_DATA);
	void *end = sbrk(0);
	set(RLIMIT_DATA, 10 * MIB, 800 * MIB);
	say("brk %s\n", sbrk(100 * MIB) == (void *)-1 ? errno_name(errno) : "moved");
	say("brk %s\n", sbrk(5 * MIB) == end ? "moved" : errno_name(errno));
}

static void case_mistakes(void)
{
	struct rlimit limit = {100 * MIB, RLIM_INFINITY};

	say("%s\n", result_name(syscall(SYS_setrlimit, RLIMIT_AS, NULL)));
	say("%s\n", result_name(syscall(SYS_getrlimit, RLIMIT_AS, 8)));
	say("%s\n", result_name(syscall(SYS_getrlimit, 99, &limit)));
	say("%s\n", result_name(syscall(SYS_prlimit64, 0x7fffffff, RLIMIT_AS, NULL, &limit)));
	say("%s\n", result_name(syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, NULL)));
	say("%s\n", result_name(syscall(SYS_prlimit64, -1, RLIMIT_AS, NULL, &limit)));
	limit.rlim_max = 0;
	say("%s\n", result_name(setrlimit(RLIMIT_AS, &limit)));
	limit = (struct rlimit){~0UL - 1, ~0UL - 1};
	need(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void *nothing(void *argument)
{
	return argument;
}

/* What is natively enough for processes and threads is enough. */
static void case_little(void)
{
	pthread_attr_t attributes;

	set(RLIMIT_AS, 64 * MIB, 64 * MIB);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, MIB);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;

		need(pthread_create(&thread, &attributes, nothing, NULL) == 0);
		need(pthread_join(thread, NULL) == 0);
	}
	pid_t child = fork();
	if (child == 0) {
		say_limit("child", RLIMIT_AS);
		execl("/bin/sh", "sh", "-c", "ulimit -v; ulimit -Hv; /bin/echo deeper",
		      (char *)NULL);
		_exit(9);
	}
	say_end("shell", child);
}

static void open_faults(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.exclude_kernel = 1,
		.inherit = 1,
	};

	need(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0);
}

/* Whoever inherits an event has as much room. */
static void case_little_with_events(void)
{
	open_faults();
	case_little();
}

/* Another process's limits. */
static void case_of_a_child(void)
{
	struct rlimit limit = {500 * MIB, 600 * MIB}, old;
	int ends[2];
	char byte;

	need(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0) {
		need(read(ends[0], &byte, 1) == 1);
		say_limit("child", RLIMIT_AS);
		say_map("less", 300 * MIB);
		say_map("more", 1500 * MIB);
		_exit(0);
	}
	need(prlimit(child, RLIMIT_AS, &limit, &old) == 0);
	say("old %s\n", text_of(old.rlim_cur));
	need(prlimit(child, RLIMIT_AS, NULL, &old) == 0);
	say("new %s", text_of(old.rlim_cur));
	say(" %s\n", text_of(old.rlim_max));
	need(write(ends[1], "x", 1) == 1);
	say_end("child", child);
}

const struct test_case cases[] = {
	{"address_space", case_address_space},
	{"data", case_data},
	{"mistakes", case_mistakes},
	{"little", case_little},
	{"of_a_child", case_of_a_child},
	{"little_with_events", case_little_with_events},
	{NULL, NULL},
};
