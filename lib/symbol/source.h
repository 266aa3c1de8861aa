/* SPDX-License-Identifier: MIT */
/* Source lines and inlined functions of one dso, from its DWARF. */
#ifndef LIB_SYMBOL_SOURCE_H
#define LIB_SYMBOL_SOURCE_H

#include <tally/symbol.h>

struct tly_source;

void tly_source_free(struct tly_source *source);

#endif
