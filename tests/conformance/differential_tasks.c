// SPDX-License-Identifier: MIT
/*
 * What happens to tasks: work with a known number of events, done here, in children that are gone
 * when it is over, and in a helper that lives on and works when it is told to.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "differential.h"
#include "draw.h"
#include "workload.h"

pid_t helper;
static pid_t self, child; /* the last that was */

static const char *own_path;
static int to_helper, from_helper;
static volatile unsigned int traps, signals;

enum job { LOADS, STORES, BYTES, CALLS, FAULTS, NAME, END, EXEC, JOBS };

struct order {
	enum job job;
	unsigned int which, count;
};

const char *name_of_task(pid_t pid)
{
	return pid == self     ? "me"
	       : pid == helper ? "helper"
	       : pid == child  ? "child"
	       : pid == 0      ? "nobody"
			       : "somebody";
}

/* Of an image that has nothing in common with this one. */
static _Noreturn void become_another(void)
{
	execl(own_path, own_path, "--nothing", NULL);
	_exit(1);
}

static void carry_out(const struct order *order)
{
	char name[] = "nineteen characters";

	switch (order->job) {
	case LOADS:
		for (unsigned int i = 0; i < order->count; i++)
			work_load4(&words[order->which]);
		break;
	case STORES:
		for (unsigned int i = 0; i < order->count; i++)
			work_store8(&words[order->which]);
		break;
	case BYTES:
		for (unsigned int i = 0; i < order->count; i++)
			work_store1((volatile char *)&words[order->which] + i % 8);
		break;
	case CALLS:
		work_calls(order->count);
		break;
	case FAULTS:
		work_faults(order->count);
		break;
	case NAME:
		name[order->count - 1] = 0;
		prctl(PR_SET_NAME, name);
		break;
	case EXEC:
		become_another();
	case END:
	case JOBS:
		_exit(0);
	}
}

static struct order draw_order(unsigned int jobs)
{
	return (struct order){(enum job)below(jobs), below(WORDS), 1 + below(20)};
}

static void print_order(const char *who, const struct order *order)
{
	static const char *const names[JOBS] = {"loads",  "stores", "bytes", "calls",
						"faults", "name",   "end",   "exec"};

	printf("%s: %s %u %u", who, names[order->job], order->which, order->count);
}

/* Each is sent on the way back from what it tells of. */
static void print_signals(void)
{
	if (traps || signals)
		printf(", traps %u, signals %u", traps, signals);
	traps = signals = 0;
	printf("\n");
}

/*
 * Of what others do several may become one; and Linux sends one, when a child ends, for an overflow
 * that came before anybody asked for signals.
 */
static void forget_signals(void)
{
	traps = signals = 0;
	printf("\n");
}

void do_work(void)
{
	struct order order = draw_order(END);

	carry_out(&order);
	print_order("work", &order);
	print_signals();
}

/* ---- others ---- */

/* Those of a new image come in another order: user mode tells them by address. */
static bool tells_of_mappings(void)
{
	bool does = false;

	for (int i = 0; i < SLOTS; i++)
		does |= slots[i].fd >= 0 &&
			(slots[i].attr.mmap | slots[i].attr.mmap2 | slots[i].attr.mmap_data);
	return does;
}

static void do_child(void)
{
	unsigned int nr = 1 + below(3), jobs = tells_of_mappings() ? EXEC : JOBS;
	struct order orders[3];
	int status;

	for (unsigned int i = 0; i < nr; i++)
		orders[i] = draw_order(jobs);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		for (unsigned int i = 0; i < nr; i++)
			carry_out(&orders[i]);
		_exit(0);
	}
	waitpid(child, &status, 0);
	for (unsigned int i = 0; i < nr; i++)
		print_order(i ? "," : "child", &orders[i]);
	printf(", status %#x", (unsigned int)status);
	forget_signals();
}

static void begin_helper(void)
{
	int there[2], back[2];
	char byte;

	if (pipe(there) || pipe(back))
		_exit(1);
	fflush(stdout);
	helper = fork();
	if (helper == 0) {
		struct order order;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < SLOTS; i++)
			if (slots[i].fd >= 0)
				close(slots[i].fd);
		close(there[1]);
		/* From here on no descriptor of an event is open here. */
		if (write(back[1], "", 1) != 1)
			_exit(1);
		while (read(there[0], &order, sizeof(order)) == sizeof(order)) {
			carry_out(&order);
			if (write(back[1], "", 1) != 1)
				break;
		}
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	to_helper = there[1];
	from_helper = back[0];
	if (read(from_helper, &byte, 1) != 1)
		_exit(1);
}

static void end_helper(void)
{
	int status;

	close(to_helper);
	waitpid(helper, &status, 0);
	close(from_helper);
	printf("helper ends: %#x", (unsigned int)status);
	helper = 0;
	forget_signals();
}

static void do_helper(void)
{
	struct order order = draw_order(END);
	char byte;

	if (!helper) {
		begin_helper();
		printf("a helper");
		forget_signals();
		return;
	}
	if (one_in(12)) {
		end_helper();
		return;
	}
	if (write(to_helper, &order, sizeof(order)) != sizeof(order) ||
	    read(from_helper, &byte, 1) != 1)
		printf("the helper is gone\n");
	print_order("helper", &order);
	forget_signals();
}

void do_task(void)
{
	if (one_in(2))
		do_child();
	else
		do_helper();
}

/* ---- signals ---- */

static void on_trap(int signo)
{
	(void)signo;
	traps++;
}

static void on_signal(int signo)
{
	(void)signo;
	signals++;
}

/* Of a task all of whose events are inherited Linux may exchange them with those of its child. */
static void open_what_is_not_inherited(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.exclude_kernel = 1,
	};

	syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

void tasks_begin(const char *program)
{
	struct sigaction action = {.sa_handler = on_trap, .sa_flags = SA_RESTART};

	own_path = program;
	self = getpid();
	sigaction(SIGTRAP, &action, NULL);
	action.sa_handler = on_signal;
	sigaction(SIGIO, &action, NULL);
	sigaction(SIGRTMIN, &action, NULL);
	begin_helper();
	open_what_is_not_inherited();
}
