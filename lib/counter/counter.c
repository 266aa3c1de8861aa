// SPDX-License-Identifier: MIT
#include "lib/counter/counter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tally/attr.h>
#include <tally/counter.h>

#include "abi/source.h"
#include "lib/counter/user_page.h"
#include "lib/counter/value.h"
#include "lib/error.h"
#include "lib/probe/attr_open.h"
#include "lib/probe/breakpoint.h"

/* A large group is rare enough not to make every read pay for its buffer. */
#define SMALL_READ_WORDS 64

static enum tally_source ask_source(int fd)
{
	uint32_t source = 0;

	if (ioctl(fd, ABI_IOC_SOURCE, &source) < 0)
		return TALLY_SOURCE_KERNEL;
	return source == ABI_SOURCE_MODEL ? TALLY_SOURCE_MODEL : TALLY_SOURCE_USER;
}

/* There is no kernel under the virtual PMU: that it has counted nothing of it would be no
 * answer. */
static bool counts_nothing(const struct tally_counter *counter, const struct perf_event_attr *attr)
{
	return attr->exclude_user && attr->type != PERF_TYPE_SOFTWARE &&
	       counter->source != TALLY_SOURCE_KERNEL;
}

/* Nor would it be one of what is never hit. */
static bool stands_still(const struct tally_counter *counter, const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_BREAKPOINT && counter->source == TALLY_SOURCE_KERNEL &&
	       tly_try_breakpoint() == TLY_BREAKPOINTS_FORGOTTEN;
}

static int refuse(struct tally_counter *counter, const char *name, struct tally_error *err,
		  const char *what, const char *remedy)
{
	close(counter->fd);
	free(counter);
	tly_error(err, -EOPNOTSUPP, "cannot open %s: %s", name ? name : "the event", what);
	return tly_error_remedy(err, "%s", remedy);
}

static void join(struct tally_counter *counter, struct tally_counter *leader)
{
	struct tally_counter **last = &leader->first;

	while (*last)
		last = &(*last)->next;
	*last = counter;
	counter->leader = leader;
}

/* Without their leader members are on their own. */
static void part(struct tally_counter *counter)
{
	if (counter->leader) {
		struct tally_counter **link = &counter->leader->first;

		while (*link != counter)
			link = &(*link)->next;
		*link = counter->next;
	}
	for (struct tally_counter *member = counter->first; member; member = member->next)
		member->leader = NULL;
}

int tly_counter_open(const struct perf_event_attr *attr, const char *name,
		     const struct perf_event_attr *leader_attr, pid_t pid, int cpu,
		     struct tally_counter *leader, unsigned long flags,
		     struct tally_counter **counter, struct tally_error *err)
{
	struct tally_counter *c = calloc(1, sizeof(*c));

	*counter = NULL;
	if (!c)
		return tly_error(err, -ENOMEM, "out of memory");
	tly_read_layout_init(&c->layout, attr->read_format);
	c->fd = tly_attr_open(attr, name, leader_attr, pid, cpu, leader ? leader->fd : -1,
			      flags | PERF_FLAG_FD_CLOEXEC, err);
	if (c->fd < 0) {
		int code = c->fd;

		free(c);
		return code;
	}
	c->source = ask_source(c->fd);
	if (counts_nothing(c, attr))
		return refuse(
			c, name, err, "user mode (tally run) sees user code alone",
			"count user code instead (modifier u), or count on a machine whose kernel can");
	if (stands_still(c, attr))
		return refuse(c, name, err, TLY_BREAKPOINT_NEVER_HIT, TLY_BREAKPOINT_NEVER_HIT_WHY);
	if (leader && c->layout.group)
		ioctl(c->fd, PERF_EVENT_IOC_ID, &c->id);
	if (leader)
		join(c, leader);
	*counter = c;
	return 0;
}

int tally_counter_open(const struct perf_event_attr *attr, pid_t pid, int cpu,
		       struct tally_counter *leader, unsigned long flags,
		       struct tally_counter **counter, struct tally_error *err)
{
	return tly_counter_open(attr, NULL, NULL, pid, cpu, leader, flags, counter, err);
}

void tally_counter_close(struct tally_counter *counter)
{
	if (!counter)
		return;
	part(counter);
	if (counter->page)
		munmap(counter->page, sysconf(_SC_PAGESIZE));
	close(counter->fd);
	free(counter);
}

int tally_counter_fd(const struct tally_counter *counter)
{
	return counter->fd;
}

/* ioctl(2) reads its argument as an unsigned long: a 32-bit -1 would be a descriptor. */
static int control(const struct tally_counter *counter, unsigned long request, unsigned long arg)
{
	return ioctl(counter->fd, request, arg) < 0 ? -errno : 0;
}

int tally_counter_enable(struct tally_counter *counter, bool group)
{
	return control(counter, PERF_EVENT_IOC_ENABLE, group ? PERF_IOC_FLAG_GROUP : 0);
}

int tally_counter_disable(struct tally_counter *counter, bool group)
{
	return control(counter, PERF_EVENT_IOC_DISABLE, group ? PERF_IOC_FLAG_GROUP : 0);
}

int tally_counter_reset(struct tally_counter *counter, bool group)
{
	return control(counter, PERF_EVENT_IOC_RESET, group ? PERF_IOC_FLAG_GROUP : 0);
}

int tally_counter_refresh(struct tally_counter *counter, int overflows)
{
	/* The kernel takes 0 for "without limit", which no document promises. */
	if (overflows <= 0)
		return -EINVAL;
	return control(counter, PERF_EVENT_IOC_REFRESH, overflows);
}

int tally_counter_set_period(struct tally_counter *counter, uint64_t period)
{
	return control(counter, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
}

int tally_counter_set_output(struct tally_counter *counter, struct tally_counter *output)
{
	return control(counter, PERF_EVENT_IOC_SET_OUTPUT, output ? output->fd : -1L);
}

int tally_counter_id(struct tally_counter *counter, uint64_t *id)
{
	return control(counter, PERF_EVENT_IOC_ID, (unsigned long)id);
}

int tally_counter_pause_output(struct tally_counter *counter, bool pause)
{
	return control(counter, PERF_EVENT_IOC_PAUSE_OUTPUT, pause);
}

int tally_counter_set_filter(struct tally_counter *counter, const char *filter,
			     struct tally_error *err)
{
	int code = control(counter, PERF_EVENT_IOC_SET_FILTER, (unsigned long)filter);

	switch (code) {
	case 0:
		return 0;
	case -EEXIST:
		tly_error(err, code, "the event has a filter already");
		return tly_error_remedy(err, "join the two conditions with &&");
	case -EINVAL:
		tly_error(err, code, "the kernel refuses the filter '%s'", filter);
		return tly_error_remedy(err, "only tracepoints take filters, such as "
					     "'common_pid != 1 && len > 64', on the fields that "
					     "their format file in tracefs lists");
	default:
		return tly_error(err, code, "cannot set the filter '%s': %s", filter,
				 strerror(-code));
	}
}

int tally_counter_modify_attributes(struct tally_counter *counter,
				    const struct perf_event_attr *attr, struct tally_error *err)
{
	struct tly_attr_copy copy;
	int code = -E2BIG;

	if (tly_attr_copy(&copy, attr))
		code = control(counter, PERF_EVENT_IOC_MODIFY_ATTRIBUTES,
			       (unsigned long)&copy.attr);
	switch (code) {
	case 0:
		return 0;
	case -EOPNOTSUPP:
		tly_error(err, code, "the kernel can modify breakpoint events only");
		return tly_error_remedy(err, "close the event and open another");
	case -EINVAL:
		tly_error(err, code, "the new attr is not one that this breakpoint can take");
		return tly_error_remedy(err, "change bp_type, bp_addr, bp_len and disabled only; "
					     "the rest must be as the event was opened");
	default:
		return tly_error(err, code, "cannot modify the event: %s", strerror(-code));
	}
}

int tally_counter_set_bpf(struct tally_counter *counter, int prog_fd)
{
	return control(counter, PERF_EVENT_IOC_SET_BPF, prog_fd);
}

int tally_counter_query_bpf(struct tally_counter *counter, uint32_t *ids, uint32_t max,
			    uint32_t *nr)
{
	struct perf_event_query_bpf *query;
	int code;

	*nr = 0;
	query = calloc(1, sizeof(*query) + (size_t)max * sizeof(*ids));
	if (!query)
		return -ENOMEM;
	query->ids_len = max;
	code = control(counter, PERF_EVENT_IOC_QUERY_BPF, (unsigned long)query);
	if (code == 0 || code == -ENOSPC) {
		*nr = query->prog_cnt;
		if (max)
			memcpy(ids, query->ids, (*nr < max ? *nr : max) * sizeof(*ids));
	}
	free(query);
	return code;
}

int tally_task_enable(void)
{
	return prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

int tally_task_disable(void)
{
	return prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

/*
 * read(2) without libc's cancellation point, of which a read that never blocks has no need, and
 * with one return less for a processor whose return predictor the kernel has just flushed. Returns
 * -errno.
 */
static inline ssize_t read_words(int fd, uint64_t *words, size_t size)
{
#ifdef __x86_64__
	ssize_t n = SYS_read;

	__asm__ volatile("syscall"
			 : "+a"(n)
			 : "D"(fd), "S"(words), "d"(size)
			 : "rcx", "r11", "memory");
	return n;
#else
	ssize_t n = syscall(SYS_read, fd, words, size);

	return n < 0 ? -errno : n;
#endif
}

/* Apart, for its frame of 16 KiB would be the small read's too. */
static __attribute__((noinline)) int read_large(struct tally_counter *counter,
						struct tally_value *values, size_t max)
{
	uint64_t words[TLY_READ_MAX / sizeof(uint64_t)];
	ssize_t size = read_words(counter->fd, words, sizeof(words));

	if (size < 0)
		return (int)size;
	return tly_value_decode(&counter->layout, words, size, values, max);
}

/* The judgement of the values knows of the kernel alone. */
static inline void tell_source(const struct tally_counter *counter, struct tally_value *value)
{
	if (value->source == TALLY_SOURCE_KERNEL)
		value->source = counter->source;
}

static int tell_sources(const struct tally_counter *leader, struct tally_value *values, int nr)
{
	const struct tally_counter *counter = leader;

	for (int i = 0; i < nr && counter; i++) {
		tell_source(counter, &values[i]);
		counter = i ? counter->next : leader->first;
	}
	return nr;
}

int tally_group_read(struct tally_counter *leader, struct tally_value *values, size_t max)
{
	uint64_t words[SMALL_READ_WORDS];
	ssize_t size = read_words(leader->fd, words, sizeof(words));
	int nr = (int)size;

	if (size >= 0)
		nr = tly_value_decode(&leader->layout, words, size, values, max);
	else if (size == -ENOSPC)
		nr = read_large(leader, values, max);
	return leader->source == TALLY_SOURCE_KERNEL ? nr : tell_sources(leader, values, nr);
}

static int read_own_of_group(struct tally_counter *counter, struct tally_value *value)
{
	uint64_t words[TLY_READ_MAX / sizeof(uint64_t)];
	ssize_t size = read_words(counter->fd, words, sizeof(words));

	int code;

	if (size < 0)
		return (int)size;
	code = tly_value_decode_member(&counter->layout, words, size, counter->id, value);
	if (!code)
		tell_source(counter, value);
	return code;
}

int tally_counter_read(struct tally_counter *counter, struct tally_value *value)
{
	uint64_t words[5];
	ssize_t size;
	int nr;

	if (counter->layout.group)
		return read_own_of_group(counter, value);
	size = read_words(counter->fd, words, sizeof(words));
	if (size < 0)
		return (int)size;
	nr = tly_value_decode(&counter->layout, words, size, value, 1);
	if (nr < 0)
		return nr;
	tell_source(counter, value);
	return 0;
}

static void map_page(struct tally_counter *counter)
{
	void *page;

	counter->page_tried = true;
	if (!tly_user_clock_native())
		return;
	page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, counter->fd, 0);
	if (page != MAP_FAILED)
		counter->page = page;
}

int tally_counter_read_user(struct tally_counter *counter, struct tally_value *value, bool *fast)
{
	bool done;

	if (!counter->page_tried)
		map_page(counter);
	done = counter->page && tly_user_page_read(counter->page, tly_user_clock_native(), value);
	if (fast)
		*fast = done;
	if (!done)
		return tally_counter_read(counter, value);
	tell_source(counter, value);
	return 0;
}
