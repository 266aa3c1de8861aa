// SPDX-License-Identifier: MIT
/* Delivery: who is told what, under which mask, in which order. */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "case.h"
#include "signal_case.h"

static void case_info(void)
{
	handle(SIGUSR1, say_info, 0);
	handle(SIGRTMIN + 3, say_info, 0);
	handle(SIGSEGV, say_info, 0);
	kill(getpid(), SIGUSR1);
	raise(SIGUSR1);
	union sigval value = {.sival_ptr = (void *)0x123456789abcdef0};
	sigqueue(getpid(), SIGRTMIN + 3, value);
	kill(getpid(), SIGSEGV);
	kill(0x7ffffff0, SIGUSR1);
	say("kill nobody: %s\n", errno_name(errno));
	say("kill 65: %s\n", result_name(kill(getpid(), 65)));
	siginfo_t info = {.si_code = -77, .si_signo = SIGUSR1, .si_errno = 5};
	raw(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR1, &info);
}

/* ---- masks and nesting ---- */

static int depth;

static void nested(int number, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	say("%*sin %d\n", depth++, "", number);
	say_my_mask("mask");
	if (number == SIGUSR1 && depth < 3)
		send_self(SIGUSR1);
	if (number == SIGUSR1)
		send_self(SIGUSR2);
	say("%*sout %d\n", --depth, "", number);
}

static void case_nesting(void)
{
	struct sigaction action = {.sa_sigaction = nested, .sa_flags = SA_SIGINFO};

	say("blocked while it is handled\n");
	sigaddset(&action.sa_mask, SIGUSR2);
	sigaddset(&action.sa_mask, SIGRTMAX);
	need(sigaction(SIGUSR1, &action, NULL) == 0);
	handle(SIGUSR2, nested, 0);
	depth = 2;
	send_self(SIGUSR1);
	say("SA_NODEFER\n");
	action.sa_flags |= SA_NODEFER;
	sigemptyset(&action.sa_mask);
	need(sigaction(SIGUSR1, &action, NULL) == 0);
	depth = 0;
	send_self(SIGUSR1);
	say_my_mask("after");
}

static void order(int number, siginfo_t *info, void *context)
{
	(void)context;
	say("%d value %d\n", number, info->si_code == SI_QUEUE ? info->si_value.sival_int : -1);
}

/* Several at once: frames are stacked before any handler has run an instruction. */
static void case_order(void)
{
	sigset_t all;

	sigfillset(&all);
	need(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
	handle(SIGUSR1, order, 0);
	handle(SIGUSR2, order, 0);
	handle(SIGTERM, order, 0);
	for (int i = 0; i < 3; i++)
		handle(SIGRTMIN + i, order, 0);
	for (int i = 0; i < 3; i++) {
		union sigval value = {.sival_int = 10 + i};

		sigqueue(getpid(), SIGRTMIN + 2 - i, value);
		sigqueue(getpid(), SIGRTMIN + 1, value);
	}
	send_self(SIGUSR2);
	send_self(SIGUSR2);
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGUSR1);
	sigset_t pending;
	sigpending(&pending);
	say_mask("pending", &pending);
	sigemptyset(&all);
	need(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
	say("all handled\n");
}

static void edit_mask(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)number;
	(void)info;
	say_mask("uc_sigmask", &uc->uc_sigmask);
	sigaddset(&uc->uc_sigmask, SIGHUP);
	sigaddset(&uc->uc_sigmask, SIGKILL);
	sigdelset(&uc->uc_sigmask, SIGUSR2);
}

static void case_context_mask(void)
{
	sigset_t set = set_of(SIGUSR2, SIGWINCH);

	need(sigprocmask(SIG_SETMASK, &set, NULL) == 0);
	handle(SIGUSR1, edit_mask, 0);
	handle(SIGUSR2, say_info, 0);
	send_self(SIGUSR2);
	say("not yet\n");
	send_self(SIGUSR1);
	say_my_mask("after");
}

static void case_reset(void)
{
	no_core();
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		struct sigaction old;

		handle(SIGUSR1, say_info, (int)SA_RESETHAND);
		send_self(SIGUSR1);
		need(sigaction(SIGUSR1, NULL, &old) == 0);
		say("default again: %d flags %#x\n", old.sa_handler == SIG_DFL, old.sa_flags);
		send_self(SIGUSR1);
		_exit(1);
	}
	say_end("second", child);
}

/* ---- sigaction(2) itself ---- */

static void case_sigaction(void)
{
	struct kernel_action set = {(void *)0x1234, 0x8c000000ul | SA_SIGINFO | 0x400 | 0x800,
				    (void *)0x5678, ~0ul};
	struct kernel_action old, *nowhere = (void *)16;

	say("set %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, NULL, 8));
	say("get %ld\n", raw(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8));
	say("handler %p flags %#lx restorer %p mask %#lx\n", old.handler, old.flags, old.restorer,
	    old.mask);
	set.handler = SIG_IGN;
	set.flags = 0;
	set.mask = 0;
	say("swap %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, &old, 8));
	say("handler %p flags %#lx restorer %p mask %#lx\n", old.handler, old.flags, old.restorer,
	    old.mask);
	say("get %ld\n", raw(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8));
	say("handler %p flags %#lx restorer %p mask %#lx\n", old.handler, old.flags, old.restorer,
	    old.mask);
	set.handler = SIG_DFL;
	set.flags = SA_NODEFER;
	say("default %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, &old, 8));
	say("get %ld\n", raw(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8));
	say("handler %p flags %#lx\n", old.handler, old.flags);
	say("size %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, NULL, 4));
	say("kill %ld\n", raw(SYS_rt_sigaction, SIGKILL, &set, NULL, 8));
	say("stop, get %ld\n", raw(SYS_rt_sigaction, SIGSTOP, NULL, &old, 8));
	say("0 %ld\n", raw(SYS_rt_sigaction, 0, NULL, &old, 8));
	say("65 %ld\n", raw(SYS_rt_sigaction, 65, NULL, &old, 8));
	say("-1 %ld\n", raw(SYS_rt_sigaction, -1, NULL, &old, 8));
	say("bad new %ld\n", raw(SYS_rt_sigaction, SIGUSR1, nowhere, NULL, 8));
	set.handler = (void *)0x4321;
	say("bad old %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, nowhere, 8));
	say("get %ld\n", raw(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8));
	say("handler %p\n", old.handler);
	say("one object %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &old, &old, 8));
}

const struct test_case cases[] = {
	{"info", case_info},   {"nesting", case_nesting},
	{"order", case_order}, {"context_mask", case_context_mask},
	{"reset", case_reset}, {"sigaction", case_sigaction},
	{NULL, NULL},
};
