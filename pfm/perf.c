// SPDX-License-Identifier: MIT
/* The kernel's own events: the numbers of <linux/perf_event.h>, tracepoints, and raw codes. */
#include "pfm/event.h"
#include "pfm/tracepoints.h"

/* Two masks of one group are one too many here, whatever they are. */
static int one_mask_a_group(const struct request *request)
{
	const struct table_event *entry = request->event.entry;
	const struct table_mask *masks = table_masks(entry);
	unsigned int seen = 0;

	for (int i = request_next_mask(request, 0); i >= 0; i = request_next_mask(request, i + 1)) {
		unsigned int group = 1U << masks[i].group;

		if (seen & group)
			return PFM_ERR_UMASK;
		seen |= group;
	}
	return PFM_SUCCESS;
}

static int encode_tracepoint(struct request *request)
{
	uint64_t id;

	if (request->tracepoint < 0)
		return PFM_ERR_UMASK;
	if (!tly_pfm_tracepoint_id(request->event.system, request->tracepoint, &id))
		return PFM_ERR_NOTSUPP;
	request->codes[0] = id;
	request->n_codes = 1;
	return PFM_SUCCESS;
}

int tly_pfm_encode_perf(struct request *request)
{
	uint64_t bits;
	int rc;

	if (request->event.system)
		return encode_tracepoint(request);
	rc = one_mask_a_group(request);
	if (!rc)
		rc = tly_pfm_complete_masks(request, &bits);
	if (rc)
		return rc;
	request->codes[0] = request->event.entry->code | bits;
	request->n_codes = 1;
	return PFM_SUCCESS;
}
