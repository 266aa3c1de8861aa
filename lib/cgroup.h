/* SPDX-License-Identifier: MIT */
#ifndef LIB_CGROUP_H
#define LIB_CGROUP_H

#include <stdbool.h>

#include <tally/error.h>

/* Whether @fd is open on a file system of cgroups. */
bool tly_is_cgroup(int fd);

/*
 * Opens the folder of a cgroup: @name is a folder of a cgroup file system, or is found below the
 * mount of the v1 perf_event hierarchy or, where there is none, of the unified one. Returns a
 * descriptor or a negative errno value.
 */
int tly_cgroup_open(const char *name, struct tally_error *err);

/*
 * Makes the kernel keep the time of the cgroups on @cpu truly for as long as the descriptor that is
 * returned stays open: to be called before events on @cgroup are opened there. Returns -1 where
 * that is refused, as the events will be too.
 */
int tly_cgroup_keep_time(int cgroup, int cpu);

#endif
