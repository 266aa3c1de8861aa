/* SPDX-License-Identifier: MIT */
/* perf_event_open(2) with the size of the attr negotiated. */
#ifndef LIB_PROBE_ATTR_OPEN_H
#define LIB_PROBE_ATTR_OPEN_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tally/error.h>

/* The kernel takes no attr above a page, nor stores more than its own size on E2BIG. */
#define TLY_ATTR_MAX 4096

/* An attr that may be written to: attr.size bytes of it are there. */
struct tly_attr_copy {
	union {
		struct perf_event_attr attr;
		uint8_t bytes[TLY_ATTR_MAX];
	};
	uint32_t kernel_size; /* what the last E2BIG said, or 0 */
};

/* Returns false when attr->size is one that no kernel takes. */
bool tly_attr_copy(struct tly_attr_copy *copy, const struct perf_event_attr *attr);

/* One attempt, repeated with the kernel's size where that loses nothing. The descriptor or -errno.
 */
int tly_attr_try(struct tly_attr_copy *copy, pid_t pid, int cpu, int group_fd, unsigned long flags);

/*
 * tally_attr_open() for a caller that knows more: @name is what the user calls the event (NULL:
 * found from the attr), @leader the attr behind @group_fd, or NULL.
 */
int tly_attr_open(const struct perf_event_attr *attr, const char *name,
		  const struct perf_event_attr *leader, pid_t pid, int cpu, int group_fd,
		  unsigned long flags, struct tally_error *err);

#endif
