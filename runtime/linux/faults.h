/* SPDX-License-Identifier: MIT */
/*
 * Where page faults were. getrusage(2) counts them and does not say; an event of the kernel's of
 * the thread itself does, where the kernel gives one. It is open while somebody samples page
 * faults, and a while longer.
 */
#ifndef RUNTIME_LINUX_FAULTS_H
#define RUNTIME_LINUX_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/signal.h>

#include "core/kinds.h"

struct core_cause;
struct rusage;
struct task;
struct thread;

/* The caller's: opens and closes events as thread->events.sampled says. */
void faults_follow(struct thread *thread);

/* Takes in what the kernel has told. Wants the translator unlocked. */
void faults_drain(struct thread *thread);

/* Whether a KICK_SIGNAL to the caller tells of one. */
bool faults_tell(const struct task *task, const siginfo_t *info);

/* Before an exec what the caller had is counted; faults from then on, until the program begins,
 * were not its own. */
void faults_executing(struct thread *thread);
void faults_not_executed(struct thread *thread);
void faults_boot(struct thread *thread);

/* Around what brings pages in that getrusage(2) counts as faults, and no event tells of: the latter
 * wants what the former has returned. */
uint64_t faults_before_populating(void);
void faults_populated(uint64_t before);

/* Replaces what @usage, the caller's, says of faults by what it was when it was last known which of
 * them were the runtime's own, if it is known. */
void faults_known(const struct task *task, struct rusage *usage);

/* There have been @value of @kind by now. */
void faults_counted(struct task *task, enum core_kind kind, uint64_t value);

/* The @number-th of @kind, if that is known. */
bool faults_find(const struct task *task, enum core_kind kind, uint64_t number,
		 struct core_cause *cause);

/* The thread ends, or will execute another image; or it is the child of fork(2), which has none
 * of the kernel's mappings. */
void faults_end(struct task *task);
void faults_forked(struct task *task);

#endif
