/* SPDX-License-Identifier: MIT */
/* Why perf_event_open(2) refused, from its errno and the facts of the machine. */
#ifndef LIB_PROBE_REFUSAL_H
#define LIB_PROBE_REFUSAL_H

#include <tally/probe.h>

/* What was asked for, as far as the refusal can depend on it. */
struct tly_need {
	/* The highest perf_event_paranoid at which anybody may, or TLY_PRIVILEGED. */
	int paranoid;
	bool sys_admin;	  /* CAP_PERFMON is not enough, it takes CAP_SYS_ADMIN */
	bool pmu;	  /* a hardware event */
	const char *what; /* "kernel code", "all processes": completes "... needs" */
};

/* No setting opens it to everybody: CAP_PERFMON is needed. */
#define TLY_PRIVILEGED (-2)

/*
 * Fills in @err for the negative errno value @code and returns the verdict. Equal causes give equal
 * texts, so that a report can show each once.
 */
enum tally_verdict tly_refusal(const struct tally_system *system, const struct tly_need *need,
			       int code, struct tally_error *err);

#endif
