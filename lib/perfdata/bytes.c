// SPDX-License-Identifier: MIT
#include "lib/perfdata/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* perf pads its strings so; readers go by the size. */
#define STRING_ALIGN 64

void tly_bytes_free(struct tly_bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct tly_bytes){0};
}

void *tly_bytes_add(struct tly_bytes *bytes, size_t size)
{
	if (bytes->failed)
		return NULL;
	if (!bytes->data || size > bytes->room - bytes->size) {
		size_t room = bytes->room ? bytes->room : 4096;
		uint8_t *data;

		while (room - bytes->size < size)
			room *= 2;
		data = realloc(bytes->data, room);
		if (!data) {
			bytes->failed = true;
			return NULL;
		}
		bytes->data = data;
		bytes->room = room;
	}
	bytes->size += size;
	return bytes->data + bytes->size - size;
}

void tly_bytes_put(struct tly_bytes *bytes, const void *data, size_t size)
{
	void *p = tly_bytes_add(bytes, size);

	if (p && size)
		memcpy(p, data, size);
}

void tly_bytes_u32(struct tly_bytes *bytes, uint32_t value)
{
	tly_bytes_put(bytes, &value, sizeof(value));
}

void tly_bytes_u64(struct tly_bytes *bytes, uint64_t value)
{
	tly_bytes_put(bytes, &value, sizeof(value));
}

static void put_zeros(struct tly_bytes *bytes, size_t size)
{
	void *p = tly_bytes_add(bytes, size);

	if (p && size)
		memset(p, 0, size);
}

void tly_bytes_align(struct tly_bytes *bytes, size_t to)
{
	put_zeros(bytes, -bytes->size & (to - 1));
}

void tly_bytes_string(struct tly_bytes *bytes, const char *string)
{
	size_t size = strlen(string) + 1;
	size_t padding = -size & (STRING_ALIGN - 1);

	tly_bytes_u32(bytes, (uint32_t)(size + padding));
	tly_bytes_put(bytes, string, size);
	put_zeros(bytes, padding);
}

int tly_bytes_file(struct tly_bytes *bytes, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		const size_t step = 4096;
		void *p = tly_bytes_add(bytes, step);

		if (!p) {
			n = -ENOMEM;
			break;
		}
		n = read(fd, p, step);
		if (n < 0)
			n = -errno;
		bytes->size -= step - (n > 0 ? (size_t)n : 0);
	} while (n > 0 || n == -EINTR);
	close(fd);
	return (int)n;
}

size_t tly_bytes_begin_record(struct tly_bytes *bytes, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};
	size_t start = bytes->size;

	tly_bytes_put(bytes, &header, sizeof(header));
	return start;
}

bool tly_bytes_end_record(struct tly_bytes *bytes, size_t start)
{
	size_t size = bytes->size - start;
	uint16_t field;

	put_zeros(bytes, -size & 7);
	if (bytes->failed)
		return true;
	size = bytes->size - start;
	field = (uint16_t)size;
	if (field != size) {
		bytes->size = start;
		return false;
	}
	memcpy(bytes->data + start + offsetof(struct perf_event_header, size), &field,
	       sizeof(field));
	return true;
}
