/* SPDX-License-Identifier: MIT */
/* What cache.c does for what is withheld. */
#ifndef RUNTIME_TRANSLATE_CACHE_PARTS_H
#define RUNTIME_TRANSLATE_CACHE_PARTS_H

#include "runtime/translate/cache.h"

/* @id, of which all exits lead somewhere, is found by its address, and by returns and jumps to
 * it. */
void cache_publish_entry(struct cache *cache, uint32_t id);

/* It is found no more; exits that lead to it do as before. */
void cache_hide(struct cache *cache, struct entry *entry, const struct fragment *f);

/* That of @number, or the free one where it would be. */
struct page *cache_find_page(const struct cache *cache, uint64_t number);

#endif
