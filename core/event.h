/* SPDX-License-Identifier: MIT */
/*
 * An event: what one descriptor of perf_event_open(2) stands for, or a copy of it that a task has
 * inherited. Events lie in the arena, in an array of which each process sees the whole; they name
 * each other by index, never by pointer. Index 0 is no event.
 *
 *	task --events--> event --next--> event ...	everything attached to a task
 *	leader <--leader-- member			a group, in the order of opening
 *	event <--parent-- inherited copies		their counts are the opened event's
 *
 * An event for every task (pid -1) is attached to page 0, which is no thread's, and copied to each
 * task of the tree like an inherited one; events for one processor (cpu N) are active while their
 * task runs there.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/kinds.h"

/* The newest struct perf_event_attr that we know: 6.18's. */
#define CORE_ATTR_SIZE 136

/* attr.aux_action lies there; what it may have. */
#define CORE_AT_AUX_ACTION 116
enum { CORE_AUX_START_PAUSED = 1, CORE_AUX_PAUSE = 2, CORE_AUX_RESUME = 4 };

enum core_state {
	CORE_FREE,     /* nobody's */
	CORE_OFF,      /* disabled */
	CORE_INACTIVE, /* enabled, but its task or its group does not run now */
	CORE_ACTIVE,   /* counts */
	CORE_ERROR,    /* pinned without room, or beyond its code: reads give 0 bytes */
	CORE_EXITED,   /* its task has ended: the count stays */
};

/* As stat(2) tells files from each other. */
struct core_file {
	uint64_t device, inode;
};

static inline bool core_is_same_file(const struct core_file *a, const struct core_file *b)
{
	return a->inode == b->inode && a->device == b->device;
}

/* The counters and times that a read gives, of one event. */
struct core_count {
	uint64_t value;
	uint64_t enabled, running; /* ns */
};

/* Who is told of overflows by a signal: fcntl(2). */
struct core_owner {
	int32_t type, pid;   /* F_OWNER_*; pid 0: nobody */
	int32_t signo;	     /* F_SETSIG; 0 is SIGIO */
	int32_t fd;	     /* what si_fd says */
	bool async;	     /* O_ASYNC */
	uint64_t name_space; /* of whose numbers that is one, as core_task's; 0: not known */
};

/* Of a size that numbers are easily multiplied by. */
struct core_event {
	_Alignas(128) uint8_t state; /* enum core_state */
	uint8_t kind;		     /* enum core_kind */
	bool everybody;		     /* opened for every task, or a copy of such an event */
	bool hardware;		     /* takes a counter of the virtual PMU */
	bool elsewhere;	     /* of leaders: nothing of the cgroup runs here, so no time passes */
	bool closed;	     /* the last descriptor is gone: it goes on until it is unmapped */
	bool started;	     /* of what was opened: PERF_RECORD_ITRACE_START has been told */
	bool paused;	     /* attr.aux_pause: what it traces is not kept */
	bool is_kept;	     /* the kernel counts it: core_host_kept() */
	bool kept_on;	     /* the kernel's event has been switched on, */
	bool kept_on_exec;   /* or is by itself when the task executes */
	bool keeps;	     /* is_kept, or leads one that is */
	bool missed;	     /* of what was opened: it, or a copy, was beyond its code */
	uint32_t generation; /* of the slot: an old number is told from a new event */
	uint64_t id;
	union {
		struct perf_event_attr attr;
		unsigned char attr_bytes[CORE_ATTR_SIZE];
	};

	/* who */
	uint32_t task;	  /* page; 0: the whole tree, or it has ended */
	uint64_t target;  /* the task's id, for good; 0: the whole tree */
	int32_t cpu;	  /* -1: any */
	uint64_t cgroup;  /* only tasks in it; 0: all */
	uint32_t creator; /* page of who opened it; 0: has ended */
	uint32_t next;	  /* of the task's events */
	uint32_t next_created;
	uint32_t leader, next_member, members; /* members: without the leader; in leaders only */
	uint32_t regrouped;		       /* in leaders: how often somebody came or went */
	uint32_t parent, children; /* copies, however far down, are those of what was opened */
	uint32_t next_child, previous_child;
	uint32_t mark; /* core/repair.c */
	/* Of what was opened: of whose process numbers its records are, as core_task's. */
	uint64_t name_space;

	/* what */
	struct core_count count; /* while it counts, as of `start` and `stamp` */
	struct core_count ended; /* of copies whose tasks have ended */
	uint64_t kept;	/* is_kept: what the kernel's event had counted when it was looked at */
	uint64_t start; /* the task's counter when it began to count */
	uint64_t stamp; /* its clock when the times were last brought up to date */
	uint64_t told_enabled, told_running; /* the times that its page had last, or who read it */

	/* when to sample */
	uint64_t period; /* now; 0: it does not sample */
	union {
		int64_t left; /* until the next overflow, while it does not count */
		uint64_t due; /* what the task's counter says then, while it does: ACTIVE */
	};
	uint64_t last_time;   /* attr.freq: of the last overflow, ns */
	uint64_t last_period; /* what a sample says of the time up to it */
	uint64_t tick;	      /* the throttle's: in which overflows were counted last, */
	uint32_t overflows;   /* how many, */
	bool throttled;	      /* and whether they were too many */
	bool fewer;	      /* attr.freq: far less had happened than before at the last one */
	int32_t limit; /* PERF_EVENT_IOC_REFRESH: overflows until it disables itself; 0: none */
	uint64_t lost; /* PERF_FORMAT_LOST */

	/* where to; of events that were opened, whose copies share it */
	uint32_t ring;	    /* core/ring.h; 0: none. Its own, or of SET_OUTPUT */
	uint32_t ring_next; /* of the events with that ring */
	uint32_t maps;	    /* mappings by this event's own descriptor: then the page tells of it */
	struct core_owner owner;

	/* the descriptor (runtime/linux/, monitor/) */
	uint64_t inode;	  /* of the pipe that is the descriptor */
	bool nonblocking; /* O_NONBLOCK, as the program has it */
	uint32_t woken;	  /* who polls has been woken, and has not looked yet: core_wake_begins() */

	struct core_file file; /* of a probe; the offset is attr.probe_offset */
	uint16_t record; /* the number that the tracing directory has for its raw data; or 0 */
	/* is_kept: what it had counted before the kernel's event was opened, */
	struct core_count before;
	uint32_t refreshed; /* the sum of what PERF_EVENT_IOC_REFRESH was given, */
	int32_t answer;	    /* and what who keeps it had to say last: 0 or an errno value */
	bool kept_ended;    /* all of whom it measured have ended to the kernel, too */
	uint32_t
		forwarding; /* core/lock.h: of the ring of what feeds it, taken before all other locks. It
			      * stays what it is when the slot becomes another event's */
	uint32_t forwarding_wanted; /* who has it is to look once more, when he has given it back */
};

/* Looked at without a lock, too, and then again with one. */
static inline void core_set_state(struct core_event *event, enum core_state state)
{
	__atomic_store_n(&event->state, (uint8_t)state, __ATOMIC_RELEASE);
}

/* A breakpoint on an instruction. */
static inline bool core_is_stop(const struct core_event *event)
{
	return event->kind == CORE_BREAKPOINT && event->attr.bp_type == HW_BREAKPOINT_X;
}

/* Bit 0 of config: retprobe. */
static inline bool core_is_return_probe(const struct core_event *event)
{
	return event->kind == CORE_PROBE && event->attr.config & 1;
}

/* Where the program's counter of its probes lies in the file: bits 32 to 63. 0: it has none. */
static inline uint32_t core_probe_counter(const struct core_event *event)
{
	return event->kind == CORE_PROBE ? (uint32_t)(event->attr.config >> 32) : 0;
}

/* Whether something has to be done for @event, which is some task's, whether it counts or not. A
 * function may be entered before the event counts, and return then; and a counter says that
 * there is one. */
static inline bool core_is_met(const struct core_event *event)
{
	return event->state == CORE_ACTIVE || core_is_return_probe(event) ||
	       core_probe_counter(event);
}

/* Without one of their own, all have the same. */
static inline bool core_same_clock(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	return a->use_clockid == b->use_clockid && (!a->use_clockid || a->clockid == b->clockid);
}

#endif
