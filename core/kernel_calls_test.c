// SPDX-License-Identifier: MIT
/*
 * Random calls, made of the running kernel and of the core: the same errors, counts and layouts.
 *
 * What is counted are stores to a variable, by breakpoints, which the kernel counts exactly in any
 * machine, and nothing, by dummies. They are made by this thread and by a second one that comes and
 * goes. Times differ; whether they stand or go on does not.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/test_tree.h"
#include "tests/breakpoints.h"

enum {
	SEQUENCES = 40,
	CALLS = 250,
	EVENTS = 10,
	BREAKPOINTS = 3, /* the processor has four */
	WORKER_PAGE = 2,
	WORDS = 64,
};

struct pair {
	bool open;
	int fd;
	uint32_t event;
	uint64_t kernel_id;
	struct perf_event_attr attr;
	bool of_worker, inherited;
	uint64_t enabled[2]; /* at the last read, of the kernel and of the core */
};

static struct {
	uint64_t seed;
	unsigned int sequence, call;
	struct pair pairs[EVENTS];

	bool working; /* there is a second thread */
	pthread_t thread;
	int tid;
	sem_t go, done;
	unsigned int stores; /* for it to make; 0: it ends */
} test;

static volatile uint32_t target, other_target;

/* ---- both sides work ---- */

static uint64_t random_word(void)
{
	test.seed ^= test.seed << 13;
	test.seed ^= test.seed >> 7;
	test.seed ^= test.seed << 17;
	return test.seed;
}

static unsigned int below(unsigned int limit)
{
	return (unsigned int)((random_word() >> 11) % limit);
}

static void store(unsigned int stores)
{
	for (; stores; stores--)
		__asm__ volatile("movl %1, %0" : "=m"(target) : "r"(stores));
}

/* Never twice the same, so that times are equal only where they stand. */
static void pass_time(void)
{
	fake.tsc += 1 + (random_word() >> 32);
}

static void core_store(unsigned int stores)
{
	for (; stores; stores--) {
		pass_time();
		core_breakpoint(fake.task, HW_BREAKPOINT_W, (uintptr_t)&target, sizeof(target));
	}
}

static void *worker(void *arg)
{
	(void)arg;
	test.tid = (int)syscall(SYS_gettid);
	sem_post(&test.done);
	for (;;) {
		while (sem_wait(&test.go))
			;
		if (!test.stores)
			return NULL;
		store(test.stores);
		sem_post(&test.done);
	}
}

static void wait_for_worker(void)
{
	while (sem_wait(&test.done))
		;
}

static void begin_worker(void)
{
	assert_int_equal(pthread_create(&test.thread, NULL, worker, NULL), 0);
	wait_for_worker();
	tree_clone(WORKER_PAGE, 0);
	test.working = true;
	for (unsigned int i = 0; i < EVENTS; i++)
		test.pairs[i].inherited |= test.pairs[i].attr.inherit && !test.pairs[i].of_worker;
}

static void end_worker(void)
{
	test.stores = 0;
	sem_post(&test.go);
	assert_int_equal(pthread_join(test.thread, NULL), 0);
	/* it is joined before it has left its events */
	while (!syscall(SYS_tgkill, getpid(), test.tid, 0))
		usleep(10);
	tree_run(WORKER_PAGE);
	tree_exit();
	test.working = false;
}

static void work(bool by_worker)
{
	unsigned int stores = 1 + below(5);

	if (!by_worker) {
		store(stores);
		core_store(stores);
		return;
	}
	test.stores = stores;
	sem_post(&test.go);
	wait_for_worker();
	tree_run(WORKER_PAGE);
	core_store(stores);
	tree_run(FIRST_PAGE);
}

/* ---- what is compared ---- */

#define SAME(what, kernel, core)                                                                   \
	do {                                                                                       \
		long long of_kernel = (long long)(kernel), of_core = (long long)(core);            \
                                                                                                   \
		if (of_kernel != of_core)                                                          \
			fail_msg("sequence %u, call %u: %s: kernel %lld, core %lld",               \
				 test.sequence, test.call, what, of_kernel, of_core);              \
	} while (0)

static struct pair *some_pair(void)
{
	struct pair *pair = &test.pairs[below(EVENTS)];

	return pair->open ? pair : NULL;
}

static unsigned int breakpoints(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < EVENTS; i++)
		n += test.pairs[i].open && test.pairs[i].attr.type == PERF_TYPE_BREAKPOINT;
	return n;
}

/*
 * An inherited group that has changed since is not read any more by the kernel, or as something
 * else, by its version.
 */
static bool may_change_group(const struct pair *pair)
{
	return !pair->inherited;
}

static struct perf_event_attr some_attr(void)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);

	if (below(3) && breakpoints() < BREAKPOINTS) {
		attr.type = PERF_TYPE_BREAKPOINT;
		attr.config = 0;
		attr.bp_type = HW_BREAKPOINT_W;
		attr.bp_addr = (uintptr_t)&target;
		attr.bp_len = sizeof(target);
	}
	attr.read_format =
		random_word() & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
				 PERF_FORMAT_ID | PERF_FORMAT_GROUP);
	attr.disabled = below(2);
	attr.inherit = !below(3);
	attr.pinned = !below(8);
	attr.sample_period = below(4) ? 0 : 1000000;
	return attr;
}

static void open_one(void)
{
	struct pair *pair = &test.pairs[below(EVENTS)], *group = some_pair();
	struct perf_event_attr attr = some_attr();
	bool of_worker = test.working && !below(3);
	struct padded_attr padded = test_padded(&attr);
	const struct core_target where = {
		.task = core_task(of_worker ? WORKER_PAGE : FIRST_PAGE),
		.cpu = -1,
	};
	int64_t event;
	int fd, err;

	if (pair->open || (group && !may_change_group(group)))
		return;
	/* A breakpoint led by a dummy may begin only when its task is next put on a processor. */
	if (group && group->attr.type != attr.type)
		return;
	fd = (int)syscall(SYS_perf_event_open, &attr, of_worker ? test.tid : 0, -1,
			  group ? group->fd : -1, PERF_FLAG_FD_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	SAME("attr", 0, core_attr_check(&padded.attr, attr.size, true, &all_rights));
	event = test_open(&padded.attr, &where, group ? group->event : 0, 0, &all_rights);
	/* kernels before 6.18 have another error for a leader whose task has ended */
	if (event == -ENODEV)
		SAME("open in a group that has ended", !!err, true);
	else
		SAME("open", err, event < 0 ? event : 0);
	if (fd < 0)
		return;
	*pair = (struct pair){
		.open = true,
		.fd = fd,
		.event = (uint32_t)event,
		.attr = attr,
		.of_worker = of_worker,
	};
	assert_int_equal(ioctl(fd, PERF_EVENT_IOC_ID, &pair->kernel_id), 0);
}

static void close_one(struct pair *pair)
{
	close(pair->fd);
	tree_close(pair->event);
	pair->open = false;
	/* members that are set free begin when the thread is next put on a processor */
	usleep(1);
}

static void control(struct pair *pair)
{
	bool group = !below(3);
	unsigned long flag = group ? PERF_IOC_FLAG_GROUP : 0;

	switch (below(3)) {
	case 0:
		SAME("enable", ioctl(pair->fd, PERF_EVENT_IOC_ENABLE, flag),
		     core_enable(pair->event, group));
		break;
	case 1:
		SAME("disable", ioctl(pair->fd, PERF_EVENT_IOC_DISABLE, flag),
		     core_disable(pair->event, group));
		break;
	default:
		SAME("reset", ioctl(pair->fd, PERF_EVENT_IOC_RESET, flag),
		     core_reset(pair->event, group));
	}
}

static int error_of(long result)
{
	return result < 0 ? -errno : 0;
}

/*
 * The periods are too long for anything to happen. But the kernel's breakpoints overflow once when
 * their period is changed, which is no reason to do the same, and is seen when that is their limit.
 */
static void sampling(struct pair *pair)
{
	static const uint64_t periods[] = {0, 500000, 1UL << 62, 1UL << 63};
	uint64_t period = periods[below(4)];

	if (below(2))
		SAME("period", error_of(ioctl(pair->fd, PERF_EVENT_IOC_PERIOD, &period)),
		     core_set_period(pair->event, period));
	else if (!pair->attr.sample_period || pair->attr.inherit)
		SAME("refresh", error_of(ioctl(pair->fd, PERF_EVENT_IOC_REFRESH, 1)),
		     core_refresh(pair->event, 1));
}

static void move(struct pair *pair)
{
	struct perf_event_attr attr = pair->attr;
	struct padded_attr padded;

	switch (below(4)) {
	case 0:
		attr.bp_addr = (uintptr_t)(below(2) ? &target : &other_target);
		break;
	case 1:
		attr.disabled = below(2);
		break;
	case 2:
		attr.sample_period += below(2);
		break;
	default:
		attr.bp_len = 1UL << below(4);
	}
	if (attr.type == PERF_TYPE_BREAKPOINT && attr.bp_addr % 8 && attr.bp_len == 8)
		return; /* as the linker would have it */
	padded = test_padded(&attr);
	SAME("attr to modify", 0, core_attr_check(&padded.attr, attr.size, true, &all_rights));
	SAME("modify", error_of(ioctl(pair->fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr)),
	     core_modify(pair->event, &padded.attr));
	if (core_event(pair->event)->attr.bp_addr == attr.bp_addr &&
	    core_event(pair->event)->attr.disabled == attr.disabled &&
	    core_event(pair->event)->attr.bp_len == attr.bp_len &&
	    core_event(pair->event)->attr.sample_period == attr.sample_period)
		pair->attr = attr;
}

static void compare_times(struct pair *pair, const uint64_t *kernel, const uint64_t *core)
{
	const uint64_t both = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

	/* The other thread goes on for a moment after it has said that it is done. */
	if (pair->of_worker || pair->inherited)
		return;
	SAME("some time", !!kernel[0], !!core[0]);
	if ((pair->attr.read_format & both) == both)
		SAME("some time running", !!kernel[1], !!core[1]);
	SAME("time stands", kernel[0] == pair->enabled[0], core[0] == pair->enabled[1]);
	pair->enabled[0] = kernel[0];
	pair->enabled[1] = core[0];
}

/* Entries of a group may be of events whose descriptors are open only, so each has a pair. */
static void compare_id(uint64_t kernel, uint64_t core)
{
	for (unsigned int i = 0; i < EVENTS; i++) {
		const struct pair *pair = &test.pairs[i];

		if (pair->open && pair->kernel_id == kernel) {
			SAME("id", core_event_id(pair->event), core);
			return;
		}
	}
	fail_msg("the kernel names an event that is not open");
}

static void read_one(struct pair *pair)
{
	size_t size = below(4) ? WORDS * sizeof(uint64_t) : below(WORDS);
	uint64_t format = pair->attr.read_format, kernel[WORDS], core[WORDS], entries = 1;
	ssize_t n = read(pair->fd, kernel, size);
	int64_t bytes;
	size_t at = 0;

	pass_time();
	bytes = core_read(pair->event, core, size);
	SAME("read", n < 0 ? -errno : n, bytes);
	if (n <= 0)
		return;
	if (format & PERF_FORMAT_GROUP) {
		SAME("group", kernel[0], core[0]);
		entries = kernel[at++];
	} else {
		SAME("value", kernel[0], core[0]);
		at++;
	}
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED || format & PERF_FORMAT_TOTAL_TIME_RUNNING) {
		compare_times(pair, kernel + at, core + at);
		at += !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		      !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	}
	for (uint64_t i = 0; i < entries; i++) {
		if (format & PERF_FORMAT_GROUP) {
			SAME("value in a group", kernel[at], core[at]);
			at++;
		}
		if (format & PERF_FORMAT_ID) {
			compare_id(kernel[at], core[at]);
			at++;
		}
	}
	SAME("words", n, at * sizeof(uint64_t));
}

static void call(void)
{
	struct pair *pair = some_pair();

	pass_time();
	switch (below(20)) {
	case 0:
		if (test.working)
			end_worker();
		else
			begin_worker();
		return;
	case 1:
		if (below(2)) {
			bool on = below(2);

			SAME("prctl",
			     prctl(on ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE),
			     core_prctl(fake.task, on));
		}
		return;
	case 2:
	case 3:
	case 4:
		open_one();
		return;
	case 5:
	case 6:
	case 7:
		work(test.working && below(2));
		return;
	}
	if (!pair)
		return;
	switch (below(12)) {
	case 0:
		if (may_change_group(pair))
			close_one(pair);
		return;
	case 1:
		sampling(pair);
		return;
	case 2:
		if (!test.working)
			move(pair);
		return;
	case 3:
	case 4:
	case 5:
	case 6:
		control(pair);
		return;
	default:
		read_one(pair);
	}
}

/*
 * Where tasks have the same events the kernel exchanges them instead of switching, and an event
 * that was opened for one task ends with another. Who has one that is not inherited is spared that.
 */
static int keep_events_apart(void)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void the_same_answers_as_the_kernels(void **state)
{
	int keeper;

	(void)state;
	if (breakpoints_forgotten()) {
		print_message("# " BREAKPOINTS_FORGOTTEN "\n");
		skip();
	}
	keeper = keep_events_apart();
	test.seed = 88172645463325252;
	sem_init(&test.go, 0, 0);
	sem_init(&test.done, 0, 0);
	for (test.sequence = 0; test.sequence < SEQUENCES; test.sequence++) {
		tree_begin(0);
		for (test.call = 0; test.call < CALLS; test.call++)
			call();
		if (test.working)
			end_worker();
		for (unsigned int i = 0; i < EVENTS; i++)
			if (test.pairs[i].open)
				close_one(&test.pairs[i]);
		assert_int_equal(core_nr_events(), 0);
		tree_end();
	}
	close(keeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_answers_as_the_kernels)};

	return cmocka_run_group_tests_name("core: calls beside the kernel's", tests, NULL, NULL);
}
