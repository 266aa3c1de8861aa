// SPDX-License-Identifier: MIT
/* What the harness needs of the machine beside the system call under test. */
#ifndef CONFORMANCE_SYSTEM_H
#define CONFORMANCE_SYSTEM_H

#include <stdbool.h>

#define ABI_AFTER_EXEC "--after-exec" /* the work that abi_exec() asks a fresh image for */

int abi_after_exec(const char *work, unsigned int count);

extern bool abi_may_change_sysctls;

#endif
