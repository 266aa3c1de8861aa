// SPDX-License-Identifier: MIT
#include "runtime/linux/syscalls.h"

#include <asm/errno.h>
#include <asm/unistd.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/time.h"
#include "runtime/linux/clock_timer.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_joined.h"
#include "runtime/linux/files.h"
#include "runtime/linux/maps_files.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/pointers.h"
#include "runtime/linux/seccomp.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/switches.h"
#include "runtime/linux/task.h"
#include "runtime/linux/tasks.h"
#include "runtime/linux/threads.h"
#include "runtime/thread.h"
#include "runtime/translate/translate.h"

/*
 * rseq: the kernel would have to be told of critical sections by addresses in the code cache, which
 * change. Absent is a documented answer, and every user has a way without.
 */
static int64_t sys_absent(struct thread *thread, struct syscall *call)
{
	(void)thread, (void)call;
	return -ENOSYS;
}

static syscall_handler *const handlers[] = {
	/* the memory map */
	[__NR_brk] = sys_brk,
	[__NR_madvise] = sys_madvise,
	[__NR_mlockall] = sys_mlockall,
	[__NR_mmap] = sys_mmap,
	[__NR_mprotect] = sys_mprotect,
	[__NR_mremap] = sys_mremap,
	[__NR_munlockall] = sys_munlockall,
	[__NR_munmap] = sys_munmap,
	[__NR_pkey_mprotect] = sys_mprotect,
	[__NR_pread64] = sys_read,
	[__NR_read] = sys_read,
	[__NR_recvfrom] = sys_read,
	[__NR_shmat] = sys_shmat,
	[__NR_shmdt] = sys_shmdt,

	/* files that are not what the kernel says */
	[__NR_fstat] = sys_fstat,
	[__NR_lseek] = sys_lseek,
	[__NR_preadv] = sys_read_vector,
	[__NR_preadv2] = sys_read_vector,
	[__NR_readv] = sys_read_vector,

	/* what may be a program's writing to its own code */
	[__NR_pwrite64] = sys_write,
	[__NR_pwritev] = sys_write,
	[__NR_pwritev2] = sys_write,
	[__NR_write] = sys_write,
	[__NR_writev] = sys_write,

	/* limits that count what is the runtime's */
	[__NR_getrlimit] = sys_limit,
	[__NR_prlimit64] = sys_limit,
	[__NR_setrlimit] = sys_limit,

	/* descriptors that the runtime keeps to itself: by number, and in memory */
	[__NR_close_range] = sys_close_range,
	[__NR_getdents] = sys_getdents,
	[__NR_getdents64] = sys_getdents,
	[__NR_poll] = sys_poll,
	[__NR_ppoll] = sys_poll,
	[__NR_pselect6] = sys_select,
	[__NR_select] = sys_select,
	[__NR_sendmmsg] = sys_sendmmsg,
	[__NR_sendmsg] = sys_sendmsg,

	/* files that are not there for the kernel */
	[__NR_chdir] = sys_chdir,
	[__NR_chroot] = sys_chdir,
	[__NR_fchdir] = sys_chdir,

	/* events */
	[__NR_mkdir] = sys_mkdir,
	[__NR_mkdirat] = sys_mkdir,
	[__NR_perf_event_open] = sys_perf_event_open,
	[__NR_setns] = sys_namespaces,
	[__NR_unshare] = sys_namespaces,

	/* another program */
	[__NR_execve] = sys_execve,
	[__NR_execveat] = sys_execveat,

	/* debuggers */
	[__NR_ptrace] = sys_ptrace,

	[__NR_rseq] = sys_absent,

	/* what a program wants for itself */
	[__NR_prctl] = sys_prctl,
	[__NR_seccomp] = sys_seccomp,

	/* signals */
	[__NR_epoll_pwait] = sys_epoll_pwait,
	[__NR_epoll_pwait2] = sys_epoll_pwait,
	[__NR_rt_sigaction] = sys_rt_sigaction,
	[__NR_rt_sigpending] = sys_rt_sigpending,
	[__NR_rt_sigprocmask] = sys_rt_sigprocmask,
	[__NR_rt_sigreturn] = sys_rt_sigreturn,
	[__NR_rt_sigsuspend] = sys_rt_sigsuspend,
	[__NR_rt_sigtimedwait] = sys_rt_sigtimedwait,
	[__NR_sigaltstack] = sys_sigaltstack,

	/* threads and processes */
	[__NR_wait4] = sys_wait4,
	[__NR_waitid] = sys_waitid,
	[__NR_arch_prctl] = sys_arch_prctl,
	[__NR_clone] = sys_clone,
	[__NR_clone3] = sys_clone3,
	[__NR_exit] = sys_exit,
	[__NR_exit_group] = sys_exit_group,
	[__NR_fork] = sys_fork,
	[__NR_vfork] = sys_vfork,
};

int64_t syscall_pass_asm(const struct syscall *call, const uint32_t *pending);

extern const char syscall_pass_look[], syscall_pass_made[], syscall_pass_not_made[];

int64_t syscall_pass(struct thread *thread, const struct syscall *call)
{
	int64_t result;

	if (thread->events.switches)
		switches_before(thread);
	/* What the kernel does for the program is no time of the program's; events may come
	 * meanwhile. */
	if (thread->page)
		core_clock_stop(&thread->events);
	result = syscall_pass_asm(call, &thread->pending);
	if (thread->page)
		core_clock_start(&thread->events);
	if (thread->events.switches)
		switches_after(thread);

	/*
	 * What the program may write and the kernel could not is a page whose code has been
	 * translated.
	 */
	if (result == -EFAULT && memory_unwatch_all())
		result = syscall_pass_asm(call, &thread->pending);
	return result;
}

bool syscall_not_made(uint64_t *rip)
{
	if (*rip < (uint64_t)syscall_pass_look || *rip >= (uint64_t)syscall_pass_made)
		return false;
	*rip = (uint64_t)syscall_pass_not_made;
	return true;
}

bool syscall_interrupted(uint64_t *rip, uint64_t rax)
{
	if (!syscall_was_made(*rip) || rax != (uint64_t)-EINTR)
		return false;
	*rip = (uint64_t)syscall_pass_not_made;
	return true;
}

bool syscall_was_made(uint64_t rip)
{
	return rip == (uint64_t)syscall_pass_made;
}

/* Of @call that no filter refuses. */
static int64_t make(struct thread *thread, struct syscall *call)
{
	uint32_t number = (uint32_t)call->number; /* more bits the kernel does not look at */
	syscall_handler *handler = NULL;
	int64_t result = EVENT_CALL_OTHER;

	descriptors_hide(call);
	pointers_hide(call);
	if (event_calls_any())
		result = event_call(thread, call);
	if (result != EVENT_CALL_OTHER)
		return result;
	if (number < sizeof(handlers) / sizeof(*handlers))
		handler = handlers[number];
	if (!handler && files_takes_path(number))
		handler = sys_path;
	return handler ? handler(thread, call) : syscall_pass(thread, call);
}

/*
 * A call that was given up for a reason of the runtime's own, of which the program does not hear,
 * is made again from here: were its instruction executed again, it would count once more.
 */
static bool was_only_kicked(struct thread *thread)
{
	if (__atomic_load_n(&thread->pending, __ATOMIC_RELAXED) != PENDING_KICK)
		return false;
	__atomic_and_fetch(&thread->pending, ~(uint32_t)PENDING_KICK, __ATOMIC_RELAXED);
	return true;
}

static int64_t make_once(struct thread *thread)
{
	const uint64_t *gpr = thread->regs.gpr;
	struct syscall call = {
		.number = gpr[REG_RAX],
		.args = {gpr[REG_RDI], gpr[REG_RSI], gpr[REG_RDX], gpr[REG_R10], gpr[REG_R8],
			 gpr[REG_R9]},
	};
	const struct task *task = thread->task;
	int64_t result;

	/* At once: what it brings would have the call given up, and begun again, again and again.
	 */
	clock_timer_stop(thread);
	if (task->seccomp && seccomp_refuses(task, &call))
		result = seccomp_refused(thread, &call);
	else
		result = make(thread, &call);
	maps_files_called(&call, result);
	event_joined_forward();
	tasks_update(thread);
	return result;
}

/* False: not made, and to be begun again. */
static bool make_call(struct thread *thread)
{
	int64_t result;

	tasks_before_call(thread);
	do
		result = make_once(thread);
	while (result == SYSCALL_NOT_MADE && was_only_kicked(thread));
	if (result == SYSCALL_NOT_MADE)
		return false;
	if (result != SYSCALL_REGISTERS_SET)
		thread->regs.gpr[REG_RAX] = (uint64_t)result;
	return true;
}

void linux_syscall(struct thread *thread)
{
	const bool quick = !thread->task->seccomp && event_call_quick(thread);

	if (!quick && !make_call(thread)) {
		thread->regs.rip -= 2; /* onto the syscall instruction */
		translate_not_passed(thread, &thread->regs);
		tasks_uncount(thread);
	}
	thread->touches.passed = 0;
}

bool linux_vsyscall(struct thread *thread, uint64_t number)
{
	struct regs *regs = &thread->regs;
	const uint64_t rip = regs->rip, rax = regs->gpr[REG_RAX];
	uint64_t back;

	if (!linux_load(&back, regs->gpr[REG_RSP], sizeof(back), false))
		return false;
	regs->rip = back;
	regs->gpr[REG_RSP] += sizeof(back);
	regs->gpr[REG_RAX] = number;
	if (!make_call(thread)) {
		/* There is no instruction of it to go back to but the whole. */
		regs->rip = rip;
		regs->gpr[REG_RSP] -= sizeof(back);
		regs->gpr[REG_RAX] = rax;
	}
	return true;
}
