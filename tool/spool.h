/* SPDX-License-Identifier: MIT */
/* Makes standard input a file that can be read twice. */
#ifndef TOOL_SPOOL_H
#define TOOL_SPOOL_H

#include <stdbool.h>

#include <tally/error.h>

/*
 * When standard input is not a regular file already, copies what it still gives into an unnamed
 * file in $TMPDIR (else /tmp), which then is standard input. Returns 0 or a negative errno.
 */
int spool_standard_input(struct tally_error *err);

/*
 * Whether standard input is a pipe with a recording that was made for one (perf record -o -), which
 * can be read while it is made. Waits for its first bytes and leaves them where they are.
 */
bool spool_is_stream(void);
/* Whether more of standard input could be read without waiting. */
bool spool_has_more(void);

#endif
