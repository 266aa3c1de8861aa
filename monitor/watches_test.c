// SPDX-License-Identifier: MIT
/* Whose end is waited for: numbers of processes are those of name spaces, and pages change
 * hands. */
#include "monitor/watches.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/arena.h"
#include "abi/control.h"
#include "core/core.h"
#include "core/views.h"
#include "monitor/monitor.h"
#include "monitor/ready.h"

enum { PAGES = 3, OURS = 1, ANOTHER };

/* ---- the arena ---- */

static _Alignas(ARENA_PAGE) char memory[(1 + PAGES) * ARENA_PAGE];
char *core_attached = memory;
static pid_t holder[1 + PAGES]; /* of the page, as we see it; 0: nobody */
static bool on_its_way[1 + PAGES];
static uint64_t lost;	  /* core_task.process of the last one that was ended */
static uint32_t unmapped; /* likewise of mappings */

uint32_t arena_used(void)
{
	return PAGES;
}

pid_t arena_process(uint32_t page)
{
	return holder[page];
}

bool arena_held(uint32_t page)
{
	return holder[page] || on_its_way[page];
}

bool arena_abandoned(uint32_t page)
{
	(void)page;
	return false;
}

void arena_free(uint32_t page)
{
	(void)page;
}

bool host_agrees(const struct core_task *task)
{
	return task->name_space == OURS;
}

void core_task_lost(struct core_task *task, uint64_t process)
{
	const size_t page = (size_t)((char *)task - memory) / ARENA_PAGE;

	if (holder[page])
		return;
	lost = process;
	task->live = false;
}

void core_views_end(uint32_t owner)
{
	unmapped = owner;
}

void unreaped_begin(int pidfd, pid_t number, uint64_t process)
{
	(void)pidfd, (void)number, (void)process;
}

void unreaped_end(void)
{
}

/* ---- processes ---- */

static int epoll;

static pid_t start(void)
{
	const pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (uint32_t page = 1; page <= PAGES; page++)
		if (holder[page] == pid)
			holder[page] = 0;
}

/* The thread at @page is one of @process, which is @pid to us and @number to itself. */
static void thread_at(uint32_t page, uint64_t process, pid_t pid, uint64_t name_space, pid_t number)
{
	struct core_task *task = core_task(page);

	task->live = true;
	task->process = process;
	task->name_space = name_space;
	task->pid = task->tid = number;
	holder[page] = pid;
}

static void watch(uint64_t process, uint32_t page, pid_t number)
{
	watch_task(
		&(struct control_message){
			.what = CONTROL_WATCH,
			.process = process,
			.page = page,
			.pid = number,
		},
		-1, getpid());
}

static void look(void)
{
	struct epoll_event ready[16];
	const int nr = epoll_wait(epoll, ready, 16, 500);

	for (int i = 0; i < nr; i++)
		watch_ready((uint32_t)ready[i].data.u64);
}

static int begin(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	memset(holder, 0, sizeof(holder));
	memset(on_its_way, 0, sizeof(on_its_way));
	lost = unmapped = 0;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	watches_open(epoll);
	return epoll < 0;
}

static int finish(void **state)
{
	(void)state;
	watches_close();
	close(epoll);
	return 0;
}

static void in_another_name_space_who_has_the_page_is_meant(void **state)
{
	const pid_t its = start(), other = start();

	(void)state;
	thread_at(1, 7, its, ANOTHER, other);
	watch(7, 1, other);
	end(other);
	look();
	assert_int_equal(lost, 0);
	end(its);
	look();
	assert_int_equal(lost, 7);
}

/* The process goes on with another thread. */
static void who_has_the_page_next_is_not_meant(void **state)
{
	const pid_t its = start(), next = start();

	(void)state;
	thread_at(1, 8, next, ANOTHER, 1);
	thread_at(2, 7, its, OURS, its);
	watch(7, 1, its);
	end(next);
	look();
	assert_int_equal(lost, 0);
	end(its);
	look();
	assert_int_equal(lost, 7);
}

static void who_is_gone_is_not_taken_for_who_has_its_number_here(void **state)
{
	const pid_t other = start();

	(void)state;
	thread_at(1, 7, 0, ANOTHER, other);
	watch(7, 1, other);
	assert_int_equal(lost, 7);
	assert_int_equal(epoll_wait(epoll, &(struct epoll_event){0}, 1, 0), 0);
	end(other);
}

/* A child that has been born, and has not come to lock the page that its parent has made ready. */
static void who_has_not_come_yet_has_not_ended(void **state)
{
	const pid_t its = start();

	(void)state;
	thread_at(1, 7, 0, ANOTHER, 1);
	on_its_way[1] = true;
	watch(7, 1, 1);
	look();
	assert_int_equal(lost, 0);
	holder[1] = its;
	on_its_way[1] = false;
	look();
	assert_int_equal(lost, 0);
	end(its);
	look();
	assert_int_equal(lost, 7);
}

/* He had locked the page for a table of descriptors that others still have. */
static void who_has_the_page_may_be_gone_before_the_lock_is(void **state)
{
	const pid_t pid = start();

	(void)state;
	end(pid);
	thread_at(1, 7, pid, OURS, pid);
	watch(7, 1, pid);
	look();
	assert_int_equal(lost, 0);
	holder[1] = 0;
	look();
	assert_int_equal(lost, 7);
}

static void mappings_stay_while_somebody_has_the_memory(void **state)
{
	const pid_t first = start(), second = start();

	(void)state;
	watch_owner(first, 5);
	watch_owner(second, 5);
	watch_owner(first, 5);
	end(first);
	look();
	assert_int_equal(unmapped, 0);
	end(second);
	look();
	assert_int_equal(unmapped, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, finish)
		CASE(in_another_name_space_who_has_the_page_is_meant),
		CASE(who_has_the_page_next_is_not_meant),
		CASE(who_has_not_come_yet_has_not_ended),
		CASE(who_has_the_page_may_be_gone_before_the_lock_is),
		CASE(mappings_stay_while_somebody_has_the_memory),
		CASE(who_is_gone_is_not_taken_for_who_has_its_number_here),
	};

	return cmocka_run_group_tests_name("monitor: ends of processes", tests, NULL, NULL);
}
