// SPDX-License-Identifier: MIT
#include "lib/event/pmu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/readfile.h"

#define DEVICES "/bus/event_source/devices"

ssize_t tly_pmu_read(const struct tly_pmu *pmu, const char *folder, struct tly_span name,
		     const char *suffix, char *buf, size_t size)
{
	char path[PATH_MAX];
	int n;

	n = snprintf(path, sizeof(path), "%s%s/%.*s%s", pmu->path, folder, TLY_SPAN(name), suffix);
	if (n >= (int)sizeof(path) || memchr(name.at, '/', name.length) ||
	    (name.length && name.at[0] == '.'))
		return -ENOENT;
	return tly_read_file(path, buf, size);
}

static bool has_file(const struct tly_pmu *pmu, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", pmu->path, name) < (int)sizeof(path) &&
	       !access(path, F_OK);
}

int tly_pmu_find(const struct tly_roots *roots, struct tly_span name, struct tly_pmu *pmu)
{
	char text[32];
	uint64_t type;
	int n;

	if (!name.length || name.length >= sizeof(pmu->name) || name.at[0] == '.')
		return -ENOENT;
	snprintf(pmu->name, sizeof(pmu->name), "%.*s", TLY_SPAN(name));
	n = snprintf(pmu->path, sizeof(pmu->path), "%s" DEVICES "/%s", roots->sysfs, pmu->name);
	if (n >= (int)sizeof(pmu->path) ||
	    tly_pmu_read(pmu, "", tly_span_of("type"), "", text, sizeof(text)) < 0 ||
	    !tly_number(tly_span_of(text), &type) || type > UINT32_MAX)
		return -ENOENT;
	pmu->type = type;
	pmu->core = !strcmp(pmu->name, "cpu") || has_file(pmu, "cpus");
	return 0;
}

int tly_pmu_each(const struct tly_roots *roots, int (*visit)(const struct tly_pmu *pmu, void *ctx),
		 void *ctx)
{
	char path[PATH_MAX];
	char **names;
	ssize_t nr;
	int ret = 0;

	if (snprintf(path, sizeof(path), "%s" DEVICES, roots->sysfs) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	nr = tly_read_folder(path, &names);
	if (nr < 0)
		return nr;
	for (ssize_t i = 0; i < nr && !ret; i++) {
		struct tly_pmu pmu;

		if (!tly_pmu_find(roots, tly_span_of(names[i]), &pmu))
			ret = visit(&pmu, ctx);
	}
	free(names);
	return ret;
}

bool tly_pmu_is_attribute(const char *name)
{
	static const char *const suffixes[] = {".unit", ".scale", ".per-pkg", ".snapshot"};
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t n = strlen(suffixes[i]);

		if (length > n && !strcmp(name + length - n, suffixes[i]))
			return true;
	}
	return false;
}

ssize_t tly_pmu_names(const struct tly_pmu *pmu, const char *folder, char ***names)
{
	char path[PATH_MAX];
	ssize_t nr;

	*names = NULL;
	if (snprintf(path, sizeof(path), "%s%s", pmu->path, folder) >= (int)sizeof(path))
		return 0;
	nr = tly_read_folder(path, names);
	return nr < 0 && nr != -ENOMEM ? 0 : nr;
}

ssize_t tly_pmu_find_event(const struct tly_pmu *pmu, struct tly_span name, char *spelt, char *buf,
			   size_t size)
{
	ssize_t length = -ENOENT, nr;
	char **names;

	if (name.length > NAME_MAX)
		return -ENOENT;
	snprintf(spelt, NAME_MAX + 1, "%.*s", TLY_SPAN(name));
	if (tly_pmu_is_attribute(spelt))
		return -ENOENT;
	length = tly_pmu_read(pmu, "/events", name, "", buf, size);
	if (length != -ENOENT)
		return length;
	nr = tly_pmu_names(pmu, "/events", &names);
	if (nr < 0)
		return nr;
	for (ssize_t i = 0; i < nr; i++)
		if (!strcasecmp(names[i], spelt) && !tly_pmu_is_attribute(names[i])) {
			strcpy(spelt, names[i]);
			length = tly_pmu_read(pmu, "/events", tly_span_of(spelt), "", buf, size);
			break;
		}
	free(names);
	return length;
}

struct walking {
	int (*visit)(const struct tly_pmu *pmu, const char *event, const char *encoding, void *ctx);
	void *ctx;
};

static int walk_events(const struct tly_pmu *pmu, void *ctx)
{
	const struct walking *walking = ctx;
	char encoding[1024];
	char **names;
	ssize_t nr;
	int ret;

	ret = walking->visit(pmu, NULL, NULL, walking->ctx);
	if (ret)
		return ret;
	nr = tly_pmu_names(pmu, "/events", &names);
	if (nr < 0)
		return nr;
	for (ssize_t i = 0; i < nr && !ret; i++)
		if (!tly_pmu_is_attribute(names[i]) &&
		    tly_pmu_read(pmu, "/events", tly_span_of(names[i]), "", encoding,
				 sizeof(encoding)) >= 0)
			ret = walking->visit(pmu, names[i], encoding, walking->ctx);
	free(names);
	return ret;
}

int tly_pmu_walk(const struct tly_roots *roots,
		 int (*visit)(const struct tly_pmu *pmu, const char *event, const char *encoding,
			      void *ctx),
		 void *ctx)
{
	struct walking walking = {.visit = visit, .ctx = ctx};

	return tly_pmu_each(roots, walk_events, &walking);
}

static int suggest_event(const struct tly_pmu *pmu, const char *event, const char *encoding,
			 void *ctx)
{
	char full[2 * NAME_MAX + 4];

	(void)encoding;
	if (event) {
		snprintf(full, sizeof(full), "%s/%s/", pmu->name, event);
		tly_nearest_consider(ctx, event, full);
	}
	return 0;
}

void tly_pmu_suggest(const struct tly_roots *roots, struct tly_nearest *nearest)
{
	tly_pmu_walk(roots, suggest_event, nearest);
}

struct collecting {
	struct tly_pmu *pmus;
	int nr;
};

static int collect_core(const struct tly_pmu *pmu, void *ctx)
{
	struct collecting *collecting = ctx;
	struct tly_pmu *grown;

	if (!pmu->core)
		return 0;
	grown = reallocarray(collecting->pmus, collecting->nr + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[collecting->nr++] = *pmu;
	collecting->pmus = grown;
	return 0;
}

int tly_pmu_cores(const struct tly_roots *roots, struct tly_pmu **pmus)
{
	struct collecting collecting = {0};
	char path[PATH_MAX];
	int ret;

	*pmus = NULL;
	/* A unit called cpu is the only one: most machines answer with one system call. */
	if (snprintf(path, sizeof(path), "%s" DEVICES "/cpu", roots->sysfs) < (int)sizeof(path) &&
	    !access(path, F_OK))
		return 0;
	ret = tly_pmu_each(roots, collect_core, &collecting);
	if (collecting.nr < 2 || ret == -ENOMEM) {
		free(collecting.pmus);
		return ret == -ENOMEM ? ret : 0;
	}
	*pmus = collecting.pmus;
	return collecting.nr;
}

uint64_t tly_pmu_generic_config(const struct tly_pmu *pmu, uint64_t config)
{
	/* The unit of machines with one kind of core is implied, also by kernels before 5.13. */
	return pmu->type == PERF_TYPE_RAW ? config : (uint64_t)pmu->type << 32 | config;
}
