// SPDX-License-Identifier: MIT
#include "runtime/segment.h"

#include <asm/prctl.h>
#include <sys/mman.h>

#include "runtime/sys.h"

#define PAGE 4096UL

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

/* All in one go: in a sandbox each system call may be dear. */
static bool change_all(void)
{
	uint64_t from = UINT64_MAX, to = 0;

	for (const int32_t *site = __start_segment_sites; site < __stop_segment_sites; site++) {
		const uint64_t prefix = (uint64_t)site + *site;

		from = prefix < from ? prefix : from;
		to = prefix > to ? prefix : to;
	}
	from &= -PAGE;
	if (sys(__NR_mprotect, from, to + 1 - from, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	for (const int32_t *site = __start_segment_sites; site < __stop_segment_sites; site++)
		*((uint8_t *)site + *site) = SEGMENT_FS;
	return !sys(__NR_mprotect, from, to + 1 - from, PROT_READ | PROT_EXEC);
}

bool segment_boot(void)
{
	if (has_gs())
		return true;
	segment_prefix = SEGMENT_FS;
	return change_all();
}

void segment_set(uint64_t base)
{
	sys(__NR_arch_prctl, segment_is_fs() ? ARCH_SET_FS : ARCH_SET_GS, base);
}

void segment_give_back(uint64_t fs_base)
{
	segment_set(segment_is_fs() ? fs_base : 0);
}
