/* SPDX-License-Identifier: MIT */
/*
 * The descriptors that the runtime has in every process of a run (abi/handover.h says what they
 * are). To the program they do not exist: calls that name them are made with the number of a
 * descriptor that cannot be, so that the kernel answers what it answers to that; calls that sweep
 * over descriptors leave them out.
 */
#ifndef RUNTIME_LINUX_DESCRIPTORS_H
#define RUNTIME_LINUX_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

struct descriptors {
	int arena, monitor, runtime, program; /* -1: there is none */
};

extern struct descriptors descriptors;

bool descriptors_have(uint64_t fd);

/* A number above the most that the kernel allows. */
#define NEVER_OPEN INT32_MAX

struct syscall;

/* Replaces those of ours among the arguments of a call of the program. */
void descriptors_hide(struct syscall *call);

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

/* Whether all but the program stay open in what is executed next. */
void descriptors_keep(bool keep);

#endif
