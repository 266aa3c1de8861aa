// SPDX-License-Identifier: MIT
#include "lib/probe/attr_open.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tally/attr.h>

#include "abi/attr.h"
#include "abi/fatal.h"
#include "lib/probe/refusal/refusal.h"

bool tly_attr_copy(struct tly_attr_copy *copy, const struct perf_event_attr *attr)
{
	uint32_t size = tly_attr_size(attr);

	copy->kernel_size = 0;
	if (size < PERF_ATTR_SIZE_VER0 || size > TLY_ATTR_MAX) {
		memset(&copy->attr, 0, sizeof(copy->attr));
		copy->attr.size = size;
		return false;
	}
	memcpy(&copy->attr, attr, size);
	copy->attr.size = size;
	return true;
}

int tly_attr_try(struct tly_attr_copy *copy, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	const uint32_t size = copy->attr.size;
	long fd;

	fd = syscall(SYS_perf_event_open, &copy->attr, pid, cpu, group_fd, flags);
	if (fd >= 0)
		return (int)fd;
	if (errno != E2BIG)
		return -errno;
	copy->kernel_size = copy->attr.size;
	copy->attr.size = size;
	if (copy->kernel_size < PERF_ATTR_SIZE_VER0 || copy->kernel_size >= size ||
	    !tly_attr_zero_after(&copy->attr, copy->kernel_size))
		return -E2BIG;
	copy->attr.size = copy->kernel_size;
	fd = syscall(SYS_perf_event_open, &copy->attr, pid, cpu, group_fd, flags);
	copy->attr.size = size;
	return fd < 0 ? -errno : (int)fd;
}

int tly_attr_open(const struct perf_event_attr *attr, const char *name,
		  const struct perf_event_attr *leader, pid_t pid, int cpu, int group_fd,
		  unsigned long flags, struct tally_error *err)
{
	struct tly_attr_copy copy;
	struct tly_refusal refusal;
	const bool copied = tly_attr_copy(&copy, attr);
	int fd = -E2BIG;

	/* Who has a leader has made the call before. */
	if (group_fd < 0 && fatal_open())
		fd = -EPERM;
	else if (copied)
		fd = tly_attr_try(&copy, pid, cpu, group_fd, flags);
	if (fd >= 0 || !err)
		return fd;
	refusal = (struct tly_refusal){
		.code = fd,
		.attr = &copy,
		.name = name,
		.leader = leader,
		.pid = pid,
		.cpu = cpu,
		.group_fd = group_fd,
		.flags = flags,
	};
	return tly_refusal_explain(&refusal, err);
}

int tally_attr_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		    unsigned long flags, struct tally_error *err)
{
	return tly_attr_open(attr, NULL, NULL, pid, cpu, group_fd, flags, err);
}
