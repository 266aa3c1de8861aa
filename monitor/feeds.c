// SPDX-License-Identifier: MIT
#include "monitor/feeds.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/count.h"
#include "core/forward.h"
#include "monitor/monitor.h"
#include "monitor/ready.h"

struct feed {
	int fd; /* -1: none */
	uint32_t event, generation;
	uint32_t leader; /* of its group when it came: it is that now, too, or the event itself */
	bool counts;	 /* it is kept: core_host_kept() */
	uint32_t refreshed; /* of core_event.refreshed the kernel's event has been told that much */
	bool closed;	    /* without a descriptor its event goes on until it is unmapped */
	struct core_forward from; /* what it writes, if that can be mapped */
};

static struct {
	int epoll;
	struct feed *feeds;
	size_t nr;
} all = {.epoll = -1};

void feeds_open(int epoll)
{
	all.epoll = epoll;
}

size_t feeds_nr(void)
{
	return all.nr;
}

static void end(struct feed *feed)
{
	epoll_ctl(all.epoll, EPOLL_CTL_DEL, feed->fd, NULL);
	close(feed->fd);
	feed->fd = -1;
	if (feed->from.page)
		munmap(feed->from.page, feed->from.size);
	feed->from.page = NULL;
}

void feeds_close(void)
{
	for (size_t i = 0; i < all.nr; i++)
		if (all.feeds[i].fd >= 0)
			end(&all.feeds[i]);
	free(all.feeds);
	memset(&all, 0, sizeof(all));
	all.epoll = -1;
}

void feeds_closed(uint32_t event, uint32_t generation)
{
	const bool goes_on = events_is(event, generation);

	for (size_t i = 0; i < all.nr; i++) {
		struct feed *feed = &all.feeds[i];

		if (feed->fd < 0 || feed->event != event || feed->generation != generation)
			continue;
		feed->closed = true;
		if (!goes_on)
			end(feed);
	}
}

static void end_unmapped(struct feed *feed)
{
	if (feed->fd >= 0 && feed->closed && !events_is(feed->event, feed->generation))
		end(feed);
}

static struct feed *free_feed(void)
{
	struct feed *grown;

	for (size_t i = 0; i < all.nr; i++) {
		end_unmapped(&all.feeds[i]);
		if (all.feeds[i].fd < 0)
			return &all.feeds[i];
	}
	grown = realloc(all.feeds, (all.nr + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	all.feeds = grown;
	return &grown[all.nr++];
}

static void answer(const struct control_message *message, int with)
{
	core_kept_answer(core_name(message->event, message->generation), with);
}

/* Before who opened it may let go of the same ring: what is in it would be lost then. */
static void map(struct feed *feed)
{
	void *page = MAP_FAILED;

	if (feed->from.size)
		page = mmap(NULL, feed->from.size, PROT_READ | PROT_WRITE, MAP_SHARED, feed->fd, 0);
	if (page != MAP_FAILED)
		feed->from.page = page;
}

/* Told once for each time that something comes: others may take it first. */
void feed_add(const struct control_message *message, int fd)
{
	struct epoll_event ready = {.events = EPOLLIN | EPOLLET};
	struct feed *feed = free_feed();

	if (!feed) {
		close(fd);
		return;
	}
	*feed = (struct feed){
		.fd = fd,
		.event = message->event,
		.generation = message->generation,
		.leader = core_event(message->event)->leader,
		.counts = message->what == CONTROL_KEEP,
		.from =
			{
				.event = core_name(message->event, message->generation),
				.feeds = true,
				.sample_type = message->sample_type,
				.read_format = message->read_format,
				.sample_id_all = message->sample_id_all,
				.ahead = message->ahead,
				.size = message->size,
			},
	};
	ready.data.u64 = READY(READY_FEED, (uint64_t)(feed - all.feeds));
	if (epoll_ctl(all.epoll, EPOLL_CTL_ADD, fd, &ready) < 0) {
		close(fd);
		feed->fd = -1;
		return;
	}
	map(feed);
	if (feed->counts)
		answer(message, 0);
}

static bool has_ended(const struct feed *feed)
{
	struct pollfd look = {.fd = feed->fd};

	return feed->counts && poll(&look, 1, 0) == 1 && look.revents & POLLHUP;
}

void feed_ready(uint32_t index)
{
	const struct feed *feed = &all.feeds[index];
	bool ended;

	if (feed->fd < 0 || !events_is(feed->event, feed->generation))
		return;
	ended = has_ended(feed);
	if (feed->from.page)
		core_forward_soon(&feed->from);
	if (ended)
		core_kept_ended(feed->from.event);
	if (ended || !feed->from.page)
		events_wake(feed->event, feed->generation); /* who forwards, or waits, is to look */
}

/* ---- kept ---- */

static bool is_kept(const struct feed *feed)
{
	return feed->fd >= 0 && feed->counts && events_is(feed->event, feed->generation);
}

static bool is_of_group(const struct feed *feed, uint32_t leader)
{
	/* What is known here alone: of thousands most are of other groups. */
	if (feed->leader != leader && feed->event != leader)
		return false;
	return core_event(feed->event)->leader == leader;
}

/* Of @event, a name, or of the group that it is in; 0: of any. */
static bool is_meant(const struct feed *feed, uint64_t event, bool group)
{
	if (!event || core_name(feed->event, feed->generation) == event)
		return true;
	return group && is_of_group(feed, core_named(event)->leader);
}

/* It is by itself to the kernel, and counts while ours would: when its leader is on, too. */
static void follow_state(struct feed *feed)
{
	uint32_t refreshed;
	bool on;

	if (!core_kept_follow(feed->from.event, &on, &refreshed))
		return;
	refreshed -= feed->refreshed;
	/* That switches it on, too. */
	if (on && refreshed) {
		feed->refreshed += refreshed;
		ioctl(feed->fd, PERF_EVENT_IOC_REFRESH, refreshed);
		return;
	}
	/* Whatever it was: prctl(2) has switched it, too, or has not. */
	ioctl(feed->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

static void read_kept(const struct feed *feed)
{
	uint64_t words[8]; /* by attr.read_format: the count is the first */

	if (read(feed->fd, words, sizeof(words)) > 0)
		core_kept_counted(feed->from.event, words[0]);
}

void feeds_kept(uint64_t event, bool group, enum core_kept what)
{
	if (what == CORE_KEPT_GONE) {
		feeds_closed((uint32_t)event, (uint32_t)(event >> 32));
		feeds_without_leader((uint32_t)event);
		return;
	}
	if (event && !events_is((uint32_t)event, (uint32_t)(event >> 32)))
		return;
	for (size_t i = 0; i < all.nr; i++) {
		struct feed *feed = &all.feeds[i];

		if (!is_meant(feed, event, group) || !is_kept(feed))
			continue;
		/* It may have come to its limit. */
		core_forward_soon(&feed->from);
		if (what == CORE_KEPT_SWITCH)
			follow_state(feed);
		if (what == CORE_KEPT_RESET)
			ioctl(feed->fd, PERF_EVENT_IOC_RESET, 0);
		read_kept(feed);
	}
}

void feeds_without_leader(uint32_t leader)
{
	for (size_t i = 0; i < all.nr; i++) {
		struct feed *feed = &all.feeds[i];

		if (feed->leader != leader || !is_kept(feed) || is_of_group(feed, leader))
			continue;
		feed->leader = feed->event;
		follow_state(feed);
		read_kept(feed);
	}
}

static int set_filter(int kept, int from)
{
	char filter[4096];
	const ssize_t length = read(from, filter, sizeof(filter) - 1);

	if (length < 0)
		return -1;
	filter[length] = 0;
	return ioctl(kept, PERF_EVENT_IOC_SET_FILTER, filter);
}

static int query_programs(int kept, uint32_t nr, int to)
{
	union {
		struct perf_event_query_bpf query;
		uint32_t words[2 + CONTROL_PROGRAMS];
	} all_of = {.query.ids_len = nr};
	const size_t size = (1 + nr) * sizeof(uint32_t);
	int result, error;

	if (nr > CONTROL_PROGRAMS) {
		errno = E2BIG;
		return -1;
	}
	result = ioctl(kept, PERF_EVENT_IOC_QUERY_BPF, &all_of.query);
	error = errno;
	if (write(to, &all_of.query.prog_cnt, size) != (ssize_t)size && !result) {
		result = -1;
		error = EINVAL;
	}
	errno = error;
	return result;
}

static int make_ioctl(int kept, const struct control_message *message, int fd)
{
	uint64_t argument = message->argument;

	switch (message->request) {
	case PERF_EVENT_IOC_SET_FILTER:
		return set_filter(kept, fd);
	case PERF_EVENT_IOC_SET_BPF:
		return ioctl(kept, PERF_EVENT_IOC_SET_BPF, fd);
	case PERF_EVENT_IOC_PERIOD:
		return ioctl(kept, PERF_EVENT_IOC_PERIOD, &argument);
	case PERF_EVENT_IOC_QUERY_BPF:
		return query_programs(kept, (uint32_t)argument, fd);
	default:
		errno = ENOTTY;
		return -1;
	}
}

void feed_ioctl(const struct control_message *message, int fd)
{
	for (size_t i = 0; i < all.nr; i++) {
		const struct feed *feed = &all.feeds[i];

		if (is_meant(feed, core_name(message->event, message->generation), false) &&
		    is_kept(feed))
			answer(message, make_ioctl(feed->fd, message, fd) < 0 ? -errno : 0);
	}
}
