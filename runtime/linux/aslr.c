// SPDX-License-Identifier: MIT
#include "runtime/linux/aslr.h"

#include <linux/random.h>

#include "runtime/string.h"
#include "runtime/sys.h"

/* Where stacks end that are not at random, and begin with eight bytes of nothing, behind the name. */
enum { BEHIND_NAME = 8 };
#define STACK_TOP 0x7ffffffff000UL

static bool off;

void aslr_boot(uint64_t name)
{
	off = name + strlen((const char *)name) + 1 + BEHIND_NAME == STACK_TOP;
}

bool aslr_is_off(void)
{
	return off;
}

uint64_t aslr_random(void)
{
	uint64_t random = 0;

	if (!off)
		sys(__NR_getrandom, &random, sizeof(random), GRND_NONBLOCK);
	return random;
}
