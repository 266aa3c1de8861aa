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
 * becomes its standard output. The child has no signal blocked; the signals that the caller handles
 * are at their default in it, those that the caller ignores now stay ignored (as nohup(1) wants):
 * prepare before ignoring signals on one's own account.
 * Errors: -EAGAIN, -ENOMEM, -EMFILE; -EINVAL for an empty argv.
 */
int tally_workload_prepare(char *const argv[], int out_fd, struct tally_workload **workload,
			   struct tally_error *err);
/* The child, also after it has ended. */
pid_t tally_workload_pid(const struct tally_workload *workload);

/*
 * Lets it exec, and returns when it has. Returns the negative errno of a failing exec(2): -ENOENT,
 * -EACCES..., -ECHILD when it was killed while it waited; -EINVAL when it was started before.
 */
int tally_workload_start(struct tally_workload *workload, struct tally_error *err);

/*
 * Waits (or polls, when !@block, returning 0 while it runs). Returns 1 once it has ended, with the
 * wait(2) status and the resources used by it and its waited-for children; both may be NULL. May be
 * called again. Errors: -EINTR a signal handler ran, -EINVAL not started, -ECHILD someone else
 * waited for it.
 */
int tally_workload_wait(struct tally_workload *workload, bool block, int *status,
			struct rusage *usage);

/*
 * Ends it if it still waits for its start; releases the object. A running command is left alone.
 * NULL is accepted.
 */
void tally_workload_free(struct tally_workload *workload);

#ifdef __cplusplus
}
#endif

#endif
