/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/maps, smaps and numa_maps of processes of the run, as files of the program's. What the
 * kernel has opened is read, and what the program gets under that number is a memfd with what it
 * would have read without the runtime (maps_view.h). The kernel says what is so when it is read: so
 * the file is written again when it is read from its beginning.
 */
#ifndef RUNTIME_LINUX_MAPS_FILES_H
#define RUNTIME_LINUX_MAPS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct syscall;

/* Whether a path could be one: most are not, and cost no system call. */
bool maps_files_named(const char *path, size_t length);

/* The program has opened one, perhaps, as @fd: that number is its view from now on, if there is
 * any. */
void maps_files_opened(int fd);

/* The program has made @call: its memory may be otherwise now, or a view have another number as
 * well. */
void maps_files_called(const struct syscall *call, int64_t result);

/* Whether there may be any open. */
bool maps_files_any(void);

/* The program is about to read @fd from @offset on, or, if that is MAPS_FILES_POSITION, from
 * where it is. */
#define MAPS_FILES_POSITION UINT64_MAX
void maps_files_read(int fd, uint64_t offset);

/* Answers fstat(2), newfstatat(2) and statx(2) of a descriptor as the kernel does of the file in
 * /proc; false: it is none. */
bool maps_files_stat(const struct syscall *call, int64_t *result);

#endif
