/* SPDX-License-Identifier: MIT */
/* What operations on general registers make of their operands, and of the flags. */
#ifndef RUNTIME_TRANSLATE_ALU_H
#define RUNTIME_TRANSLATE_ALU_H

#include <stdbool.h>
#include <stdint.h>

enum { CF = 0x1, PF = 0x4, AF = 0x10, ZF = 0x40, SF = 0x80, OF = 0x800 };
#define STATUS (CF | PF | AF | ZF | SF | OF)

/* Whether a condition holds, by the low four bits of its opcode. */
bool alu_condition(uint64_t flags, unsigned int code);

/* Of @size bytes; @a becomes the result. What lies above it in the two does not matter. */
typedef void alu_operation(uint64_t *a, uint64_t b, unsigned int size, uint64_t *flags);

/* As instructions number them: add, or, adc, sbb, and, sub, xor; the last is cmp, of which nobody
 * wants the result. */
enum { ALU_ADD, ALU_AND = 4, ALU_SUB, ALU_CMP = 7 };
extern alu_operation *const alu_operations[8];

/* Rotations and shifts, as instructions number them, if alu_shifts() has it; @constant: not by
 * cl. */
bool alu_shifts(unsigned int which);
void alu_shift(unsigned int which, uint64_t *a, uint64_t by, unsigned int size, bool constant,
	       uint64_t *flags);

/* Of 2 bytes or more; the lower half of the product. */
void alu_multiply(uint64_t *a, uint64_t b, unsigned int size, uint64_t *flags);

/* rdx:rax = rax * @b, of 4 or 8 bytes. */
void alu_multiply_long(uint64_t rax_rdx[2], uint64_t b, unsigned int size, bool has_sign,
		       uint64_t *flags);

#endif
