// SPDX-License-Identifier: MIT
/* Tracepoints, on the tracefs in testdata/ and on file systems mounted elsewhere. */
#include "lib/event/tracepoint.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/event/fields.h"

static char tracefs[PATH_MAX];
static struct tly_roots roots = {
	.sysfs = "/nonexistent", .procfs = "/nonexistent", .tracefs = tracefs};

static int setup(void **state)
{
	(void)state;
	snprintf(tracefs, sizeof(tracefs), "%s/lib/event/testdata/tracefs", getenv("TALLY_SOURCE"));
	return 0;
}

static void test_names(void **state)
{
	static const struct {
		const char *text;
		struct {
			const char *name;
			uint64_t id;
		} events[5];
	} rows[] = {
		{"sched:sched_switch", {{"sched:sched_switch", 372}}},
		{"sched:sched_switch:u", {{"sched:sched_switch:u", 372}}},
		{"sched:sched_switch/period=1/", {{"sched:sched_switch/period=1/", 372}}},
		{"kvm-x86:kvm_entry", {{"kvm-x86:kvm_entry", 31}}},
		{"sched:sched_wakeup*:k",
		 {{"sched:sched_wakeup:k", 374}, {"sched:sched_wakeup_new:k", 373}}},
		{"*:*_[fi]*", {{"block:block_rq_issue", 900}, {"sched:sched_process_fork", 371}}},
		{"sched:sched_s?itch,cs", {{"sched:sched_s?itch", 372}, {"cs", 3}}},
		{"sched:*",
		 {{"sched:sched_process_fork", 371},
		  {"sched:sched_switch", 372},
		  {"sched:sched_wakeup", 374},
		  {"sched:sched_wakeup_new", 373}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_events *events = tally_events_new();
		struct tally_error err;
		size_t nr = 0;

		if (tly_events_parse(events, rows[i].text, &roots, &err))
			fail_msg("%s: %s", rows[i].text, err.what);
		for (; nr < 5 && rows[i].events[nr].name; nr++) {
			const struct tally_event *event = tally_events_at(events, nr);

			assert_non_null(event);
			assert_string_equal(event->name, rows[i].events[nr].name);
			assert_int_equal(event->attr->config, rows[i].events[nr].id);
		}
		assert_int_equal(tally_events_count(events), nr);
		tally_events_free(events);
	}
}

static void test_filter_of_the_last(void **state)
{
	struct tally_events *events = tally_events_new();

	(void)state;
	assert_int_equal(tly_events_parse(events, "sched:sched_wakeup*", &roots, NULL), 0);
	assert_int_equal(tally_events_set_filter(events, "pid > 1", NULL), 0);
	assert_null(tally_event_filter(tally_events_at(events, 0)));
	assert_string_equal(tally_event_filter(tally_events_at(events, 1)), "pid > 1");
	assert_int_equal(tally_events_set_filter(events, "pid > 2", NULL), 0);
	assert_string_equal(tally_event_filter(tally_events_at(events, 1)), "pid > 2");
	tally_events_free(events);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		int code;
		uint64_t offset;
		const char *what, *remedy;
	} rows[] = {
		{"cs,sched:sched_swich", -ENOENT, 3, "no tracepoint", "'sched:sched_switch'"},
		{"sched_switch", -ENOENT, 0, "no event", "'sched:sched_switch'"},
		{"sched:nothing*", -ENOENT, 0, "no tracepoint", ""},
		{"nosuch:*", -ENOENT, 0, "no tracepoint", ""},
		{"sched:", -ENOENT, 0, "no tracepoint", "'sched:sched_"},
		{"sched:enable", -ENOENT, 0, "no tracepoint", ""},
		{"odd:noid", -ENOENT, 0, "no tracepoint", ""},
		{"odd:badid", -EINVAL, 0, "cannot be read", ""},
		{"..:sched", -ENOENT, 0, "no tracepoint", ""},
		{"sched:sched_switch/umask=1/", -EINVAL, 19, "takes no term 'umask'", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_events *events = tally_events_new();
		struct tally_error err;

		print_message("# %s\n", rows[i].text);
		assert_int_equal(tly_events_parse(events, rows[i].text, &roots, &err),
				 rows[i].code);
		if (!strstr(err.what, rows[i].what) || !strstr(err.remedy, rows[i].remedy))
			fail_msg("said: %s; %s", err.what, err.remedy);
		assert_int_equal(err.offset, rows[i].offset);
		tally_events_free(events);
	}
}

static void test_long_names(void **state)
{
	struct tally_events *events = tally_events_new();
	char text[1000];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[500] = ':';
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(tly_events_parse(events, text, &roots, NULL), -ENOENT);
	tally_events_free(events);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A folder with proc/self/mounts and two mount points, one of them with a space in its name. */
static void test_found_by_mounts(void **state)
{
	char folder[] = "/tmp/tally-mounts-XXXXXX", path[PATH_MAX], text[3 * PATH_MAX];
	char events[PATH_MAX], expected[PATH_MAX], proc[PATH_MAX];
	struct tly_roots mounted = {.sysfs = "/nonexistent", .procfs = proc};
	static const char *const folders[] = {
		"proc", "proc/self", "debug", "debug/tracing", "debug/tracing/events",
		"a b",	"a b/events"};

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, folders[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	snprintf(proc, sizeof(proc), "%s/proc", folder);
	snprintf(path, sizeof(path), "%s/proc/self/mounts", folder);

	write_file(path, "tmpfs /tmp tmpfs rw 0 0\n");
	assert_int_equal(tly_tracefs_events(&mounted, events, sizeof(events)), -ENOTSUP);

	snprintf(text, sizeof(text), "none %s/debug debugfs rw 0 0\n", folder);
	write_file(path, text);
	assert_int_equal(tly_tracefs_events(&mounted, events, sizeof(events)), 0);
	snprintf(expected, sizeof(expected), "%s/debug/tracing/events", folder);
	assert_string_equal(events, expected);

	snprintf(text, sizeof(text),
		 "none %s/none tracefs rw 0 0\nnone %s/a\\040b tracefs rw 0 0\n", folder, folder);
	write_file(path, text);
	assert_int_equal(tly_tracefs_events(&mounted, events, sizeof(events)), 0);
	snprintf(expected, sizeof(expected), "%s/a b/events", folder);
	assert_string_equal(events, expected);

	unlink(path);
	for (size_t i = sizeof(folders) / sizeof(folders[0]); i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", folder, folders[i]);
		rmdir(path);
	}
	rmdir(folder);
}

struct collected {
	char text[512];
	int nr;
};

static int collect(const struct tally_tracepoint_field *field, void *ctx)
{
	struct collected *collected = ctx;
	size_t used = strlen(collected->text);

	snprintf(collected->text + used, sizeof(collected->text) - used, "%s|%s|%u|%u|%d;",
		 field->type, field->name, field->offset, field->size, field->is_signed);
	return ++collected->nr == 4;
}

static void test_fields(void **state)
{
	static const struct {
		const char *text;
		int ret;
		const char *fields;
	} rows[] = {
		{"", 0, ""},
		{"name: x\nID: 1\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n",
		 0, ""},
		{"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n", 0,
		 "char[16]|prev_comm|8|16|0;"},
		{"\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:1;\n", 0,
		 "__data_loc char[]|cmd|60|4|1;"},
		{"\tfield:const char * buf;\toffset:24;\tsize:8;\tsigned:0;\n", 0,
		 "const char *|buf|24|8|0;"},
		{"\tfield:u8 (*x)[2];\toffset:24;\tsize:8;\tsigned:0;\n", -EINVAL, ""},
		{"\tfield:unsigned long long args[6];\toffset:16;\tsize:48;\n", 0,
		 "unsigned long long[6]|args|16|48|0;"},
		{"\tfield:int x;\toffset:y;\tsize:4;\tsigned:1;\n", -EINVAL, ""},
		{"\tfield:int;\toffset:0;\tsize:4;\tsigned:1;\n", -EINVAL, ""},
		{"\tfield: m;\toffset:0;\tsize:4;\tsigned:1;\n", -EINVAL, ""},
		{"\tfield:;\toffset:0;\tsize:4;\tsigned:1;\n", -EINVAL, ""},
		{"\tfield:[];\toffset:0;\tsize:4;\tsigned:1;\n", -EINVAL, ""},
		{"\tfield:int x\n", -EINVAL, ""},
		{"\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n"
		 "\tfield:int b;\toffset:4;\tsize:4;\tsigned:1;\n"
		 "\tfield:int c;\toffset:8;\tsize:4;\tsigned:1;\n"
		 "\tfield:int d;\toffset:12;\tsize:4;\tsigned:1;\n"
		 "\tfield:int e;\toffset:16;\tsize:4;\tsigned:1;\n",
		 1, "int|a|0|4|1;int|b|4|4|1;int|c|8|4|1;int|d|12|4|1;"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct collected collected = {0};
		char text[512];

		snprintf(text, sizeof(text), "%s", rows[i].text);
		assert_int_equal(tly_fields_parse(text, collect, &collected), rows[i].ret);
		assert_string_equal(collected.text, rows[i].fields);
	}
}

static void test_fields_of_this_machine(void **state)
{
	char events[PATH_MAX];
	struct collected collected = {0};
	struct tally_error err;

	(void)state;
	assert_int_equal(tally_tracepoint_fields("nocolon", collect, &collected, &err), -EINVAL);
	assert_int_equal(tally_tracepoint_fields("a:../b", collect, &collected, &err), -EINVAL);
	if (tly_tracefs_events(&tly_roots_default, events, sizeof(events)) ||
	    access(events, X_OK)) {
		assert_true(tally_tracepoint_fields("sched:sched_switch", collect, &collected,
						    &err) < 0);
		return;
	}
	assert_int_equal(tally_tracepoint_fields("sched:nosuch", collect, &collected, &err),
			 -ENOENT);
	assert_int_equal(tally_tracepoint_fields("sched:sched_switch", collect, &collected, &err),
			 1);
	assert_non_null(strstr(collected.text, "char[16]|prev_comm|8|16|"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_filter_of_the_last),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_found_by_mounts),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_fields_of_this_machine),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
