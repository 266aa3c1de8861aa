// SPDX-License-Identifier: MIT
#include "tool/calltree.h"

#include <stdlib.h>
#include <string.h>

#include "tool/lookup.h"
#include "tool/memory.h"

/* So many children are looked through one by one, which is faster than a hash; more are hashed. */
#define FEW 8

struct link {
	uint32_t parent;
	uint32_t nr_children;
};

struct calltree {
	struct calltree_node *nodes;
	struct link *links; /* of the nodes */
	size_t nr, room, links_room;
	struct lookup lookup; /* the children of nodes that have more than a few */
};

static uint32_t hash_edge(uint32_t parent, uint32_t function)
{
	uint64_t word = (uint64_t)parent << 32 | function;

	return lookup_hash_words(0, &word, 1);
}

static uint32_t add_node(struct calltree *tree, uint32_t parent, uint32_t function)
{
	uint32_t index = tree->nr++;

	tree->nodes = tool_grow(tree->nodes, &tree->room, tree->nr, sizeof(*tree->nodes));
	tree->links = tool_grow(tree->links, &tree->links_room, tree->nr, sizeof(*tree->links));
	tree->nodes[index] = (struct calltree_node){.function = function};
	tree->links[index] = (struct link){.parent = parent};
	return index;
}

static uint32_t add_child(struct calltree *tree, uint32_t parent, uint32_t function)
{
	uint32_t index = add_node(tree, parent, function);

	tree->nodes[index].next = tree->nodes[parent].child;
	tree->nodes[parent].child = index;
	tree->links[parent].nr_children++;
	if (tree->links[parent].nr_children == FEW + 1)
		for (uint32_t c = index; c; c = tree->nodes[c].next)
			lookup_add(&tree->lookup, hash_edge(parent, tree->nodes[c].function), c);
	else if (tree->links[parent].nr_children > FEW)
		lookup_add(&tree->lookup, hash_edge(parent, function), index);
	return index;
}

struct calltree *calltree_new(void)
{
	struct calltree *tree = tool_alloc(1, sizeof(*tree));

	add_node(tree, 0, 0);
	return tree;
}

void calltree_free(struct calltree *tree)
{
	free(tree->nodes);
	free(tree->links);
	lookup_free(&tree->lookup);
	free(tree);
}

struct edge {
	uint32_t parent, function;
};

static bool edge_equal(const void *owner, uint32_t index, const void *key)
{
	const struct calltree *tree = owner;
	const struct edge *edge = key;

	return tree->links[index].parent == edge->parent &&
	       tree->nodes[index].function == edge->function;
}

static uint32_t find_child(struct calltree *tree, uint32_t parent, uint32_t function)
{
	struct edge edge = {parent, function};
	uint32_t index;

	if (tree->links[parent].nr_children > FEW) {
		index = lookup_find(&tree->lookup, hash_edge(parent, function), edge_equal, tree,
				    &edge);
		return index != LOOKUP_NONE ? index : add_child(tree, parent, function);
	}
	for (index = tree->nodes[parent].child; index; index = tree->nodes[index].next)
		if (tree->nodes[index].function == function)
			return index;
	return add_child(tree, parent, function);
}

void calltree_add(struct calltree *tree, const uint32_t *functions, size_t nr, uint64_t period,
		  uint64_t samples)
{
	uint32_t at = CALLTREE_ROOT;

	for (size_t i = 0;; i++) {
		tree->nodes[at].total += period;
		tree->nodes[at].total_nr += samples;
		if (i == nr)
			break;
		at = find_child(tree, at, functions[i]);
	}
	tree->nodes[at].self += period;
	tree->nodes[at].self_nr += samples;
}

struct order {
	const struct calltree *tree;
	const struct places *places;
};

static int compare(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	const struct calltree_node *x = &order->tree->nodes[*(const uint32_t *)a];
	const struct calltree_node *y = &order->tree->nodes[*(const uint32_t *)b];
	int difference;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	difference = strcmp(places_function(order->places, x->function)->name,
			    places_function(order->places, y->function)->name);
	return difference ? difference : x->function < y->function ? -1 : 1;
}

void calltree_sort(struct calltree *tree, const struct places *places)
{
	struct order order = {tree, places};
	uint32_t *children = NULL;
	size_t room = 0;

	for (size_t i = 0; i < tree->nr; i++) {
		struct calltree_node *node = &tree->nodes[i];
		size_t nr = 0;

		for (uint32_t child = node->child; child; child = tree->nodes[child].next) {
			children = tool_grow(children, &room, nr + 1, sizeof(*children));
			children[nr++] = child;
		}
		if (nr < 2)
			continue;
		qsort_r(children, nr, sizeof(*children), compare, &order);
		node->child = children[0];
		for (size_t j = 0; j < nr; j++)
			tree->nodes[children[j]].next = j + 1 < nr ? children[j + 1] : 0;
	}
	free(children);
}

const struct calltree_node *calltree_node(const struct calltree *tree, uint32_t node)
{
	return &tree->nodes[node];
}

/* A chain on its way down the tree: the frames that it still has to go, and how far it is. */
struct walk {
	const uint32_t *frames;
	uint32_t left;
	uint32_t at; /* node */
	uint64_t period, samples;
};

static struct walk start_walk(struct profile *profile, const struct use *use,
			      enum calltree_order order, bool whole)
{
	struct bucket_view bucket = profile_bucket(profile, use->bucket);
	struct walk walk = {
		.at = CALLTREE_ROOT, .period = bucket.period, .samples = bucket.samples};

	if (order == CALLTREE_CALLERS) {
		walk.frames = bucket.frames + use->frame;
		walk.left = bucket.nr_frames - use->frame;
	} else {
		walk.frames = bucket.frames;
		walk.left = whole ? bucket.nr_frames : use->frame + 1;
		if (walk.left > bucket.nr_frames)
			walk.left = bucket.nr_frames;
	}
	return walk;
}

/* Callers lie behind a frame, what it called lies before it. */
static uint32_t next_frame(struct walk *walk, enum calltree_order order)
{
	walk->left--;
	return order == CALLTREE_CALLERS ? *walk->frames++ : walk->frames[walk->left];
}

static void pass(struct calltree *tree, const struct walk *walk)
{
	struct calltree_node *node = &tree->nodes[walk->at];

	node->total += walk->period;
	node->total_nr += walk->samples;
	if (!walk->left) {
		node->self += walk->period;
		node->self_nr += walk->samples;
	}
}

/*
 * All chains go down a level at a time, so that a node's total is known before anything is added
 * below it: most of the chains of a large recording end in nodes too small to be shown, and the
 * greater part of their frames lies below those.
 */
struct calltree *calltree_of_row(struct profile *profile, const struct table *table,
				 const struct row *row, enum calltree_order order, bool whole,
				 uint64_t least)
{
	const struct places *places = profile_places(profile);
	struct calltree *tree = calltree_new();
	struct walk *walks = NULL;
	size_t room = 0, nr = 0;

	for (uint32_t u = row->first_use; u != NO_USE; u = table->uses[u].next) {
		walks = tool_grow(walks, &room, nr + 1, sizeof(*walks));
		walks[nr] = start_walk(profile, &table->uses[u], order, whole);
		pass(tree, &walks[nr++]);
	}
	while (nr) {
		size_t kept = 0;

		for (size_t i = 0; i < nr; i++) {
			struct walk *walk = &walks[i];

			if (!walk->left || tree->nodes[walk->at].total < least)
				continue;
			walks[kept++] = *walk;
		}
		nr = kept;
		for (size_t i = 0; i < nr; i++) {
			uint32_t frame = next_frame(&walks[i], order);

			walks[i].at = find_child(tree, walks[i].at,
						 places_frame(places, frame)->function);
			pass(tree, &walks[i]);
		}
	}
	free(walks);
	calltree_sort(tree, places);
	return tree;
}
