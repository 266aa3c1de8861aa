// SPDX-License-Identifier: MIT
#include "runtime/model/predict.h"

/* Odd constants with bits at random spread what they multiply over the upper half. */
#define SPREAD_BRANCH 0x9e3779b97f4a7c15UL
#define SPREAD_PATH   0xd6e8feb86659fd93UL

/* ---- conditions ---- */

/* Counters of two bits: 2 and 3 say yes. */
static uint8_t trained(uint8_t counter, bool yes)
{
	if (yes)
		return counter < 3 ? counter + 1 : 3;
	return counter ? counter - 1 : 0;
}

static uint32_t step(uint8_t branch, uint8_t chooser, uint8_t history, bool taken)
{
	const bool one = branch >= 2, two = history >= 2;
	const bool predicted = chooser >= 2 ? two : one;
	const uint32_t wrong = predicted != taken;

	if (one != two)
		chooser = trained(chooser, two == taken);
	branch = trained(branch, taken);
	history = trained(history, taken);
	return branch | (uint32_t)chooser << 2 | (uint32_t)history << 12 | wrong << PREDICT_WRONG;
}

void predict_init(struct predictor *p)
{
	p->spread_branch = SPREAD_BRANCH;
	p->spread_path = SPREAD_PATH;
	for (unsigned int i = 0; i < 64; i++) {
		p->steps[0][i] = step(i & 3, i >> 2 & 3, i >> 4, false);
		p->steps[1][i] = step(i & 3, i >> 2 & 3, i >> 4, true);
	}
}

/* ---- targets ---- */

bool predict_target(struct predictor *p, uint32_t branch, uint32_t target)
{
	const uint64_t mixed = (p->path * SPREAD_PATH ^ branch * SPREAD_BRANCH) * SPREAD_PATH;
	const uint64_t place = mixed >> (64 - PREDICT_TARGET_BITS);
	uint32_t *last = &p->last[branch * SPREAD_BRANCH >> (64 - PREDICT_TARGET_BITS)];
	struct predict_target *here = &p->targets[place];
	uint8_t *sure = &p->sure[place];
	const uint32_t tag = (uint32_t)(mixed >> 16) | 1; /* never that of a free one */
	const bool known = here->tag == tag;
	const bool wrong = (known ? here->target : *last) != target;

	if (known && here->target == target) {
		*sure += *sure < PREDICT_SURE;
	} else if (*sure) {
		(*sure)--;
	} else if (wrong || known) {
		*here = (struct predict_target){.target = target, .tag = tag};
	}
	*last = target;
	p->path = p->path << PREDICT_PATH_SHIFT ^ target ^ target >> 16;
	return wrong;
}
