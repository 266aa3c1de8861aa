// SPDX-License-Identifier: MIT
/* What an instruction does, of the kinds that are counted. */
#include "runtime/translate/build.h"
#include "runtime/translate/count.h"

static void count_operands(struct counts *counts, const struct insn *insn)
{
	struct insn_effects effects;

	insn_effects(insn, &effects);
	for (unsigned int i = 0; i < effects.nr_memory; i++) {
		counts->of[CORE_LOADS] += effects.memory[i].access & ACCESS_R ? 1 : 0;
		counts->of[CORE_STORES] += effects.memory[i].access & ACCESS_W ? 1 : 0;
	}
}

/* What an instruction of a class does beside its operands; jcc as if it were not taken. */
#define BRANCH [CORE_INSTRUCTIONS] = 1, [CORE_BRANCHES] = 1
#define TAKEN  BRANCH, [CORE_BRANCHES_TAKEN] = 1

static const struct counts of_class[] = {
	[INSN_PLAIN] = {.of = {[CORE_INSTRUCTIONS] = 1}},
	[INSN_JCC] = {.of = {BRANCH, [CORE_BRANCHES_CONDITIONAL] = 1}},
	[INSN_JMP] = {.of = {TAKEN}},
	[INSN_JMP_INDIRECT] = {.of = {TAKEN, [CORE_BRANCHES_INDIRECT] = 1}},
	[INSN_CALL] = {.of = {TAKEN, [CORE_CALLS] = 1}},
	[INSN_CALL_INDIRECT] = {.of = {TAKEN, [CORE_CALLS] = 1, [CORE_BRANCHES_INDIRECT] = 1}},
	[INSN_RET] = {.of = {TAKEN, [CORE_RETURNS] = 1}},
	[INSN_FAR] = {.of = {[CORE_INSTRUCTIONS] = 1}},
	[INSN_LOOP] = {.of = {BRANCH, [CORE_BRANCHES_CONDITIONAL] = 1}},
	[INSN_SYSCALL] = {.of = {[CORE_INSTRUCTIONS] = 1}},
	[INSN_INTERRUPT] = {.of = {[CORE_INSTRUCTIONS] = 1}},
	[INSN_IRET] = {.of = {[CORE_INSTRUCTIONS] = 1}},
	[INSN_XBEGIN] = {.of = {[CORE_INSTRUCTIONS] = 1}},
};

#define OPERANDS (CORE_KIND_BIT(CORE_LOADS) | CORE_KIND_BIT(CORE_STORES))

static struct counts only(const struct count *c, const struct counts *counts)
{
	struct counts result;
	uint64_t words[COUNT_WORDS];

	__builtin_memcpy(words, counts, sizeof(words));
	for (unsigned int i = 0; i < COUNT_WORDS; i++)
		words[i] &= c->mask[i];
	__builtin_memcpy(&result, words, sizeof(words));
	return result;
}

struct counts count_insn(const struct count *c, const struct insn *insn)
{
	struct counts counts = of_class[insn->class];

	if (c->kinds & OPERANDS)
		count_operands(&counts, insn);
	if (c->kinds & CORE_KINDS_FLOATING)
		count_floating(&counts, insn);
	return only(c, &counts);
}

struct counts count_jcc(const struct count *c)
{
	return only(c, &of_class[INSN_JCC]);
}
