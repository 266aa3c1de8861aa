// SPDX-License-Identifier: MIT
#include "pfm/tracepoints.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pfm/list.h"

static const char *const roots[] = {
	"/sys/kernel/tracing/events",
	"/sys/kernel/debug/tracing/events",
};

static struct list list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
	const char *root;
	struct tracepoint_system *systems;
	size_t n;
} found;

static void free_system(struct tracepoint_system *system)
{
	free(system->name);
	free(system->desc);
	tly_pfm_list_free(system->points, system->n_points);
	if (system->descs)
		tly_pfm_list_free(system->descs, system->n_points);
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
		system->points = tly_pfm_list_names(path, true, &system->n_points);
	if (system->n_points && describe(system))
		return true;
	free_system(system);
	return false;
}

static void load(void)
{
	for (size_t r = 0; r < sizeof(roots) / sizeof(*roots) && !found.n; r++) {
		size_t n;
		char **names = tly_pfm_list_names(roots[r], true, &n);

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
}

const struct tracepoint_system *tly_pfm_tracepoint_systems(size_t *n)
{
	tly_pfm_list_know(&list, load);
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

static void unload(void)
{
	for (size_t i = 0; i < found.n; i++)
		free_system(&found.systems[i]);
	free(found.systems);
	found.systems = NULL;
	found.n = 0;
}

void tly_pfm_tracepoints_forget(void)
{
	tly_pfm_list_forget(&list, unload);
}
