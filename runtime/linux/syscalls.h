/* SPDX-License-Identifier: MIT */
/*
 * The system-call boundary. Every system call of the program goes through one table, number ->
 * handler (syscalls.c); what has no handler is made as it is, with all six arguments.
 */
#ifndef RUNTIME_LINUX_SYSCALLS_H
#define RUNTIME_LINUX_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* A call as the program makes it: rax; rdi, rsi, rdx, r10, r8, r9. syscall_pass.S knows it. */
struct syscall {
	uint64_t number;
	uint64_t args[6];
};

/*
 * What a handler returns: the program's rax, or one of these two. They are below 0, as what has
 * failed, but no errno values: a filter of seccomp(2) answers with any errno up to 4095. Nor are
 * they the negative number of a process group, as fcntl(2) gives the owner.
 */
enum {
	/*
	 * A signal came before the call had an effect. The program is set back to its syscall
	 * instruction with its registers unchanged, the signal is delivered, and its handler
	 * returns to make the call after all. A handler that gets this from syscall_pass() returns
	 * it too; so it must be able to start again.
	 */
	SYSCALL_NOT_MADE = -0x40000000,
	/* The handler has set all registers of the program itself, rip among them. */
	SYSCALL_REGISTERS_SET = -0x40000001,
};

typedef int64_t syscall_handler(struct thread *thread, struct syscall *call);

/*
 * Makes a call of the program, as @call says now, and returns what the kernel does. Calls that can
 * block must be made through this: a signal that comes before or while the kernel blocks either
 * interrupts the call (-EINTR) or finds it not made (SYSCALL_NOT_MADE), never lost until it ends.
 */
int64_t syscall_pass(struct thread *thread, const struct syscall *call);

/*
 * For the handler of the kernel's signals, when the signal came with the processor at @rip: true
 * if that is in syscall_pass() before the call was made, or where the kernel left it to be made
 * again; then *@rip is where to go on, so that syscall_pass() returns SYSCALL_NOT_MADE.
 */
bool syscall_not_made(uint64_t *rip);

/* The same for a call that was made and has given -EINTR, where the program is not to know. */
bool syscall_interrupted(uint64_t *rip, uint64_t rax);

/* Whether @rip is right behind the call, so that rax is what the kernel has answered. */
bool syscall_was_made(uint64_t rip);

/*
 * The program's registers are in @thread->regs, rip behind its syscall instruction. Makes the call
 * and leaves the registers as they are to go on with.
 */
void linux_syscall(struct thread *thread);

/* Handlers, by the file that has them; the table is in syscalls.c. */

/* descriptors.c */
syscall_handler sys_close_range;

/* descriptor_lists.c: also ppoll and pselect6 */
syscall_handler sys_poll, sys_select, sys_sendmsg, sys_sendmmsg;

/* listing.c: also getdents64 */
syscall_handler sys_getdents;

/* exec.c */
syscall_handler sys_execve, sys_execveat;

/* files.c: for all calls that files_takes_path() */
syscall_handler sys_path;

/* debugger.c */
syscall_handler sys_ptrace;

/* maps_files.c; also preadv and preadv2 */
syscall_handler sys_fstat, sys_lseek, sys_read_vector;

/* memory_calls.c; memory_map_call: mmap(2) of which nobody is told */
int64_t memory_map_call(struct thread *thread, struct syscall *call);
syscall_handler sys_mmap, sys_munmap, sys_mprotect, sys_mremap, sys_madvise, sys_shmat, sys_shmdt,
	sys_read;

/* memory_locked.c */
syscall_handler sys_mlockall, sys_munlockall;

/* prctl.c */
syscall_handler sys_prctl;

/* seccomp.c */
syscall_handler sys_seccomp;

/* limits.c: getrlimit, setrlimit, prlimit */
syscall_handler sys_limit;

/* event_open.c */
syscall_handler sys_perf_event_open, sys_namespaces, sys_wait4, sys_waitid;

/* cgroups.c: mkdir, mkdirat */
syscall_handler sys_mkdir;

/* self_memory.c: all calls that write to a descriptor */
syscall_handler sys_write;

/* virtual_here.c: chdir, fchdir, chroot */
syscall_handler sys_chdir;

/* brk.c */
syscall_handler sys_brk;

#endif
