/* SPDX-License-Identifier: MIT */
/*
 * The functions of one file, sorted by address. Filled once, then only searched; names are
 * demangled when they are first found, since most of a large file's never are.
 */
#ifndef LIB_SYMBOL_SYMTAB_H
#define LIB_SYMBOL_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/symbol.h>

#include "lib/symbol/strings.h"

/* How strongly a name claims an address that several names share; higher wins. */
enum tly_binding {
	TLY_LABEL, /* an untyped mark in the code */
	TLY_LOCAL,
	TLY_WEAK,
	TLY_GLOBAL,
};

struct tly_symtab {
	struct tally_symbol *symbols; /* sorted by start */
	uint8_t *demangled;	      /* a bit each */
	size_t nr;
	struct tly_raw_symbol *raw; /* while it is filled */
	size_t nr_raw, size_raw;
};

void tly_symtab_free(struct tly_symtab *symtab);

/*
 * @name must stay valid until tly_symtab_finish(). A @size of 0 means unknown: up to the next one.
 * Returns 0 or -ENOMEM.
 */
int tly_symtab_add(struct tly_symtab *symtab, uint64_t start, uint64_t size, const char *name,
		   enum tly_binding binding);

/*
 * Sorts, drops all but the best name of each address, gives every symbol an end and copies the
 * names that are left into @strings. Returns 0 or -ENOMEM.
 */
int tly_symtab_finish(struct tly_symtab *symtab, struct tly_strings *strings);

/*
 * As tly_symtab_finish(), for a JIT's map: what was added later overwrites what it overlaps.
 */
int tly_symtab_finish_jit(struct tly_symtab *symtab, struct tly_strings *strings);

/* The symbol that covers @address, or NULL. @demangle: its name is demangled into @strings. */
const struct tally_symbol *tly_symtab_find(struct tly_symtab *symtab, uint64_t address,
					   struct tly_strings *strings, bool demangle);
/* Before tly_symtab_finish(), which may drop it for an alias; false when there is none. */
bool tly_symtab_by_name(const struct tly_symtab *symtab, const char *name, uint64_t *start);

/* C++ and Rust names made readable, without parameters; NULL when @name is neither. To be freed. */
char *tly_demangle(const char *name);

#endif
