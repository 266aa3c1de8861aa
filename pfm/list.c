// SPDX-License-Identifier: MIT
#include "pfm/list.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

void tly_pfm_list_know(struct list *list, void (*load)(void))
{
	pthread_mutex_lock(&list->lock);
	if (!list->known)
		load();
	list->known = true;
	pthread_mutex_unlock(&list->lock);
}

void tly_pfm_list_forget(struct list *list, void (*unload)(void))
{
	pthread_mutex_lock(&list->lock);
	unload();
	list->known = false;
	pthread_mutex_unlock(&list->lock);
}

/* Whatever has a dot in it is none either: "." and "..", files that describe others. */
static bool is_wanted(const struct dirent *entry, bool folders)
{
	if (strpbrk(entry->d_name, ":.,= "))
		return false;
	return !folders || entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **tly_pfm_list_names(const char *path, bool folders, size_t *n)
{
	char **names = NULL;
	size_t room = 0;
	DIR *dir = opendir(path);
	struct dirent *entry;

	*n = 0;
	if (!dir)
		return NULL;
	while ((entry = readdir(dir))) {
		if (!is_wanted(entry, folders))
			continue;
		if (*n == room) {
			char **more;

			room = room ? 2 * room : 32;
			more = reallocarray(names, room, sizeof(*names));
			if (!more)
				break;
			names = more;
		}
		names[*n] = strdup(entry->d_name);
		if (!names[*n])
			break;
		++*n;
	}
	closedir(dir);
	if (*n)
		qsort(names, *n, sizeof(*names), by_name);
	return names;
}

void tly_pfm_list_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}
