// SPDX-License-Identifier: MIT
#include "tool/buffer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/memory.h"
#include "tool/utf8.h"

#define WRITE_AT (256 * 1024)

static void write_out(struct buffer *buffer)
{
	size_t done = 0;

	while (done < buffer->size && !buffer->error) {
		ssize_t n = write(buffer->fd, buffer->data + done, buffer->size - done);

		if (n >= 0)
			done += n;
		else if (errno != EINTR)
			buffer->error = -errno;
	}
	buffer->size = 0;
}

int buffer_flush(struct buffer *buffer)
{
	if (buffer->fd >= 0)
		write_out(buffer);
	return buffer->error;
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){.fd = -1};
}

/* Room for @size more bytes, to be counted by the caller. */
static char *reserve(struct buffer *buffer, size_t size)
{
	if (buffer->fd >= 0 && buffer->size >= WRITE_AT)
		write_out(buffer);
	if (size > buffer->room - buffer->size)
		buffer->data = tool_grow(buffer->data, &buffer->room, buffer->size + size, 1);
	return buffer->data + buffer->size;
}

void buffer_bytes(struct buffer *buffer, const void *bytes, size_t size)
{
	if (!size)
		return;
	memcpy(reserve(buffer, size), bytes, size);
	buffer->size += size;
}

void buffer_text(struct buffer *buffer, const char *text)
{
	buffer_bytes(buffer, text, strlen(text));
}

void buffer_char(struct buffer *buffer, char c)
{
	*reserve(buffer, 1) = c;
	buffer->size++;
}

void buffer_repeat(struct buffer *buffer, char c, size_t times)
{
	memset(reserve(buffer, times), c, times);
	buffer->size += times;
}

void buffer_field(struct buffer *buffer, const char *text, int width)
{
	size_t columns = width < 0 ? -width : width;
	size_t length = strlen(text);
	size_t fill = columns > length ? columns - length : 0;

	if (width < 0)
		buffer_repeat(buffer, ' ', fill);
	buffer_bytes(buffer, text, length);
	if (width > 0)
		buffer_repeat(buffer, ' ', fill);
}

static void put_digits(struct buffer *buffer, const char *end, size_t nr, int width, char fill)
{
	size_t columns = width > 0 ? width : 0;

	if (columns > nr)
		buffer_repeat(buffer, fill, columns - nr);
	buffer_bytes(buffer, end - nr, nr);
}

void buffer_decimal(struct buffer *buffer, uint64_t value, int width, char fill)
{
	char digits[20], *end = digits + sizeof(digits);
	size_t nr = 0;

	do {
		end[-(ptrdiff_t)++nr] = '0' + value % 10;
		value /= 10;
	} while (value);
	put_digits(buffer, end, nr, width, fill);
}

void buffer_hex(struct buffer *buffer, uint64_t value, int width, char fill)
{
	char digits[16], *end = digits + sizeof(digits);
	size_t nr = 0;

	do {
		end[-(ptrdiff_t)++nr] = "0123456789abcdef"[value % 16];
		value /= 16;
	} while (value);
	put_digits(buffer, end, nr, width, fill);
}

void buffer_grouped(struct buffer *buffer, uint64_t value)
{
	char digits[27], *end = digits + sizeof(digits);
	size_t nr = 0, group = 0;

	do {
		if (group++ == 3) {
			end[-(ptrdiff_t)++nr] = ',';
			group = 1;
		}
		end[-(ptrdiff_t)++nr] = '0' + value % 10;
		value /= 10;
	} while (value);
	put_digits(buffer, end, nr, 0, ' ');
}

void buffer_percent(struct buffer *buffer, uint64_t part, uint64_t whole, int width)
{
	/* Hundredths of a per cent, rounded; 128 bits so that sums of periods cannot overflow. */
	unsigned __int128 scaled = (unsigned __int128)part * 10000 + whole / 2;
	uint64_t hundredths = whole ? (uint64_t)(scaled / whole) : 0;

	buffer_decimal(buffer, hundredths / 100, width - 3, ' ');
	buffer_char(buffer, '.');
	buffer_decimal(buffer, hundredths % 100, 2, '0');
}

void buffer_json(struct buffer *buffer, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	buffer_char(buffer, '"');
	while (*s) {
		const unsigned char *plain = s;

		while (*s >= 0x20 && *s < 0x7f && *s != '"' && *s != '\\')
			s++;
		buffer_bytes(buffer, plain, s - plain);
		if (!*s)
			break;
		if (*s == '"' || *s == '\\') {
			buffer_char(buffer, '\\');
			buffer_char(buffer, *s++);
		} else if (*s == '\n') {
			buffer_text(buffer, "\\n");
			s++;
		} else if (*s == '\t') {
			buffer_text(buffer, "\\t");
			s++;
		} else if (*s < 0x80) {
			buffer_text(buffer, "\\u");
			buffer_hex(buffer, *s++, 4, '0');
		} else {
			size_t length = tool_utf8_length(s);

			if (length)
				buffer_bytes(buffer, s, length);
			else
				buffer_text(buffer, "\xef\xbf\xbd");
			s += length ? length : 1;
		}
	}
	buffer_char(buffer, '"');
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
	va_list ap, again;
	int length;

	va_start(ap, format);
	va_copy(again, ap);
	length = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	if (length > 0) {
		vsnprintf(reserve(buffer, length + 1), length + 1, format, again);
		buffer->size += length;
	}
	va_end(again);
}
