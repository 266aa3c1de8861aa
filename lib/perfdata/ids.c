// SPDX-License-Identifier: MIT
#include "lib/perfdata/ids.h"

#include <errno.h>
#include <stdlib.h>

static void insert(struct tly_ids *ids, uint64_t id, size_t event)
{
	size_t i = tly_ids_slot(ids, id);

	while (ids->slots[i].id)
		i = (i + 1) & ids->mask;
	ids->slots[i] = (struct tly_id){id, event};
}

/* Keeps at least half of the slots free. */
static int grow(struct tly_ids *ids)
{
	struct tly_ids grown = {
		.nr = ids->nr,
		.mask = ids->slots ? ids->mask * 2 + 1 : 63,
		.shift = ids->slots ? ids->shift - 1 : 64 - 6,
	};

	grown.slots = calloc(grown.mask + 1, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; ids->slots && i <= ids->mask; i++)
		if (ids->slots[i].id)
			insert(&grown, ids->slots[i].id, ids->slots[i].event);
	free(ids->slots);
	*ids = grown;
	return 0;
}

int tly_ids_add(struct tly_ids *ids, uint64_t id, size_t event)
{
	if (!id || tly_ids_find(ids, id) != SIZE_MAX)
		return 0;
	if (!ids->slots || ids->nr >= ids->mask / 2) {
		int ret = grow(ids);

		if (ret)
			return ret;
	}
	insert(ids, id, event);
	ids->nr++;
	return 0;
}

void tly_ids_free(struct tly_ids *ids)
{
	free(ids->slots);
	*ids = (struct tly_ids){0};
}
