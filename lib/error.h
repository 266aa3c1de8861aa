/* SPDX-License-Identifier: MIT */
/* Filling in a struct tally_error; a NULL object is accepted everywhere. */
#ifndef LIB_ERROR_H
#define LIB_ERROR_H

#include <tally/error.h>

/*
 * All return the code, also without an object, so that a failing function ends in `return
 * tly_error(err, -EINVAL, ...)` or in one of the others right after it. tly_error() clears the
 * remedy and the offset, the other two add to it.
 */
int tly_error(struct tally_error *err, int code, const char *what, ...)
	__attribute__((format(printf, 3, 4)));
int tly_error_remedy(struct tally_error *err, const char *remedy, ...)
	__attribute__((format(printf, 2, 3)));
int tly_error_at(struct tally_error *err, uint64_t offset);

#endif
