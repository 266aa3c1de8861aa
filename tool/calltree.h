/* SPDX-License-Identifier: MIT */
/* Call chains merged into a tree of functions, for one row of a report. */
#ifndef TOOL_CALLTREE_H
#define TOOL_CALLTREE_H

#include <stddef.h>
#include <stdint.h>

#include "tool/profile.h"

struct calltree;

#define CALLTREE_ROOT 0

struct calltree_node {
	uint32_t function;	    /* as places_function() numbers them; of the root meaningless */
	uint64_t self, total;	    /* periods: of chains that end here, of those that come by */
	uint64_t self_nr, total_nr; /* samples */
	uint32_t child, next;	    /* the first child and the next sibling, 0: none */
};

enum calltree_order {
	CALLTREE_CALLERS, /* below a function who called it */
	CALLTREE_CALLEES, /* below a function what it called */
};

struct calltree *calltree_new(void);
void calltree_free(struct calltree *tree);

/* Adds a path of @nr functions from the root down. */
void calltree_add(struct calltree *tree, const uint32_t *functions, size_t nr, uint64_t period,
		  uint64_t samples);
/* After the last add: children in order, the greatest first. */
void calltree_sort(struct calltree *tree, const struct places *places);

const struct calltree_node *calltree_node(const struct calltree *tree, uint32_t node);

/*
 * The tree of a row of a table made with TABLE_USES. Begins with the row's function, or, when
 * @whole, with the outermost callers (CALLTREE_CALLEES of a table without children). Nodes with a
 * total below @least have nothing below them.
 */
struct calltree *calltree_of_row(struct profile *profile, const struct table *table,
				 const struct row *row, enum calltree_order order, bool whole,
				 uint64_t least);

#endif
