/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_LINUX_SELF_MEMORY_H
#define RUNTIME_LINUX_SELF_MEMORY_H

#include <stdint.h>

/* The program has opened @path: from now on its writes are looked at if that is its memory. */
void self_memory_opened(const char *path, int64_t fd);

#endif
