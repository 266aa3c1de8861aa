/* SPDX-License-Identifier: MIT */
/*
 * The parent of one `tally run`: starts the command under tally-rt and stays until it has ended.
 *
 *	monitor.c	starts, waits, passes signals on
 *	command.c	finds the command as execvp(3) would
 */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include <limits.h>

#include <tally/error.h>

/*
 * Runs @argv under the tally-rt at @runtime, and waits. To whoever looks from outside, the caller
 * is the command: it stops and continues with it, and what other processes send to the caller goes
 * to the command. Signals of the terminal reach both, and end the command alone.
 *
 * Returns 0 with a status of wait(2) in @status, or a negative errno value: -ENOENT when there is
 * no such command, -EACCES when it may not be executed.
 */
int monitor_run(const char *runtime, char *const argv[], int *status, struct tally_error *err);

/* Where execvp(3) would find @name. 0 or a negative errno value. */
int monitor_find_command(const char *name, char path[PATH_MAX]);

#endif
