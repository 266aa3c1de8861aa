// SPDX-License-Identifier: MIT
#include "lib/symbol/cfi.h"

#include <dwarf.h>
#include <stdlib.h>

#include "lib/symbol/dso.h"

struct tly_cfi {
	struct tly_elf file, debug;
	Dwarf *dwarf;	      /* of the file that has .debug_frame */
	Dwarf_CFI *tables[2]; /* .eh_frame and .debug_frame; NULL: not there */
};

void tly_cfi_free(struct tly_cfi *cfi)
{
	if (!cfi)
		return;
	if (cfi->tables[0])
		dwarf_cfi_end(cfi->tables[0]);
	if (cfi->dwarf)
		dwarf_end(cfi->dwarf);
	tly_elf_close(&cfi->debug);
	tly_elf_close(&cfi->file);
	free(cfi);
}

static void open_debug_frame(struct tly_cfi *cfi, struct tly_elf *file)
{
	GElf_Shdr header;

	if (!file->elf || cfi->tables[1] ||
	    !(tly_elf_section(file->elf, ".debug_frame", &header) ||
	      tly_elf_section(file->elf, ".zdebug_frame", &header)))
		return;
	cfi->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (cfi->dwarf)
		cfi->tables[1] = dwarf_getcfi(cfi->dwarf);
}

static struct tly_cfi *open_cfi(struct tally_dso *dso)
{
	struct tly_cfi *cfi = calloc(1, sizeof(*cfi));
	GElf_Ehdr header;

	if (!cfi)
		return NULL;
	cfi->file.fd = cfi->debug.fd = -1;
	if (dso->kind == TLY_DSO_VDSO)
		tly_dso_open_vdso(dso, &cfi->file);
	else if (dso->path)
		tly_elf_open(&cfi->file, dso->path, true);
	if (!cfi->file.elf || !gelf_getehdr(cfi->file.elf, &header) ||
	    header.e_machine != EM_X86_64)
		return cfi;
	cfi->tables[0] = dwarf_getcfi_elf(cfi->file.elf);
	open_debug_frame(cfi, &cfi->file);
	if (dso->debug_path && !cfi->tables[1] && !tly_elf_open(&cfi->debug, dso->debug_path, true))
		open_debug_frame(cfi, &cfi->debug);
	return cfi;
}

static bool fits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

/* libdw gives every rule as an expression; the usual ones are taken apart here, once. */
static bool simplify(struct tly_rule *rule, const Dwarf_Op *ops, size_t nr)
{
	bool value = nr && ops[nr - 1].atom == DW_OP_stack_value;
	size_t terms = nr - value;

	if (nr == 1 && ops[0].atom == DW_OP_regx && ops[0].number < TLY_NR_REGS) {
		rule->kind = TLY_REGISTER;
		rule->other = ops[0].number;
		rule->offset = 0;
		return true;
	}
	if (terms && terms <= 2 && ops[0].atom == DW_OP_call_frame_cfa &&
	    (terms == 1 || (ops[1].atom == DW_OP_plus_uconst && fits((int64_t)ops[1].number)))) {
		rule->kind = value ? TLY_CFA_OFFSET : TLY_SAVED;
		rule->offset = terms == 2 ? (int32_t)ops[1].number : 0;
		return true;
	}
	rule->kind = value ? TLY_VALUE : TLY_EXPRESSION;
	rule->ops = ops;
	rule->nr_ops = nr;
	return false;
}

static bool cfa_rule(Dwarf_Frame *frame, struct tly_rule *rule)
{
	Dwarf_Op *ops;
	size_t nr;

	if (dwarf_frame_cfa(frame, &ops, &nr) || !nr)
		return false;
	if (nr == 1 && ops[0].atom == DW_OP_bregx) {
		/* It lies in the frame and is freed with it: not to be kept as an expression. */
		if (ops[0].number >= TLY_NR_REGS || !fits((int64_t)ops[0].number2))
			return false;
		rule->kind = TLY_REGISTER;
		rule->other = ops[0].number;
		rule->offset = (int32_t)ops[0].number2;
	} else {
		rule->kind = TLY_VALUE;
		rule->ops = ops;
		rule->nr_ops = nr;
	}
	return true;
}

/* False when the rule cannot be had: the frame is of no use then. */
static bool register_rule(Dwarf_Frame *frame, int reg, struct tly_frame_rules *rules)
{
	struct tly_rule *rule = &rules->rules[rules->nr];
	Dwarf_Op memory[3], *ops;
	size_t nr;

	if (dwarf_frame_register(frame, reg, memory, &ops, &nr))
		return false;
	if (!ops && !nr)
		return true; /* the same value */
	*rule = (struct tly_rule){.reg = reg};
	if (!nr)
		rule->kind = TLY_UNDEFINED;
	else if (!simplify(rule, ops, nr) && ops == memory)
		return false;
	rules->nr++;
	return true;
}

static bool read_rules(Dwarf_CFI *table, uint64_t address, struct tly_frame_rules *rules)
{
	Dwarf_Frame *frame;
	bool good;
	int ra;

	if (dwarf_cfi_addrframe(table, address, &frame))
		return false;
	*rules = (struct tly_frame_rules){0};
	ra = dwarf_frame_info(frame, NULL, NULL, &rules->signal);
	good = ra == TLY_RA && cfa_rule(frame, &rules->cfa);
	for (int reg = 0; good && reg < TLY_NR_REGS; reg++)
		good = register_rule(frame, reg, rules);
	free(frame);
	return good;
}

bool tly_cfi_rules(struct tally_dso *dso, uint64_t address, struct tly_frame_rules *rules)
{
	tly_dso_load(dso);
	if (!dso->cfi)
		dso->cfi = open_cfi(dso);
	for (size_t i = 0; dso->cfi && i < 2; i++) {
		if (dso->cfi->tables[i] && read_rules(dso->cfi->tables[i], address, rules))
			return true;
	}
	return false;
}
