// SPDX-License-Identifier: MIT
/* The rings of real events, on whatever kernel runs the tests. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/probe.h>
#include <tally/sampler.h>

struct fixture {
	struct tally_events *events;
	struct tally_counters *counters;
	struct tally_sampler *sampler;
};

static bool refused(int code)
{
	return code == -EACCES || code == -EPERM || code == -ENOSYS;
}

/* Samples @text with a fixed period; skips the test where nothing may be sampled at all. */
static void set_up(struct fixture *f, const char *text, uint64_t period,
		   const struct tally_target *target, unsigned int flags,
		   const struct tally_sampler_options *options)
{
	struct tally_error err = {0};
	int ret;

	memset(f, 0, sizeof(*f));
	f->events = tally_events_new();
	assert_non_null(f->events);
	assert_int_equal(tally_events_parse(f->events, text, 0, &err), 0);
	for (size_t i = 0; i < tally_events_count(f->events); i++) {
		struct perf_event_attr *attr = tally_events_at(f->events, i)->attr;

		attr->sample_period = period;
		attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				    PERF_SAMPLE_TIME;
		attr->sample_id_all = 1;
		attr->write_backward = options->overwrite;
	}
	ret = tally_counters_open(f->events, target, flags, &f->counters, &err);
	if (refused(ret)) {
		tally_events_free(f->events);
		skip();
	}
	assert_int_equal(ret, 0);
	ret = tally_sampler_new(f->counters, options, &f->sampler, &err);
	if (ret < 0)
		print_message("# %s\n", err.what);
	assert_int_equal(ret, 0);
}

static void tear_down(struct fixture *f)
{
	tally_sampler_free(f->sampler);
	tally_counters_close(f->counters);
	tally_events_free(f->events);
}

static void touch_pages(size_t nr)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *area =
		mmap(NULL, nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(area != MAP_FAILED);
	madvise(area, nr * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < nr; i++)
		*(volatile char *)(area + i * page) = 1;
	munmap(area, nr * page);
}

static const struct tally_target self = {.kind = TALLY_TARGET_SELF};

/* Two events in one ring: every page fault is a sample of both, told apart by id, in time order. */
static void test_two_events(void **state)
{
	const struct tally_sampler_options options = {.pages = 64, .ordered = true};
	uint64_t seen[2] = {0}, last = 0;
	struct tally_sampler_stats stats;
	struct tally_record record;
	struct tally_error err;
	struct fixture f;
	size_t event;

	(void)state;
	set_up(&f, "page-faults:u,minor-faults:u", 1, &self, TALLY_OPEN_DISABLED, &options);
	assert_int_equal(tally_sampler_rings(f.sampler), 1);
	assert_int_equal(tally_counters_enable(f.counters), 0);
	touch_pages(100);
	assert_int_equal(tally_counters_disable(f.counters), 0);
	while (tally_sampler_next(f.sampler, true, &record, &event, &err) == 1) {
		if (record.type != PERF_RECORD_SAMPLE)
			continue;
		assert_in_range(event, 0, 1);
		seen[event]++;
		assert_true(record.id.time >= last);
		last = record.id.time;
		assert_int_equal(record.id.tid, gettid());
	}
	assert_in_range(seen[0], 100, 1000);
	assert_int_equal(seen[0], seen[1]);
	tally_sampler_stats(f.sampler, &stats);
	assert_int_equal(stats.samples, seen[0] + seen[1]);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(stats.out_of_order, 0);
	assert_int_equal(stats.corrupt, 0);
	tear_down(&f);
}

/* A ring that is too small loses samples, and says how many: none is unaccounted for. */
static void test_losses_are_accounted(void **state)
{
	const struct tally_sampler_options options = {.pages = 1};
	struct tally_sampler_stats stats;
	struct tally_record record;
	struct tally_value value;
	struct tally_error err;
	struct fixture f;

	(void)state;
	set_up(&f, "page-faults:u", 1, &self, TALLY_OPEN_DISABLED, &options);
	tally_counters_enable(f.counters);
	touch_pages(500);
	/* Room for the record that says what was lost comes with the reading. */
	while (tally_sampler_next(f.sampler, true, &record, NULL, &err) == 1)
		;
	touch_pages(5);
	tally_counters_disable(f.counters);
	while (tally_sampler_next(f.sampler, true, &record, NULL, &err) == 1)
		;
	tally_sampler_stats(f.sampler, &stats);
	assert_int_equal(tally_counters_sum(f.counters, 0, &value), 0);
	assert_true(stats.lost > 0);
	assert_int_equal(stats.samples + stats.lost, value.raw);
	tear_down(&f);
}

static void test_wait_times_out(void **state)
{
	const struct tally_sampler_options options = {.pages = 1};
	struct fixture f;

	(void)state;
	set_up(&f, "page-faults:u", 1, &self, TALLY_OPEN_DISABLED, &options);
	assert_int_equal(tally_sampler_wait(f.sampler, 1), 0);
	tally_counters_enable(f.counters);
	touch_pages(200);
	assert_int_equal(tally_sampler_wait(f.sampler, 10000), 1);
	tear_down(&f);
}

/* Starts a child that ends when it is told to. */
static pid_t start_child(int *tell)
{
	int fds[2];
	char c;

	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();

	if (pid == 0) {
		close(fds[1]);
		_exit(read(fds[0], &c, 1) > 0);
	}
	close(fds[0]);
	*tell = fds[1];
	return pid;
}

static void end_child(pid_t pid, int tell)
{
	assert_int_equal(write(tell, "", 1), 1);
	close(tell);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A ring for each task: only the last end ends the waiting. */
static void test_wait_until_all_have_ended(void **state)
{
	int tell[2];
	pid_t pids[2] = {start_child(&tell[0]), start_child(&tell[1])};
	const struct tally_target target = {.kind = TALLY_TARGET_PROCESS, .ids = pids, .nr_ids = 2};
	const struct tally_sampler_options options = {.pages = 1};
	struct fixture f;
	int ret;

	(void)state;
	set_up(&f, "page-faults:u", 1, &target, 0, &options);
	assert_int_equal(tally_sampler_rings(f.sampler), 2);
	for (int i = 0; i < 2; i++) {
		end_child(pids[i], tell[i]);
		do
			ret = tally_sampler_wait(f.sampler, i ? 10000 : 10);
		while (ret == 1);
		assert_int_equal(ret, i ? -EPIPE : 0);
	}
	assert_int_equal(tally_sampler_wait(f.sampler, -1), -EPIPE);
	tear_down(&f);
}

static void test_shared_rings_of_processors(void **state)
{
	const int cpus[] = {0};
	int tell[3];
	pid_t pids[3];
	const struct tally_target target = {
		.kind = TALLY_TARGET_PROCESS, .ids = pids, .nr_ids = 3, .cpus = cpus, .nr_cpus = 1};
	const struct tally_sampler_options options = {.pages = 4};
	struct fixture f;
	int ret;

	(void)state;
	for (int i = 0; i < 3; i++)
		pids[i] = start_child(&tell[i]);
	set_up(&f, "page-faults:u,task-clock:u", 1000000, &target, TALLY_OPEN_INHERIT, &options);
	assert_int_equal(tally_sampler_rings(f.sampler), 1);
	/* The first maps the ring: others take over what is polled. */
	for (int i = 0; i < 3; i++) {
		end_child(pids[i], tell[i]);
		do
			ret = tally_sampler_wait(f.sampler, i == 2 ? 10000 : 10);
		while (ret == 1);
		assert_int_equal(ret, i == 2 ? -EPIPE : 0);
	}
	tear_down(&f);
}

/* An overwrite ring keeps the newest samples; a second snapshot has only what came since. */
static void test_snapshots(void **state)
{
	const struct tally_sampler_options options = {.pages = 1, .overwrite = true};
	struct tally_record record;
	struct tally_error err;
	struct fixture f;
	uint64_t newest = 0;

	(void)state;
	set_up(&f, "page-faults:u", 1, &self, TALLY_OPEN_DISABLED, &options);
	assert_true(tally_sampler_ring_is_backward(f.sampler, 0));
	for (int snapshot = 0; snapshot < 3; snapshot++) {
		size_t samples = 0;

		tally_counters_enable(f.counters);
		/* The first overwrites the ring many times, the others do not fill it. */
		touch_pages(snapshot ? 10 : 1000);
		tally_counters_disable(f.counters);
		assert_int_equal(tally_sampler_pause(f.sampler, true), 0);
		while (tally_sampler_next(f.sampler, true, &record, NULL, &err) == 1) {
			assert_true(record.id.time > newest);
			newest = record.id.time;
			samples++;
		}
		assert_int_equal(tally_sampler_pause(f.sampler, false), 0);
		if (snapshot)
			assert_in_range(samples, 10, 60);
		else
			assert_int_equal(samples, sysconf(_SC_PAGESIZE) / 40);
	}
	tear_down(&f);
}

static void test_signal(void **state)
{
	const struct tally_sampler_options options = {
		.pages = 1, .signal = SIGRTMIN + 3, .signal_tid = gettid()};
	const struct timespec wait = {.tv_sec = 10};
	struct fixture f;
	sigset_t set;
	siginfo_t info;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, options.signal);
	sigprocmask(SIG_BLOCK, &set, NULL);
	set_up(&f, "page-faults:u", 1, &self, TALLY_OPEN_DISABLED, &options);
	tally_counters_enable(f.counters);
	touch_pages(200);
	assert_int_equal(sigtimedwait(&set, &info, &wait), options.signal);
	assert_int_equal(info.si_fd, tally_counter_fd(tally_counters_at(f.counters, 0, 0, 0)));
	tear_down(&f);
	/* More than one may have been queued. */
	signal(options.signal, SIG_IGN);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* What the attrs do not allow is refused with a reason, not found out while reading. */
static void test_attrs_are_checked(void **state)
{
	const struct tally_sampler_options ordered = {.pages = 1, .ordered = true};
	struct tally_events *events = tally_events_new();
	struct tally_counters *counters;
	struct tally_sampler *sampler;
	struct tally_error err;
	int ret;

	(void)state;
	assert_int_equal(tally_events_parse(events, "page-faults:u,task-clock:u", 0, &err), 0);
	ret = tally_counters_open(events, &self, TALLY_OPEN_DISABLED, &counters, &err);
	if (refused(ret)) {
		tally_events_free(events);
		skip();
	}
	assert_int_equal(ret, 0);
	assert_int_equal(tally_sampler_new(counters, NULL, &sampler, &err), -EINVAL);
	assert_non_null(strstr(err.what, "PERF_SAMPLE_IDENTIFIER"));
	tally_counters_close(counters);
	tally_events_free(events);

	events = tally_events_new();
	assert_int_equal(tally_events_parse(events, "page-faults:u", 0, &err), 0);
	assert_int_equal(tally_counters_open(events, &self, TALLY_OPEN_DISABLED, &counters, &err),
			 0);
	assert_int_equal(tally_sampler_new(counters, &ordered, &sampler, &err), -EINVAL);
	assert_non_null(strstr(err.what, "PERF_SAMPLE_TIME"));
	tally_counters_close(counters);
	tally_events_free(events);
}

static int open_dummy(bool inherit)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.inherit = inherit,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Locks all but 16 to 48 pages of what this user may lock. */
static void use_up_budget(void)
{
	size_t left = tally_system_ring_budget() / sysconf(_SC_PAGESIZE);

	for (size_t pages = 1 << 20; pages >= 32; pages /= 2) {
		while (pages + 1 + 16 <= left) {
			struct tally_ring *ring;

			assert_int_equal(tally_ring_map(open_dummy(false), pages, 0, &ring, NULL),
					 0);
			left -= pages + 1;
		}
	}
}

/* An ordinary user with another recording: the rings get smaller than the budget promised. */
static void test_rings_fit_in_what_is_left(void **state)
{
	const struct rlimit memlock = {64 * 1024, 64 * 1024};
	const struct tally_sampler_options options = {0};
	struct tally_span piece[2];
	struct fixture f;
	pid_t pid;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_MEMLOCK, &memlock);
		if (setresuid(65533, 65533, 65533) < 0)
			_exit(1);
		if (tally_system_ring_budget() == SIZE_MAX || open_dummy(false) < 0)
			_exit(0);
		use_up_budget();
		set_up(&f, "page-faults:u", 1, &self, TALLY_OPEN_DISABLED, &options);
		tally_counters_enable(f.counters);
		touch_pages(3);
		_exit(tally_ring_peek(tally_sampler_ring(f.sampler, 0), piece) ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_refused_mappings(void **state)
{
	struct tally_ring *ring = NULL;
	struct tally_error err;
	int fd = open_dummy(true);

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(tally_ring_map(fd, 3, 0, &ring, &err), -EINVAL);
	assert_non_null(strstr(err.what, "power of two"));
	assert_int_equal(tally_ring_map(fd, 0, 0, &ring, &err), -EINVAL);
	assert_int_equal(tally_ring_map(fd, SIZE_MAX / 2 + 1, 0, &ring, &err), -EINVAL);
	/* Inherited, and bound to no processor. */
	assert_int_equal(tally_ring_map(fd, 1, 0, &ring, &err), -EINVAL);
	assert_non_null(strstr(err.remedy, "inherit"));
	assert_null(ring);
	close(fd);

	fd = open_dummy(false);
	assert_int_equal(tally_ring_map(fd, 1, 0, &ring, &err), 0);
	assert_int_equal(tally_ring_map_aux(ring, fd, 1, false, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.what, "AUX"));
	tally_ring_unmap(ring);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_events),
		cmocka_unit_test(test_losses_are_accounted),
		cmocka_unit_test(test_wait_times_out),
		cmocka_unit_test(test_wait_until_all_have_ended),
		cmocka_unit_test(test_shared_rings_of_processors),
		cmocka_unit_test(test_snapshots),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_attrs_are_checked),
		cmocka_unit_test(test_rings_fit_in_what_is_left),
		cmocka_unit_test(test_refused_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
