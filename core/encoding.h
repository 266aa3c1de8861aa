/* SPDX-License-Identifier: MIT */
/*
 * How type and config of an attr name what is counted.
 *
 * Raw codes of the virtual PMU are
 *
 *	 63     56 55      48 47              16 15      8 7       0
 *	|    0    |   kind   |   0, or 0x53     |  umask  |  event  |
 *
 * The architectural events of x86 have their event and umask. Everything has a code of our own,
 * kind, in bits that no processor uses, event and umask 0. These numbers stay what they are, since
 * recordings have them: CORE_RAW_NUMBER, and from 240 on what is "top-down". Bits 16, 17, 20 and 22,
 * user, system, interrupt and enable of the register, may be set and mean nothing. On AMD's bits 32
 * to 35 are the upper ones of event.
 */
#ifndef CORE_ENCODING_H
#define CORE_ENCODING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kinds.h"

/* From 1 on, by when they came: groups of enum core_kind, each with the number of its first. */
enum {
	CORE_RAW_MODEL = 10,
	CORE_RAW_FLOATING = 34,
	CORE_RAW_HALF = 47,
	CORE_RAW_LATER_MODEL = 51,
};
#define CORE_RAW_NUMBER(kind)                                                                      \
	((kind) < CORE_FP_SCALAR_DOUBLE ? (kind) + 1                                               \
	 : (kind) < CORE_FP_SCALAR_HALF ? (kind)-CORE_FP_SCALAR_DOUBLE + CORE_RAW_FLOATING         \
	 : (kind) < CORE_BRANCH_MISSES	? (kind)-CORE_FP_SCALAR_HALF + CORE_RAW_HALF               \
	 : (kind) < CORE_BRANCH_MISSES_CONDITIONAL                                                 \
		 ? (kind)-CORE_BRANCH_MISSES + CORE_RAW_MODEL                                      \
		 : (kind)-CORE_BRANCH_MISSES_CONDITIONAL + CORE_RAW_LATER_MODEL)
#define CORE_RAW_KIND(kind) ((uint64_t)CORE_RAW_NUMBER(kind) << CORE_RAW_KIND_SHIFT)
#define CORE_RAW_KIND_SHIFT 48

/* An event as /sys/bus/event_source/devices/cpu/events/ has it. */
struct core_named_event {
	const char *name;
	const char *terms; /* "event=0xc0" */
	uint64_t config;
	uint8_t kind; /* enum core_kind */
	const char *
		elsewhere; /* the terms where that code is another event of the vendor's, or NULL */
	uint64_t own;	   /* a code that means this on every host */
};
extern const struct core_named_event core_named_events[];
extern const size_t core_nr_named_events;

/* The terms of @event on this host. */
const char *core_event_terms(const struct core_named_event *event);

/* A field as .../cpu/format/ has it. */
struct core_format {
	const char *name;
	const char *bits; /* "config:0-7" */
};

/* One after the other, as the host's vendor has them; NULL behind the last. */
const struct core_format *core_format(size_t index);

/*
 * The kind that @attr counts, or -ENOENT: no such type, or nothing that can be counted; -EINVAL:
 * not a code. What lies outside of user code counts as CORE_ZERO.
 */
int core_encoding(const struct perf_event_attr *attr);

/* Whether it is of the unit of probes. */
bool core_encoding_is_probe(const struct perf_event_attr *attr);

/* Whether that takes a counter of the virtual PMU: not software, nor a breakpoint. */
bool core_encoding_is_hardware(const struct perf_event_attr *attr);

#endif
