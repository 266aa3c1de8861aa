/* SPDX-License-Identifier: MIT */
/* From an event's id, which the kernel gave it, to its index: one probe a sample. */
#ifndef LIB_PERFDATA_IDS_H
#define LIB_PERFDATA_IDS_H

#include <stddef.h>
#include <stdint.h>

/* All zero is an empty map. */
struct tly_ids {
	struct tly_id {
		uint64_t id; /* 0: free */
		size_t event;
	} * slots;
	size_t nr, mask;
	unsigned int shift;
};

/* Id 0 is nobody's and is left out; the first event to claim an id keeps it. -ENOMEM. */
int tly_ids_add(struct tly_ids *ids, uint64_t id, size_t event);
void tly_ids_free(struct tly_ids *ids);

static inline size_t tly_ids_slot(const struct tly_ids *ids, uint64_t id)
{
	return id * UINT64_C(0x9e3779b97f4a7c15) >> ids->shift;
}

/* The event's index, or SIZE_MAX. */
static inline size_t tly_ids_find(const struct tly_ids *ids, uint64_t id)
{
	if (!ids->slots || !id)
		return SIZE_MAX;
	for (size_t i = tly_ids_slot(ids, id);; i = (i + 1) & ids->mask) {
		if (ids->slots[i].id == id)
			return ids->slots[i].event;
		if (!ids->slots[i].id)
			return SIZE_MAX;
	}
}

#endif
