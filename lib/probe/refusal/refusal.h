/* SPDX-License-Identifier: MIT */
/*
 * Why perf_event_open(2) said no, as a sentence and a remedy: the documented causes of each errno
 * (ABI: errno.*, attr.*, arg.*), one row for each, from those that the arguments prove to those
 * that take asking. A row may hold only when what it says is certain.
 *
 *	refusal.c   walks the rows and writes the sentence
 *	call.c attr.c target.c rights.c event.c   the rows, in this order
 *	machine.c   what they say depends on where this runs: a container, a virtual machine
 *	probe.c	    asks the kernel: is there a PMU, which part of the attr is it
 *
 * All messages about it come from here, so that each part of the tool says the same.
 */
#ifndef LIB_PROBE_REFUSAL_REFUSAL_H
#define LIB_PROBE_REFUSAL_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#include <tally/error.h>
#include <tally/probe.h>

#include "lib/probe/attr_open.h"

/* One refused call, and what is found out about it. */
struct tly_refusal {
	int code; /* negative errno value of the first answer */
	const struct tly_attr_copy *attr;
	const char *name;		      /* what the user calls the event, or NULL */
	const struct perf_event_attr *leader; /* the attr behind group_fd, where it is known */
	pid_t pid;
	int cpu, group_fd;
	unsigned long flags;
	const struct tally_system *system; /* what is known of it, or NULL: look at this one */

	struct tally_system facts; /* of tly_refusal_system() */
	char detail[160];	   /* {detail} of the sentences: set by the cause that holds */
};

/*
 * A cause of refusal. In the texts {event} {detail} {pid} {cpu} {type} {error} {paranoid} stand for
 * what is known of this refusal. {perfmon} is "CAP_PERFMON, which this process lacks", {perfmon
 * right} how it would get that, {admin} and {admin right} the same for CAP_SYS_ADMIN; {sysctl} is
 * followed by "=" and the level of paranoia that would do; {filter} is how to lift a seccomp
 * filter, {machine} what this runs on and {pmu} how that gets a PMU. Ways in a remedy are joined by
 * ", or ".
 */
struct tly_cause {
	int code; /* negative errno value of the kernel's answer, or 0: any */
	bool (*holds)(struct tly_refusal *refusal); /* NULL ends a table */
	const char *what;			    /* ends the sentence "cannot open EVENT: ..." */
	const char *remedy;			    /* a sentence or a command */
};

/* Searched in this order; the last row of the last table holds always. */
extern const struct tly_cause tly_causes_of_call[];
extern const struct tly_cause tly_causes_of_attr[];
extern const struct tly_cause tly_causes_of_target[];
extern const struct tly_cause tly_causes_of_rights[];
extern const struct tly_cause tly_causes_of_event[];

/*
 * Fills in @err with "cannot open EVENT: " and the cause, and returns refusal->code. Opens and
 * closes events of its own to find out.
 */
int tly_refusal_explain(struct tly_refusal *refusal, struct tally_error *err);
/* The same without these words in front; never returns TALLY_CAN. */
enum tally_verdict tly_refusal_cause(struct tly_refusal *refusal, struct tally_error *err);

void tly_refusal_detail(struct tly_refusal *refusal, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The value of attr.@field, 0 where the attr ends before it; bits and masks are read through the
 * table, as the attr may be shorter than the header's struct.
 */
uint64_t tly_refusal_get(const struct tly_refusal *refusal, const char *field);
/* Whether all of these bits of sample_type are set. */
bool tly_refusal_samples(const struct tly_refusal *refusal, uint64_t bits);
bool tly_refusal_system_wide(const struct tly_refusal *refusal);
/* Sets the detail to the name of the unit in sysfs whose type the attr has. */
bool tly_refusal_find_unit(struct tly_refusal *refusal);
/* What there is to know of machine and process, read when it is first asked for. */
const struct tally_system *tly_refusal_system(struct tly_refusal *refusal);
bool tly_refusal_kernel_breakpoint(const struct tly_refusal *refusal);
/* For rows that their errno alone decides. */
bool tly_refusal_always(struct tly_refusal *refusal);

#define TLY_UNITS "/sys/bus/event_source/devices"

/* machine.c: the placeholders that depend on where this runs. */
void tly_write_perfmon(struct tly_refusal *refusal, char *buf, size_t size);
void tly_write_perfmon_right(struct tly_refusal *refusal, char *buf, size_t size);
void tly_write_admin(struct tly_refusal *refusal, char *buf, size_t size);
void tly_write_admin_right(struct tly_refusal *refusal, char *buf, size_t size);
void tly_write_sysctl(struct tly_refusal *refusal, char *buf, size_t size);
void tly_write_filter(struct tly_refusal *refusal, char *buf, size_t size);
void tly_write_machine(struct tly_refusal *refusal, char *buf, size_t size);
void tly_write_pmu(struct tly_refusal *refusal, char *buf, size_t size);

/* The remedy where rights do not help. */
#define TLY_SEE_LOCKDOWN                                                                           \
	"see /sys/kernel/security/lockdown and the audit log (SELinux: ausearch -m avc)"

/* -errno of opening an event that needs no right beyond the call itself; 0 if it opens. */
int tly_probe_call(void);
/* Whether @code is one of those with which a kernel says that it has no such event. */
bool tly_is_unsupported(int code);
/* Whether any generic hardware event opens. */
bool tly_probe_pmu(void);
/* Whether the same attr opens, disabled, on the calling thread and without a group. */
bool tly_probe_on_self(const struct tly_refusal *refusal);
/* The same for the event alone: type and config with nothing else asked for. */
bool tly_probe_bare(const struct tly_refusal *refusal);
/* 0 or -errno of the same with attr.@field set to @value. */
int tly_probe_changed(const struct tly_refusal *refusal, const char *field, uint64_t value);
/* Whether it opens on its own target outside of the group. */
bool tly_probe_without_group(const struct tly_refusal *refusal);

/*
 * Finds the smallest part of what the attr asks for with which the open still fails in the same
 * way, and sets the detail to its names: "PERF_SAMPLE_AUX", or two joined by " with ". Returns how
 * many there are, 0 if it is none of what can be left out.
 */
int tly_probe_features(struct tly_refusal *refusal, bool *known);

#endif
