// SPDX-License-Identifier: MIT
/*
 * A process may be stopped, by SIGSTOP or from the terminal, while one of its threads has a lock of
 * the arena. Who waits for that says so, and the monitor lets the one thread go on until it has
 * none: a tracer may do that. When it lets go of it the kernel stops it again, as its process still
 * is; neither its parent nor its other threads are told of anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/arena.h"
#include "core/arena.h"
#include "core/host.h"
#include "core/repair.h"
#include "monitor/monitor.h"
#include "monitor/numbers.h"

/*
 * It takes the next lock before it can be stopped, often; and it is not looked at for long: it may
 * wait for a lock itself, of somebody who is stopped, too, and is next.
 */
enum { ROUNDS = 200, LOOKS = 400, LOOK_NS = 50000 };

/* Where nobody asks again: on a busy machine it may take long until it gets to run. */
enum { PATIENCE_S = 2 };

static void pause_for_a_look(void)
{
	nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
}

/*
 * Threads that were asked to stop and may do so at any time, or never: without locks they run on,
 * and wait for a child of vfork(2), which the kernel does not let them be asked out of; or have
 * ended as the first of their process, whose end is told with that of the last one.
 */
static pid_t *late;
static size_t nr_late, room_late;

static bool is_late(pid_t tid)
{
	for (size_t i = 0; i < nr_late; i++)
		if (late[i] == tid)
			return true;
	return false;
}

/* For who is asked to stop: to be traced by us and never let go is worse than to wait. */
static bool room_for_one(void)
{
	const size_t room = room_late ? 2 * room_late : 64;
	pid_t *grown;

	if (nr_late < room_late)
		return true;
	grown = realloc(late, room * sizeof(*late));
	if (!grown)
		return false;
	late = grown;
	room_late = room;
	return true;
}

static void expect(pid_t tid)
{
	if (!is_late(tid))
		late[nr_late++] = tid;
}

/* What /proc/PID/task/TID/stat says: false if there is no such thread. */
static bool look_at(pid_t pid, pid_t tid, char *state, pid_t *parent)
{
	char path[64], text[512];
	const char *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %c %d", state, parent) == 2;
}

static bool has_ended(pid_t pid, pid_t tid)
{
	pid_t parent;
	char state;

	return look_at(pid, tid, &state, &parent) && (state == 'Z' || state == 'X');
}

/* Is stopped, and by no tracer. */
static bool stands(pid_t pid, pid_t tid)
{
	pid_t parent;
	char state;

	return look_at(pid, tid, &state, &parent) && state == 'T';
}

/*
 * The same of who has the page. Its numbers are those of its own name space. Where that is not
 * known they are ours, too, if the process that has its page is the one of that number. A vfork
 * child's is its parent's.
 */
static bool is_stopped(uint32_t page)
{
	const struct core_task *task = core_task(page);
	const pid_t has_page = arena_process(page);
	pid_t parent;
	char state;

	return has_page && look_at(task->pid, task->tid, &state, &parent) && state == 'T' &&
	       (host_agrees(task) || has_page == task->pid || has_page == parent);
}

/*
 * Locks on pages are those of a table of descriptors. Where processes share one (CLONE_FILES) all
 * seem to be there until the last of them has ended: here it is seen who is not, if its numbers are
 * ours.
 */
static bool is_gone(uint32_t page)
{
	const struct core_task *task = core_task(page);

	if (!task->tid || !host_agrees(task))
		return false;
	if (syscall(__NR_tgkill, task->pid, task->tid, 0) && errno == ESRCH)
		return true;
	return has_ended(task->pid, task->tid);
}

/* What it is stopped for now is its tracer's to know; a signal that it is about to get goes on. */
static int signal_of(int status)
{
	return status >> 16 ? 0 : WSTOPSIG(status);
}

/* Soon, or it is expected. False: it is not there, or not yet. */
static bool await_stop(pid_t tid, pid_t pid, int *status)
{
	pid_t found = 0;

	for (int left = LOOKS; left && !(found = waitpid(tid, status, __WALL | WNOHANG)); left--)
		pause_for_a_look();
	if (found == tid)
		return WIFSTOPPED(*status);
	/* Who executes becomes the first thread of its process. */
	expect(found ? pid : tid);
	return false;
}

/*
 * Until it has no lock, or is stopped by something else, which is in @status then. Who is stopped
 * already must not be interrupted: it would be stopped once more. False: it is gone.
 */
static bool let_run(pid_t tid, pid_t pid, uint32_t owner, int *looks, int *status)
{
	ptrace(PTRACE_CONT, tid, NULL, (long)signal_of(*status));
	for (; *looks > 0 && core_has_lock(owner); --*looks) {
		if (waitpid(tid, status, __WALL | WNOHANG))
			return WIFSTOPPED(*status);
		pause_for_a_look();
	}
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return await_stop(tid, pid, status);
}

static void help(pid_t tid, pid_t pid, uint32_t owner)
{
	int status, looks = LOOKS;
	bool there;

	if (!room_for_one())
		return;
	/* It may have gone on meanwhile. */
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return;
	there = await_stop(tid, pid, &status);
	for (int i = 0; there && looks > 0 && i < ROUNDS && core_has_lock(owner); i++)
		there = let_run(tid, pid, owner, &looks, &status);
	if (there)
		ptrace(PTRACE_DETACH, tid, NULL, (long)signal_of(status));
}

bool halted_let_go(pid_t tid, int status)
{
	return is_late(tid) && !ptrace(PTRACE_DETACH, tid, NULL, (long)signal_of(status));
}

/* What it finds is left for who waits for the process: it may be a child of ours, and not
 * traced. */
void halted_look(void)
{
	for (size_t i = 0; i < nr_late;) {
		siginfo_t now = {0};
		const int error =
			waitid(P_PID, (id_t)late[i], &now, WSTOPPED | WNOHANG | WNOWAIT | __WALL);

		if (!error && now.si_code != CLD_TRAPPED) {
			i++;
			continue;
		}
		if (!error)
			ptrace(PTRACE_DETACH, late[i], NULL,
			       (long)(now.si_status >> 8 ? 0 : now.si_status));
		late[i] = late[--nr_late];
	}
}

static void help_page(uint32_t page, uint32_t owner)
{
	if (page > arena_used() || !core_has_lock(owner) || !arena_owner_there(owner))
		return;
	if (is_stopped(page))
		help(core_task(page)->tid, core_task(page)->pid, owner);
	else if (is_gone(page))
		arena_forsake(owner);
}

static void help_known(uint32_t number, uint32_t who, uint32_t owner)
{
	const pid_t tid = ARENA_NUMBER_TID(who);

	if (stands(tid, tid))
		help(tid, numbers_process(tid), owner);
	else if ((syscall(__NR_tkill, tid, 0) && errno == ESRCH) || has_ended(tid, tid))
		arena_forsake_number(number, who);
}

/* What the kernel says of the lock may be of another process with the same table of descriptors:
 * who is not found there may be there all the same. */
static void help_unknown(uint32_t number, uint32_t who, uint32_t owner)
{
	const pid_t process = arena_process_of_number(number);
	const pid_t tid = process ? numbers_thread(process, ARENA_NUMBER_TID(who)) : 0;

	if (process && stands(process, tid))
		help(tid, process, owner);
}

static void help_number(uint32_t number, uint32_t owner)
{
	const uint32_t who = arena_number(number);

	if (!who || !core_has_lock(owner))
		return;
	if (ARENA_NUMBER_FIRST(who))
		help_known(number, who, owner);
	else
		help_unknown(number, who, owner);
}

void halted_help(uint32_t owner)
{
	const uint32_t page = ARENA_OWNER_PAGE(owner), number = ARENA_OWNER_INCARNATION(owner);

	halted_look();
	if (page)
		help_page(page, owner);
	else if (number > ARENA_OWNER_INCARNATION(ARENA_MONITOR) && number < ARENA_INCARNATIONS)
		help_number(number, owner);
}

void halted_help_any(void)
{
	const uint32_t used = arena_used(), numbers = arena_numbers();

	for (uint32_t page = 1; page <= used; page++)
		halted_help(arena_owner_of(page));
	for (uint32_t number = 0; number < numbers; number++)
		halted_help(ARENA_OWNER(0, number));
}

static void help_for_long(uint32_t owner)
{
	const uint64_t second = 1000000000,
		       end = core_host_clock(CLOCK_MONOTONIC) + PATIENCE_S * second;

	while (core_has_lock(owner) && core_host_clock(CLOCK_MONOTONIC) < end) {
		halted_help(owner);
		pause_for_a_look();
	}
}

void halted_help_all(pid_t pid)
{
	const uint32_t used = arena_used();

	for (uint32_t page = 1; page <= used; page++)
		if (core_task(page)->pid == pid)
			help_for_long(arena_owner_of(page));
}
