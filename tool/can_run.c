// SPDX-License-Identifier: MIT
#include "tool/can_run.h"

#include <asm/prctl.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Translated code finds what belongs to its thread behind GS. Asked for is the base that there is,
 * and not set another one: who does that in a run is not translated any more.
 */
bool tool_can_run(struct tally_error *why)
{
	uint64_t base;

	if (!syscall(SYS_arch_prctl, ARCH_GET_GS, &base))
		return true;
	if (!why)
		return false;
	*why = (struct tally_error){.code = -errno};
	snprintf(why->what, sizeof(why->what),
		 "user mode (tally run) needs the GS register, which this sandbox does not let "
		 "programs have: arch_prctl: %s",
		 strerror(-why->code));
	snprintf(why->remedy, sizeof(why->remedy),
		 "run it outside of gVisor and the like (docker run --runtime=runc)");
	return false;
}
