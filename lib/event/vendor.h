/* SPDX-License-Identifier: MIT */
/*
 * Events by the names that processors' vendors gave them: [unit::]EVENT[:MASK][:MODIFIER=VALUE]...
 * The tables are libtally-pfm's, through its public interface.
 *
 *	vendor.c	from such a text to an event
 *	vendor_tell.c	what is wrong with one
 *	vendor_walk.c	all that there are
 */
#ifndef LIB_EVENT_VENDOR_H
#define LIB_EVENT_VENDOR_H

#include <perfmon/pfmlib_perf_event.h>

#include "lib/event/nearest.h"
#include "lib/event/parse.h"

/*
 * Appends what stands at @word, whose end *@cursor is at, if it names an event of a unit of this
 * machine, and moves *@cursor past it up to terms or modifiers. Returns 1, 0 when there is no such
 * event, or a negative errno; with a unit ("icl::") never 0.
 */
int tly_vendor_add(struct tly_parse *parse, struct tly_span word, const char **cursor);

/* Says that @word is an event of other processors: -ENOENT, or 0 when it is none. */
int tly_vendor_elsewhere(struct tly_parse *parse, struct tly_span word);

/* Offers the events of this machine's units as suggestions, with masks when some were wanted. */
void tly_vendor_suggest(struct tly_nearest *nearest);

struct tly_vendor_event {
	const char *name;     /* as tly_vendor_add() takes it */
	const char *encoding; /* "r1a2", or "" */
	const char *unit;
	const char *desc;
};

/*
 * Calls @visit for each event of this machine's units, or of all others, with each of its masks.
 * Stops when it returns non-zero, and returns that.
 */
int tly_vendor_walk(bool others, int (*visit)(const struct tly_vendor_event *event, void *ctx),
		    void *ctx);

/* What the three files share. */

enum {
	TLY_VENDOR_NAME = 512,
	TLY_VENDOR_UNITS = 1024, /* numbers of units are less */
};

struct tly_vendor_text {
	char unit[64]; /* of the event, even if it was not named */
	char event[128];
	char attrs[TLY_VENDOR_NAME]; /* from the ':' or '.' on */
	int idx;		     /* of libtally-pfm */
};

/* The unit numbered @id; false when there is none. */
bool tly_vendor_unit(int id, pfm_pmu_info_t *unit);
/* Of the processors or of another piece of this machine, not the kernel's own. */
bool tly_vendor_is_here(const pfm_pmu_info_t *unit);

/* The attribute of the event that is called so, as libtally-pfm compares names. */
bool tly_vendor_attr(int idx, struct tly_span name, pfm_event_attr_info_t *attr);

/* As if typed: "unit::EVENT" and what follows. Returns a PFM_ERR_*. */
int tly_vendor_encode(const char *text, struct perf_event_attr *attr, int *cpu);

/* Says what libtally-pfm found wrong with the text, or with its unit. */
int tly_vendor_wrong(struct tly_parse *parse, const char *at, const struct tly_vendor_text *text,
		     int pfm_error);
int tly_vendor_not_in_unit(struct tly_parse *parse, const char *at, const char *unit,
			   const char *event);

#endif
