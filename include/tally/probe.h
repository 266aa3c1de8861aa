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

/* Right to measure everything that perf_event_paranoid forbids others (CAP_PERFMON). */
bool tally_system_privileged(const struct tally_system *system);

/*
 * The mlock budget for ring buffers of this user, in bytes and with the header page of each;
 * SIZE_MAX: unlimited. What other processes of the user hold of it is not known.
 */
size_t tally_system_ring_budget(void);

#ifdef __cplusplus
}
#endif

#endif
