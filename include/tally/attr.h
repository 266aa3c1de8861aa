/* SPDX-License-Identifier: MIT */
/*
 * Opening one event with every field of perf_event_attr, on any kernel.
 *
 * A struct perf_event_attr here is always read by its own size field, as the kernel reads it (ABI:
 * attr.size): programs built with an older or a newer <linux/perf_event.h> work with one library.
 * All functions are thread-safe.
 */
#ifndef TALLY_ATTR_H
#define TALLY_ATTR_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tally/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * perf_event_open(2) (ABI: arg.entry) with the size negotiated and the refusal explained.
 *
 * When the kernel answers E2BIG, the call is repeated with the kernel's own size if all fields past
 * it are zero. When it refuses, @err says which requested field, bit or flag this kernel lacks, or
 * which right is missing and the command that grants it; finding that out opens and closes events
 * of its own, never the caller's.
 *
 * @attr:     attr->size 0 means PERF_ATTR_SIZE_VER0; unchanged by the call
 * @pid, @cpu, @group_fd, @flags: as perf_event_open(2); PERF_FLAG_FD_CLOEXEC is not implied
 * Returns the file descriptor, which the caller closes, or the negative errno of the kernel's first
 * answer (ABI: errno.*).
 */
int tally_attr_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		    unsigned long flags, struct tally_error *err);

/*
 * Writes the non-zero fields of @attr as "field=value ..." lines of one space each, bits by name,
 * the way debugging output shows them. Always terminated; returns the length it would need.
 */
int tally_attr_format(const struct perf_event_attr *attr, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
