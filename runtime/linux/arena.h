/* SPDX-License-Identifier: MIT */
/*
 * The memory that all processes of a run share: a page for the struct thread of each thread of the
 * tree, wherever it runs. A process keeps its pages until it ends.
 *
 * A page belongs to the process that holds a record lock (fcntl F_SETLK) on it, so the kernel gives
 * back what a process had, however it ended and in whichever name space.
 */
#ifndef RUNTIME_LINUX_ARENA_H
#define RUNTIME_LINUX_ARENA_H

#include <stdbool.h>

struct thread;

/* At boot. Without an arena, or with one that cannot be mapped, arena_take() always gives NULL. */
void arena_boot(void);

/* In a child of fork: the pages are the parent's. */
void arena_forked(void);

/* A zeroed page for this process, or NULL when all are taken. */
struct thread *arena_take(void);

#endif
