// SPDX-License-Identifier: MIT
#include "lib/event/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

unsigned int tly_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	/* Three rows of the matrix are enough: a transposition looks two rows back. */
	unsigned int rows[3][TLY_NEAREST_MAX + 1];
	unsigned int *before = rows[0], *above = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_length; j++)
		above[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = min(min(above[j], row[j - 1]) + 1,
				     above[j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				row[j] = min(row[j], before[j - 2] + 1);
		}
		unsigned int *free_row = before;

		before = above;
		above = row;
		row = free_row;
	}
	return above[b_length];
}

void tly_nearest_init(struct tly_nearest *nearest, const char *wanted, size_t length)
{
	nearest->wanted = wanted;
	nearest->length = length;
	nearest->nr = 0;
}

/*
 * How far @name is from what was wanted, in half typing errors: letters that are missing count
 * half, and the start of a name, or a part of it, is what people remember of it.
 */
static unsigned int score(const struct tly_nearest *nearest, const char *name, size_t length)
{
	unsigned int excess = length > nearest->length ? length - nearest->length : 0;

	if (nearest->length >= 3 && excess) {
		if (!strncasecmp(name, nearest->wanted, nearest->length))
			return 1;
		for (size_t i = 1; i + nearest->length <= length; i++)
			if (!strncasecmp(name + i, nearest->wanted, nearest->length))
				return 3;
	}
	return 2 * tly_distance(nearest->wanted, nearest->length, name, length) - excess;
}

static bool nearer(unsigned int score_a, size_t length_a, unsigned int score_b, size_t length_b)
{
	return score_a < score_b || (score_a == score_b && length_a < length_b);
}

void tly_nearest_consider(struct tly_nearest *nearest, const char *name, const char *shown)
{
	size_t length = strlen(name), at;
	unsigned int s;

	if (!shown)
		shown = name;
	if (!length || length > TLY_NEAREST_MAX || strlen(shown) >= TLY_NEAREST_MAX ||
	    !nearest->length || nearest->length > TLY_NEAREST_MAX)
		return;
	s = score(nearest, name, length);
	for (size_t i = 0; i < nearest->nr; i++)
		if (!strcmp(nearest->best[i].name, shown))
			return;
	for (at = nearest->nr;
	     at > 0 && nearer(s, length, nearest->best[at - 1].score, nearest->best[at - 1].length);
	     at--)
		if (at < TLY_NEAREST)
			nearest->best[at] = nearest->best[at - 1];
	if (at == TLY_NEAREST)
		return;
	strcpy(nearest->best[at].name, shown);
	nearest->best[at].score = s;
	nearest->best[at].length = length;
	if (nearest->nr < TLY_NEAREST)
		nearest->nr++;
}

int tly_nearest_format(const struct tly_nearest *nearest, char *buf, size_t size)
{
	unsigned int nr = 0;

	/* Past half of the letters wrong it is another word. */
	while (nr < nearest->nr && nearest->best[nr].score <= nearest->length)
		nr++;
	switch (nr) {
	case 1:
		return snprintf(buf, size, "did you mean '%s'?", nearest->best[0].name);
	case 2:
		return snprintf(buf, size, "did you mean '%s' or '%s'?", nearest->best[0].name,
				nearest->best[1].name);
	case 3:
		return snprintf(buf, size, "did you mean '%s', '%s' or '%s'?",
				nearest->best[0].name, nearest->best[1].name,
				nearest->best[2].name);
	default:
		return snprintf(buf, size, "%s", "");
	}
}
