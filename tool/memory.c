// SPDX-License-Identifier: MIT
#include "tool/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/command.h"

static void *check(void *memory)
{
	if (!memory) {
		fputs("tally: out of memory\n", stderr);
		exit(TOOL_FAILED);
	}
	return memory;
}

void *tool_alloc(size_t nr, size_t size)
{
	return check(calloc(nr ? nr : 1, size));
}

void *tool_grow(void *array, size_t *room, size_t nr, size_t size)
{
	size_t wanted = *room ? *room : 16;

	if (nr <= *room)
		return array;
	while (wanted < nr)
		wanted = wanted > SIZE_MAX / 2 ? nr : wanted * 2;
	*room = wanted;
	return check(reallocarray(array, wanted, size));
}

char *tool_copy(const char *text, size_t length)
{
	char *copy = tool_alloc(length + 1, 1);

	return memcpy(copy, text, length);
}
