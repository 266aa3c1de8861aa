// SPDX-License-Identifier: MIT
#include "runtime/linux/pointers.h"

#include <asm/unistd.h>
#include <linux/ioctl.h>
#include <stdbool.h>

#include "runtime/linux/memory.h"
#include "runtime/linux/own_memory.h"
#include "runtime/linux/syscalls.h"

enum { ARGS = 6 };

/* An argument is an address; that of as many bytes at most as the next one says. */
#define AT(arg)	    (1 << (arg))
#define BUFFER(arg) (AT(arg) | AT((arg) + ARGS))

/*
 * Not what is about the memory map, which has a hole there (memory_calls.c). Nor what is an address
 * for some operations only and may have that value as a number for others; and what lies in memory,
 * as vectors do, is not looked at.
 */
static const uint16_t arguments[] = {
	[__NR_accept] = AT(1) | AT(2),
	[__NR_accept4] = AT(1) | AT(2),
	[__NR_access] = AT(0),
	[__NR_acct] = AT(0),
	[__NR_add_key] = AT(0) | AT(1) | AT(2),
	[__NR_adjtimex] = AT(0),
	[__NR_bind] = AT(1),
	[__NR_bpf] = AT(1),
	[__NR_capget] = AT(0) | AT(1),
	[__NR_capset] = AT(0) | AT(1),
	[__NR_chdir] = AT(0),
	[__NR_chmod] = AT(0),
	[__NR_chown] = AT(0),
	[__NR_chroot] = AT(0),
	[__NR_clock_adjtime] = AT(1),
	[__NR_clock_getres] = AT(1),
	[__NR_clock_gettime] = AT(1),
	[__NR_clock_nanosleep] = AT(2) | AT(3),
	[__NR_clock_settime] = AT(1),
	[__NR_clone] = AT(2) | AT(3),
	[__NR_clone3] = AT(0),
	[__NR_connect] = AT(1),
	[__NR_copy_file_range] = AT(1) | AT(3),
	[__NR_creat] = AT(0),
	[__NR_delete_module] = AT(0),
	[__NR_epoll_ctl] = AT(3),
	[__NR_epoll_pwait] = AT(1) | AT(4),
	[__NR_epoll_pwait2] = AT(1) | AT(3) | AT(4),
	[__NR_epoll_wait] = AT(1),
	[__NR_execve] = AT(0) | AT(1) | AT(2),
	[__NR_execveat] = AT(1) | AT(2) | AT(3),
	[__NR_faccessat] = AT(1),
	[__NR_faccessat2] = AT(1),
	[__NR_fanotify_mark] = AT(4),
	[__NR_fchmodat] = AT(1),
	[__NR_fchownat] = AT(1),
	[__NR_fgetxattr] = AT(1) | BUFFER(2),
	[__NR_finit_module] = AT(1),
	[__NR_flistxattr] = BUFFER(1),
	[__NR_fremovexattr] = AT(1),
	[__NR_fsconfig] = AT(2) | AT(3),
	[__NR_fsetxattr] = AT(1) | AT(2),
	[__NR_fsopen] = AT(0),
	[__NR_fspick] = AT(1),
	[__NR_fstat] = AT(1),
	[__NR_fstatfs] = AT(1),
	[__NR_futex] = AT(0) | AT(4),
	[__NR_futex_waitv] = AT(0) | AT(3),
	[__NR_futimesat] = AT(1) | AT(2),
	[__NR_get_mempolicy] = AT(0) | AT(1),
	[__NR_get_robust_list] = AT(1) | AT(2),
	[__NR_getcpu] = AT(0) | AT(1),
	[__NR_getcwd] = BUFFER(0),
	[__NR_getdents] = BUFFER(1),
	[__NR_getdents64] = BUFFER(1),
	[__NR_getgroups] = AT(1),
	[__NR_getitimer] = AT(1),
	[__NR_getpeername] = AT(1) | AT(2),
	[__NR_getrandom] = BUFFER(0),
	[__NR_getresgid] = AT(0) | AT(1) | AT(2),
	[__NR_getresuid] = AT(0) | AT(1) | AT(2),
	[__NR_getrlimit] = AT(1),
	[__NR_getrusage] = AT(1),
	[__NR_getsockname] = AT(1) | AT(2),
	[__NR_getsockopt] = AT(3) | AT(4),
	[__NR_gettimeofday] = AT(0) | AT(1),
	[__NR_getxattr] = AT(0) | AT(1) | BUFFER(2),
	[__NR_init_module] = AT(0) | AT(2),
	[__NR_inotify_add_watch] = AT(1),
	[__NR_io_getevents] = AT(3) | AT(4),
	[__NR_io_pgetevents] = AT(3) | AT(4) | AT(5),
	[__NR_io_setup] = AT(1),
	[__NR_io_submit] = AT(2),
	[__NR_io_uring_setup] = AT(1),
	[__NR_landlock_add_rule] = AT(2),
	[__NR_landlock_create_ruleset] = AT(0),
	[__NR_lchown] = AT(0),
	[__NR_lgetxattr] = AT(0) | AT(1) | BUFFER(2),
	[__NR_link] = AT(0) | AT(1),
	[__NR_linkat] = AT(1) | AT(3),
	[__NR_listxattr] = AT(0) | BUFFER(1),
	[__NR_llistxattr] = AT(0) | BUFFER(1),
	[__NR_lremovexattr] = AT(0) | AT(1),
	[__NR_lsetxattr] = AT(0) | AT(1) | AT(2),
	[__NR_lstat] = AT(0) | AT(1),
	[__NR_memfd_create] = AT(0),
	[__NR_migrate_pages] = AT(2) | AT(3),
	[__NR_mincore] = AT(2),
	[__NR_mkdir] = AT(0),
	[__NR_mkdirat] = AT(1),
	[__NR_mknod] = AT(0),
	[__NR_mknodat] = AT(1),
	[__NR_modify_ldt] = AT(1),
	[__NR_mount] = AT(0) | AT(1) | AT(2) | AT(4),
	[__NR_mount_setattr] = AT(1) | AT(3),
	[__NR_move_mount] = AT(1) | AT(3),
	[__NR_move_pages] = AT(2) | AT(3) | AT(4),
	[__NR_mq_getsetattr] = AT(1) | AT(2),
	[__NR_mq_notify] = AT(1),
	[__NR_mq_open] = AT(0) | AT(3),
	[__NR_mq_timedreceive] = BUFFER(1) | AT(3) | AT(4),
	[__NR_mq_timedsend] = BUFFER(1) | AT(4),
	[__NR_mq_unlink] = AT(0),
	[__NR_msgctl] = AT(2),
	[__NR_msgrcv] = AT(1),
	[__NR_msgsnd] = AT(1),
	[__NR_name_to_handle_at] = AT(1) | AT(2) | AT(3),
	[__NR_nanosleep] = AT(0) | AT(1),
	[__NR_newfstatat] = AT(1) | AT(2),
	[__NR_open] = AT(0),
	[__NR_open_by_handle_at] = AT(1),
	[__NR_open_tree] = AT(1),
	[__NR_openat] = AT(1),
	[__NR_openat2] = AT(1) | AT(2),
	[__NR_perf_event_open] = AT(0),
	[__NR_pidfd_send_signal] = AT(2),
	[__NR_pipe] = AT(0),
	[__NR_pipe2] = AT(0),
	[__NR_pivot_root] = AT(0) | AT(1),
	[__NR_poll] = AT(0),
	[__NR_ppoll] = AT(0) | AT(2) | AT(3),
	[__NR_pread64] = BUFFER(1),
	[__NR_preadv] = AT(1),
	[__NR_preadv2] = AT(1),
	[__NR_prlimit64] = AT(2) | AT(3),
	[__NR_process_madvise] = AT(1),
	[__NR_process_vm_readv] = AT(1) | AT(3),
	[__NR_process_vm_writev] = AT(1) | AT(3),
	[__NR_pselect6] = AT(1) | AT(2) | AT(3) | AT(4) | AT(5),
	[__NR_pwrite64] = BUFFER(1),
	[__NR_pwritev] = AT(1),
	[__NR_pwritev2] = AT(1),
	[__NR_quotactl] = AT(1) | AT(3),
	[__NR_read] = BUFFER(1),
	[__NR_readlink] = AT(0) | BUFFER(1),
	[__NR_readlinkat] = AT(1) | BUFFER(2),
	[__NR_readv] = AT(1),
	[__NR_recvfrom] = BUFFER(1) | AT(4) | AT(5),
	[__NR_recvmmsg] = AT(1) | AT(4),
	[__NR_recvmsg] = AT(1),
	[__NR_removexattr] = AT(0) | AT(1),
	[__NR_rename] = AT(0) | AT(1),
	[__NR_renameat] = AT(1) | AT(3),
	[__NR_renameat2] = AT(1) | AT(3),
	[__NR_request_key] = AT(0) | AT(1) | AT(2),
	[__NR_rmdir] = AT(0),
	[__NR_rt_sigaction] = AT(1) | AT(2),
	[__NR_rt_sigpending] = AT(0),
	[__NR_rt_sigprocmask] = AT(1) | AT(2),
	[__NR_rt_sigqueueinfo] = AT(2),
	[__NR_rt_sigsuspend] = AT(0),
	[__NR_rt_sigtimedwait] = AT(0) | AT(1) | AT(2),
	[__NR_rt_tgsigqueueinfo] = AT(3),
	[__NR_sched_getaffinity] = AT(2),
	[__NR_sched_getattr] = AT(1),
	[__NR_sched_getparam] = AT(1),
	[__NR_sched_rr_get_interval] = AT(1),
	[__NR_sched_setaffinity] = AT(2),
	[__NR_sched_setattr] = AT(1),
	[__NR_sched_setparam] = AT(1),
	[__NR_sched_setscheduler] = AT(2),
	[__NR_seccomp] = AT(2),
	[__NR_select] = AT(1) | AT(2) | AT(3) | AT(4),
	[__NR_semop] = AT(1),
	[__NR_semtimedop] = AT(1) | AT(3),
	[__NR_sendfile] = AT(2),
	[__NR_sendmmsg] = AT(1),
	[__NR_sendmsg] = AT(1),
	[__NR_sendto] = BUFFER(1) | AT(4),
	[__NR_set_mempolicy] = AT(1),
	[__NR_set_robust_list] = AT(0),
	[__NR_set_tid_address] = AT(0),
	[__NR_setdomainname] = AT(0),
	[__NR_setgroups] = AT(1),
	[__NR_sethostname] = AT(0),
	[__NR_setitimer] = AT(1) | AT(2),
	[__NR_setrlimit] = AT(1),
	[__NR_setsockopt] = AT(3),
	[__NR_settimeofday] = AT(0) | AT(1),
	[__NR_setxattr] = AT(0) | AT(1) | AT(2),
	[__NR_shmctl] = AT(2),
	[__NR_sigaltstack] = AT(0) | AT(1),
	[__NR_signalfd] = AT(1),
	[__NR_signalfd4] = AT(1),
	[__NR_socketpair] = AT(3),
	[__NR_splice] = AT(1) | AT(3),
	[__NR_stat] = AT(0) | AT(1),
	[__NR_statfs] = AT(0) | AT(1),
	[__NR_statx] = AT(1) | AT(4),
	[__NR_swapoff] = AT(0),
	[__NR_swapon] = AT(0),
	[__NR_symlink] = AT(0) | AT(1),
	[__NR_symlinkat] = AT(0) | AT(2),
	[__NR_sysinfo] = AT(0),
	[__NR_syslog] = BUFFER(1),
	[__NR_time] = AT(0),
	[__NR_timer_create] = AT(1) | AT(2),
	[__NR_timer_gettime] = AT(1),
	[__NR_timer_settime] = AT(2) | AT(3),
	[__NR_timerfd_gettime] = AT(1),
	[__NR_timerfd_settime] = AT(2) | AT(3),
	[__NR_times] = AT(0),
	[__NR_truncate] = AT(0),
	[__NR_umount2] = AT(0),
	[__NR_uname] = AT(0),
	[__NR_unlink] = AT(0),
	[__NR_unlinkat] = AT(1),
	[__NR_ustat] = AT(1),
	[__NR_utime] = AT(0) | AT(1),
	[__NR_utimensat] = AT(1) | AT(2),
	[__NR_utimes] = AT(0) | AT(1),
	[__NR_vmsplice] = AT(1),
	[__NR_wait4] = AT(1) | AT(3),
	[__NR_waitid] = AT(2) | AT(4),
	[__NR_write] = BUFFER(1),
	[__NR_writev] = AT(1),
};

/* Who has nothing there: the last page below the kernel, as far into it. */
static uint64_t nowhere(uint64_t address)
{
	return ADDRESS_MAX - PAGE + address % PAGE;
}

/*
 * Requests that say which way they copy have an address, and so have those of terminals and
 * sockets, which are older than that.
 */
static bool has_address(uint32_t request)
{
	enum { TERMINALS = 'T', SOCKETS = 0x89 };

	return _IOC_DIR(request) != _IOC_NONE || _IOC_TYPE(request) == TERMINALS ||
	       _IOC_TYPE(request) == SOCKETS;
}

static unsigned int addresses(const struct syscall *call)
{
	const uint32_t number = (uint32_t)call->number;

	if (number == __NR_ioctl)
		return has_address((uint32_t)call->args[1]) ? AT(2) : 0;
	return number < sizeof(arguments) / sizeof(*arguments) ? arguments[number] : 0;
}

/* Of these the kernel refuses more than there can be memory; of others it takes less. */
static bool is_refused(uint32_t number, uint64_t start, uint64_t size)
{
	switch (number) {
	case __NR_read:
	case __NR_write:
	case __NR_pread64:
	case __NR_pwrite64:
		return start + size < start || start + size > ADDRESS_MAX;
	default:
		return false;
	}
}

void pointers_hide(struct syscall *call)
{
	const unsigned int which = addresses(call);

	for (unsigned int arg = 0, rest = which & (AT(ARGS) - 1); rest; arg++, rest >>= 1) {
		uint64_t *const at = &call->args[arg];

		if (!(rest & 1) || !*at)
			continue;
		if (own_has(*at, 1))
			*at = nowhere(*at);
		else if (which & AT(arg + ARGS) && own_has(*at, at[1]) &&
			 !is_refused((uint32_t)call->number, *at, at[1]))
			at[1] = own_before(*at, at[1]);
	}
}
