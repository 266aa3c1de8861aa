// SPDX-License-Identifier: MIT
#include "runtime/linux/seccomp.h"

#include <asm/errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "runtime/linux/confined.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/seccomp_filter.h"
#include "runtime/linux/task.h"
#include "runtime/linux/threads.h"
#include "runtime/string.h"
#include "runtime/sys.h"

extern const char syscall_pass_made[];
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

enum { PREFIX = 8 };

/* A filter of the program's, as it is kept: what the kernel has got begins with the prefix. */
struct installed {
	struct seccomp_filter filter;
	size_t size;
	struct sock_filter instructions[];
};

#define WORD(offset)	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define IF(test, k, jt, jf) BPF_JUMP(BPF_JMP | (test) | BPF_K, (k), (jt), (jf))
#define INSTRUCTION_POINTER offsetof(struct seccomp_data, instruction_pointer)
#define ALLOW		    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/*
 * What comes from the runtime's text is allowed, but for the program's own. Should the text lie
 * across a multiple of 4 GiB, only what comes from the lower side is.
 */
static void make_prefix(struct sock_filter *to)
{
	const uint64_t start = (uint64_t)__ehdr_start, end = (uint64_t)_end - 1;
	const uint32_t last = start >> 32 == end >> 32 ? (uint32_t)end : UINT32_MAX;
	const struct sock_filter prefix[PREFIX] = {
		WORD(INSTRUCTION_POINTER + 4),
		IF(BPF_JEQ, start >> 32, 0, 5),
		WORD(INSTRUCTION_POINTER),
		IF(BPF_JGE, (uint32_t)start, 0, 3),
		IF(BPF_JGT, last, 2, 0),
		IF(BPF_JEQ, (uint32_t)(uint64_t)syscall_pass_made, 1, 0),
		ALLOW,
		/* As a filter begins. */
		BPF_STMT(BPF_LD | BPF_IMM, 0),
	};

	memcpy(to, prefix, sizeof(prefix));
}

static struct installed *installed_new(const struct sock_fprog *program)
{
	const size_t bytes = program->len * sizeof(struct sock_filter);
	const size_t size = sizeof(struct installed) + PREFIX * sizeof(struct sock_filter) + bytes;
	struct installed *made;

	if (!program->len || program->len > BPF_MAXINSNS - PREFIX)
		return NULL;
	made = memory_allocate(size, 0);
	if (!made)
		return NULL;
	made->size = size;
	make_prefix(made->instructions);
	made->filter.instructions = made->instructions + PREFIX;
	if (!copy_in(made->instructions + PREFIX, (uint64_t)program->filter, bytes))
		return made;
	memory_free(made, size);
	return NULL;
}

static void put_under(struct task *task, const struct seccomp_filter *filter)
{
	__atomic_store_n(&task->seccomp, filter, __ATOMIC_RELEASE);
}

/* Not a vfork child that is in this memory, too. */
static void join(struct task *task, void *first)
{
	const struct task *self = first;

	if (task->pid == self->pid)
		put_under(task, self->seccomp);
}

/* A filter that cannot be kept gets to the kernel as it is, which also finds what is wrong with
 * it. */
static int64_t filter(struct thread *thread, struct syscall *call, uint64_t flags)
{
	const bool gives_listener = flags & SECCOMP_FILTER_FLAG_NEW_LISTENER;
	struct task *task = thread->task;
	struct syscall changed = *call;
	struct sock_fprog program;
	struct installed *made = NULL;
	int64_t result;

	if (!copy_in(&program, call->args[2], sizeof(program)))
		made = installed_new(&program);
	if (!made) {
		confined_now();
		return syscall_pass(thread, call);
	}
	program.len += PREFIX;
	program.filter = made->instructions;
	changed.args[2] = (uint64_t)&program;
	result = syscall_pass(thread, &changed);
	/* Above 0 and no descriptor it is a thread that has other filters. */
	if (result < 0 || (result && !gives_listener)) {
		memory_free(made, made->size);
		return result;
	}
	made->filter.earlier = task->seccomp;
	put_under(task, &made->filter);
	if (flags & SECCOMP_FILTER_FLAG_TSYNC)
		threads_visit(join, task);
	return result;
}

static const struct sock_filter strict_instructions[] = {
	WORD(offsetof(struct seccomp_data, nr)),
	IF(BPF_JEQ, __NR_read, 4, 0),
	IF(BPF_JEQ, __NR_write, 3, 0),
	IF(BPF_JEQ, __NR_exit, 2, 0),
	IF(BPF_JEQ, __NR_rt_sigreturn, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
	ALLOW,
};
static const struct seccomp_filter strict = {.instructions = strict_instructions};

/* The kernel's own strict mode would be the end at the runtime's next call: seccomp_refused(). */
static int64_t be_strict(struct thread *thread, struct syscall *call)
{
	if (sys(__NR_prctl, PR_GET_SECCOMP) != SECCOMP_MODE_DISABLED)
		return syscall_pass(thread, call);
	put_under(thread->task, &strict);
	return 0;
}

int64_t seccomp_prctl(struct thread *thread, struct syscall *call)
{
	switch (call->args[1]) {
	case SECCOMP_MODE_STRICT:
		return be_strict(thread, call);
	case SECCOMP_MODE_FILTER:
		return filter(thread, call, 0);
	default:
		return syscall_pass(thread, call);
	}
}

int64_t sys_seccomp(struct thread *thread, struct syscall *call)
{
	const uint32_t operation = (uint32_t)call->args[0], flags = (uint32_t)call->args[1];

	if (operation == SECCOMP_SET_MODE_STRICT && !flags && !call->args[2])
		return be_strict(thread, call);
	if (operation == SECCOMP_SET_MODE_FILTER)
		return filter(thread, call, flags);
	return syscall_pass(thread, call);
}

bool seccomp_refuses(const struct task *task, const struct syscall *call)
{
	struct seccomp_data data = {
		.nr = (int)call->number,
		.arch = AUDIT_ARCH_X86_64,
		.instruction_pointer = (uint64_t)syscall_pass_made,
	};

	memcpy(data.args, call->args, sizeof(data.args));
	for (const struct seccomp_filter *f = task->seccomp; f; f = f->earlier) {
		const uint32_t said = seccomp_filter_run(f->instructions, &data);

		/* As the kernel orders them: SECCOMP_RET_KILL_PROCESS is below 0. */
		if ((int32_t)(said & SECCOMP_RET_ACTION_FULL) < (int32_t)SECCOMP_RET_USER_NOTIF)
			return true;
	}
	return false;
}

int64_t seccomp_refused(struct thread *thread, const struct syscall *call)
{
	const uint64_t *args = call->args;

	if (thread->task->seccomp != &strict)
		return syscall_pass(thread, call);
	/* From there on whoever reads the time stamp counter gets a SIGSEGV, and syscall_pass()
	 * does. */
	sys(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	return sys(call->number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
