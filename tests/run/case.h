/* SPDX-License-Identifier: MIT */
/*
 * A program of cases: each prints what it observes, and what it prints does not depend on time,
 * addresses or process ids. run_test.py runs each case natively and under `tally run`: whoever
 * wrote the case need not say what is right, since the kernel does.
 *
 *	PROGRAM			one case name a line
 *	PROGRAM CASE [ARG...]	runs that case, or a part that a case executes itself for
 *
 * Text goes out with write(2) at once, so that handlers and children of vfork may say something.
 */
#ifndef TESTS_RUN_CASE_H
#define TESTS_RUN_CASE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct test_case {
	const char *name;
	void (*run)(void);
};

/* The program's cases, ended by one without a name. A name that begins with '_' is not listed. */
extern const struct test_case cases[];
extern int case_argc;
extern char **case_argv;

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the process with status 99 and the reason when a step that the case needs has failed. */
void need_true(bool holds, const char *what, const char *file, int line);
#define need(expression) need_true(expression, #expression, __FILE__, __LINE__)

/* The symbolic name of an errno value, 0 as "0". */
const char *errno_name(int number);
/* "0" or a positive result as a number, -1 as the name of errno. */
const char *result_name(long result);

/* Waits for a child and says how it ended: "exit 3", "signal 11 core", ... */
void say_end(const char *what, pid_t pid);
void say_status(const char *what, int status);

/* Installs a handler with SA_SIGINFO and the flags given, an empty mask. */
void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags);

/* Children of most cases die of signals: no core files. */
void no_core(void);

/* A system call as the kernel answers it: no errno, no cancellation point, no wrapper. */
long raw(long number, ...);

#endif
