// SPDX-License-Identifier: MIT
#include "lib/readfile.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

long tly_read_setting(const char *path, long absent)
{
	char text[32], *end;
	long value;

	if (tly_read_file(path, text, sizeof(text)) <= 0)
		return absent;
	errno = 0;
	value = strtol(text, &end, 0);
	return errno || *end ? absent : value;
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
