// SPDX-License-Identifier: MIT
/*
 * Breakpoints on instructions and on data: of any number, at any place, of any length, since it is
 * not the processor that watches. A thread with breakpoints on data executes what may touch one
 * alone (translate/filter.c), and what that is going to touch is worked out before. For those on
 * instructions its code stops there (CORE_EXTRA_STOPS).
 *
 * As the processor has it, a breakpoint on an instruction is met before that is executed, and one
 * on data behind the access. Having been met, the first is passed over once: RF in the flags says
 * so, which also a signal frame keeps.
 *
 * What is not seen: elements of gathers and scatters, and what the kernel does for the program.
 */
#include <linux/hw_breakpoint.h>

#include "core/core.h"
#include "runtime/linux/operand.h"
#include "runtime/linux/uprobes.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/translate.h"

/* Of operands whose size the encoding does not tell: state that is saved and restored. */
enum { SIZE_OF_STATE = 512 };

static bool is_string(const struct insn *insn)
{
	static const uint8_t strings[] = {0xa4, 0xa5, 0xa6, 0xa7, 0xaa,
					  0xab, 0xac, 0xad, 0xae, 0xaf};

	if (insn->encoding != INSN_LEGACY || insn->map)
		return false;
	for (unsigned int i = 0; i < sizeof(strings); i++)
		if (insn->opcode == strings[i])
			return true;
	return false;
}

/* A repeated string instruction touches a row of elements, from the first one up or down. */
static void extend(const struct thread *thread, const struct insn *insn, struct touch *touch)
{
	uint64_t times = thread->regs.gpr[REG_RCX], rest;

	if (!(insn->prefixes & (PREFIX_REP | PREFIX_REPNE)) || !is_string(insn))
		return;
	if (insn->prefixes & PREFIX_ADDRESS)
		times = (uint32_t)times;
	if (!times) {
		touch->size = 0;
		return;
	}
	rest = (times - 1) * touch->size;
	if (thread->regs.rflags & X86_EFLAGS_DF)
		touch->address -= rest;
	touch->size += rest;
}

static void note_touch(struct thread *thread, const struct insn *insn,
		       const struct insn_memory *memory)
{
	static const uint8_t types[] = {
		[ACCESS_R] = HW_BREAKPOINT_R,
		[ACCESS_W] = HW_BREAKPOINT_W,
		[ACCESS_RW] = HW_BREAKPOINT_RW,
	};
	struct touches *touches = &thread->touches;
	struct touch touch;

	if (memory->access == ACCESS_NONE || memory->vsib)
		return;
	touch = (struct touch){
		.address = operand_address(&thread->regs, insn, memory),
		.size = memory->size ? memory->size : SIZE_OF_STATE,
		.type = types[memory->access],
	};
	extend(thread, insn, &touch);
	if (touch.size &&
	    core_breakpoint_at(&thread->events, touch.type, touch.address, touch.size))
		touches->of[touches->nr++] = touch;
}

bool linux_at_breakpoint(struct thread *thread)
{
	const uint64_t pc = thread->regs.rip;
	bool met, hit;

	if (thread->regs.rflags & X86_EFLAGS_RF || thread->touches.told == pc)
		return false;
	met = uprobes_meet(thread, pc);
	hit = core_breakpoint_at(&thread->events, HW_BREAKPOINT_X, pc, 1);
	if (!met && !hit)
		return false;
	thread->regs.rflags |= X86_EFLAGS_RF;
	thread->touches.told = pc;
	if (hit)
		core_breakpoint(&thread->events, HW_BREAKPOINT_X, pc, 1);
	return true;
}

bool linux_before_insn(struct thread *thread)
{
	struct insn_effects effects;
	uint8_t code[INSN_MAX];
	struct insn insn;
	size_t size;

	thread->touches.nr = 0;
	thread->touches.pc = thread->regs.rip;
	if (linux_at_breakpoint(thread))
		return false;
	if (!(thread->events.extras & CORE_EXTRA_BREAKPOINTS))
		return true;
	size = linux_code(code, thread->regs.rip, sizeof(code));
	if (!insn_decode(&insn, code, size))
		return true; /* a fault, as it will turn out */
	insn_effects(&insn, &effects);
	for (unsigned int i = 0; i < effects.nr_memory; i++)
		note_touch(thread, &insn, &effects.memory[i]);
	return true;
}

void linux_after_insn(struct thread *thread)
{
	const struct touches touches = thread->touches;
	struct core_breakpoint_range of[sizeof(touches.of) / sizeof(*touches.of)];

	thread->touches.nr = 0;
	/* It has faulted, or was never begun. */
	if (thread->regs.rip == touches.pc)
		return;
	for (unsigned int i = 0; i < touches.nr; i++)
		of[i] = (struct core_breakpoint_range){touches.of[i].address, touches.of[i].size,
						       touches.of[i].type};
	core_breakpoints(&thread->events, of, touches.nr);
}
