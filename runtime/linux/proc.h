/* SPDX-License-Identifier: MIT */
/* What /proc and /sys say, where no system call does. Without them the answer is 0. */
#ifndef RUNTIME_LINUX_PROC_H
#define RUNTIME_LINUX_PROC_H

#include <stdbool.h>
#include <stdint.h>

struct perf_ns_link_info;

/* What a thread has used, as of the last time that it was switched. */
struct proc_usage {
	uint64_t minor_faults, major_faults, switches;
};
bool proc_usage(int32_t pid, int32_t tid, struct proc_usage *usage);

/* Nanoseconds that it has run. */
uint64_t proc_runtime(int32_t pid, int32_t tid);

/* How often it went to another processor. */
uint64_t proc_migrations(int32_t pid, int32_t tid);

/* The number of a device that events can be of; UINT32_MAX: there is none. */
uint32_t proc_device_type(const char *name);

/* The process of a thread, and the thread that traces it. */
int32_t proc_process_of(int32_t tid);
int32_t proc_tracer_of(int32_t tid);

/* The physical address of @address, for who may know it. */
uint64_t proc_physical(uint64_t address);

/* The number of a thread's cgroup, 0 if it has none; whether it is in @cgroup, or below. */
uint64_t proc_cgroup(int32_t tid);
bool proc_in_cgroup(int32_t tid, uint64_t cgroup);

/* The name spaces of the caller. */
void proc_namespaces(struct perf_ns_link_info *to);

/* The number of the cgroup whose folder @fd is. -EBADF: it is none, -ENOENT: not of the hierarchy
 * by which events go. */
int64_t proc_cgroup_of(int fd);

/* Its path in the hierarchy. @fd: as above. */
enum { PROC_PATH = 4096 };
bool proc_cgroup_path(int fd, char path[PROC_PATH]);

#endif
