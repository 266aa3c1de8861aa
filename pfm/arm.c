// SPDX-License-Identifier: MIT
/*
 * Arm's events. The levels are bits of a layout that is this interface's alone: programs that know
 * it have it from libpfm4, where the bits for user and kernel are the other way round than in the
 * architecture's PMXEVTYPER. The kernel is told in fields of their own (attr.c).
 */
#include "pfm/event.h"

enum {
	NO_HYPERVISOR = 27,
	NO_KERNEL = 30,
	NO_USER = 31,
};

int tly_pfm_encode_arm(struct request *request)
{
	unsigned int mods = request->event.entry->mods;
	uint64_t *kernel = &request->value[mod_index(TABLE_MOD_K)];
	uint64_t *user = &request->value[mod_index(TABLE_MOD_U)];
	uint64_t *hypervisor = &request->value[mod_index(TABLE_MOD_HV)];
	uint64_t code = request->event.entry->code;

	if (!(request->given & (TABLE_MOD_K | TABLE_MOD_U | TABLE_MOD_HV))) {
		*kernel = !!(request->plm & PFM_PLM0);
		*user = !!(request->plm & PFM_PLM3);
		*hypervisor = !!(request->plm & PFM_PLMH);
	}
	if (mods & TABLE_MOD_K)
		code |= (uint64_t) !*kernel << NO_KERNEL;
	if (mods & TABLE_MOD_U)
		code |= (uint64_t) !*user << NO_USER;
	if (mods & TABLE_MOD_HV)
		code |= (uint64_t) !*hypervisor << NO_HYPERVISOR;
	request->codes[0] = code;
	request->n_codes = 1;
	return PFM_SUCCESS;
}
