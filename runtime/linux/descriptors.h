/* SPDX-License-Identifier: MIT */
/*
 * The descriptors that the runtime has in every process of a run (abi/handover.h says what they
 * are). To the program they do not exist: calls that name them give EBADF, calls that sweep over
 * them leave them out.
 */
#ifndef RUNTIME_LINUX_DESCRIPTORS_H
#define RUNTIME_LINUX_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

struct descriptors {
	int arena, runtime, program; /* -1: there is none */
};

extern struct descriptors descriptors;

bool descriptors_have(uint64_t fd);

/*
 * Gives @fd a number high enough to be out of the program's way, and closes @fd; the new one is
 * closed on exec if @cloexec. Returns it or a negative errno value, and then @fd is still open.
 */
int descriptors_raise(int fd, bool cloexec);

/*
 * Boot: gives the program's descriptor the number that it has in every process of the run, if that
 * is free, and lets exec close it.
 */
void descriptors_settle(void);

/* Whether the arena and the runtime stay open in what is executed next. */
void descriptors_keep(bool keep);

#endif
