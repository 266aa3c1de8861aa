// SPDX-License-Identifier: MIT
/*
 * Notifications: poll, signals, SIGTRAP. The events are watchpoints and page faults, so that the
 * number of overflows is known.
 */
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

static volatile uint32_t watched;

static struct perf_event_attr watch(uint64_t period)
{
	struct perf_event_attr attr =
		abi_breakpoint(HW_BREAKPOINT_W, &watched, HW_BREAKPOINT_LEN_4);

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP; /* records of 16 bytes */
	return attr;
}

static void hits(unsigned int count)
{
	while (count--)
		work_store4(&watched);
}

static short ready(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return CHECK_OK(poll(&one, 1, 0)) ? one.revents : 0;
}

ABI_CASE("overflow.poll arg.one-fd-per-event", "poll and epoll report a crossing once")
{
	struct perf_event_attr attr = watch(1);
	struct epoll_event interest = {.events = EPOLLIN}, got;
	int fd, epoll;
	struct ring ring;

	attr.wakeup_events = 1;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	START(fd);
	CHECK_EQ(ready(fd), 0);
	hits(1);
	CHECK_EQ(ready(fd), POLLIN);
	CHECK_EQ(ready(fd), 0);
	epoll = (int)CHECK_OK(epoll_create1(0));
	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &interest));
	hits(1);
	CHECK_EQ(CHECK_OK(epoll_wait(epoll, &got, 1, 0)), 1);
	CHECK_EQ(got.events, EPOLLIN);
	CHECK_EQ(CHECK_OK(epoll_wait(epoll, &got, 1, 0)), 0);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 2);
}

ABI_CASE("overflow.poll-shared", "events of one buffer share its readiness")
{
	struct perf_event_attr attr = watch(1);
	struct ring ring;
	int target, other;

	attr.wakeup_events = 1;
	target = OPEN_SELF(&attr);
	other = OPEN_SELF(&attr);
	ring = MAP(target, 1);
	CHECK_OK(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, (long)target));
	START(other);
	hits(1);
	CHECK_EQ(ready(target), POLLIN);
	CHECK_EQ(ready(other), 0);
	hits(1);
	CHECK_EQ(ready(other), POLLIN);
	CHECK_EQ(ready(target), 0);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 2);
}

ABI_CASE("overflow.poll-no-buffer", "without a buffer POLLHUP at once")
{
	struct perf_event_attr attr = watch(1);

	CHECK_EQ(ready(OPEN_SELF(&attr)), POLLHUP);
}

static const struct threshold {
	struct abi_row about;
	bool watermark;
	uint32_t wakeup;
	unsigned int first, again; /* the sample that makes it ready, and how many more do */
} thresholds[] = {
	{{"overflow.events-threshold attr.wakeup_events", "wakeup_events 1"}, false, 1, 1, 1},
	{{"overflow.events-threshold attr.wakeup_events", "wakeup_events 3"}, false, 3, 3, 3},
	{{"overflow.bytes-threshold attr.watermark attr.wakeup_watermark", "1 byte"},
	 true,
	 1,
	 1,
	 1},
	{{"overflow.bytes-threshold attr.wakeup_watermark", "48 bytes: strictly more"},
	 true,
	 48,
	 4,
	 3},
	{{"overflow.bytes-threshold attr.wakeup_watermark", "47 bytes"}, true, 47, 3, 3},
};

ABI_TABLE(thresholds)
{
	struct perf_event_attr attr = watch(1);
	struct ring ring;
	int fd;

	attr.watermark = row->watermark;
	attr.wakeup_events = row->wakeup;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	START(fd);
	for (unsigned int i = 0; i < row->first - 1; i++) {
		hits(1);
		CHECK_EQ(ready(fd), 0);
	}
	hits(1);
	CHECK_EQ(ready(fd), POLLIN);
	DRAIN(&ring, PERF_RECORD_SAMPLE);
	for (unsigned int i = 0; i < row->again - 1; i++) {
		hits(1);
		CHECK_EQ(ready(fd), 0);
	}
	hits(1);
	CHECK_EQ(ready(fd), POLLIN);
}

static const struct half {
	struct abi_row about;
	bool watermark;
	uint32_t wakeup;
	unsigned int samples; /* of 16 bytes that make one page of 4096 ready */
} halves[] = {
	{{"attr.wakeup_events-zero", "ready when more than half the buffer is filled"},
	 false,
	 0,
	 129},
	{{"attr.wakeup_watermark", "0 stands for half the buffer"}, true, 0, 129},
	{{"attr.wakeup_watermark", "beyond the buffer it is capped at its size"}, true, 1 << 20, 0},
};

ABI_TABLE(halves)
{
	struct perf_event_attr attr = watch(1);
	unsigned int samples = 0;
	struct ring ring;
	int fd;

	attr.watermark = row->watermark;
	attr.wakeup_events = row->wakeup;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	if (ring.size != 4096)
		CANNOT("pages of %llu bytes", (unsigned long long)ring.size);
	START(fd);
	while (samples < 250) {
		hits(1);
		samples++;
		if (ready(fd))
			break;
	}
	CHECK_EQ(samples, row->samples ? row->samples : 250);
}

ABI_CASE("overflow.legacy-page", "the pages that fill are no threshold of their own")
{
	struct perf_event_attr attr = watch(1);
	unsigned int samples = 0;
	struct ring ring;
	int fd;

	attr.watermark = 1;
	attr.wakeup_watermark = 20000;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 8);
	START(fd);
	while (samples < 2000 && !ready(fd)) {
		hits(1);
		samples++;
	}
	CHECK_EQ(samples, 20000 / 16 + 1);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), samples);
}

ABI_CASE("attr.wakeup_events attr.watermark overflow.bytes-threshold",
	 "other records move the watermark, but do not count as samples")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_DUMMY);
	struct ring ring;
	int fd;

	attr.comm = 1;
	attr.wakeup_events = 1;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	START(fd);
	CHECK_OK(prctl(PR_SET_NAME, "events"));
	CHECK_EQ(ready(fd), 0);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_COMM), 1);

	attr.watermark = 1;
	attr.wakeup_watermark = 1;
	fd = OPEN_SELF(&attr);
	abi_unmap(&ring);
	ring = MAP(fd, 1);
	START(fd);
	CHECK_OK(prctl(PR_SET_NAME, "watermark"));
	CHECK_EQ(ready(fd), POLLIN);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_COMM), 1);
}

/* ---- signals ---- */

#define SIGNAL (SIGRTMIN + 3)

/* Blocks the signals: they queue until next_signal() fetches them. */
static void hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	sigaddset(&set, SIGIO);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
}

static bool next_signal(int signal, siginfo_t *info, long milliseconds)
{
	const struct timespec limit = {.tv_sec = milliseconds / 1000,
				       .tv_nsec = milliseconds % 1000 * 1000000};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	return sigtimedwait(&set, info, &limit) == signal;
}

static void notify_by_signal(int fd)
{
	CHECK_OK(fcntl(fd, F_SETOWN, getpid()));
	CHECK_OK(fcntl(fd, F_SETSIG, SIGNAL));
	CHECK_OK(fcntl(fd, F_SETFL, O_ASYNC | O_RDWR));
}

/* How many come within a moment, all alike. */
static unsigned int signals_like(int fd, int code, long band)
{
	unsigned int count = 0;
	siginfo_t info;

	while (next_signal(SIGNAL, &info, 50)) {
		CHECK_EQ(info.si_code, code);
		CHECK_EQ(info.si_fd, fd);
		CHECK_EQ(info.si_band, band);
		count++;
	}
	return count;
}

static const struct per_overflow {
	struct abi_row about;
	uint32_t wakeup_events;
	bool mapped;
} per_overflows[] = {
	{{"overflow.poll_in overflow.band", "one for each overflow with wakeup_events 1"}, 1, true},
	{{"overflow.poll_in attr.wakeup_events", "and with wakeup_events 3"}, 3, true},
	{{"overflow.poll_in attr.wakeup_events-zero", "and with wakeup_events 0"}, 0, true},
	{{"overflow.poll_in mmap.optional", "and without a buffer"}, 1, false},
};

ABI_TABLE(per_overflows)
{
	struct perf_event_attr attr = watch(1);
	int fd;

	attr.wakeup_events = row->wakeup_events;
	fd = OPEN_SELF(&attr);
	if (row->mapped)
		MAP(fd, 1);
	hold_signals();
	notify_by_signal(fd);
	START(fd);
	hits(6);
	STOP(fd);
	CHECK_EQ(signals_like(fd, POLL_IN, POLLIN | POLLRDNORM), 6);
}

ABI_CASE("overflow.signal-setup", "without F_SETSIG a plain SIGIO, without code or descriptor")
{
	struct perf_event_attr attr = watch(1);
	int fd = OPEN_SELF(&attr);
	siginfo_t info;

	hold_signals();
	START(fd);
	hits(1);
	CHECK(!next_signal(SIGIO, &info, 20)); /* not asked for yet */
	CHECK_OK(fcntl(fd, F_SETOWN, getpid()));
	CHECK_OK(fcntl(fd, F_SETFL, O_ASYNC | O_RDWR));
	hits(1);
	CHECK(next_signal(SIGIO, &info, 2000));
	CHECK_EQ(info.si_code, SI_KERNEL);
	CHECK_OK(fcntl(fd, F_SETFL, O_RDWR));
	hits(1);
	CHECK(!next_signal(SIGIO, &info, 20));
}

ABI_CASE("overflow.sampling-only", "a counting event never signals")
{
	struct perf_event_attr attr = watch(0);
	int fd = OPEN_SELF(&attr);

	hold_signals();
	notify_by_signal(fd);
	START(fd);
	hits(20);
	CHECK_EQ(signals_like(fd, POLL_IN, POLLIN | POLLRDNORM), 0);
	CHECK_EQ(VALUE(fd), 20);
}

struct listener {
	struct gate ready, go;
	pid_t tid;
	unsigned int heard;
};

static void *listen_for_signals(void *arg)
{
	struct listener *me = arg;
	siginfo_t info;

	me->tid = (pid_t)syscall(SYS_gettid);
	abi_pass(&me->ready);
	abi_wait(&me->go);
	while (next_signal(SIGNAL, &info, 50))
		me->heard++;
	return NULL;
}

ABI_CASE("overflow.setown_ex", "F_OWNER_TID directs the signals to one thread")
{
	struct listener one = {abi_gate(), abi_gate(), 0, 0};
	struct perf_event_attr attr = watch(1);
	struct f_owner_ex owner;
	int fd = OPEN_SELF(&attr);
	pthread_t thread;
	siginfo_t info;

	hold_signals();
	CHECK_EQ(pthread_create(&thread, NULL, listen_for_signals, &one), 0);
	abi_wait(&one.ready);
	owner.type = F_OWNER_TID;
	owner.pid = one.tid;
	CHECK_OK(fcntl(fd, F_SETOWN_EX, &owner));
	CHECK_OK(fcntl(fd, F_SETSIG, SIGNAL));
	CHECK_OK(fcntl(fd, F_SETFL, O_ASYNC | O_RDWR));
	START(fd);
	hits(4);
	CHECK(!next_signal(SIGNAL, &info, 20));
	abi_pass(&one.go);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(one.heard, 4);
}

ABI_CASE("overflow.poll_hup-refresh overflow.band ioctl.refresh",
	 "the last overflow of a refresh tells POLL_HUP")
{
	struct perf_event_attr attr = watch(1);
	int fd = OPEN_SELF(&attr);
	siginfo_t info;

	hold_signals();
	notify_by_signal(fd);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_REFRESH, 3));
	hits(6);
	for (int i = 0; i < 2; i++) {
		CHECK(next_signal(SIGNAL, &info, 2000));
		CHECK_EQ(info.si_code, POLL_IN);
		CHECK_EQ(info.si_fd, fd);
		CHECK_EQ(info.si_band, POLLIN | POLLRDNORM);
	}
	CHECK(next_signal(SIGNAL, &info, 2000));
	CHECK_EQ(info.si_code, POLL_HUP);
	CHECK_EQ(info.si_band, POLLHUP | POLLERR);
	CHECK(!next_signal(SIGNAL, &info, 20));
	CHECK_EQ(VALUE(fd), 3);
}

static uint64_t own_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Works until the event is switched off, which is told by a signal. */
static bool runs_out(void)
{
	siginfo_t info;

	for (int i = 0; i < 1000; i++) {
		work_spin(1000000);
		while (next_signal(SIGNAL, &info, 0))
			if (info.si_code == POLL_HUP)
				return true;
	}
	return false;
}

ABI_CASE("overflow.poll_hup-refresh ioctl.refresh", "a clock that ran out goes on when refreshed")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_TASK_CLOCK);
	int fd;

	attr.sample_period = 1000000;
	attr.disabled = 1;
	fd = OPEN_SELF(&attr);
	hold_signals();
	notify_by_signal(fd);
	for (int i = 0; i < 3; i++) {
		const uint64_t stood = VALUE(fd), since = own_time();
		uint64_t off;

		work_spin(100000000);
		off = own_time() - since;
		CHECK_OK(ioctl(fd, PERF_EVENT_IOC_REFRESH, 3));
		CHECK(runs_out());
		/* By its period, however long it has been off: 3 ms. */
		CHECK(VALUE(fd) - stood < off);
	}
}

ABI_CASE("overflow.paused", "overflows of a paused buffer still notify")
{
	struct perf_event_attr attr = watch(1);
	struct ring ring;
	int fd;

	attr.wakeup_events = 1;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	hold_signals();
	notify_by_signal(fd);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	START(fd);
	hits(6);
	STOP(fd);
	CHECK_EQ(signals_like(fd, POLL_IN, POLLIN | POLLRDNORM), 6);
	CHECK(NEXT(&ring) == NULL);
}

/* ---- the end of the target ---- */

static void wait_once(void *arg)
{
	abi_wait(arg);
}

ABI_CASE("overflow.exit-hup",
	 "POLLHUP once the target has exited; a blocked poll wakes, no signal comes")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct gate gate = abi_gate();
	pid_t pid = SPAWN(wait_once, &gate);
	struct pollfd one = {.events = POLLIN};
	siginfo_t info;
	int fd;

	attr.sample_period = 1;
	fd = OPEN(&attr, pid, -1, -1);
	MAP(fd, 1);
	hold_signals();
	notify_by_signal(fd);
	CHECK_EQ(ready(fd), 0);
	abi_pass(&gate);
	one.fd = fd;
	CHECK_EQ(CHECK_OK(poll(&one, 1, 10000)), 1);
	CHECK_EQ(one.revents, POLLHUP);
	JOIN(pid);
	CHECK_EQ(ready(fd), POLLHUP);
	CHECK(!next_signal(SIGNAL, &info, 20));
}

struct family {
	struct gate parent, child, born;
};

static void be_child(void *arg)
{
	struct family *family = arg;

	abi_pass(&family->born);
	abi_wait(&family->child);
}

static void leave_child(void *arg)
{
	struct family *family = arg;

	abi_wait(&family->parent);
	SPAWN(be_child, family);
}

ABI_CASE("overflow.exit-hup", "not while an inherited child lives")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct family family = {abi_gate(), abi_gate(), abi_gate()};
	pid_t pid = SPAWN(leave_child, &family);
	struct pollfd one = {.events = POLLIN};
	int cpu = abi_first_cpu();

	abi_pin(pid, cpu);
	attr.inherit = 1;
	attr.sample_period = 1000000;
	one.fd = OPEN(&attr, pid, cpu, -1);
	MAP(one.fd, 1);
	abi_pass(&family.parent);
	abi_wait(&family.born);
	JOIN(pid);
	CHECK_EQ(ready(one.fd), 0);
	abi_pass(&family.child);
	CHECK_EQ(CHECK_OK(poll(&one, 1, 10000)), 1);
	CHECK_EQ(one.revents, POLLHUP);
}

/* ---- SIGTRAP ---- */

static struct {
	volatile unsigned int count;
	siginfo_t info;
} trap;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	trap.info = *info;
	trap.count++;
}

/* The tail of siginfo for TRAP_PERF, which not every libc names. */
struct trap_perf {
	unsigned long data;
	uint32_t type, flags;
};

static struct trap_perf trap_perf(void)
{
	struct trap_perf out;

	/* behind si_signo, si_errno, si_code, the padding and si_addr */
	memcpy(&out, (const char *)&trap.info + 24, sizeof(out));
	return out;
}

static int open_trapping(void)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct perf_event_attr attr = watch(1);

	CHECK_OK(sigaction(SIGTRAP, &action, NULL));
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.sig_data = 0x1122334455667788ULL;
	return OPEN_SELF(&attr);
}

ABI_CASE("overflow.sigtrap attr.sig_data",
	 "synchronous, with the address, the event type and the cookie")
{
	int fd = open_trapping();

	START(fd);
	for (unsigned int i = 1; i <= 3; i++) {
		hits(1);
		CHECK_EQ(trap.count, i); /* before the next instruction of ours */
		CHECK_EQ(trap.info.si_code, 6 /* TRAP_PERF */);
		CHECK_EQ((uintptr_t)trap.info.si_addr, (uintptr_t)&watched);
		CHECK_EQ(trap_perf().data, 0x1122334455667788ULL);
		CHECK_EQ(trap_perf().type, PERF_TYPE_BREAKPOINT);
		CHECK_EQ(trap_perf().flags, 0);
	}
	STOP(fd);
	hits(1);
	CHECK_EQ(trap.count, 3);
}

ABI_CASE("overflow.sigtrap", "of two events of one instruction there is one signal")
{
	int fds[] = {open_trapping(), open_trapping()};

	START(fds[0]);
	START(fds[1]);
	for (unsigned int i = 1; i <= 3; i++) {
		hits(1);
		CHECK_EQ(trap.count, i);
	}
	CHECK_EQ(VALUE(fds[1]), 3);
}

ABI_CASE("overflow.sigtrap", "delivered late, and marked so, when it was blocked")
{
	int fd = open_trapping();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
	START(fd);
	hits(1);
	STOP(fd);
	CHECK_EQ(trap.count, 0);
	CHECK_OK(sigprocmask(SIG_UNBLOCK, &set, NULL));
	CHECK_EQ(trap.count, 1);
	CHECK_EQ(trap_perf().flags, 1 /* TRAP_PERF_FLAG_ASYNC */);
	CHECK_EQ((uintptr_t)trap.info.si_addr, (uintptr_t)&watched);
}

/* ---- throttling ---- */

ABI_CASE("overflow.throttle record.throttle",
	 "an event over the permitted rate is throttled and released, both are told")
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_TRACEPOINT, 0);
	const struct perf_event_header *header;
	unsigned int throttled = 0, released = 0;
	struct ring ring;
	int fd;

	/* it adds nanoseconds: many overflows in one go, whatever the permitted rate is */
	NEED_RIGHTS();
	attr.config = abi_tracepoint("sched/sched_stat_runtime");
	attr.exclude_kernel = 0;
	attr.sample_period = 2;
	attr.sample_type = PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_TIME;
	attr.sample_id_all = 1;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 512);
	START(fd);
	for (int i = 0; i < 200 && !(throttled && released); i++) {
		work_spin(10000000);
		while ((header = NEXT(&ring))) {
			const uint64_t *words = abi_words(header);

			if (header->type != PERF_RECORD_THROTTLE &&
			    header->type != PERF_RECORD_UNTHROTTLE)
				continue;
			CHECK_EQ(header->size, 8 + 24 + 24);
			CHECK(words[0] != 0);
			CHECK_EQ(words[1], ID(fd));
			CHECK_EQ(words[2], TRAILER(&attr, header).stream_id);
			CHECK_EQ(words[1], TRAILER(&attr, header).id);
			if (header->type == PERF_RECORD_THROTTLE) {
				throttled++;
			} else {
				CHECK_CMP(throttled, >, 0);
				released++;
			}
		}
	}
	CHECK_CMP(throttled, >, 0);
	CHECK_CMP(released, >, 0);
}
