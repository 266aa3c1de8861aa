/* SPDX-License-Identifier: MIT */
/*
 * What is kept of a fragment beside struct fragment: of each no more than it has, and of most
 * nothing.
 *
 *	| other pages | marks: which there are, their bytes | size of the source, the source |
 */
#ifndef RUNTIME_TRANSLATE_KEPT_H
#define RUNTIME_TRANSLATE_KEPT_H

#include "runtime/translate/cache.h"
#include "runtime/translate/count.h"

/* Pages that a fragment may depend on, and the most that is kept of one. */
enum { KEPT_PAGES = 4, KEPT_BYTES = 2048 };

struct kept {
	const uint64_t *pages; /* the first is that of pc */
	unsigned int nr_pages;
	const uint64_t *marks; /* COUNT_MARKS of them */
	const uint8_t *source; /* the code that it was made from, for FRAGMENT_SOURCE */
	uint16_t source_size;
};

/* Whether a fragment from @f->pc may depend on code of @page. */
bool kept_reaches(const struct fragment *f, uint64_t page);

/* Of a fragment that is not published yet. */
void kept_put(struct cache *cache, struct fragment *f, const struct kept *kept);

/* The pages that it depends on, 1 + f->other_pages: one of them; which of them @page is; and the
 * next fragment that depends on it, too. */
uint64_t kept_page(const struct cache *cache, const struct fragment *f, unsigned int which);
unsigned int kept_which_page(const struct cache *cache, const struct fragment *f, uint64_t page);
uint32_t *kept_page_next(const struct cache *cache, struct fragment *f, unsigned int which);

/* COUNT_MARKS of them. */
void kept_marks(const struct cache *cache, const struct fragment *f, uint64_t *marks);

/* A copy of the code that it was made from, or NULL: that cannot change. */
const uint8_t *kept_source(const struct cache *cache, const struct fragment *f, uint32_t *size);

#endif
