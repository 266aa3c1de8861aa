// SPDX-License-Identifier: MIT
/*
 * A run whose monitor is killed or stopped: programs go on.
 *
 *	monitor TALLY		the tests; each starts
 *	monitor TALLY NAME	what is run, by `TALLY run`: so its parent is the monitor
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/conformance/workload.h"
#include "tests/run/alone.h"

enum { PAGE = 4096, RING = 9 * PAGE, LOOPS = 10000, PERIOD = 1009 };

/* ---- what is run ---- */

static struct {
	int counting, sampling, inherited;
	struct perf_event_mmap_page *ring;
} events;

static int open_instructions(uint64_t period, bool inherit)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.sample_period = period,
		.sample_type = period ? PERF_SAMPLE_IP : 0,
		.inherit = inherit,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	if (read(fd, &count, sizeof(count)) != sizeof(count))
		printf("read: %s\n", strerror(errno));
	return count;
}

static void open_events(void)
{
	events.counting = open_instructions(0, false);
	events.sampling = open_instructions(PERIOD, false);
	events.inherited = open_instructions(0, true);
	events.ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, events.sampling, 0);
	if (events.counting < 0 || events.sampling < 0 || events.inherited < 0 ||
	    events.ring == MAP_FAILED)
		printf("events: %s\n", strerror(errno));
}

static uint64_t counted_loop(void)
{
	uint64_t before = count_of(events.counting);

	ioctl(events.counting, PERF_EVENT_IOC_ENABLE, 0);
	work_loop(LOOPS);
	ioctl(events.counting, PERF_EVENT_IOC_DISABLE, 0);
	return count_of(events.counting) - before;
}

/* What counts and samples goes on to, and the same; @expected is from before. */
static void look_at_events(uint64_t expected)
{
	const uint64_t head = __atomic_load_n(&events.ring->data_head, __ATOMIC_ACQUIRE);

	printf("counts: %d\n", counted_loop() == expected);
	printf("samples: %d\n", __atomic_load_n(&events.ring->data_head, __ATOMIC_ACQUIRE) > head);
	__atomic_store_n(&events.ring->data_tail,
			 __atomic_load_n(&events.ring->data_head, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

static void *work_in_thread(void *unused)
{
	work_loop(LOOPS);
	return unused;
}

/* Processes and threads come and go, and what they count is there. */
static void look_at_others(void)
{
	uint64_t before = count_of(events.inherited);
	int status = -1;
	pthread_t thread;
	pid_t child = fork();

	if (!child) {
		work_loop(LOOPS);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	if (waitpid(child, &status, 0) != child || status)
		printf("child: %#x\n", (unsigned int)status);
	if (pthread_create(&thread, NULL, work_in_thread, NULL) || pthread_join(thread, NULL))
		printf("no thread\n");
	printf("others count: %d\n", count_of(events.inherited) - before > 2 * LOOPS);
}

static short poll_now(int fd)
{
	struct pollfd item = {fd, POLLIN, 0};

	return poll(&item, 1, 10000) < 0 ? -1 : item.revents;
}

static void close_events(void)
{
	printf("close: %d %d %d %d\n", munmap(events.ring, RING), close(events.counting),
	       close(events.sampling), close(events.inherited));
}

static void killed(void)
{
	const pid_t monitor = getppid();
	uint64_t expected;

	open_events();
	counted_loop();
	expected = counted_loop();
	kill(monitor, SIGKILL);
	while (getppid() == monitor)
		usleep(1000);
	look_at_events(expected);
	look_at_others();
	printf("hung up: %d %d\n", !!(poll_now(events.counting) & POLLHUP),
	       !!(poll_now(events.sampling) & POLLHUP));
	printf("open: %s\n", open_instructions(0, false) < 0 ? strerror(errno) : "possible");
	close_events();
}

static void stopped(void)
{
	const pid_t monitor = getppid();
	uint64_t expected;
	int fd;

	open_events();
	counted_loop();
	expected = counted_loop();
	kill(monitor, SIGSTOP);
	look_at_events(expected);
	look_at_others();
	fd = open_instructions(0, false);
	printf("open: %d, ", fd >= 0);
	printf("counts: %d, ", count_of(fd) > 0);
	printf("close: %d\n", close(fd));
	close_events();
	kill(monitor, SIGCONT);
	open_events();
	counted_loop();
	look_at_events(expected);
	close_events();
}

/* ---- the tests ---- */

static void programs_survive_a_monitor_that_is_killed(void **state)
{
	char said[4096];
	int status;

	(void)state;
	assert_true(alone_run("killed", said, sizeof(said), &status) >= 0);
	assert_string_equal(said, "counts: 1\nsamples: 1\nothers count: 1\nhung up: 1 1\n"
				  "open: No such device\nclose: 0 0 0 0\nend\n");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void programs_do_not_wait_for_a_monitor_that_is_stopped(void **state)
{
	char said[4096];
	int status;

	(void)state;
	assert_true(alone_run("stopped", said, sizeof(said), &status) >= 0);
	assert_string_equal(said, "counts: 1\nsamples: 1\nothers count: 1\n"
				  "open: 1, counts: 1, close: 0\nclose: 0 0 0 0\n"
				  "counts: 1\nsamples: 1\nclose: 0 0 0 0\nend\n");
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_survive_a_monitor_that_is_killed),
		cmocka_unit_test(programs_do_not_wait_for_a_monitor_that_is_stopped),
	};

	if (argc < 2)
		return 2;
	alone_self = argv[0];
	alone_tally = argv[1];
	alarm(60);
	if (argc > 2) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		strcmp(argv[2], "killed") ? stopped() : killed();
		puts("end");
		return 0;
	}
	return cmocka_run_group_tests_name("run: monitors that are gone", tests, NULL, NULL);
}
