/* SPDX-License-Identifier: MIT */
/* Limits on memory as the program has them: see abi/limits.h. */
#ifndef RUNTIME_LINUX_LIMITS_H
#define RUNTIME_LINUX_LIMITS_H

#include <stdint.h>

/* The soft limit RLIMIT_DATA of this process; UINT64_MAX for none. */
uint64_t limits_data(void);

#endif
