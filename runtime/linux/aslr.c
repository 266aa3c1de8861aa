// SPDX-License-Identifier: MIT
#include "runtime/linux/aslr.h"

#include <linux/personality.h>
#include <linux/random.h>

#include "runtime/sys.h"

/* personality(2): change nothing. */
#define ASK 0xffffffff

bool aslr_is_off(void)
{
	const int64_t persona = sys(__NR_personality, ASK);

	/* gVisor does not answer what it is (EINVAL), and seccomp filters may not let one ask. */
	return !sys_failed(persona) && (persona & ADDR_NO_RANDOMIZE);
}

uint64_t aslr_random(void)
{
	uint64_t random = 0;

	if (!aslr_is_off())
		sys(__NR_getrandom, &random, sizeof(random), GRND_NONBLOCK);
	return random;
}
