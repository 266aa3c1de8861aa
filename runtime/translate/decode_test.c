// SPDX-License-Identifier: MIT
/*
 * The decoder against Zydis: every instruction in the executable sections of ELF files, and random
 * bytes.
 *
 * usage: test-decode [-r COUNT] [-s SEED] FILE...
 *
 * Where a file's data looks like code, both decode the same nonsense. What Zydis refuses is not
 * compared: see decode.h on lenience. Each mnemonic is reported once for each kind of difference.
 */
#include <Zydis/Zydis.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/translate/decode.h"

static ZydisDecoder decoder;
static ZydisFormatter formatter;
static uint64_t compared, differences;

static uint8_t class_of(const ZydisDecodedInstruction *z)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
		return INSN_LOOP;
	case ZYDIS_MNEMONIC_XBEGIN:
		return INSN_XBEGIN;
	case ZYDIS_MNEMONIC_SYSCALL:
		return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		return INSN_IRET;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return INSN_INTERRUPT;
	case ZYDIS_MNEMONIC_JMP:
		if (z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return INSN_FAR;
		return z->raw.imm[0].is_relative ? INSN_JMP : INSN_JMP_INDIRECT;
	case ZYDIS_MNEMONIC_CALL:
		if (z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return INSN_FAR;
		return z->raw.imm[0].is_relative ? INSN_CALL : INSN_CALL_INDIRECT;
	case ZYDIS_MNEMONIC_RET:
		return z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? INSN_FAR : INSN_RET;
	default:
		return z->meta.category == ZYDIS_CATEGORY_COND_BR &&
				       z->mnemonic != ZYDIS_MNEMONIC_XEND
			       ? INSN_JCC
			       : INSN_PLAIN;
	}
}

static int general(ZydisRegister reg)
{
	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		return ZydisRegisterGetId(
			ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg));
	default:
		return -1;
	}
}

static uint8_t flags_of(uint32_t cpu)
{
	return (cpu & ZYDIS_CPUFLAG_OF ? INSN_OF : 0) | (cpu & ZYDIS_CPUFLAG_SF ? INSN_SF : 0) |
	       (cpu & ZYDIS_CPUFLAG_ZF ? INSN_ZF : 0) | (cpu & ZYDIS_CPUFLAG_AF ? INSN_AF : 0) |
	       (cpu & ZYDIS_CPUFLAG_PF ? INSN_PF : 0) | (cpu & ZYDIS_CPUFLAG_CF ? INSN_CF : 0) |
	       (cpu & ZYDIS_CPUFLAG_DF ? INSN_DF : 0) | (cpu & ZYDIS_CPUFLAG_IF ? INSN_IF : 0);
}

static uint8_t register_or_none(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP
		       ? INSN_NO_REGISTER
		       : ZydisRegisterGetId(reg);
}

/* Hints: Zydis lets them read their operands, but no program can tell. */
static bool is_hint(const ZydisDecodedInstruction *z)
{
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_PREFETCH:
	case ZYDIS_CATEGORY_PREFETCHWT1:
	case ZYDIS_CATEGORY_CLDEMOTE:
	case ZYDIS_CATEGORY_CLFLUSHOPT:
	case ZYDIS_CATEGORY_CLWB:
	case ZYDIS_CATEGORY_MPX: /* nops on every processor made today */
		return true;
	default:
		return z->mnemonic == ZYDIS_MNEMONIC_CLFLUSH ||
		       z->meta.isa_set == ZYDIS_ISA_SET_AVX512PF_512;
	}
}

/* Nobody instruments what only the kernel, a hypervisor or an extinct processor executes. */
static bool is_out_of_reach(const ZydisDecodedInstruction *z)
{
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_SGX:
	case ZYDIS_CATEGORY_VTX:
	case ZYDIS_CATEGORY_CET:
	case ZYDIS_CATEGORY_PADLOCK:
	case ZYDIS_CATEGORY_KEYLOCKER:
	case ZYDIS_CATEGORY_KEYLOCKER_WIDE:
	case ZYDIS_CATEGORY_UINTR:
	case ZYDIS_CATEGORY_PCONFIG:
	case ZYDIS_CATEGORY_ENQCMD:
	case ZYDIS_CATEGORY_HRESET:
	case ZYDIS_CATEGORY_AMX_TILE:
		return true;
	default:
		break;
	}
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_INVPCID:
	case ZYDIS_MNEMONIC_INVEPT:
	case ZYDIS_MNEMONIC_INVVPID:
	case ZYDIS_MNEMONIC_MONITOR:
	case ZYDIS_MNEMONIC_MWAIT:
	case ZYDIS_MNEMONIC_MWAITX:
	case ZYDIS_MNEMONIC_MCOMMIT:
	case ZYDIS_MNEMONIC_CLZERO:
	case ZYDIS_MNEMONIC_RDPRU:
	case ZYDIS_MNEMONIC_SEAMCALL:
	case ZYDIS_MNEMONIC_SEAMOPS:
	case ZYDIS_MNEMONIC_SEAMRET:
	case ZYDIS_MNEMONIC_TDCALL:
	case ZYDIS_MNEMONIC_LWPINS:
	case ZYDIS_MNEMONIC_LWPVAL:
		return true;
	default:
		return class_of(z) == INSN_FAR || class_of(z) == INSN_INTERRUPT ||
		       class_of(z) == INSN_IRET;
	}
}

/*
 * Zydis 4.0 takes a sib byte without base for r13 when there is a 67 prefix and REX.B; binutils and
 * the processor do not.
 */
static bool is_misread(const ZydisDecodedInstruction *z, const struct insn *insn)
{
	return insn->prefixes & PREFIX_ADDRESS && insn->rex & REX_B && z->raw.modrm.mod == 0 &&
	       z->raw.modrm.rm == 4 && z->raw.sib.base == 5;
}

/* Where the manuals say more than Zydis does. */
static void amend(const ZydisDecodedInstruction *z, const struct insn *insn, struct insn_effects *e)
{
	const bool rep = z->attributes &
			 (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);

	switch (z->meta.category) {
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_IOSTRINGOP:
		/* The pointers move; with a repeat count of 0 nothing does. */
		for (unsigned int i = 0; i < e->nr_memory; i++)
			e->written |= 1u << e->memory[i].base;
		if (rep) {
			e->read |= e->written;
			e->flags_read |= e->flags_written;
		}
		break;
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_ROTATE:
		if (insn->opcode != 0xd0 && insn->opcode != 0xd1 && insn->encoding == INSN_LEGACY &&
		    (!z->raw.imm[0].size || e->flags_read ||
		     !(z->raw.imm[0].value.u & (insn->rex & REX_W ? 63 : 31))))
			e->flags_read |= e->flags_written;
		break;
	case ZYDIS_CATEGORY_XSAVE:
	case ZYDIS_CATEGORY_XSAVEOPT:
		for (unsigned int i = 0; i < e->nr_memory; i++)
			if (e->memory[i].access & ACCESS_W)
				e->memory[i].access = ACCESS_RW; /* the header is merged */
		break;
	case ZYDIS_CATEGORY_POP:
		/* What is written is reached by rsp, which is 4, as it is behind. */
		for (unsigned int i = 0; i < e->nr_memory; i++)
			if (e->memory[i].access & ACCESS_W && e->memory[i].base == 4)
				e->memory[i].disp += e->memory[i].size;
		break;
	default:
		/* movsxd with 66 reads 16 bits. */
		for (unsigned int i = 0; i < e->nr_memory; i++)
			if (z->mnemonic == ZYDIS_MNEMONIC_MOVSXD && z->operand_width == 16)
				e->memory[i].size = 2;
		/* The flags other than ZF and CF are cleared. */
		if (z->mnemonic == ZYDIS_MNEMONIC_VPTEST || z->mnemonic == ZYDIS_MNEMONIC_VTESTPS ||
		    z->mnemonic == ZYDIS_MNEMONIC_VTESTPD)
			e->flags_written =
				INSN_OF | INSN_SF | INSN_ZF | INSN_AF | INSN_PF | INSN_CF;
		/* Without a bit to find, the destination is left as it was. */
		if (z->mnemonic == ZYDIS_MNEMONIC_BSF || z->mnemonic == ZYDIS_MNEMONIC_BSR)
			e->read |= e->written;
		break;
	}
}

/* What Zydis says of the operands, in the decoder's own terms. */
static void effects_of(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
		       struct insn_effects *e)
{
	memset(e, 0, sizeof(*e));
	for (int i = 0; i < z->operand_count; i++) {
		const ZydisDecodedOperand *o = &operands[i];
		const bool reads = o->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
		const bool writes = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			int n = general(o->reg.value);

			if (n < 0)
				continue;
			if (reads || (writes && (o->size < 32 ||
						 o->actions & ZYDIS_OPERAND_ACTION_CONDWRITE)))
				e->read |= 1u << n;
			if (writes)
				e->written |= 1u << n;
		} else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			int base = general(o->mem.base), index = general(o->mem.index);

			if (base >= 0)
				e->read |= 1u << base;
			if (index >= 0)
				e->read |= 1u << index;
			if (e->nr_memory == 3)
				continue;
			e->memory[e->nr_memory++] = (struct insn_memory){
				.base = register_or_none(o->mem.base),
				.index = register_or_none(o->mem.index),
				.scale = o->mem.scale ? __builtin_ctz(o->mem.scale) : 0,
				.disp = o->mem.disp.value,
				.access =
					o->mem.type == ZYDIS_MEMOP_TYPE_AGEN
						? ACCESS_NONE
						: (reads ? ACCESS_R : 0) | (writes ? ACCESS_W : 0),
				.size = o->size / 8,
				.rip_relative = o->mem.base == ZYDIS_REGISTER_RIP ||
						o->mem.base == ZYDIS_REGISTER_EIP,
			};
		}
	}
	if (z->cpu_flags) {
		e->flags_read = flags_of(z->cpu_flags->tested);
		e->flags_written = flags_of(z->cpu_flags->modified | z->cpu_flags->set_0 |
					    z->cpu_flags->set_1 | z->cpu_flags->undefined);
	}
}

/* Zydis names rsp, we the address below it that is written. */
static bool is_push(const struct insn_memory *ours, const struct insn_memory *zydis)
{
	return ours->base == 4 && ours->access == ACCESS_W && zydis->disp == 0 &&
	       ours->disp == -(int)ours->size;
}

/* The sum of a 32-bit address is cut to 32 bits, whichever way its displacement was extended. */
static bool same_displacement(int64_t a, int64_t b, bool narrow)
{
	return narrow ? (uint32_t)a == (uint32_t)b : a == b;
}

static bool same_memory(const struct insn_effects *a, const struct insn_effects *b, bool narrow)
{
	if (a->nr_memory != b->nr_memory)
		return false;
	for (unsigned int i = 0; i < a->nr_memory; i++) {
		bool found = false;

		for (unsigned int j = 0; j < b->nr_memory && !found; j++) {
			const struct insn_memory *x = &a->memory[i], *y = &b->memory[j];

			found = x->base == y->base && x->index == y->index &&
				(same_displacement(x->disp, y->disp, narrow) || is_push(x, y)) &&
				(x->index == INSN_NO_REGISTER || x->scale == y->scale) &&
				x->access == y->access && (x->size == y->size || !x->size) &&
				x->rip_relative == y->rip_relative;
		}
		if (!found)
			return false;
	}
	return true;
}

static void print_effects(const char *who, const struct insn_effects *e)
{
	printf("#   %-6s read %04x written %04x flags <%02x >%02x", who, e->read, e->written,
	       e->flags_read, e->flags_written);
	for (unsigned int i = 0; i < e->nr_memory; i++)
		printf(" [base %d index %d<<%d disp %" PRId64 " size %d access %d%s]",
		       (int8_t)e->memory[i].base, (int8_t)e->memory[i].index, e->memory[i].scale,
		       e->memory[i].disp, e->memory[i].size, e->memory[i].access,
		       e->memory[i].rip_relative ? " rip" : "");
	putchar('\n');
}

/* One line for each (mnemonic, kind) is enough to see what is wrong. */
static bool seen_before(ZydisMnemonic mnemonic, int kind)
{
	static uint8_t seen[ZYDIS_MNEMONIC_MAX_VALUE + 1];
	bool before = seen[mnemonic] & (1 << kind);

	seen[mnemonic] |= 1 << kind;
	return before;
}

/* Counts a difference; returns whether it was the first of its kind, and printed. */
static bool report(const char *what, int kind, const uint8_t *code,
		   const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
		   const struct insn *insn)
{
	char text[128];

	differences++;
	if (seen_before(z->mnemonic, kind))
		return false;
	ZydisFormatterFormatInstruction(&formatter, z, operands, z->operand_count_visible, text,
					sizeof(text), 0, NULL);
	printf("# %s: ", what);
	for (int i = 0; i < z->length; i++)
		printf("%02x ", code[i]);
	printf("  %s; Zydis length %d class %d, ours %d %d\n", text, z->length, class_of(z),
	       insn->length, insn->class);
	return true;
}

static void report_effects(const char *what, int kind, const uint8_t *code,
			   const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
			   const struct insn *insn, const struct insn_effects *ours,
			   const struct insn_effects *theirs)
{
	if (!report(what, kind, code, z, operands, insn))
		return;
	print_effects("ours", ours);
	print_effects("Zydis", theirs);
}

/* Vector registers by their lower four bits, with those that Zydis does not tell. */
static uint16_t vectors_of(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands)
{
	uint16_t vectors = 0;

	for (int i = 0; i < z->operand_count; i++) {
		const ZydisDecodedOperand *o = &operands[i];
		const ZydisRegister regs[] = {
			o->type == ZYDIS_OPERAND_TYPE_REGISTER ? o->reg.value : ZYDIS_REGISTER_NONE,
			o->type == ZYDIS_OPERAND_TYPE_MEMORY ? o->mem.index : ZYDIS_REGISTER_NONE,
		};

		for (unsigned int j = 0; j < sizeof(regs) / sizeof(*regs); j++) {
			const ZydisRegisterClass class = ZydisRegisterGetClass(regs[j]);

			if ((class == ZYDIS_REGCLASS_XMM || class == ZYDIS_REGCLASS_YMM ||
			     class == ZYDIS_REGCLASS_ZMM) &&
			    (o->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT ||
			     ZydisRegisterGetId(regs[j]) >= 8))
				vectors |= 1u << (ZydisRegisterGetId(regs[j]) & 15);
		}
		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    o->attributes & ZYDIS_OATTRIB_IS_MULTISOURCE4)
			vectors |= 0xf << (ZydisRegisterGetId(o->reg.value) & 12);
	}
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_FXSAVE:
	case ZYDIS_MNEMONIC_FXSAVE64:
	case ZYDIS_MNEMONIC_FXRSTOR:
	case ZYDIS_MNEMONIC_FXRSTOR64:
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEC64:
	case ZYDIS_MNEMONIC_XSAVEOPT:
	case ZYDIS_MNEMONIC_XSAVEOPT64:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
	case ZYDIS_MNEMONIC_VZEROALL:
		return 0xffff;
	case ZYDIS_MNEMONIC_VZEROUPPER: /* which leaves what the name says of xmm */
		return 0;
	default:
		return vectors;
	}
}

/* Whether it changes @segment, or reads or changes its base. */
static bool takes_segment(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands,
			  ZydisRegister segment)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_RDFSBASE:
	case ZYDIS_MNEMONIC_WRFSBASE:
		return segment == ZYDIS_REGISTER_FS;
	case ZYDIS_MNEMONIC_RDGSBASE:
	case ZYDIS_MNEMONIC_WRGSBASE:
		return segment == ZYDIS_REGISTER_GS;
	default:
		break;
	}
	for (int i = 0; i < z->operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    operands[i].reg.value == segment &&
		    operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return true;
	return false;
}

static bool has_memory_in_gs(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands)
{
	for (int i = 0; i < z->operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    operands[i].mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
		    operands[i].mem.segment == ZYDIS_REGISTER_GS)
			return true;
	return false;
}

static bool is_one_of(const char *name, size_t length, const char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == length && !memcmp(*names, name, length))
			return true;
	return false;
}

/* By the mnemonic: v, what is done, ps pd ph ss sd sh. */
static struct insn_floating floating_of(const ZydisDecodedInstruction *z)
{
	static const char *const fma[] = {"fmadd",    "fmsub",	  "fnmadd", "fnmsub",
					  "fmaddsub", "fmsubadd", NULL};
	static const char *const complex_numbers[] = {"fmulc", "fcmulc", "fmaddc", "fcmaddc", NULL};
	static const struct {
		const char *names[6];
		uint8_t arithmetic;
	} kinds[] = {
		{{"add", "sub", "addsub", "hadd", "hsub"}, INSN_ADD},
		{{"mul"}, INSN_MULTIPLY},
		{{"div", "sqrt"}, INSN_DIVIDE},
		{{"dp"}, INSN_DOT},
		{{"min", "max", "rcp", "rsqrt"}, INSN_OTHER},
		{{"rcp14", "rsqrt14"}, INSN_OTHER},
		{{"dpbf16"}, INSN_BFLOAT},
	};
	const char *name = ZydisMnemonicGetString(z->mnemonic);
	struct insn_floating f = {0};
	size_t length;

	name += name[0] == 'v';
	length = strlen(name);
	if (length < 4 || !strchr("ps", name[length - 2]) || !strchr("sdh", name[length - 1]))
		return f;
	f.is_double = name[length - 1] == 'd';
	f.is_half = name[length - 1] == 'h';
	f.vector = name[length - 2] == 's'			      ? 0
		   : z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ? 16
								      : z->avx.vector_length / 8;
	f.elements = f.vector ? f.vector / (f.is_double ? 8 : f.is_half ? 2 : 4) : 1;
	length -= 2;
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (is_one_of(name, length, kinds[i].names))
			f.arithmetic = kinds[i].arithmetic;
	if (f.is_half && is_one_of(name, length, complex_numbers))
		f.arithmetic = INSN_OTHER;
	while (length && name[length - 1] >= '1' && name[length - 1] <= '3')
		length--;
	if (is_one_of(name, length, fma))
		f.arithmetic = INSN_FMA;
	return f;
}

static bool same_floating(const struct insn_floating *a, const struct insn_floating *b)
{
	return a->arithmetic == b->arithmetic &&
	       (!a->arithmetic || (a->is_double == b->is_double && a->is_half == b->is_half &&
				   a->vector == b->vector && a->elements == b->elements));
}

/* Compares at @code; returns Zydis's length, or 0 when it refuses. */
static size_t compare(const uint8_t *code, size_t size)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	struct insn_effects ours, theirs;
	ZydisDecodedInstruction z;
	struct insn insn;
	bool ok = insn_decode(&insn, code, size);

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size, &z, operands))) {
		return 0;
	}
	/* The instructions of Knights Corner share codes with later ones; no other processor has
	 * them. */
	if (z.meta.isa_set >= ZYDIS_ISA_SET_KNCE && z.meta.isa_set <= ZYDIS_ISA_SET_KNC_PF_HINT) {
		return 0;
	}
	compared++;
	if (!ok || insn.length != z.length || insn.class != class_of(&z)) {
		report("length or class", 0, code, &z, operands, &insn);
		return z.length;
	}
	/* Cut off by one byte it is incomplete, and nothing else. */
	if (insn_decode(&insn, code, z.length - 1) || insn.length) {
		report("cut off", 4, code, &z, operands, &insn);
		return z.length;
	}
	insn_decode(&insn, code, size);
	if (vectors_of(&z, operands) & ~insn_vectors(&insn))
		report("vector registers", 5, code, &z, operands, &insn);
	const struct insn_floating floating = insn_floating(&insn), zydis = floating_of(&z);

	if (!same_floating(&floating, &zydis))
		report("floating point", 6, code, &z, operands, &insn);
	if (is_hint(&z) || is_out_of_reach(&z) || is_misread(&z, &insn))
		return z.length;
	if (insn_reaches_fs(&insn) != takes_segment(&z, operands, ZYDIS_REGISTER_FS) ||
	    insn_uses_gs(&insn) != (takes_segment(&z, operands, ZYDIS_REGISTER_GS) ||
				    has_memory_in_gs(&z, operands)))
		report("segments", 7, code, &z, operands, &insn);
	insn_effects(&insn, &ours);
	effects_of(&z, operands, &theirs);
	amend(&z, &insn, &theirs);
	if (ours.read != theirs.read || ours.written != theirs.written) {
		report_effects("registers", 1, code, &z, operands, &insn, &ours, &theirs);
	} else if (ours.flags_read != theirs.flags_read ||
		   ours.flags_written != theirs.flags_written) {
		report_effects("flags", 2, code, &z, operands, &insn, &ours, &theirs);
	} else if (!same_memory(&ours, &theirs, insn.prefixes & PREFIX_ADDRESS)) {
		report_effects("memory", 3, code, &z, operands, &insn, &ours, &theirs);
	}
	return z.length;
}

static void compare_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *file;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		goto out;
	file = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		goto out;
	const Elf64_Ehdr *ehdr = (const void *)file;

	if (!memcmp(ehdr->e_ident, ELFMAG, SELFMAG) && ehdr->e_machine == EM_X86_64 &&
	    ehdr->e_ident[EI_CLASS] == ELFCLASS64 && ehdr->e_shoff &&
	    ehdr->e_shoff + ehdr->e_shnum * sizeof(Elf64_Shdr) <= (size_t)st.st_size) {
		const Elf64_Shdr *shdr = (const void *)(file + ehdr->e_shoff);

		for (int i = 0; i < ehdr->e_shnum; i++) {
			if (shdr[i].sh_type != SHT_PROGBITS ||
			    !(shdr[i].sh_flags & SHF_EXECINSTR) ||
			    shdr[i].sh_offset + shdr[i].sh_size > (size_t)st.st_size)
				continue;
			for (size_t at = 0; at < shdr[i].sh_size;) {
				size_t n = compare(file + shdr[i].sh_offset + at,
						   shdr[i].sh_size - at);

				at += n ? n : 1;
			}
		}
	}
	munmap(file, st.st_size);
out:
	if (fd >= 0)
		close(fd);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void compare_random(uint64_t count, uint64_t seed)
{
	uint64_t state = seed;
	uint8_t code[16];

	for (uint64_t i = 0; i < count; i++) {
		for (int j = 0; j < 16; j += 8) {
			uint64_t word = next_random(&state);

			memcpy(code + j, &word, 8);
		}
		/* Half of them in the crowded corners, which chance alone would seldom find. */
		switch (next_random(&state) & 15) {
		case 0:
		case 1:
			code[0] = 0x0f;
			break;
		case 2:
			code[0] = 0x66;
			code[1] = 0x0f;
			break;
		case 3:
			code[0] = 0x62;
			code[1] = (code[1] & 0xf7);
			code[2] |= 4;
			break;
		case 4:
			code[0] = 0xc4;
			code[1] = (code[1] & 0xe0) | (1 + code[1] % 3);
			break;
		case 5:
			code[0] = 0xc5;
			break;
		case 6:
			code[0] = 0x0f;
			code[1] = code[1] & 1 ? 0x38 : 0x3a;
			break;
		case 7:
			code[0] = 0xf2 + (code[0] & 1);
			code[1] = 0x0f;
			break;
		}
		compare(code, sizeof(code));
	}
}

static void verdict(int number, const char *name, uint64_t differences_before)
{
	printf("%sok %d - %s: %" PRIu64 " compared\n",
	       differences == differences_before ? "" : "not ", number, name, compared);
	compared = 0;
}

int main(int argc, char **argv)
{
	uint64_t random = 1000000, seed = (uint64_t)time(NULL) << 20 ^ getpid();
	char name[64];
	int c, n = 0;

	while ((c = getopt(argc, argv, "r:s:")) != -1) {
		if (c == 'r')
			random = strtoull(optarg, NULL, 0);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
	printf("1..%d\n", argc - optind + 1);
	for (int i = optind; i < argc; i++) {
		uint64_t before = differences;

		if (access(argv[i], R_OK) < 0) {
			printf("ok %d - %s # SKIP cannot be read\n", ++n, argv[i]);
			continue;
		}
		compare_file(argv[i]);
		verdict(++n, argv[i], before);
	}
	uint64_t before = differences;

	compare_random(random, seed);
	snprintf(name, sizeof(name), "random bytes, seed %#" PRIx64, seed);
	verdict(++n, name, before);
	return differences != 0;
}
