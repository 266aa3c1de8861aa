/* SPDX-License-Identifier: MIT */
/* One look into /proc/self/maps. */
#ifndef RUNTIME_LINUX_PROC_MAPS_H
#define RUNTIME_LINUX_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct maps_entry {
	uint64_t start, end;
	unsigned int prot; /* PROT_... */
};

/* The mapping around @at; false when there is none, or no /proc. */
bool maps_find(uint64_t at, struct maps_entry *entry);

#endif
