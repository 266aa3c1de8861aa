/* SPDX-License-Identifier: MIT */
/* The cgroups of a recording: from the numbers in samples to paths. */
#ifndef TOOL_CGROUPS_H
#define TOOL_CGROUPS_H

#include <stdint.h>

#include <tally/record.h>

struct cgroups;

struct cgroups *cgroups_new(void);
void cgroups_free(struct cgroups *cgroups);
/* Takes in a PERF_RECORD_CGROUP; every other record is ignored. */
void cgroups_feed(struct cgroups *cgroups, const struct tally_record *record);
/* "/system.slice/ssh.service"; "[unknown]" when no record named it. Valid until cgroups_free(). */
const char *cgroups_path(const struct cgroups *cgroups, uint64_t id);

#endif
