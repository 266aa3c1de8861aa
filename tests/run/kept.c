// SPDX-License-Identifier: MIT
/*
 * Samples and ends of tracepoints that are in a group with breakpoints: natively both are the
 * kernel's, which so says what is right; in the run the one is the kernel's and the other is not.
 * Nobody but the kernel, or the monitor, brings the samples: who opened the event does nothing, or
 * is no more.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "event_case.h"
#include "kept_case.h"

#ifndef F_SETSIG
#define F_SETSIG 10
#endif
#ifndef F_SETOWN_EX
#define F_SETOWN_EX 15
#endif

enum { LONG = 10000 }; /* ms: what has not come by then does not come */

/* ---- what is counted ---- */

/* Each is a sample of its id. */
static struct perf_event_attr tracepoint(void)
{
	struct perf_event_attr attr = call_tracepoint();

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER;
	attr.wakeup_events = 1;
	return attr;
}

/* The tracepoint of @pid, by the kernel's number, in a group that a breakpoint leads, or that it
 * leads itself. */
static int open_of(pid_t pid, bool leads, int *other)
{
	struct perf_event_attr places = place_breakpoint(), calls = tracepoint();
	int first, second;

	close(own_event(leads ? &calls : &places));
	first = open_event(leads ? &calls : &places, pid, -1, -1, 0);
	second = open_event(leads ? &places : &calls, pid, -1, first, 0);
	need(first >= 0 && second >= 0);
	if (other)
		*other = leads ? second : first;
	return leads ? first : second;
}

/* ---- who does it ---- */

/* A child that makes @calls when it is told, and ends when it is told again. */
static pid_t start_caller(int calls, int go[2])
{
	char byte;
	pid_t child;

	need(!pipe(go));
	child = fork();
	if (child)
		return child;
	close(go[1]);
	need(read(go[0], &byte, 1) == 1);
	usleep(1000);
	call(calls);
	need(read(go[0], &byte, 1) >= 0);
	_exit(0);
}

static void tell(const int go[2])
{
	need(write(go[1], "", 1) == 1);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int samples(const struct perf_event_mmap_page *page, uint64_t id)
{
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	const char *data = (const char *)page + page->data_offset;
	const struct perf_event_header *header;
	int nr = 0;

	for (uint64_t at = 0; at < head; at += header->size) {
		header = (const void *)(data + at);
		if (header->type == PERF_RECORD_SAMPLE)
			nr += *(const uint64_t *)(header + 1) == id;
	}
	return nr;
}

static uint64_t id_of(int fd)
{
	uint64_t id;

	need(!ioctl(fd, PERF_EVENT_IOC_ID, &id));
	return id;
}

/* ---- they come by themselves ---- */

/* To who only looks: the clock is no call either. */
static void come_to_who_looks(bool leads)
{
	int go[2];
	const pid_t child = start_caller(5, go);
	const int fd = open_of(child, leads, NULL);
	const uint64_t id = id_of(fd);
	struct perf_event_mmap_page *page = ring_page(fd);
	uint64_t end;

	tell(go);
	end = now_ms() + LONG;
	while (samples(page, id) < 5 && now_ms() < end)
		;
	say("%d samples\n", samples(page, id));
	tell(go);
	say_end("child", child);
}

static void case_come_to_who_looks(void)
{
	come_to_who_looks(false);
}

static void case_come_to_who_looks_led_by_a_tracepoint(void)
{
	come_to_who_looks(true);
}

static void wait_for_samples(int fd, const struct perf_event_mmap_page *page, int nr)
{
	const uint64_t id = id_of(fd);
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	while (samples(page, id) < nr && poll(&wait, 1, LONG) == 1 && wait.revents == POLLIN)
		;
	say("%d samples\n", samples(page, id));
}

/* Who opened it has ended, or executes another program: one process measures, and another one
 * reads. */
static void opened_by(bool executes)
{
	int pair[2], fd, status;
	struct perf_event_mmap_page *page;
	pid_t parent = getpid(), child;

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	child = fork();
	if (!child) {
		send_fd(pair[1], open_of(parent, false, NULL));
		if (executes)
			execl("/proc/self/exe", "kept", "_waits", NULL);
		_exit(0);
	}
	fd = receive_fd(pair[0]);
	page = ring_page(fd);
	if (!executes)
		say_end("opener", child);
	call(3);
	wait_for_samples(fd, page, 3);
	call(2);
	wait_for_samples(fd, page, 5);
	if (!executes)
		return;
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}

static void case_opener_has_ended(void)
{
	opened_by(false);
}

static void case_opener_executes(void)
{
	opened_by(true);
}

static void case_waits(void)
{
	pause();
}

static void case_epoll(void)
{
	struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = 7}, seen = {0};
	int go[2], epoll = epoll_create1(0), nr;
	const pid_t child = start_caller(1, go);
	const int fd = open_of(child, false, NULL);
	struct perf_event_mmap_page *page = ring_page(fd);

	need(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted));
	tell(go);
	nr = epoll_wait(epoll, &seen, 1, LONG);
	say("%d: %x of %u, %d samples\n", nr, seen.events, seen.data.u32, samples(page, id_of(fd)));
	tell(go);
	say_end("child", child);
}

/* ---- signals ---- */

enum { SIGNAL = 40 };

static void block_signal(int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	need(!sigprocmask(SIG_BLOCK, &set, NULL));
}

static bool next_signal(int signal, int ms, siginfo_t *info)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	return sigtimedwait(&set, info, &(struct timespec){ms / 1000, ms % 1000 * 1000000}) ==
	       signal;
}

static void say_signal(const siginfo_t *info, int fd)
{
	say("signal: code %d, band %lx%s\n", info->si_code, info->si_band,
	    info->si_fd == fd ? "" : ", of another");
}

/* Each sample is told of, with a ring or without. */
static void signals(bool mapped, int type)
{
	const struct {
		int type, pid;
	} owner = {type, type == 2 ? getpgrp() : getpid()};
	int go[2], nr = 0, fd;
	siginfo_t info;
	pid_t child;

	block_signal(SIGNAL);
	child = start_caller(3, go);
	fd = open_of(child, false, NULL);
	if (mapped)
		ring_page(fd);
	need(!fcntl(fd, F_SETOWN_EX, &owner) && !fcntl(fd, F_SETSIG, SIGNAL) &&
	     !fcntl(fd, F_SETFL, O_ASYNC));
	tell(go);
	for (; nr < 3 && next_signal(SIGNAL, LONG, &info); nr++)
		say_signal(&info, fd);
	tell(go);
	say_end("child", child);
	say("%d signals\n", nr);
}

static void case_signals(void)
{
	signals(true, 1);
}

static void case_signals_to_a_thread(void)
{
	signals(true, 0);
}

static void case_signals_without_a_ring(void)
{
	signals(false, 1);
}

static void case_signals_to_a_group(void)
{
	need(getpgrp() == getpid() || !setpgid(0, 0));
	signals(true, 2);
}

/* By the signal that it is without F_SETSIG, to a handler. */
static volatile int handled;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	handled++;
	say("code %d\n", info->si_code);
}

static void case_signal_by_default(void)
{
	int go[2], fd;
	pid_t child;

	handle(SIGIO, on_signal, 0);
	child = start_caller(1, go);
	fd = open_of(child, true, NULL);
	ring_page(fd);
	need(!fcntl(fd, F_SETOWN, getpid()) && !fcntl(fd, F_SETFL, O_ASYNC));
	tell(go);
	for (uint64_t end = now_ms() + LONG; !handled && now_ms() < end;)
		;
	tell(go);
	say_end("child", child);
	say("%d signals\n", handled);
}

/* Its own, in the middle of its work. */
static void case_signals_of_its_own(void)
{
	struct perf_event_attr places = place_breakpoint(), calls = tracepoint();
	int leader = own_event(&places), fd;

	fd = open_event(&calls, 0, -1, leader, 0);
	need(fd >= 0);
	handle(SIGIO, on_signal, 0);
	need(!fcntl(fd, F_SETOWN, getpid()) && !fcntl(fd, F_SETFL, O_ASYNC));
	usleep(1000);
	call(1);
	for (uint64_t end = now_ms() + LONG; !handled && now_ms() < end;)
		;
	say("%d signals\n", handled);
}

/* ---- ends ---- */

static void say_poll(const char *what, int fd, int ms)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	const int nr = poll(&wait, 1, ms);

	say("%s: %d, %x\n", what, nr, (unsigned int)wait.revents);
}

/* The task's. */
static void task_ends(bool leads)
{
	int go[2], fd, other;
	siginfo_t info;
	pid_t child;

	block_signal(SIGNAL);
	child = start_caller(1, go);
	fd = open_of(child, leads, &other);
	ring_page(fd);
	ring_page(other);
	say_poll("nothing", fd, 0);
	tell(go);
	say_poll("calls", fd, LONG);
	need(!fcntl(fd, F_SETOWN, getpid()) && !fcntl(fd, F_SETSIG, SIGNAL) &&
	     !fcntl(fd, F_SETFL, O_ASYNC));
	usleep(50000);
	while (next_signal(SIGNAL, 0, &info))
		;
	say_poll("all calls", fd, 0);
	tell(go);
	say_end("child", child);
	say_poll("tracepoint", fd, LONG);
	say_poll("breakpoint", other, LONG);
	say_poll("again", fd, 0);
	while (next_signal(SIGNAL, 100, &info))
		say_signal(&info, fd);
}

static void case_task_ends(void)
{
	task_ends(false);
}

static void case_task_ends_led_by_a_tracepoint(void)
{
	task_ends(true);
}

/* While somebody waits. */
static void case_task_ends_while_who_reads_waits(void)
{
	int go[2], fd;
	pid_t child = start_caller(0, go);

	fd = open_of(child, true, NULL);
	ring_page(fd);
	tell(go);
	tell(go);
	say_poll("tracepoint", fd, LONG);
	say_end("child", child);
}

/* A leader that has no descriptor any more goes on as long as it is mapped; then its members are
 * by themselves, and on. */
static void leader_ends(bool leads)
{
	struct perf_event_attr first = leads ? tracepoint() : place_breakpoint(),
			       second = tracepoint();
	struct perf_event_mmap_page *page, *of_member;
	int leader, member;

	first.disabled = 1;
	leader = own_event(&first);
	member = open_event(&second, 0, -1, leader, 0);
	if (leads) {
		struct perf_event_attr places = place_breakpoint();

		need(open_event(&places, 0, -1, leader, 0) >= 0);
	}
	page = ring_page(leader);
	of_member = ring_page(member);
	call(1);
	close(leader);
	usleep(50000);
	call(2);
	say("closed: %lu\n", count_of(member));
	say_poll("closed", member, 0);
	munmap(page, RING);
	usleep(50000);
	call(4);
	say("unmapped: %lu, %d samples\n", count_of(member), samples(of_member, id_of(member)));
	say_poll("unmapped", member, 0);
}

static void case_leader_ends(void)
{
	leader_ends(false);
}

static void case_tracepoint_that_leads_ends(void)
{
	leader_ends(true);
}

/* With the process that had mapped it. */
static void case_leader_ends_with_a_process(void)
{
	struct perf_event_attr first = place_breakpoint(), second = tracepoint();
	int go[2], leader, member;
	char byte;
	pid_t child;

	first.disabled = 1;
	leader = own_event(&first);
	member = open_event(&second, 0, -1, leader, 0);
	need(member >= 0 && !pipe(go));
	child = fork();
	if (!child) {
		ring_page(leader);
		close(leader);
		close(member);
		close(go[1]);
		need(read(go[0], &byte, 1) == 1);
		_exit(0);
	}
	close(leader);
	usleep(50000);
	call(2);
	say("closed: %lu\n", count_of(member));
	tell(go);
	say_end("child", child);
	usleep(50000);
	call(4);
	say("ended: %lu\n", count_of(member));
}

/* ---- limits ---- */

static void tell_by_signal(int fd)
{
	block_signal(SIGNAL);
	need(!fcntl(fd, F_SETOWN, getpid()) && !fcntl(fd, F_SETSIG, SIGNAL) &&
	     !fcntl(fd, F_SETFL, O_ASYNC));
}

/* The first @nr may be long in coming. */
static void say_signals(int fd, int nr)
{
	enum { LONG_MS = 20000, SHORT_MS = 200 };
	siginfo_t info;

	while (next_signal(SIGNAL, nr-- > 0 ? LONG_MS : SHORT_MS, &info))
		say_signal(&info, fd);
}

static void case_refresh(void)
{
	struct perf_event_attr first = place_breakpoint(), second = tracepoint();
	const int leader = own_event(&first);
	struct perf_event_mmap_page *page;
	int member;

	second.disabled = 1;
	member = open_event(&second, 0, -1, leader, 0);
	need(member >= 0);
	page = ring_page(member);
	tell_by_signal(member);
	TRY(ioctl(member, PERF_EVENT_IOC_REFRESH, 2));
	settle();
	call(5);
	say("two: %lu, %d samples\n", count_of(member), samples(page, id_of(member)));
	say_signals(member, 0);
	TRY(ioctl(member, PERF_EVENT_IOC_REFRESH, 1));
	TRY(ioctl(member, PERF_EVENT_IOC_REFRESH, 2));
	settle();
	call(5);
	say("three more: %lu, %d samples\n", count_of(member), samples(page, id_of(member)));
	say_signals(member, 0);
	TRY(ioctl(member, PERF_EVENT_IOC_REFRESH, 0));
	settle();
	call(2);
	say("without a limit: %lu\n", count_of(member));
	TRY(ioctl(member, PERF_EVENT_IOC_DISABLE, 0));
	call(2);
	say("off: %lu, %d samples\n", count_of(member), samples(page, id_of(member)));
	say_signals(member, 0);
}

/* Of another process, whose calls are told of by the monitor alone. */
static void case_refresh_of_another(void)
{
	struct perf_event_attr first = place_breakpoint(), second = tracepoint();
	int go[2], leader, member;
	pid_t child = start_caller(5, go);

	second.disabled = 1;
	leader = open_event(&first, child, -1, -1, 0);
	member = open_event(&second, child, -1, leader, 0);
	need(leader >= 0 && member >= 0);
	tell_by_signal(member);
	TRY(ioctl(member, PERF_EVENT_IOC_REFRESH, 3));
	tell(go);
	say_signals(member, 3);
	say("%lu\n", count_of(member));
	TRY(ioctl(leader, PERF_EVENT_IOC_DISABLE, 0));
	TRY(ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	tell(go);
	say_end("child", child);
}

/* It waits for its leader. */
static void case_refresh_while_the_leader_is_off(void)
{
	struct perf_event_attr first = place_breakpoint(), second = tracepoint();
	int leader, member;

	first.disabled = second.disabled = 1;
	leader = own_event(&first);
	member = open_event(&second, 0, -1, leader, 0);
	need(member >= 0);
	TRY(ioctl(member, PERF_EVENT_IOC_REFRESH, 2));
	call(3);
	say("off: %lu\n", count_of(member));
	TRY(ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	settle();
	call(5);
	say("on: %lu\n", count_of(member));
}

/* With it stops what it leads. */
static void case_refresh_of_a_leader(void)
{
	struct perf_event_attr first = faults(), second = tracepoint();
	int leader, member;

	first.sample_period = 1;
	first.disabled = 1;
	leader = own_event(&first);
	member = open_event(&second, 0, -1, leader, 0);
	need(member >= 0);
	/* What is touched for the first time is a fault, too. */
	call(1);
	fault(1);
	settle();
	need(!ioctl(leader, PERF_EVENT_IOC_REFRESH, 2));
	settle();
	call(1);
	fault(1);
	call(1);
	fault(1);
	call(3);
	fault(1);
	say("two: %lu and %lu\n", count_of(leader), count_of(member));
	need(!ioctl(leader, PERF_EVENT_IOC_REFRESH, 1));
	settle();
	call(1);
	fault(2);
	call(3);
	say("one more: %lu and %lu\n", count_of(leader), count_of(member));
}

static void case_refresh_refused(void)
{
	struct perf_event_attr first = place_breakpoint(), second = tracepoint();
	int leader = own_event(&first), member;

	second.sample_period = 0;
	member = open_event(&second, 0, -1, leader, 0);
	need(member >= 0);
	TRY(ioctl(member, PERF_EVENT_IOC_REFRESH, 1));
	TRY(ioctl(leader, PERF_EVENT_IOC_REFRESH, 1));
}

/* ---- programs ---- */

static uint32_t program_id(int program)
{
	struct bpf_prog_info info = {0};
	union bpf_attr attr = {
		.info.bpf_fd = (uint32_t)program,
		.info.info_len = sizeof(info),
		.info.info = (uint64_t)&info,
	};

	need(!syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)));
	return info.id;
}

static void query(int fd, uint32_t room, uint32_t id)
{
	struct {
		uint32_t room, nr, id[64];
	} asked = {.room = room, .nr = 99};

	report("query", ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, &asked));
	say("of %u: %u, it is %sthat one\n", room, asked.nr, asked.id[0] == id ? "" : "not ");
}

static void case_query_programs(void)
{
	struct perf_event_attr first = place_breakpoint(), second = tracepoint();
	int leader = own_event(&first), member;
	const int program = load_program(1);
	const uint32_t id = program_id(program);

	member = open_event(&second, 0, -1, leader, 0);
	need(member >= 0);
	query(member, 4, id);
	query(member, 0, id);
	need(!ioctl(member, PERF_EVENT_IOC_SET_BPF, program));
	query(member, 4, id);
	query(member, 1, id);
	query(member, 0, id);
	query(member, 64, id);
	query(member, 65, id);
	query(leader, 4, id);
	TRY(ioctl(member, PERF_EVENT_IOC_QUERY_BPF, nowhere));
}

/* ---- what a sample says of the count ---- */

static void say_reads(const struct perf_event_mmap_page *page, uint64_t id)
{
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	const char *data = (const char *)page + page->data_offset;
	const struct perf_event_header *header;
	uint64_t enabled = 0;

	for (uint64_t at = 0; at < head; at += header->size) {
		const uint64_t *word;

		header = (const void *)(data + at);
		word = (const uint64_t *)(header + 1);
		if (header->type != PERF_RECORD_SAMPLE)
			continue;
		say("period %lu, count %lu, times%s, id%s, lost %lu, %u bytes\n", word[1], word[2],
		    word[3] > enabled && word[3] >= word[4] ? "" : " go back",
		    word[5] == id && word[0] == id ? "" : " of another", word[6], header->size);
		enabled = word[3];
	}
}

static struct perf_event_attr reading(void)
{
	struct perf_event_attr attr = tracepoint();

	attr.sample_type |= PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			   PERF_FORMAT_ID | PERF_FORMAT_LOST;
	return attr;
}

static void case_reads(void)
{
	struct perf_event_attr first = place_breakpoint(), second = reading();
	struct perf_event_mmap_page *page;
	int leader = own_event(&first), member;
	uint64_t words[8];

	member = open_event(&second, 0, -1, leader, 0);
	need(member >= 0);
	page = ring_page(member);
	settle();
	call(2);
	need(!ioctl(member, PERF_EVENT_IOC_DISABLE, 0));
	call(2);
	need(!ioctl(member, PERF_EVENT_IOC_ENABLE, 0));
	settle();
	call(1);
	need(!ioctl(member, PERF_EVENT_IOC_RESET, 0));
	call(2);
	say_reads(page, id_of(member));
	report("read", read(member, words, sizeof(words)));
	say("%lu\n", words[0]);
}

/* What it had counted before is in it. */
static void case_reads_of_one_that_was_joined(void)
{
	struct perf_event_attr first = reading(), second = place_breakpoint();
	struct perf_event_mmap_page *page;
	uint64_t words[8];
	int leader = own_event(&first);

	call(4);
	need(open_event(&second, 0, -1, leader, 0) >= 0);
	page = ring_page(leader);
	call(2);
	say_reads(page, id_of(leader));
	report("read", read(leader, words, sizeof(words)));
	say("%lu\n", words[0]);
	need(!ioctl(leader, PERF_EVENT_IOC_RESET, 0));
	call(1);
	say_reads(page, id_of(leader));
}

/* ---- numbers ---- */

/* As of any other descriptor. */
static void case_numbers(void)
{
	struct perf_event_attr first = place_breakpoint(), second = tracepoint();
	const int leader = own_event(&first);
	int members[3];

	for (int i = 0; i < 3; i++) {
		members[i] = open_event(&second, 0, -1, leader, 0);
		say("member: %d\n", members[i] - leader);
	}
	close(members[1]);
	say("again: %d\n", open_event(&second, 0, -1, leader, 0) - leader);
}

/* ---- what is none ---- */

/* Beside whatever group. */
static void case_of_no_type(void)
{
	struct perf_event_attr first = place_breakpoint(), attr = {.size = sizeof(attr)};
	const int leader = own_event(&first);

	attr.type = 12345;
	TRY(open_event(&attr, 0, -1, leader, 0));
	TRY(open_event(&attr, 0, -1, leader, PERF_FLAG_FD_OUTPUT));
	TRY(open_event(&attr, 0, -1, leader, PERF_FLAG_FD_NO_GROUP));
	say("%lu\n", count_of(leader));
}

const struct test_case cases[] = {
	{"numbers", case_numbers},
	{"of_no_type", case_of_no_type},
	{"come_to_who_looks", case_come_to_who_looks},
	{"come_to_who_looks_led_by_a_tracepoint", case_come_to_who_looks_led_by_a_tracepoint},
	{"opener_has_ended", case_opener_has_ended},
	{"opener_executes", case_opener_executes},
	{"_waits", case_waits},
	{"epoll", case_epoll},
	{"signals", case_signals},
	{"signals_to_a_thread", case_signals_to_a_thread},
	{"signals_to_a_group", case_signals_to_a_group},
	{"signals_without_a_ring", case_signals_without_a_ring},
	{"signal_by_default", case_signal_by_default},
	{"signals_of_its_own", case_signals_of_its_own},
	{"task_ends", case_task_ends},
	{"task_ends_led_by_a_tracepoint", case_task_ends_led_by_a_tracepoint},
	{"task_ends_while_who_reads_waits", case_task_ends_while_who_reads_waits},
	{"leader_ends", case_leader_ends},
	{"tracepoint_that_leads_ends", case_tracepoint_that_leads_ends},
	{"leader_ends_with_a_process", case_leader_ends_with_a_process},
	{"refresh", case_refresh},
	{"refresh_of_another", case_refresh_of_another},
	{"refresh_while_the_leader_is_off", case_refresh_while_the_leader_is_off},
	{"refresh_of_a_leader", case_refresh_of_a_leader},
	{"refresh_refused", case_refresh_refused},
	{"query_programs", case_query_programs},
	{"reads", case_reads},
	{"reads_of_one_that_was_joined", case_reads_of_one_that_was_joined},
	{0},
};
