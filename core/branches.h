/* SPDX-License-Identifier: MIT */
/* The branch stack of a sample: the caller's last branches that attr.branch_sample_type asks for.
 */
#ifndef CORE_BRANCHES_H
#define CORE_BRANCHES_H

#include <linux/perf_event.h>
#include <stddef.h>

/* As deep as processors have it. */
#define CORE_BRANCH_STACK 32

/* Newest first; returns how many. */
size_t core_branches(const struct perf_event_attr *attr,
		     struct perf_branch_entry to[static CORE_BRANCH_STACK]);

#endif
