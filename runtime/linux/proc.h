/* SPDX-License-Identifier: MIT */
/* What /proc and /sys say, where no system call does. Without them the answer is 0. */
#ifndef RUNTIME_LINUX_PROC_H
#define RUNTIME_LINUX_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_ns_link_info;

/* A file of /proc/PID/task/TID, as core/used.h wants it. */
bool proc_thread_file(int32_t pid, int32_t tid, const char *name, char *text, size_t size);

/* The number of a device that events can be of; UINT32_MAX: there is none. */
uint32_t proc_device_type(const char *name);

/* The process of a thread, and the thread that traces it. */
int32_t proc_process_of(int32_t tid);
int32_t proc_tracer_of(int32_t tid);

/* For how many descriptors this process's table has room; 0: there is no /proc. */
int32_t proc_descriptors(void);

/* Which name space this process's numbers are in, as an inode; 0: there is no /proc. */
uint64_t proc_name_space(void);

/* And which its rights are of. */
uint64_t proc_user_name_space(void);

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
