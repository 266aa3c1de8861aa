// SPDX-License-Identifier: MIT
/* Uprobes on this very program: what the ELF file says must be what is in memory. */
#include "lib/event/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

void probed_function(int n);

static volatile int sink;

__attribute__((noinline)) void probed_function(int n)
{
	sink += n;
}

static char self[PATH_MAX];
static char sysfs[PATH_MAX];
static struct tly_roots roots = {.sysfs = sysfs, .procfs = "/nonexistent"};

static int setup(void **state)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	if (n < 0)
		return -1;
	self[n] = '\0';
	snprintf(sysfs, sizeof(sysfs), "%s/lib/event/testdata/intel/sys", getenv("TALLY_SOURCE"));
	return 0;
}

static struct tally_events *parse(const struct tly_roots *on, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static struct tally_events *parse(const struct tly_roots *on, const char *format, ...)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;
	char text[2 * PATH_MAX];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (tly_events_parse(events, text, on, &err))
		fail_msg("%s: %s; %s", text, err.what, err.remedy);
	return events;
}

static void test_offset_is_where_the_code_is(void **state)
{
	struct tally_events *events = parse(&roots, "uprobe:%s:probed_function:u", self);
	const struct tally_event *event = tally_events_at(events, 0);
	unsigned char code[8];
	int fd = open(self, O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(event->attr->type, 7);
	assert_int_equal(event->attr->config, 0);
	assert_int_equal(event->attr->exclude_kernel, 1);
	assert_string_equal(event->pmu, "uprobe");
	assert_string_equal((const char *)(uintptr_t)event->attr->uprobe_path, self);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, code, sizeof(code), event->attr->probe_offset), sizeof(code));
	assert_memory_equal(code, (const void *)(uintptr_t)probed_function, sizeof(code));
	close(fd);
	tally_events_free(events);
}

static void test_places(void **state)
{
	struct tally_events *events = parse(&roots,
					    "uprobe:%s:probed_function,uprobe:%s:probed_function+1,"
					    "uretprobe:%s:probed_function,{uprobe:%s:0x1234,cs}:u",
					    self, self, self, self);
	uint64_t offset = tally_events_at(events, 0)->attr->probe_offset;

	(void)state;
	assert_int_equal(tally_events_count(events), 5);
	assert_int_equal(tally_events_at(events, 1)->attr->probe_offset, offset + 1);
	assert_int_equal(tally_events_at(events, 2)->attr->probe_offset, offset);
	assert_int_equal(tally_events_at(events, 2)->attr->config, 1);
	assert_int_equal(tally_events_at(events, 3)->attr->probe_offset, 0x1234);
	assert_int_equal(tally_events_at(events, 3)->attr->exclude_kernel, 1);
	assert_int_equal(tally_events_at(events, 4)->leader, 3);
	assert_int_equal(tally_events_set_filter(events, "x", NULL), -EINVAL);
	tally_events_free(events);
}

static void test_refusals(void **state)
{
	char folder[] = "/tmp/tally-probe-XXXXXX", pipe[64], text_file[64];
	const struct {
		const char *path, *place;
		int code;
		const char *what, *remedy;
	} rows[] = {
		{self, "probed_functoin", -ENOENT, "no function 'probed_functoin'",
		 "'probed_function'"},
		{self, "probed_function+0x100000", -EINVAL, "past the end", ""},
		{self, "probed_function+x", -EINVAL, "not an offset", ""},
		{self, "", -EINVAL, "missing", ""},
		{"/nonexistent/program", "main", -ENOENT, "No such file", "whole path"},
		{pipe, "main", -EINVAL, "not an ELF", ""},
		{text_file, "main", -EINVAL, "not an ELF", "interpreter"},
		{"/", "main", -EINVAL, "not an ELF", ""},
	};
	struct tally_events *events = tally_events_new();
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
	snprintf(text_file, sizeof(text_file), "%s/text", folder);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	file = fopen(text_file, "w");
	assert_non_null(file);
	fputs("#!/bin/sh\n", file);
	fclose(file);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_error err;
		char text[2 * PATH_MAX];

		snprintf(text, sizeof(text), "uprobe:%s:%s", rows[i].path, rows[i].place);
		assert_int_equal(tly_events_parse(events, text, &roots, &err), rows[i].code);
		if (!strstr(err.what, rows[i].what) || !strstr(err.remedy, rows[i].remedy))
			fail_msg("%s said: %s; %s", text, err.what, err.remedy);
	}
	assert_int_equal(tly_events_parse(events, "uprobe:/bin/sh", &roots, NULL), -EINVAL);
	assert_int_equal(tly_events_parse(events, "uprobe:/bin/sh,cs:u", &roots, NULL), -EINVAL);
	unlink(pipe);
	unlink(text_file);
	rmdir(folder);
	tally_events_free(events);
}

/* ELF files cut short anywhere, and with any byte of their headers wrong. */
static void test_broken_files(void **state)
{
	static unsigned char image[16 << 10];
	char path[] = "/tmp/tally-elf-XXXXXX", text[128];
	struct tally_events *events = tally_events_new();
	int in = open(self, O_RDONLY | O_CLOEXEC), out = mkstemp(path);
	ssize_t size = read(in, image, sizeof(image));

	(void)state;
	assert_true(out >= 0 && size > 1024);
	snprintf(text, sizeof(text), "uprobe:%s:probed_function", path);
	for (int i = 0; i < 1024; i += 7) {
		unsigned char kept = image[i];

		image[i] = ~kept;
		assert_int_equal(pwrite(out, image, size, 0), size);
		image[i] = kept;
		assert_int_equal(ftruncate(out, i % 2 ? size : i), 0);
		/* The symbol table lies past what was kept: no byte can make it be found. */
		assert_true(tly_events_parse(events, text, &roots, NULL) < 0);
	}
	assert_int_equal(tally_events_count(events), 0);
	close(in);
	close(out);
	unlink(path);
	tally_events_free(events);
}

static void test_the_kernel_counts_it(void **state)
{
	struct tally_events *events = tally_events_new();
	struct perf_event_attr *attr;
	char text[2 * PATH_MAX];
	uint64_t hits = 0;
	int fd;

	(void)state;
	snprintf(text, sizeof(text), "uprobe:%s:probed_function", self);
	if (tly_events_parse(events, text, &tly_roots_default, NULL)) {
		tally_events_free(events);
		skip();
	}
	attr = tally_events_at(events, 0)->attr;
	attr->disabled = 1;
	fd = syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	tally_events_free(events);
	if (fd < 0)
		skip();
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < 123; i++)
		probed_function(i);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	assert_int_equal(read(fd, &hits, sizeof(hits)), sizeof(hits));
	assert_int_equal(hits, 123);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offset_is_where_the_code_is),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_broken_files),
		cmocka_unit_test(test_the_kernel_counts_it),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
