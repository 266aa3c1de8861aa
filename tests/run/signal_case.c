// SPDX-License-Identifier: MIT
#include <sys/syscall.h>
#include <unistd.h>

#include "case.h"
#include "signal_case.h"

void send_self(int number)
{
	need(raw(SYS_tgkill, getpid(), gettid(), number) == 0);
}

void say_mask(const char *what, const sigset_t *mask)
{
	say("%s:", what);
	for (int i = 1; i <= 64; i++)
		if (sigismember(mask, i) == 1)
			say(" %d", i);
	say("\n");
}

void say_my_mask(const char *what)
{
	sigset_t mask;

	need(sigprocmask(SIG_SETMASK, NULL, &mask) == 0);
	say_mask(what, &mask);
}

sigset_t set_of(int first, int second)
{
	sigset_t set;

	sigemptyset(&set);
	if (first)
		sigaddset(&set, first);
	if (second)
		sigaddset(&set, second);
	return set;
}

void say_info(int number, siginfo_t *info, void *context)
{
	(void)context;
	say("signal %d: si_signo %d si_code %d si_errno %d", number, info->si_signo, info->si_code,
	    info->si_errno);
	if (info->si_code == SI_USER || info->si_code == SI_TKILL || info->si_code == SI_QUEUE)
		say(" mine %d uid %d", info->si_pid == getpid(), info->si_uid == getuid());
	if (info->si_code == SI_QUEUE)
		say(" value %#lx", (long)info->si_value.sival_ptr);
	say("\n");
}
