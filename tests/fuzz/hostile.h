/* SPDX-License-Identifier: MIT */
/*
 * Programs that do with events whatever comes to their mind, beside one that only counts:
 *
 *	hostile.c		starts them, ends some of them, and watches that they go on
 *	hostile_calls.c		the calls: choices, processes and threads
 *	hostile_events.c	on events
 *	hostile_descriptors.c	on their descriptors, among others
 *	hostile_bystander.c	the one that counts, and knows what has to come out
 */
#ifndef TESTS_FUZZ_HOSTILE_H
#define TESTS_FUZZ_HOSTILE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CALLERS = 3 };

/* What all processes see: memory that they share. */
struct shared {
	struct {
		pid_t pid;
		uint64_t calls;	      /* that it has made */
		uint64_t last, where; /* the last one: for whoever looks why nothing moves */
	} callers[CALLERS];
	pid_t bystander;
	uint64_t rounds; /* of the bystander */
	bool enough;
	bool counts; /* the bystander has hardware events */
	char wrong[256];
};

extern struct shared *shared;

/* Random calls for ever, as the caller of that number. */
_Noreturn void caller(unsigned int number, uint64_t seed);
/* What is left to do for a caller that has executed itself: hostile again NUMBER SEED DEPTH. */
_Noreturn void caller_again(unsigned int number, uint64_t seed, unsigned int deep);
/* The descriptor by which shared memory and sockets survive that. */
enum { SHARED_FD = 900, SOCKET_FDS = 901 };

/* Until shared->enough; says what is wrong in shared->wrong. */
_Noreturn void bystander(void);

#endif
