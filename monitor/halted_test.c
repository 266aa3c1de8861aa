// SPDX-License-Identifier: MIT
/* Who is let go on may do something else, as soon as it has no lock, than to stop. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/host.h"
#include "core/repair.h"
#include "monitor/monitor.h"
#include "monitor/numbers.h"

enum {
	PAGE = 1,
	OWNER = ARENA_OWNER(PAGE, 7),
	NUMBER = 9,
	NUMBERED = ARENA_OWNER(0, NUMBER),
	STATUS = 7,
};

/* ---- the arena, with one lock in it ---- */

static _Alignas(ARENA_PAGE) char memory[2 * ARENA_PAGE];
char *core_attached = memory;

/* Shared with who has it. */
static struct {
	volatile bool held;
	volatile pid_t tid;
} * lock;
static uint32_t has_lock = OWNER;

bool core_has_lock(uint32_t owner)
{
	return owner == has_lock && lock->held;
}

uint64_t core_host_clock(int clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint32_t arena_used(void)
{
	return PAGE;
}

uint32_t arena_owner_of(uint32_t page)
{
	return page == PAGE ? OWNER : 0;
}

bool arena_owner_there(uint32_t owner)
{
	return owner == OWNER;
}

pid_t arena_process(uint32_t page)
{
	return core_task(page)->pid;
}

bool host_agrees(const struct core_task *task)
{
	return task->name_space;
}

static uint32_t forsaken;

void arena_forsake(uint32_t owner)
{
	forsaken = owner;
}

/* Who has the number, and the process that it is in. */
static uint32_t who;
static pid_t process;

uint32_t arena_number(uint32_t number)
{
	return number == NUMBER ? who : 0;
}

uint32_t arena_numbers(void)
{
	return NUMBER + 1;
}

pid_t arena_process_of_number(uint32_t number)
{
	return number == NUMBER ? process : 0;
}

void arena_forsake_number(uint32_t number, uint32_t was)
{
	if (number == NUMBER && was == who)
		who = 0;
}

/* In the other name space each has a smaller one. */
enum { LESS = 1 };

pid_t numbers_process(pid_t tid)
{
	return tid;
}

pid_t numbers_thread(pid_t pid, pid_t own)
{
	return pid == process ? own + LESS : pid;
}

/* ---- who is stopped ---- */

static int to_child[2]; /* what it waits for */

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void end_first_thread(void)
{
	lock->held = false;
	syscall(SYS_exit, 0);
}

static void await_child(void)
{
	pid_t child = vfork();

	if (!child) {
		char byte;

		lock->held = false;
		_exit(read(to_child[0], &byte, 1) != 1);
	}
	waitpid(child, NULL, 0);
	_exit(STATUS);
}

static void *execute(void *unused)
{
	lock->tid = gettid();
	raise(SIGSTOP);
	lock->held = false;
	execl("/bin/sh", "sh", "-c", "exit 7", NULL);
	return unused;
}

/* Who has the lock and is stopped is a process's first thread, and does @next then; or, if that is
 * NULL, another one, which executes. */
static pid_t start(void (*next)(void))
{
	pthread_t other;
	pid_t pid;
	int status;

	assert_int_equal(pipe(to_child), 0);
	lock->held = true;
	pid = fork();
	if (!pid) {
		pthread_create(&other, NULL, next ? wait_for_ever : execute, NULL);
		if (!next)
			wait_for_ever(NULL);
		lock->tid = getpid();
		raise(SIGSTOP);
		next();
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	core_task(PAGE)->pid = pid;
	core_task(PAGE)->tid = lock->tid;
	return pid;
}

static void end(void)
{
	close(to_child[0]);
	close(to_child[1]);
}

/* As the monitor waits for the command. */
static void ends_by_itself(pid_t pid)
{
	pid_t ended = 0;
	int status;

	while (!ended || (ended == pid && halted_let_go(pid, status)))
		ended = waitpid(pid, &status, WUNTRACED);
	assert_int_equal(ended, pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS);
	end();
}

static void who_ends_as_the_first_of_others_is_not_waited_for(void **state)
{
	const pid_t pid = start(end_first_thread);
	int status;

	(void)state;
	halted_help(OWNER);
	assert_false(lock->held);
	halted_look();
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	end();
}

static void who_waits_for_its_child_is_not_waited_for(void **state)
{
	const pid_t pid = start(await_child);

	(void)state;
	halted_help(OWNER);
	assert_false(lock->held);
	kill(pid, SIGCONT);
	halted_look();
	assert_int_equal(write(to_child[1], "", 1), 1);
	ends_by_itself(pid);
}

static void who_executes_goes_on(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		const pid_t pid = start(NULL);

		halted_help(OWNER);
		assert_false(lock->held);
		kill(pid, SIGCONT);
		ends_by_itself(pid);
	}
}

/* Who is waited for may wait for somebody else. */
static void whoever_has_a_lock_is_helped(void **state)
{
	const pid_t pid = start(await_child);

	(void)state;
	halted_help_any();
	assert_false(lock->held);
	kill(pid, SIGCONT);
	assert_int_equal(write(to_child[1], "", 1), 1);
	ends_by_itself(pid);
}

/* The lock on its page is another process's, too. */
static void who_is_killed_is_seen_to_be_gone(void **state)
{
	const pid_t pid = start(await_child);
	siginfo_t ended;

	(void)state;
	core_task(PAGE)->name_space = 1;
	halted_help(OWNER + ARENA_OWNER(0, 1));
	assert_int_equal(forsaken, 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
	halted_help(OWNER); /* nobody has waited for it */
	assert_int_equal(forsaken, OWNER);
	forsaken = 0;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	halted_help(OWNER);
	assert_int_equal(forsaken, OWNER);
	forsaken = 0;
	core_task(PAGE)->name_space = 0; /* its number is that of somebody else */
	halted_help(OWNER);
	assert_int_equal(forsaken, 0);
	lock->held = false;
	end();
}

static void numbered_as(pid_t pid, bool first)
{
	who = ARENA_NUMBER(first ? pid : pid - LESS, first);
	process = pid;
}

/* Who has a number has no page, and whoever shares its descriptors keeps its lock there. */
static void who_has_a_number_is_helped(void **state)
{
	(void)state;
	has_lock = NUMBERED;
	for (int first = 0; first < 2; first++) {
		const pid_t pid = start(await_child);

		numbered_as(pid, first);
		halted_help(OWNER);
		assert_true(lock->held);
		if (first)
			halted_help(NUMBERED);
		else
			halted_help_any();
		assert_false(lock->held);
		assert_int_not_equal(who, 0);
		kill(pid, SIGCONT);
		assert_int_equal(write(to_child[1], "", 1), 1);
		ends_by_itself(pid);
	}
	has_lock = OWNER;
}

static void who_is_killed_with_a_number_is_seen_to_be_gone(void **state)
{
	const pid_t pid = start(await_child);
	siginfo_t ended;

	(void)state;
	has_lock = NUMBERED;
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
	numbered_as(pid, true);
	process = getpid(); /* who shares its descriptors */
	lock->held = false;
	halted_help(NUMBERED);
	assert_int_not_equal(who, 0); /* nobody waits for it */
	lock->held = true;
	halted_help(NUMBERED); /* nobody has waited for it as its parent */
	assert_int_equal(who, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	numbered_as(pid, true);
	halted_help(NUMBERED);
	assert_int_equal(who, 0);
	end();
	numbered_as(getpid(), true);
	process = pid; /* who has shared them */
	halted_help(NUMBERED);
	assert_int_not_equal(who, 0);
	numbered_as(pid, false);
	halted_help(NUMBERED);
	assert_int_not_equal(who, 0);
	lock->held = false;
	has_lock = OWNER;
}

/* They are asked to stop, and do not before their children have ended. */
static void however_many_do_not_stop_the_next_one_is_helped(void **state)
{
	enum { MANY = 65 };
	int to[MANY][2];
	pid_t pid[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		pid[i] = start(await_child);
		memcpy(to[i], to_child, sizeof(to_child));
		halted_help(OWNER);
		assert_false(lock->held);
	}
	for (int i = 0; i < MANY; i++) {
		kill(pid[i], SIGCONT);
		memcpy(to_child, to[i], sizeof(to_child));
		assert_int_equal(write(to_child[1], "", 1), 1);
		ends_by_itself(pid[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_ends_as_the_first_of_others_is_not_waited_for),
		cmocka_unit_test(who_waits_for_its_child_is_not_waited_for),
		cmocka_unit_test(who_executes_goes_on),
		cmocka_unit_test(whoever_has_a_lock_is_helped),
		cmocka_unit_test(who_is_killed_is_seen_to_be_gone),
		cmocka_unit_test(who_has_a_number_is_helped),
		cmocka_unit_test(who_is_killed_with_a_number_is_seen_to_be_gone),
		cmocka_unit_test(however_many_do_not_stop_the_next_one_is_helped),
	};

	lock = mmap(NULL, sizeof(*lock), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (lock == MAP_FAILED)
		return 1;
	alarm(60);
	return cmocka_run_group_tests_name("monitor: who is stopped", tests, NULL, NULL);
}
