/* SPDX-License-Identifier: MIT */
/* The parts of tally_system_probe() that read files, below a root that tests can choose. */
#ifndef LIB_PROBE_SYSTEM_H
#define LIB_PROBE_SYSTEM_H

#include <tally/probe.h>

/* Everything but has_syscall, syscall_error, has_pmu, attr_size and virtualization. */
void tly_system_read(struct tally_system *system, const char *root);

/* See tally_system_ring_budget(); @memlock is RLIMIT_MEMLOCK in bytes, SIZE_MAX for infinite. */
size_t tly_ring_budget(const struct tally_system *system, long cpus, size_t memlock);

#endif
