// SPDX-License-Identifier: MIT
#include "runtime/model/state.h"

/* Where a member is among the words of the model. */
#define WORD_OF(member) (offsetof(struct model, member) / sizeof(uint64_t))

/* Lays the parts out from @memory on; returns how much they take. Those that are used in part only
 * come last. */
static size_t place(struct model *m, const struct machine *machine, uint8_t *memory)
{
	size_t at = (sizeof(*m) + 63) & ~63UL;

	at += near_place(&m->code, &machine->l1i, &machine->itlb, m->code_times,
			 WORD_OF(code_times), memory + at);
	at = (at + 63) & ~63UL;
	at += near_place(&m->data, &machine->l1d, &machine->dtlb, m->data_times,
			 WORD_OF(data_times), memory + at);
	at = (at + 63) & ~63UL;
	at += far_place(&m->stlb, &machine->stlb, memory + at);
	at = (at + 63) & ~63UL;
	at += far_place(&m->l2, &machine->l2, memory + at);
	at += far_place(&m->llc, &machine->llc, memory + at);
	return at;
}

static void give_slots(struct near *near, uint64_t *slots, uint64_t nr)
{
	near->slots = slots;
	near->slots_mask = nr - 1;
}

size_t model_size(const struct machine *machine)
{
	struct far_sets far;
	size_t size = sizeof(struct model) + 256;

	size += near_size(&machine->l1i, &machine->itlb) +
		near_size(&machine->l1d, &machine->dtlb) + far_place(&far, &machine->stlb, NULL) +
		far_place(&far, &machine->l2, NULL) + far_place(&far, &machine->llc, NULL);
	return size;
}

struct model *model_make(void *memory, const struct machine *machine)
{
	struct model *m = memory;

	m->leave = model_leave;
	m->call_fetch = model_call_fetch;
	m->call_line = model_call_line;
	m->call_access = model_call_access;
	m->call_target = model_call_target;
	m->near_slots = m->data_slots;
	m->ordered = machine->l1d.sets == 1 || machine->dtlb.sets == 1;
	m->time = NEAR_TICK; /* what was never used, was at 0 */
	m->machine = *machine;
	predict_init(&m->predictor);
	place(m, machine, memory);
	give_slots(&m->code, m->code_slots, CODE_SLOTS);
	give_slots(&m->data, m->data_slots, DATA_SLOTS);
	return m;
}
