/* SPDX-License-Identifier: MIT */
#ifndef PERFMON_PFMLIB_PERF_EVENT_H
#define PERFMON_PFMLIB_PERF_EVENT_H

/* Event strings made into what perf_event_open(2) takes. */

#include <perfmon/perf_event.h>
#include <perfmon/pfmlib.h>

#pragma GCC visibility push(default)

#ifdef __cplusplus
extern "C" {
#endif

/* The argument of pfm_get_os_event_encoding() for PFM_OS_PERF_EVENT and PFM_OS_PERF_EVENT_EXT. */
typedef struct {
	struct perf_event_attr *attr; /* only what the event says is changed */
	char **fstr;		      /* NULL, or where the full name goes */
	size_t size;		      /* of this struct, set by the caller */
	int idx;		      /* out: the event */
	int cpu;		      /* out: of the modifier cpu=, or -1 */
	int flags;		      /* out: for perf_event_open(2) */
	int pad0;
} pfm_perf_encode_arg_t;

#if __WORDSIZE == 64
#define PFM_PERF_ENCODE_ABI0 40
#else
#define PFM_PERF_ENCODE_ABI0 28
#endif

/* pfm_get_os_event_encoding() for PFM_OS_PERF_EVENT, its arguments one by one. */
extern pfm_err_t pfm_get_perf_event_encoding(const char *str, int dfl_plm,
					     struct perf_event_attr *output, char **fstr, int *idx);

#ifdef __cplusplus
}
#endif

#pragma GCC visibility pop

#endif
