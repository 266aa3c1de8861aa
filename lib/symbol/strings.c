// SPDX-License-Identifier: MIT
#include "lib/symbol/strings.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)64 * 1024)

struct tly_strings_block {
	struct tly_strings_block *next;
	char text[];
};

void tly_strings_free(struct tly_strings *strings)
{
	struct tly_strings_block *block, *next;

	for (block = strings->block; block; block = next) {
		next = block->next;
		free(block);
	}
	free(strings->table);
	memset(strings, 0, sizeof(*strings));
}

const char *tly_strings_add(struct tly_strings *strings, const char *text, size_t len)
{
	struct tly_strings_block *block;
	char *copy;

	if (len >= SIZE_MAX / 2)
		return NULL;
	if (len + 1 > strings->left) {
		size_t size = len + 1 > BLOCK_SIZE / 8 ? len + 1 : BLOCK_SIZE;

		block = malloc(sizeof(*block) + size);
		if (!block)
			return NULL;
		if (size != BLOCK_SIZE && strings->block) {
			/* A block of its own, so that what is left of the current one is not lost.
			 */
			block->next = strings->block->next;
			strings->block->next = block;
			copy = block->text;
			goto store;
		}
		block->next = strings->block;
		strings->block = block;
		strings->left = size;
	}
	/* Blocks are filled from the end: one counter says where. */
	copy = strings->block->text + strings->left - (len + 1);
	strings->left -= len + 1;
store:
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

static size_t hash_string(const char *text)
{
	size_t hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash ^ hash >> 32;
}

static int grow(struct tly_strings *strings)
{
	size_t size = strings->size ? strings->size * 2 : 256;
	const char **table = calloc(size, sizeof(*table));

	if (!table)
		return -1;
	for (size_t i = 0; i < strings->size; i++) {
		size_t slot;

		if (!strings->table[i])
			continue;
		slot = hash_string(strings->table[i]) & (size - 1);
		while (table[slot])
			slot = (slot + 1) & (size - 1);
		table[slot] = strings->table[i];
	}
	free(strings->table);
	strings->table = table;
	strings->size = size;
	return 0;
}

const char *tly_strings_intern(struct tly_strings *strings, const char *text)
{
	size_t slot;

	if (strings->nr * 2 >= strings->size && grow(strings))
		return NULL;
	slot = hash_string(text) & (strings->size - 1);
	for (; strings->table[slot]; slot = (slot + 1) & (strings->size - 1)) {
		if (!strcmp(strings->table[slot], text))
			return strings->table[slot];
	}
	strings->table[slot] = tly_strings_add(strings, text, strlen(text));
	if (strings->table[slot])
		strings->nr++;
	return strings->table[slot];
}
