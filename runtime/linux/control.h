/* SPDX-License-Identifier: MIT */
/* Telling the monitor (abi/control.h). */
#ifndef RUNTIME_LINUX_CONTROL_H
#define RUNTIME_LINUX_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

struct control_message;

/* With descriptor @fd, if that is not -1. False: the monitor is gone, or does not listen. */
bool control_send(const struct control_message *message, int fd);

/*
 * The read end of a new pipe, as a descriptor of this process, closed on exec if @cloexec; the
 * monitor has the other end, and nobody else ever. Or a negative errno value.
 */
int64_t control_pipe(bool cloexec, uint64_t *inode);

/*
 * Returns when the monitor has seen what has happened until now: events without descriptors are
 * closed, the tasks of processes that are gone have ended. Natively that is true as soon as
 * close(2) or wait(2) returns. A monitor that is asleep is not waited for for long.
 */
void control_settle(void);

/* Returns when the monitor has done what has been sent until now, however long that takes.
 * False: it is gone, or has not for some seconds, as it may be stopped. */
bool control_finish(void);

/*
 * A handler of the program's is about to begin for what kill(2) has sent. True: it is not to, the
 * monitor has passed on what comes by itself.
 */
bool control_handled(int signal, int32_t sender);

/* CONTROL_WAKE; and returns when all that have been sent by anybody are done. */
bool control_wake(const struct control_message *message);
void control_settle_wakes(void);

#endif
