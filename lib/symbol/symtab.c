// SPDX-License-Identifier: MIT
#include "lib/symbol/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How far back a search goes for a symbol that encloses the ones after it. */
#define NESTING 16

/*
 * The most that a symbol without a size can cover: before a gap, as between the kernel and its
 * modules, and where nothing follows it.
 */
#define UNSIZED_MAX (1 << 20)
#define LAST_SIZE   4096

struct tly_raw_symbol {
	uint64_t start, end; /* end 0: unknown */
	const char *name;
	uint32_t order;
	uint8_t binding;
};

void tly_symtab_free(struct tly_symtab *symtab)
{
	free(symtab->symbols);
	free(symtab->demangled);
	free(symtab->raw);
	memset(symtab, 0, sizeof(*symtab));
}

int tly_symtab_add(struct tly_symtab *symtab, uint64_t start, uint64_t size, const char *name,
		   enum tly_binding binding)
{
	struct tly_raw_symbol *raw;
	uint64_t end = 0;

	if (size && __builtin_add_overflow(start, size, &end))
		end = UINT64_MAX;
	if (symtab->nr_raw == symtab->size_raw) {
		size_t wanted = symtab->size_raw ? symtab->size_raw * 2 : 256;

		raw = reallocarray(symtab->raw, wanted, sizeof(*raw));
		if (!raw || wanted > UINT32_MAX) {
			if (raw)
				symtab->raw = raw;
			return -ENOMEM;
		}
		symtab->raw = raw;
		symtab->size_raw = wanted;
	}
	symtab->raw[symtab->nr_raw] = (struct tly_raw_symbol){
		.start = start,
		.end = end,
		.name = name,
		.order = symtab->nr_raw,
		.binding = binding,
	};
	symtab->nr_raw++;
	return 0;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/* "cfree@GLIBC_2.2.5": kept for old programs only. The version that counts has two signs. */
static bool is_superseded(const char *name)
{
	const char *sign = strchr(name, '@');

	return sign && sign[1] != '@';
}

/* Without "@@GLIBC_2.34": that it is the version that counts goes without saying. */
static size_t length_without_version(const char *name)
{
	const char *signs = strstr(name, "@@");

	return signs && signs != name ? (size_t)(signs - name) : strlen(name);
}

/* Negative when @a is the better name for one address; never 0 for different symbols. */
static int compare_names(const struct tly_raw_symbol *a, const struct tly_raw_symbol *b)
{
	size_t left, right;

	if (!a->end != !b->end)
		return a->end ? -1 : 1;
	/* A local name is less telling than a global one, a weak one may be a mere default. */
	if (a->binding != b->binding)
		return (int)b->binding - (int)a->binding;
	left = is_superseded(a->name);
	right = is_superseded(b->name);
	if (left != right)
		return left < right ? -1 : 1;
	left = underscores(a->name);
	right = underscores(b->name);
	if (left != right)
		return left < right ? -1 : 1;
	/* Entries of one system call may share their code: it goes by the native one. */
	left = !strncmp(a->name, "__ia32_", 7);
	right = !strncmp(b->name, "__ia32_", 7);
	if (left != right)
		return left < right ? -1 : 1;
	left = strlen(a->name);
	right = strlen(b->name);
	if (left != right)
		return left > right ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static int compare_raw(const void *left, const void *right)
{
	const struct tly_raw_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return compare_names(a, b);
}

static int compare_jit(const void *left, const void *right)
{
	const struct tly_raw_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order > b->order ? -1 : 1;
}

/* Keeps the first of each address, and no label within a function that has a size. */
static size_t drop_aliases(struct tly_raw_symbol *raw, size_t nr)
{
	uint64_t covered = 0;
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++) {
		if (kept && raw[kept - 1].start == raw[i].start)
			continue;
		if (raw[i].binding == TLY_LABEL && raw[i].start < covered)
			continue;
		if (raw[i].end > covered)
			covered = raw[i].end;
		raw[kept++] = raw[i];
	}
	return kept;
}

/* Moves what was kept of raw into the final array and copies the names. */
static int settle(struct tly_symtab *symtab, struct tly_strings *strings, bool versioned)
{
	size_t nr = symtab->nr_raw;

	symtab->symbols = reallocarray(NULL, nr ? nr : 1, sizeof(*symtab->symbols));
	symtab->demangled = calloc(nr / 8 + 1, 1);
	if (!symtab->symbols || !symtab->demangled)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct tly_raw_symbol *raw = &symtab->raw[i];
		struct tally_symbol *symbol = &symtab->symbols[i];

		symbol->start = raw->start;
		symbol->end = raw->end;
		symbol->name = tly_strings_add(strings, raw->name,
					       versioned ? length_without_version(raw->name)
							 : strlen(raw->name));
		if (!symbol->name)
			return -ENOMEM;
	}
	symtab->nr = nr;
	free(symtab->raw);
	symtab->raw = NULL;
	symtab->nr_raw = symtab->size_raw = 0;
	return 0;
}

int tly_symtab_finish(struct tly_symtab *symtab, struct tly_strings *strings)
{
	struct tly_raw_symbol *raw = symtab->raw;
	uint64_t limit;

	if (symtab->nr_raw)
		qsort(raw, symtab->nr_raw, sizeof(*raw), compare_raw);
	symtab->nr_raw = drop_aliases(raw, symtab->nr_raw);
	for (size_t i = 0; i < symtab->nr_raw; i++) {
		if (raw[i].end)
			continue;
		limit = i + 1 < symtab->nr_raw ? UNSIZED_MAX : LAST_SIZE;
		if (i + 1 < symtab->nr_raw && raw[i + 1].start - raw[i].start < limit)
			limit = raw[i + 1].start - raw[i].start;
		if (__builtin_add_overflow(raw[i].start, limit, &raw[i].end))
			raw[i].end = UINT64_MAX;
	}
	return settle(symtab, strings, true);
}

int tly_symtab_finish_jit(struct tly_symtab *symtab, struct tly_strings *strings)
{
	struct tly_raw_symbol *raw = symtab->raw;
	size_t nr = 0;

	if (symtab->nr_raw)
		qsort(raw, symtab->nr_raw, sizeof(*raw), compare_jit);
	for (size_t i = 0; i < symtab->nr_raw; i++) {
		/*
		 * Code is overwritten by the code that a JIT puts there later: what begins within
		 * newer code is gone, of what begins before it the head may still be met.
		 */
		if (nr && raw[nr - 1].end > raw[i].start) {
			if (raw[nr - 1].order > raw[i].order)
				continue;
			raw[nr - 1].end = raw[i].start;
		}
		raw[nr++] = raw[i];
	}
	symtab->nr_raw = nr;
	return settle(symtab, strings, false);
}

static void demangle(struct tly_symtab *symtab, size_t index, struct tly_strings *strings)
{
	struct tally_symbol *symbol = &symtab->symbols[index];
	const char *copy;
	char *text;

	symtab->demangled[index / 8] |= 1 << index % 8;
	text = tly_demangle(symbol->name);
	if (!text)
		return;
	copy = tly_strings_add(strings, text, strlen(text));
	if (copy)
		symbol->name = copy;
	free(text);
}

const struct tally_symbol *tly_symtab_find(struct tly_symtab *symtab, uint64_t address,
					   struct tly_strings *strings, bool demangled)
{
	const struct tally_symbol *symbols = symtab->symbols;
	size_t low = 0, nr = symtab->nr;

	/* The first symbol that starts above the address. */
	while (nr) {
		size_t half = nr / 2;

		if (symbols[low + half].start <= address) {
			low += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	for (size_t i = 0; i < NESTING && low; i++) {
		low--;
		if (address >= symbols[low].end)
			continue;
		if (demangled && !(symtab->demangled[low / 8] & 1 << low % 8))
			demangle(symtab, low, strings);
		return &symbols[low];
	}
	return NULL;
}

bool tly_symtab_by_name(const struct tly_symtab *symtab, const char *name, uint64_t *start)
{
	for (size_t i = 0; i < symtab->nr_raw; i++) {
		if (!strcmp(symtab->raw[i].name, name)) {
			*start = symtab->raw[i].start;
			return true;
		}
	}
	return false;
}
