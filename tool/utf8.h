/* SPDX-License-Identifier: MIT */
#ifndef TOOL_UTF8_H
#define TOOL_UTF8_H

#include <stddef.h>

/*
 * Length of the well-formed UTF-8 sequence at @s, or 0: neither overlong forms nor surrogates nor
 * what lies above U+10FFFF. Reads no further than the first byte that does not belong.
 */
size_t tool_utf8_length(const unsigned char *s);

#endif
