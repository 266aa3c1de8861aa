/* SPDX-License-Identifier: MIT */
/* Classic BPF as seccomp(2) has it: what a filter that the kernel has accepted says of a call. */
#ifndef RUNTIME_LINUX_SECCOMP_FILTER_H
#define RUNTIME_LINUX_SECCOMP_FILTER_H

#include <stdint.h>

struct seccomp_data;
struct sock_filter;

/* SECCOMP_RET_* with its data. */
uint32_t seccomp_filter_run(const struct sock_filter *instructions,
			    const struct seccomp_data *data);

#endif
