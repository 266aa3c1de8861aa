/* SPDX-License-Identifier: MIT */
/* The parts of tally_system_probe(). */
#ifndef LIB_PROBE_SYSTEM_H
#define LIB_PROBE_SYSTEM_H

#include <tally/probe.h>

/* What files tell, below a root that tests can choose. */
void tly_system_read(struct tally_system *system, const char *root);
/* Everything but has_pmu and attr_size, for which events have to be opened. */
void tly_system_facts(struct tally_system *system);
/* tally_system.virtualization alone, for which no event has to be opened. */
const char *tly_system_virtualization(void);
/* The same of CPUID's signature, twelve characters, and of what files below @root tell. */
const char *tly_hypervisor(const char *signature, const char *root);

/* See tally_system_ring_budget(); @memlock is RLIMIT_MEMLOCK in bytes, SIZE_MAX for infinite. */
size_t tly_ring_budget(const struct tally_system *system, long cpus, size_t memlock);

#endif
