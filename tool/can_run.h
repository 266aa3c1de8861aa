/* SPDX-License-Identifier: MIT */
/* Whether `tally run` works on this system, which every command asks that would turn to it. */
#ifndef TOOL_CAN_RUN_H
#define TOOL_CAN_RUN_H

#include <stdbool.h>

#include <tally/error.h>

/* Otherwise says in @why, unless that is NULL, what is missing, and where it is not. */
bool tool_can_run(struct tally_error *why);

#endif
