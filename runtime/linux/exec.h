/* SPDX-License-Identifier: MIT */
/*
 * Executing a program. What execve(2) is asked for is looked at first, as far as the kernel would
 * look: through the chain of #! scripts to a file with code. Then tally-rt is executed in its
 * place, with the arguments that the kernel would have given it, and loads that file (boot/). What
 * cannot be translated is executed as it is.
 */
#ifndef RUNTIME_LINUX_EXEC_H
#define RUNTIME_LINUX_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/files.h"

/* Of linux/binfmts.h; a longer first line of a script is cut off there. */
#define SCRIPT_LINE 256
#define SCRIPTS_MAX 5

struct exec {
	/* What is asked for. */
	int64_t dirfd;
	char path[PATH_MAX + 16];
	uint64_t flags; /* of execveat */

	/* What is found. */
	int program;	    /* descriptor of the file with the code, closed on exec */
	const char *native; /* why it is not to be translated; "" needs no mention; or NULL */
	char filename[PATH_MAX + 32]; /* for AT_EXECFN */
	/* What takes the place of argv[0], when there are scripts. */
	const char *words[2 * (SCRIPTS_MAX + 1) + 1];
	unsigned int nr_words;
	char lines[SCRIPTS_MAX + 1][SCRIPT_LINE + 1];
};

/*
 * Fills in what is found. 0, or the negative errno value that execve(2) would give; then there is
 * nothing to release.
 */
int64_t exec_find(struct exec *exec);

/*
 * Executes what was found, with the program's @argv and @envp (addresses that it gave; any may be
 * bad). Returns a negative errno value or SYSCALL_NOT_MADE, with all released. @thread is NULL at
 * the start of a run.
 */
struct thread;
int64_t exec_go(struct thread *thread, struct exec *exec, uint64_t argv, uint64_t envp);

/* Releases what a successful exec of a vfork child left in memory that it shares with its parent.
 */
struct task;
void exec_release(struct task *task);

#endif
