// SPDX-License-Identifier: MIT
#include "runtime/model/state.h"

/* Lays the parts out from @memory on; returns how much they take. Those that are used in part only
 * come last. */
static size_t place(struct model *m, const struct machine *machine, uint8_t *memory)
{
	size_t at = (sizeof(*m) + 63) & ~63UL;

	at += near_place(&m->l1i, &machine->l1i, memory + at);
	at += near_place(&m->l1d, &machine->l1d, memory + at);
	at += near_place(&m->itlb, &machine->itlb, memory + at);
	at += near_place(&m->dtlb, &machine->dtlb, memory + at);
	at += far_place(&m->stlb, &machine->stlb, memory + at);
	at = (at + 63) & ~63UL;
	at += far_place(&m->l2, &machine->l2, memory + at);
	at += far_place(&m->llc, &machine->llc, memory + at);
	return at;
}

size_t model_size(const struct machine *machine)
{
	struct near_sets near;
	struct far_sets far;
	size_t size = sizeof(struct model) + 128;

	size += near_place(&near, &machine->l1i, NULL) + near_place(&near, &machine->l1d, NULL) +
		near_place(&near, &machine->itlb, NULL) + near_place(&near, &machine->dtlb, NULL) +
		far_place(&far, &machine->stlb, NULL) + far_place(&far, &machine->l2, NULL) +
		far_place(&far, &machine->llc, NULL);
	return size;
}

struct model *model_make(void *memory, const struct machine *machine)
{
	struct model *m = memory;

	m->machine = *machine;
	predict_init(&m->predictor);
	place(m, machine, memory);
	return m;
}
