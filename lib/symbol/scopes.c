// SPDX-License-Identifier: MIT
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/symbol/source.h"

/* Deeper nesting than compilers write is not followed. */
#define MAX_DEPTH 256

void tly_scopes_free(struct tly_scopes *scopes)
{
	free(scopes->scopes);
	free(scopes->spans);
	memset(scopes, 0, sizeof(*scopes));
}

static int add_span(struct tly_scopes *scopes, uint64_t low, uint64_t high, uint32_t scope)
{
	/* What the linker threw away was left at address 0, or at the top of the address space. */
	if (!low || low >= high)
		return 0;
	if (scopes->nr_spans == scopes->size_spans) {
		size_t size = scopes->size_spans ? scopes->size_spans * 2 : 64;
		struct tly_span *spans = reallocarray(scopes->spans, size, sizeof(*spans));

		if (!spans)
			return -ENOMEM;
		scopes->spans = spans;
		scopes->size_spans = size;
	}
	scopes->spans[scopes->nr_spans++] = (struct tly_span){low, high, scope, TLY_NO_SCOPE};
	return 0;
}

static uint32_t constant(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) ||
	    value > UINT32_MAX)
		return 0;
	return value;
}

/* Adds the function with all its ranges; *index is its scope, TLY_NO_SCOPE when it has no code. */
static int add_scope(struct tly_scopes *scopes, Dwarf_Die *die, uint32_t parent, uint32_t *index)
{
	Dwarf_Addr base, low, high;
	size_t before = scopes->nr_spans;
	ptrdiff_t at = 0;

	*index = TLY_NO_SCOPE;
	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (add_span(scopes, low, high, scopes->nr_scopes))
			return -ENOMEM;
	}
	if (scopes->nr_spans == before || scopes->nr_scopes == TLY_NO_SCOPE)
		return 0;
	if (scopes->nr_scopes == scopes->size_scopes) {
		size_t size = scopes->size_scopes ? scopes->size_scopes * 2 : 64;
		struct tly_scope *grown = reallocarray(scopes->scopes, size, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		scopes->scopes = grown;
		scopes->size_scopes = size;
	}
	*index = scopes->nr_scopes++;
	scopes->scopes[*index] = (struct tly_scope){
		.die = dwarf_dieoffset(die),
		.parent = parent,
		.call_file = constant(die, DW_AT_call_file),
		.call_line = constant(die, DW_AT_call_line),
	};
	return 0;
}

static int walk(struct tly_scopes *scopes, Dwarf_Die *parent_die, uint32_t parent, int depth)
{
	Dwarf_Die die;
	int ret;

	if (depth == MAX_DEPTH || dwarf_child(parent_die, &die))
		return 0;
	do {
		uint32_t inner = parent;

		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			ret = add_scope(scopes, &die, TLY_NO_SCOPE, &inner);
			if (ret)
				return ret;
			/* Below one without code is only what was inlined, described in general. */
			if (inner == TLY_NO_SCOPE)
				continue;
			break;
		case DW_TAG_inlined_subroutine:
			ret = add_scope(scopes, &die, parent, &inner);
			if (ret)
				return ret;
			if (inner == TLY_NO_SCOPE)
				inner = parent;
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
			break;
		default:
			continue;
		}
		ret = walk(scopes, &die, inner, depth + 1);
		if (ret)
			return ret;
	} while (!dwarf_siblingof(&die, &die));
	return 0;
}

static int compare_spans(const void *a, const void *b)
{
	const struct tly_span *left = a, *right = b;

	if (left->low != right->low)
		return left->low < right->low ? -1 : 1;
	if (left->high != right->high)
		return left->high > right->high ? -1 : 1;
	/* A scope is made after the one around it. */
	return (left->scope > right->scope) - (left->scope < right->scope);
}

int tly_scopes_read(struct tly_scopes *scopes, Dwarf_Die *unit)
{
	uint32_t open = TLY_NO_SCOPE;
	int ret = walk(scopes, unit, TLY_NO_SCOPE, 0);

	if (ret)
		return ret;
	if (scopes->nr_spans)
		qsort(scopes->spans, scopes->nr_spans, sizeof(*scopes->spans), compare_spans);
	for (size_t i = 0; i < scopes->nr_spans && i < TLY_NO_SCOPE; i++) {
		while (open != TLY_NO_SCOPE && scopes->spans[open].high <= scopes->spans[i].low)
			open = scopes->spans[open].outer;
		scopes->spans[i].outer = open;
		open = i;
	}
	return 0;
}

struct tly_scope *tly_scopes_find(const struct tly_scopes *scopes, uint64_t address)
{
	size_t low = 0, nr = scopes->nr_spans;
	uint32_t at;

	while (nr) {
		size_t half = nr / 2;

		if (scopes->spans[low + half].low <= address) {
			low += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	at = low ? low - 1 : TLY_NO_SCOPE;
	while (at != TLY_NO_SCOPE && scopes->spans[at].high <= address)
		at = scopes->spans[at].outer;
	return at == TLY_NO_SCOPE ? NULL : &scopes->scopes[scopes->spans[at].scope];
}
