/* SPDX-License-Identifier: MIT */
/*
 * The event subsystem: what perf_event_open(2) and everything that goes with it means, without
 * descriptors and without a kernel. Runs in every process of a tree on the arena that they share
 * (abi/arena.h), and in tests on ordinary memory. Nothing here makes a system call: what needs one
 * is asked of core/host.h.
 *
 * Events are named by index; where a descriptor stands for one, by core_name(), since another
 * thread may close it, and its slot be given away, between one look and the next. All functions
 * return 0 or a count, or a negative errno value: the one that the pages name, and the kernel's
 * where they are silent. All may be called from any thread of any process; they lock what they use.
 * Those that say "the caller's" are for the task's own thread, in the runtime.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/arena.h"
#include "abi/machine.h"
#include "core/event.h"
#include "core/task.h"

/* ---- the arena ---- */

/* Whose codes raw events are in, where vendors differ. */
enum core_vendor {
	CORE_VENDOR_INTEL,     /* what all processors of theirs mean */
	CORE_VENDOR_INTEL_OLD, /* from Sandy Bridge to before Ice Lake */
	CORE_VENDOR_INTEL_ICE_LAKE,
	CORE_VENDOR_INTEL_GOLDEN_COVE, /* Alder Lake, Sapphire Rapids and later */
	CORE_VENDOR_AMD,	       /* Zen 2 to 4 */
	CORE_VENDOR_AMD_BEFORE_ZEN,
	CORE_VENDOR_AMD_ZEN,  /* the first, and Hygon's */
	CORE_VENDOR_AMD_ZEN5, /* and later */
};

/* What is configured once for a tree, by the monitor before anybody runs; the clock before the
 * first event. */
struct core_settings {
	int32_t paranoid; /* perf_event_paranoid, as shown and as obeyed */
	uint32_t max_sample_rate;
	uint32_t mlock_kb;
	uint32_t max_stack;
	uint32_t counters;	      /* of the virtual PMU; 0: no limit */
	uint32_t rotation;	      /* ns between turns when they do not suffice */
	uint32_t cpus;		      /* online: what may be locked grows with them */
	uint32_t tsc_mult, tsc_shift; /* ns = tsc * mult >> shift; mult 0: nobody has asked yet */
	uint32_t cpu_type, breakpoint_type;	  /* numbers of PMUs in sysfs */
	uint32_t trace_type, probe_type, op_type; /* likewise; 0: there is none */
	uint32_t host;				  /* 1: the kernel counts what it can */
	uint32_t vendor;			  /* enum core_vendor */
	uint64_t user_name_space;		  /* where the run began, as an inode; 0: unknown */
	uint64_t name_space;			  /* the same of process numbers */
	struct machine machine; /* that the model computes; zeros: the reference one */
};

/*
 * @arena: where it is mapped in this process. At first only its threads need be mapped there
 * (ARENA_THREADS_SIZE), which is enough for core_settings(), core_nr_events(), core_task() and
 * core_page(), and for all that is called for a task without events. Before anything else is
 * called the whole is attached, at another place: tasks are named by page, as addresses differ.
 */
void core_attach(void *arena);
void core_setup(const struct core_settings *settings); /* once, on zeroed memory */

/* Whoever sees that tsc_mult is not 0 sees both. Wakes nobody. */
void core_set_clock(uint32_t mult, uint32_t shift);

/* Where it was attached last. */
extern char *core_attached;

static inline void *core_arena(uint64_t offset)
{
	return core_attached + offset;
}

static inline struct core_event *core_event(uint32_t index)
{
	return (struct core_event *)core_arena(ARENA_EVENTS_AT) + index;
}

/*
 * A name: the index, and above it the generation of the slot. Who comes too late with it gets
 * -EBADF, and the event that has the slot by then nothing. Generation 0, as in a bare index, stands
 * for whichever there is.
 */
static inline uint64_t core_name(uint32_t index, uint32_t generation)
{
	return (uint64_t)generation << 32 | index;
}

static inline struct core_event *core_named(uint64_t name)
{
	return core_event((uint32_t)name);
}

static inline struct core_task *core_task(uint32_t page)
{
	return core_arena(page * ARENA_PAGE + ARENA_TASK);
}

/* They come first of what the core keeps for the tree. */
static inline const struct core_settings *core_settings(void)
{
	return (const struct core_settings *)core_arena(ARENA_CORE);
}

uint32_t core_page(const struct core_task *task);

/* How many events there are in the tree; 0 is the common case, and quickly seen. */
uint32_t core_nr_events(void);

/* ---- opening and closing ---- */

struct core_rights {
	bool perfmon;	/* CAP_PERFMON or CAP_SYS_ADMIN */
	bool attach;	/* the target may be traced by the caller: ptrace(2) */
	uint64_t mlock; /* bytes that the caller may lock: RLIMIT_MEMLOCK; CAP_IPC_LOCK: all */
};

/*
 * The steps of perf_event_open(2), in the order in which their errors come:
 *
 *	core_attr_check()	what the attr says by itself, when the caller has looked at flags
 *	core_open_check()	who may ask for it
 *	core_group_check()	of group_fd, which the caller has looked up, whatever the flags:
 *				else EBADF
 *	core_open()		of pid, which it has looked up likewise (else ESRCH): whether it
 *				can be had
 */

/*
 * Validates an attr. @size is attr->size as the caller gave it, of which @attr has at most
 * CORE_ATTR_SIZE bytes, and zeros behind; @tail says whether what the program has behind that is
 * zero. -E2BIG: the caller writes CORE_ATTR_SIZE back.
 */
int core_attr_check(struct perf_event_attr *attr, uint32_t size, bool tail,
		    const struct core_rights *rights);

/* @pid as given to the call: only -1 means something here. */
int core_open_check(const struct perf_event_attr *attr, int pid, int cpu, unsigned long flags,
		    const struct core_rights *rights);

/* Whether @group, a name, is open and its task still there. */
int core_group_check(uint64_t group);

/* Whom an event measures. */
struct core_target {
	struct core_task *task; /* NULL: every task */
	int32_t tid;		/* of the thread that was found there; 0: it is sure to be there */
	int cpu;		/* -1: any */
	uint64_t cgroup;	/* PERF_FLAG_PID_CGROUP: the cgroup's number; 0: any */
	struct core_file file;	/* of a probe, which the caller has looked up */
	uint16_t record;	/* core_event.record */
	bool kept;		/* core_event.is_kept: the kernel knows what it is */
	int error; /* why it cannot be measured, which is told once the rest is right; or 0 */
};

/*
 * @attr: all CORE_ATTR_SIZE bytes, checked. @group: the name of group_fd, 0 for -1. @event: is
 * given its name. The index alone would not do: until it has a descriptor another thread may end
 * it, with their process, and the slot be another's while this one goes on.
 */
int core_open(const struct perf_event_attr *attr, const struct core_target *target, uint64_t group,
	      unsigned long flags, const struct core_rights *rights, uint64_t *event);

/*
 * @task, the caller's, has given what it opened last a descriptor; or, if not @kept, has none for
 * it, and it is closed. Until then the event ends with the task.
 */
void core_opened_by(struct core_task *task, bool kept);

/* Its descriptor is the pipe of that number. */
void core_set_pipe(uint64_t event, uint64_t inode);

/* The last descriptor of @event is gone, if that is still there: it may have ended with who was
 * about to open it. */
void core_close(uint64_t event);

/* PERF_EVENT_IOC_ID and PERF_FORMAT_ID. */
uint64_t core_event_id(uint64_t event); /* 0: it is closed */

/* @event, which has just been opened, goes on where another ends that was known by @id. */
void core_continue(uint64_t event, uint64_t id, const struct core_count *count);

/* To prctl(2) it is as if not the caller had opened @event, but who had the page @creator as @id:
 * nobody, if that has ended. */
void core_opened_for(uint64_t event, uint32_t creator, uint64_t id);

/* ---- events of the kernel's that count for ours (core_host_kept()), which go by name: core/kept.c ---- */

/* It is there now, switched on or not, or as soon as the task executes. */
void core_kept_begins(uint64_t event, bool on, bool on_exec);
/* What it is to be from now on, and core_event.refreshed. False: nothing, as ours has ended. */
bool core_kept_follow(uint64_t event, bool *on, uint32_t *refreshed);
/* That is what it has counted. */
void core_kept_counted(uint64_t event, uint64_t value);
/* All of whom it measured have ended. */
void core_kept_ended(uint64_t event);
/* What who keeps it has to say, and had to say last: 0 or a negative errno value. */
void core_kept_answer(uint64_t event, int with);
int core_kept_answered(uint64_t event);

/* ---- ioctl(2), prctl(2), read(2): of events by name ---- */

int core_enable(uint64_t event, bool group);
int core_disable(uint64_t event, bool group);
int core_reset(uint64_t event, bool group);
int core_refresh(uint64_t event, int overflows);
int core_set_period(uint64_t event, uint64_t period);
int core_set_output(uint64_t event, uint64_t output); /* 0: none */
int core_pause_output(uint64_t event, bool pause);
int core_modify(uint64_t event, const struct perf_event_attr *attr);
int core_prctl(struct core_task *task, bool enable);

/* What read(2) gives: returns the bytes, -ENOSPC when @size is too small, 0 for an event in error.
 * @to: aligned to words; CORE_READ_MAX bytes are enough for everything. */
#define CORE_READ_MAX (16UL << 10)
int64_t core_read(uint64_t event, void *to, size_t size);

/* rdpmc in the caller's code, ecx = @index as the mmap page gives it less 1; false: #GP. */
bool core_rdpmc(struct core_task *task, uint32_t index, uint64_t *value);

/* What poll(2) sees now; consumes as the kernel's poll does. Who keeps a descriptor that became
 * readable by core_host_wake() empties it first, and asks here then. */
short core_poll(uint64_t event);

/* The same, and it stays. */
short core_poll_peek(uint64_t event);

/*
 * For a host whose core_host_wake() sends a message: until somebody has looked, one is enough.
 * False: somebody has sent one, or is about to. Else the caller is, and says then whether it has
 * been sent. Who is killed before is found, and does not leave out who comes next.
 */
bool core_wake_begins(struct core_event *event);
void core_wake_ends(struct core_event *event, bool sent);
/* Somebody is about to look: what happens from here on is told of again. */
void core_wake_seen(struct core_event *event);

/* ---- the life of tasks: called by their own threads, in the runtime ---- */

/* As none has ever been there; but a lock that is held stays so, and whoever holds it finds out. */
void core_task_clear(struct core_task *task);

/*
 * A thread begins: @task is clear but for comm, and inherits. @parent: of whoever made it; NULL for
 * the first. @flags: those of clone(2). False: nothing has begun, as the parent has been ended,
 * with all of its process, and what would be inherited is gone. Called by the parent, before the
 * child runs, which nobody can name yet. core_task_begun() is the child's, which knows pid, tid and
 * ppid by now: FORK and its name spaces, unless its parent, who may want to see that when fork(2)
 * returns, could say so before, by core_task_forked(): @pid is its number to the parent, @id that
 * which it was given. That returns its core_task.process. 0: nothing is measured of it, or it has
 * ended, and its place may be another's. core_task_begun() is false where somebody has ended the
 * task who took the parent's end for the child's, or all of the process's.
 */
bool core_task_begin(struct core_task *task, struct core_task *parent, uint64_t flags);
uint64_t core_task_forked(struct core_task *task, uint64_t id, int32_t pid);
bool core_task_begun(struct core_task *task);
/* Of the threads of a process that live, the task at @page is the one that stands for all of
 * them. */
bool core_speaks_for_process(uint32_t page);
/* Its thread has ended: by itself, or by whoever finds that it is no more. It goes on being live
 * where not all of what it had can be looked at (core_host_whole()). */
void core_task_exit(struct core_task *task);
/*
 * Somebody else's: the same for @task of @process (0: whichever), if nobody has its page any
 * more. Whoever takes a page over calls core_task_exit() before anything else, so that it is not
 * his own task that others end, having seen the one before.
 */
void core_task_lost(struct core_task *task, uint64_t process);
/* The image has been replaced: enable_on_exec, remove_on_exec, COMM. The caller's. */
void core_task_exec(struct core_task *task, const char *comm);
/*
 * Another thread of its process, the caller, is about to replace the image, and has @task's number
 * then; or it has failed to, which is @is false. In between @task is not kicked, which the new image
 * would be instead, and end.
 */
void core_task_replaced(struct core_task *task, bool is);
/* The caller, @task, has named a thread of its process, mostly itself. */
void core_task_comm(struct core_task *task, struct core_task *named, const char *comm);
/* It ran on @cpu until now, or another: events of processors are switched. The caller's. */
void core_task_cpu(struct core_task *task, int cpu);
/* It may have been moved to another cgroup. */
void core_task_regroup(struct core_task *task);

/*
 * The threads of @process are in no event of every task that is opened from now on. For who
 * traces the caller: it would wait for the lock of its own task while the caller, which has taken
 * that to look at it, is stopped and waits for it.
 */
void core_task_apart(uint64_t process);

/*
 * Turns, for whoever has a timer: while some group waits for counters (--counters=N, or an
 * exclusive group), which core_host_crowded() tells the beginning of, core_rotate() is to be called
 * every core_settings()->rotation ns.
 */
bool core_crowded(void);
void core_rotate(void);

/*
 * The caller's: makes its counters follow what is wanted and takes what is due; it has followed
 * then. To be called in the runtime when core_task_changed(), and after core calls that may have
 * changed the caller's own events.
 */
void core_task_update(struct core_task *task);

/*
 * The caller's: there is no memory for code that does more than @code. Groups that need more are in
 * error, and what they count for can be read again when it has been enabled again.
 */
struct core_code {
	uint64_t counted, checked; /* kinds; and of which it is stopped when an overflow is due */
	uint64_t extras;	   /* enum core_extra */
};
void core_task_affords(struct core_task *task, const struct core_code *code);

/* The caller's: counter[@kind] has reached 0, or more for those that skid. The program stands
 * where the sample belongs. */
void core_overflow(struct core_task *task, enum core_kind kind);

/*
 * The caller's: the program has just touched (@type: HW_BREAKPOINT_R, _W) or is about to execute
 * (_X) @size bytes at @address; breakpoints that are active there count and sample.
 */
void core_breakpoint(struct core_task *task, unsigned int type, uint64_t address, size_t size);

/* Whether it is worth while to call that: a quick look, without locks. */
bool core_breakpoint_at(const struct core_task *task, unsigned int type, uint64_t address,
			size_t size);

/* What a breakpoint on data watches. */
struct core_breakpoint_range {
	uint64_t address, size;
	uint32_t type; /* HW_BREAKPOINT_R, _W */
};

/* Of all that one instruction touches: what is touched twice by it is hit once. */
void core_breakpoints(struct core_task *task, const struct core_breakpoint_range *touched,
		      size_t nr);

/* The caller's: what its active breakpoints on data watch, @max at most; how many there are. */
size_t core_breakpoint_watched(struct core_task *task, struct core_breakpoint_range *to,
			       size_t max);

/* The caller's: where its active breakpoints on instructions are, @max at most; how many there
 * are. */
size_t core_breakpoint_places(struct core_task *task, uint64_t *to, size_t max);

/* ---- probes: core/probe.c ---- */

/* Where a probe is: what is executed there, in whatever mapping. */
struct core_probe {
	struct core_file file;
	uint64_t offset;
};

static inline bool core_is_same_probe(const struct core_probe *a, const struct core_probe *b)
{
	return a->offset == b->offset && core_is_same_file(&a->file, &b->file);
}

/*
 * The caller's: where the probes are that its code is to stop at, from the one numbered @from on,
 * @max at most; how many there are. Those of returns are among them from when they are opened: who
 * is in a function by the time that its event counts returns all the same.
 */
size_t core_probe_places(struct core_task *task, struct core_probe *to, size_t from, size_t max);

/* Whether some probe is at @place; @returns: of returns, whether it counts or not. A quick look,
 * without locks. */
bool core_probe_at(const struct core_task *task, const struct core_probe *place, bool returns);

/*
 * The caller's: of the program's counters that say to it that somebody has a probe (ref_ctr_offset)
 * those of its own probes, disabled or not, as above; and whether some task of @process has
 * @counter.
 */
size_t core_probe_counters(struct core_task *task, struct core_probe *to, size_t from, size_t max);
bool core_probe_counted(uint64_t process, const struct core_probe *counter);

/* Where it was met: in @function, which is @place in memory; or, if @back is not 0, at the address
 * to which that has returned. */
struct core_probe_met {
	struct core_probe place;
	uint64_t function, back;
};

/* The caller's: probes that are active there count and sample. */
void core_probe_met(struct core_task *task, const struct core_probe_met *met);

/* The value of a task's counter, from anywhere. */
static inline uint64_t core_counter_read(const struct core_task *task, enum core_kind kind)
{
	uint64_t value = 0;

	for (unsigned int tries = 0; tries < CORE_TASK_TRIES; tries++) {
		uint32_t before = __atomic_load_n(&task->sequence, __ATOMIC_ACQUIRE);

		value = (uint64_t)__atomic_load_n(&task->counter[kind], __ATOMIC_RELAXED) +
			(uint64_t)__atomic_load_n(&task->bias[kind], __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && __atomic_load_n(&task->sequence, __ATOMIC_RELAXED) == before)
			break;
		__builtin_ia32_pause();
	}
	return value;
}

/*
 * The caller's: it has executed branches, and where they led; for the event of core_task.tracing.
 * That is as long as an event that traces is active, and its thread has followed.
 */
struct core_branch {
	uint64_t from, to; /* the instruction's address, and that of the next one */
	uint64_t flags;	   /* 0 */
};
void core_trace(struct core_task *task, const struct core_branch *branches, size_t nr);

/* ---- what the program did: records for whoever asked (core/sideband.c) ---- */

struct core_mapping {
	uint64_t start, length, offset;
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	uint32_t prot, flags; /* of mmap(2) */
	const char *path;     /* "//anon", "[heap]", ... as the kernel says it */
	uint8_t build_id_size, build_id[20];
};
void core_mapped(struct core_task *task, const struct core_mapping *mapping);
/* Whether anybody is told more of its file than the path. */
bool core_tells_file(struct core_task *task, const struct core_mapping *mapping);
/* It did not run from @since, by core_time(), until now. */
void core_switched(struct core_task *task, uint64_t since, bool preempted);
void core_namespaces(struct core_task *task); /* after unshare(2), setns(2) */
void core_cgroup_made(struct core_task *task, uint64_t cgroup, const char *path);

#endif
