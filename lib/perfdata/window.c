// SPDX-License-Identifier: MIT
#include "lib/perfdata/window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tly_window_init(struct tly_window *window, int fd, bool seekable)
{
	*window = (struct tly_window){.fd = fd, .seekable = seekable, .end = UINT64_MAX};
	window->buf = malloc(TLY_WINDOW_SIZE);
	if (!window->buf)
		return -ENOMEM;
	if (seekable)
		posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

void tly_window_fini(struct tly_window *window)
{
	free(window->buf);
}

void tly_window_seek(struct tly_window *window, uint64_t offset, uint64_t end)
{
	window->head = 0;
	window->tail = 0;
	window->offset = offset;
	window->end = end;
}

/* One read behind what is there; 0 at the end. */
static ssize_t read_more(struct tly_window *window)
{
	size_t have = window->tail - window->head;
	size_t room = TLY_WINDOW_SIZE - window->tail;
	uint64_t offset = window->offset + have;
	ssize_t n;

	if (offset >= window->end)
		return 0;
	if (room > window->end - offset)
		room = window->end - offset;
	do {
		if (!window->seekable)
			n = read(window->fd, window->buf + window->tail, room);
		else if (offset > INT64_MAX)
			n = 0;
		else
			n = pread(window->fd, window->buf + window->tail, room, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	window->tail += (size_t)n;
	return n;
}

ssize_t tly_window_fill(struct tly_window *window, size_t want)
{
	size_t have = window->tail - window->head;

	if (have >= want)
		return (ssize_t)have;
	memmove(window->buf, window->buf + window->head, have);
	window->head = 0;
	window->tail = have;
	while (window->tail < want) {
		ssize_t n = read_more(window);

		if (n < 0)
			return n;
		if (n == 0)
			break;
	}
	return (ssize_t)window->tail;
}

int tly_window_skip(struct tly_window *window, uint64_t bytes)
{
	size_t have = window->tail - window->head;

	if (window->seekable && bytes > have) {
		if (bytes > window->end - window->offset)
			return -ENODATA;
		tly_window_seek(window, window->offset + bytes, window->end);
		return 0;
	}
	while (bytes) {
		ssize_t n = tly_window_fill(window, 1);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return -ENODATA;
		if ((uint64_t)n > bytes)
			n = (ssize_t)bytes;
		tly_window_consume(window, (size_t)n);
		bytes -= (uint64_t)n;
	}
	return 0;
}
