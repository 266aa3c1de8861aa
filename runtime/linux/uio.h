/* SPDX-License-Identifier: MIT */
/* struct iovec, which the kernel's headers leave to the libc. */
#ifndef RUNTIME_LINUX_UIO_H
#define RUNTIME_LINUX_UIO_H

#include <stddef.h>

struct vector {
	const void *base;
	size_t length;
};

#endif
