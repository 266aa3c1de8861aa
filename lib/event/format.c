// SPDX-License-Identifier: MIT
#include "lib/event/format.h"

#include <ctype.h>
#include <string.h>

static bool take_bit(const char **cursor, unsigned int *bit)
{
	if (!isdigit((unsigned char)**cursor))
		return false;
	*bit = 0;
	for (; isdigit((unsigned char)**cursor); ++*cursor) {
		*bit = 10 * *bit + (**cursor - '0');
		if (*bit > 63)
			return false;
	}
	return true;
}

bool tly_format_parse(const char *text, struct tly_format *format)
{
	unsigned int first, last;

	*format = (struct tly_format){0};
	if (strncmp(text, "config", strlen("config")))
		return false;
	text += strlen("config");
	if (isdigit((unsigned char)*text))
		format->config = *text++ - '0';
	if (*text != ':')
		return false;
	do {
		text++;
		if (!take_bit(&text, &first))
			return false;
		last = first;
		if (*text == '-') {
			text++;
			if (!take_bit(&text, &last) || last < first)
				return false;
		}
		format->bits |= UINT64_MAX >> (63 - last) & UINT64_MAX << first;
	} while (*text == ',');
	return !*text;
}

unsigned int tly_format_width(const struct tly_format *format)
{
	return __builtin_popcountll(format->bits);
}

bool tly_format_fits(const struct tly_format *format, uint64_t value)
{
	return tly_format_width(format) == 64 || value >> tly_format_width(format) == 0;
}

uint64_t tly_format_spread(const struct tly_format *format, uint64_t value)
{
	uint64_t spread = 0;

	for (uint64_t left = format->bits; left; left &= left - 1, value >>= 1)
		if (value & 1)
			spread |= left & -left;
	return spread;
}
