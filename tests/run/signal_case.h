/* SPDX-License-Identifier: MIT */
/* What the programs of cases about signals have in common. */
#ifndef TESTS_RUN_SIGNAL_CASE_H
#define TESTS_RUN_SIGNAL_CASE_H

#include <signal.h>
#include <stdint.h>

/* As rt_sigaction(2) takes it. */
struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

/* To this very thread. */
void send_self(int number);

void say_mask(const char *what, const sigset_t *mask);
void say_my_mask(const char *what);

/* 0 stands for none. */
sigset_t set_of(int first, int second);

/* A handler: says what it is told. */
void say_info(int number, siginfo_t *info, void *context);

#endif
