/* SPDX-License-Identifier: MIT */
/*
 * Memory for the tool's own tables. A tool that runs out of it can only say so and stop, so none of
 * these return NULL: they end the process with a message instead.
 */
#ifndef TOOL_MEMORY_H
#define TOOL_MEMORY_H

#include <stddef.h>

/* @nr zeroed elements of @size bytes. */
void *tool_alloc(size_t nr, size_t size);

/* @array with room for at least @nr elements: doubled as needed, *@room says how many fit now. */
void *tool_grow(void *array, size_t *room, size_t nr, size_t size);

/* A terminated copy of @length bytes. */
char *tool_copy(const char *text, size_t length);

#endif
