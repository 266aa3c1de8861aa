/* SPDX-License-Identifier: MIT */
/*
 * The branch predictor. Branches are named by the address behind them. They are told in the order
 * in which they were executed, and with how they went, so that a prediction and its correction are
 * one step. compile.c emits the same for conditions, calls and returns.
 *
 * Conditions: two predictors and a chooser between them (S. McFarling, "Combining branch
 * predictors", 1993). One has a counter of two bits for each branch, the other one for each branch
 * and what the last 15 conditions did. All three are looked up and corrected by one table of
 * transitions, without a branch of our own: on real programs nothing would cost as much.
 *
 * Indirect jumps and calls: the target that came last in the same situation, which is the path of
 * the last indirect branches; else the last target of this branch.
 *
 * Returns: a stack.
 */
#ifndef RUNTIME_MODEL_PREDICT_H
#define RUNTIME_MODEL_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PREDICT_BRANCH_BITS = 14,
	PREDICT_HISTORY_BITS = 15,
	PREDICT_TARGET_BITS = 10,
	PREDICT_RETURNS = 32,
	PREDICT_SURE = 3,
	PREDICT_PATH_SHIFT = 5,
	PREDICT_STEP_BITS = 6,
};

struct predict_target {
	uint32_t target, tag;
};

struct predictor {
	uint64_t path;			     /* of indirect branches */
	uint64_t spread_branch, spread_path; /* constants */
	uint32_t depth; /* of calls; the stack's top is below, modulo its size */
	_Alignas(8) struct predict_target targets[1 << PREDICT_TARGET_BITS];
	uint32_t last[1 << PREDICT_TARGET_BITS];       /* targets of each branch */
	uint8_t sure[1 << PREDICT_TARGET_BITS];	       /* of `targets`: 0 to PREDICT_SURE */
	uint8_t by_history[1 << PREDICT_HISTORY_BITS]; /* as in `from` */
	uint8_t by_branch[1 << PREDICT_BRANCH_BITS];   /* with the chooser above it */
	uint32_t returns[PREDICT_RETURNS];	       /* low halves of addresses */
	/*
	 *	from	taken | by history, 2 bits | chooser, 2 bits | by branch, 2 bits
	 *	to	wrong, at PREDICT_WRONG | by history, second byte | chooser, by branch
	 */
	uint32_t steps[2][1 << PREDICT_STEP_BITS];
};

/* So that steps can be added up and the wrong ones be seen above the rest. */
#define PREDICT_WRONG 29

static inline uint32_t predict_branch_place(uint64_t branch)
{
	return (branch ^ branch >> PREDICT_BRANCH_BITS) & ((1 << PREDICT_BRANCH_BITS) - 1);
}

/* To be combined with the history. */
static inline uint32_t predict_history_place(uint64_t branch)
{
	return (branch ^ branch >> PREDICT_HISTORY_BITS) & ((1 << PREDICT_HISTORY_BITS) - 1);
}

/* On zeroed memory. */
void predict_init(struct predictor *p);

/* Each returns whether the prediction was wrong. */

/* Of both the lower halves: more than that is hardly ever different. */
bool predict_target(struct predictor *p, uint32_t branch, uint32_t target);

/* @history: of conditions, newest lowest; 1: taken */
/* Whether it would be right, without a correction. */
static inline bool predicts_condition(const struct predictor *p, uint64_t history, uint64_t branch,
				      bool taken)
{
	const uint8_t one = p->by_branch[predict_branch_place(branch)];
	const uint8_t two = p->by_history[(predict_history_place(branch) ^ history) &
					  ((1 << PREDICT_HISTORY_BITS) - 1)];

	return !(p->steps[taken][one | two] >> PREDICT_WRONG);
}

/* What one and the other say, by place. */
static inline bool predicts_by_branch(const struct predictor *p, uint32_t place)
{
	return p->by_branch[place] & 0x02;
}

static inline bool predicts_by_history(const struct predictor *p, uint32_t place)
{
	return p->by_history[place] & 0x20;
}

static inline bool predict_condition(struct predictor *p, uint64_t *history, uint64_t branch,
				     bool taken)
{
	uint8_t *one = &p->by_branch[predict_branch_place(branch)];
	uint8_t *two = &p->by_history[(predict_history_place(branch) ^ *history) &
				      ((1 << PREDICT_HISTORY_BITS) - 1)];
	const uint32_t step = p->steps[taken][*one | *two];

	*one = (uint8_t)step;
	*two = (uint8_t)(step >> 8);
	*history = *history << 1 | taken;
	return step >> PREDICT_WRONG;
}

static inline uint32_t *predict_top(struct predictor *p)
{
	return &p->returns[p->depth % PREDICT_RETURNS];
}

static inline void predict_call(struct predictor *p, uint64_t behind)
{
	p->depth++;
	*predict_top(p) = (uint32_t)behind;
}

static inline bool predict_return(struct predictor *p, uint64_t target)
{
	const bool wrong = *predict_top(p) != (uint32_t)target;

	p->depth--;
	return wrong;
}

#endif
