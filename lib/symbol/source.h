/* SPDX-License-Identifier: MIT */
/* Source lines and inlined functions of one dso, from its DWARF. */
#ifndef LIB_SYMBOL_SOURCE_H
#define LIB_SYMBOL_SOURCE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/symbol.h>

struct tly_source;

void tly_source_free(struct tly_source *source);

/* A function of a compilation unit, or a copy of one that was inlined. */
struct tly_scope {
	Dwarf_Off die;
	const char *name;	       /* once it was asked for */
	uint32_t parent;	       /* the function it was inlined into; or TLY_NO_SCOPE */
	uint32_t call_file, call_line; /* inlined: where the call was */
	bool named;
};

#define TLY_NO_SCOPE UINT32_MAX

/* A range of addresses of a scope, which may have several. */
struct tly_span {
	uint64_t low, high;
	uint32_t scope;
	uint32_t outer; /* the nearest one before that it lies in; or TLY_NO_SCOPE */
};

/* The functions of one compilation unit, by address. */
struct tly_scopes {
	struct tly_scope *scopes;
	size_t nr_scopes, size_scopes;
	struct tly_span *spans; /* sorted: what encloses comes before what it encloses */
	size_t nr_spans, size_spans;
};

/* Walks the unit once. Returns 0 or -ENOMEM. */
int tly_scopes_read(struct tly_scopes *scopes, Dwarf_Die *unit);
void tly_scopes_free(struct tly_scopes *scopes);
/* The innermost scope at @address, or NULL. */
struct tly_scope *tly_scopes_find(const struct tly_scopes *scopes, uint64_t address);

#endif
