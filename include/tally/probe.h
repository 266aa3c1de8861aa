/* SPDX-License-Identifier: MIT */
/*
 * What this machine lets this process measure, and why not the rest.
 *
 *	tally_system	facts: settings, rights, where the process runs
 *	tally_ability	one thing to measure, tried out
 *
 * Every answer is found by asking the kernel (opening and closing an event), never by its version.
 * Thread-safe.
 */
#ifndef TALLY_PROBE_H
#define TALLY_PROBE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Facts of the machine and the process; -1, false or "" where they cannot be read. */
struct tally_system {
	int paranoid;	      /* /proc/sys/kernel/perf_event_paranoid; INT_MIN if unreadable */
	long mlock_kb;	      /* /proc/sys/kernel/perf_event_mlock_kb */
	long max_sample_rate; /* per second */
	long max_stack;
	int kptr_restrict;
	bool cap_perfmon, cap_sys_admin, cap_ipc_lock, cap_sys_ptrace; /* effective */
	bool may_gain_perfmon, may_gain_sys_admin;		       /* in the bounding set */
	bool user_namespace; /* capabilities reach no further than a user namespace */
	int seccomp;	     /* 0 none, 1 strict, 2 filter */
	bool has_syscall;    /* perf_event_open is there and not refused by a filter */
	int syscall_error;   /* what it answers when it is not: -ENOSYS, -EPERM, ... */
	bool has_pmu;	     /* a hardware PMU counts instructions */
	uint32_t attr_size;  /* the kernel's sizeof(struct perf_event_attr) */
	char units[256];     /* folders of /sys/bus/event_source/devices, a space between */
	char pmu_name[64];   /* what the processor's unit calls itself ("skylake") */
	char tracefs[256];   /* mount point */
	bool tracefs_readable;
	const char *container;	    /* "docker", "podman", "kubernetes", ..., or NULL; static */
	const char *virtualization; /* "kvm", "xen", ..., or NULL: bare metal or unknown; static */
};

/* Takes about a millisecond; opens and closes a few events on the calling thread. */
void tally_system_probe(struct tally_system *system);

/*
 * Whether perf_event_open(2) is answered in user mode here: this process is under `tally run`.
 * Opens and closes an event.
 */
bool tally_user_mode(void);

/* Right to measure everything that perf_event_paranoid forbids others (CAP_PERFMON). */
bool tally_system_privileged(const struct tally_system *system);

/*
 * The mlock budget for ring buffers of this user, in bytes and with the header page of each;
 * SIZE_MAX: unlimited. What other processes of the user hold of it is not known.
 */
size_t tally_system_ring_budget(void);

enum tally_verdict {
	TALLY_CAN,
	TALLY_CANNOT,  /* this machine or kernel has no such thing, and no setting changes that */
	TALLY_MAY_NOT, /* it is there, but not for this process: error.remedy has the command */
};

enum tally_ability_group {
	TALLY_ABILITY_EVENT,  /* a kind of event, counted on the process's own user code */
	TALLY_ABILITY_SCOPE,  /* whose and which code, with a software event */
	TALLY_ABILITY_SAMPLE, /* what a sample can hold, and how it comes back */
};
#define TALLY_ABILITY_GROUPS 3

/* One thing to measure, as tried out here. */
struct tally_ability {
	const char *name; /* "tracepoint": one word, kept from release to release */
	const char *what; /* what it gives, for people */
	enum tally_ability_group group;
	bool pmu; /* needs a hardware PMU */
	enum tally_verdict verdict;
	char detail[64];	  /* what was found ("up to level 2"), or "" */
	struct tally_error error; /* why not; the same text for the same cause */
};

/* How many there are to try. */
size_t tally_abilities_count(void);

/*
 * Tries the ability at @index, below tally_abilities_count(), on the calling thread by opening the
 * event, using it where that can be done at once, and closing it. @system is what
 * tally_system_probe() found.
 */
void tally_ability_probe(size_t index, const struct tally_system *system,
			 struct tally_ability *ability);

#ifdef __cplusplus
}
#endif

#endif
