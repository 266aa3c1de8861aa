/* SPDX-License-Identifier: MIT */
/* What symbols need of an ELF file: segments, function symbols, the name of its debug file. */
#ifndef LIB_SYMBOL_ELFFILE_H
#define LIB_SYMBOL_ELFFILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/symbol/symtab.h"

/* A loaded part of the file: its bytes [offset, offset + size) are at vaddr. */
struct tly_segment {
	uint64_t offset, size, vaddr;
	bool executable;
};

struct tly_elf {
	int fd;
	Elf *elf; /* NULL: not open */
};

/*
 * Opens a regular file that is ELF. @mapped: its data is mapped, not copied; for the large debug
 * sections. Returns 0 or a negative errno value (-ENOEXEC: not an ELF file).
 */
int tly_elf_open(struct tly_elf *file, const char *path, bool mapped);
/* The image of @size bytes at @image, which must outlive @file. */
int tly_elf_open_memory(struct tly_elf *file, char *image, size_t size);
void tly_elf_close(struct tly_elf *file);

/* Stores an array to be freed and returns its length, or -ENOMEM. */
int tly_elf_segments(Elf *elf, struct tly_segment **segments);
/* False when no segment holds the offset. */
bool tly_elf_address(const struct tly_segment *segments, size_t nr, uint64_t offset,
		     uint64_t *address);

/*
 * Adds the functions of the section of @type (SHT_SYMTAB or SHT_DYNSYM). The names point into
 * @elf. Returns how many there were, or -ENOMEM.
 */
long tly_elf_symbols(Elf *elf, unsigned int type, struct tly_symtab *symtab);
/*
 * Adds the stubs of the procedure linkage table, as NAME@plt; x86-64 only. The names are copied
 * into @strings. Returns 0 or -ENOMEM.
 */
int tly_elf_plt(Elf *elf, struct tly_symtab *symtab, struct tly_strings *strings);

/* Finds a section by name; NULL when there is none. */
Elf_Scn *tly_elf_section(Elf *elf, const char *name, GElf_Shdr *header);

#endif
