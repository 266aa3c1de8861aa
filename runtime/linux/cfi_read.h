/* SPDX-License-Identifier: MIT */
/* Reading what .eh_frame is made of, from a copy of a piece of it. */
#ifndef RUNTIME_LINUX_CFI_READ_H
#define RUNTIME_LINUX_CFI_READ_H

#include <stdbool.h>
#include <stdint.h>

struct cursor {
	const uint8_t *at, *end;
	uint64_t address; /* of `end` in the program */
	bool bad;
	bool cut; /* the entry goes on behind `end` */
};

/* Where the program has what is read next. */
static inline uint64_t cursor_address(const struct cursor *c)
{
	return c->address - (uint64_t)(c->end - c->at);
}

/* Behind the end there are zeros, and it is bad. */
uint64_t cursor_get(struct cursor *c, unsigned int size);
uint64_t cursor_signed(struct cursor *c, unsigned int size);

/* LEB128 */
uint64_t cursor_uleb(struct cursor *c);
uint64_t cursor_sleb(struct cursor *c);

#endif
