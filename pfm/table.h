/* SPDX-License-Identifier: MIT */
/*
 * The compiled table of PMUs, events and unit masks: what data/compile.py writes and pfm/ reads.
 *
 * One read-only block without relocations. A string is an offset into `strings`, 0 is none.
 *
 *   pmus[] ── first_event, n_events ──> lists[] ──> events[] ── first_mask, n_masks ──> masks[]
 *
 * Equal events of different PMUs are one record, and so are equal lists of masks. The order is
 * the one in which events and attributes are numbered. Names are found by one perfect hash over
 * (where, NAME), where NAME counts without regard to case.
 */
#ifndef PFM_TABLE_H
#define PFM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How events of a PMU become codes. */
enum table_encoder {
	TABLE_ENCODE_INTEL = 0,
	TABLE_ENCODE_AMD64 = 1,
	TABLE_ENCODE_ARM = 2,
	TABLE_ENCODE_PERF = 3, /* code is perf_event_attr.config, aux its type */
	TABLE_ENCODE_PERF_RAW = 4,
	TABLE_ENCODE_X86_ARCH = 5, /* ix86arch: code has the unit mask in bits 8-15 */
	TABLE_ENCODE_RAPL = 6,	   /* code is config of the PMU "power" */
	TABLE_ENCODE_AMD64_L3 = 7,
	TABLE_ENCODE_AMD64_NB = 8,  /* northbridge of family 15h */
	TABLE_ENCODE_TALLY = 9,	    /* code is config, on the processor that tally run shows */
	TABLE_ENCODE_ARM_ARCH = 10, /* as Arm: what all of its processors may have */
	TABLE_ENCODE_SYSFS = 100,   /* of no table: pfm/sysfs.h */
};

enum table_vendor { TABLE_INTEL = 0, TABLE_AMD = 1, TABLE_ARM = 2 };

/* Modifiers, numbered as attributes of an event are listed. */
enum table_mod {
	TABLE_MOD_K = 1 << 0,
	TABLE_MOD_U = 1 << 1,
	TABLE_MOD_E = 1 << 2,
	TABLE_MOD_I = 1 << 3,
	TABLE_MOD_C = 1 << 4,
	TABLE_MOD_T = 1 << 5,
	TABLE_MOD_LDLAT = 1 << 6,
	TABLE_MOD_INTX = 1 << 7,
	TABLE_MOD_INTXCP = 1 << 8,
	TABLE_MOD_FE_THRES = 1 << 9,
	TABLE_MOD_H = 1 << 10,
	TABLE_MOD_G = 1 << 11,
	TABLE_MOD_HV = 1 << 12,
};

/* Of events and of masks. */
enum table_flag {
	TABLE_PRECISE = 1 << 0,
	TABLE_SPEC_TRUE = 1 << 1,  /* counts on paths that are not taken, too */
	TABLE_SPEC_FALSE = 1 << 2, /* counts only what retires */
	TABLE_HW_SMPL = 1 << 3,
	/* masks */
	TABLE_DEFAULT = 1 << 4,
	TABLE_NO_COMBO = 1 << 5,	 /* alone in its group */
	TABLE_EXCL_GROUP_GT = 1 << 6,	 /* excludes masks of the groups after its own */
	TABLE_EXCL_GROUP_BUT_0 = 1 << 7, /* excludes masks of all groups but its own and group 0 */
	/* events */
	TABLE_GROUPS_EXCL = 1 << 8, /* masks of one group only */
	TABLE_OFFCORE = 1 << 9,	    /* masks go to the second code (perf: config1) */
	TABLE_FRONTEND = 1 << 10,   /* so do masks above bit 7, and fe_thres */
	TABLE_LDLAT = 1 << 11,	    /* the latency goes to the second code */
	/* masks */
	TABLE_CODE = 1 << 12, /* the code is that of event and mask: it replaces the event's */
};

struct table_pmu {
	uint32_t name;
	uint32_t desc;
	uint32_t devices;     /* names below /sys/bus/event_source/devices, by commas */
	uint16_t id;	      /* pfm_pmu_t */
	uint16_t first_event; /* of lists[] */
	uint16_t n_events;
	uint16_t first_model; /* of models[] */
	uint16_t n_models;
	uint16_t mods; /* all that any event has */
	uint8_t encoder;
	uint8_t type; /* pfm_pmu_type_t */
	uint8_t counters;
	uint8_t fixed;
	uint8_t max_encoding;
	uint8_t edge_needs_counter_mask;
	uint8_t reserved[2];
};

/* family is the implementer and model the part on Arm, where steppings are not told apart. */
struct table_model {
	uint16_t vendor, family, first, last;
	uint8_t first_stepping, last_stepping;
};

struct table_event {
	uint64_t code;
	uint32_t name;
	uint32_t desc;
	uint32_t equiv;
	uint16_t first_mask; /* of masks[] */
	uint16_t n_masks;
	uint16_t mods;
	uint16_t flags;
	uint8_t groups; /* that need a mask; those behind them may go without */
	uint8_t aux;	/* TABLE_ENCODE_PERF: the type */
	uint16_t reserved;
};

struct table_mask {
	uint64_t code;
	uint32_t name;
	uint32_t desc;
	uint32_t equiv;
	uint32_t flags : 14;
	uint32_t mods : 14; /* that the mask has set itself: they cannot be given */
	uint32_t group : 4;
};

struct table {
	uint32_t magic; /* "tpfm" */
	uint32_t size;
	uint32_t n_pmus, pmus; /* count, byte offset of the array */
	uint32_t n_models, models;
	uint32_t n_lists, lists; /* uint16_t: index of events[] */
	uint32_t n_events, events;
	uint32_t n_masks, masks;
	uint32_t n_strings, strings; /* bytes */
	uint32_t n_buckets, buckets; /* uint16_t: displacement of the bucket */
	uint32_t n_slots, slots;     /* uint16_t: index of what is named */
};

/* The table, in read-only memory. */
extern const struct table tly_pfm_table __attribute__((visibility("hidden")));

static inline const void *table_at(uint32_t offset)
{
	return (const char *)&tly_pfm_table + offset;
}

static inline const char *table_string(uint32_t offset)
{
	return offset ? (const char *)table_at(tly_pfm_table.strings) + offset : NULL;
}

static inline const struct table_pmu *table_pmus(void)
{
	return table_at(tly_pfm_table.pmus);
}

static inline const struct table_model *table_models(const struct table_pmu *pmu)
{
	return (const struct table_model *)table_at(tly_pfm_table.models) + pmu->first_model;
}

/* What all processors of an architecture have: asked after a model's own. */
static inline bool table_is_architected(const struct table_pmu *pmu)
{
	return pmu->encoder == TABLE_ENCODE_X86_ARCH || pmu->encoder == TABLE_ENCODE_ARM_ARCH;
}

/* The event numbered i of a PMU; i < pmu->n_events. */
static inline const struct table_event *table_event(const struct table_pmu *pmu, unsigned int i)
{
	const uint16_t *list = table_at(tly_pfm_table.lists);

	return (const struct table_event *)table_at(tly_pfm_table.events) +
	       list[pmu->first_event + i];
}

static inline const struct table_mask *table_masks(const struct table_event *event)
{
	return (const struct table_mask *)table_at(tly_pfm_table.masks) + event->first_mask;
}

/*
 * The PMU, the number of the event of a PMU, the number of the mask of an event, by name, without
 * regard to case; NULL or -1 if there is none. The name need not end in a zero byte.
 */
const struct table_pmu *tly_pfm_table_find_pmu(const char *name, size_t len);
int tly_pfm_table_find_event(const struct table_pmu *pmu, const char *name, size_t len);
int tly_pfm_table_find_mask(const struct table_event *event, const char *name, size_t len);

#endif
