/* SPDX-License-Identifier: MIT */
/*
 * The devices of /sys/bus/event_source/devices as units, whatever has a table or not:
 *
 *	type		perf_event_attr.type
 *	events/NAME	the events: "event=0x3c,umask=0x01"
 *	format/NAME	the fields, which are modifiers of each event: "config:0-7,32-35"
 *
 * They are read when one is asked for, and found by their name only: msr::tsc.
 */
#ifndef PFM_SYSFS_H
#define PFM_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pfm/table.h"

enum {
	SYSFS_FIRST_ID = 1024, /* of units; those with tables have less */
	SYSFS_MOST_UNITS = 1000,
	SYSFS_MOST_FIELDS = 64, /* of a unit, to be bits of a mask */
	SYSFS_CONFIGS = 3,
};

struct sysfs_field {
	char *name;
	char *desc;
	unsigned int config; /* which of attr.config, config1 and config2 */
	uint64_t bits;
};

struct sysfs_event {
	char *name;
	char *desc;
	uint64_t config[SYSFS_CONFIGS];
};

struct sysfs_unit {
	struct table_pmu pmu; /* without strings */
	char *name;
	char *desc;
	uint32_t type;
	bool core;
	struct sysfs_event *events;
	size_t n_events;
	struct sysfs_field *fields;
	size_t n_fields;
};

/* Sorted by name. They stay as they are until forgotten. */
const struct sysfs_unit *tly_pfm_sysfs_units(size_t *n);
const struct sysfs_unit *tly_pfm_sysfs_find(const char *name, size_t len);
/* By the number of a unit, NULL if there is none. */
const struct sysfs_unit *tly_pfm_sysfs_unit(unsigned int id);

/* Not while another thread uses what the others returned. */
void tly_pfm_sysfs_forget(void);

/* A field's value in the words of attr.config, and a word with it; false if it does not fit. */
uint64_t tly_pfm_field_get(const struct sysfs_field *field, const uint64_t *config);
bool tly_pfm_field_set(const struct sysfs_field *field, uint64_t value, uint64_t *config);

/* "config1:0-7,32"; false if it is something else. */
bool tly_pfm_field_parse(const char *text, struct sysfs_field *field);

#endif
