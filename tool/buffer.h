/* SPDX-License-Identifier: MIT */
/*
 * Output put together by hand in one block of memory and written in large pieces: a million samples
 * are tens of millions of fields, and a printf for each would be most of the time.
 */
#ifndef TOOL_BUFFER_H
#define TOOL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts zeroed but for fd: -1 keeps everything in memory. */
struct buffer {
	char *data;
	size_t size, room;
	int fd;
	int error; /* negative errno of the first write that failed; what follows is dropped */
};

/* Writes out what a descriptor still has to get. Returns buffer->error. */
int buffer_flush(struct buffer *buffer);
void buffer_free(struct buffer *buffer);

void buffer_bytes(struct buffer *buffer, const void *bytes, size_t size);
void buffer_text(struct buffer *buffer, const char *text);
void buffer_char(struct buffer *buffer, char c);
void buffer_repeat(struct buffer *buffer, char c, size_t times);
/* @text in a field of @width columns: to its left, or to its right when @width is negative. */
void buffer_field(struct buffer *buffer, const char *text, int width);
/* Right-aligned in @width, filled up with @fill. */
void buffer_decimal(struct buffer *buffer, uint64_t value, int width, char fill);
void buffer_hex(struct buffer *buffer, uint64_t value, int width, char fill);
/* 12,345,678 */
void buffer_grouped(struct buffer *buffer, uint64_t value);
/* 12.34 for 1234 of 10000: @part of @whole in per cent with two digits, in @width columns. */
void buffer_percent(struct buffer *buffer, uint64_t part, uint64_t whole, int width);
/* A JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD. */
void buffer_json(struct buffer *buffer, const char *text);
void buffer_printf(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
