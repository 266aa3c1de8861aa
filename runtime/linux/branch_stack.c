// SPDX-License-Identifier: MIT
/*
 * The last branches before a sample. Keeping them all the time would cost as much as counting; so
 * the thread comes out CORE_LOOK_BACK events before the overflow (core/counter.c), runs one
 * instruction at a time from there, and each branch that it takes is noted.
 */
#include <linux/perf_event.h>

#include "core/host.h"
#include "runtime/string.h"
#include "runtime/thread.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/translate.h"

static uint8_t type_of(const struct insn *insn)
{
	switch (insn->class) {
	case INSN_JCC:
	case INSN_LOOP:
		return PERF_BR_COND;
	case INSN_JMP:
		return PERF_BR_UNCOND;
	case INSN_JMP_INDIRECT:
		return PERF_BR_IND;
	case INSN_CALL:
		return PERF_BR_CALL;
	case INSN_CALL_INDIRECT:
		return PERF_BR_IND_CALL;
	case INSN_RET:
		return PERF_BR_RET;
	default:
		return PERF_BR_UNKNOWN;
	}
}

void linux_branch_before(struct thread *thread)
{
	struct branch_stack *stack = &thread->branches;
	uint8_t code[INSN_MAX];
	struct insn insn;

	stack->pc = 0;
	if (!insn_decode(&insn, code, linux_code(code, thread->regs.rip, sizeof(code))))
		return;
	stack->type = type_of(&insn);
	stack->next = thread->regs.rip + insn.length;
	if (stack->type != PERF_BR_UNKNOWN)
		stack->pc = thread->regs.rip;
}

void linux_branch_after(struct thread *thread)
{
	struct branch_stack *stack = &thread->branches;
	const uint64_t from = stack->pc;

	stack->pc = 0;
	if (thread->regs.rip == stack->next)
		return;
	stack->of[stack->nr++ % BRANCH_STACK_MAX] =
		(struct branch){from, (int64_t)thread->regs.rip, stack->type};
}

static const struct branch *newest(const struct branch_stack *stack, uint32_t back)
{
	return &stack->of[(stack->nr - 1 - back) % BRANCH_STACK_MAX];
}

static bool is_call(const struct branch *branch)
{
	return branch->type == PERF_BR_CALL || branch->type == PERF_BR_IND_CALL;
}

size_t core_host_branches(struct perf_branch_entry *to, size_t max, bool calls)
{
	const struct branch_stack *stack = &thread_self()->branches;
	const uint32_t kept = stack->nr < BRANCH_STACK_MAX ? stack->nr : BRANCH_STACK_MAX;
	unsigned int returned = 0;
	size_t n = 0;

	for (uint32_t i = 0; i < kept && n < max; i++) {
		const struct branch *branch = newest(stack, i);

		if (calls) {
			returned += branch->type == PERF_BR_RET;
			if (!is_call(branch))
				continue;
			if (returned) {
				returned--;
				continue;
			}
		}
		to[n++] = (struct perf_branch_entry){
			.from = branch->from,
			.to = (uint64_t)(int64_t)branch->to,
			.predicted = 1,
			.type = branch->type,
		};
	}
	return n;
}
