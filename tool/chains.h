/* SPDX-License-Identifier: MIT */
/*
 * Call chains, each kept once. A program has far fewer chains than samples, and chains of one
 * address space are equal when their words are: so a sample costs one hash of its words, and names
 * are looked up for new chains alone.
 */
#ifndef TOOL_CHAINS_H
#define TOOL_CHAINS_H

#include <stddef.h>
#include <stdint.h>

#include "tool/session.h"

struct chains;

struct chains *chains_new(struct session *session);
void chains_free(struct chains *chains);

/* The number of the chain @words of @item, as session_stack() gave them. */
uint32_t chains_find(struct chains *chains, const struct session_item *item, const uint64_t *words,
		     size_t nr);

/*
 * After the last chains_find(): the frames of a chain, as places_frame() numbers them, leaf first,
 * inlined calls included. *@leaf is how many belong to the leaf's address.
 */
const uint32_t *chains_frames(struct chains *chains, uint32_t chain, size_t *nr, size_t *leaf);

/*
 * Whether a frame lies in no mapping at all. Walking the stack of code that keeps no frame pointers
 * leads to such; a chain has at most one in a row.
 */
bool chains_is_stray(const struct places *places, uint32_t frame);

#endif
