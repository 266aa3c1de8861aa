// SPDX-License-Identifier: MIT
#include "runtime/boot/stack.h"

#include <linux/auxvec.h>

#include "abi/handover.h"
#include "runtime/string.h"

static size_t count(char *const *list)
{
	size_t nr = 0;

	while (list[nr])
		nr++;
	return nr;
}

/* In code that lies elsewhere than it will: nothing here has an address in it. */
struct stack_glance stack_glance(const uint64_t *top)
{
	const size_t name = sizeof(HANDOVER_NAME) - 1;
	const char *const *envp = (const char *const *)(top + 1 + *top + 1), *last = NULL;
	struct stack_glance seen = {0};

	for (; *envp; envp++)
		last = *envp;
	if (last && !strncmp(last, HANDOVER_NAME, name))
		seen.handover = last + name;
	for (const struct auxv *a = (const struct auxv *)(envp + 1); a->type != AT_NULL; a++)
		if (a->type == AT_EXECFN)
			seen.name = a->value;
	return seen;
}

/*
 * Without its last string the environment is a word shorter. What follows moves down: rsp has to
 * stay, as it must be a multiple of 16.
 */
static void take_handover(struct stack *stack)
{
	const size_t name = sizeof(HANDOVER_NAME) - 1;
	char *last;

	if (!stack->envc)
		return;
	last = stack->envp[stack->envc - 1];
	if (strncmp(last, HANDOVER_NAME, name))
		return;
	stack->handover = last + name;
	stack->envp[--stack->envc] = NULL;
	memmove((uint64_t *)stack->auxv - 1, stack->auxv, stack->nr_auxv * sizeof(*stack->auxv));
	stack->auxv = (struct auxv *)((uint64_t *)stack->auxv - 1);
}

void stack_read(struct stack *stack, uint64_t *top)
{
	stack->top = top;
	stack->argc = *top;
	stack->argv = (char **)(top + 1);
	stack->envp = stack->argv + stack->argc + 1;
	stack->envc = count(stack->envp);
	stack->auxv = (struct auxv *)(stack->envp + stack->envc + 1);
	stack->nr_auxv = 0;
	while (stack->auxv[stack->nr_auxv++].type != AT_NULL)
		;
	stack->handover = NULL;
	take_handover(stack);
}

static struct auxv *find(const struct stack *stack, uint64_t type)
{
	for (struct auxv *a = stack->auxv; a->type != AT_NULL; a++)
		if (a->type == type)
			return a;
	return NULL;
}

uint64_t stack_auxv(const struct stack *stack, uint64_t type)
{
	const struct auxv *entry = find(stack, type);

	return entry ? entry->value : 0;
}

void stack_set_auxv(struct stack *stack, uint64_t type, uint64_t value)
{
	struct auxv *entry = find(stack, type);

	if (entry)
		entry->value = value;
}
