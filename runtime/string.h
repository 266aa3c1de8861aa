/* SPDX-License-Identifier: MIT */
/*
 * What the compiler wants of a C library, and the little more that the runtime uses of one.
 */
#ifndef RUNTIME_STRING_H
#define RUNTIME_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);

size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t size);
/* The last @c in @text, or NULL. */
char *strrchr(const char *text, int c);

#endif
