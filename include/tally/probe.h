/* SPDX-License-Identifier: MIT */
/*
 * What this machine lets this process measure, and why not the rest. Every answer is found by
 * asking the kernel (opening and closing an event), never by its version. Thread-safe.
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

/* Facts of the machine and the process; -1 or false where they cannot be read. */
struct tally_system {
	int paranoid;	      /* /proc/sys/kernel/perf_event_paranoid; INT_MIN if unreadable */
	long mlock_kb;	      /* /proc/sys/kernel/perf_event_mlock_kb */
	long max_sample_rate; /* per second */
	long max_stack;
	int kptr_restrict;
	bool cap_perfmon, cap_sys_admin, cap_ipc_lock, cap_sys_ptrace; /* effective */
	int seccomp;	     /* 0 none, 1 strict, 2 filter */
	bool has_syscall;    /* perf_event_open is there and not refused by a filter */
	bool has_pmu;	     /* a hardware PMU counts instructions */
	const char *tracefs; /* mount point, or NULL; static storage */
	bool tracefs_readable;
	bool container;		    /* this looks like a container */
	const char *virtualization; /* "kvm", "xen", ..., or NULL: bare metal or unknown; static */
	uint32_t attr_size;	    /* the kernel's sizeof(struct perf_event_attr) */
};
void tally_system_probe(struct tally_system *system);

/* The mlock budget for ring buffers of this user, in bytes; SIZE_MAX: unlimited. */
size_t tally_system_ring_budget(void);

#ifdef __cplusplus
}
#endif

#endif
