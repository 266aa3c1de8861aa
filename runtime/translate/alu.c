// SPDX-License-Identifier: MIT
/*
 * The processor is asked: by the same instruction on registers, so that flags that the manuals leave
 * undefined are what they are there, too.
 */
#include "runtime/translate/alu.h"

#include <stddef.h>

/* ---- flags ---- */

/* Behind an operation: all of STATUS, in ax. */
#define GET_FLAGS "lahf; seto %%al"

static uint64_t status_of(uint32_t ax)
{
	return (ax >> 8 & (STATUS & 0xff)) | (uint64_t)(ax & 1) << 11;
}

static void set_flags(uint64_t *flags, uint64_t which, uint32_t ax)
{
	*flags = (*flags & ~which) | (status_of(ax) & which);
}

bool alu_condition(uint64_t flags, unsigned int code)
{
	const bool below = flags & CF, zero = flags & ZF, sign = flags & SF;
	const bool less = sign != !!(flags & OF);
	bool holds = false;

	switch (code >> 1 & 7) {
	case 0:
		holds = flags & OF;
		break;
	case 1:
		holds = below;
		break;
	case 2:
		holds = zero;
		break;
	case 3:
		holds = below || zero;
		break;
	case 4:
		holds = sign;
		break;
	case 5:
		holds = flags & PF;
		break;
	case 6:
		holds = less;
		break;
	case 7:
		holds = less || zero;
		break;
	}
	return holds != (code & 1);
}

/* ---- operations ---- */

#define OPERATE(text, mode)                                                                        \
	__asm__(text " %" mode "2, %" mode "0; " GET_FLAGS                                         \
		: "+r"(result), "=&a"(ax)                                                          \
		: "r"(b)                                                                           \
		: "cc")

#define OPERATION(name, text)                                                                      \
	static void name(uint64_t *a, uint64_t b, unsigned int size, uint64_t *flags)              \
	{                                                                                          \
		uint64_t result = *a;                                                              \
		uint32_t ax;                                                                       \
                                                                                                   \
		switch (size) {                                                                    \
		case 1:                                                                            \
			OPERATE(text "b", "b");                                                    \
			break;                                                                     \
		case 2:                                                                            \
			OPERATE(text "w", "w");                                                    \
			break;                                                                     \
		case 4:                                                                            \
			OPERATE(text "l", "k");                                                    \
			break;                                                                     \
		default:                                                                           \
			OPERATE(text "q", "q");                                                    \
		}                                                                                  \
		*a = result;                                                                       \
		set_flags(flags, STATUS, ax);                                                      \
	}

OPERATION(add, "add")
OPERATION(or, "or")
OPERATION(and, "and")
OPERATION(sub, "sub")
OPERATION(xor, "xor")

#undef OPERATE
#define OPERATE(text, mode)                                                                        \
	__asm__("btl $0, %k3; " text " %" mode "2, %" mode "0; " GET_FLAGS                         \
		: "+r"(result), "=&a"(ax)                                                          \
		: "r"(b), "r"(*flags)                                                              \
		: "cc")

OPERATION(adc, "adc")
OPERATION(sbb, "sbb")

/* By cl. */
#undef OPERATE
#define OPERATE(text, mode)                                                                        \
	__asm__(text " %%cl, %" mode "0; " GET_FLAGS : "+r"(result), "=&a"(ax) : "c"(b) : "cc")

OPERATION(rol_by, "rol")
OPERATION(ror_by, "ror")
OPERATION(shl_by, "shl")
OPERATION(shr_by, "shr")
OPERATION(sar_by, "sar")

alu_operation *const alu_operations[8] = {add, or, adc, sbb, and, sub, xor, sub};
static alu_operation *const shifts[8] = {rol_by, ror_by, NULL, NULL, shl_by, shr_by, NULL, sar_by};

bool alu_shifts(unsigned int which)
{
	return shifts[which];
}

/* Rotations set CF and OF alone; by a constant other than 1, for which OF is undefined, some
 * processors leave it and some do what they do by cl. */
void alu_shift(unsigned int which, uint64_t *a, uint64_t by, unsigned int size, bool constant,
	       uint64_t *flags)
{
	const bool rotates = which < 4;
	uint64_t all = *flags, sets = STATUS;

	by &= size == 8 ? 63 : 31;
	if (!by)
		return;
	shifts[which](a, by, size, &all);
	if (rotates)
		sets = constant && by != 1 ? CF : CF | OF;
	*flags = (*flags & ~sets) | (all & sets);
}

void alu_multiply(uint64_t *a, uint64_t b, unsigned int size, uint64_t *flags)
{
	uint64_t result = *a;
	uint32_t ax;

	switch (size) {
	case 2:
		__asm__("imulw %w2, %w0; " GET_FLAGS : "+r"(result), "=&a"(ax) : "r"(b) : "cc");
		break;
	case 4:
		__asm__("imull %k2, %k0; " GET_FLAGS : "+r"(result), "=&a"(ax) : "r"(b) : "cc");
		break;
	default:
		__asm__("imulq %2, %0; " GET_FLAGS : "+r"(result), "=&a"(ax) : "r"(b) : "cc");
	}
	*a = result;
	set_flags(flags, STATUS, ax);
}

#define MULTIPLY(text)                                                                             \
	__asm__(text "; mov %%rax, %1; " GET_FLAGS                                                 \
		: "+&a"(rax), "=&r"(low), "=&d"(high)                                              \
		: "r"(b)                                                                           \
		: "cc")

void alu_multiply_long(uint64_t rax_rdx[2], uint64_t b, unsigned int size, bool has_sign,
		       uint64_t *flags)
{
	uint64_t rax = rax_rdx[0], low, high;

	if (size == 8 && has_sign)
		MULTIPLY("imulq %3");
	else if (size == 8)
		MULTIPLY("mulq %3");
	else if (has_sign)
		MULTIPLY("imull %k3");
	else
		MULTIPLY("mull %k3");
	rax_rdx[0] = low;
	rax_rdx[1] = high;
	set_flags(flags, STATUS, (uint32_t)rax);
}
