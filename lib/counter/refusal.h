/* SPDX-License-Identifier: MIT */
/* Why perf_event_open(2) said no, as a sentence and a remedy. */
#ifndef LIB_COUNTER_REFUSAL_H
#define LIB_COUNTER_REFUSAL_H

#include <tally/error.h>

#include "lib/counter/attr_open.h"

/* One refused call. */
struct tly_refusal {
	int code; /* negative errno value of the first answer */
	const struct tly_attr_copy *attr;
	const char *name;		      /* what the user calls the event, or NULL */
	const struct perf_event_attr *leader; /* the attr behind group_fd, where it is known */
	pid_t pid;
	int cpu, group_fd;
	unsigned long flags;
};

/* Fills in @err and returns refusal->code. Opens and closes events of its own to find out. */
int tly_refusal_explain(const struct tly_refusal *refusal, struct tally_error *err);

#endif
