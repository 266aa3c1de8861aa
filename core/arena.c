// SPDX-License-Identifier: MIT
#include "core/arena.h"

#include <stddef.h>
#include <string.h>

#include "abi/source.h"

_Static_assert(sizeof(struct core_task) <= ARENA_PAGE - ARENA_TASK, "");

/*
 * Where the arena is mapped: first its threads alone, from which the runtime takes the pages that
 * GS points at, and later the whole. So a task may have two addresses.
 */
char *core_attached;
static char *threads;

static const uint32_t slots = ARENA_EVENTS_SIZE / sizeof(struct core_event);

void core_attach(void *at)
{
	if (!threads)
		threads = at;
	core_attached = at;
}

void core_setup(const struct core_settings *settings)
{
	core_tree()->settings = *settings;
	core_tree()->last_id = ABI_FIRST_ID;
	core_everybody()->everybody = true;
}

void core_set_clock(uint32_t mult, uint32_t shift)
{
	core_tree()->settings.tsc_shift = shift;
	__atomic_store_n(&core_tree()->settings.tsc_mult, mult, __ATOMIC_RELEASE);
}

uint32_t core_nr_events(void)
{
	return core_attached ? __atomic_load_n(&core_tree()->events, __ATOMIC_RELAXED) : 0;
}

uint32_t core_page(const struct core_task *task)
{
	uintptr_t in_arena = (uintptr_t)task - (uintptr_t)core_attached;
	uintptr_t in_threads = (uintptr_t)task - (uintptr_t)threads;

	return (uint32_t)((in_arena < ARENA_THREADS_SIZE ? in_arena : in_threads) / ARENA_PAGE);
}

/* A slot that was used before, or one that never was; index 0 is none. */
static struct core_event *take_slot(struct core_tree *tree)
{
	struct core_event *event = core_event_or_null(tree->spare);

	if (event) {
		tree->spare = event->next;
		return event;
	}
	if (tree->made + 1 >= slots)
		return NULL;
	return core_event(++tree->made);
}

struct core_event *core_event_make(void)
{
	struct core_tree *tree = core_tree();
	struct core_event *event = take_slot(tree);
	uint32_t generation;

	if (!event)
		return NULL;
	generation = event->generation + 1;
	/* But for the lock, which somebody may have who has seen the event before. */
	memset(event, 0, offsetof(struct core_event, forwarding));
	event->generation = generation;
	event->id = ++tree->last_id;
	__atomic_store_n(&tree->events, tree->events + 1, __ATOMIC_RELAXED);
	return event;
}

void core_event_free(struct core_event *event)
{
	struct core_tree *tree = core_tree();

	core_set_state(event, CORE_FREE);
	event->next = tree->spare;
	tree->spare = core_index(event);
	__atomic_store_n(&tree->events, tree->events - 1, __ATOMIC_RELAXED);
}
