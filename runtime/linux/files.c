// SPDX-License-Identifier: MIT
#include "runtime/linux/files.h"

#include <asm/errno.h>
#include <linux/fcntl.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/syscalls.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* Whether a path could be such a link at all: most are not, and cost no system call. */
static bool ends_in_exe(const char *path, size_t length)
{
	return length >= 3 && !memcmp(path + length - 3, "exe", 3) &&
	       (length == 3 || path[length - 4] == '/');
}

bool files_lead_to_runtime(int64_t dirfd, const char *path)
{
	char fd[32], ours[PATH_MAX], link[PATH_MAX];
	int64_t length, n;

	n = sys(__NR_readlinkat, dirfd, path, link, sizeof(link));
	if (n <= 0)
		return false;
	format(fd, sizeof(fd), "/proc/self/fd/%d", (int64_t)descriptors.runtime);
	length = sys(__NR_readlinkat, AT_FDCWD, fd, ours, sizeof(ours));
	return length == n && !memcmp(link, ours, (size_t)n);
}

bool files_program_link(int64_t dirfd, char path[PATH_MAX + 16])
{
	size_t length = strlen(path);

	if (!ends_in_exe(path, length) || !files_lead_to_runtime(dirfd, path))
		return false;
	format(path + length - 3, 16, "fd/%d", (int64_t)descriptors.program);
	return true;
}

/* Makes the call with its path, argument @at, exchanged if it is to be. */
static int64_t pass_path(struct thread *thread, struct syscall *call, int64_t dirfd,
			 unsigned int at)
{
	char path[PATH_MAX + 16];
	struct syscall changed = *call;
	int64_t length = copy_string_in(path, call->args[at], PATH_MAX);

	if (length < 3 || !ends_in_exe(path, (size_t)length) || !files_program_link(dirfd, path))
		return syscall_pass(thread, call);
	changed.args[at] = (uint64_t)path;
	return syscall_pass(thread, &changed);
}

int64_t sys_path(struct thread *thread, struct syscall *call)
{
	return pass_path(thread, call, AT_FDCWD, 0);
}

/* The link itself is as the kernel has it. */
static bool follows(const struct syscall *call)
{
	uint64_t flags = call->number == __NR_newfstatat ? call->args[3]
			 : call->number == __NR_statx	 ? call->args[2]
							 : 0;

	return !(flags & AT_SYMLINK_NOFOLLOW);
}

int64_t sys_path_at(struct thread *thread, struct syscall *call)
{
	if (descriptors_have(call->args[0]))
		return -EBADF;
	if (!follows(call))
		return syscall_pass(thread, call);
	return pass_path(thread, call, (int)call->args[0], 1);
}
