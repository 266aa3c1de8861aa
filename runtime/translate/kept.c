// SPDX-License-Identifier: MIT
#include "runtime/translate/kept.h"

/* How far it is from the page of pc, and what kept_page_next() is about. */
struct other_page {
	int32_t far;
	uint32_t next;
};

/*
 * Marks have a byte that says which of them are not 0, and how many bytes all of these take, less
 * 1: of few fragments more than one.
 */
enum { WIDTH_SHIFT = 5 };

_Static_assert((int)COUNT_MARKS <= (int)WIDTH_SHIFT, "");

static uint64_t first_page(const struct fragment *f)
{
	return f->pc >> PAGE_SHIFT;
}

static struct other_page *other_pages(const struct cache *cache, const struct fragment *f)
{
	return (struct other_page *)(cache->kept + f->kept);
}

static uint8_t *behind_pages(const struct cache *cache, const struct fragment *f)
{
	return cache->kept + f->kept + f->other_pages * sizeof(struct other_page);
}

/* ---- marks ---- */

static uint8_t head_of(const uint64_t *marks)
{
	uint64_t all = 0;
	uint8_t head = 0;

	for (unsigned int i = 0; i < COUNT_MARKS; i++) {
		all |= marks[i];
		head |= (marks[i] != 0) << i;
	}
	return all ? head | (63 - __builtin_clzl(all)) / 8 << WIDTH_SHIFT : 0;
}

static unsigned int width(uint8_t head)
{
	return 1 + (head >> WIDTH_SHIFT);
}

static uint8_t *put_marks(uint8_t *to, const uint64_t *marks)
{
	const uint8_t head = head_of(marks);

	*to++ = head;
	for (unsigned int i = 0; i < COUNT_MARKS; i++)
		if (head >> i & 1) {
			__builtin_memcpy(to, &marks[i], sizeof(marks[i]));
			to += width(head);
		}
	return to;
}

/* Returns what is behind them. */
static const uint8_t *get_marks(const uint8_t *from, uint64_t *marks)
{
	const uint8_t head = *from++;
	const uint64_t mask = ~0UL >> (64 - 8 * width(head));

	for (unsigned int i = 0; i < COUNT_MARKS; i++) {
		marks[i] = 0;
		if (head >> i & 1) {
			__builtin_memcpy(&marks[i], from, sizeof(marks[i]));
			marks[i] &= mask;
			from += width(head);
		}
	}
	return from;
}

void kept_marks(const struct cache *cache, const struct fragment *f, uint64_t *marks)
{
	if (f->kept)
		get_marks(behind_pages(cache, f), marks);
}

/* ---- pages ---- */

bool kept_reaches(const struct fragment *f, uint64_t page)
{
	const int64_t far = (int64_t)(page - first_page(f));

	return far == (int32_t)far;
}

static void put_pages(struct cache *cache, struct fragment *f, const struct kept *kept)
{
	for (unsigned int i = 1; i < kept->nr_pages; i++)
		other_pages(cache, f)[f->other_pages++] = (struct other_page){
			.far = (int32_t)(kept->pages[i] - first_page(f)),
		};
}

uint64_t kept_page(const struct cache *cache, const struct fragment *f, unsigned int which)
{
	if (!which)
		return first_page(f);
	return first_page(f) + (uint64_t)(int64_t)other_pages(cache, f)[which - 1].far;
}

unsigned int kept_which_page(const struct cache *cache, const struct fragment *f, uint64_t page)
{
	unsigned int which = 0;

	while (kept_page(cache, f, which) != page)
		which++;
	return which;
}

uint32_t *kept_page_next(const struct cache *cache, struct fragment *f, unsigned int which)
{
	return which ? &other_pages(cache, f)[which - 1].next : &f->page_next;
}

/* ---- the source ---- */

static uint8_t *put_source(uint8_t *to, const struct kept *kept)
{
	__builtin_memcpy(to, &kept->source_size, sizeof(kept->source_size));
	to += sizeof(kept->source_size);
	for (unsigned int i = 0; i < kept->source_size; i++)
		*to++ = kept->source[i];
	return to;
}

const uint8_t *kept_source(const struct cache *cache, const struct fragment *f, uint32_t *size)
{
	uint64_t marks[COUNT_MARKS];
	const uint8_t *from;
	uint16_t bytes;

	if (!(f->flags & FRAGMENT_SOURCE))
		return NULL;
	from = get_marks(behind_pages(cache, f), marks);
	__builtin_memcpy(&bytes, from, sizeof(bytes));
	*size = bytes;
	return from + sizeof(bytes);
}

/* ---- all of it ---- */

void kept_put(struct cache *cache, struct fragment *f, const struct kept *kept)
{
	const uint32_t align = _Alignof(struct other_page);
	uint8_t *to;

	if (kept->nr_pages <= 1 && !head_of(kept->marks) && !(f->flags & FRAGMENT_SOURCE))
		return;
	f->kept = kept->nr_pages > 1 ? (cache->nr_kept + align - 1) & -align : cache->nr_kept;
	put_pages(cache, f, kept);
	to = put_marks(behind_pages(cache, f), kept->marks);
	if (f->flags & FRAGMENT_SOURCE)
		to = put_source(to, kept);
	cache->nr_kept = (uint32_t)(to - cache->kept);
}
