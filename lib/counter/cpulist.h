/* SPDX-License-Identifier: MIT */
/* Lists of processors as sysfs writes them: "0-3,8". */
#ifndef LIB_COUNTER_CPULIST_H
#define LIB_COUNTER_CPULIST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Parses @text, a newline at its end allowed, into an array in the order given, to be freed.
 * Returns 0, -EINVAL or -ENOMEM. An empty list is no error.
 */
int tly_cpulist_parse(const char *text, int **cpus, size_t *nr);
/* The processors that are online now. */
int tly_cpulist_online(int **cpus, size_t *nr);
bool tly_cpulist_has(const int *cpus, size_t nr, int cpu);

#endif
