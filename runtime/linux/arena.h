/* SPDX-License-Identifier: MIT */
/*
 * The memory that all processes of a run share: a page for the struct thread of each thread of the
 * tree, wherever it runs, and the events (core/). A process keeps its pages until it ends.
 *
 * A page belongs to the process that holds a record lock (fcntl F_SETLK) on some of it, so the
 * kernel gives back what a process had, however it ended and in whichever name space. Locks belong
 * to a table of descriptors; who may have another table than its parent had takes a piece of the
 * page for itself. Who takes a page that is nobody's locks the whole of it first, and counts its
 * incarnation on: so whoever comes too late finds that the page is not what it was.
 *
 * One page can go from one process to another, with the events that are attached to its task: from
 * a parent to its child, as a child inherits events before it runs, and from a vfork child to the
 * image that it executes. Such a page is `handed_over` until the new owner has locked a piece.
 */
#ifndef RUNTIME_LINUX_ARENA_H
#define RUNTIME_LINUX_ARENA_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* At boot; @owner is what exec has handed over. Without an arena, or with one that cannot be
 * mapped, arena_take() always gives NULL. */
void arena_boot(uint32_t owner);

/* In a child of fork: the pages are the parent's, that of each of its threads. With
 * @shares_table their locks are the child's as well: it has the page that it was given, and
 * takes no other. */
void arena_forked(bool shares_table);
void arena_forget(const struct thread *thread);

/*
 * Threads alone are mapped at boot; this maps the events, too, once, if they are not. Then all of
 * core/ can be called. False: there is no arena, or no address space for it.
 */
bool arena_events(void);

/* Whether address space is kept for that (abi/limits.h). */
bool arena_reserves(void);

/*
 * A page for this process, or NULL when all are taken; zeroed but for its number. The caller sees
 * to it that one thread calls it at a time.
 */
struct thread *arena_take(void);

/* All before @thread's events is zeros, but for the number of its page (0: it is in none) and what
 * others know that page by. */
void arena_adopt(struct thread *thread, uint32_t page);

/*
 * The thread on its page, for who looks whether it is still there (abi/arena.h). Without a page it
 * is given a number for that, unless it has one; 0: there is no arena.
 */
uint32_t arena_owner(struct thread *thread);
bool arena_owner_alive(uint32_t owner);

/* Who had the page or the number until now, in this process, is gone: what it held is nobody's. */
void arena_renew(struct thread *thread);
/* The thread has no lock and ends. */
void arena_give_number(struct thread *thread);

/*
 * The caller's table of descriptors keeps the page of @thread, which is @owner's. False: it has
 * been lost meanwhile. True without a page.
 */
bool arena_hold(struct thread *thread, uint32_t owner);

/* The page that was handed over to this process: its events are as they were. NULL: it is lost. */
struct thread *arena_take_over(uint32_t owner);

/* @thread, whose events stay as they are, goes on in another image; to be handed over to that, 0:
 * nothing. */
uint32_t arena_hand_over(struct thread *thread);

/* The monitor knows which process is to take the page of @thread, and sees to it if none does. */
void arena_expect(struct thread *thread);

/* Another process has the page now, or will have it soon. */
void arena_give(struct thread *thread);
/* The same, but the locks of this one are that one's as well: none takes it before its task has
 * ended. */
void arena_lend(const struct thread *thread);

/*
 * The page of a thread that was @owner and is no more, which a slot still has. Whether it is still
 * that: under another table of descriptors it may have been lost, and be anybody's. And that it is
 * of no use any more.
 */
bool arena_is_still(uint32_t owner);
void arena_leave(uint32_t owner);

/* The highest page that there has been. */
uint32_t arena_used(void);

/* What the processes and the monitor keep there (abi/arena.h); NULL without an arena. */
struct arena_header;
struct arena_header *arena_header(void);

/* The process that has the page, as the caller sees it; 0: none, it is itself one of its own, or
 * of another name space above. */
int32_t arena_process(uint32_t page);

/* Whether the thread with that page is still there, or about to come. */
bool arena_alive(uint32_t page);

#endif
