/* SPDX-License-Identifier: MIT */
/*
 * Signals of the program. docs/runtime.md, "How a signal travels", tells the story; in short: the
 * kernel's handler is ours for every signal that the program handles, and it only makes a note
 * (struct signal_note) of what the kernel says, while all signals stay blocked. The dispatcher
 * finds the note between two fragments and calls linux_deliver(), which builds the frame that the
 * kernel would have built and lets the program go on in its handler.
 *
 *	signal.c	 the kernel's handler: from the kernel's frame to a note
 *	signal_deliver.c from the note to the program's handler, or to its end
 *	signal_action.c	 rt_sigaction, and what the kernel is told of it
 *	signal_mask.c	 rt_sigprocmask and the calls that wait under a mask of their own
 *	signal_stack.c	 sigaltstack
 *	frame.c		 the frame on the program's stack: made, and returned through
 *	fpu.c		 vector and x87 state: into a frame, and to what a handler begins with
 *
 * SIGSEGV and SIGBUS are special: the runtime itself lives by them (copy.h, watched pages), so the
 * kernel's handler for them is always ours and they are never blocked. What the program believes of
 * them is kept here.
 */
#ifndef RUNTIME_LINUX_SIGNAL_H
#define RUNTIME_LINUX_SIGNAL_H

#include <asm/sigcontext.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/linux/syscalls.h"
#include "runtime/linux/task.h"

/* ---- for the rest of the runtime ---- */

/*
 * At boot, with GS base at the process's first thread: takes over what exec left (ignored signals,
 * the mask) and installs the handlers that the runtime needs.
 */
void signal_boot(struct thread *thread);

/*
 * Around an execve(2) that is real: gives the kernel the program's view of SIGSEGV and SIGBUS, and
 * takes it back when the call has failed.
 */
void signal_before_exec(struct thread *thread);
void signal_after_exec(struct thread *thread);

/* rt_sigaction and so on: signal_action.c, signal_mask.c, signal_stack.c, frame.c */
syscall_handler sys_rt_sigaction;
syscall_handler sys_rt_sigprocmask, sys_rt_sigpending, sys_rt_sigsuspend, sys_rt_sigtimedwait,
	sys_ppoll, sys_pselect6, sys_epoll_pwait;
syscall_handler sys_sigaltstack;
syscall_handler sys_rt_sigreturn;

/* ---- signal.c ---- */

/*
 * The si_code of TRAP_PERF while SIGTRAP is blocked. The kernel takes positive ones for faults, of
 * which it delivers the oldest with the next, blocked or not (dequeue_synchronous_signal()).
 */
#define TRAP_PERF_BLOCKED (-0x5450)

/* What the program is told of a signal that the runtime, or the monitor, has sent for an event. */
void signal_told(siginfo_t *info);

/* Makes ours the kernel's handler of a signal, with what the program's flags say of it. */
int64_t signal_catch(int number, uint64_t flags);
int64_t signal_set_kernel_action(int number, const struct signal_action *action,
				 struct signal_action *old);

/* The kernel's mask of this thread. Returns the old one. */
signal_set signal_set_kernel_mask(signal_set mask);

/*
 * Blocks every signal, SIGSEGV too, and returns true with the mask before it. False when a signal
 * waits to be delivered: nothing has changed then, and the call at hand is to be made again after
 * it (SYSCALL_NOT_MADE).
 */
bool signal_hold(struct thread *thread, signal_set *mask);

/*
 * While that holds for long: unblocks what the program ignores and has not in @mask. A signal that
 * nobody blocks the kernel does away with at once; for one that its target blocks another thread
 * is woken, whose sigwaitinfo(2) or epoll_wait(2) then ends with EINTR, and no handler has run.
 */
void signal_hold_ignored_not(const struct task *task, signal_set mask);

/* The program's mask, of what the kernel's mask is, and the other way round. */
signal_set signal_program_mask(const struct task *task, signal_set kernel);
signal_set signal_set_program_mask(struct task *task, signal_set mask);

/* Takes one of @set that the program has blocked and somebody has sent; 0 if there is none. */
int signal_take_held(struct task *task, signal_set set, siginfo_t *info);

/* A signal of those that the kernel knows nothing of can be delivered now: makes the note of it. */
void signal_release_held(struct thread *thread, signal_set mask);

/* Those that wait here become the kernel's to keep: it has them blocked. */
void signal_give_back_held(struct task *task);

/* ---- signal_deliver.c ---- */

/*
 * A signal that the program cannot go on without having seen, here and now: if it is blocked or
 * ignored, the program ends. False if another has to be delivered first, and nothing has happened.
 */
bool signal_force(struct thread *thread, int number, int code, uint64_t address);

/* ---- signal_action.c ---- */

struct signal_actions *signal_actions_new(struct signal_actions *from);
void signal_actions_give(struct signal_actions *actions);
/* Handlers have become defaults in the kernel (CLONE_CLEAR_SIGHAND): here, too, but for ours. */
void signal_actions_clear(struct signal_actions *actions);
void signal_action_get(struct task *task, int number, struct signal_action *action);
/* A signal that is sent next is noted by our handler, also where it acts by default. */
void signal_action_note(struct task *task, int number);
/* SA_RESETHAND */
void signal_action_reset(struct task *task, int number);

/* ---- signal_stack.c ---- */

/* Whether @rsp is on the program's alternate stack; the ss_flags that sigaltstack(2) would tell. */
bool signal_on_stack(const stack_t *stack, uint64_t rsp);
int signal_stack_flags(const stack_t *stack, uint64_t rsp);
/* sigaltstack(2) with the stack pointer at @rsp: 0 or an errno value. */
int64_t signal_stack_change(struct task *task, const stack_t *to, uint64_t rsp);

/* ---- frame.c ---- */

/* struct ucontext of <asm/ucontext.h>, with the names of this architecture's registers. */
struct signal_context {
	uint64_t flags, link;
	stack_t stack;
	struct sigcontext_64 registers;
	signal_set mask;
};

/*
 * Puts the frame of @note on the program's stack and sets thread->regs to begin with the handler.
 * -EFAULT when that cannot be written; then nothing has changed.
 */
int64_t frame_make(struct thread *thread, const struct signal_note *note,
		   const struct signal_action *action);

/*
 * Leaves the runtime for good: the process goes on at @regs natively, under @mask, with @stack for
 * its signals.
 */
_Noreturn void frame_leave(const struct regs *regs, signal_set mask, const stack_t *stack);

/* ---- fpu.c ---- */

enum { FPU_STATE_MAX = 12288, FPU_ALIGNMENT = 64 };

/* How much there is to save: at boot, and when the program has been permitted more (AMX). */
void fpu_learn(void);
/* Of a frame's: xmm0 and on. */
static inline uint8_t (*fpu_vectors(uint64_t state))[16]
{
	return (uint8_t(*)[16])(state + 160);
}

/* The state as the kernel lays it out in a frame, up to FPU_STATE_MAX bytes. Returns how many,
 * with the word behind that says that it is whole. */
size_t fpu_save(void *state);
/* What a signal handler begins with. */
void fpu_reset(void);
/* uc_flags of such a frame. */
uint64_t fpu_context_flags(void);

#endif
