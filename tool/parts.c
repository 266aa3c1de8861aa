// SPDX-License-Identifier: MIT
#include "tool/parts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/own_path.h"

/* The folder of this very program, without a slash at its end. */
static bool own_folder(char folder[PATH_MAX])
{
	char *slash;

	if (!tool_own_path(folder))
		return false;
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	return slash;
}

static bool is_at(char path[PATH_MAX], const char *folder, const char *within, const char *name)
{
	int n = snprintf(path, PATH_MAX, "%s%s/%s", folder, within, name);

	return n >= 0 && n < PATH_MAX && !access(path, R_OK);
}

bool tool_find_part(const char *name, char path[PATH_MAX])
{
	char folder[PATH_MAX];

	if (own_folder(folder) &&
	    (is_at(path, folder, "", name) || is_at(path, folder, "/../libexec/tally", name)))
		return true;
	return is_at(path, TALLY_LIBEXEC, "", name);
}
