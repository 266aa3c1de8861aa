/* SPDX-License-Identifier: MIT */
/*
 * From an event's name, as people type it to perf, to a struct perf_event_attr.
 *
 *	struct tally_events *events = tally_events_new();
 *	struct tally_error err;
 *
 *	if (tally_events_parse(events, "{cycles,instructions}:u,sched:sched_*", 0, &err))
 *		fprintf(stderr, "%s\n%s\n", err.what, err.remedy);
 *
 * Accepted: generic hardware, software and cache names with their aliases; rNNN; type:config;
 * pmu/term=value,.../ with what sysfs says of the unit; sys:event with globs;
 * vendors' names of events, [unit::]EVENT[:MASK]..., as libtally-pfm has them (L2_RQSTS:MISS);
 * mem:addr[/len][:rwx]; kprobe:, kretprobe:, uprobe: and uretprobe: with func[+offset] or
 * path:symbol[+offset]; {a,b,c} groups; modifiers u k h H G I p pp ppp P S D W e; the per-event
 * terms period, freq, name, call-graph, stack-size, max-stack, aux-output, aux-sample-size, config,
 * config1, config2, config3. tally-list(1) describes the grammar.
 *
 * Nothing here needs a privilege or opens an event. An event list belongs to its creator and is not
 * locked: one thread at a time may change it, any number may read one that no thread changes.
 */
#ifndef TALLY_EVENT_H
#define TALLY_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally_events;

enum tally_callgraph {
	TALLY_CALLGRAPH_UNSET, /* the event did not say: the caller's default applies */
	TALLY_CALLGRAPH_NONE,
	TALLY_CALLGRAPH_FP,    /* PERF_SAMPLE_CALLCHAIN */
	TALLY_CALLGRAPH_DWARF, /* PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER */
	TALLY_CALLGRAPH_LBR,   /* PERF_SAMPLE_BRANCH_CALL_STACK */
};

/* tally_event.flags */
#define TALLY_EVENT_PERIOD	(1u << 0) /* a period= term set attr->sample_period */
#define TALLY_EVENT_FREQ	(1u << 1) /* a freq= term set attr->sample_freq */
#define TALLY_EVENT_WEAK	(1u << 2) /* modifier W: leave the group when the group won't fit */
#define TALLY_EVENT_PRECISE_MAX (1u << 3) /* modifier P: the highest precise_ip that opens */
#define TALLY_EVENT_NAMED	(1u << 4) /* a name= term chose tally_event.name */
#define TALLY_EVENT_MODIFIED	(1u << 5) /* u, k, h, G or H chose the exclude_ bits */
#define TALLY_EVENT_LEADER_SAMPLING                                                                \
	(1u << 6) /* modifier S: only the leader samples, with the group's values */
#define TALLY_EVENT_PER_PACKAGE (1u << 7) /* sysfs: counts for a whole package, as cpus has it */
#define TALLY_EVENT_SNAPSHOT	(1u << 8) /* sysfs: a value of the moment, not a sum */

/*
 * One event of a list. Its attr counts; of what sampling needs it has only what terms and modifiers
 * said. A generic event is one event for each kind of core of the machine. The strings and attr
 * belong to the list. A caller may change *attr (within attr->size bytes) before opening it;
 * nothing else.
 *
 * attr->size may exceed sizeof(struct perf_event_attr) of the header you compiled with, when the
 * name set a later field (config3): pass the pointer on, never a copy by assignment.
 */
struct tally_event {
	const char *name;	      /* as typed, or as its name= term says: what reports show */
	struct perf_event_attr *attr; /* ABI: attr.*; ready for perf_event_open(2) to count */
	size_t leader;		      /* index of the group's leader: its own when it leads */
	const char *pmu;	      /* unit in /sys/bus/event_source/devices, "" if implied */
	const char *unit;	      /* of the scaled value, as sysfs says ("Joules"), or "" */
	double scale;		      /* value * scale is in @unit; 1.0 when there is none */
	const char *cpus;	      /* cpu list the unit must be opened on (cpumask), or "" */
	enum tally_callgraph callgraph;
	uint32_t stack_size; /* bytes, with TALLY_CALLGRAPH_DWARF; 0 is the default */
	uint32_t flags;	     /* TALLY_EVENT_* */
};

/* Returns an empty list, or NULL when memory is short. Release with tally_events_free(). */
struct tally_events *tally_events_new(void);
void tally_events_free(struct tally_events *events);

/*
 * Parses @text, a comma-separated list as given to perf's -e, and appends what it names to @events.
 * On failure the list is as it was. @flags is 0.
 *
 * Errors: -EINVAL malformed (err->offset is the position in @text), -ENOENT no such event (the
 * remedy names the nearest three), -EACCES tracefs or a probe's binary may not be read, -ENOTSUP
 * this machine has no such unit or tracing facility, -ENOMEM.
 */
int tally_events_parse(struct tally_events *events, const char *text, unsigned int flags,
		       struct tally_error *err);

size_t tally_events_count(const struct tally_events *events);

/* Returns the event at @index, or NULL past the end. Valid until the list is freed. */
struct tally_event *tally_events_at(const struct tally_events *events, size_t index);

/*
 * Moves the events from @first on into a new list *@rest, with their filters; pointers to them stay
 * valid. For lists that are opened on different targets. Errors: -EINVAL @first is past the end or
 * inside of a group, -ENOMEM; then nothing has changed.
 */
int tally_events_split(struct tally_events *events, size_t first, struct tally_events **rest);

/*
 * Sets the tracepoint filter (ABI: ioctl.set_filter) that opening the event applies, for the last
 * event of the list, as perf's --filter does; it takes the place of one set before. -EINVAL when
 * that event is no tracepoint or probe, or the list is empty; -ENOMEM.
 */
int tally_events_set_filter(struct tally_events *events, const char *filter,
			    struct tally_error *err);
/* That filter, or NULL. */
const char *tally_event_filter(const struct tally_event *event);

/*
 * The canonical name of what @attr asks for ("cycles", "sched:sched_switch", "r1a2",
 * "mem:0x1000/8:w"), for an attr that came without one, as from a file. Writes at most @size bytes,
 * always terminated; returns the length it would need.
 */
int tally_event_name(const struct perf_event_attr *attr, char *buf, size_t size);

/* The kinds of event that a machine can have, in the order in which they are enumerated. */
enum tally_event_kind {
	TALLY_EVENT_HARDWARE,
	TALLY_EVENT_SOFTWARE,
	TALLY_EVENT_CACHE,
	TALLY_EVENT_PMU,
	TALLY_EVENT_TRACEPOINT,
	TALLY_EVENT_RAW,
	TALLY_EVENT_BREAKPOINT,
	TALLY_EVENT_PROBE,
	TALLY_EVENT_VENDOR,  /* of this machine's processor, by its vendor's names */
	TALLY_EVENT_FOREIGN, /* of processors that this machine has not: these are not accepted */
};
#define TALLY_EVENT_KINDS 10

/* One entry of the enumeration; the strings are valid during the callback only. */
struct tally_event_info {
	enum tally_event_kind kind;
	/*
	 * What tally_events_parse() accepts. Where a part of it is to be chosen (raw, breakpoint
	 * and probe events) that part stands in capitals: "mem:ADDRESS[/LENGTH][:rwx]".
	 */
	const char *name;
	const char *alias;    /* its other name ("cpu-cycles" for "cycles"), or "" */
	const char *pmu;      /* or "" */
	const char *encoding; /* pmu/term=value/ or rHEX that it stands for, or "" */
	const char *unit;     /* or "" */
	const char *desc;     /* one line: what is counted; "" for tracepoints, which have fields */
};

/*
 * Calls @visit for every event name of this machine whose kind is in @kinds (a mask of
 * 1u << enum tally_event_kind), kind by kind; units and tracepoints are sorted by name. Names are
 * listed whether or not opening them would succeed. Stops early, returning its value, when @visit
 * returns non-zero.
 * Errors: -ENOMEM; kinds whose sysfs or tracefs folder cannot be read are left out.
 */
int tally_events_enumerate(unsigned int kinds,
			   int (*visit)(const struct tally_event_info *info, void *ctx), void *ctx,
			   struct tally_error *err);

/* One field of a tracepoint's record; the strings are valid during the callback only. */
struct tally_tracepoint_field {
	const char *name;
	const char *type; /* as the kernel declares it: "char[16]", "__data_loc char[]" */
	uint32_t offset;  /* in PERF_SAMPLE_RAW's data */
	uint32_t size;
	bool is_signed;
};

/*
 * Calls @visit for each field of the tracepoint @name ("sched:sched_switch") that is its own, not
 * common to all. Stops early, returning its value, when @visit returns non-zero. Errors: those of
 * tally_events_parse() for that name, -EINVAL when the kernel's description is not understood.
 */
int tally_tracepoint_fields(const char *name,
			    int (*visit)(const struct tally_tracepoint_field *field, void *ctx),
			    void *ctx, struct tally_error *err);

#ifdef __cplusplus
}
#endif

#endif
