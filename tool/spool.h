/* SPDX-License-Identifier: MIT */
/* Makes a pipe into a file that can be read twice. */
#ifndef TOOL_SPOOL_H
#define TOOL_SPOOL_H

#include <tally/error.h>

/*
 * Copies what descriptor @fd still gives into an unnamed file in $TMPDIR (else /tmp) and returns a
 * descriptor of that, at its start. When @fd is a regular file already, a copy of @fd is returned.
 */
int spool_open(int fd, struct tally_error *err);

#endif
