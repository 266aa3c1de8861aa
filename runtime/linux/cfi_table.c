// SPDX-License-Identifier: MIT
/*
 * The table of functions that .eh_frame_hdr would be, for files without one: gcc has the linker
 * leave it out of programs that are linked statically.
 */
#include "runtime/linux/cfi.h"
#include "runtime/linux/copy.h"

struct walk {
	uint64_t at, end;
};

/* The next entry about a function, passing those that several have in common; 0: none. */
static uint64_t next_entry(struct walk *w)
{
	while (w->end - w->at >= 8) {
		const uint64_t entry = w->at;
		uint32_t words[2]; /* its length, and how far back that is which it has in common */

		if (copy_in(words, entry, sizeof(words)) || words[0] > w->end - entry - 4)
			break;
		w->at += 4 + words[0];
		if (words[0] >= 4 && words[1])
			return entry;
	}
	return 0;
}

uint32_t cfi_count(uint64_t frames, uint64_t size)
{
	struct walk w = {frames, frames + size};
	uint32_t nr = 0;

	while (next_entry(&w))
		nr++;
	return nr;
}

/* Lets functions[at] sink to where none below it in the heap comes later. */
static void sink(struct cfi_function *functions, uint32_t at, uint32_t nr)
{
	const struct cfi_function function = functions[at];
	uint32_t below;

	while ((below = 2 * at + 1) < nr) {
		if (below + 1 < nr && functions[below + 1].first > functions[below].first)
			below++;
		if (functions[below].first <= function.first)
			break;
		functions[at] = functions[below];
		at = below;
	}
	functions[at] = function;
}

static void sort(struct cfi_function *functions, uint32_t nr)
{
	for (uint32_t at = nr / 2; at--;)
		sink(functions, at, nr);
	while (nr-- > 1) {
		const struct cfi_function last = functions[0];

		functions[0] = functions[nr];
		functions[nr] = last;
		sink(functions, 0, nr);
	}
}

static bool fits(int64_t offset)
{
	return offset == (int32_t)offset;
}

void cfi_make_table(struct cfi_table *table, uint64_t frames, uint64_t size,
		    struct cfi_function *functions, uint32_t most)
{
	struct walk w = {frames, frames + size};
	uint64_t entry, first;

	*table = (struct cfi_table){.base = frames, .functions = (uint64_t)functions};
	while (table->nr < most && (entry = next_entry(&w))) {
		if (!cfi_first(table, entry, &first) || !fits((int64_t)(first - frames)) ||
		    !fits((int64_t)(entry - frames)))
			continue;
		functions[table->nr++] = (struct cfi_function){
			.first = (int32_t)(first - frames),
			.entry = (int32_t)(entry - frames),
		};
	}
	sort(functions, table->nr);
}
