/* SPDX-License-Identifier: MIT */
/* What processes of the run know of their own memory, for who looks at their maps. */
#ifndef RUNTIME_LINUX_MAPS_LAYOUT_H
#define RUNTIME_LINUX_MAPS_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/maps_view.h"

/* Of one process, at one time. */
struct maps_known {
	struct maps_layout layout;
	size_t room;	  /* for ranges */
	int pid;	  /* of another; or 0 */
	uint64_t base;	  /* where its tally-rt begins */
	uint64_t changes; /* of the memory map */
};

/* Whether that is this process, be it by the number of one of its threads. */
bool maps_is_own(int pid);

/* What is known now of this process, or of another one of the run that lets itself be read.
 * maps_known_free() afterwards. */
bool maps_known_of(int pid, struct maps_known *known);

/* Whether nothing has changed since: then that is what goes with what the kernel has said
 * meanwhile. */
bool maps_known_still(const struct maps_known *known);

void maps_known_free(struct maps_known *known);

#endif
