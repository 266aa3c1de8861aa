// SPDX-License-Identifier: MIT
/*
 * What made a counter overflow. Where a counter of the translator's is about to get to 0 the thread
 * runs one instruction at a time, so the one that did it is the last one, and with the registers
 * from before it its operands are known as well, whatever it has done to these registers. The
 * model's are looked for when the trace is taken in (runtime/pmu/single.c).
 */
#include "runtime/linux/cause.h"

#include <linux/perf_event.h>

#include "core/host.h"
#include "runtime/linux/event_host.h"
#include "runtime/linux/operand.h"
#include "runtime/linux/task.h"
#include "runtime/pmu/tracer.h"
#include "runtime/translate/translate.h"

void linux_step_before(struct thread *thread)
{
	thread->task->stepped = thread->regs;
}

void cause_forget(struct thread *thread)
{
	thread->task->stepped.rip = 0;
	tracer_forget(thread);
}

/* The operand that a sample of @kind is about: of those that are read before those that are
 * written, as what reads and then writes is a load. */
static const struct insn_memory *choose(const struct insn_effects *effects, enum core_kind kind)
{
	static const uint8_t reads_first[] = {ACCESS_R, ACCESS_W};
	static const uint8_t writes[] = {ACCESS_W, ACCESS_W};
	const uint8_t *order = kind == CORE_STORES ? writes : reads_first;

	for (unsigned int turn = 0; turn < 2; turn++)
		for (unsigned int i = 0; i < effects->nr_memory; i++)
			if (effects->memory[i].access & order[turn])
				return &effects->memory[i];
	return NULL;
}

static uint64_t source_of(const struct insn *insn, const struct insn_memory *memory,
			  enum core_kind kind)
{
	const bool store = kind == CORE_STORES || !(memory->access & ACCESS_R);
	const uint64_t lock =
		insn->prefixes & PREFIX_LOCK ? PERF_MEM_S(LOCK, LOCKED) : PERF_MEM_S(LOCK, NA);

	return (store ? PERF_MEM_S(OP, STORE) : PERF_MEM_S(OP, LOAD)) | lock | PERF_MEM_S(LVL, NA) |
	       PERF_MEM_S(SNOOP, NA) | PERF_MEM_S(TLB, NA) | PERF_MEM_S(LVLNUM, NA);
}

static void find_access(const struct regs *regs, enum core_kind kind, struct core_cause *cause)
{
	const struct insn_memory *memory;
	struct insn_effects effects;
	uint8_t code[INSN_MAX];
	struct insn insn;

	if (!insn_decode(&insn, code, linux_code(code, regs->rip, sizeof(code))))
		return;
	insn_effects(&insn, &effects);
	memory = choose(&effects, kind);
	if (!memory)
		return;
	cause->address = operand_address(regs, &insn, memory);
	cause->source = source_of(&insn, memory, kind);
}

bool core_host_cause(enum core_kind kind, bool access, struct core_cause *cause, uint64_t regs[])
{
	const struct thread *thread = thread_self();
	const struct regs *stepped = &thread->task->stepped;
	const bool modelled = tracer_cause(thread, kind, cause);

	if (!stepped->rip)
		return modelled;
	event_registers(regs, stepped);
	if (access && (!modelled || !cause->address))
		find_access(stepped, kind, cause);
	cause->ip = stepped->rip;
	cause->since = CORE_SINCE_NOTHING;
	return true;
}
