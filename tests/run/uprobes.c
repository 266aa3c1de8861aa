// SPDX-License-Identifier: MIT
/*
 * Probes where they are many, or met often, or beside what else is counted. Run by `tally run`, so
 * that it is known how often: natively the kernel is asked by probed.c.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a file of code ---- */

enum {
	CODE = 1 << 20,
	FUNCTION = 16,
	FUNCTIONS = CODE / FUNCTION,
	LAST = FUNCTIONS - 1,
	ENTRY = 0,
	RETURN = 1,
};

typedef int function(int);

static char path[] = "/tmp/tally-uprobes-XXXXXX";
static char *code;

/* lea 1(%rdi), %eax; ret: each is FUNCTION bytes behind the other. The last one is mov (%rsp),
 * %rax; ret. */
static int make_code(void **state)
{
	static const unsigned char next[FUNCTION] = {0x8d, 0x47, 0x01, 0xc3};
	static const unsigned char last[] = {0x48, 0x8b, 0x04, 0x24, 0xc3};
	const int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	for (int i = 0; i < FUNCTIONS; i++)
		if (write(fd, next, sizeof(next)) != sizeof(next))
			return -1;
	if (pwrite(fd, last, sizeof(last), LAST * FUNCTION) != sizeof(last))
		return -1;
	code = mmap(NULL, CODE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	return code == MAP_FAILED ? -1 : 0;
}

static int remove_code(void **state)
{
	(void)state;
	return unlink(path);
}

static int call(unsigned int number, int n)
{
	return ((function *)(uintptr_t)(code + number * FUNCTION))(n);
}

/* ---- events ---- */

static uint32_t unit(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	uint32_t type = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%u", &type), 1);
	fclose(file);
	return type;
}

static struct perf_event_attr probe(unsigned int number, uint64_t when)
{
	struct perf_event_attr attr = {
		.type = unit(),
		.size = sizeof(attr),
		.config = when,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = number * FUNCTION;
	return attr;
}

static int open_event(struct perf_event_attr *attr, int group)
{
	const int fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, group, 0);

	assert_true(fd >= 0);
	return fd;
}

static int open_probe(unsigned int number, uint64_t when)
{
	struct perf_event_attr attr = probe(number, when);

	return open_event(&attr, -1);
}

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	return count;
}

/* ---- cases ---- */

/* More than are kept as places at which code stops: then each instruction is looked at. */
static void many(void **state)
{
	enum { MANY = 4500, OPEN = 500 };
	static int fds[OPEN];
	uint64_t sum = 0;

	(void)state;
	for (unsigned int i = 0; i < MANY; i++) {
		if (fds[i % OPEN]) {
			call(i - OPEN, 0);
			sum += count_of(fds[i % OPEN]);
			close(fds[i % OPEN]);
		}
		fds[i % OPEN] = open_probe(i, ENTRY);
	}
	assert_int_equal(sum, MANY - OPEN);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(call(i, (int)i), i + 1);
	for (unsigned int i = 0; i < OPEN; i++) {
		assert_int_equal(count_of(fds[i]), 1);
		close(fds[i]);
	}
}

/* Each call from another place. */
static void places(void **state)
{
	enum { CALLS = 3000, CALL = 5, AT = 0x10000 };
	unsigned char *calls = mmap(NULL, 2 * AT, PROT_READ | PROT_WRITE | PROT_EXEC,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int entered = open_probe(7, ENTRY), returned = open_probe(7, RETURN);
	unsigned char *at = calls;

	(void)state;
	assert_ptr_not_equal(calls, MAP_FAILED);
	/* jmp *far behind them all, which each of them calls */
	memcpy(calls + AT, (const unsigned char[]){0xff, 0x25, 0, 0, 0, 0}, 6);
	memcpy(calls + AT + 6, &(uint64_t){(uintptr_t)(code + 7 * FUNCTION)}, 8);
	for (int i = 0; i < CALLS; i++, at += CALL) {
		const int32_t distance = (int32_t)(calls + AT - (at + CALL));

		*at = 0xe8;
		memcpy(at + 1, &distance, sizeof(distance));
	}
	*at = 0xc3;
	for (int round = 1; round <= 3; round++) {
		((function *)(uintptr_t)calls)(1);
		assert_int_equal(count_of(entered), round * CALLS);
		assert_int_equal(count_of(returned), round * CALLS);
	}
	close(entered), close(returned);
	munmap(calls, 2 * AT);
}

/* What a function sees of its caller, and so whoever unwinds, is as if nobody saw it return. */
__attribute__((noipa)) static void stack(void **state)
{
	const int returned = open_probe(LAST, RETURN);
	uintptr_t back;

	(void)state;
	for (int i = 0; i < 10; i++) {
		back = ((uintptr_t(*)(void))(uintptr_t)(code + LAST * FUNCTION))();
		assert_true(back - (uintptr_t)stack < 4096);
	}
	assert_int_equal(count_of(returned), 10);
	close(returned);
}

static volatile sig_atomic_t ticks;

static void on_tick(int number)
{
	ticks += number == SIGALRM;
}

/* Signals come anywhere: before a probe, at it, behind it. */
static void interrupted(void **state)
{
	enum { TIMES = 300000 };
	const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	const int entered = open_probe(1, ENTRY), returned = open_probe(1, RETURN);

	(void)state;
	signal(SIGALRM, on_tick);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int i = 0; i < TIMES; i++)
		call(1, i);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_true(ticks > 0);
	assert_int_equal(count_of(entered), TIMES);
	assert_int_equal(count_of(returned), TIMES);
	close(entered), close(returned);
}

enum { THREADS = 4, EACH = 50000 };

static void *call_each(void *unused)
{
	for (int i = 0; i < EACH; i++)
		call((unsigned int)i % 3, i);
	return unused;
}

static void threads(void **state)
{
	struct perf_event_attr entry = probe(1, ENTRY), back = probe(2, RETURN);
	int entered, returned;
	pthread_t all[THREADS];

	(void)state;
	entry.inherit = back.inherit = 1;
	entered = open_event(&entry, -1);
	returned = open_event(&back, -1);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&all[i], NULL, call_each, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	assert_int_equal(count_of(entered), THREADS * ((EACH + 1) / 3));
	assert_int_equal(count_of(returned), THREADS * (EACH / 3));
	close(entered), close(returned);
}

/* A thousand calls and nothing else, between two switches. */
static uint64_t count_calls(int leader)
{
	ioctl(leader, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	for (int i = 0; i < 1000; i++)
		call(1, i);
	ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	return count_of(leader);
}

static uint64_t count_beside_probes(struct perf_event_attr *attr)
{
	struct perf_event_attr entry = probe(1, ENTRY), back = probe(1, RETURN);
	int leader = open_event(attr, -1);
	int entered = open_event(&entry, leader), returned = open_event(&back, leader);
	const uint64_t count = count_calls(leader);

	assert_int_equal(count_of(entered), 1000);
	assert_int_equal(count_of(returned), 1000);
	close(leader), close(entered), close(returned);
	return count;
}

/* What is counted beside a probe is what is counted without, and by samples as well. */
static void beside(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int leader = open_event(&attr, -1);
	const uint64_t alone = count_calls(leader);

	(void)state;
	assert_int_equal(count_calls(leader), alone);
	close(leader);
	assert_int_equal(count_beside_probes(&attr), alone);
	attr.sample_period = 37;
	assert_int_equal(count_beside_probes(&attr), alone);
	attr.sample_period = 0;
	attr.config = PERF_COUNT_HW_CACHE_REFERENCES;
	count_beside_probes(&attr);
}

/* With a breakpoint on data each instruction is looked at. */
static void slowly(void **state)
{
	static volatile int watched;
	struct perf_event_attr data = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(data),
		.bp_type = 2, /* HW_BREAKPOINT_W */
		.bp_addr = (uintptr_t)&watched,
		.bp_len = sizeof(watched),
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	const int fd = open_event(&data, -1);
	const int entered = open_probe(1, ENTRY), returned = open_probe(1, RETURN);

	(void)state;
	for (int i = 0; i < 500; i++)
		watched = call(1, i);
	assert_int_equal(count_of(fd), 500);
	assert_int_equal(count_of(entered), 500);
	assert_int_equal(count_of(returned), 500);
	close(fd), close(entered), close(returned);
}

/* To the kernel such a probe stays one for good, so it is not asked. */
static void counter_written(void **state)
{
	const int file = open(path, O_RDONLY);
	volatile uint16_t *counter = mmap(NULL, CODE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	const uint16_t before = counter[FUNCTION / 2];
	int fd;

	(void)state;
	close(file);
	fd = open_probe(1, (uint64_t)FUNCTION << 32);
	assert_int_equal(counter[FUNCTION / 2], before + 1);
	counter[FUNCTION / 2] = 0;
	close(fd);
	assert_int_equal(counter[FUNCTION / 2], 0);
	munmap((void *)(uintptr_t)counter, CODE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack),	   cmocka_unit_test(places),
		cmocka_unit_test(interrupted),	   cmocka_unit_test(threads),
		cmocka_unit_test(beside),	   cmocka_unit_test(slowly),
		cmocka_unit_test(counter_written), cmocka_unit_test(many),
	};

	return cmocka_run_group_tests_name("run/uprobes", tests, make_code, remove_code);
}
