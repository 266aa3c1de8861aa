// SPDX-License-Identifier: MIT
#include "pfm/sysfs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <perfmon/pfmlib_perf_event.h>

#include "pfm/host.h"
#include "pfm/list.h"

static const char root[] = "/sys/bus/event_source/devices";

static struct list list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
	struct sysfs_unit *units;
	size_t n;
} found;

/* A file of one line, without its end; false if it cannot be read or has more. */
static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t length;

	if (!file)
		return false;
	length = fread(line, 1, size - 1, file);
	line[length] = '\0';
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return length > 0 && length < size - 1;
}

static void free_unit(struct sysfs_unit *unit)
{
	for (size_t i = 0; i < unit->n_events; i++) {
		free(unit->events[i].name);
		free(unit->events[i].desc);
	}
	for (size_t i = 0; i < unit->n_fields; i++) {
		free(unit->fields[i].name);
		free(unit->fields[i].desc);
	}
	free(unit->events);
	free(unit->fields);
	free(unit->name);
	free(unit->desc);
}

static bool load_fields(struct sysfs_unit *unit)
{
	char path[PATH_MAX], line[256];
	char **names;
	bool ok = true;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s/format", root, unit->name);
	names = tly_pfm_list_names(path, false, &n);
	unit->fields = calloc(n + 1, sizeof(*unit->fields));
	for (size_t i = 0; unit->fields && i < n && unit->n_fields < SYSFS_MOST_FIELDS; i++) {
		struct sysfs_field *field = &unit->fields[unit->n_fields];

		snprintf(path, sizeof(path), "%s/%s/format/%s", root, unit->name, names[i]);
		if (!read_line(path, line, sizeof(line)) || !tly_pfm_field_parse(line, field))
			continue;
		unit->n_fields++;
		field->name = strdup(names[i]);
		if (asprintf(&field->desc, "the bits %s of the event", line) < 0)
			field->desc = NULL;
		ok = ok && field->name && field->desc;
	}
	tly_pfm_list_free(names, n);
	return unit->fields && ok;
}

static const struct sysfs_field *find_field(const struct sysfs_unit *unit, const char *name)
{
	for (size_t i = 0; i < unit->n_fields; i++)
		if (!strcmp(unit->fields[i].name, name))
			return &unit->fields[i];
	return NULL;
}

/* "event=0x3c,umask=0x01,any"; false for what has to be filled in ("core=?") or is not known. */
static bool parse_event(const struct sysfs_unit *unit, char *terms, uint64_t *config)
{
	char *save = NULL;

	for (char *term = strtok_r(terms, ",", &save); term; term = strtok_r(NULL, ",", &save)) {
		char *value = strchr(term, '='), *end = NULL;
		const struct sysfs_field *field;
		struct sysfs_field whole;
		uint64_t number = 1;

		if (value) {
			*value++ = '\0';
			number = strtoull(value, &end, 0);
			if (end == value || *end)
				return false;
		}
		field = find_field(unit, term);
		if (!field && tly_pfm_field_parse(term, &whole))
			field = &whole;
		if (!field || !tly_pfm_field_set(field, number, config))
			return false;
	}
	return true;
}

static bool load_event(struct sysfs_unit *unit, const char *name)
{
	struct sysfs_event *event = &unit->events[unit->n_events];
	char path[PATH_MAX], terms[1024], measure[64];

	snprintf(path, sizeof(path), "%s/%s/events/%s", root, unit->name, name);
	if (!read_line(path, terms, sizeof(terms)) || !parse_event(unit, terms, event->config)) {
		memset(event, 0, sizeof(*event));
		return true;
	}
	unit->n_events++;
	event->name = strdup(name);
	snprintf(path, sizeof(path), "%s/%s/events/%s.unit", root, unit->name, name);
	if (asprintf(&event->desc, "%s of the device %s%s%s", name, unit->name,
		     read_line(path, measure, sizeof(measure)) ? ", in " : (*measure = '\0', ""),
		     measure) < 0)
		event->desc = NULL;
	return event->name && event->desc;
}

/* The named events, and one that is nothing but its fields. */
static bool load_events(struct sysfs_unit *unit)
{
	char **names;
	char path[PATH_MAX];
	bool ok;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s/events", root, unit->name);
	names = tly_pfm_list_names(path, false, &n);
	unit->events = calloc(n + 2, sizeof(*unit->events));
	ok = unit->events != NULL;
	for (size_t i = 0; ok && i < n; i++)
		ok = load_event(unit, names[i]);
	tly_pfm_list_free(names, n);
	if (!ok || !unit->n_fields)
		return ok;
	unit->events[unit->n_events].name = strdup("raw");
	unit->events[unit->n_events].desc = strdup("any event of the device, by its fields");
	ok = unit->events[unit->n_events].name && unit->events[unit->n_events].desc;
	unit->n_events++;
	return ok;
}

static bool is_core(const char *name, uint32_t type)
{
	char path[PATH_MAX];

	if (type == PERF_TYPE_RAW)
		return true;
	snprintf(path, sizeof(path), "%s/%s/cpus", root, name);
	return access(path, F_OK) == 0;
}

static bool load_unit(const char *name, struct sysfs_unit *unit)
{
	char path[PATH_MAX], type[32];

	*unit = (struct sysfs_unit){.name = NULL};
	/* What they count is given by an address or a name, not by numbers. */
	if (!strcmp(name, "kprobe") || !strcmp(name, "uprobe") || !tly_pfm_may_have(name))
		return false;
	snprintf(path, sizeof(path), "%s/%s/type", root, name);
	if (!read_line(path, type, sizeof(type)))
		return false;
	unit->type = strtoul(type, NULL, 10);
	unit->core = is_core(name, unit->type);
	unit->name = strdup(name);
	if (asprintf(&unit->desc, "device %s of this machine", name) < 0)
		unit->desc = NULL;
	if (unit->name && unit->desc && load_fields(unit) && load_events(unit) && unit->n_events) {
		unit->pmu = (struct table_pmu){
			.encoder = TABLE_ENCODE_SYSFS,
			.type = unit->core ? PFM_PMU_TYPE_CORE : PFM_PMU_TYPE_UNCORE,
			.n_events = unit->n_events,
			.max_encoding = SYSFS_CONFIGS,
		};
		return true;
	}
	free_unit(unit);
	return false;
}

static void load(void)
{
	size_t n;
	char **names = tly_pfm_list_names(root, false, &n);

	found.units = calloc(n + 1, sizeof(*found.units));
	for (size_t i = 0; found.units && i < n && found.n < SYSFS_MOST_UNITS; i++) {
		struct sysfs_unit *unit = &found.units[found.n];

		if (!load_unit(names[i], unit))
			continue;
		unit->pmu.id = SYSFS_FIRST_ID + found.n++;
	}
	tly_pfm_list_free(names, n);
}

const struct sysfs_unit *tly_pfm_sysfs_units(size_t *n)
{
	tly_pfm_list_know(&list, load);
	*n = found.n;
	return found.units;
}

const struct sysfs_unit *tly_pfm_sysfs_find(const char *name, size_t len)
{
	size_t n;
	const struct sysfs_unit *units = tly_pfm_sysfs_units(&n);

	for (size_t i = 0; i < n; i++)
		if (!strncasecmp(units[i].name, name, len) && units[i].name[len] == '\0')
			return &units[i];
	return NULL;
}

const struct sysfs_unit *tly_pfm_sysfs_unit(unsigned int id)
{
	size_t n;
	const struct sysfs_unit *units;

	if (id < SYSFS_FIRST_ID || id >= SYSFS_FIRST_ID + SYSFS_MOST_UNITS)
		return NULL;
	units = tly_pfm_sysfs_units(&n);
	return id - SYSFS_FIRST_ID < n ? &units[id - SYSFS_FIRST_ID] : NULL;
}

static void unload(void)
{
	for (size_t i = 0; i < found.n; i++)
		free_unit(&found.units[i]);
	free(found.units);
	found.units = NULL;
	found.n = 0;
}

void tly_pfm_sysfs_forget(void)
{
	tly_pfm_list_forget(&list, unload);
}
