/* SPDX-License-Identifier: MIT */
#ifndef TESTS_RUN_KERNELS_MAPS_H
#define TESTS_RUN_KERNELS_MAPS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * /proc/PID/maps of this process as the kernel has it, with what a run adds: read by a child that
 * uses GS, which goes on natively.
 */
bool read_kernels_maps(char *to, size_t size);

#endif
