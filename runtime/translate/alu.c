// SPDX-License-Identifier: MIT
/*
 * The processor is asked: by the same instruction on registers, and with the same flags before, so
 * that flags that the manuals leave undefined are what they are there, too: Intel's make something
 * of most, AMD's leave some alone.
 */
#include "runtime/translate/alu.h"

#include <stddef.h>

/* ---- flags ---- */

/* Around an operation: all of STATUS, in ax; its OF in al, 0 or 1. */
#define PUT_FLAGS "addb $127, %%al; sahf; "
#define GET_FLAGS "; lahf; seto %%al"

static uint32_t ax_of(uint64_t flags)
{
	return (uint32_t)(flags & STATUS & 0xff) << 8 | !!(flags & OF);
}

static uint64_t status_of(uint32_t ax)
{
	return (ax >> 8 & (STATUS & 0xff)) | (uint64_t)(ax & 1) << 11;
}

static void set_flags(uint64_t *flags, uint32_t ax)
{
	*flags = (*flags & ~(uint64_t)STATUS) | status_of(ax);
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

#define BY_B(text, mode)                                                                           \
	__asm__(PUT_FLAGS text " %" mode "2, %" mode "0" GET_FLAGS                                 \
		: "+r"(result), "+&a"(ax)                                                          \
		: "r"(b)                                                                           \
		: "cc")

#define BY_CL(text, mode)                                                                          \
	__asm__(PUT_FLAGS text " %%cl, %" mode "0" GET_FLAGS                                       \
		: "+r"(result), "+&a"(ax)                                                          \
		: "c"(b)                                                                           \
		: "cc")

#define OPERATION(name, operate, text)                                                             \
	static void name(uint64_t *a, uint64_t b, unsigned int size, uint64_t *flags)              \
	{                                                                                          \
		uint64_t result = *a;                                                              \
		uint32_t ax = ax_of(*flags);                                                       \
                                                                                                   \
		switch (size) {                                                                    \
		case 1:                                                                            \
			operate(text "b", "b");                                                    \
			break;                                                                     \
		case 2:                                                                            \
			operate(text "w", "w");                                                    \
			break;                                                                     \
		case 4:                                                                            \
			operate(text "l", "k");                                                    \
			break;                                                                     \
		default:                                                                           \
			operate(text "q", "q");                                                    \
		}                                                                                  \
		*a = result;                                                                       \
		set_flags(flags, ax);                                                              \
	}

OPERATION(add, BY_B, "add")
OPERATION(or, BY_B, "or")
OPERATION(and, BY_B, "and")
OPERATION(sub, BY_B, "sub")
OPERATION(xor, BY_B, "xor")
OPERATION(adc, BY_B, "adc")
OPERATION(sbb, BY_B, "sbb")

OPERATION(rol_by, BY_CL, "rol")
OPERATION(ror_by, BY_CL, "ror")
OPERATION(shl_by, BY_CL, "shl")
OPERATION(shr_by, BY_CL, "shr")
OPERATION(sar_by, BY_CL, "sar")

alu_operation *const alu_operations[8] = {add, or, adc, sbb, and, sub, xor, sub};
static alu_operation *const shifts[8] = {rol_by, ror_by, NULL, NULL, shl_by, shr_by, NULL, sar_by};

bool alu_shifts(unsigned int which)
{
	return shifts[which];
}

/* Rotations by a constant other than 1, for which OF is undefined: AMD's processors do what they do
 * by cl, which makes OF of the two upper bits, and Intel's leave it. */
static bool constant_sets_of(void)
{
	uint32_t turned = 1u << 29;
	bool set;

	__asm__("testl %1, %1; roll $2, %1; seto %0" : "=q"(set), "+r"(turned) : : "cc");
	return set;
}

/* Rotations set CF and OF alone. */
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
		sets = constant && by != 1 && !constant_sets_of() ? CF : CF | OF;
	*flags = (*flags & ~sets) | (all & sets);
}

void alu_multiply(uint64_t *a, uint64_t b, unsigned int size, uint64_t *flags)
{
	uint64_t result = *a;
	uint32_t ax = ax_of(*flags);

	switch (size) {
	case 2:
		BY_B("imulw", "w");
		break;
	case 4:
		BY_B("imull", "k");
		break;
	default:
		BY_B("imulq", "q");
	}
	*a = result;
	set_flags(flags, ax);
}

#define MULTIPLY(text)                                                                             \
	__asm__(PUT_FLAGS "mov %4, %%rax; " text "; mov %%rax, %1" GET_FLAGS                       \
		: "+&a"(rax), "=&r"(low), "=&d"(high)                                              \
		: "r"(b), "r"(rax_rdx[0])                                                          \
		: "cc")

void alu_multiply_long(uint64_t rax_rdx[2], uint64_t b, unsigned int size, bool has_sign,
		       uint64_t *flags)
{
	uint64_t rax = ax_of(*flags), low, high;

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
	set_flags(flags, (uint32_t)rax);
}
