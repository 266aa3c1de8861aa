// SPDX-License-Identifier: MIT
/* Nothing here may use an address that is itself to be relocated: no tables, no switch. */
#include "runtime/boot/relocate.h"

#include <linux/elf.h>
#include <stddef.h>
#include <stdint.h>

#define R_X86_64_RELATIVE 8

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
extern const Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

void relocate(void)
{
	uint64_t base = (uint64_t)&__ehdr_start;
	const Elf64_Rela *rela = NULL;
	uint64_t size = 0;

	for (const Elf64_Dyn *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_RELA)
			rela = (const Elf64_Rela *)(base + d->d_un.d_ptr);
		if (d->d_tag == DT_RELASZ)
			size = d->d_un.d_val;
	}
	for (uint64_t i = 0; i < size / sizeof(*rela); i++)
		if (ELF64_R_TYPE(rela[i].r_info) == R_X86_64_RELATIVE)
			*(uint64_t *)(base + rela[i].r_offset) = base + (uint64_t)rela[i].r_addend;
}
