/* SPDX-License-Identifier: MIT */
/* FS, which is the program's. */
#ifndef RUNTIME_FS_H
#define RUNTIME_FS_H

#include <stdbool.h>
#include <stdint.h>

/* What AT_HWCAP2 says: whether it takes a system call to read it. Until then it does. */
void fs_boot(uint64_t hwcap2);

/* Whether an instruction does. */
bool fs_readable(void);

/* Its base, of the calling thread. */
uint64_t fs_base(void);

/*
 * The base as it was last read, where that takes a system call: in a virtual machine one that may
 * take longer than all that the model does with it. The selector tells of who loads the register;
 * of a system call that sets the base, whoever lets the program make it has to tell, by making
 * `known` 0, as does translated code that loads the register. All 0 before the first time. Only for
 * what may do with the old one if a debugger has set another.
 */
struct fs_known {
	uint64_t base;
	uint64_t known; /* all ones, or 0: by either what translated code compares is multiplied */
	uint16_t selector;
};

uint64_t fs_base_known(struct fs_known *fs);

#endif
