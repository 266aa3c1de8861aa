/* SPDX-License-Identifier: MIT */
/* The build-id of an ELF file: the note by which two copies of it are known to be the same. */
#ifndef LIB_SYMBOL_BUILD_ID_H
#define LIB_SYMBOL_BUILD_ID_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLY_BUILD_ID_MAX 20

struct tly_build_id {
	uint8_t size; /* 0: none */
	uint8_t bytes[TLY_BUILD_ID_MAX];
};

static inline bool tly_build_id_equal(const struct tly_build_id *a, const struct tly_build_id *b)
{
	return a->size == b->size && !__builtin_memcmp(a->bytes, b->bytes, a->size);
}

#define TLY_BUILD_ID_TEXT (2 * TLY_BUILD_ID_MAX + 1)

/* In hexadecimal; "" for none. */
void tly_build_id_format(const struct tly_build_id *id, char text[TLY_BUILD_ID_TEXT]);

void tly_build_id_of_elf(Elf *elf, struct tly_build_id *build_id);

/* See tally_build_id_read(). */
void tly_build_id_read(const char *path, struct tly_build_id *build_id);

#endif
