// SPDX-License-Identifier: MIT
/* Events of the kernel's that count for ours: here pipes, in which what they have counted can be
 * read. */
#include "monitor/feeds.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/control.h"
#include "core/arena.h"
#include "core/forward.h"
#include "core/hold.h"
#include "core/test_tree.h"
#include "monitor/monitor.h"

/* ---- what it asks others ---- */

static void (*meanwhile)(void); /* once, where it may wait */

void core_forward_soon(const struct core_forward *from)
{
	void (*const now)(void) = meanwhile;

	(void)from;
	meanwhile = NULL;
	if (now)
		now();
}

bool events_is(uint32_t event, uint32_t generation)
{
	return core_is_named(core_event(event), core_name(event, generation));
}

void events_wake(uint32_t event, uint32_t generation)
{
	(void)event, (void)generation;
}

/* ---- the kernel's ---- */

static uint32_t event;
static uint64_t name;
static int kernels;

static void has_counted(uint64_t value)
{
	assert_int_equal(write(kernels, &value, sizeof(value)), sizeof(value));
}

static int begin(void **state)
{
	const struct perf_event_attr attr = test_attr(PERF_TYPE_TRACEPOINT, 0);
	int ends[2];

	(void)state;
	tree_begin(0);
	feeds_open(epoll_create1(EPOLL_CLOEXEC));
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -1;
	kernels = ends[1];
	event = tree_open(&attr, fake.task, -1, 0);
	name = core_name(event, core_event(event)->generation);
	feed_add(
		&(struct control_message){
			.what = CONTROL_KEEP,
			.event = event,
			.generation = core_event(event)->generation,
		},
		ends[0]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	feeds_close();
	close(kernels);
	tree_end();
	return 0;
}

static void what_it_has_counted_is_read(void **state)
{
	(void)state;
	has_counted(7);
	feeds_kept(name, false, CORE_KEPT_READ);
	assert_int_equal(core_event(event)->kept, 7);
}

static void give_the_slot_to_another(void)
{
	const struct perf_event_attr attr = test_instructions();

	core_close(name);
	assert_int_equal(tree_open(&attr, fake.task, -1, 0), event);
}

/* It is closed while what its kernel's event has told is forwarded. */
static void who_has_the_slot_next_does_not_count_it(void **state)
{
	(void)state;
	has_counted(7);
	meanwhile = give_the_slot_to_another;
	feeds_kept(name, false, CORE_KEPT_SWITCH);
	assert_null(meanwhile);
	assert_false(core_event(event)->kept_on);
	assert_int_equal(core_event(event)->kept, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_it_has_counted_is_read, begin, end),
		cmocka_unit_test_setup_teardown(who_has_the_slot_next_does_not_count_it, begin,
						end),
	};

	return cmocka_run_group_tests_name("monitor: the kernel's events", tests, NULL, NULL);
}
