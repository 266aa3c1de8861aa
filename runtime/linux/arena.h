/* SPDX-License-Identifier: MIT */
/*
 * The memory that all processes of a run share: a page for the struct thread of each thread of the
 * tree, wherever it runs, and the events (core/). A process keeps its pages until it ends.
 *
 * A page belongs to the process that holds a record lock (fcntl F_SETLK) on it, so the kernel gives
 * back what a process had, however it ended and in whichever name space. One page can go from one
 * process to another, with the events that are attached to its task: from a parent to its child, as
 * a child inherits events before it runs, and from a vfork child to the image that it executes,
 * whose locks are its own. Such a page is `handed_over` until the new owner has locked it.
 *
 * Locks belong to a table of descriptors. A thread whose table is another than that under which its
 * page was taken locks a part of the page that the owner leaves free: so the page stays its own
 * when the owner ends first, as the parent of a vfork child may.
 */
#ifndef RUNTIME_LINUX_ARENA_H
#define RUNTIME_LINUX_ARENA_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* At boot; @page is what exec has handed over. Without an arena, or with one that cannot be mapped,
 * arena_take() always gives NULL. */
void arena_boot(uint32_t page);

/* In a child of fork: the pages are the parent's. */
void arena_forked(void);

/*
 * Threads alone are mapped at boot; this maps the events, too, once, if they are not. Then all of
 * core/ can be called. False: there is no arena, or no address space for it.
 */
bool arena_events(void);

/*
 * A page for this process, or NULL when all are taken; zeroed but for its number. The caller sees
 * to it that one thread calls it at a time.
 */
struct thread *arena_take(void);

/* The page that was handed over to this process: its events are as they were. NULL: it is lost. */
struct thread *arena_take_over(uint32_t page);

/* The calling thread's table of descriptors is not that of who took the page of @thread, its own. */
void arena_keep(struct thread *thread);

/* The page of @thread, about to execute another image, which it is to take over; 0: none. */
uint32_t arena_hand_over(struct thread *thread);

/* Another process has the page now, or will have it soon. */
void arena_give(struct thread *thread);

/* The highest page that there has been. */
uint32_t arena_used(void);

/* What the processes and the monitor keep there (abi/arena.h); NULL without an arena. */
struct arena_header;
struct arena_header *arena_header(void);

/* Whether the thread with that page is still there, or about to come. */
bool arena_alive(uint32_t page);

#endif
