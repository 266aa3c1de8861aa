/* SPDX-License-Identifier: MIT */
/*
 * The stack that the kernel made for tally-rt, and that becomes the program's:
 *
 *	rsp -> argc | argv ... 0 | envp ... TALLY_RUN 0 | auxv ... AT_NULL | ... strings
 *
 * Only what names tally-rt has to be changed: its entry, its headers, the last string of the
 * environment.
 */
#ifndef RUNTIME_BOOT_STACK_H
#define RUNTIME_BOOT_STACK_H

#include <stddef.h>
#include <stdint.h>

/* The last of the strings is AT_EXECFN, and behind it are so many bytes of nothing. */
enum { STACK_BEHIND_NAME = 8 };

struct auxv {
	uint64_t type, value;
};

struct stack {
	uint64_t *top; /* rsp, at argc */
	uint64_t argc;
	char **argv, **envp;
	size_t envc;
	struct auxv *auxv;
	size_t nr_auxv;	      /* with AT_NULL */
	const char *handover; /* what follows TALLY_RUN=; NULL if there is none */
};

/* Changes nothing: what stack_read() will take, and AT_EXECFN; NULL and 0 if they are not there. */
struct stack_glance {
	const char *handover;
	uint64_t name;
};
struct stack_glance stack_glance(const uint64_t *top);

/* Finds the parts, and takes the handover out of the environment. */
void stack_read(struct stack *stack, uint64_t *top);

/* The value of type @type; 0 if there is none. */
uint64_t stack_auxv(const struct stack *stack, uint64_t type);
/* Changes it where it is there. */
void stack_set_auxv(struct stack *stack, uint64_t type, uint64_t value);

#endif
