// SPDX-License-Identifier: MIT
#include "tool/own_path.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

bool tool_own_path(char path[PATH_MAX])
{
	const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	const char *name;

	if (n > 0) {
		path[n] = '\0';
		return true;
	}
	/* In a root without /proc: as it was executed, from the folder in which we still are. */
	name = (const char *)getauxval(AT_EXECFN);
	return name && realpath(name, path);
}
