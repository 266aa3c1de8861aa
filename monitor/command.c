// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/monitor.h"

/* Filters of seccomp(2) from before Linux 5.8 answer EPERM to faccessat2(2), which they do not
 * know. */
static bool is_executable(const char *path)
{
	if (!faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return true;
	return errno == EPERM && !access(path, X_OK);
}

/* 0 if it can be executed, as far as its mode tells. */
static int try(const char *path)
{
	struct stat file;

	if (stat(path, &file) < 0)
		return -errno;
	return S_ISREG(file.st_mode) && is_executable(path) ? 0 : -EACCES;
}

/* The path of @name in the folder that @list begins with; an empty one is the current folder. */
static bool join(char path[PATH_MAX], const char *list, const char *name)
{
	int length = (int)strcspn(list, ":");
	int n = snprintf(path, PATH_MAX, "%.*s%s%s", length, list, length ? "/" : "", name);

	return n >= 0 && n < PATH_MAX;
}

int monitor_find_command(const char *name, char path[PATH_MAX])
{
	const char *list = getenv("PATH");
	int found = -ENOENT;

	if (!*name)
		return -ENOENT;
	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return -ENAMETOOLONG;
		return try(path);
	}
	if (!list)
		list = "/bin:/usr/bin";
	for (bool more = true; more; list += strcspn(list, ":") + 1) {
		int error = join(path, list, name) ? try(path) : -ENAMETOOLONG;

		if (!error)
			return 0;
		if (error == -EACCES)
			found = error; /* unless a later folder has it */
		more = strchr(list, ':');
	}
	return found;
}
