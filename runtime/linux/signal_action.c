// SPDX-License-Identifier: MIT
/*
 * rt_sigaction(2). The kernel is told of SIG_DFL and SIG_IGN as they are, so that it keeps to them
 * without us; a handler becomes ours. Exec may have left some signals ignored: what the program has
 * never set, the kernel is asked for.
 */
#include "runtime/linux/signal.h"

#include <asm/errno.h>
#include <linux/signal.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/memory.h"
#include "runtime/string.h"
#include "runtime/translate/translate.h"

enum { DEFAULT_HANDLER = 0, IGNORE_HANDLER = 1 };

/* The flags that the kernel keeps; a program finds out by them what it supports. */
#define FLAGS_KEPT                                                                                 \
	(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_EXPOSE_TAGBITS | SA_RESTORER | SA_ONSTACK | \
	 SA_RESTART | SA_NODEFER | (uint64_t)(uint32_t)SA_RESETHAND)

#define CANNOT_BE_SET (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))

struct signal_actions *signal_actions_new(struct signal_actions *from)
{
	struct signal_actions *actions = memory_allocate(sizeof(*actions), 0);

	if (!actions)
		return NULL;
	memory_populate((uint64_t)actions, (uint64_t)(actions + 1));
	if (from) {
		lock_take(&from->lock);
		memcpy(actions, from, sizeof(*actions));
		lock_give(&from->lock);
	}
	actions->lock = (struct lock){.kind = LOCK_SIGNAL_ACTIONS};
	actions->users = 1;
	actions->detaching = 0;
	return actions;
}

void signal_actions_give(struct signal_actions *actions)
{
	if (__atomic_sub_fetch(&actions->users, 1, __ATOMIC_ACQ_REL) == 0)
		memory_free(actions, sizeof(*actions));
}

void signal_actions_clear(struct signal_actions *actions)
{
	for (int number = 1; number <= SIGNALS; number++)
		if (actions->of[number].handler != IGNORE_HANDLER)
			actions->of[number] = (struct signal_action){0};
	signal_catch(SIGSEGV, SA_RESTART);
	signal_catch(SIGBUS, SA_RESTART);
}

void signal_action_get(struct task *task, int number, struct signal_action *action)
{
	struct signal_actions *actions = task->actions;

	lock_take(&actions->lock);
	*action = actions->of[number];
	lock_give(&actions->lock);
}

void signal_action_reset(struct task *task, int number)
{
	static const struct signal_action by_default;
	struct signal_actions *actions = task->actions;

	lock_take(&actions->lock);
	actions->of[number].handler = DEFAULT_HANDLER;
	if (!(SIGNAL_BIT(number) & SIGNALS_FAULTS))
		signal_set_kernel_action(number, &by_default, NULL);
	lock_give(&actions->lock);
}

/*
 * Signals that are sent in the middle of the runtime's work, with locks of the arena: where the
 * kernel acts by default, the process would end there and then.
 */
void signal_action_note(struct task *task, int number)
{
	struct signal_actions *actions = task->actions;
	struct signal_action now;

	/* Nothing happens then, and a handler would interrupt calls. */
	const signal_set ignored = SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) |
				   SIGNAL_BIT(SIGWINCH);

	if (SIGNAL_BIT(number) & (CANNOT_BE_SET | SIGNALS_FAULTS | ignored))
		return;
	lock_take(&actions->lock);
	if (actions->of[number].handler == DEFAULT_HANDLER &&
	    !signal_set_kernel_action(number, NULL, &now) && now.handler == DEFAULT_HANDLER) {
		actions->known |= SIGNAL_BIT(number);
		signal_catch(number, SA_RESTART);
	}
	lock_give(&actions->lock);
}

/* To the kernel, as far as it has to know. */
static int64_t tell_kernel(int number, const struct signal_action *action)
{
	bool handled = action->handler != DEFAULT_HANDLER && action->handler != IGNORE_HANDLER;

	if (handled)
		return signal_catch(number, action->flags);
	/* One of these that is sent to us and ignored must not interrupt anything. */
	if (SIGNAL_BIT(number) & SIGNALS_FAULTS)
		return signal_catch(number, SA_RESTART);
	return signal_set_kernel_action(number, action, NULL);
}

static bool drops(int number, const struct signal_action *action)
{
	return action->handler == IGNORE_HANDLER ||
	       (action->handler == DEFAULT_HANDLER && number == SIGCHLD);
}

static int64_t change(struct task *task, int number, const struct signal_action *to,
		      struct signal_action *old)
{
	struct signal_actions *actions = task->actions;
	int64_t error = 0;

	lock_take(&actions->lock);
	if (actions->known & SIGNAL_BIT(number))
		*old = actions->of[number];
	else
		error = signal_set_kernel_action(number, NULL, old);
	if (to && !error) {
		error = tell_kernel(number, to);
		if (!error) {
			actions->of[number] = *to;
			actions->known |= SIGNAL_BIT(number);
			if (drops(number, to))
				task->faults_held &= ~SIGNAL_BIT(number);
		}
	}
	lock_give(&actions->lock);
	return error;
}

int64_t sys_rt_sigaction(struct thread *thread, struct syscall *call)
{
	int number = (int)call->args[0];
	uint64_t to_at = call->args[1], old_at = call->args[2];
	struct signal_action to, old;
	int64_t error;

	if (call->args[3] != sizeof(signal_set))
		return -EINVAL;
	if (to_at && copy_in(&to, to_at, sizeof(to)))
		return -EFAULT;
	if (number < 1 || number > SIGNALS || (to_at && SIGNAL_BIT(number) & CANNOT_BE_SET))
		return -EINVAL;
	if (to_at) {
		to.flags &= FLAGS_KEPT;
		to.mask &= ~CANNOT_BE_SET;
	}
	/* A signal that came earlier is for the handler that was there when it came. */
	if (thread->pending)
		return SYSCALL_NOT_MADE;
	error = change(thread->task, number, to_at ? &to : NULL, &old);
	if (!error && old_at && copy_out(old_at, &old, sizeof(old)))
		return -EFAULT;
	return error;
}
