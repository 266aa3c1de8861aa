// SPDX-License-Identifier: MIT
#include "runtime/linux/event_attr.h"

#include <asm/errno.h>
#include <linux/capability.h>
#include <linux/resource.h>
#include <stdbool.h>

#include "runtime/linux/confined.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc.h"
#include "runtime/string.h"
#include "runtime/sys.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/* Whether all of @size bytes at @at are zero; -EFAULT when they cannot be read. */
static int64_t all_zero(uint64_t at, uint64_t size)
{
	uint8_t bytes[64];

	while (size) {
		uint64_t some = size < sizeof(bytes) ? size : sizeof(bytes);

		if (copy_in(bytes, at, some))
			return -EFAULT;
		for (uint64_t i = 0; i < some; i++)
			if (bytes[i])
				return 0;
		at += some;
		size -= some;
	}
	return 1;
}

int64_t event_attr_in(union event_attr *attr, uint64_t from, const struct core_rights *rights)
{
	const uint64_t size_at = from + offsetof(struct perf_event_attr, size);
	const uint32_t known = CORE_ATTR_SIZE;
	uint32_t size, used;
	int64_t tail = 1, error;

	if (copy_in(&size, size_at, sizeof(size)))
		return -EFAULT;
	memset(attr, 0, sizeof(*attr));
	used = size ? size : PERF_ATTR_SIZE_VER0;
	if (used >= PERF_ATTR_SIZE_VER0 && used <= PAGE) {
		if (copy_in(attr, from, used < known ? used : known))
			return -EFAULT;
		if (used > known)
			tail = all_zero(from + known, used - known);
		if (tail < 0)
			return tail;
	}
	error = core_attr_check(&attr->attr, size, tail, rights);
	/* Where that cannot be written it is not. */
	if (error == -E2BIG)
		copy_out(size_at, &known, sizeof(known));
	return error;
}

static uint64_t capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	sys(__NR_capget, &header, data);
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

/*
 * A capability counts where the run began, which is its initial user name space, and not in one
 * that a program has made to have them all. To ask may be the end of who has confined itself.
 */
static bool are_of_another_name_space(void)
{
	if (confined())
		return false;
	const uint64_t first = core_settings()->user_name_space, here = proc_user_name_space();

	return first && here && here != first;
}

static bool capable(uint64_t set, unsigned int capability)
{
	return set >> capability & 1;
}

void event_rights(struct core_rights *rights)
{
	struct {
		uint64_t now, max;
	} limit = {0};
	uint64_t set = capabilities();

	if (set && are_of_another_name_space())
		set = 0;
	sys(__NR_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit);
	*rights = (struct core_rights){
		.perfmon = capable(set, CAP_PERFMON) || capable(set, CAP_SYS_ADMIN),
		.attach = true,
		.mlock = capable(set, CAP_IPC_LOCK) ? UINT64_MAX : limit.now,
	};
}
