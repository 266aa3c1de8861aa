// SPDX-License-Identifier: MIT
/*
 * The stubs through which a file calls what is in others have no symbols. Linkers lay them out in
 * several ways, so their code is read: each jumps through a slot that a relocation names.
 *
 *	f3 0f 1e fa			endbr64, with -fcf-protection
 *	f2				bnd, with older linkers
 *	ff 25 DISP32			jmp *slot(%rip)
 *
 *	f3 0f 1e fa			the lazy half of a split table:
 *	68 INDEX32			push $index
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/symbol/elffile.h"

#define STUB_ALIGN 8
#define STUB_MAX   16

struct slot {
	uint64_t address; /* of the pointer that the stub jumps through */
	uint64_t symbol;  /* index in .dynsym */
};

struct slots {
	struct slot *slots; /* sorted by address */
	size_t nr, size;
	struct slot *lazy; /* of .rela.plt, in its order */
	size_t nr_lazy;
	Elf_Data *symbols, *names;
};

static int add_slot(struct slots *slots, uint64_t address, uint64_t symbol)
{
	if (slots->nr == slots->size) {
		size_t size = slots->size ? slots->size * 2 : 64;
		struct slot *grown = reallocarray(slots->slots, size, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		slots->slots = grown;
		slots->size = size;
	}
	slots->slots[slots->nr++] = (struct slot){address, symbol};
	return 0;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static bool names_a_slot(unsigned int type)
{
	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

static int read_relocations(Elf *elf, struct slots *slots)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header, linked;
		const char *name;
		Elf_Scn *symbols;
		Elf_Data *data;
		bool lazy;
		int nr;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
			continue;
		symbols = elf_getscn(elf, header.sh_link);
		if (!symbols || !gelf_getshdr(symbols, &linked) || linked.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(section, NULL);
		slots->symbols = elf_getdata(symbols, NULL);
		slots->names = elf_getdata(elf_getscn(elf, linked.sh_link), NULL);
		if (!data || !slots->symbols || !slots->names)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		lazy = name && !strcmp(name, ".rela.plt") && !slots->lazy;
		nr = data->d_size / sizeof(Elf64_Rela);
		if (lazy) {
			slots->lazy = calloc(nr ? nr : 1, sizeof(*slots->lazy));
			if (!slots->lazy)
				return -ENOMEM;
			slots->nr_lazy = nr;
		}
		for (int i = 0; i < nr; i++) {
			GElf_Rela rela;

			if (!gelf_getrela(data, i, &rela))
				break;
			if (!names_a_slot(GELF_R_TYPE(rela.r_info)))
				continue;
			if (lazy)
				slots->lazy[i].symbol = GELF_R_SYM(rela.r_info);
			if (add_slot(slots, rela.r_offset, GELF_R_SYM(rela.r_info)))
				return -ENOMEM;
		}
	}
	if (slots->nr)
		qsort(slots->slots, slots->nr, sizeof(*slots->slots), compare_slots);
	return 0;
}

/* The index in .dynsym of what the stub at @code calls; 0 when it is no stub. */
static uint64_t stub_symbol(const struct slots *slots, const uint8_t *code, size_t size,
			    uint64_t address)
{
	const uint8_t *at = code, *end = code + size;
	struct slot key;
	const struct slot *slot;
	int32_t displacement;
	uint32_t index;

	if (end - at >= 4 && !memcmp(at, "\xf3\x0f\x1e\xfa", 4))
		at += 4;
	if (end - at >= 5 && at[0] == 0x68) {
		memcpy(&index, at + 1, sizeof(index));
		return index < slots->nr_lazy ? slots->lazy[index].symbol : 0;
	}
	if (end - at >= 1 && at[0] == 0xf2)
		at++;
	if (end - at < 6 || at[0] != 0xff || at[1] != 0x25 || !slots->nr)
		return 0;
	memcpy(&displacement, at + 2, sizeof(displacement));
	key.address = address + (at - code) + 6 + (uint64_t)(int64_t)displacement;
	slot = bsearch(&key, slots->slots, slots->nr, sizeof(key), compare_slots);
	return slot ? slot->symbol : 0;
}

static const char *stub_name(const struct slots *slots, uint64_t index, struct tly_strings *strings)
{
	const char *names = slots->names->d_buf;
	size_t size = slots->names->d_size;
	GElf_Sym symbol;
	const char *name;
	char *text;

	if (index > INT32_MAX || !gelf_getsym(slots->symbols, index, &symbol) || !names || !size ||
	    names[size - 1] || symbol.st_name >= size)
		return NULL;
	name = tly_demangle(names + symbol.st_name);
	if (asprintf(&text, "%s@plt", name ? name : names + symbol.st_name) < 0)
		text = NULL;
	free((char *)name);
	if (!text)
		return NULL;
	name = tly_strings_add(strings, text, strlen(text));
	free(text);
	return name;
}

static int read_stubs(Elf *elf, const char *name, const struct slots *slots,
		      struct tly_symtab *symtab, struct tly_strings *strings)
{
	GElf_Shdr header;
	Elf_Scn *section = tly_elf_section(elf, name, &header);
	Elf_Data *data;
	size_t step;

	if (!section || header.sh_type != SHT_PROGBITS || !(header.sh_flags & SHF_EXECINSTR))
		return 0;
	data = elf_getdata(section, NULL);
	if (!data || !data->d_buf)
		return 0;
	step = header.sh_entsize == STUB_ALIGN ? STUB_ALIGN : STUB_MAX;
	for (size_t at = 0; at < data->d_size; at += step) {
		size_t size = data->d_size - at < step ? data->d_size - at : step;
		const char *stub;
		uint64_t symbol;

		symbol = stub_symbol(slots, (uint8_t *)data->d_buf + at, size, header.sh_addr + at);
		stub = symbol ? stub_name(slots, symbol, strings) : NULL;
		if (stub && tly_symtab_add(symtab, header.sh_addr + at, size, stub, TLY_LOCAL))
			return -ENOMEM;
	}
	return 0;
}

int tly_elf_plt(Elf *elf, struct tly_symtab *symtab, struct tly_strings *strings)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
	struct slots slots = {0};
	GElf_Ehdr header;
	int ret;

	if (!gelf_getehdr(elf, &header) || header.e_machine != EM_X86_64 ||
	    gelf_getclass(elf) != ELFCLASS64)
		return 0;
	ret = read_relocations(elf, &slots);
	for (size_t i = 0; !ret && slots.nr && i < sizeof(sections) / sizeof(*sections); i++)
		ret = read_stubs(elf, sections[i], &slots, symtab, strings);
	free(slots.slots);
	free(slots.lazy);
	return ret;
}
