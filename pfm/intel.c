// SPDX-License-Identifier: MIT
/*
 * Intel's event select registers, 0x186 and on:
 *
 *	 0  event      16  user       18  edge      21  any thread   24  counter mask
 *	 8  unit mask  17  kernel     20  interrupt 22  enable       32  in transactions
 *	                                            23  invert       33  not in aborted ones
 *
 * What does not fit goes to a second code: the off-core response register, the latency of loads,
 * the front-end register.
 */
#include "pfm/event.h"

enum {
	SEL_USER = 16,
	SEL_KERNEL = 17,
	SEL_EDGE = 18,
	SEL_INTERRUPT = 20,
	SEL_ANY_THREAD = 21,
	SEL_ENABLE = 22,
	SEL_INVERT = 23,
	SEL_COUNTER_MASK = 24,
	SEL_IN_TX = 32,
	SEL_IN_TX_CP = 33,

	RAW_MASK_BITS = 8,
	RAW_OFFCORE_BITS = 38,

	DEFAULT_LATENCY = 3,
	MAX_LATENCY = 65535,
	DEFAULT_FRONTEND_CYCLES = 1,
	MAX_FRONTEND_CYCLES = 4095,
	FRONTEND_LATENCY = 6, /* the front-end event that has a number of cycles, */
	FRONTEND_CYCLES = 8,  /* and where it is */
};

static const struct {
	enum table_mod mod;
	unsigned int shift, max;
} fields[] = {
	{TABLE_MOD_K, SEL_KERNEL, 1},	      {TABLE_MOD_U, SEL_USER, 1},
	{TABLE_MOD_E, SEL_EDGE, 1},	      {TABLE_MOD_I, SEL_INVERT, 1},
	{TABLE_MOD_C, SEL_COUNTER_MASK, 255}, {TABLE_MOD_T, SEL_ANY_THREAD, 1},
	{TABLE_MOD_INTX, SEL_IN_TX, 1},	      {TABLE_MOD_INTXCP, SEL_IN_TX_CP, 1},
};

static bool any_mask_has(const struct request *request, enum table_flag flag)
{
	const struct table_mask *masks = table_masks(request->event.entry);

	for (int i = request_next_mask(request, 0); i >= 0; i = request_next_mask(request, i + 1))
		if (masks[i].flags & flag)
			return true;
	return false;
}

/* The modifiers that masks set themselves. */
static unsigned int fixed_mods(const struct request *request)
{
	const struct table_mask *masks = table_masks(request->event.entry);
	unsigned int mods = 0;

	for (int i = request_next_mask(request, 0); i >= 0; i = request_next_mask(request, i + 1))
		mods |= masks[i].mods;
	return mods;
}

/* The second code of a load latency event. Its mask must have been asked for. */
static int encode_latency(struct request *request, bool asked)
{
	uint64_t *cycles = &request->value[mod_index(TABLE_MOD_LDLAT)];
	bool given = request->given & TABLE_MOD_LDLAT;

	if (given && (*cycles < 1 || *cycles > MAX_LATENCY))
		return PFM_ERR_ATTR_VAL;
	if (!asked)
		return given ? PFM_ERR_ATTR : PFM_SUCCESS;
	if (!given)
		*cycles = DEFAULT_LATENCY;
	request->codes[request->n_codes++] = *cycles;
	return PFM_SUCCESS;
}

/* The number of cycles shows in fe_thres, and cannot be changed where a mask has it. */
static int encode_frontend(struct request *request, uint64_t bits)
{
	bool given = request->given & TABLE_MOD_FE_THRES;
	bool timed = (bits & 0xff) == FRONTEND_LATENCY;
	uint64_t fixed = timed ? bits >> FRONTEND_CYCLES & MAX_FRONTEND_CYCLES : 0;
	uint64_t *cycles = &request->value[mod_index(TABLE_MOD_FE_THRES)];

	if (given && (*cycles < 1 || *cycles > MAX_FRONTEND_CYCLES))
		return PFM_ERR_ATTR_VAL;
	if (given && fixed && *cycles != fixed)
		return PFM_ERR_ATTR_SET;
	if (!given && timed)
		*cycles = fixed ? fixed : DEFAULT_FRONTEND_CYCLES;
	if (timed)
		bits |= *cycles << FRONTEND_CYCLES;
	request->codes[request->n_codes++] = bits;
	return PFM_SUCCESS;
}

/*
 * The values of the modifiers in fields of the register. What the event or a mask sets itself, be
 * it to zero, shows too, and can be given only as it is.
 */
static int merge_fields(struct request *request, unsigned int fixed_mods, uint64_t *sel)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		uint64_t *value = &request->value[mod_index(fields[i].mod)];
		uint64_t fixed = *sel >> fields[i].shift & fields[i].max;

		if (request->given & fields[i].mod && *value != fixed &&
		    (fixed || fixed_mods & fields[i].mod))
			return PFM_ERR_ATTR_SET;
		*value |= fixed;
		*sel |= *value << fields[i].shift;
	}
	/* Edges are those of the comparison with the counter mask. */
	if (request->event.pmu->edge_needs_counter_mask && request->given & TABLE_MOD_E &&
	    request->value[mod_index(TABLE_MOD_E)] && !request->value[mod_index(TABLE_MOD_C)])
		return PFM_ERR_ATTR;
	return PFM_SUCCESS;
}

static int check_ranges(const struct request *request)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (request->value[mod_index(fields[i].mod)] > fields[i].max)
			return PFM_ERR_ATTR_VAL;
	return PFM_SUCCESS;
}

static void default_levels(struct request *request)
{
	if (request->given & (TABLE_MOD_K | TABLE_MOD_U))
		return;
	request->value[mod_index(TABLE_MOD_K)] = !!(request->plm & PFM_PLM0);
	request->value[mod_index(TABLE_MOD_U)] = !!(request->plm & PFM_PLM3);
}

int tly_pfm_encode_intel(struct request *request)
{
	const struct table_event *entry = request->event.entry;
	bool second = entry->flags & (TABLE_OFFCORE | TABLE_FRONTEND);
	/* Those of masks that were asked for: a mask that is default gives way. */
	unsigned int fixed = fixed_mods(request);
	bool latency = any_mask_has(request, TABLE_LDLAT);
	uint64_t bits, sel = entry->code;
	int rc;

	if (request->has_raw &&
	    request->raw >> (entry->flags & TABLE_OFFCORE ? RAW_OFFCORE_BITS : RAW_MASK_BITS))
		return PFM_ERR_ATTR;
	rc = check_ranges(request);
	if (!rc)
		rc = tly_pfm_complete_masks(request, &bits);
	if (rc)
		return rc;
	if (any_mask_has(request, TABLE_CODE))
		sel = bits;
	else if (!second)
		sel |= bits << 8;
	default_levels(request);
	rc = merge_fields(request, fixed, &sel);
	if (rc)
		return rc;
	request->codes[0] = sel | 1ULL << SEL_INTERRUPT | 1ULL << SEL_ENABLE;
	request->n_codes = 1;
	if (entry->flags & TABLE_OFFCORE)
		request->codes[request->n_codes++] = bits;
	else if (entry->flags & TABLE_FRONTEND)
		return encode_frontend(request, bits);
	return encode_latency(request, latency);
}
