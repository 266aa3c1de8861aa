// SPDX-License-Identifier: MIT
/*
 * AMD's event select registers: as Intel's, but that bits 8 to 11 of the event are bits 32 to 35,
 * and that 40 and 41 say whether guests and hosts are counted. The units outside of the cores take
 * the same without the modifiers.
 */
#include "pfm/event.h"

enum {
	SEL_EVENT_HIGH = 32,
	RAW_MASK_BITS = 8,
};

static const uint64_t sel_interrupt_enable = 1ULL << 20 | 1ULL << 22;

static const struct {
	enum table_mod mod;
	unsigned int shift, max;
} fields[] = {
	{TABLE_MOD_K, 17, 1},	{TABLE_MOD_U, 16, 1}, {TABLE_MOD_E, 18, 1}, {TABLE_MOD_I, 23, 1},
	{TABLE_MOD_C, 24, 255}, {TABLE_MOD_H, 41, 1}, {TABLE_MOD_G, 40, 1},
};

static void default_levels(struct request *request)
{
	if (request->given & (TABLE_MOD_K | TABLE_MOD_U | TABLE_MOD_H))
		return;
	request->value[mod_index(TABLE_MOD_K)] = !!(request->plm & PFM_PLM0);
	request->value[mod_index(TABLE_MOD_U)] = !!(request->plm & PFM_PLM3);
	if (request->event.entry->mods & TABLE_MOD_H)
		request->value[mod_index(TABLE_MOD_H)] = !!(request->plm & PFM_PLMH);
}

int tly_pfm_encode_amd64(struct request *request)
{
	uint64_t event = request->event.entry->code, bits, sel;
	int rc;

	if (request->has_raw && request->raw >> RAW_MASK_BITS)
		return PFM_ERR_ATTR;
	rc = tly_pfm_complete_masks(request, &bits);
	if (rc)
		return rc;
	default_levels(request);
	sel = (event & 0xff) | (event & 0xf00) << (SEL_EVENT_HIGH - 8) | (bits & 0xff) << 8;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		uint64_t value = request->value[mod_index(fields[i].mod)];

		if (value > fields[i].max)
			return PFM_ERR_ATTR_VAL;
		sel |= value << fields[i].shift;
	}
	request->codes[0] = sel | sel_interrupt_enable;
	request->n_codes = 1;
	return PFM_SUCCESS;
}
