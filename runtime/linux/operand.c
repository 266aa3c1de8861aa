// SPDX-License-Identifier: MIT
#include "runtime/linux/operand.h"

#include "runtime/fs.h"

/* How far behind its operand's beginning the word is that has the bit. */
static uint64_t bits_behind(uint64_t bits, unsigned int size)
{
	int64_t which = (int64_t)bits;

	if (size == 2)
		which = (int16_t)bits;
	if (size == 4)
		which = (int32_t)bits;
	return (uint64_t)(which >> (size == 2 ? 4 : size == 4 ? 5 : 6)) * size;
}

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
	if (memory->bits != INSN_NO_REGISTER)
		address += bits_behind(regs->gpr[memory->bits], memory->size);
	if (memory->prefixes & PREFIX_ADDRESS)
		address = (uint32_t)address;
	if (memory->prefixes & PREFIX_FS)
		address += fs_base_known(&thread_self()->fs);
	return memory->aligned ? address & -(uint64_t)memory->size : address;
}
