/* SPDX-License-Identifier: MIT */
/*
 * Programs of test_program.h as the processor runs them: what the translator is held against.
 */
#ifndef RUNTIME_TRANSLATE_TEST_NATIVE_H
#define RUNTIME_TRANSLATE_TEST_NATIVE_H

#include "runtime/translate/test_host.h"

#include <stdbool.h>
#include <stdint.h>

#include "runtime/translate/count.h"

#define TRAP_FLAG 0x100

/* The counterpart of host_run(): the program ends at native_finish. */
void native_run(struct regs *regs);
extern const char native_finish[];

struct sums {
	int64_t of[COUNT_KINDS];
};

/* Of a state: xmm0 and on. */
struct vectors {
	uint8_t xmm[16][16];
};

/* The states that a program went through, one before each instruction. */
extern struct trace {
	struct regs *states;
	struct vectors *vectors;
	struct sums *sums;   /* of all before each state; one more, of all */
	uint8_t *live_flags; /* enum insn_flag: which the program asks for before it sets them */
	unsigned int n;
} trace;

/* Runs the program step by step. */
void native_trace(void);

/* @handler gets the steps of what runs with TRAP_FLAG. */
void on_step(void (*handler)(int, siginfo_t *, void *));

uint8_t (*frame_vectors(const ucontext_t *context))[16];

bool same_state(const struct regs *a, const struct regs *b);

void show_state(const char *what, const struct regs *regs);

/* Says how, and returns false. */
bool differ(uint64_t program, const char *what, const struct regs *native,
	    const struct regs *translated);

#endif
