/* SPDX-License-Identifier: MIT */
/*
 * A command started but held before its exec(2), so that events with enable_on_exec can be attached
 * to it first. One workload belongs to one thread.
 */
#ifndef TALLY_WORKLOAD_H
#define TALLY_WORKLOAD_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <tally/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally_workload;

/*
 * Forks a child that waits. argv ends with NULL and is looked up in PATH; @out_fd, when not -1,
 * becomes its standard output. Errors: -EAGAIN, -ENOMEM from fork(2).
 */
int tally_workload_prepare(char *const argv[], int out_fd, struct tally_workload **workload,
			   struct tally_error *err);
pid_t tally_workload_pid(const struct tally_workload *workload);

/* Lets it exec. Returns the negative errno of a failing exec(2): -ENOENT, -EACCES... */
int tally_workload_start(struct tally_workload *workload, struct tally_error *err);

/*
 * Waits (or polls, when !@block, returning 0 while it runs). Returns 1 once it has ended, with the
 * wait(2) status and the resources used by it and its waited-for children.
 */
int tally_workload_wait(struct tally_workload *workload, bool block, int *status,
			struct rusage *usage);

/* Kills it if it still waits for its start; releases the object. A running command is left alone.
 */
void tally_workload_free(struct tally_workload *workload);

#ifdef __cplusplus
}
#endif

#endif
