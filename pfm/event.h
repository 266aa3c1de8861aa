/* SPDX-License-Identifier: MIT */
/*
 * An event string, taken apart.
 *
 * parse.c fills in struct request; an encoder (intel.c, amd64.c...) completes it, with the masks
 * that are default and the values of all modifiers, and makes the codes; name.c writes what came of
 * it.
 */
#ifndef PFM_EVENT_H
#define PFM_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>

#include <perfmon/pfmlib.h>

#include "pfm/sysfs.h"
#include "pfm/table.h"

enum {
	MAX_MASKS = 128, /* of one event; data/compile.py sees to it */
	N_MODS = 13,	 /* bits of enum table_mod */
	MAX_CODES = 4,
};

/* Modifiers that perf_event_open(2) sees to. The numbers are the codes that attributes report. */
enum perf_mod {
	PERF_MOD_U = 0,
	PERF_MOD_K = 1,
	PERF_MOD_H = 2,
	PERF_MOD_PERIOD = 3,
	PERF_MOD_FREQ = 4,
	PERF_MOD_PRECISE = 5,
	PERF_MOD_EXCL = 6,
	PERF_MOD_MG = 7,
	PERF_MOD_MH = 8,
	PERF_MOD_CPU = 9,
	PERF_MOD_PINNED = 10,
	PERF_MOD_HW_SMPL = 11,
	N_PERF_MODS = 12,
};

struct modifier {
	const char *name;
	const char *desc;
	pfm_attr_t type;
};

/* By bit of enum table_mod, and by enum perf_mod. */
extern const struct modifier tly_pfm_mods[N_MODS] __attribute__((visibility("hidden")));
extern const struct modifier tly_pfm_perf_mods[N_PERF_MODS] __attribute__((visibility("hidden")));

/*
 * One of the events of a unit: of its table, a system of tracepoints behind those of "perf", or of
 * a device.
 */
struct event {
	const struct table_pmu *pmu;
	const struct table_event *entry; /* NULL: one of the next is meant */
	const struct tracepoint_system *system;
	const struct sysfs_unit *device;
	unsigned int number; /* within the unit */
};

struct request {
	struct event event;
	pfm_os_t os;
	int plm; /* default levels */

	uint64_t masks[MAX_MASKS / 64];
	unsigned int n_masks;
	int tracepoint;	 /* the mask of a system of tracepoints, or -1 */
	bool names_mask; /* in the string itself */
	bool has_raw;	 /* a mask given by number, or the event of perf_raw */
	uint64_t raw;

	uint64_t config[SYSFS_CONFIGS]; /* of the event of a device */
	uint64_t fields_given;		/* 1 << field of the device */

	unsigned int given; /* of enum table_mod */
	uint64_t value[N_MODS];
	unsigned int perf_given; /* 1 << enum perf_mod */
	uint64_t perf_value[N_PERF_MODS];

	uint64_t codes[MAX_CODES];
	unsigned int n_codes;
};

/*
 * What a string says, for an event of any unit that may be encoded. Also finds out what
 * pfm_find_event() promises. Returns a PFM_ERR_*.
 */
int tly_pfm_parse(const char *string, pfm_os_t os, struct request *request);

/* Complete a request and make its codes. */
int tly_pfm_encode(struct request *request);
int tly_pfm_encode_intel(struct request *request);
int tly_pfm_encode_amd64(struct request *request);
int tly_pfm_encode_arm(struct request *request);
int tly_pfm_encode_perf(struct request *request);

/* What goes to perf_event_open(2), from a request that has its codes. Writes nothing on an error.
 */
int tly_pfm_fill_attr(struct request *request, struct perf_event_attr *attr, int *cpu);

/* The string that says all of it, for free(3); NULL when memory is short. */
char *tly_pfm_full_name(const struct request *request);

/* The modifiers that an event takes: of enum table_mod, and 1 << enum perf_mod. */
unsigned int tly_pfm_mods_of(const struct event *event, pfm_os_t os);
unsigned int tly_pfm_perf_mods_of(const struct event *event, pfm_os_t os);

/*
 * Add the default masks of groups from which none was given, and refuse masks that exclude each
 * other. Sets *bits to the masks' codes, ored.
 */
int tly_pfm_complete_masks(struct request *request, uint64_t *bits);

static inline bool request_has_mask(const struct request *request, unsigned int i)
{
	return request->masks[i / 64] >> (i % 64) & 1;
}

static inline void request_add_mask(struct request *request, unsigned int i)
{
	if (!request_has_mask(request, i))
		request->n_masks++;
	request->masks[i / 64] |= 1ULL << (i % 64);
}

/* The first mask from number i on, -1 if there are no more. */
static inline int request_next_mask(const struct request *request, unsigned int i)
{
	for (unsigned int word = i / 64; word < MAX_MASKS / 64; word++) {
		uint64_t rest = request->masks[word];

		if (word == i / 64)
			rest &= ~0ULL << i % 64;
		if (rest)
			return word * 64 + __builtin_ctzll(rest);
	}
	return -1;
}

static inline const char *unit_name(const struct event *event)
{
	return event->device ? event->device->name : table_string(event->pmu->name);
}

static inline const struct sysfs_event *device_event(const struct event *event)
{
	return &event->device->events[event->number];
}

/* The number of a modifier's bit. */
static inline int mod_index(enum table_mod mod)
{
	return __builtin_ctz(mod);
}

#endif
