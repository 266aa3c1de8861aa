/* SPDX-License-Identifier: MIT */
/*
 * Random programs and what they work on. A program is made of its seed alone: functions of blocks,
 * with branches of all kinds among them, that end when their fuel is used up at the latest.
 */
#ifndef RUNTIME_TRANSLATE_TEST_PROGRAM_H
#define RUNTIME_TRANSLATE_TEST_PROGRAM_H

#include "runtime/translate/test_host.h"

#include <stdint.h>

enum { CODE_SIZE = 64 << 10, DATA_SIZE = 4096, STACK_SIZE = 16 << 10 };

/*
 * What r15 points at. The program ends through finish, with rsp as it was saved, when its fuel is
 * used up or its first function returns.
 */
struct data {
	uint64_t finish;
	uint64_t fuel;
	uint64_t stack;
	uint64_t zero;
	uint64_t functions[8];
	uint64_t blocks[32];
	uint8_t vectors[16 * 32];
	_Alignas(16) uint8_t saved[512]; /* by fxsave */
	uint8_t scratch[DATA_SIZE];
};

/* Where the program of now lies. */
extern struct surroundings {
	uint8_t code[CODE_SIZE];
	struct data data, before;
	uint8_t stack[STACK_SIZE];
} * world;

/*
 * Where programs lie from now on: mapped with @flags, the code with @protection. What is emitted
 * depends on it.
 */
void program_place(int flags, int protection);

/* Puts the program of that seed into the world; the translator forgets the last one. */
void program_new(uint64_t program);

/* The state that it starts from, each time the same; it ends at @finish. */
void program_start(struct regs *regs, const char *finish, uint64_t flags);

#endif
