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

#endif
