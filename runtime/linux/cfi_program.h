/* SPDX-License-Identifier: MIT */
/* What is said of the program's own functions where its linker has made no table of them. */
#ifndef RUNTIME_LINUX_CFI_PROGRAM_H
#define RUNTIME_LINUX_CFI_PROGRAM_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/cfi.h"

/* @header: of the file whose addresses lie @bias farther here. False: it is not the program's, or
 * there is nothing. */
bool cfi_program_table(struct cfi_table *table, const Elf64_Ehdr *header, uint64_t bias);

#endif
