// SPDX-License-Identifier: MIT
#include "runtime/linux/confined.h"

static bool begun;

bool confined(void)
{
	return __atomic_load_n(&begun, __ATOMIC_RELAXED);
}

void confined_now(void)
{
	__atomic_store_n(&begun, true, __ATOMIC_RELAXED);
}

void confined_boot(bool before)
{
	begun = before;
}
