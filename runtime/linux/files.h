/* SPDX-License-Identifier: MIT */
/*
 * Paths that are not what the kernel says. /proc/PID/exe leads to tally-rt and should lead to the
 * program. Every process of a run has its program open under the same number, so
 * /proc/PID/fd/NUMBER in its place does, with the kernel's own checks of who may look. (Between an
 * exec and the image's own first work it is the number that has been handed over.) The program sees
 * neither that descriptor nor the runtime's others.
 */
#ifndef RUNTIME_LINUX_FILES_H
#define RUNTIME_LINUX_FILES_H

#include <stdbool.h>
#include <stdint.h>

#define PATH_MAX 4096

/* Whether sys_path() is the handler of that call, if nothing else is. */
bool files_takes_path(uint32_t number);

/* If @path, as seen from @dirfd, is such a link, changes it to the one that leads to the program.
 */
bool files_program_link(int64_t dirfd, char path[PATH_MAX + 16]);

/* Whether @path, as seen from @dirfd, is in a listing of descriptors and one of ours. */
bool files_hidden(int64_t dirfd, const char *path);

/* Whether @path is a link to tally-rt, as only /proc has them. */
bool files_lead_to_runtime(int64_t dirfd, const char *path);

#endif
