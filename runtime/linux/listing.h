/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_LINUX_LISTING_H
#define RUNTIME_LINUX_LISTING_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the folder lists descriptors of a process of this run, or of a thread. */
bool listing_of_descriptors(uint64_t folder);

/* Whether @name is a number and nothing else, as entries there are. */
bool listing_number(const char *name, uint64_t *value);

#endif
