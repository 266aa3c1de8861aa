// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/probe.h>

static void probe(const char *name, const struct tally_system *system,
		  struct tally_ability *ability)
{
	for (size_t i = 0; i < tally_abilities_count(); i++) {
		tally_ability_probe(i, system, ability);
		if (!strcmp(ability->name, name))
			return;
	}
	fail_msg("no ability %s", name);
}

static size_t open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* Whatever the machine: one verdict each, a reason exactly where the answer is no, nothing left. */
static void test_each_answer_is_complete(void **state)
{
	size_t before = open_files();
	struct tally_system system;

	(void)state;
	tally_system_probe(&system);
	assert_true(tally_abilities_count() > 0);
	for (size_t i = 0; i < tally_abilities_count(); i++) {
		struct tally_ability ability;

		tally_ability_probe(i, &system, &ability);
		assert_true(ability.name[0] && ability.what[0]);
		assert_true(ability.group < TALLY_ABILITY_GROUPS);
		if (ability.verdict == TALLY_CAN) {
			assert_string_equal(ability.error.what, "");
			assert_int_equal(ability.error.code, 0);
		} else {
			assert_true(ability.error.code < 0);
			assert_string_not_equal(ability.error.what, "");
			assert_string_equal(ability.detail, "");
		}
		if (ability.verdict == TALLY_MAY_NOT)
			assert_string_not_equal(ability.error.remedy, "");
	}
	assert_int_equal(open_files(), before);
}

static bool opens(uint32_t type, uint64_t config, int pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = PERF_ATTR_SIZE_VER0,
		.config = config,
		.exclude_kernel = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void test_agrees_with_the_kernel(void **state)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
		int pid, cpu;
	} rows[] = {
		{"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0, -1},
		{"software", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, -1},
		{"system-wide", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, -1, 0},
		{"cache", PERF_TYPE_HW_CACHE, 0, 0, -1},
	};
	struct tally_system system;

	(void)state;
	tally_system_probe(&system);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_ability ability;

		probe(rows[i].name, &system, &ability);
		assert_int_equal(ability.verdict == TALLY_CAN,
				 opens(rows[i].type, rows[i].config, rows[i].pid, rows[i].cpu));
	}
}

static void test_no_call_no_ability(void **state)
{
	const struct tally_system system = {.syscall_error = -ENOSYS, .seccomp = 2};
	struct tally_ability first, other;

	(void)state;
	probe("hardware", &system, &first);
	assert_int_equal(first.verdict, TALLY_MAY_NOT);
	for (size_t i = 0; i < tally_abilities_count(); i++) {
		tally_ability_probe(i, &system, &other);
		assert_string_equal(first.error.what, other.error.what);
		assert_string_equal(first.error.remedy, other.error.remedy);
	}
}

static void test_tracefs_comes_first(void **state)
{
	struct tally_system system = {.has_syscall = true, .paranoid = 2};
	struct tally_ability ability;

	(void)state;
	strcpy(system.tracefs, "/sys/kernel/tracing");
	probe("tracepoint", &system, &ability);
	assert_int_equal(ability.verdict, TALLY_MAY_NOT);
	assert_int_equal(ability.error.code, -EACCES);
	assert_string_equal(ability.error.remedy,
			    "run as root, or let your group read them: sudo mount -o "
			    "remount,mode=750,gid=$(id -g) /sys/kernel/tracing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_answer_is_complete),
		cmocka_unit_test(test_agrees_with_the_kernel),
		cmocka_unit_test(test_no_call_no_ability),
		cmocka_unit_test(test_tracefs_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
