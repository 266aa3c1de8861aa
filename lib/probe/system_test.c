// SPDX-License-Identifier: MIT
/* A small /proc and /sys in a temporary folder is what the facts are read from. */
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
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/probe/system.h"

struct tree {
	char root[64];
};

static void put(const struct tree *tree, const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", tree->root, name);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			fail_msg("%s: %s", path, strerror(errno));
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int make_tree(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return -1;
	strcpy(tree->root, "/tmp/tally-system-XXXXXX");
	*state = tree;
	return mkdtemp(tree->root) ? 0 : -1;
}

static int remove_tree(void **state)
{
	struct tree *tree = *state;
	char command[128];
	int rc;

	snprintf(command, sizeof(command), "rm -r '%s'", tree->root);
	rc = system(command);
	free(tree);
	return rc;
}

static void test_empty_root(void **state)
{
	const struct tree *tree = *state;
	struct tally_system system;

	tly_system_read(&system, tree->root);
	assert_int_equal(system.paranoid, INT_MIN);
	assert_int_equal(system.mlock_kb, -1);
	assert_int_equal(system.max_sample_rate, -1);
	assert_int_equal(system.kptr_restrict, -1);
	assert_int_equal(system.seccomp, -1);
	assert_false(system.cap_perfmon);
	assert_false(system.user_namespace);
	assert_string_equal(system.units, "");
	assert_string_equal(system.tracefs, "");
	assert_null(system.container);
}

static void test_settings(void **state)
{
	const struct tree *tree = *state;
	struct tally_system system;

	put(tree, "/proc/sys/kernel/perf_event_paranoid", "-1\n");
	put(tree, "/proc/sys/kernel/perf_event_mlock_kb", "516\n");
	put(tree, "/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
	put(tree, "/proc/sys/kernel/perf_event_max_stack", "127\n");
	put(tree, "/proc/sys/kernel/kptr_restrict", "nonsense\n");
	tly_system_read(&system, tree->root);
	assert_int_equal(system.paranoid, -1);
	assert_int_equal(system.mlock_kb, 516);
	assert_int_equal(system.max_sample_rate, 100000);
	assert_int_equal(system.max_stack, 127);
	assert_int_equal(system.kptr_restrict, -1);
}

static void test_rights(void **state)
{
	const struct tree *tree = *state;
	struct tally_system system;

	/* Bits 14 and 38, and no other. */
	put(tree, "/proc/self/status",
	    "Name:\tx\nCapEff:\t0000004000004000\nCapBnd:\t0\nSeccomp:\t2\n");
	put(tree, "/proc/self/uid_map", "         0          0 4294967295\n");
	tly_system_read(&system, tree->root);
	assert_true(system.cap_perfmon);
	assert_true(system.cap_ipc_lock);
	assert_false(system.cap_sys_admin);
	assert_false(system.cap_sys_ptrace);
	assert_false(system.may_gain_perfmon);
	assert_int_equal(system.seccomp, 2);
	assert_true(tally_system_privileged(&system));

	put(tree, "/proc/self/uid_map", "         0       1000          1\n");
	tly_system_read(&system, tree->root);
	assert_true(system.user_namespace);
	assert_false(tally_system_privileged(&system));

	/* The bits of two others. */
	put(tree, "/proc/self/status",
	    "CapPrm:\t0\nCapEff:\t0000000000280000\nCapBnd:\t0000004000000000\n");
	put(tree, "/proc/self/uid_map", "0 0 4294967295\n");
	tly_system_read(&system, tree->root);
	assert_false(system.cap_perfmon);
	assert_true(system.cap_sys_admin);
	assert_true(system.cap_sys_ptrace);
	assert_true(system.may_gain_perfmon);
	assert_int_equal(system.seccomp, -1);
	assert_true(tally_system_privileged(&system));
}

static void test_units(void **state)
{
	const struct tree *tree = *state;
	struct tally_system system;

	put(tree, "/sys/bus/event_source/devices/software/type", "1\n");
	put(tree, "/sys/bus/event_source/devices/cpu/caps/pmu_name", "skylake\n");
	tly_system_read(&system, tree->root);
	assert_string_equal(system.units, "cpu software");
	assert_string_equal(system.pmu_name, "skylake");
}

static void test_more_units_than_fit(void **state)
{
	const struct tree *tree = *state;
	struct tally_system system;
	char name[128];

	for (int i = 0; i < 80; i++) {
		snprintf(name, sizeof(name), "/sys/bus/event_source/devices/uncore_imc_%d/type", i);
		put(tree, name, "20\n");
	}
	tly_system_read(&system, tree->root);
	assert_true(strlen(system.units) < sizeof(system.units));
	assert_true(strlen(system.units) > sizeof(system.units) / 2);
	assert_int_not_equal(system.units[strlen(system.units) - 1], ' ');
}

static void test_tracefs(void **state)
{
	const struct tree *tree = *state;
	struct tally_system system;

	put(tree, "/proc/mounts", "proc /proc proc rw 0 0\ntmpfs /tracefs tmpfs rw 0 0\n");
	tly_system_read(&system, tree->root);
	assert_string_equal(system.tracefs, "");

	put(tree, "/proc/mounts",
	    "none /sys/kernel/debug/tracing tracefs rw 0 0\nnone /sys/kernel/tracing tracefs rw 0 0\n"
	    "none /elsewhere tracefs rw 0 0\n");
	tly_system_read(&system, tree->root);
	assert_string_equal(system.tracefs, "/sys/kernel/tracing");
	assert_false(system.tracefs_readable);

	put(tree, "/sys/kernel/tracing/events/header_page", "");
	tly_system_read(&system, tree->root);
	assert_true(system.tracefs_readable);
}

static void test_container(void **state)
{
	const struct tree *tree = *state;
	struct tally_system system;

	put(tree, "/run/systemd/container", "rkt\n");
	tly_system_read(&system, tree->root);
	assert_string_equal(system.container, "container");

	put(tree, "/run/host/container-manager", "systemd-nspawn\n");
	tly_system_read(&system, tree->root);
	assert_string_equal(system.container, "systemd-nspawn");

	put(tree, "/.dockerenv", "");
	tly_system_read(&system, tree->root);
	assert_string_equal(system.container, "docker");

	put(tree, "/var/run/secrets/kubernetes.io/token", "");
	tly_system_read(&system, tree->root);
	assert_string_equal(system.container, "kubernetes");
}

static void test_hypervisor(void **state)
{
	static const char clocks[] =
		"/sys/devices/system/clocksource/clocksource0/available_clocksource";
	const struct tree *tree = *state;

	assert_string_equal(tly_hypervisor("bhyve bhyve ", tree->root), "bhyve");
	assert_string_equal(tly_hypervisor("KVMKVMKVM", tree->root), "kvm");
	assert_string_equal(tly_hypervisor("?", tree->root), "unknown hypervisor");
	put(tree, clocks, "tsc hpet acpi_pm \n");
	assert_string_equal(tly_hypervisor("bhyve bhyve ", tree->root), "bhyve");
	put(tree, clocks, "tsc kvm-clock \n");
	assert_string_equal(tly_hypervisor("bhyve bhyve ", tree->root), "kvm");
	assert_string_equal(tly_hypervisor("?", tree->root), "kvm");
}

static void test_ring_budget(void **state)
{
	struct tally_system system = {.mlock_kb = 516, .paranoid = 2};

	(void)state;
	assert_int_equal(tly_ring_budget(&system, 2, 65536), 2 * 516 * 1024 + 65536);
	assert_true(tly_ring_budget(&system, 2, SIZE_MAX) == SIZE_MAX);

	system.paranoid = -1;
	assert_true(tly_ring_budget(&system, 2, 65536) == SIZE_MAX);

	system.paranoid = 2;
	system.cap_ipc_lock = true;
	assert_true(tly_ring_budget(&system, 2, 65536) == SIZE_MAX);
	system.user_namespace = true;
	assert_int_equal(tly_ring_budget(&system, 2, 65536), 2 * 516 * 1024 + 65536);

	system.mlock_kb = -1;
	assert_int_equal(tly_ring_budget(&system, 2, 65536), 65536);
	system.mlock_kb = LONG_MAX;
	assert_int_equal(tly_ring_budget(&system, 2, 65536), 65536);
	system.mlock_kb = LONG_MAX / 1024;
	assert_int_equal(tly_ring_budget(&system, 1, SIZE_MAX - 1), SIZE_MAX);
}

/* Against what a bare system call says. */
static void test_this_machine(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER0,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	struct tally_system system;
	int fd;

	(void)state;
	tally_system_probe(&system);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd >= 0) {
		assert_true(system.has_syscall);
		assert_int_equal(system.syscall_error, 0);
		assert_true(system.attr_size >= PERF_ATTR_SIZE_VER0);
		assert_int_equal(system.attr_size % 8, 0);
		close(fd);
	}
	if (!system.has_syscall) {
		assert_int_equal(fd, -1);
		assert_true(system.syscall_error < 0);
	}
	assert_true(tally_system_ring_budget() > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty_root, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_settings, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_rights, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_units, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_more_units_than_fit, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_tracefs, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_container, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_hypervisor, make_tree, remove_tree),
		cmocka_unit_test(test_ring_budget),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
