/* SPDX-License-Identifier: MIT */
/*
 * Executes instructions of the program by what they mean, without code: general registers, flags
 * and memory. Those that make up nearly all of what programs do; of vectors, x87, locked, string
 * and system instructions none.
 */
#ifndef RUNTIME_TRANSLATE_INTERPRET_H
#define RUNTIME_TRANSLATE_INTERPRET_H

#include <stdint.h>

struct regs;

/* As many bytes of code have to be there, whatever the instruction is; behind them are zeros. */
enum { INTERPRET_BYTES = 16, INTERPRET_ROOM = 24 };

/*
 * Executes the instruction at regs->rip, which @code has, and returns what it has counted: bits of
 * enum core_kind, of exact kinds, none of which it counts twice. 0: it is not one of these, or it
 * would fault, and nothing has changed.
 */
uint64_t interpret(struct regs *regs, const uint8_t code[INTERPRET_ROOM]);

#endif
