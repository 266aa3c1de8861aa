// SPDX-License-Identifier: MIT
#include "tests/run/in_child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

int in_child(int (*test)(void))
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		_exit(test());
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
