// SPDX-License-Identifier: MIT
/*
 * .eh_frame is found by the sections, which are in the file and not in memory. The table is made
 * once; it serves for as long as the program does.
 */
#include "runtime/linux/cfi_program.h"

#include "runtime/linux/descriptors.h"
#include "runtime/linux/memory.h"
#include "runtime/string.h"
#include "runtime/sys.h"

struct kept {
	struct cfi_table table;
	size_t size;
	struct cfi_function functions[];
};

static struct kept *kept;

static bool read_at(void *to, uint64_t offset, size_t size)
{
	return sys(__NR_pread64, descriptors.program, to, size, offset) == (int64_t)size;
}

static bool read_section(const Elf64_Ehdr *elf, unsigned int number, Elf64_Shdr *section)
{
	return number < elf->e_shnum && elf->e_shentsize == sizeof(*section) &&
	       read_at(section, elf->e_shoff + number * sizeof(*section), sizeof(*section));
}

static bool find_frames(const Elf64_Ehdr *elf, Elf64_Shdr *section)
{
	static const char wanted[] = ".eh_frame";
	char name[sizeof(wanted)];
	Elf64_Shdr names;

	if (!read_section(elf, elf->e_shstrndx, &names))
		return false;
	for (unsigned int i = 0; read_section(elf, i, section); i++)
		if (section->sh_flags & SHF_ALLOC &&
		    read_at(name, names.sh_offset + section->sh_name, sizeof(name)) &&
		    !memcmp(name, wanted, sizeof(wanted)))
			return true;
	return false;
}

static struct kept *make(const Elf64_Ehdr *elf, uint64_t bias)
{
	struct kept *made;
	Elf64_Shdr section;
	uint32_t nr;
	size_t size;

	if (!find_frames(elf, &section))
		return NULL;
	nr = cfi_count(bias + section.sh_addr, section.sh_size);
	size = sizeof(*made) + nr * sizeof(*made->functions);
	made = nr ? memory_allocate(size, 0) : NULL;
	if (!made)
		return NULL;
	made->size = size;
	cfi_make_table(&made->table, bias + section.sh_addr, section.sh_size, made->functions, nr);
	return made;
}

static bool is_program(const Elf64_Ehdr *elf)
{
	Elf64_Ehdr own;

	return read_at(&own, 0, sizeof(own)) && !memcmp(elf, &own, sizeof(own));
}

bool cfi_program_table(struct cfi_table *table, const Elf64_Ehdr *header, uint64_t bias)
{
	struct kept *there = NULL, *made;

	if (!is_program(header))
		return false;
	if (!__atomic_load_n(&kept, __ATOMIC_ACQUIRE)) {
		made = make(header, bias);
		if (!made)
			return false;
		/* Another thread may have been quicker. */
		if (!__atomic_compare_exchange_n(&kept, &there, made, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			memory_free(made, made->size);
	}
	*table = __atomic_load_n(&kept, __ATOMIC_ACQUIRE)->table;
	return table->nr;
}
