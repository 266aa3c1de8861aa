/* SPDX-License-Identifier: MIT */
/*
 * An event for each thread on each processor takes more descriptors than the usual soft limit
 * allows. The hard limit is there to be used, but by us alone: programs that call select(2) break
 * above 1024, so a command has to be forked before the limit is raised, or after it was restored.
 */
#ifndef TOOL_DESCRIPTORS_H
#define TOOL_DESCRIPTORS_H

#include <sys/resource.h>

/* Raises the soft limit to the hard one; *@before, if not NULL, is for taking that back. */
void tool_raise_descriptors(struct rlimit *before);
/* What is open above the limit stays open. */
void tool_restore_descriptors(const struct rlimit *before);

#endif
