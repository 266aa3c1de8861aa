/* SPDX-License-Identifier: MIT */
/* Address space layout randomisation, as the kernel would have it for the program. */
#ifndef RUNTIME_LINUX_ASLR_H
#define RUNTIME_LINUX_ASLR_H

#include <stdbool.h>
#include <stdint.h>

/* Whether addresses are to be the same each time: ADDR_NO_RANDOMIZE of personality(2). */
bool aslr_is_off(void);

/* To choose an address by; 0 where they are to be the same, and as long as the kernel has none. */
uint64_t aslr_random(void);

#endif
