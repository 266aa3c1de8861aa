// SPDX-License-Identifier: MIT
#include "runtime/linux/event_joined.h"

#include <asm/errno.h>
#include <asm/mman.h>
#include <linux/mman.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>

#include "core/core.h"
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
	uint64_t event; /* of ours, by name, whose ring it is: when it is gone, so is this */
	bool feeds;	/* its records shall be that one's */
	uint64_t sample_type;
	bool sample_id_all;
	int64_t ahead; /* of our clock is the one that it tells the time by, ns */
	struct perf_event_mmap_page *page; /* NULL: it writes to the ring of another one here */
	uint64_t size;			   /* of the mapping */
};

static struct joined *joined;
static unsigned int nr_joined; /* all beyond are unused */
static struct lock joined_lock;

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
	if (item->page)
		memory_free(item->page, item->size);
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
		.event = event,
		.feeds = fd == NO_NUMBER,
		.sample_type = attr->sample_type,
		.sample_id_all = attr->sample_id_all,
		.ahead = attr->use_clockid ? 0 : clock_ahead(),
		.page = page,
		.size = size,
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
	joined_lock = (struct lock){0};
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
		if (joined[i].fd >= 0 && joined[i].page && joined[i].event == event &&
		    is_open(event) && joined[i].sample_type == attr->sample_type &&
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
		       unsigned int pages)
{
	uint64_t size;
	struct perf_event_mmap_page *page = map_most(fd, pages, &size);
	int64_t result;

	if (!page)
		return false;
	lock_take(&joined_lock);
	result = add(NO_NUMBER, attr, event, page, size);
	lock_give(&joined_lock);
	if (result)
		memory_free(page, size);
	return !result;
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
	joined_to = already ? already->event : 0;
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

static const void *data_at(const struct joined *item, uint64_t at)
{
	return (const char *)item->page + item->page->data_offset +
	       (at & (item->page->data_size - 1));
}

/* What identifies a record, in order: of samples from the first word on, of others behind the body.
 */
static const uint64_t of_samples[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TID,       PERF_SAMPLE_TIME,
	PERF_SAMPLE_ADDR,	PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID,
};
static const uint64_t of_others[] = {
	PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,	 PERF_SAMPLE_IDENTIFIER,
};
enum {
	OF_SAMPLES = sizeof(of_samples) / sizeof(of_samples[0]),
	OF_OTHERS = sizeof(of_others) / sizeof(of_others[0]),
};

/* The words from @word to @end that are there, of @nr that may be. */
static void change_words(const struct joined *item, const uint64_t *fields, unsigned int nr,
			 uint64_t *word, const uint64_t *end)
{
	const uint64_t ids = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;

	for (unsigned int i = 0; i < nr && word < end; i++) {
		if (!(item->sample_type & fields[i]))
			continue;
		if (fields[i] == PERF_SAMPLE_TIME)
			*word -= (uint64_t)item->ahead;
		else if (fields[i] & ids && item->feeds)
			*word = core_named(item->event)->id;
		word++;
	}
}

static unsigned int nr_trailing(const struct joined *item)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; item->sample_id_all && i < OF_OTHERS; i++)
		nr += (item->sample_type & of_others[i]) != 0;
	return nr;
}

/* As the event of ours would have written it. */
static void change(const struct joined *item, struct perf_event_header *header)
{
	uint64_t *body = (uint64_t *)(header + 1);
	uint64_t *end = (uint64_t *)header + header->size / 8;
	const unsigned int trailing = nr_trailing(item);

	if (header->type == PERF_RECORD_SAMPLE) {
		change_words(item, of_samples, OF_SAMPLES, body, end);
		return;
	}
	if (header->type == PERF_RECORD_LOST && item->feeds && body < end)
		*body = core_named(item->event)->id;
	if (trailing && end - body >= trailing)
		change_words(item, of_others, OF_OTHERS, end - trailing, end);
}

/* While it is disabled nobody tells it anything; what is kept is disabled itself then. */
static bool listens(const struct joined *item)
{
	const struct core_event *event = core_named(item->event);
	const uint8_t state = event->state;

	return !item->feeds || event->is_kept || state == CORE_INACTIVE || state == CORE_ACTIVE;
}

/* A ring is of whole words, and so are records: a header lies in one piece. */
static void forward_record(const struct joined *item, uint64_t at, uint64_t size)
{
	static _Alignas(PAGE) char record[UINT16_MAX + 1];
	const uint64_t left = -at & (item->page->data_size - 1);
	const uint64_t first = left && left < size ? left : size;
	struct perf_event_header *header = (struct perf_event_header *)record;

	if (!listens(item))
		return;
	memcpy(record, data_at(item, at), first);
	memcpy(record + first, data_at(item, at + first), size - first);
	change(item, header);
	core_forward(item->event, header->type == PERF_RECORD_SAMPLE, record, size);
}

static void forward(const struct joined *item)
{
	struct perf_event_mmap_page *page = item->page;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail, size;

	for (; head - tail >= sizeof(struct perf_event_header); tail += size) {
		size = ((const struct perf_event_header *)data_at(item, tail))->size;
		if (size < sizeof(struct perf_event_header) || size > head - tail)
			break;
		forward_record(item, tail, size);
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

void event_joined_forward(void)
{
	if (!event_joined_any())
		return;
	lock_take(&joined_lock);
	for (unsigned int i = 0; i < nr_joined; i++) {
		struct joined *item = &joined[i];

		if (item->fd == UNUSED)
			continue;
		if (!is_open(item->event))
			forget(item);
		else if (item->page && item->page->data_head != item->page->data_tail)
			forward(item);
	}
	lock_give(&joined_lock);
}
