/* SPDX-License-Identifier: MIT */
/* Makes standard input a file that can be read twice. */
#ifndef TOOL_SPOOL_H
#define TOOL_SPOOL_H

#include <tally/error.h>

/*
 * When standard input is not a regular file already, copies what it still gives into an unnamed
 * file in $TMPDIR (else /tmp), which then is standard input. Returns 0 or a negative errno.
 */
int spool_standard_input(struct tally_error *err);

#endif
