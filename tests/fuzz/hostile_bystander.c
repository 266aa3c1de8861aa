// SPDX-License-Identifier: MIT
/* Counts a loop again and again, in all the ways that are exact, and wants the same each time. */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile.h"
#include "tests/conformance/workload.h"

enum { LOOPS = 5000, STORES = 3, PERIOD = 10007, RING_PAGES = 8, PAGE = 4096 };

/* Of the group, in the order of opening. */
enum { INSTRUCTIONS, BRANCHES, WATCHED, MEMBERS };

struct group {
	uint64_t nr;
	uint64_t value[MEMBERS];
};

static volatile uint64_t word;

static struct {
	int fds[MEMBERS], sampled;
	struct perf_event_mmap_page *ring;
	struct group expected;
	uint64_t samples;
} all;

static void wrong(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(shared->wrong, sizeof(shared->wrong), format, arguments);
	va_end(arguments);
	_exit(1);
}

static int open_event(struct perf_event_attr *attr, int group)
{
	attr->size = sizeof(*attr);
	attr->exclude_kernel = attr->exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static bool set_up(void)
{
	struct perf_event_attr counted[MEMBERS] = {
		[INSTRUCTIONS] = {.config = PERF_COUNT_HW_INSTRUCTIONS,
				  .read_format = PERF_FORMAT_GROUP,
				  .disabled = 1},
		[BRANCHES] = {.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
		[WATCHED] = {.type = PERF_TYPE_BREAKPOINT,
			     .bp_type = HW_BREAKPOINT_W,
			     .bp_addr = (uintptr_t)&word,
			     .bp_len = sizeof(word)},
	};
	struct perf_event_attr sampled = {
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.sample_period = PERIOD,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
	};

	for (int i = 0; i < MEMBERS; i++) {
		all.fds[i] = open_event(&counted[i], i ? all.fds[0] : -1);
		if (all.fds[i] < 0)
			return false;
	}
	all.sampled = open_event(&sampled, -1);
	if (all.sampled < 0)
		return false;
	all.ring = mmap(NULL, (1 + RING_PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			all.sampled, 0);
	return all.ring != MAP_FAILED;
}

static struct group count_once(void)
{
	struct group group = {0};

	ioctl(all.fds[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	ioctl(all.fds[0], PERF_EVENT_IOC_ENABLE, 0);
	work_loop(LOOPS);
	for (int i = 0; i < STORES; i++)
		work_store8(&word);
	ioctl(all.fds[0], PERF_EVENT_IOC_DISABLE, 0);
	if (read(all.fds[0], &group, sizeof(group)) != sizeof(group))
		wrong("the group of the bystander cannot be read");
	return group;
}

static void check_counts(const struct group *found)
{
	static const char *const names[] = {"instructions", "branches", "watched stores"};

	if (found->nr != MEMBERS)
		wrong("a group of %d has %lu members", MEMBERS, (unsigned long)found->nr);
	for (int i = 0; i < MEMBERS; i++)
		if (found->value[i] != all.expected.value[i])
			wrong("round %lu: %lu %s, not %lu", (unsigned long)shared->rounds,
			      (unsigned long)found->value[i], names[i],
			      (unsigned long)all.expected.value[i]);
}

/* Each record is a sample of this thread, and there is one a period. */
static void check_samples(void)
{
	struct sample {
		struct perf_event_header header;
		uint64_t ip;
		uint32_t pid, tid;
	} sample;
	uint64_t head = __atomic_load_n(&all.ring->data_head, __ATOMIC_ACQUIRE), count = 0;
	uint64_t tail = all.ring->data_tail;
	const char *data = (const char *)all.ring + PAGE;

	for (; tail < head; tail += sizeof(sample), all.samples++) {
		for (size_t i = 0; i < sizeof(sample); i++)
			((char *)&sample)[i] = data[(tail + i) % (RING_PAGES * PAGE)];
		if (sample.header.type != PERF_RECORD_SAMPLE ||
		    sample.header.size != sizeof(sample))
			wrong("a record of type %u and size %u", sample.header.type,
			      sample.header.size);
		if (sample.pid != (uint32_t)getpid() || sample.tid != sample.pid)
			wrong("a sample of %u", sample.pid);
	}
	__atomic_store_n(&all.ring->data_tail, tail, __ATOMIC_RELEASE);
	/* Between the samples that were looked at and the count there may be one more. */
	if (read(all.sampled, &count, sizeof(count)) != sizeof(count))
		wrong("the sampled event cannot be read");
	if (count / PERIOD - all.samples > 1)
		wrong("%lu samples of %lu instructions, one a %d", (unsigned long)all.samples,
		      (unsigned long)count, PERIOD);
}

void bystander(void)
{
	shared->counts = set_up();
	/* What it does first is new to the translator, which must not be seen either. */
	if (shared->counts)
		all.expected = count_once();
	if (shared->counts && all.expected.value[WATCHED] != STORES)
		wrong("%d stores were counted as %lu", STORES,
		      (unsigned long)all.expected.value[WATCHED]);
	for (; !__atomic_load_n(&shared->enough, __ATOMIC_RELAXED); shared->rounds++) {
		if (shared->counts) {
			const struct group found = count_once();

			check_counts(&found);
			check_samples();
		}
		usleep(300);
	}
	_exit(0);
}
