// SPDX-License-Identifier: MIT
/*
 * Every offset and count here comes from the file. libelf checks those that lead to section data;
 * what lies within the data is checked here.
 */
#include "lib/symbol/elffile.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_kind(struct tly_elf *file)
{
	if (file->elf && elf_kind(file->elf) == ELF_K_ELF)
		return 0;
	tly_elf_close(file);
	return -ENOEXEC;
}

int tly_elf_open(struct tly_elf *file, const char *path, bool mapped)
{
	struct stat st;
	int ret = 0;

	file->elf = NULL;
	elf_version(EV_CURRENT);
	/* A FIFO or a device may bear the recorded name by now: opening it must not block. */
	file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file->fd < 0)
		return -errno;
	if (fstat(file->fd, &st))
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -ENOEXEC;
	if (ret) {
		close(file->fd);
		return ret;
	}
	file->elf = elf_begin(file->fd, mapped ? ELF_C_READ_MMAP : ELF_C_READ, NULL);
	return check_kind(file);
}

int tly_elf_open_memory(struct tly_elf *file, char *image, size_t size)
{
	elf_version(EV_CURRENT);
	file->fd = -1;
	file->elf = elf_memory(image, size);
	return check_kind(file);
}

void tly_elf_close(struct tly_elf *file)
{
	if (file->elf)
		elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	file->elf = NULL;
	file->fd = -1;
}

int tly_elf_segments(Elf *elf, struct tly_segment **segments)
{
	size_t nr_headers;
	int nr = 0;

	*segments = NULL;
	if (elf_getphdrnum(elf, &nr_headers) || !nr_headers || nr_headers > UINT16_MAX)
		return 0;
	*segments = calloc(nr_headers, sizeof(**segments));
	if (!*segments)
		return -ENOMEM;
	for (size_t i = 0; i < nr_headers; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(elf, i, &header) || header.p_type != PT_LOAD)
			continue;
		(*segments)[nr++] = (struct tly_segment){
			.offset = header.p_offset,
			.size = header.p_filesz,
			.vaddr = header.p_vaddr,
			.executable = header.p_flags & PF_X,
		};
	}
	return nr;
}

bool tly_elf_address(const struct tly_segment *segments, size_t nr, uint64_t offset,
		     uint64_t *address)
{
	const struct tly_segment *found = NULL;

	for (size_t i = 0; i < nr; i++) {
		if (offset < segments[i].offset || offset - segments[i].offset >= segments[i].size)
			continue;
		if (!found || segments[i].executable > found->executable)
			found = &segments[i];
	}
	if (!found)
		return false;
	*address = offset - found->offset + found->vaddr;
	return true;
}

Elf_Scn *tly_elf_section(Elf *elf, const char *name, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *candidate;

		if (!gelf_getshdr(section, header))
			continue;
		candidate = elf_strptr(elf, names, header->sh_name);
		if (candidate && !strcmp(candidate, name))
			return section;
	}
	return NULL;
}

static Elf_Scn *section_of_type(Elf *elf, unsigned int type, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, header) && header->sh_type == type)
			return section;
	}
	return NULL;
}

/* The string at @offset of a string table, or NULL when it does not end within it. */
static const char *string_at(const Elf_Data *table, size_t offset)
{
	const char *text = table->d_buf;

	if (!text || offset >= table->d_size || text[table->d_size - 1])
		return NULL;
	return text + offset;
}

/* One bit a section: does it hold code? To be freed; NULL when memory is short. */
static uint8_t *code_sections(Elf *elf, size_t *nr)
{
	Elf_Scn *section = NULL;
	uint8_t *map;

	if (elf_getshdrnum(elf, nr))
		*nr = 0;
	map = calloc(*nr / 8 + 1, 1);
	while (map && (section = elf_nextscn(elf, section))) {
		size_t index = elf_ndxscn(section);
		GElf_Shdr header;

		if (index < *nr && gelf_getshdr(section, &header) &&
		    header.sh_flags & SHF_EXECINSTR)
			map[index / 8] |= 1 << index % 8;
	}
	return map;
}

static bool is_function(const GElf_Sym *symbol, const char *name, const uint8_t *code,
			size_t nr_sections)
{
	unsigned int type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || !name[0])
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* Code written in assembly often has no type; data without one is told by its section. */
	return type == STT_NOTYPE && symbol->st_shndx < nr_sections &&
	       code[symbol->st_shndx / 8] & 1 << symbol->st_shndx % 8;
}

static enum tly_binding binding_of(const GElf_Sym *symbol)
{
	if (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE && !symbol->st_size)
		return TLY_LABEL;
	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_LOCAL:
		return TLY_LOCAL;
	case STB_WEAK:
		return TLY_WEAK;
	default:
		return TLY_GLOBAL;
	}
}

long tly_elf_symbols(Elf *elf, unsigned int type, struct tly_symtab *symtab)
{
	Elf_Data *symbols, *names;
	size_t nr, nr_sections;
	GElf_Shdr header;
	Elf_Scn *section;
	uint8_t *code;
	long found = 0;

	section = section_of_type(elf, type, &header);
	if (!section || header.sh_entsize != gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT))
		return 0;
	symbols = elf_getdata(section, NULL);
	names = elf_getdata(elf_getscn(elf, header.sh_link), NULL);
	if (!symbols || !names)
		return 0;
	code = code_sections(elf, &nr_sections);
	if (!code)
		return -ENOMEM;
	nr = symbols->d_size / header.sh_entsize;
	for (size_t i = 0; i < nr && i < INT32_MAX; i++) {
		const char *name;
		GElf_Sym symbol;

		if (!gelf_getsym(symbols, i, &symbol))
			break;
		name = string_at(names, symbol.st_name);
		if (!name || !is_function(&symbol, name, code, nr_sections))
			continue;
		if (tly_symtab_add(symtab, symbol.st_value, symbol.st_size, name,
				   binding_of(&symbol))) {
			free(code);
			return -ENOMEM;
		}
		found++;
	}
	free(code);
	return found;
}
