/* SPDX-License-Identifier: MIT */
/* A table from pid or tid to the object kept for it. Entries are never removed. */
#ifndef LIB_SYMBOL_IDMAP_H
#define LIB_SYMBOL_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct tly_idmap {
	struct tly_idmap_entry {
		void *value; /* NULL: free slot */
		uint32_t id;
	} * entries;
	size_t nr, size;
};

void *tly_idmap_get(const struct tly_idmap *map, uint32_t id);
/* @id must not be in the map. Returns 0 or -ENOMEM. */
int tly_idmap_add(struct tly_idmap *map, uint32_t id, void *value);

#endif
