/* SPDX-License-Identifier: MIT */
/* Threads that are named by writing to a file of theirs, /proc/PID/task/TID/comm. */
#ifndef RUNTIME_LINUX_SELF_COMM_H
#define RUNTIME_LINUX_SELF_COMM_H

struct thread;

/* The program has opened @path: from now on its writes are looked at if it may be such a file. */
void self_comm_opened(const char *path);

/* It has written to @fd. */
void self_comm_written(struct thread *thread, int fd);

#endif
