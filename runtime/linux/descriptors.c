// SPDX-License-Identifier: MIT
#include "runtime/linux/descriptors.h"

#include <asm/errno.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/resource.h>

#include "abi/handover.h"
#include "runtime/linux/syscalls.h"
#include "runtime/sys.h"

struct descriptors descriptors = {-1, -1, -1};

bool descriptors_have(uint64_t fd)
{
	int number = (int)fd; /* the kernel looks at 32 bits */

	return number >= 0 && (number == descriptors.arena || number == descriptors.runtime ||
			       number == descriptors.program);
}

int descriptors_raise(int fd, bool cloexec)
{
	int command = cloexec ? F_DUPFD_CLOEXEC : F_DUPFD;
	struct {
		uint64_t now, max;
	} limit;
	int64_t raised = sys(__NR_fcntl, fd, command, HANDOVER_DESCRIPTORS);

	if (raised == -EINVAL && !sys(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &limit) &&
	    limit.now < HANDOVER_DESCRIPTORS)
		for (uint64_t from = limit.now - 1; from > 2 && raised < 0; from--)
			raised = sys(__NR_fcntl, fd, command, from);
	if (raised >= 0)
		sys(__NR_close, fd);
	return (int)raised;
}

void descriptors_settle(void)
{
	int usual = descriptors.runtime + 1, program = descriptors.program;

	if (program != usual && usual > HANDOVER_DESCRIPTORS &&
	    sys(__NR_fcntl, usual, F_GETFD) == -EBADF &&
	    sys(__NR_dup3, program, usual, O_CLOEXEC) == usual) {
		descriptors.program = usual;
		sys(__NR_close, program);
		return;
	}
	sys(__NR_fcntl, program, F_SETFD, FD_CLOEXEC);
}

void descriptors_keep(bool keep)
{
	sys(__NR_fcntl, descriptors.arena, F_SETFD, keep ? 0 : FD_CLOEXEC);
	sys(__NR_fcntl, descriptors.runtime, F_SETFD, keep ? 0 : FD_CLOEXEC);
}

int64_t sys_descriptor(struct thread *thread, struct syscall *call)
{
	if (descriptors_have(call->args[0]))
		return -EBADF;
	return syscall_pass(thread, call);
}

/* dup2 and dup3 */
int64_t sys_dup2(struct thread *thread, struct syscall *call)
{
	if (descriptors_have(call->args[1]))
		return -EBADF;
	return sys_descriptor(thread, call);
}

/* The least of ours from @first to @last, or @last + 1. */
static uint64_t next_of_ours(uint64_t first, uint64_t last)
{
	const int ours[] = {descriptors.arena, descriptors.runtime, descriptors.program};
	uint64_t least = last + 1;

	for (unsigned int i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (ours[i] >= 0 && (uint64_t)ours[i] >= first && (uint64_t)ours[i] < least)
			least = (uint64_t)ours[i];
	return least;
}

int64_t sys_close_range(struct thread *thread, struct syscall *call)
{
	uint64_t first = (uint32_t)call->args[0], last = (uint32_t)call->args[1];
	struct syscall part = *call;
	int64_t result = 0;

	if (first > last || next_of_ours(first, last) > last)
		return syscall_pass(thread, call);
	for (; first <= last && !result; first = part.args[1] + 2) {
		part.args[0] = first;
		part.args[1] = next_of_ours(first, last) - 1;
		if (first > part.args[1])
			continue;
		result = syscall_pass(thread, &part);
		/* From here on the table is our own. */
		part.args[2] &= ~(uint64_t)CLOSE_RANGE_UNSHARE;
	}
	return result;
}
