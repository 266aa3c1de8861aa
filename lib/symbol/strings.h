/* SPDX-License-Identifier: MIT */
/*
 * Where every name that the symbol library hands out lives: strings are copied in, never moved and
 * freed together, so that a caller may keep a pointer as long as the tally_symbols.
 */
#ifndef LIB_SYMBOL_STRINGS_H
#define LIB_SYMBOL_STRINGS_H

#include <stddef.h>
#include <stdint.h>

struct tly_strings {
	struct tly_strings_block *block; /* newest first */
	size_t left;			 /* bytes unused in it */
	const char **table;		 /* of interned strings; open addressing */
	size_t nr, size;
};

void tly_strings_free(struct tly_strings *strings);

/* A copy of the @len bytes at @text, NUL-terminated. NULL when memory is short. */
const char *tly_strings_add(struct tly_strings *strings, const char *text, size_t len);
/* The one copy of @text: equal strings give equal pointers. NULL when memory is short. */
const char *tly_strings_intern(struct tly_strings *strings, const char *text);

#endif
