// SPDX-License-Identifier: MIT
#include "runtime/segment.h"

#include <asm/prctl.h>
#include <sys/mman.h>

#include "runtime/sys.h"

uint8_t segment_prefix = SEGMENT_GS;

/* How far from each the instruction is. */
extern const int32_t __start_segment_sites[], __stop_segment_sites[];

/* A sandbox may refuse it, and say that it was done without doing it. */
static bool has_gs(void)
{
	uint64_t base = 0;

	return !sys(__NR_arch_prctl, ARCH_SET_GS, &base) &&
	       !sys(__NR_arch_prctl, ARCH_GET_GS, &base) && base == (uint64_t)&base;
}

static bool change(uint8_t *prefix)
{
	const uint64_t size = 4096, page = (uint64_t)prefix & -size;

	if (sys(__NR_mprotect, page, size, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	*prefix = SEGMENT_FS;
	return !sys(__NR_mprotect, page, size, PROT_READ | PROT_EXEC);
}

bool segment_boot(void)
{
	if (has_gs())
		return true;
	segment_prefix = SEGMENT_FS;
	for (const int32_t *site = __start_segment_sites; site < __stop_segment_sites; site++)
		if (!change((uint8_t *)site + *site))
			return false;
	return true;
}

void segment_set(uint64_t base)
{
	sys(__NR_arch_prctl, segment_is_fs() ? ARCH_SET_FS : ARCH_SET_GS, base);
}

void segment_give_back(uint64_t fs_base)
{
	segment_set(segment_is_fs() ? fs_base : 0);
}
