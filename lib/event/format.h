/* SPDX-License-Identifier: MIT */
/* Where the bits of a unit's term lie in an attr: "config:0-7,21". */
#ifndef LIB_EVENT_FORMAT_H
#define LIB_EVENT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/* The bits of one attr.configN that a term sets, lowest first. */
struct tly_format {
	unsigned int config; /* N */
	uint64_t bits;
};

/* False when @text is malformed. */
bool tly_format_parse(const char *text, struct tly_format *format);

unsigned int tly_format_width(const struct tly_format *format);
/* Whether @value has no more bits than @format. */
bool tly_format_fits(const struct tly_format *format, uint64_t value);
/* @value spread over the bits of @format. */
uint64_t tly_format_spread(const struct tly_format *format, uint64_t value);

#endif
