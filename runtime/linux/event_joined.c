// SPDX-License-Identifier: MIT
#include "runtime/linux/event_joined.h"

#include <asm/errno.h>
#include <asm/mman.h>
#include <linux/mman.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/forward.h"
#include "core/time.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/lock.h"
#include "runtime/string.h"
#include "runtime/sys.h"

enum {
	JOINED = 1024,
	UNUSED = -1,
	NO_NUMBER = -2,	 /* the program has none for it */
	PAGES_MOST = 64, /* of data: what locked memory the kernel gives anybody has room for */
};

struct joined {
	int fd;		/* UNUSED, NO_NUMBER */
	uint64_t since; /* event_fds_now() */
	/* When the event of ours is gone, so is this. Without a ring it writes to that of
	 * another one here. */
	struct core_forward to;
};

static struct joined *joined;
static unsigned int nr_joined; /* all beyond are unused */
static struct lock joined_lock = {.kind = LOCK_EVENT_JOINED};

bool event_joined_any(void)
{
	return __atomic_load_n(&nr_joined, __ATOMIC_RELAXED);
}

/* ---- clocks ---- */

/* The last word of the newest record: when that was. */
static uint64_t newest_time(const struct perf_event_mmap_page *page)
{
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	return head ? *(const uint64_t *)((const char *)page + PAGE + head - 8) : 0;
}

/*
 * How far the clock that the kernel tells the time of records by is ahead of ours. No system call
 * says, so it is asked for a record of something that leaves all as it is; of several the one that
 * was interrupted least tells.
 */
static int64_t compare_clocks(const struct perf_event_mmap_page *page)
{
	uint64_t shortest = UINT64_MAX;
	int64_t ahead = 0;
	char comm[16];

	sys(__NR_prctl, PR_GET_NAME, comm);
	for (int i = 0; i < 5; i++) {
		const uint64_t before = core_time();

		sys(__NR_prctl, PR_SET_NAME, comm);
		const uint64_t took = core_time() - before, then = newest_time(page);

		if (!then || took >= shortest)
			continue;
		shortest = took;
		ahead = (int64_t)(then - before - took / 2);
	}
	return ahead;
}

static int64_t ask_clock(void)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.comm = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	const int64_t fd = sys(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int64_t at, ahead = 0;

	if (fd < 0)
		return 0;
	at = sys(__NR_mmap, 0, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (!sys_failed(at)) {
		ahead = compare_clocks((const struct perf_event_mmap_page *)at);
		sys(__NR_munmap, at, 2 * PAGE);
	}
	sys(__NR_close, fd);
	return ahead;
}

static int64_t clock_ahead(void)
{
	static bool known;
	static int64_t ahead;

	if (!known)
		ahead = ask_clock();
	known = true;
	return ahead;
}

/* ---- the list, with the lock held ---- */

static void forget(struct joined *item)
{
	if (item->to.page)
		memory_free(item->to.page, item->to.size);
	*item = (struct joined){.fd = UNUSED};
}

static struct joined *find(int fd)
{
	for (unsigned int i = 0; i < nr_joined; i++)
		if (joined[i].fd == fd)
			return &joined[i];
	return NULL;
}

static struct joined *unused(void)
{
	if (!joined)
		joined = memory_allocate(JOINED * sizeof(*joined), 0);
	if (!joined)
		return NULL;
	return find(UNUSED) ?: nr_joined < JOINED ? &joined[nr_joined++] : NULL;
}

static bool is_open(uint64_t event)
{
	return core_named(event)->generation == event >> 32;
}

/* 0 or an errno value. */
static int64_t add(int fd, const struct perf_event_attr *attr, uint64_t event, void *page,
		   uint64_t size)
{
	struct joined *item = fd == NO_NUMBER ? NULL : find(fd);

	if (item)
		forget(item);
	else
		item = unused();
	if (!item)
		return -ENOMEM;
	*item = (struct joined){
		.fd = fd,
		.since = event_fds_now(),
		.to =
			{
				.event = event,
				.feeds = fd == NO_NUMBER,
				.sample_type = attr->sample_type,
				.read_format = attr->read_format,
				.sample_id_all = attr->sample_id_all,
				.ahead = attr->use_clockid ? 0 : clock_ahead(),
				.page = page,
				.size = size,
			},
	};
	return 0;
}

void event_joined_closed(uint32_t first, uint32_t last, uint64_t before)
{
	if (!event_joined_any())
		return;
	lock_take(&joined_lock);
	for (unsigned int i = 0; i < nr_joined; i++)
		if (joined[i].fd >= 0 && (uint32_t)joined[i].fd >= first &&
		    (uint32_t)joined[i].fd <= last && joined[i].since < before)
			forget(&joined[i]);
	lock_give(&joined_lock);
}

void event_joined_forked(void)
{
	joined_lock.state = 0;
	for (unsigned int i = 0; i < nr_joined; i++)
		joined[i].fd = UNUSED;
}

/* ---- joining ---- */

static struct perf_event_mmap_page *map_of(int fd, uint64_t size)
{
	return memory_map_shared(fd, size, PROT_READ | PROT_WRITE);
}

/* As large as may be, up to @pages of data. */
static struct perf_event_mmap_page *map_most(int fd, unsigned int pages, uint64_t *size)
{
	struct perf_event_mmap_page *page = NULL;

	for (; pages && !page; pages /= 4) {
		*size = (1 + pages) * PAGE;
		page = map_of(fd, *size);
	}
	return page;
}

/* By way of another of the kernel's events, which has joined the same one of ours. */
static bool follow(int fd, const struct perf_event_attr *attr, uint64_t event)
{
	for (unsigned int i = 0; i < nr_joined; i++)
		if (joined[i].fd >= 0 && joined[i].to.page && joined[i].to.event == event &&
		    is_open(event) && joined[i].to.sample_type == attr->sample_type &&
		    !sys(__NR_ioctl, fd, PERF_EVENT_IOC_SET_OUTPUT, joined[i].fd))
			return true;
	return false;
}

bool event_joined_is(int fd)
{
	bool is;

	if (!event_joined_any())
		return false;
	lock_take(&joined_lock);
	is = find(fd);
	lock_give(&joined_lock);
	return is;
}

int64_t event_joined_to(int fd, const struct perf_event_attr *attr, uint64_t event)
{
	struct perf_event_mmap_page *page = NULL;
	uint64_t size = 0;
	int64_t result = 0;

	if (!core_named(event)->ring)
		return -EINVAL;
	lock_take(&joined_lock);
	if (find(fd))
		forget(find(fd));
	/* As the kernel refuses it to who has a ring of its own. */
	if (sys(__NR_ioctl, fd, PERF_EVENT_IOC_SET_OUTPUT, -1L)) {
		result = -EINVAL;
	} else if (!follow(fd, attr, event)) {
		page = map_most(fd, PAGES_MOST, &size);
		result = page ? 0 : -EINVAL; /* it may not be mapped */
	}
	if (!result)
		result = add(fd, attr, event, page, size);
	lock_give(&joined_lock);
	return result;
}

bool event_joined_feed(int fd, const struct perf_event_attr *attr, uint64_t event,
		       unsigned int pages, struct control_message *message)
{
	uint64_t size;
	struct perf_event_mmap_page *page = map_most(fd, pages, &size);
	int64_t result;

	if (!page)
		return false;
	lock_take(&joined_lock);
	result = add(NO_NUMBER, attr, event, page, size);
	lock_give(&joined_lock);
	if (result) {
		memory_free(page, size);
		return false;
	}
	message->sample_type = attr->sample_type;
	message->read_format = attr->read_format;
	message->sample_id_all = attr->sample_id_all;
	message->ahead = attr->use_clockid ? 0 : clock_ahead();
	message->size = size;
	return true;
}

/* Whether what lies there is still the mapping of an event of the kernel's. */
static bool is_mapped(uint64_t start, uint64_t size, struct maps_entry *entry)
{
	struct maps_file file;

	return maps_find_file(start, entry, &file) && entry->start == start &&
	       entry->end == start + size && !strcmp(file.path, "anon_inode:[perf_event]");
}

int64_t event_joined_by(struct thread *thread, int fd, const struct perf_event_attr *attr,
			uint64_t start, uint64_t size, int own, uint64_t event)
{
	const struct joined *already;
	struct perf_event_mmap_page *page;
	struct maps_entry entry;
	uint64_t joined_to;
	int64_t result;

	lock_take(&joined_lock);
	already = find(fd);
	joined_to = already ? already->to.event : 0;
	lock_give(&joined_lock);
	if (joined_to)
		return core_set_output(event, joined_to);
	if (!size || core_named(event)->ring || !is_mapped(start, size, &entry))
		return -EINVAL;
	/* The kernel's ring goes with its last mapping, so this one comes first. */
	page = map_of(fd, size);
	if (!page)
		return -EINVAL;
	struct syscall call = {
		.number = __NR_mmap,
		.args = {start, size, entry.prot, MAP_SHARED | MAP_FIXED, (uint64_t)own, 0},
	};
	result = event_mmap(thread, &call, event);
	if (sys_failed(result)) {
		memory_free(page, size);
		return result;
	}
	lock_take(&joined_lock);
	result = add(fd, attr, event, page, size);
	lock_give(&joined_lock);
	return result;
}

/* ---- forwarding ---- */

void event_joined_forward(void)
{
	if (!event_joined_any())
		return;
	lock_take(&joined_lock);
	for (unsigned int i = 0; i < nr_joined; i++) {
		struct joined *item = &joined[i];

		if (item->fd == UNUSED)
			continue;
		if (!is_open(item->to.event))
			forget(item);
		else
			core_forward(&item->to);
	}
	lock_give(&joined_lock);
}
