// SPDX-License-Identifier: MIT
#include "pfm/event.h"

enum {
	MAX_GROUPS = 16, /* of masks of one event; data/compile.py sees to it */
	NO_LIMIT = MAX_GROUPS,
};

/* Which groups the masks given leave open for others: all up to `last`, and none but 0 and `only`.
 */
struct limits {
	unsigned int last;
	unsigned int only;
};

/* Groups by bit: from which masks were given, and one mask that must be alone. */
struct given {
	unsigned int groups;
	unsigned int alone;
};

static void note_limits(const struct table_mask *mask, struct limits *limits)
{
	if (mask->flags & TABLE_EXCL_GROUP_GT && mask->group < limits->last)
		limits->last = mask->group;
	if (mask->flags & TABLE_EXCL_GROUP_BUT_0)
		limits->only = mask->group;
}

/* The groups that the limits leave open. */
static unsigned int open_groups(const struct limits *limits)
{
	unsigned int open = (1U << MAX_GROUPS) - 1;

	if (limits->last != NO_LIMIT)
		open &= (2U << limits->last) - 1;
	if (limits->only != NO_LIMIT)
		open &= 1U | 1U << limits->only;
	return open;
}

static int check_given(const struct request *request, struct given *given, struct limits *limits)
{
	const struct table_event *entry = request->event.entry;
	const struct table_mask *masks = table_masks(entry);

	*limits = (struct limits){.last = NO_LIMIT, .only = NO_LIMIT};
	*given = (struct given){0};
	for (int i = request_next_mask(request, 0); i >= 0; i = request_next_mask(request, i + 1)) {
		unsigned int group = 1U << masks[i].group;

		if (masks[i].flags & TABLE_NO_COMBO) {
			if (given->groups & group)
				return PFM_ERR_FEATCOMB;
			given->alone |= group;
		} else if (given->alone & group) {
			return PFM_ERR_FEATCOMB;
		}
		given->groups |= group;
		note_limits(&masks[i], limits);
	}
	if (given->groups & (given->groups - 1) && entry->flags & TABLE_GROUPS_EXCL)
		return PFM_ERR_FEATCOMB;
	return given->groups & ~open_groups(limits) ? PFM_ERR_FEATCOMB : PFM_SUCCESS;
}

static int add_defaults(struct request *request, unsigned int group, struct limits *limits)
{
	const struct table_event *entry = request->event.entry;
	const struct table_mask *masks = table_masks(entry);
	bool added = false;

	for (unsigned int i = 0; i < entry->n_masks; i++) {
		if (masks[i].group != group || !(masks[i].flags & TABLE_DEFAULT))
			continue;
		request_add_mask(request, i);
		added = true;
		note_limits(&masks[i], limits);
	}
	return added ? PFM_SUCCESS : PFM_ERR_UMASK;
}

int tly_pfm_complete_masks(struct request *request, uint64_t *bits)
{
	const struct table_event *entry = request->event.entry;
	const struct table_mask *masks = table_masks(entry);
	struct limits limits;
	struct given given;
	int rc;

	*bits = 0;
	if (request->has_raw) {
		*bits = request->raw;
		return PFM_SUCCESS;
	}
	rc = check_given(request, &given, &limits);
	if (rc)
		return rc;
	for (unsigned int group = 0; group < entry->groups; group++) {
		if (given.groups & 1U << group || !(open_groups(&limits) & 1U << group))
			continue;
		if (entry->flags & TABLE_GROUPS_EXCL && request->n_masks)
			continue;
		rc = add_defaults(request, group, &limits);
		if (rc)
			return rc;
	}
	for (int i = request_next_mask(request, 0); i >= 0; i = request_next_mask(request, i + 1))
		*bits |= masks[i].code;
	return PFM_SUCCESS;
}
