/* SPDX-License-Identifier: MIT */
/*
 * What went wrong, and what to change.
 *
 * Every libtally function that can fail returns a negative errno value (or NULL with the value in
 * the error object) and, where it takes a struct tally_error, fills in one sentence that says what
 * failed and one that says what to do about it. The object belongs to the caller, needs no
 * initialisation and no release, and may be NULL when the caller only wants the number.
 */
#ifndef TALLY_ERROR_H
#define TALLY_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TALLY_NO_OFFSET UINT64_MAX

struct tally_error {
	int code;	  /* negative errno value; 0 after success */
	uint64_t offset;  /* byte offset in the file or string concerned, or TALLY_NO_OFFSET */
	char what[384];	  /* what failed and why; no trailing full stop or newline */
	char remedy[384]; /* what to change, often a command to type; may be empty */
};

#ifdef __cplusplus
}
#endif

#endif
