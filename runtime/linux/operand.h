/* SPDX-License-Identifier: MIT */
/* Where an operand of the program's code lies, by the registers before the instruction. */
#ifndef RUNTIME_LINUX_OPERAND_H
#define RUNTIME_LINUX_OPERAND_H

#include <stdint.h>

#include "runtime/thread.h"
#include "runtime/translate/decode.h"

/* Of the calling thread, whose FS is the program's; for gathers the base alone. */
uint64_t operand_address(const struct regs *regs, const struct insn *insn,
			 const struct insn_memory *memory);

#endif
