// SPDX-License-Identifier: MIT
#include "runtime/linux/descriptors.h"

#include <asm/errno.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/resource.h>

#include "abi/handover.h"
#include "runtime/linux/syscalls.h"
#include "runtime/linux/threads.h"
#include "runtime/sys.h"

struct descriptors descriptors = {-1, -1, -1, -1};

bool descriptors_have(uint64_t fd)
{
	int number = (int)fd; /* the kernel looks at 32 bits */

	return number >= 0 && (number == descriptors.arena || number == descriptors.monitor ||
			       number == descriptors.runtime || number == descriptors.program);
}

int descriptors_raise(int fd, bool cloexec)
{
	int command = cloexec ? F_DUPFD_CLOEXEC : F_DUPFD;
	struct {
		uint64_t now, max;
	} limit;
	int64_t raised = sys(__NR_fcntl, fd, command, HANDOVER_DESCRIPTORS);
	uint64_t below = HANDOVER_DESCRIPTORS;

	/* None from there on is free, be it that the limit leaves none. */
	if ((raised == -EINVAL || raised == -EMFILE) &&
	    !sys(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &limit)) {
		if (limit.now < below)
			below = limit.now;
		for (uint64_t from = below; from > 3 && raised < 0; from--)
			raised = sys(__NR_fcntl, fd, command, from - 1);
	}
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
	sys(__NR_fcntl, descriptors.monitor, F_SETFD, keep ? 0 : FD_CLOEXEC);
	sys(__NR_fcntl, descriptors.runtime, F_SETFD, keep ? 0 : FD_CLOEXEC);
}

/* Which arguments of a call are descriptors: a bit for each. */
static const uint8_t arguments[] = {
	[__NR_accept] = 1,
	[__NR_accept4] = 1,
	[__NR_bind] = 1,
	[__NR_close] = 1,
	[__NR_connect] = 1,
	[__NR_copy_file_range] = 1 | 1 << 2,
	[__NR_dup] = 1,
	[__NR_dup2] = 1 | 1 << 1,
	[__NR_dup3] = 1 | 1 << 1,
	[__NR_epoll_ctl] = 1 | 1 << 2,
	[__NR_epoll_pwait] = 1,
	[__NR_epoll_pwait2] = 1,
	[__NR_epoll_wait] = 1,
	[__NR_execveat] = 1,
	[__NR_faccessat] = 1,
	[__NR_faccessat2] = 1,
	[__NR_fadvise64] = 1,
	[__NR_fallocate] = 1,
	[__NR_fanotify_mark] = 1 | 1 << 3,
	[__NR_fchdir] = 1,
	[__NR_fchmod] = 1,
	[__NR_fchmodat] = 1,
	[__NR_fchown] = 1,
	[__NR_fchownat] = 1,
	[__NR_fcntl] = 1,
	[__NR_fdatasync] = 1,
	[__NR_fgetxattr] = 1,
	[__NR_finit_module] = 1,
	[__NR_flistxattr] = 1,
	[__NR_flock] = 1,
	[__NR_fremovexattr] = 1,
	[__NR_fsconfig] = 1,
	[__NR_fsetxattr] = 1,
	[__NR_fsmount] = 1,
	[__NR_fspick] = 1,
	[__NR_fstat] = 1,
	[__NR_fstatfs] = 1,
	[__NR_fsync] = 1,
	[__NR_ftruncate] = 1,
	[__NR_futimesat] = 1,
	[__NR_getdents] = 1,
	[__NR_getdents64] = 1,
	[__NR_getpeername] = 1,
	[__NR_getsockname] = 1,
	[__NR_getsockopt] = 1,
	[__NR_inotify_add_watch] = 1,
	[__NR_inotify_rm_watch] = 1,
	[__NR_io_uring_enter] = 1,
	[__NR_io_uring_register] = 1,
	[__NR_ioctl] = 1,
	[__NR_linkat] = 1 | 1 << 2,
	[__NR_listen] = 1,
	[__NR_lseek] = 1,
	[__NR_mkdirat] = 1,
	[__NR_mknodat] = 1,
	[__NR_mmap] = 1 << 4,
	[__NR_mount_setattr] = 1,
	[__NR_move_mount] = 1 | 1 << 2,
	[__NR_mq_getsetattr] = 1,
	[__NR_mq_notify] = 1,
	[__NR_mq_timedreceive] = 1,
	[__NR_mq_timedsend] = 1,
	[__NR_name_to_handle_at] = 1,
	[__NR_newfstatat] = 1,
	[__NR_open_by_handle_at] = 1,
	[__NR_open_tree] = 1,
	[__NR_openat] = 1,
	[__NR_openat2] = 1,
	[__NR_pidfd_getfd] = 1,
	[__NR_pidfd_send_signal] = 1,
	[__NR_pread64] = 1,
	[__NR_preadv] = 1,
	[__NR_preadv2] = 1,
	[__NR_process_madvise] = 1,
	[__NR_pwrite64] = 1,
	[__NR_pwritev] = 1,
	[__NR_pwritev2] = 1,
	[__NR_read] = 1,
	[__NR_readahead] = 1,
	[__NR_readlinkat] = 1,
	[__NR_readv] = 1,
	[__NR_recvfrom] = 1,
	[__NR_recvmmsg] = 1,
	[__NR_recvmsg] = 1,
	[__NR_renameat] = 1 | 1 << 2,
	[__NR_renameat2] = 1 | 1 << 2,
	[__NR_sendfile] = 1 | 1 << 1,
	[__NR_sendmmsg] = 1,
	[__NR_sendmsg] = 1,
	[__NR_sendto] = 1,
	[__NR_setns] = 1,
	[__NR_setsockopt] = 1,
	[__NR_shutdown] = 1,
	[__NR_signalfd] = 1,
	[__NR_signalfd4] = 1,
	[__NR_splice] = 1 | 1 << 2,
	[__NR_statx] = 1,
	[__NR_symlinkat] = 1 << 1,
	[__NR_sync_file_range] = 1,
	[__NR_syncfs] = 1,
	[__NR_tee] = 1 | 1 << 1,
	[__NR_timerfd_gettime] = 1,
	[__NR_timerfd_settime] = 1,
	[__NR_unlinkat] = 1,
	[__NR_utimensat] = 1,
	[__NR_vmsplice] = 1,
	[__NR_write] = 1,
	[__NR_writev] = 1,
};

void descriptors_hide(struct syscall *call)
{
	uint32_t number = (uint32_t)call->number;

	if (number >= sizeof(arguments))
		return;
	for (unsigned int bits = arguments[number], at = 0; bits; bits >>= 1, at++)
		if (bits & 1 && descriptors_have(call->args[at]))
			call->args[at] = NEVER_OPEN;
}

/* The least of ours from @first to @last, or @last + 1. */
static uint64_t next_of_ours(uint64_t first, uint64_t last)
{
	const int ours[] = {descriptors.arena, descriptors.monitor, descriptors.runtime,
			    descriptors.program};
	uint64_t least = last + 1;

	for (unsigned int i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (ours[i] >= 0 && (uint64_t)ours[i] >= first && (uint64_t)ours[i] < least)
			least = (uint64_t)ours[i];
	return least;
}

static int64_t close_around_ours(struct thread *thread, const struct syscall *call)
{
	uint64_t first = (uint32_t)call->args[0], last = (uint32_t)call->args[1];
	struct syscall part = *call;
	int64_t result = 0;

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

int64_t sys_close_range(struct thread *thread, struct syscall *call)
{
	uint64_t first = (uint32_t)call->args[0], last = (uint32_t)call->args[1];
	int64_t result;

	if (first > last || next_of_ours(first, last) > last)
		result = syscall_pass(thread, call);
	else
		result = close_around_ours(thread, call);
	if (!result && call->args[2] & CLOSE_RANGE_UNSHARE)
		threads_unshared(thread);
	return result;
}
