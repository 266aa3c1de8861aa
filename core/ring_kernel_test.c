// SPDX-License-Identifier: MIT
/*
 * The running kernel and the core side by side: the same random mappings, redirections, pauses,
 * refreshes, hits and polls of a few events. After each step both have answered the same, and all
 * rings have the same heads and records of the same kinds.
 *
 * The events are watchpoints: what happens is then known to one hit, and there are three of them.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/fake_host.h"
#include "core/fake_ring.h"
#include "core/output.h"
#include "tests/breakpoints.h"

enum { EVENTS = 3, MAPS = 2, ROUNDS = 100, STEPS = 60 };

static const struct core_rights rights = {.mlock = UINT64_MAX};

static volatile uint32_t watched;

struct mapping {
	struct perf_event_mmap_page *kernel, *core; /* NULL: none */
	size_t size;
	bool writable;
};

struct pair {
	struct perf_event_attr attr;
	int fd;
	uint32_t event;
	bool spent; /* a refresh has run out: Linux 6.18 never lets that watchpoint count again */
	struct mapping maps[MAPS];
};

static struct pair pairs[EVENTS];
static uint64_t seed;
static unsigned int round_nr;

static uint64_t below(uint64_t limit)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % limit;
}

#define same(kernel, core, what)                                                                   \
	do {                                                                                       \
		long long k = (long long)(kernel), c = (long long)(core);                          \
		if (k != c)                                                                        \
			fail_msg("round %u: %s: %lld from the kernel, %lld from the core",         \
				 round_nr, what, k, c);                                            \
	} while (0)

/* A negative errno value as the core has it. */
static long result(long value)
{
	return value < 0 ? -errno : value;
}

/* ---- the two sides ---- */

/*
 * What all events of a round have in common: in which order they are told of one hit is nobody's
 * business, so it must not matter whose record comes first in a ring that they share.
 */
static struct perf_event_attr random_attr(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&watched,
		.bp_len = HW_BREAKPOINT_LEN_4,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_type = PERF_SAMPLE_IP,
		.read_format = PERF_FORMAT_LOST,
	};

	if (below(2))
		attr.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_ADDR;
	if (below(4) == 0)
		attr.sample_type |= PERF_SAMPLE_PERIOD;
	if (below(4) == 0)
		attr.sample_type |= PERF_SAMPLE_READ | PERF_SAMPLE_RAW;
	attr.sample_id_all = below(2);
	attr.watermark = below(2);
	attr.wakeup_events = (uint32_t)(attr.watermark ? below(9000) : below(5));
	return attr;
}

static bool open_pair(struct pair *pair, const struct perf_event_attr *attr)
{
	*pair = (struct pair){.attr = *attr};
	pair->attr.sample_period = 1 + below(3);
	pair->attr.write_backward = below(4) == 0;
	pair->fd = (int)syscall(SYS_perf_event_open, &pair->attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (pair->fd < 0)
		return false;
	pair->event = fake_event(&pair->attr, CORE_BREAKPOINT);
	core_disable(pair->event, false);
	return true;
}

static struct mapping *ring_of(struct pair *pair)
{
	return pair->maps[0].kernel ? &pair->maps[0] : &pair->maps[1];
}

static bool is_mapped(struct pair *pair)
{
	return ring_of(pair)->kernel;
}

static void map(struct pair *pair)
{
	static const unsigned int sizes[] = {1, 2, 2, 2, 3, 3, 4, 5};
	size_t size = sizes[below(8)] * ARENA_PAGE;
	struct mapping *mapping = pair->maps;
	bool writable = below(3);
	void *kernel;
	int64_t core;

	/* Whether a ring may be mapped by whom it was redirected to, kernels do not agree about. */
	if (core_event(pair->event)->ring && !is_mapped(pair))
		return;
	/* A later mapping may only be what the first was: the ring goes by that. */
	if (is_mapped(pair) && below(4))
		size = ring_of(pair)->size;
	if (is_mapped(pair))
		writable = ring_of(pair)->writable;
	while (mapping < pair->maps + MAPS && mapping->kernel)
		mapping++;
	if (mapping == pair->maps + MAPS)
		return;
	kernel = mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
		      pair->fd, 0);
	core = fake_ring_map(pair->event, 0, size, writable, &rights);
	same(kernel == MAP_FAILED ? -errno : 0, core < 0 ? core : 0, "mmap");
	if (core < 0)
		return;
	*mapping = (struct mapping){kernel, core_arena((uint64_t)core), size, writable};
}

static void unmap(struct pair *pair, struct mapping *mapping)
{
	if (!mapping->kernel)
		return;
	assert_int_equal(munmap(mapping->kernel, mapping->size), 0);
	fake_ring_unmap(pair->event);
	*mapping = (struct mapping){0};
}

static void redirect(struct pair *pair)
{
	const struct pair *to = &pairs[below(EVENTS)];
	bool none = below(4) == 0;

	same(result(ioctl(pair->fd, PERF_EVENT_IOC_SET_OUTPUT, none ? -1L : (long)to->fd)),
	     core_set_output(pair->event, none ? 0 : to->event), "SET_OUTPUT");
}

static void pause_output(struct pair *pair)
{
	bool on = below(2);

	same(result(ioctl(pair->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, on)),
	     core_pause_output(pair->event, on), "PAUSE_OUTPUT");
}

static void look(struct pair *pair)
{
	struct pollfd one = {.fd = pair->fd, .events = POLLIN};

	assert_true(poll(&one, 1, 0) >= 0);
	same(one.revents, core_poll(pair->event) & (POLLIN | POLLHUP), "poll");
}

static void switch_it(struct pair *pair)
{
	if (below(3) && !pair->spent) {
		same(result(ioctl(pair->fd, PERF_EVENT_IOC_ENABLE, 0)),
		     core_enable(pair->event, false), "ENABLE");
	} else {
		same(result(ioctl(pair->fd, PERF_EVENT_IOC_DISABLE, 0)),
		     core_disable(pair->event, false), "DISABLE");
	}
}

static void refresh(struct pair *pair)
{
	int overflows = (int)below(4);

	if (pair->spent)
		return;
	same(result(ioctl(pair->fd, PERF_EVENT_IOC_REFRESH, overflows)),
	     core_refresh(pair->event, overflows), "REFRESH");
}

static void hit(void)
{
	unsigned int count = (unsigned int)below(below(2) ? 6 : 200);
	bool was_on[EVENTS];

	for (int i = 0; i < EVENTS; i++)
		was_on[i] = core_event(pairs[i].event)->state != CORE_OFF;

	for (unsigned int i = 0; i < count; i++)
		watched = i;
	for (unsigned int i = 0; i < count; i++)
		core_breakpoint(fake.task, HW_BREAKPOINT_W, (uintptr_t)&watched, 4);
	for (int i = 0; i < EVENTS; i++)
		pairs[i].spent |= was_on[i] && core_event(pairs[i].event)->state == CORE_OFF;
}

static void consume(struct pair *pair)
{
	struct mapping *ring = ring_of(pair);

	if (!ring->kernel || !ring->writable)
		return;
	ring->kernel->data_tail = ring->kernel->data_head;
	ring->core->data_tail = ring->core->data_head;
}

/* ---- what is there ---- */

static void copy_out(const struct perf_event_mmap_page *page, uint64_t at, void *to, size_t size)
{
	const unsigned char *data = (const unsigned char *)page + ARENA_PAGE;

	for (size_t i = 0; i < size; i++)
		((unsigned char *)to)[i] = data[(at + i) & (page->data_size - 1)];
}

/* What was written since the reader was there: records of the same type, misc and size. */
static void same_records(const struct mapping *ring, bool backward)
{
	uint64_t head = ring->core->data_head, tail = ring->core->data_tail;
	uint64_t at = backward ? head : tail, end = backward ? tail : head;

	while (ring->writable && at != end) {
		struct {
			struct perf_event_header header;
			uint64_t words[2];
		} kernel, core;

		copy_out(ring->kernel, at, &kernel, sizeof(kernel));
		copy_out(ring->core, at, &core, sizeof(core));
		same(kernel.header.type, core.header.type, "type");
		same(kernel.header.misc, core.header.misc, "misc");
		same(kernel.header.size, core.header.size, "size");
		if (core.header.type == PERF_RECORD_LOST)
			same(kernel.words[1], core.words[1], "lost, as told");
		assert_true(core.header.size >= sizeof(core.header));
		at += core.header.size;
	}
}

static void compare_counts(void)
{
	uint64_t kernel[2], core[2], kernel_lost = 0, core_lost = 0;

	for (int i = 0; i < EVENTS; i++) {
		same(read(pairs[i].fd, kernel, sizeof(kernel)),
		     core_read(pairs[i].event, core, sizeof(core)), "read");
		same(kernel[0], core[0], "value");
		kernel_lost += kernel[1];
		core_lost += core[1];
	}
	/* Whose record it was that found no room depends on their order. */
	same(kernel_lost, core_lost, "lost");
}

static void compare_ring(struct pair *pair)
{
	const struct mapping *ring = ring_of(pair);

	if (!ring->kernel)
		return;
	same(ring->kernel->data_head, ring->core->data_head, "head");
	same(ring->kernel->data_size, ring->core->data_size, "size of the data");
	same_records(ring, pair->attr.write_backward);
}

static void step(void)
{
	struct pair *pair = &pairs[below(EVENTS)];

	switch (below(12)) {
	case 0:
	case 1:
		map(pair);
		break;
	case 2:
		unmap(pair, &pair->maps[below(MAPS)]);
		break;
	case 3:
		redirect(pair);
		break;
	case 4:
		pause_output(pair);
		break;
	case 5:
	case 6:
		look(pair);
		break;
	case 7:
		switch_it(pair);
		break;
	case 8:
		refresh(pair);
		break;
	case 9:
		consume(pair);
		break;
	default:
		hit();
	}
	compare_counts();
	for (int i = 0; i < EVENTS; i++)
		compare_ring(&pairs[i]);
}

static void play(void)
{
	struct perf_event_attr attr;

	fake_begin();
	seed = round_nr;
	attr = random_attr();
	for (int i = 0; i < EVENTS; i++)
		assert_true(open_pair(&pairs[i], &attr));
	for (int i = 0; i < STEPS; i++)
		step();
	for (int i = 0; i < EVENTS; i++) {
		for (int m = 0; m < MAPS; m++)
			unmap(&pairs[i], &pairs[i].maps[m]);
		close(pairs[i].fd);
	}
	fake_end();
}

static void side_by_side(void **state)
{
	const struct perf_event_attr attr = random_attr();

	(void)state;
	if (breakpoints_forgotten()) {
		print_message("# " BREAKPOINTS_FORGOTTEN "\n");
		skip();
	}
	fake_begin();
	for (int i = 0; i < EVENTS; i++)
		if (!open_pair(&pairs[i], &attr)) {
			print_message("no watchpoints here: %s\n", strerror(errno));
			skip();
		}
	for (int i = 0; i < EVENTS; i++)
		close(pairs[i].fd);
	fake_end();
	for (round_nr = 1; round_nr <= ROUNDS; round_nr++)
		play();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(side_by_side),
	};

	return cmocka_run_group_tests_name("core/ring-kernel", tests, NULL, NULL);
}
