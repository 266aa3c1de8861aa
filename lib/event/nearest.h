/* SPDX-License-Identifier: MIT */
/* The three known names nearest to one that is not known. */
#ifndef LIB_EVENT_NEAREST_H
#define LIB_EVENT_NEAREST_H

#include <stddef.h>

#define TLY_NEAREST	3
#define TLY_NEAREST_MAX 96 /* longer names are neither looked for nor suggested */

struct tly_nearest {
	const char *wanted;
	size_t length;
	struct {
		char name[TLY_NEAREST_MAX];
		unsigned int score;
		size_t length;
	} best[TLY_NEAREST];
	size_t nr;
};

void tly_nearest_init(struct tly_nearest *nearest, const char *wanted, size_t length);

/* Considers @name, and suggests @shown (NULL: the same) when it is near. */
void tly_nearest_consider(struct tly_nearest *nearest, const char *name, const char *shown);

/* "did you mean 'a', 'b' or 'c'?", or "" when nothing was near; returns its length. */
int tly_nearest_format(const struct tly_nearest *nearest, char *buf, size_t size);

/* Damerau-Levenshtein (adjacent transpositions), case ignored; both at most TLY_NEAREST_MAX. */
unsigned int tly_distance(const char *a, size_t a_length, const char *b, size_t b_length);

#endif
