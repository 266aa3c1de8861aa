/* SPDX-License-Identifier: MIT */
/* Telling the monitor (abi/control.h). */
#ifndef RUNTIME_LINUX_CONTROL_H
#define RUNTIME_LINUX_CONTROL_H

#include <stdbool.h>

struct control_message;

/* With descriptor @fd, if that is not -1. False: the monitor is gone, or does not listen. */
bool control_send(const struct control_message *message, int fd);

#endif
