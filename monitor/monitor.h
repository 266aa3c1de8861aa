/* SPDX-License-Identifier: MIT */
/*
 * The parent of one `tally run`: starts the command under tally-rt, looks after the events of the
 * tree, and stays until the command has ended.
 *
 *	monitor.c	starts, waits, passes signals on
 *	command.c	finds the command as execvp(3) would
 *	arena.c		the memory that the tree shares, and the settings in it
 *	clock.c		how fast the time stamp counter runs
 *	machine.c	the processor below, for who wants it modelled
 *	vendor.c	whose codes raw events are in
 *	events.c	what the tree says on its socket: descriptors, wakeups
 *	watches.c	ends of processes
 *	unreaped.c	what processes had used that have ended and that nobody has waited for
 *	halted.c	processes that are stopped and hold others up
 *	host.c		what the event core asks of the monitor (core/host.h)
 */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tally/error.h>

#include "abi/machine.h"

struct monitor_options {
	int paranoid;		/* perf_event_paranoid, as it is shown and as it is obeyed */
	int max_sample_rate;	/* perf_event_max_sample_rate, likewise */
	int counters;		/* of the virtual PMU; 0: no limit */
	bool host;		/* let the kernel count what it can */
	bool shares_code;	/* let processes leave translations to others: abi/store.h */
	bool fixed;		/* addresses are the same each time: abi/handover.h */
	struct machine machine; /* that the model computes; zeros: the reference one */
};

/*
 * Runs @argv under the tally-rt at @runtime, and waits. To whoever looks from outside, the caller
 * is the command: it stops and continues with it, and what other processes send to the caller goes
 * to the command. Signals of the terminal reach both, and end the command alone.
 *
 * Returns 0 with a status of wait(2) in @status, or a negative errno value: -ENOENT when there is
 * no such command, -EACCES when it may not be executed.
 */
int monitor_run(const char *runtime, const struct monitor_options *options, char *const argv[],
		int *status, struct tally_error *err);

/* The model's machine is the processor below. @rounded: in what it differs; empty if in nothing. */
void monitor_model_host(struct monitor_options *options, char *rounded, size_t size);

/* Where execvp(3) would find @name. 0 or a negative errno value. */
int monitor_find_command(const char *name, char path[PATH_MAX]);

/* ---- between the files of monitor/ ---- */

/*
 * Makes the arena and returns its descriptor, or -1: then there are no events, and nothing else is
 * missing. Mapped in this process.
 */
int arena_make(const struct monitor_options *options);
/* Says that somebody is there who looks after it, as long as no descriptor of it is closed: to be
 * called with the last that there will be. */
void arena_keep(int fd);
/* The highest page of a thread that there has been. */
uint32_t arena_used(void);
/* The record lock that says who has a page: whether anybody does. */
bool arena_locked(uint32_t page);
bool arena_owner_there(uint32_t owner);
/* Who has a number instead of a page (ARENA_NUMBER); 0: nobody. None from arena_numbers() on was
 * ever given. */
uint32_t arena_number(uint32_t number);
uint32_t arena_numbers(void);
/* Which process that is, in our name space, and the number of its thread for locks; 0: none. */
pid_t arena_process(uint32_t page);
pid_t arena_process_of_number(uint32_t number);
uint32_t arena_owner_of(uint32_t page);
/* Somebody has the page, or may yet come for it. */
bool arena_held(uint32_t page);
/* The page is on its way, and who gives it away is gone: nobody will come. */
bool arena_abandoned(uint32_t page);
/* Who has that number is gone, whoever has the lock on its page: what it held is nobody's. */
void arena_forsake(uint32_t owner);
/* The same of @who has that number. */
void arena_forsake_number(uint32_t number, uint32_t who);
/* The process that was to take the page over is gone. */
void arena_free(uint32_t page);
void arena_discard(uint64_t offset, uint64_t size);
/* The ticket of a CONTROL_SETTLE has been served, and so have those before. */
void arena_answer(uint32_t ticket);

/* One more of CONTROL_WAKE has been done. */
void arena_woken(void);

/* @pid is the command. */
void arena_set_command(pid_t pid);
/* Without one programs have no events. */
bool arena_is_there(void);
/* RLIMIT_AS has been raised by all that a process with events needs. */
void arena_set_reserves(void);
/* Whether a handler of the command's has just begun for @signal of @sender. */
bool arena_command_handles(int signal, pid_t sender);
/* What a thread's page says at ARENA_INSIDE. */
bool arena_inside(uint32_t page);

/* Lets who has that number, or each thread of that process, get rid of its locks if it is stopped.
 */
void halted_help(uint32_t owner);
void halted_help_all(pid_t pid);
/* The same of everybody who has a lock. */
void halted_help_any(void);
/* Some child, or somebody who was helped, has stopped or ended. */
void halted_look(void);
/* Whether it is one of those: with that status it has been let go. */
bool halted_let_go(pid_t tid, int status);

/* Whether the monitor is in the name space that the numbers of @task are in. */
struct core_task;
bool host_agrees(const struct core_task *task);

/*
 * From unreaped_begin() to unreaped_end() the tasks of @process are ended, which @pidfd is of; -1:
 * its number is @number. unreaped_used() brings software counters up to date as
 * core_host_software().
 */
void unreaped_begin(int pidfd, pid_t number, uint64_t process);
void unreaped_used(struct core_task *task, uint64_t kinds);
void unreaped_end(void);

/* Puts into the settings how fast the time stamp counter runs, unless they say it. It takes 2 ms,
 * or 10 where the kernel has had no event for a while. */
void clock_settle(void);

/*
 * The tree's socket: events_open() makes it and returns the sending end, or -1. From then on @epoll
 * tells of all that there is to do, with numbers of its own in data.u64, and events_ready() does
 * what one such number is about.
 */
int events_open(int epoll);
void events_ready(uint64_t what);
/* Sees to what has happened until now but for what processes ask, as that some have ended. */
void events_settle(void);
void events_wake(uint32_t event, uint32_t generation);
bool events_is(uint32_t event, uint32_t generation); /* it is there, and still that one */
void events_crowded(void);			     /* groups are to take turns from now on */
/* Nothing of the tree is to be served any more. */
void events_close(void);

#endif
