// SPDX-License-Identifier: MIT
#include "lib/symbol/idmap.h"

#include <errno.h>
#include <stdlib.h>

static struct tly_idmap_entry *slot_of(const struct tly_idmap *map, uint32_t id)
{
	size_t slot = (id * 0x9e3779b1U) & (map->size - 1);

	while (map->entries[slot].value && map->entries[slot].id != id)
		slot = (slot + 1) & (map->size - 1);
	return &map->entries[slot];
}

void *tly_idmap_get(const struct tly_idmap *map, uint32_t id)
{
	return map->size ? slot_of(map, id)->value : NULL;
}

int tly_idmap_add(struct tly_idmap *map, uint32_t id, void *value)
{
	if (map->nr * 2 >= map->size) {
		struct tly_idmap bigger = {.size = map->size ? map->size * 2 : 64};

		bigger.entries = calloc(bigger.size, sizeof(*bigger.entries));
		if (!bigger.entries)
			return -ENOMEM;
		bigger.nr = map->nr;
		for (size_t i = 0; i < map->size; i++) {
			if (map->entries[i].value)
				*slot_of(&bigger, map->entries[i].id) = map->entries[i];
		}
		free(map->entries);
		*map = bigger;
	}
	*slot_of(map, id) = (struct tly_idmap_entry){.value = value, .id = id};
	map->nr++;
	return 0;
}
