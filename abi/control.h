/* SPDX-License-Identifier: MIT */
/*
 * What the processes of a run tell its monitor: datagrams on one socket whose other end each of
 * them has (abi/handover.h). Nothing is answered there; who has to know that the monitor has done
 * something waits for a word of the arena to change.
 *
 * The other way come pipes, in advance: a few struct control_pipe are always there for the next
 * ones who open events, whoever they are.
 */
#ifndef ABI_CONTROL_H
#define ABI_CONTROL_H

#include <stdint.h>

enum control {
	/* An event has got its descriptor, the read end of the pipe @inode. When the monitor finds
	 * that nobody can read any more, it closes the event. */
	CONTROL_OPEN,
	/* There was no pipe for who opens an event. */
	CONTROL_PIPES,
	/* Whoever polls the event is to look again: the descriptor becomes readable. */
	CONTROL_WAKE,
	/* With this comes a descriptor of an event of the kernel's that feeds the event: what that
	 * has is forwarded (core/forward.h). */
	CONTROL_FED,
	/* The same of one that counts for the event: core_event.answer says that it is kept. */
	CONTROL_KEEP,
	/* core_host_kept(): of the event, or of its @group, @act. */
	CONTROL_KEPT,
	/* ioctl(2) with @request and @argument on the kernel's event that counts for the event;
	 * or with the descriptor that comes with this, or what can be read from it;
	 * PERF_EVENT_IOC_QUERY_BPF writes there how many programs there are, and the numbers of
	 * @argument of them. core_event.answer says what it returned. */
	CONTROL_KEPT_IOCTL,
	/* A descriptor may be closed, or a process gone: close the events without descriptors, end
	 * what the processes have left, and then say so in the arena's header. */
	CONTROL_SETTLE,
	/* Events are attached to tasks of the process @pid: when that is gone, so are they. With it
	 * may come a pidfd of the process, which the sender can name better. */
	CONTROL_WATCH,
	/* The sender has mapped rings as @owner: when it is gone, with all that have said so, so
	 * are they. */
	CONTROL_MAPPED,
	/* The first event of the tree is about to be opened: the settings are to say how fast the
	 * time stamp counter runs. Wakes who waits for tsc_mult. */
	CONTROL_CLOCK,
	/* Some events wait for counters: they are to take turns. */
	CONTROL_CROWDED,
	/* The sender waits for a lock of @owner's, who may be stopped. */
	CONTROL_HELD_UP,
	/* The sender is in a name space of process numbers of its own, and its thread @pid,
	 * which has @page as @process says (its core_task.id), waits there for its numbers where
	 * the run began. */
	CONTROL_NUMBERS,
};

/* That one event may have: the kernel's limit. */
enum { CONTROL_PROGRAMS = 64 };

struct control_message {
	uint32_t what; /* enum control */
	uint32_t event, generation;
	/* CONTROL_WATCH: the process, by core_task.process, */
	uint64_t process;
	int32_t pid;	 /* as it sees itself, */
	uint32_t page;	 /* a page that it has; 0: not yet */
	uint32_t own;	 /* 1: it is the sender */
	uint32_t owner;	 /* CONTROL_MAPPED, CONTROL_HELD_UP */
	uint32_t ticket; /* CONTROL_SETTLE */
	uint64_t inode;	 /* CONTROL_OPEN */
	/* CONTROL_KEPT, CONTROL_KEPT_IOCTL */
	uint32_t act, group, request;
	uint64_t argument;
	/* CONTROL_FED, CONTROL_KEEP: as of struct core_forward; size 0: it has no ring */
	uint64_t sample_type, read_format, size;
	int64_t ahead;
	uint32_t sample_id_all;
};

/* With it comes the read end. It never blocks, and the monitor alone has the other one: a number
 * that a process has, another thread of it may close, or give to something else. */
struct control_pipe {
	uint64_t inode; /* by which everybody knows it */
};

/*
 * How a thread is brought out of translated code: by this signal, which the runtime always handles
 * and never blocks, sent by rt_tgsigqueueinfo(2) with this value. To be sent only while the thread
 * says that it is inside (ARENA_INSIDE), and the lock on its page that it is there at all.
 */
#define KICK_SIGNAL SIGBUS
#define KICK_VALUE  0x74616c6c79UL

#endif
