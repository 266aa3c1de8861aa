/* SPDX-License-Identifier: MIT */
/*
 * A bounded window that moves over a file or a pipe by pread(2) and read(2). The file is never
 * mapped: one that is cut while being read must give an error, not SIGBUS.
 */
#ifndef LIB_PERFDATA_WINDOW_H
#define LIB_PERFDATA_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What may be asked for at once; a record is smaller. Small enough that the bytes are still in the
 * cache when they are decoded, large enough that the system call does not show.
 */
#define TLY_WINDOW_SIZE (256u << 10)

struct tly_window {
	int fd;
	bool seekable;
	uint8_t *buf;
	size_t head, tail; /* what is read and not yet consumed */
	uint64_t offset;   /* of buf[head] in the file */
	uint64_t end;	   /* the window does not go past this offset */
};

/* -ENOMEM; does not take over @fd. */
int tly_window_init(struct tly_window *window, int fd, bool seekable);
void tly_window_fini(struct tly_window *window);

/* Continues at @offset, up to @end. Only when seekable. */
void tly_window_seek(struct tly_window *window, uint64_t offset, uint64_t end);

/*
 * Makes @want bytes (at most TLY_WINDOW_SIZE) contiguous at buf[head]. Returns how many there are,
 * less than @want only at the end, or a negative errno. Moves what earlier calls made available.
 */
ssize_t tly_window_fill(struct tly_window *window, size_t want);

static inline void tly_window_consume(struct tly_window *window, size_t bytes)
{
	window->head += bytes;
	window->offset += bytes;
}

/* Consumes @bytes whether or not they are in the window. -ENODATA when there are fewer. */
int tly_window_skip(struct tly_window *window, uint64_t bytes);

#endif
