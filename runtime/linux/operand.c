// SPDX-License-Identifier: MIT
#include "runtime/linux/operand.h"

#include "runtime/fs.h"

uint64_t operand_address(const struct regs *regs, const struct insn *insn,
			 const struct insn_memory *memory)
{
	uint64_t address = (uint64_t)memory->disp;

	if (memory->rip_relative)
		address += regs->rip + insn->length;
	if (memory->base != INSN_NO_REGISTER)
		address += regs->gpr[memory->base];
	if (memory->index != INSN_NO_REGISTER && !memory->vsib)
		address += regs->gpr[memory->index] << memory->scale;
	if (insn->prefixes & PREFIX_ADDRESS)
		address = (uint32_t)address;
	return insn->prefixes & PREFIX_FS ? address + fs_base() : address;
}
