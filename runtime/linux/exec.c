// SPDX-License-Identifier: MIT
#include "runtime/linux/exec.h"

#include <asm/errno.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>

#include "abi/handover.h"
#include "core/core.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/aslr.h"
#include "runtime/linux/code_store.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/faults.h"
#include "runtime/linux/files.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/syscalls.h"
#include "runtime/linux/task.h"
#include "runtime/linux/tasks.h"
#include "runtime/linux/thread_slots.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

#define HANDOVER_MAX (sizeof(((struct exec *)0)->filename) + 128)

/* The argument lists of an exec; both in one piece of memory. */
struct lists {
	uint64_t *argv, *envp;
	size_t size;
};

/* The kernel takes NULL for an empty list. */
static int64_t count(uint64_t list)
{
	uint64_t item;
	int64_t nr = 0;

	if (!list)
		return 0;
	for (;; nr++) {
		if (copy_in(&item, list + (uint64_t)nr * 8, 8))
			return -EFAULT;
		if (!item)
			return nr;
	}
}

/* At most @nr, as another thread may be changing the list; returns how many. */
static int64_t copy_list(uint64_t *to, uint64_t list, int64_t from, int64_t nr)
{
	int64_t copied = 0;

	for (; from < nr; from++, copied++) {
		if (copy_in(&to[copied], list + (uint64_t)from * 8, 8))
			return -EFAULT;
		if (!to[copied])
			break;
	}
	return copied;
}

/*
 *	argv: words of scripts | the program's, without the first if there are words | 0
 *	envp: the program's | TALLY_RUN=... | 0
 */
static int64_t make_lists(const struct exec *exec, uint64_t argv, uint64_t envp,
			  const char *handover, struct lists *lists)
{
	unsigned int nr_words = exec->nr_words > 1 ? exec->nr_words : 0;
	int64_t argc = count(argv), envc = count(envp), nr;

	if (argc < 0 || envc < 0)
		return -EFAULT;
	if (argc + envc > INT32_MAX / 8)
		return -E2BIG;
	lists->size = (nr_words + (uint64_t)argc + 1 + (uint64_t)envc + 2) * 8;
	lists->argv = memory_allocate(lists->size, 0);
	if (!lists->argv)
		return -ENOMEM;
	for (unsigned int i = 0; i < nr_words; i++)
		lists->argv[i] = (uint64_t)exec->words[i];
	nr = copy_list(lists->argv + nr_words, argv, nr_words ? 1 : 0, argc);
	if (nr < 0)
		return nr;
	lists->envp = lists->argv + nr_words + nr + 1;
	nr = copy_list(lists->envp, envp, 0, envc);
	if (nr < 0)
		return nr;
	lists->envp[nr] = (uint64_t)handover;
	return 0;
}

void exec_release(struct task *task)
{
	if (task->exec_lists)
		memory_free(task->exec_lists, task->exec_lists_size);
	task->exec_lists = NULL;
}

/*
 * Another thread may be about to end the process, and have ended this one's task, which it does not
 * from here on (tasks_end_all()).
 */
static void hand_over(struct thread *thread, bool does)
{
	slots_lock();
	thread->task->handed_over = does;
	slots_unlock();
	if (does)
		tasks_await_end(thread);
}

/*
 * The real call. It is one of the program's, as to signals: one that was noted and not delivered
 * would be lost with the process's memory. Only meanwhile may the page be another's (@hands_over):
 * a child of vfork(2) that is killed before or after, with locks, is still itself to its parent.
 */
static int64_t make(struct thread *thread, bool hands_over, uint64_t number, uint64_t a, uint64_t b,
		    uint64_t c, uint64_t d, uint64_t e)
{
	const struct syscall call = {number, {a, b, c, d, e, 0}};
	int64_t result;

	if (!thread)
		return sys(number, a, b, c, d, e);
	faults_executing(thread);
	faults_end(thread->task); /* whose signals would be the new image's end */
	signal_before_exec(thread);
	tasks_executing(thread, true);
	hand_over(thread, hands_over);
	result = syscall_pass(thread, &call);
	thread->task->handed_over = false;
	tasks_executing(thread, false);
	signal_after_exec(thread);
	faults_not_executed(thread);
	return result;
}

/*
 * A tracer is told of an exec before the new image runs, and finds then what the kernel has told
 * events of it. So they are told first; all has been looked at that could keep it from succeeding.
 */
static void tell_before(struct thread *thread, const struct exec *exec)
{
	const char *slash = strrchr(exec->filename, '/');

	if (!thread->events.events || !arena_events() || !proc_tracer_of(thread->tid))
		return;
	core_task_exec(&thread->events, slash ? slash + 1 : exec->filename);
	thread->events.told_exec = true;
}

static void tell_of_failure(struct thread *thread)
{
	char comm[sizeof(thread->events.comm)] = "";

	if (!thread->events.told_exec)
		return;
	thread->events.told_exec = false;
	sys(__NR_prctl, PR_GET_NAME, comm);
	core_task_comm(&thread->events, &thread->events, comm);
}

/* The filters that it is under let the runtime pass by where its text lies, which will be
 * elsewhere. */
static bool is_confined(const struct thread *thread)
{
	return confined() || (thread && thread->task->seccomp);
}

/* Becomes tally-rt again. @program stays open in it. */
static int64_t become(struct thread *thread, const struct exec *exec, int program, uint64_t argv,
		      uint64_t envp)
{
	char handover[HANDOVER_MAX];
	uint32_t owner;
	const bool leaves_page = thread && thread->page && thread->task->shares_table;
	struct lists lists = {0};
	int64_t error;

	if (thread)
		tasks_await_end(thread);
	owner = arena_hand_over(thread);
	format(handover, sizeof(handover), HANDOVER_NAME "%d,%d,%d,%d,%d,%u,%d,%d,%s",
	       (int64_t)HANDOVER_VERSION, (int64_t)descriptors.arena, (int64_t)descriptors.monitor,
	       (int64_t)descriptors.runtime, (int64_t)program, HANDOVER_PAGES + owner,
	       (int64_t)is_confined(thread), (int64_t)aslr_is_fixed(), exec->filename);
	error = make_lists(exec, argv, envp, handover, &lists);
	if (!error && thread) {
		thread->task->exec_lists = lists.argv;
		thread->task->exec_lists_size = lists.size;
		/* Where it is another process's, too, it stays. */
		thread->events.views =
			thread->task->vfork || thread->task->apart ? 0 : event_maps_owner();
	}
	if (!error && leaves_page)
		tasks_end(thread);
	else if (!error && thread)
		tell_before(thread, exec);
	if (!error) {
		error = make(thread, owner != 0, __NR_execveat, (uint64_t)descriptors.runtime,
			     (uint64_t) "", (uint64_t)lists.argv, (uint64_t)lists.envp,
			     AT_EMPTY_PATH);
		if (error == -ENOSYS || error == -EBADF)
			error = make(thread, owner != 0, __NR_execve, (uint64_t) "/proc/self/exe",
				     (uint64_t)lists.argv, (uint64_t)lists.envp, 0, 0);
	}
	/* First: the parent of a child of vfork(2) that is killed meanwhile would free them
	 * again. */
	if (thread) {
		thread->task->exec_lists = NULL;
		thread->handed_over = 0;
	}
	if (lists.argv)
		memory_free(lists.argv, lists.size);
	if (thread) {
		thread->events.views = 0;
		tell_of_failure(thread);
	}
	return error;
}

/* ldd(1) asks the loaders of all architectures by --verify whether a file is theirs: nothing of the
 * program runs that anybody could miss. */
static bool only_asks(uint64_t argv)
{
	uint64_t argument;
	char text[sizeof("--verify")];

	return !copy_in(&argument, argv + 8, sizeof(argument)) && argument &&
	       copy_string_in(text, argument, sizeof(text)) >= 0 && !strcmp(text, "--verify");
}

/* The kernel decides, and what it executes is out of our hands. */
static int64_t go_native(struct thread *thread, const struct exec *exec, uint64_t argv,
			 uint64_t envp)
{
	int64_t error;

	if (exec->native[0] && !only_asks(argv))
		say("%s is %s: it runs natively", exec->filename, exec->native);
	descriptors_keep(false);
	error = make(thread, false, __NR_execveat, (uint64_t)exec->dirfd, (uint64_t)exec->path,
		     argv, envp, exec->flags);
	if (error == -ENOSYS && exec->dirfd == AT_FDCWD && !exec->flags)
		error = make(thread, false, __NR_execve, (uint64_t)exec->path, argv, envp, 0, 0);
	descriptors_keep(true);
	return error;
}

int64_t exec_go(struct thread *thread, struct exec *exec, uint64_t argv, uint64_t envp)
{
	int64_t error;
	int program;

	if (exec->native) {
		error = go_native(thread, exec, argv, envp);
		if (exec->program >= 0)
			sys(__NR_close, exec->program);
		return error;
	}
	program = descriptors_raise(exec->program, false);
	if (program < 0) {
		sys(__NR_close, exec->program);
		return program;
	}
	/* It takes a while: the program is out of the way of other threads, and nothing is on its
	 * way to the next image yet. */
	if (thread)
		code_store_leave(thread);
	error = become(thread, exec, program, argv, envp);
	sys(__NR_close, program);
	if (error != -EACCES)
		return error;
	/* The program may be executed, says the kernel, and tally-rt not: as under Landlock. */
	exec->native = "allowed where tally-rt is not";
	return go_native(thread, exec, argv, envp);
}

static int64_t execute(struct thread *thread, int64_t dirfd, uint64_t path, uint64_t argv,
		       uint64_t envp, uint64_t flags)
{
	struct exec exec = {.dirfd = dirfd, .flags = flags};
	int64_t error = copy_string_in(exec.path, path, PATH_MAX);

	if (error >= 0)
		error = files_hidden(dirfd, exec.path) ? -ENOENT : exec_find(&exec);
	return error < 0 ? error : exec_go(thread, &exec, argv, envp);
}

int64_t sys_execve(struct thread *thread, struct syscall *call)
{
	return execute(thread, AT_FDCWD, call->args[0], call->args[1], call->args[2], 0);
}

int64_t sys_execveat(struct thread *thread, struct syscall *call)
{
	return execute(thread, (int)call->args[0], call->args[1], call->args[2], call->args[3],
		       (uint32_t)call->args[4]);
}
