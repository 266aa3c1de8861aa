// SPDX-License-Identifier: MIT
#include "runtime/linux/cfi_read.h"

uint64_t cursor_get(struct cursor *c, unsigned int size)
{
	uint64_t value = 0;

	if ((uint64_t)(c->end - c->at) < size) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	for (unsigned int i = 0; i < size; i++)
		value |= (uint64_t)*c->at++ << 8 * i;
	return value;
}

static uint64_t sign(uint64_t value, unsigned int bits)
{
	return bits < 64 && value >> (bits - 1) & 1 ? value | ~0UL << bits : value;
}

uint64_t cursor_signed(struct cursor *c, unsigned int size)
{
	return sign(cursor_get(c, size), 8 * size);
}

static uint64_t leb(struct cursor *c, bool is_signed)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = cursor_get(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return is_signed ? sign(value, shift) : value;
}

uint64_t cursor_uleb(struct cursor *c)
{
	return leb(c, false);
}

uint64_t cursor_sleb(struct cursor *c)
{
	return leb(c, true);
}
