// SPDX-License-Identifier: MIT
#include "pfm/tracepoints.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const roots[] = {
	"/sys/kernel/tracing/events",
	"/sys/kernel/debug/tracing/events",
};

static struct {
	pthread_mutex_t lock;
	bool known;
	const char *root;
	struct tracepoint_system *systems;
	size_t n;
} found = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int is_entry(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
}

/* Sorted names of the folders in a folder. Names that an event string cannot hold are left out. */
static char **list_folders(const char *path, size_t *n)
{
	char **names = NULL;
	size_t count = 0, room = 0;
	DIR *dir = opendir(path);
	struct dirent *entry;

	*n = 0;
	if (!dir)
		return NULL;
	while ((entry = readdir(dir))) {
		if (!is_entry(entry) || strpbrk(entry->d_name, ":.,= "))
			continue;
		if (count == room) {
			char **more;

			room = room ? 2 * room : 32;
			more = reallocarray(names, room, sizeof(*names));
			if (!more)
				break;
			names = more;
		}
		names[count] = strdup(entry->d_name);
		if (!names[count])
			break;
		count++;
	}
	closedir(dir);
	if (count)
		qsort(names, count, sizeof(*names), by_name);
	*n = count;
	return names;
}

static void free_strings(char **strings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(strings[i]);
	free(strings);
}

static void free_system(struct tracepoint_system *system)
{
	free(system->name);
	free(system->desc);
	free_strings(system->points, system->n_points);
	if (system->descs)
		free_strings(system->descs, system->n_points);
}

static bool describe(struct tracepoint_system *system)
{
	if (asprintf(&system->desc, "tracepoints of %s", system->name) < 0) {
		system->desc = NULL;
		return false;
	}
	system->descs = calloc(system->n_points, sizeof(*system->descs));
	if (!system->descs)
		return false;
	for (size_t i = 0; i < system->n_points; i++) {
		if (asprintf(&system->descs[i], "the kernel passes %s:%s", system->name,
			     system->points[i]) < 0) {
			system->descs[i] = NULL;
			return false;
		}
	}
	return true;
}

/* Takes the name. */
static bool load_system(const char *root, char *name, struct tracepoint_system *system)
{
	char path[512];

	*system = (struct tracepoint_system){.name = name};
	if (snprintf(path, sizeof(path), "%s/%s", root, name) < (int)sizeof(path))
		system->points = list_folders(path, &system->n_points);
	if (system->n_points && describe(system))
		return true;
	free_system(system);
	return false;
}

static void load(void)
{
	for (size_t r = 0; r < sizeof(roots) / sizeof(*roots) && !found.n; r++) {
		size_t n;
		char **names = list_folders(roots[r], &n);

		found.root = roots[r];
		found.systems = n ? calloc(n, sizeof(*found.systems)) : NULL;
		for (size_t i = 0; i < n; i++) {
			if (!found.systems)
				free(names[i]);
			else if (load_system(roots[r], names[i], &found.systems[found.n]))
				found.n++;
		}
		free(names);
		if (!found.n) {
			free(found.systems);
			found.systems = NULL;
		}
	}
	found.known = true;
}

const struct tracepoint_system *tly_pfm_tracepoint_systems(size_t *n)
{
	pthread_mutex_lock(&found.lock);
	if (!found.known)
		load();
	pthread_mutex_unlock(&found.lock);
	*n = found.n;
	return found.systems;
}

bool tly_pfm_tracepoint_id(const struct tracepoint_system *system, size_t point, uint64_t *id)
{
	char path[1024];
	FILE *file;
	bool ok;

	if (snprintf(path, sizeof(path), "%s/%s/%s/id", found.root, system->name,
		     system->points[point]) >= (int)sizeof(path))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	ok = fscanf(file, "%" SCNu64, id) == 1;
	fclose(file);
	return ok;
}

void tly_pfm_tracepoints_forget(void)
{
	pthread_mutex_lock(&found.lock);
	for (size_t i = 0; i < found.n; i++)
		free_system(&found.systems[i]);
	free(found.systems);
	found.systems = NULL;
	found.n = 0;
	found.known = false;
	pthread_mutex_unlock(&found.lock);
}
