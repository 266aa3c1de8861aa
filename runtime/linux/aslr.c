// SPDX-License-Identifier: MIT
#include "runtime/linux/aslr.h"

#include <linux/random.h>

#include "runtime/boot/stack.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* Where stacks end that are not at random. */
#define STACK_TOP 0x7ffffffff000UL

static bool off, fixed;

void aslr_boot(uint64_t name, bool as_fixed)
{
	off = name + strlen((const char *)name) + 1 + STACK_BEHIND_NAME == STACK_TOP;
	fixed = as_fixed;
}

bool aslr_is_fixed(void)
{
	return fixed;
}

bool aslr_is_the_kernels(void)
{
	return !off;
}

bool aslr_is_off(void)
{
	return off || fixed;
}

uint64_t aslr_random(void)
{
	uint64_t random = 0;

	if (!aslr_is_off())
		sys(__NR_getrandom, &random, sizeof(random), GRND_NONBLOCK);
	return random;
}
