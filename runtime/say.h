/* SPDX-License-Identifier: MIT */
/* What the runtime tells people: one line on standard error, "tally: ...". */
#ifndef RUNTIME_SAY_H
#define RUNTIME_SAY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes into @to what @format says: %s, %d (int64_t), %u and %x (uint64_t), %c, %%. No more than
 * @size bytes with the terminating zero; returns the length of the text.
 */
size_t format(char *to, size_t size, const char *format, ...);

/* One line, in a single write, of at most 1 KiB. */
void say(const char *format, ...);

/* Says why, and ends the process as one that was never run: exit status 127. */
_Noreturn void die(const char *format, ...);

/* The words for an errno value that opening and executing files give; "error N" for others. */
const char *error_text(int64_t error);

#endif
