// SPDX-License-Identifier: MIT
#include "lib/event/roots.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct tly_roots tly_roots_default = {.sysfs = "/sys", .procfs = "/proc"};

/* 0, or why there are no tracepoints below @mount. */
static int find_events(char *buf, size_t size, const char *mount, const char *below)
{
	int n = snprintf(buf, size, "%s%s/events", mount, below);

	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	return access(buf, F_OK) ? -errno : 0;
}

int tly_tracefs_events(const struct tly_roots *roots, char *buf, size_t size)
{
	char path[PATH_MAX], line[4096];
	bool found = false;
	struct mntent entry;
	FILE *mounts;

	if (roots->tracefs)
		return find_events(buf, size, roots->tracefs, "") ? -ENOTSUP : 0;
	snprintf(path, sizeof(path), "%s/self/mounts", roots->procfs);
	mounts = setmntent(path, "re");
	if (!mounts)
		return -ENOTSUP;
	while (!found && getmntent_r(mounts, &entry, line, sizeof(line))) {
		int ret = -ENOENT;

		if (!strcmp(entry.mnt_type, "tracefs"))
			ret = find_events(buf, size, entry.mnt_dir, "");
		else if (!strcmp(entry.mnt_type, "debugfs"))
			ret = find_events(buf, size, entry.mnt_dir, "/tracing");
		/* What may not be searched is there: whoever opens it will say so. */
		found = ret == 0 || ret == -EACCES;
	}
	endmntent(mounts);
	return found ? 0 : -ENOTSUP;
}
