// SPDX-License-Identifier: MIT
#include "pfm/event.h"

enum { NO_LIMIT = 256 };

/* Which groups the masks given leave open for others: all up to `last`, and none but 0 and `only`.
 */
struct limits {
	unsigned int last;
	unsigned int only;
};

static void note_limits(const struct table_mask *mask, struct limits *limits)
{
	if (mask->flags & TABLE_EXCL_GROUP_GT && mask->group < limits->last)
		limits->last = mask->group;
	if (mask->flags & TABLE_EXCL_GROUP_BUT_0)
		limits->only = mask->group;
}

static int check_given(const struct request *request, const struct table_mask *masks,
		       struct limits *limits)
{
	const struct table_event *entry = request->event.entry;
	unsigned int count[NO_LIMIT] = {0}, n_groups = 0;
	bool alone[NO_LIMIT] = {false};

	*limits = (struct limits){.last = NO_LIMIT, .only = NO_LIMIT};
	for (unsigned int i = 0; i < entry->n_masks; i++) {
		unsigned int group = masks[i].group;

		if (!request_has_mask(request, i))
			continue;
		if (count[group]++ == 0)
			n_groups++;
		if (masks[i].flags & TABLE_NO_COMBO)
			alone[group] = true;
		if (count[group] > 1 && alone[group])
			return PFM_ERR_FEATCOMB;
		note_limits(&masks[i], limits);
	}
	if (n_groups > 1 && entry->flags & TABLE_GROUPS_EXCL)
		return PFM_ERR_FEATCOMB;
	for (unsigned int group = 0; group < NO_LIMIT; group++) {
		if (!count[group])
			continue;
		if (group > limits->last)
			return PFM_ERR_FEATCOMB;
		if (limits->only != NO_LIMIT && group != 0 && group != limits->only)
			return PFM_ERR_FEATCOMB;
	}
	return PFM_SUCCESS;
}

static bool group_given(const struct request *request, const struct table_mask *masks,
			unsigned int group)
{
	for (unsigned int i = 0; i < request->event.entry->n_masks; i++)
		if (masks[i].group == group && request_has_mask(request, i))
			return true;
	return false;
}

static int add_defaults(struct request *request, const struct table_mask *masks, unsigned int group,
			struct limits *limits)
{
	const struct table_event *entry = request->event.entry;
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
	int rc;

	*bits = 0;
	if (request->has_raw) {
		*bits = request->raw;
		return PFM_SUCCESS;
	}
	rc = check_given(request, masks, &limits);
	if (rc)
		return rc;
	for (unsigned int group = 0; group < entry->groups; group++) {
		if (group > limits.last ||
		    (limits.only != NO_LIMIT && group != 0 && group != limits.only))
			continue;
		if (entry->flags & TABLE_GROUPS_EXCL && request->n_masks)
			continue;
		if (group_given(request, masks, group))
			continue;
		rc = add_defaults(request, masks, group, &limits);
		if (rc)
			return rc;
	}
	for (unsigned int i = 0; i < entry->n_masks; i++)
		if (request_has_mask(request, i))
			*bits |= masks[i].code;
	return PFM_SUCCESS;
}
