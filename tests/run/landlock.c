// SPDX-License-Identifier: MIT
/* Where Landlock lets only some programs be executed, tally-rt is not among them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "case.h"

/* What the system has may be executed. */
static void confine(void)
{
	const struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE};
	const struct landlock_path_beneath_attr system = {
		.allowed_access = LANDLOCK_ACCESS_FS_EXECUTE,
		.parent_fd = open("/usr", O_PATH | O_CLOEXEC),
	};
	long rules = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (rules < 0) {
		say("skip: no Landlock: %s\n", errno_name(errno));
		_exit(0);
	}
	need(!syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &system, 0));
	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	need(!syscall(SYS_landlock_restrict_self, rules, 0));
	close((int)rules);
}

static void case_executed(void)
{
	confine();
	execl("/usr/bin/env", "env", "-i", "/bin/sh", "-c", "echo $0; exit 3", "name", NULL);
	say("env: %s\n", errno_name(errno));
}

const struct test_case cases[] = {{"executed", case_executed}, {NULL, NULL}};
