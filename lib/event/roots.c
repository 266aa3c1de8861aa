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

ssize_t tly_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + used, size - used);
		if (n > 0)
			used += n;
	} while (used < size && (n > 0 || (n < 0 && errno == EINTR)));
	n = n < 0 ? -errno : 0;
	close(fd);
	if (n < 0)
		return n;
	if (used == size)
		return -EFBIG;
	while (used && isspace((unsigned char)buf[used - 1]))
		used--;
	buf[used] = '\0';
	return used;
}

int tly_read_number(const char *path, uint64_t *value)
{
	char text[32], *end;
	ssize_t n = tly_read_file(path, text, sizeof(text));

	if (n < 0)
		return n;
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno || *end ? -EINVAL : 0;
}

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

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

ssize_t tly_read_folder(const char *path, char ***names)
{
	size_t nr = 0, bytes = 0, capacity = 0;
	DIR *dir = opendir(path);
	struct dirent *entry;
	char *text = NULL;
	char **table;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		size_t n = strlen(entry->d_name) + 1;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (bytes + n > capacity) {
			size_t larger = 2 * capacity + n + 1024;
			char *grown = realloc(text, larger);

			if (!grown)
				goto no_memory;
			text = grown;
			capacity = larger;
		}
		memcpy(text + bytes, entry->d_name, n);
		bytes += n;
		nr++;
	}
	closedir(dir);
	dir = NULL;
	/* The pointers first, their text behind them: one block. */
	table = malloc((nr + 1) * sizeof(*table) + bytes);
	if (!table)
		goto no_memory;
	char *copy = (char *)(table + nr + 1);

	if (bytes)
		memcpy(copy, text, bytes);
	free(text);
	for (size_t i = 0; i < nr; i++) {
		table[i] = copy;
		copy += strlen(copy) + 1;
	}
	table[nr] = NULL;
	qsort(table, nr, sizeof(*table), compare_names);
	*names = table;
	return nr;

no_memory:
	free(text);
	if (dir)
		closedir(dir);
	return -ENOMEM;
}
