// SPDX-License-Identifier: MIT
/*
 * Code that a program writes through /proc/self/mem, as compilers do that want no memory to be
 * writable and executable: the kernel writes past the protection of the page, so that a page which
 * is watched for writes does not tell.
 */
#include "runtime/linux/self_memory.h"

#include <linux/fcntl.h>
#include <linux/fs.h>

#include "runtime/linux/debugger.h"
#include "runtime/linux/self_comm.h"
#include "runtime/linux/syscalls.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

static bool any; /* may be open */

static bool ends_in_mem(const char *path)
{
	size_t length = strlen(path);

	return length >= 4 && !strcmp(path + length - 4, "/mem");
}

enum whose { NOBODYS, OURS, ANOTHERS };

/* Whether @fd leads to /proc/PID/mem, or /proc/PID/task/TID/mem. */
static enum whose whose(int64_t fd)
{
	char link[32], path[64], own[32];
	int64_t n;

	format(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = sys(__NR_readlink, link, path, sizeof(path) - 1);
	if (n <= 0)
		return NOBODYS;
	path[n] = '\0';
	if (!ends_in_mem(path) || strncmp(path, "/proc/", 6))
		return NOBODYS;
	n = (int64_t)format(own, sizeof(own), "/proc/%d/", sys(__NR_getpid));
	return strncmp(path, own, (size_t)n) ? ANOTHERS : OURS;
}

static bool is_ours(int64_t fd)
{
	return whose(fd) == OURS;
}

static bool may_be_written(int64_t fd)
{
	return (sys(__NR_fcntl, fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

void self_memory_opened(const char *path, int64_t fd)
{
	enum whose is;

	if (!ends_in_mem(path))
		return;
	is = whose(fd);
	if (is == OURS)
		any = true;
	else if (is == ANOTHERS && may_be_written(fd))
		debugger_seen();
}

/* Where a call is about to write. */
static uint64_t position(const struct syscall *call)
{
	switch ((uint32_t)call->number) {
	case __NR_write:
	case __NR_writev:
		return (uint64_t)sys(__NR_lseek, call->args[0], 0, SEEK_CUR);
	default:
		return call->args[3];
	}
}

static int64_t write_memory(struct thread *thread, struct syscall *call)
{
	uint64_t start = position(call);
	int64_t result = syscall_pass(thread, call);

	if (result > 0) {
		translate_lock();
		translate_invalidate(start, start + (uint64_t)result);
		translate_unlock();
	}
	return result;
}

int64_t sys_write(struct thread *thread, struct syscall *call)
{
	int64_t result;

	if (any && is_ours((int)call->args[0]))
		return write_memory(thread, call);
	result = syscall_pass(thread, call);
	if (result >= 0) /* of nothing gives an empty name */
		self_comm_written(thread, (int)call->args[0]);
	return result;
}
