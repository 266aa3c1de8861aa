// SPDX-License-Identifier: MIT
/*
 * Somebody is killed in the middle of a call, at any place, and somebody else goes on. The
 * one to be killed is a process that counts its own steps; the arena is shared and holds all there
 * is. So each call is begun again from the same memory, ends a little farther on each time, and
 * what then is left has to be whole, and to go away with those who live.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/fake_ring.h"
#include "core/lock.h"
#include "core/pages.h"
#include "core/repair.h"
#include "core/test_tree.h"
#include "core/views.h"

/* Pages: of who is killed, of who goes on, of a third, of one that is born. */
enum { VICTIM = FIRST_PAGE, HEIR = FIRST_PAGE + 1, OTHER, CHILD };

/* How many deaths of each call, about. */
enum { TRACE_TYPE = 1000, DEATHS = 150, STEPS_MAX = 1000000 };

static const struct core_rights rights = {.mlock = UINT64_MAX};

/* ---- memory, to begin with again ---- */

static const struct {
	uint64_t at, size;
} parts[] = {
	{0, (CHILD + 1) * ARENA_PAGE},
	{ARENA_EVENTS_AT, 64 * sizeof(struct core_event)},
	{ARENA_RINGS_AT, 16 * sizeof(struct core_ring)},
	{CORE_VIEWS_AT, 16 * sizeof(struct core_view)},
	{CORE_WATCHED_AT + CORE_WATCHED * sizeof(struct core_watched), 4096},
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static void *saved[PARTS];

static void save(void)
{
	for (unsigned int i = 0; i < PARTS; i++) {
		saved[i] = malloc(parts[i].size);
		assert_non_null(saved[i]);
		memcpy(saved[i], core_arena(parts[i].at), parts[i].size);
	}
}

static void restore(void)
{
	for (unsigned int i = 0; i < PARTS; i++)
		memcpy(core_arena(parts[i].at), saved[i], parts[i].size);
}

static void forget(void)
{
	for (unsigned int i = 0; i < PARTS; i++)
		free(saved[i]);
}

/* ---- whether all is whole ---- */

static uint32_t seen[64];

/* An index that is one, and in no other list of its kind. */
static struct core_event *once(uint32_t index, uint32_t kind)
{
	assert_in_range(index, 1, core_tree()->made);
	assert_false(seen[index] & kind);
	seen[index] |= kind;
	return core_event(index);
}

enum { OF_TASK = 1, OF_GROUP = 2, OF_EVENT = 4, OF_CREATOR = 8, OF_RING = 16, UNUSED = 32 };

static void check_task(uint32_t page)
{
	const struct core_task *task = core_task(page);

	for (uint32_t i = task->events; i; i = core_event(i)->next) {
		const struct core_event *event = once(i, OF_TASK);

		assert_int_not_equal(event->state, CORE_FREE);
		assert_int_not_equal(event->state, CORE_EXITED);
		assert_int_equal(event->task, page);
	}
	for (uint32_t i = task->created; i; i = core_event(i)->next_created) {
		assert_int_not_equal(once(i, OF_CREATOR)->state, CORE_FREE);
		assert_int_equal(core_event(i)->creator, page);
	}
}

static void check_event(uint32_t index)
{
	const struct core_event *event = core_event(index);
	uint32_t members = 0;

	for (uint32_t i = event->children; i; i = core_event(i)->next_child) {
		assert_int_equal(once(i, OF_EVENT)->parent, index);
		assert_int_not_equal(core_event(i)->state, CORE_FREE);
	}
	if (event->leader != index)
		return;
	for (uint32_t i = event->next_member; i; i = core_event(i)->next_member, members++)
		assert_int_equal(once(i, OF_GROUP)->leader, index);
	assert_int_equal(event->members, members);
}

static void check_membership(uint32_t index)
{
	const struct core_event *event = core_event(index);
	const bool of_task = event->state != CORE_EXITED;

	if (event->state == CORE_FREE) {
		assert_int_equal(seen[index], UNUSED);
		return;
	}
	assert_int_equal(!!(seen[index] & OF_TASK), of_task);
	assert_int_equal(!!(seen[index] & OF_GROUP), event->leader != index);
	assert_int_equal(!!(seen[index] & OF_EVENT), event->parent != 0);
	assert_int_equal(!!(seen[index] & OF_CREATOR), event->creator != 0);
	assert_int_equal(!!(seen[index] & OF_RING), event->ring != 0);
	assert_false(seen[index] & UNUSED);
	if (event->parent)
		assert_int_not_equal(core_event(event->parent)->state, CORE_FREE);
}

static void check_rings(void)
{
	for (uint32_t i = 1; i <= core_rings_made(); i++) {
		const struct core_ring *ring = core_ring(i);

		assert_true(ring->at || !ring->events);
		for (uint32_t e = ring->events; e; e = core_event(e)->ring_next)
			assert_int_equal(once(e, OF_RING)->ring, i);
		if (ring->at)
			assert_true(core_event(ring->shown)->maps);
	}
}

static void check_all(void)
{
	uint32_t events = 0;

	memset(seen, 0, sizeof(seen));
	check_task(0);
	for (uint32_t page = core_tree()->live; page; page = core_task(page)->next_live) {
		assert_true(core_task(page)->live);
		check_task(page);
	}
	check_rings();
	for (uint32_t i = 1; i <= core_tree()->made; i++)
		if (core_event(i)->state != CORE_FREE) {
			check_event(i);
			events++;
		}
	for (uint32_t i = core_tree()->spare; i; i = core_event(i)->next)
		assert_int_equal(once(i, UNUSED)->state, CORE_FREE);
	for (uint32_t i = 1; i <= core_tree()->made; i++)
		check_membership(i);
	assert_int_equal(core_tree()->events, events);
}

/* ---- the victim ---- */

typedef void call(void);

static bool stepping;
static unsigned int steps, steps_most;

/* The compiler calls it where each piece of code without branches begins. */
void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	if (stepping && steps++ == steps_most)
		_exit(0);
}

/* Has a child do @most steps of @what, where it ends without a word. Returns how many there were.
 */
static unsigned int die_in(call *what, unsigned int most)
{
	unsigned int *there = core_arena(ARENA_SIZE - ARENA_PAGE);
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		*there = most;
		steps_most = most;
		stepping = true;
		what();
		*there = steps;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return *there;
}

/* ---- who goes on ---- */

static uint32_t leader, member, everybodys, output, traced;
static int64_t first_pages;

/* The victim's end is seen, and all is taken back that the living have. */
static void go_on(void)
{
	fake.dead = core_task(VICTIM)->tid;
	fake.task = NULL;
	tree_run(HEIR);
	core_tree_lock();
	core_tree_unlock();
	check_all();
	core_task_exit(core_task(VICTIM));
	core_task_exit(core_task(CHILD));
	check_all();
	/* What it had mapped, and what nobody has any more. */
	core_views_end(FAKE_OWNER);
	for (uint32_t i = 1; i <= core_tree()->made; i++)
		if (core_event(i)->state != CORE_FREE && !core_event(i)->parent)
			tree_close(i);
	check_all();
	assert_int_equal(core_tree()->events, 0);
	assert_true(core_rings_made() < 16);
	for (uint32_t i = 1; i <= core_rings_made(); i++)
		assert_int_equal(core_ring(i)->at, 0);
	for (uint32_t i = 1; i <= core_rings_made(); i++)
		assert_int_equal(core_ring(i)->aux.size, 0);
	/* And it is as good as new. */
	{
		struct perf_event_attr attr = test_instructions();
		uint32_t event = tree_open(&attr, core_task(HEIR), -1, 0);

		tree_work(100);
		assert_int_equal(tree_value(event), 100);
		/* No page is lost. */
		assert_int_equal(fake_ring_map(event, 0, 3 * ARENA_PAGE, true, &rights),
				 first_pages);
		fake_ring_unmap(event);
		tree_close(event);
	}
	fake.dead = 0;
}

static void begin(void)
{
	struct perf_event_attr attr = test_instructions();

	tree_begin(0);
	tree_clone(HEIR, 0);
	tree_clone(OTHER, 0);
	attr.inherit = 1;
	attr.inherit_stat = 1;
	leader = tree_open(&attr, core_task(VICTIM), -1, 0);
	member = tree_open(&attr, core_task(VICTIM), -1, leader);
	attr = test_instructions();
	everybodys = tree_open(&attr, NULL, 0, 0);
	output = tree_open(&attr, core_task(VICTIM), 0, 0);
	first_pages = fake_ring_map(everybodys, 0, 3 * ARENA_PAGE, true, &rights);
	assert_true(first_pages > 0);
}

static void kill_all_the_way(call *prepare, call *what)
{
	unsigned int length, step;

	begin();
	if (prepare)
		prepare();
	save();
	length = die_in(what, STEPS_MAX);
	assert_in_range(length, 20, STEPS_MAX - 1);
	step = length / DEATHS + 1;
	for (unsigned int at = 0; at < length; at += step) {
		restore();
		if (die_in(what, at) < at)
			break; /* a step less than the first time */
		go_on();
		tree_run(VICTIM);
	}
	forget();
	tree_end();
}

static void open_one(void)
{
	struct perf_event_attr attr = test_instructions();

	attr.inherit = attr.inherit_stat = 1;
	tree_open(&attr, core_task(VICTIM), -1, leader);
}

static void open_for_all(void)
{
	struct perf_event_attr attr = test_instructions();

	tree_open(&attr, NULL, 0, 0);
}

static void have_child(void)
{
	tree_clone(CHILD, 0);
}

static void end_child(void)
{
	core_task_exit(core_task(CHILD));
}

static void end_self(void)
{
	core_task_exit(core_task(VICTIM));
}

static void close_leader(void)
{
	tree_close(leader);
}

static void close_for_all(void)
{
	fake_ring_unmap(everybodys);
	tree_close(everybodys);
}

static void close_mapped(void)
{
	tree_close(everybodys);
}

static void unmap(void)
{
	fake_ring_unmap(everybodys);
}

static void map(void)
{
	fake_ring_map(output, 0, 5 * ARENA_PAGE, true, &rights);
}

static void redirect(void)
{
	core_set_output(output, everybodys);
}

enum { AREA_AT = 2 * ARENA_PAGE, AREA = 2 * ARENA_PAGE };

static void have_traced(void)
{
	struct perf_event_attr attr = test_attr(TRACE_TYPE, 0);
	struct perf_event_mmap_page *page;

	core_tree()->settings.trace_type = TRACE_TYPE;
	traced = tree_open(&attr, core_task(VICTIM), -1, 0);
	page = fake_map(traced, 1, true).page;
	page->aux_offset = AREA_AT;
	page->aux_size = AREA;
}

static void map_area(void)
{
	fake_ring_map(traced, AREA_AT, AREA, true, &rights);
}

static void have_area(void)
{
	have_traced();
	map_area();
	tree_run(VICTIM);
}

static void unmap_area(void)
{
	fake_aux_unmap(traced, AREA_AT);
}

/* More than there is room for, and announced in between. */
static void trace(void)
{
	static const struct core_branch branches[400];

	core_trace(core_task(VICTIM), branches, 400);
}

#define CASE(name, prepare, what)                                                                  \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		kill_all_the_way(prepare, what);                                                   \
	}

CASE(opening, NULL, open_one)
CASE(opening_for_everybody, NULL, open_for_all)
CASE(beginning, NULL, have_child)
CASE(ending_another, have_child, end_child)
CASE(ending, have_child, end_self)
CASE(closing_a_leader, have_child, close_leader)
CASE(closing_everybodys, NULL, close_for_all)
CASE(mapping, NULL, map)
CASE(unmapping, NULL, unmap)
CASE(unmapping_what_is_closed, close_mapped, unmap)
CASE(redirecting, NULL, redirect)
CASE(mapping_an_area, have_traced, map_area)
CASE(unmapping_an_area, have_area, unmap_area)
CASE(tracing, have_area, trace)

static void open_alone(void)
{
	struct perf_event_attr attr = test_instructions();

	tree_open(&attr, core_task(VICTIM), -1, 0);
}

/* Counted by the same steps: the thousandth event is opened like the first. */
static void opening_among_many(void **state)
{
	unsigned int first;

	(void)state;
	begin();
	first = die_in(open_alone, STEPS_MAX);
	for (int i = 0; i < 1000; i++)
		open_alone();
	assert_in_range(die_in(open_alone, STEPS_MAX), first / 2, 2 * first);
	tree_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening),
		cmocka_unit_test(opening_for_everybody),
		cmocka_unit_test(beginning),
		cmocka_unit_test(ending_another),
		cmocka_unit_test(ending),
		cmocka_unit_test(closing_a_leader),
		cmocka_unit_test(closing_everybodys),
		cmocka_unit_test(mapping),
		cmocka_unit_test(unmapping),
		cmocka_unit_test(unmapping_what_is_closed),
		cmocka_unit_test(redirecting),
		cmocka_unit_test(mapping_an_area),
		cmocka_unit_test(unmapping_an_area),
		cmocka_unit_test(tracing),
		cmocka_unit_test(opening_among_many),
	};

	return cmocka_run_group_tests_name("core: killed anywhere", tests, NULL, NULL);
}
