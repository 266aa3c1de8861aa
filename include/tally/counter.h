/* SPDX-License-Identifier: MIT */
/*
 * Counting: one event, one group, or a whole list of events on a set of tasks and processors.
 *
 *	tally_counter	one event on one task and one processor: one descriptor
 *	tally_counters	every event of a list on every task and processor of a target
 *
 * A counter may be used from any thread; calls on the same object must not overlap, except
 * tally_counter_read() and tally_group_read(), which may. tally_counter_read_user() is for the
 * thread being measured alone (ABI: rdpmc.self-only).
 */
#ifndef TALLY_COUNTER_H
#define TALLY_COUNTER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tally/error.h>
#include <tally/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a number comes from; reports show it, so that nothing is ever substituted silently. */
enum tally_source {
	TALLY_SOURCE_NONE,   /* there is no number */
	TALLY_SOURCE_KERNEL, /* counted by the kernel's perf_event_open for all the time enabled */
	TALLY_SOURCE_SCALED, /* the same, multiplexed: counted for a part, scaled to the whole */
	TALLY_SOURCE_USER,   /* counted exactly in user mode */
	TALLY_SOURCE_MODEL,  /* computed by the model in user mode */
};

/* Why there is no number, when there is none. */
enum tally_state {
	TALLY_COUNTED,
	TALLY_NOT_COUNTED,   /* it opened, but never ran */
	TALLY_NOT_SUPPORTED, /* the kernel or the machine has no such event */
	TALLY_NOT_PERMITTED, /* it exists, but this user may not open it here */
};

struct tally_value {
	uint64_t raw;	       /* as read (ABI: read.*) */
	uint64_t scaled;       /* raw * time_enabled / time_running, rounded; raw when not scaled */
	uint64_t time_enabled; /* nanoseconds */
	uint64_t time_running; /* nanoseconds */
	uint64_t id;	       /* PERF_FORMAT_ID, or 0 */
	uint64_t lost;	       /* PERF_FORMAT_LOST: samples lost; 0 where the kernel has no such */
	enum tally_state state;
	enum tally_source source; /* TALLY_SOURCE_SCALED is the flag that says it was scaled */
};

struct tally_counter;

/*
 * Opens one event. @leader is the group's leader or NULL; leader and members are of the same @pid
 * and @cpu (ABI: arg.group-same-target). @flags are those of perf_event_open(2);
 * PERF_FLAG_FD_CLOEXEC is always added. read_format is taken as given, and when it asks for more
 * than this kernel has (PERF_FORMAT_LOST before 6.0) the open fails and says so. Members may be
 * closed before or after their leader. On success *@counter is released with tally_counter_close(),
 * which takes NULL too. Errors: those of tally_attr_open(); -ENOMEM; -EOPNOTSUPP where user mode
 * would count it, but for exclude_user: there it sees nothing else; and for a breakpoint where the
 * kernel takes them, but none is ever hit, as on some virtual machines.
 */
int tally_counter_open(const struct perf_event_attr *attr, pid_t pid, int cpu,
		       struct tally_counter *leader, unsigned long flags,
		       struct tally_counter **counter, struct tally_error *err);
void tally_counter_close(struct tally_counter *counter);

/* The descriptor, for what this header does not cover; it stays the counter's. */
int tally_counter_fd(const struct tally_counter *counter);

/*
 * The ioctls of perf_event_open(2) (ABI: ioctl.*). All return 0 or the negative errno value of
 * ioctl(2).
 */

/* @group: apply to the whole group (PERF_IOC_FLAG_GROUP), whichever member @counter is. */
int tally_counter_enable(struct tally_counter *counter, bool group);
int tally_counter_disable(struct tally_counter *counter, bool group);
int tally_counter_reset(struct tally_counter *counter, bool group);
/*
 * Enables until @overflows more overflows (ABI: ioctl.refresh); -EINVAL below 1: kernels take 0 for
 * no limit. -EINVAL also for an event that does not sample or is inherited.
 */
int tally_counter_refresh(struct tally_counter *counter, int overflows);
/*
 * The new sample_period, or sample_freq of an event with attr.freq. -EINVAL 0, an event that does
 * not sample, or a frequency above perf_event_max_sample_rate.
 */
int tally_counter_set_period(struct tally_counter *counter, uint64_t period);
/*
 * Redirects records to the ring of @output, which has to outlive that; NULL ends it. -EINVAL when
 * the two differ in task, processor, clock or write_backward, or @counter has a ring of its own.
 */
int tally_counter_set_output(struct tally_counter *counter, struct tally_counter *output);
/*
 * Lets only those occurrences of a tracepoint or probe through that meet @filter. -EINVAL no such
 * event or a condition that the kernel does not understand; -EEXIST there is a filter already.
 */
int tally_counter_set_filter(struct tally_counter *counter, const char *filter,
			     struct tally_error *err);
/* The id that records and group reads carry (ABI: ioctl.id). */
int tally_counter_id(struct tally_counter *counter, uint64_t *id);
/* Stops the kernel from writing to the event's ring, or lets it write again; -EINVAL without one.
 */
int tally_counter_pause_output(struct tally_counter *counter, bool pause);
/*
 * Moves a breakpoint: bp_type, bp_addr, bp_len and disabled may differ from what it was opened
 * with, all else in @attr must be the same (-EINVAL). -EOPNOTSUPP any other type of event; -ENOTTY
 * before Linux 4.17.
 */
int tally_counter_modify_attributes(struct tally_counter *counter,
				    const struct perf_event_attr *attr, struct tally_error *err);
/* Attaches the BPF program behind @prog_fd, which stays the caller's, to a tracepoint or probe. */
int tally_counter_set_bpf(struct tally_counter *counter, int prog_fd);
/*
 * Fills at most @max ids of the programs attached to a tracepoint and stores how many there are in
 * *@nr, which is more than @max with -ENOSPC. -ENOMEM; -EINVAL any other type of event.
 */
int tally_counter_query_bpf(struct tally_counter *counter, uint32_t *ids, uint32_t max,
			    uint32_t *nr);

/*
 * prctl(2) PR_TASK_PERF_EVENTS_ENABLE and _DISABLE (ABI: prctl.*): all events that the calling
 * thread created, whomever they measure. 0 or a negative errno value.
 */
int tally_task_enable(void);
int tally_task_disable(void);

/*
 * One read(2) (ABI: read.*). With PERF_FORMAT_GROUP in the attr, which makes the kernel return the
 * whole group, the counter's own value is picked out; a member needs PERF_FORMAT_ID for that
 * (-EINVAL). An event that the kernel gave up (pinned, and no counter was free) is a state,
 * TALLY_NOT_COUNTED. Returns 0; -EBADMSG what was read is not what the attr asked for; the negative
 * errno value of read(2).
 */
int tally_counter_read(struct tally_counter *counter, struct tally_value *value);

/*
 * One read(2) of a leader opened with PERF_FORMAT_GROUP: fills @values in the order in which the
 * members were opened, the leader first. Returns how many, -ENOSPC if there are more than @max, and
 * errors as tally_counter_read(). Of a group that the kernel gave up only the leader is returned.
 */
int tally_group_read(struct tally_counter *leader, struct tally_value *values, size_t max);

/*
 * Reads without a system call where the mmap page allows it (ABI: rdpmc.formula, mmap.lock), else
 * by read(2). Only in the thread that the counter measures, with pid 0 and cpu -1. The first call
 * maps the page, which stays mapped: an event that is read in this way cannot have a ring. id and
 * lost are 0 when no system call was made; *@fast (may be NULL) says so. Returns as
 * tally_counter_read().
 */
int tally_counter_read_user(struct tally_counter *counter, struct tally_value *value, bool *fast);

/* What a list of events is opened on. */
enum tally_target_kind {
	TALLY_TARGET_SELF,    /* the calling thread */
	TALLY_TARGET_THREADS, /* the threads in ids, and with inherit what they start */
	TALLY_TARGET_PROCESS, /* every thread of the processes in ids, and what they start */
	TALLY_TARGET_SYSTEM,  /* all tasks, on cpus or on every online processor */
	TALLY_TARGET_CGROUP,  /* tasks of the cgroup at path, on cpus or every online processor */
};

struct tally_target {
	enum tally_target_kind kind;
	const pid_t *ids;
	size_t nr_ids;
	const int *cpus; /* with nr_cpus 0: -1 for tasks, every online processor for the rest */
	size_t nr_cpus;
	const char *cgroup; /* absolute, or relative to the perf_event or unified cgroup mount */
};

/* tally_counters_open() flags */
#define TALLY_OPEN_INHERIT	  (1u << 0) /* set attr.inherit on task targets */
#define TALLY_OPEN_DISABLED	  (1u << 1) /* set attr.disabled on leaders */
#define TALLY_OPEN_ENABLE_ON_EXEC (1u << 2) /* set attr.enable_on_exec on leaders */
#define TALLY_OPEN_TOLERANT	  (1u << 3) /* an event that will not open is a state, not an error */
/*
 * An event whose name chose no u, k or h and whose kernel side this user may not see is counted in
 * user mode alone; tally_counters_attr() has exclude_kernel then, for reports to say so. Not so
 * context-switches, cpu-migrations and cgroup-switches, of which user mode has none.
 */
#define TALLY_OPEN_USER_FALLBACK (1u << 4)

struct tally_counters;

/*
 * Opens @events on @target. read_format is set to what this kernel supports of id, both times and
 * lost, besides what the attr asks for. Each event is open on the whole target or not at all, but
 * for tasks that end meanwhile. Of a group the first event that opens leads; a group with the W
 * modifier that does not fit is opened as single events; P becomes the highest precise_ip that
 * opens. A unit that is counted on some processors only (tally_event.cpus) is opened on those.
 *
 * With TALLY_OPEN_TOLERANT each event's refusal is kept in tally_counters_error(), and the call
 * fails only when the target cannot be measured at all: no such process, no right to any of the
 * events, too few descriptors. @events must outlive the counters; its attrs are not changed.
 *
 * Errors: those of tally_attr_open(); -ESRCH one of the ids is no running task, -ENODEV one of cpus
 * is not online, -EINVAL no event or no task was given, -EMFILE, -ENOMEM, those of open(2) for the
 * cgroup.
 */
int tally_counters_open(const struct tally_events *events, const struct tally_target *target,
			unsigned int flags, struct tally_counters **counters,
			struct tally_error *err);
void tally_counters_close(struct tally_counters *counters);

/*
 * The axes of the matrix: events, tasks (1 for system-wide), processors (1 for cpu -1). The indexes
 * that the functions below take have to be within them.
 */
size_t tally_counters_events(const struct tally_counters *counters);
size_t tally_counters_tasks(const struct tally_counters *counters);
size_t tally_counters_cpus(const struct tally_counters *counters);
/* The task: 0 is the thread that opened the counters, -1 all tasks. */
pid_t tally_counters_task(const struct tally_counters *counters, size_t task);
int tally_counters_cpu(const struct tally_counters *counters, size_t cpu); /* -1: any */

/* The counter of a cell, or NULL if it did not open or its task has ended meanwhile. */
struct tally_counter *tally_counters_at(const struct tally_counters *counters, size_t event,
					size_t task, size_t cpu);
/* What @event was opened with: its own attr with read_format, inherit and the rest set. */
const struct perf_event_attr *tally_counters_attr(const struct tally_counters *counters,
						  size_t event);
/* Why @event is not open, or NULL. */
const struct tally_error *tally_counters_error(const struct tally_counters *counters, size_t event);

/*
 * Each group that is open, by its leader. All are tried; returns 0 or the first error, as
 * tally_counter_enable() and the others have it.
 */
int tally_counters_enable(struct tally_counters *counters);
int tally_counters_disable(struct tally_counters *counters);
int tally_counters_reset(struct tally_counters *counters);

/*
 * One cell; the sum over all cells, each scaled on its own and the times added. A cell that is not
 * open is a state, no error. A task's event that is bound to one processor is enabled also while
 * the task runs on others, so that its cell is never scaled; their sum is, against the task's own
 * time, when they cover every online processor. Returns 0 or an error of tally_counter_read().
 */
int tally_counters_read(struct tally_counters *counters, size_t event, size_t task, size_t cpu,
			struct tally_value *value);
int tally_counters_sum(struct tally_counters *counters, size_t event, struct tally_value *value);

#ifdef __cplusplus
}
#endif

#endif
