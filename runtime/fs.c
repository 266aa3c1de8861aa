// SPDX-License-Identifier: MIT
#include "runtime/fs.h"

#include <asm/hwcap2.h>
#include <asm/prctl.h>
#include <stdbool.h>

#include "runtime/sys.h"
#include "runtime/thread.h"

static bool readable;

void fs_boot(uint64_t hwcap2)
{
	readable = hwcap2 & HWCAP2_FSGSBASE && !segment_is_fs();
}

bool fs_readable(void)
{
	return readable;
}

uint64_t fs_base(void)
{
	uint64_t base = 0;

	if (segment_is_fs())
		return thread_self()->fs_base;
	if (readable)
		__asm__ volatile("rdfsbase %0" : "=r"(base));
	else
		sys(__NR_arch_prctl, ARCH_GET_FS, &base);
	return base;
}

uint64_t fs_base_known(struct fs_known *fs)
{
	uint16_t selector;

	if (readable || segment_is_fs())
		return fs_base();
	__asm__ volatile("mov %%fs, %0" : "=r"(selector));
	if (!fs->known || fs->selector != selector)
		*fs = (struct fs_known){
			.base = fs_base(),
			.selector = selector,
			.known = UINT64_MAX,
		};
	return fs->base;
}
