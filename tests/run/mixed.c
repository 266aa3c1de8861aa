// SPDX-License-Identifier: MIT
/*
 * Groups of what the kernel alone counts, tracepoints, and what it counts natively and the run does
 * itself: breakpoints on an instruction. Natively both are the kernel's, which so says what is
 * right.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event_case.h"
#include "kept_case.h"
#include "tests/breakpoints.h"

/* ---- what is counted ---- */

static void pass_place(int times)
{
	for (int i = 0; i < times; i++)
		place();
}

static const uint64_t of_group =
	PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

static struct perf_event_attr breakpoint(void)
{
	struct perf_event_attr attr = place_breakpoint();

	if (breakpoints_forgotten()) {
		say("skip: " BREAKPOINTS_FORGOTTEN "\n");
		_exit(0);
	}
	attr.read_format = of_group;
	return attr;
}

static struct perf_event_attr tracepoint(void)
{
	struct perf_event_attr attr = call_tracepoint();

	attr.read_format = of_group;
	return attr;
}

/* A group of this thread, or the end of the case where one of it cannot be had. */
static void open_group(int fds[2], struct perf_event_attr *leader, struct perf_event_attr *member)
{
	fds[0] = own_event(leader);
	close(own_event(member));
	fds[1] = open_event(member, 0, -1, fds[0], 0);
	need(fds[1] >= 0);
	settle();
}

static void open_both(int fds[2], bool tracepoint_leads)
{
	struct perf_event_attr first = breakpoint(), second = tracepoint();

	if (tracepoint_leads)
		open_group(fds, &second, &first);
	else
		open_group(fds, &first, &second);
}

/* By the format of_group, and perhaps ids. */
struct values {
	uint64_t nr, enabled, running, entry[4];
};

static void say_group(const char *what, int fd)
{
	struct values values = {0};
	const ssize_t size = read(fd, &values, sizeof(values));

	say("%s: %zd bytes, %lu: %lu and %lu\n", what, size, values.nr, values.entry[0],
	    values.entry[1]);
}

static void both(int places, int calls)
{
	pass_place(places);
	call(calls);
}

/* ---- counting ---- */

static void count(bool tracepoint_leads)
{
	int fds[2];

	open_both(fds, tracepoint_leads);
	both(3, 5);
	say_group("leader", fds[0]);
	say_group("member", fds[1]);
	both(1, 2);
	say_group("again", fds[0]);
}

static void case_count(void)
{
	count(false);
}

static void case_count_led_by_a_tracepoint(void)
{
	count(true);
}

static void case_formats(void)
{
	struct perf_event_attr leader = breakpoint(), member = tracepoint();
	uint64_t words[8], id[2];
	int fds[2];

	leader.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	member.read_format = PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_RUNNING;
	for (int turn = 0; turn < 2; turn++) {
		if (turn)
			open_group(fds, &member, &leader);
		else
			open_group(fds, &leader, &member);
		need(!ioctl(fds[turn], PERF_EVENT_IOC_ID, &id[0]));
		need(!ioctl(fds[!turn], PERF_EVENT_IOC_ID, &id[1]));
		both(1, 2);
		report("of the group", read(fds[turn], words, sizeof(words)));
		say("%lu: %lu and %lu%s\n", words[0], words[1], words[3],
		    words[2] == id[turn] && words[4] == id[!turn] ? "" : ", of others");
		report("of one", read(fds[!turn], words, sizeof(words)));
		say("%lu%s%s\n", words[0], words[1] ? "" : ", at no time",
		    words[2] == id[1] ? "" : ", of another");
		report("too short", read(fds[turn], words, sizeof(words[0])));
		close(fds[0]);
		close(fds[1]);
	}
}

/* What has been counted until then, and the number, stay. */
static void case_joined_later(void)
{
	struct perf_event_attr first = tracepoint(), second = breakpoint();
	uint64_t before, after;
	int leader = own_event(&first), copy = fcntl(leader, F_DUPFD, 100);

	need(!ioctl(leader, PERF_EVENT_IOC_ID, &before));
	call(4);
	need(open_event(&second, 0, -1, leader, 0) >= 0);
	settle();
	need(!ioctl(leader, PERF_EVENT_IOC_ID, &after));
	say("the same number: %d\n", before == after);
	both(2, 1);
	say_group("leader", leader);
	say_group("by another number", copy);
}

static void case_large(void)
{
	struct perf_event_attr places = breakpoint(), calls = tracepoint();
	struct perf_event_attr clock = faults();
	struct {
		uint64_t nr, enabled, running, entry[6];
	} all;
	int leader;

	clock.config = PERF_COUNT_SW_TASK_CLOCK;
	leader = own_event(&clock);
	close(leader);
	clock.read_format = of_group;
	leader = own_event(&clock);
	close(own_event(&calls));
	for (int i = 0; i < 2; i++) {
		need(open_event(&calls, 0, -1, leader, 0) >= 0);
		need(open_event(&places, 0, -1, leader, 0) >= 0);
	}
	need(open_event(&clock, 0, -1, leader, 0) >= 0);
	settle();
	both(2, 3);
	report("read", read(leader, &all, sizeof(all)));
	say("%lu: %lu %lu %lu %lu, clocks %d %d\n", all.nr, all.entry[1], all.entry[2],
	    all.entry[3], all.entry[4], all.entry[0] > 0, all.entry[5] > 0);
}

/* Units that the kernel lets into any group. */
static void case_msr(void)
{
	struct perf_event_attr leader = breakpoint(), member = {.size = sizeof(member)};
	struct values values;
	unsigned int type;
	FILE *file = fopen("/sys/bus/event_source/devices/msr/type", "r");
	int fds[2];

	if (!file || fscanf(file, "%u", &type) != 1) {
		say("skip: no msr\n");
		return;
	}
	fclose(file);
	member.type = type;
	open_group(fds, &leader, &member);
	pass_place(2);
	need(read(fds[0], &values, sizeof(values)) > 0);
	say("%lu and some: %d\n", values.entry[0], values.entry[1] > 0);
	member.config = 999;
	TRY(open_event(&member, 0, -1, fds[0], 0));
}

/* ---- on and off ---- */

/* What is counted of both from here on. */
static void say_next(int fd, const char *when)
{
	settle();
	both(1, 1);
	say_group(when, fd);
}

static void switching(bool tracepoint_leads)
{
	int fds[2];

	open_both(fds, tracepoint_leads);
	TRY(ioctl(fds[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	say_next(fds[0], "group off");
	TRY(ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0));
	say_next(fds[0], "leader on");
	TRY(ioctl(fds[1], PERF_EVENT_IOC_ENABLE, 0));
	say_next(fds[0], "member on");
	TRY(ioctl(fds[0], PERF_EVENT_IOC_DISABLE, 0));
	say_next(fds[0], "leader off");
	TRY(ioctl(fds[1], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	say_next(fds[0], "group on by its member");
	TRY(ioctl(fds[1], PERF_EVENT_IOC_RESET, 0));
	settle();
	say_group("member reset", fds[0]);
	both(2, 2);
	TRY(ioctl(fds[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP));
	say_next(fds[0], "group reset");
	TRY(ioctl(fds[1], PERF_EVENT_IOC_DISABLE, 0));
	say_next(fds[0], "member off");
	TRY(prctl(PR_TASK_PERF_EVENTS_ENABLE));
	say_next(fds[0], "all on");
	TRY(prctl(PR_TASK_PERF_EVENTS_DISABLE));
	say_next(fds[0], "all off");
}

static void case_switch(void)
{
	switching(false);
}

static void case_switch_led_by_a_tracepoint(void)
{
	switching(true);
}

/* The member is by itself then, and on. */
static void case_leader_closed(void)
{
	struct perf_event_attr leader = breakpoint(), member = tracepoint();
	int fds[2];

	leader.disabled = 1;
	open_group(fds, &leader, &member);
	both(1, 1);
	say_group("disabled", fds[0]);
	close(fds[0]);
	settle();
	both(1, 1);
	say_group("alone", fds[1]);
}

/* It is there, and in its group, as long as it is mapped. */
static void case_closed_while_it_is_mapped(void)
{
	struct perf_event_attr leader = breakpoint(), member = tracepoint();
	int fds[2];
	void *ring;

	member.sample_period = 1;
	open_group(fds, &leader, &member);
	ring = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
	need(ring != MAP_FAILED);
	both(1, 2);
	close(fds[1]);
	both(1, 2);
	say_group("mapped", fds[0]);
	munmap(ring, 2 * PAGE);
	say_group("unmapped", fds[0]);
	/* What has been kept for it has room for another. */
	for (int i = 0; i < 2; i++) {
		fds[1] = open_event(&member, 0, -1, fds[0], 0);
		settle();
		both(0, 3);
		say_group("another", fds[0]);
	}
}

static void *open_and_read(void *nothing)
{
	unsigned long wrong = 0;

	for (uint64_t i = 0; i < 100; i++) {
		struct values values = {0};
		int fds[2];

		open_both(fds, false);
		both(1, (int)i);
		need(read(fds[0], &values, sizeof(values)) > 0);
		wrong += values.entry[0] != 1 || values.entry[1] != i;
		close(fds[1]);
		close(fds[0]);
	}
	(void)nothing;
	return (void *)wrong;
}

/* None takes what another one has been told for an answer of its own. */
static void case_by_many_at_once(void)
{
	pthread_t threads[4];
	void *wrong;

	for (int i = 0; i < 4; i++)
		need(!pthread_create(&threads[i], NULL, open_and_read, NULL));
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &wrong);
		say("%lu\n", (unsigned long)wrong);
	}
}

static void case_filter(void)
{
	struct perf_event_attr leader = breakpoint(), member = tracepoint();
	int fds[2];

	open_group(fds, &leader, &member);
	TRY(ioctl(fds[1], PERF_EVENT_IOC_SET_FILTER, "which == 1"));
	both(1, 3);
	raw(SYS_getpriority, 1, 0);
	say_group("filtered", fds[0]);
	TRY(ioctl(fds[1], PERF_EVENT_IOC_SET_FILTER, "nothing == 1"));
	TRY(ioctl(fds[1], PERF_EVENT_IOC_SET_FILTER, nowhere));
	TRY(ioctl(fds[0], PERF_EVENT_IOC_SET_FILTER, "which == 1"));
}

/* One that has the kernel forget what has happened. */
static void case_program(void)
{
	struct perf_event_attr leader = breakpoint(), member = tracepoint();
	const int program = load_program(0);
	int fds[2];

	/* It has all who count that forget it: who counts the others is not to. */
	member.config = tracepoint_number("syscalls/sys_enter_getpgrp");
	open_group(fds, &leader, &member);
	raw(SYS_getpgrp);
	raw(SYS_getpgrp);
	TRY(ioctl(fds[1], PERF_EVENT_IOC_SET_BPF, program));
	pass_place(1);
	raw(SYS_getpgrp);
	say_group("with a program", fds[0]);
	TRY(ioctl(fds[1], PERF_EVENT_IOC_SET_BPF, program));
	TRY(ioctl(fds[1], PERF_EVENT_IOC_SET_BPF, -1));
	TRY(ioctl(fds[1], PERF_EVENT_IOC_SET_BPF, fds[0]));
}

/* ---- other tasks, and other processes that read ---- */

static void case_read_by_others(void)
{
	int fds[2], pair[2];
	char number[16];
	pid_t child;

	open_both(fds, false);
	both(2, 3);
	child = fork();
	if (!child) {
		both(10, 10); /* it is not inherited */
		say_group("child", fds[0]);
		say_group("child, by the member", fds[1]);
		_exit(0);
	}
	say_end("child", child);
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	child = fork();
	if (!child) {
		snprintf(number, sizeof(number), "%d", fds[0]);
		execl("/proc/self/exe", "mixed", "_reads", number, NULL);
		_exit(1);
	}
	say_end("executed", child);
	both(1, 1);
	say_group("parent", fds[0]);
}

static void case_reads(void)
{
	say_group("another program", atoi(case_argv[2]));
}

static void case_inherited(void)
{
	struct perf_event_attr first = breakpoint(), second = tracepoint();
	pid_t child;
	int fds[2];

	first.inherit = second.inherit = 1;
	for (int turn = 0; turn < 2; turn++) {
		if (turn)
			open_group(fds, &second, &first);
		else
			open_group(fds, &first, &second);
		both(1, 1);
		child = fork();
		if (!child) {
			settle();
			both(2, 3);
			say_group("child", fds[0]);
			_exit(0);
		}
		say_end("child", child);
		say_group("parent", fds[0]);
		close(fds[0]);
		close(fds[1]);
	}
}

static void *thread(void *nothing)
{
	settle();
	both(1, 4);
	return nothing;
}

static void case_inherited_by_threads(void)
{
	struct perf_event_attr first = breakpoint(), second = tracepoint();
	pthread_t threads[3];
	int fds[2];

	first.inherit = second.inherit = 1;
	open_group(fds, &first, &second);
	for (int i = 0; i < 3; i++)
		need(!pthread_create(&threads[i], NULL, thread, NULL));
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	say_group("with threads", fds[0]);
}

/* As perf stat has it: measured from outside, and from when it executes. */
static void case_on_exec(void)
{
	struct perf_event_attr first = breakpoint(), second = tracepoint();
	int go[2], leader, member;
	char byte;
	pid_t child;

	close(own_event(&second));
	first.disabled = 1;
	first.enable_on_exec = 1;
	for (int turn = 0; turn < 2; turn++) {
		need(!pipe(go));
		child = fork();
		if (!child) {
			close(go[1]);
			need(read(go[0], &byte, 1) == 1);
			call(3);
			execl("/proc/self/exe", "mixed", "_executed", NULL);
			_exit(1);
		}
		second.disabled = second.enable_on_exec = turn;
		leader = open_event(turn ? &second : &first, child, -1, -1, 0);
		member = open_event(turn ? &first : &second, child, -1, leader, 0);
		need(leader >= 0 && member >= 0);
		say_group("before", leader);
		need(write(go[1], "", 1) == 1);
		say_end("child", child);
		/* Where the breakpoint is, is another place now. */
		say_group("after", member);
		report("leader", read(leader, &(struct values){0}, sizeof(struct values)));
		close(leader);
		close(member);
	}
}

static void case_executed(void)
{
	settle();
	call(5);
}

/* What cannot be known when they are opened: the leader goes, or the member is switched on
 * later. */
static void case_on_exec_otherwise(void)
{
	struct perf_event_attr first = breakpoint(), second = tracepoint();
	int go[2], leader, member;
	char byte;
	pid_t child;

	close(own_event(&second));
	first.disabled = 1;
	second.disabled = 1;
	for (int turn = 0; turn < 2; turn++) {
		first.remove_on_exec = !turn;
		first.enable_on_exec = turn;
		need(!pipe(go));
		child = fork();
		if (!child) {
			close(go[1]);
			need(read(go[0], &byte, 1) == 1);
			call(3);
			execl("/proc/self/exe", "mixed", "_executed", NULL);
			_exit(1);
		}
		leader = open_event(&first, child, -1, -1, 0);
		member = open_event(&second, child, -1, leader, 0);
		need(leader >= 0 && member >= 0);
		need(!ioctl(member, PERF_EVENT_IOC_ENABLE, 0));
		say_group("before", leader);
		need(write(go[1], "", 1) == 1);
		say_end("child", child);
		say_group("after", member);
		close(leader);
		close(member);
	}
}

static void case_leader_modified(void)
{
	struct perf_event_attr leader = breakpoint(), member = tracepoint();
	int fds[2];

	open_group(fds, &leader, &member);
	both(1, 1);
	leader.disabled = 1;
	TRY(ioctl(fds[0], PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &leader));
	settle();
	both(1, 1);
	say_group("disabled", fds[0]);
	leader.disabled = 0;
	leader.bp_addr = (uint64_t)call;
	TRY(ioctl(fds[0], PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &leader));
	settle();
	both(1, 1);
	say_group("moved", fds[0]);
}

/* ---- samples ---- */

/* Words of samples, behind their headers; other records are left out. */
static void say_samples(const struct perf_event_mmap_page *page, const uint64_t id[2])
{
	const char *data = (const char *)page + page->data_offset;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	const struct perf_event_header *header;

	for (uint64_t at = 0; at < head; at += header->size) {
		const uint64_t *word;

		header = (const void *)(data + at);
		word = (const uint64_t *)(header + 1);
		if (header->type != PERF_RECORD_SAMPLE)
			continue;
		say("sample of %s:", *word == id[0]   ? "the first"
				     : *word == id[1] ? "the second"
						      : "another");
		for (word++; (const char *)word < (const char *)header + header->size; word++)
			say(" %lu", *word);
		say("\n");
	}
}

/* Each time that the leader samples, what the tracepoint has counted until then. */
static void read_in_samples(bool as_leader)
{
	struct perf_event_attr leader = breakpoint(), member = tracepoint();
	struct perf_event_mmap_page *page;
	uint64_t id[2];
	int fds[2];

	leader.sample_period = 1;
	leader.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_READ;
	leader.read_format = PERF_FORMAT_GROUP;
	/* As perf(1) opens what does not sample itself. */
	if (as_leader) {
		member.sample_type = leader.sample_type;
		member.read_format = leader.read_format;
	}
	open_group(fds, &leader, &member);
	page = ring_page(fds[0]);
	for (int i = 0; i < 2; i++)
		need(!ioctl(fds[i], PERF_EVENT_IOC_ID, &id[i]));
	both(1, 1);
	both(1, 2);
	both(2, 3);
	say_samples(page, id);
	say_group("leader", fds[1]);
}

static void case_read_in_samples(void)
{
	read_in_samples(false);
}

static void case_read_in_samples_asked_of_both(void)
{
	read_in_samples(true);
}

/* Each samples for itself, and both write to one ring. */
static void sample_both(bool tracepoint_leads)
{
	struct perf_event_attr first = breakpoint(), second = tracepoint();
	struct perf_event_mmap_page *page;
	uint64_t id[2];
	int fds[2];

	first.sample_period = second.sample_period = 1;
	first.sample_type = second.sample_type = PERF_SAMPLE_IDENTIFIER;
	if (tracepoint_leads)
		open_group(fds, &second, &first);
	else
		open_group(fds, &first, &second);
	page = ring_page(fds[0]);
	need(!ioctl(fds[1], PERF_EVENT_IOC_SET_OUTPUT, fds[0]));
	for (int i = 0; i < 2; i++)
		need(!ioctl(fds[i], PERF_EVENT_IOC_ID, &id[i]));
	both(2, 3);
	TRY(ioctl(fds[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	both(2, 3);
	say_samples(page, id);
	say_group("group", fds[0]);
}

static void case_samples(void)
{
	sample_both(false);
}

static void case_samples_led_by_a_tracepoint(void)
{
	sample_both(true);
}

/* In no group. */
static void case_writes_to_another_ones_ring(void)
{
	const unsigned long flags = PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT;
	struct perf_event_attr first = breakpoint(), second = tracepoint();
	struct perf_event_mmap_page *page;
	uint64_t id[2];
	int fds[2];

	first.sample_period = second.sample_period = 1;
	first.sample_type = second.sample_type = PERF_SAMPLE_IDENTIFIER;
	fds[0] = own_event(&first);
	close(own_event(&second));
	page = ring_page(fds[0]);
	fds[1] = open_event(&second, 0, -1, fds[0], flags);
	need(fds[1] >= 0);
	for (int i = 0; i < 2; i++)
		need(!ioctl(fds[i], PERF_EVENT_IOC_ID, &id[i]));
	both(1, 2);
	say_group("one", fds[0]);
	say_group("other", fds[1]);
	say_samples(page, id);
}

/* ---- what cannot be ---- */

/* What the kernel tells of the end of a task is there for who waits for that end. */
static void case_told_of_the_end(void)
{
	enum { ROUNDS = 30 };
	struct perf_event_attr end = tracepoint(), dummy = faults();
	cpu_set_t cpu;
	int told = 0;

	end.config = tracepoint_number("sched/sched_process_exit");
	end.sample_period = 1;
	end.sample_type = PERF_SAMPLE_TID;
	end.read_format = dummy.read_format = 0;
	dummy.config = PERF_COUNT_SW_DUMMY;
	close(own_event(&end));
	/* Who waits gets the processor before the task has ended, if it is told too early. */
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	need(!sched_setaffinity(0, sizeof(cpu), &cpu));
	for (int i = 0; i < ROUNDS; i++) {
		const struct perf_event_mmap_page *page;
		int go[2], fds[2], status;
		struct pollfd wait;
		pid_t child;
		char byte;

		need(!pipe(go));
		child = fork();
		if (!child) {
			nice(10);
			close(go[1]);
			_exit((int)read(go[0], &byte, 1));
		}
		close(go[0]);
		fds[0] = open_event(&end, child, -1, -1, 0);
		need(fds[0] >= 0);
		fds[1] = open_event(&dummy, child, -1, fds[0], 0);
		need(fds[1] >= 0);
		page = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
		need(page != MAP_FAILED);
		close(go[1]);
		wait = (struct pollfd){.fd = fds[0], .events = POLLHUP};
		do
			need(poll(&wait, 1, 10000) == 1);
		while (!(wait.revents & POLLHUP));
		told += __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) > 0;
		need(waitpid(child, &status, 0) == child);
		munmap((void *)(uintptr_t)page, RING);
		close(fds[1]);
		close(fds[0]);
	}
	say("%d of %d\n", told, ROUNDS);
}

static void case_refused(void)
{
	struct perf_event_attr leader = breakpoint(), member = tracepoint(), other;
	int fds[2];
	pid_t child;

	open_group(fds, &leader, &member);
	other = member;
	other.config = 0x7fffffff;
	TRY(open_event(&other, 0, -1, fds[0], 0));
	other = member;
	other.exclusive = 1;
	TRY(open_event(&other, 0, -1, fds[0], 0));
	other = member;
	other.pinned = 1;
	TRY(open_event(&other, 0, -1, fds[0], 0));
	other = member;
	other.inherit = 1;
	TRY(open_event(&other, 0, -1, fds[0], 0));
	other = member;
	other.use_clockid = 1;
	other.clockid = 1;
	TRY(open_event(&other, 0, -1, fds[0], 0));
	TRY(open_event(&member, 0, 0, fds[0], 0));
	TRY(open_event(&member, 0, -1, fds[1], 0));
	TRY(open_event(&leader, 0, -1, fds[1], 0));
	other = member;
	other.sample_type = PERF_SAMPLE_BRANCH_STACK;
	other.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	TRY(open_event(&other, 0, -1, fds[0], 0));
	child = fork();
	if (!child) {
		TRY(open_event(&member, 0, -1, fds[0], 0));
		_exit(0);
	}
	say_end("child", child);
	both(1, 1);
	say_group("all the same", fds[0]);
	TRY(ioctl(fds[1], PERF_EVENT_IOC_REFRESH, 1));
	TRY(ioctl(fds[1], PERF_EVENT_IOC_PERIOD, &(uint64_t){1}));
}

const struct test_case cases[] = {
	{"count", case_count},
	{"count_led_by_a_tracepoint", case_count_led_by_a_tracepoint},
	{"formats", case_formats},
	{"joined_later", case_joined_later},
	{"large", case_large},
	{"msr", case_msr},
	{"switch", case_switch},
	{"switch_led_by_a_tracepoint", case_switch_led_by_a_tracepoint},
	{"leader_closed", case_leader_closed},
	{"closed_while_it_is_mapped", case_closed_while_it_is_mapped},
	{"by_many_at_once", case_by_many_at_once},
	{"filter", case_filter},
	{"program", case_program},
	{"read_by_others", case_read_by_others},
	{"_reads", case_reads},
	{"inherited", case_inherited},
	{"inherited_by_threads", case_inherited_by_threads},
	{"on_exec", case_on_exec},
	{"_executed", case_executed},
	{"on_exec_otherwise", case_on_exec_otherwise},
	{"leader_modified", case_leader_modified},
	{"read_in_samples", case_read_in_samples},
	{"read_in_samples_asked_of_both", case_read_in_samples_asked_of_both},
	{"samples", case_samples},
	{"samples_led_by_a_tracepoint", case_samples_led_by_a_tracepoint},
	{"writes_to_another_ones_ring", case_writes_to_another_ones_ring},
	{"told_of_the_end", case_told_of_the_end},
	{"refused", case_refused},
	{0},
};
