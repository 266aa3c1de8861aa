// SPDX-License-Identifier: MIT
/*
 * The string instructions are short, and fast on every processor of the last ten years for the
 * sizes that matter here. Loops in C would be turned back into calls of these very functions.
 */
#include "runtime/string.h"

#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	void *at = to;

	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
	return to;
}

void *memmove(void *to, const void *from, size_t size)
{
	if ((uintptr_t)to - (uintptr_t)from >= size)
		return memcpy(to, from, size);

	/* From the end: bytes until words are left, since this way no processor is quick with
	 * bytes. */
	char *at = (char *)to + size - 1;
	const char *last = (const char *)from + size - 1;
	size_t bytes = size % 8, words = size / 8;

	__asm__ volatile("std; rep movsb; sub $7, %0; sub $7, %1; mov %3, %2; rep movsq; cld"
			 : "+D"(at), "+S"(last), "+c"(bytes)
			 : "r"(words)
			 : "memory", "cc");
	return to;
}

void *memset(void *to, int byte, size_t size)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(byte) : "memory");
	return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
	const unsigned char *p = a, *q = b;

	for (; size; p++, q++, size--)
		if (*p != *q)
			return *p < *q ? -1 : 1;
	return 0;
}

size_t strlen(const char *text)
{
	const char *end = text;

	/* Told apart from a loop that the compiler would replace by a call of strlen(). */
	while (*(const volatile char *)end)
		end++;
	return (size_t)(end - text);
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t size)
{
	for (; size; a++, b++, size--) {
		if (*a != *b)
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		if (!*a)
			break;
	}
	return 0;
}

char *strrchr(const char *text, int c)
{
	const char *found = NULL;

	for (;; text++) {
		if (*text == (char)c)
			found = text;
		if (!*text)
			return (char *)found;
	}
}
