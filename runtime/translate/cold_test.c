// SPDX-License-Identifier: MIT
/* Code that runs once: what is remembered of it, beside its copy, is not to be much. */
#include "runtime/translate/translate_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/translate/caches.h"

enum { FUNCTIONS = 2000, FUNCTION = 16, CALL = 5, SIZE = (FUNCTION + CALL) * FUNCTIONS + 1 };

/* For each function, which has two blocks that can be entered and one exit, and for its call. */
enum { BYTES = 130 };

/* One function after the other, each with a condition in it, and one that calls all of them. */
static uint8_t *make_code(void)
{
	static const uint8_t function[FUNCTION] = {
		0x8d, 0x87, 0, 0, 0, 0, /* lea 0(%rdi), %eax */
		0xa8, 0x01,		/* test $1, %al */
		0x74, 0x02,		/* jz 1f */
		0xff, 0xc1,		/* inc %ecx */
		0x01, 0xc1,		/* 1: add %eax, %ecx */
		0xc3,			/* ret */
	};
	uint8_t *code = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	uint8_t *at = code + FUNCTION * FUNCTIONS;

	if (code == MAP_FAILED)
		return NULL;
	for (unsigned int n = 0; n < FUNCTIONS; n++) {
		const int32_t relative = (int32_t)(code + FUNCTION * n - (at + CALL));

		memcpy(code + FUNCTION * n, function, FUNCTION);
		*at = 0xe8;
		memcpy(at + 1, &relative, sizeof(relative));
		at += CALL;
	}
	*at = 0xc3;
	mprotect(code, SIZE, PROT_READ | PROT_EXEC);
	host_maps();
	return code;
}

static uint64_t bytes_of(const struct cache *cache)
{
	return cache->nr_fragments * sizeof(struct fragment) + cache->nr_kept +
	       cache->nr_entries * sizeof(struct entry) +
	       cache->nr_targets * (sizeof(struct target) + STUB_BYTES) +
	       cache->nr_exits * sizeof(struct exit);
}

bool is_small(uint64_t unused)
{
	const struct cache *cache = cache_number(0);
	const uint64_t before = bytes_of(cache);
	uint8_t *code = make_code();
	uint64_t each;

	(void)unused;
	if (!code)
		return false;
	host_call((void (*)(long))(code + FUNCTION * FUNCTIONS), 0);
	each = (bytes_of(cache) - before) / FUNCTIONS;
	translate_lock();
	translate_invalidate((uint64_t)code, (uint64_t)code + SIZE);
	translate_unlock();
	munmap(code, SIZE);
	host_maps();
	if (each > BYTES)
		printf("# %lu bytes for each function\n", each);
	return each <= BYTES;
}
