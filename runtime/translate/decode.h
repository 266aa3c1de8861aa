/* SPDX-License-Identifier: MIT */
/*
 * The x86-64 instruction decoder: freestanding, table-driven (x86.tab), in two steps.
 *
 *	insn_decode()	length, what it does to the flow of control, where its parts lie
 *	insn_effects()	memory operands, general registers and flags read and written
 *
 * The first is what every translated instruction pays for; the second is for instrumentation and
 * for finding registers and flags that are free. The decoder is lenient: an encoding that the
 * processor refuses for a reason other than its opcode (a LOCK prefix where none may be, reserved
 * VEX bits) is decoded as if it were accepted, since copying it gives the fault that it stands for.
 */
#ifndef RUNTIME_TRANSLATE_DECODE_H
#define RUNTIME_TRANSLATE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_MAX 15

enum insn_class {
	INSN_PLAIN,
	INSN_JCC,
	INSN_JMP,
	INSN_JMP_INDIRECT,
	INSN_CALL,
	INSN_CALL_INDIRECT,
	INSN_RET,
	INSN_FAR,  /* a far jump, call or return */
	INSN_LOOP, /* loop, loope, loopne, jrcxz: short branches that count in rcx */
	INSN_SYSCALL,
	INSN_INTERRUPT, /* int, int1, int3, ud0, ud1, ud2 */
	INSN_IRET,
	INSN_XBEGIN,
};

/* insn.prefixes */
#define PREFIX_OPERAND 0x01 /* 66 */
#define PREFIX_ADDRESS 0x02 /* 67 */
#define PREFIX_LOCK    0x04
#define PREFIX_REPNE   0x08 /* f2, if it came later than f3 */
#define PREFIX_REP     0x10 /* f3, if it came later than f2 */
#define PREFIX_FS      0x20
#define PREFIX_GS      0x40

/* insn.rex: as in the prefix; of VEX and EVEX the same bits, not inverted */
#define REX_B 1
#define REX_X 2
#define REX_R 4
#define REX_W 8

enum insn_encoding { INSN_LEGACY, INSN_VEX, INSN_XOP, INSN_EVEX };

struct insn_shape;

struct insn {
	uint8_t length;
	uint8_t class;	  /* enum insn_class */
	uint8_t encoding; /* enum insn_encoding */
	uint8_t prefixes;
	uint8_t rex;
	bool has_rex; /* a REX prefix: byte registers 4 to 7 are spl ... dil, not ah ... bh */
	uint8_t map;  /* 0: opcodes of one byte; 1: of 0f and one more; else others */
	uint8_t pp;   /* which prefix the opcode goes by: 0, 1 (66), 2 (f3), 3 (f2) */
	uint8_t opcode;
	uint8_t opcode_at; /* offsets of the parts; 0 when there is none */
	uint8_t modrm_at;
	uint8_t disp_at, disp_size;
	uint8_t imm_at, imm_size; /* the second immediate of enter and extrq follows */
	uint8_t modrm, sib;
	bool rip_relative;
	uint8_t vvvv;	/* VEX and EVEX: the register, not inverted; its bit 4 is EVEX.V' */
	uint8_t vector; /* bytes: 16, 32 or 64 */
	bool broadcast; /* EVEX.b */
	int32_t disp;	/* sign-extended, as encoded: not scaled by EVEX */
	int64_t imm;	/* sign-extended; the address of moffs */
	const struct insn_shape *shape;
};

/*
 * Decodes the instruction at @code, of which @size bytes may be read. False when there is none, and
 * then insn->length says why: 0 if more bytes could make it one, INSN_MAX if it is longer than
 * that, 1 if there is no such opcode.
 */
bool insn_decode(struct insn *insn, const uint8_t *code, size_t size);

/* Of a direct branch at @address: where it goes. */
static inline uint64_t insn_target(const struct insn *insn, uint64_t address)
{
	return address + insn->length + (uint64_t)insn->imm;
}

enum insn_access { ACCESS_NONE, ACCESS_R, ACCESS_W, ACCESS_RW };

#define INSN_NO_REGISTER 0xff

/* base + (index << scale) + disp, in the segment that insn.prefixes names, 32 bits with
 * PREFIX_ADDRESS. */
struct insn_memory {
	uint8_t base;  /* 0 to 15, or INSN_NO_REGISTER */
	uint8_t index; /* a vector register when vsib */
	uint8_t scale; /* as a shift */
	bool vsib, rip_relative;
	bool aligned;	  /* to its size, whatever the registers say */
	uint8_t bits;	  /* a register that counts bits from there, in operands; or none */
	uint8_t prefixes; /* PREFIX_ADDRESS and PREFIX_FS, if they are about this operand */
	uint8_t access;	  /* enum insn_access */
	uint16_t size;	  /* bytes; 0: not fixed by the encoding (xsave) or no access */
	int64_t disp;	  /* scaled by EVEX; from the end of the instruction when rip_relative */
};

/* Bits of the flags, in the order in which x86.tab spells them. */
enum insn_flag {
	INSN_OF = 1,
	INSN_SF = 2,
	INSN_ZF = 4,
	INSN_AF = 8,
	INSN_PF = 16,
	INSN_CF = 32,
	INSN_DF = 64,
	INSN_IF = 128,
};

struct insn_effects {
	struct insn_memory memory[3]; /* the stack, a string's source and destination too */
	unsigned int nr_memory;
	/*
	 * General registers, a bit each. A register written in part (8 or 16 bits) or on a
	 * condition is read as well, so what is written and not read was free before.
	 */
	uint16_t read, written;
	uint8_t flags_read, flags_written; /* enum insn_flag */
};

void insn_effects(const struct insn *insn, struct insn_effects *effects);

/* The flags alone. */
void insn_flags(const struct insn *insn, uint8_t *read, uint8_t *written);

/* Vector registers that it may read or write, a bit for each and for the one with 16 added; perhaps
 * some more, and not those below 8 that some do not name. */
uint16_t insn_vectors(const struct insn *insn);

enum insn_arithmetic {
	INSN_NO_ARITHMETIC,
	INSN_ADD, /* and subtract */
	INSN_MULTIPLY,
	INSN_DIVIDE, /* and square root */
	INSN_FMA,    /* in all its forms */
	INSN_DOT,    /* multiplies, and adds the products */
	INSN_OTHER,  /* min, max, approximate reciprocals, products of complex halves */
	INSN_BFLOAT, /* adds products of pairs of bfloat16 to singles */
};

/* Arithmetic on floating point numbers in vector registers. */
struct insn_floating {
	uint8_t arithmetic;	 /* enum insn_arithmetic */
	bool is_double, is_half; /* else single precision */
	uint8_t elements; /* as many as the registers have, masked or not; of BFLOAT, of the result
			   */
	uint8_t vector;	  /* bytes: 16, 32, 64; 0: it is scalar */
};

struct insn_floating insn_floating(const struct insn *insn);

static inline bool insn_is_call(const struct insn *insn)
{
	return insn->class == INSN_CALL || insn->class == INSN_CALL_INDIRECT;
}

/* Slots of issue that it takes in the model: docs/model.md. */
unsigned int insn_slots(const struct insn *insn);

/* Whether it depends on GS: accesses memory through it, reads its base or changes it. */
bool insn_uses_gs(const struct insn *insn);

/* Whether it reads the base of FS as such, or changes FS. */
bool insn_reaches_fs(const struct insn *insn);

#endif
