// SPDX-License-Identifier: MIT
/*
 * The rings of a whole list of counters.
 *
 * Events that are bound to one processor may share its ring whatever task they measure, so a
 * process of a thousand threads needs no more rings than there are processors. One event of the
 * cell maps it, the others are redirected. Which descriptor is polled is another matter: the one
 * that mapped the ring reports a hang-up for ever once its own task has ended, so the next task's
 * takes over, and when none is left the ring has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <tally/probe.h>
#include <tally/sampler.h>

#include "lib/error.h"
#include "lib/sampler/merge.h"
#include "lib/sampler/ring.h"

/* Rings that were not given a size: large, because a wakeup costs more than the memory. */
#define RING_BYTES_MIN	 (512u * 1024)
#define RING_BYTES_MAX	 (4u * 1024 * 1024)
#define RING_BYTES_TOTAL (64u * 1024 * 1024)

#define MAX_WOKEN 64

struct ring_place {
	struct tally_ring *ring;
	struct tally_counter *owner; /* mapped it */
	size_t cpu, first_task, nr_tasks;
	bool backward;
	/* The counter that is polled for it. */
	size_t task, event;
	int fd; /* -1: every target has ended */
};

struct tally_sampler {
	struct tally_counters *counters;
	struct ring_place *places;
	struct tally_ring **rings; /* those of places, as the merge wants them */
	size_t nr_rings, nr_live;
	bool per_task;	    /* a ring for each task, else for each processor */
	bool directions[2]; /* whether there are forward and backward events */
	int epoll;
	struct tally_record_format *formats;
	struct tly_id *ids;
	size_t nr_ids;
	struct tly_merge merge;
};

/* ---- what is polled ---- */

static struct tally_counter *counter_at(const struct tally_sampler *sampler,
					const struct ring_place *place, size_t task, size_t event)
{
	if (tally_counters_attr(sampler->counters, event)->write_backward != place->backward)
		return NULL;
	return tally_counters_at(sampler->counters, event, task, place->cpu);
}

/* Polls the first open counter of the ring from (task, event) on; without one, it has ended. */
static int watch_from(struct tally_sampler *sampler, struct ring_place *place, size_t task,
		      size_t event)
{
	size_t nr_events = tally_counters_events(sampler->counters);
	struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = place - sampler->places};

	place->fd = -1;
	for (; task < place->first_task + place->nr_tasks; task++, event = 0) {
		for (; event < nr_events; event++) {
			struct tally_counter *counter = counter_at(sampler, place, task, event);

			if (!counter)
				continue;
			place->task = task;
			place->event = event;
			place->fd = tally_counter_fd(counter);
			if (epoll_ctl(sampler->epoll, EPOLL_CTL_ADD, place->fd, &wanted) < 0)
				return -errno;
			return 0;
		}
	}
	sampler->nr_live--;
	return 0;
}

static int watch_next(struct tally_sampler *sampler, struct ring_place *place, uint32_t events)
{
	epoll_ctl(sampler->epoll, EPOLL_CTL_DEL, place->fd, NULL);
	/* An error is one event's (a pinned one that lost its counter), the end is the task's. */
	if (events & EPOLLHUP)
		return watch_from(sampler, place, place->task + 1, 0);
	return watch_from(sampler, place, place->task, place->event + 1);
}

int tally_sampler_wait(struct tally_sampler *sampler, int timeout_ms)
{
	struct epoll_event woken[MAX_WOKEN];
	int nr;

	if (!sampler->nr_live)
		return -EPIPE;
	nr = epoll_wait(sampler->epoll, woken, MAX_WOKEN, timeout_ms);
	if (nr < 0)
		return -errno;
	for (int i = 0; i < nr; i++) {
		int ret = 0;

		if (woken[i].events & (EPOLLHUP | EPOLLERR))
			ret = watch_next(sampler, &sampler->places[woken[i].data.u64],
					 woken[i].events);
		if (ret < 0)
			return ret;
	}
	if (!sampler->nr_live)
		return -EPIPE;
	return nr > 0;
}

int tally_sampler_fd(const struct tally_sampler *sampler)
{
	return sampler->epoll;
}

/* ---- setting up ---- */

static int check_attrs(const struct tally_counters *counters,
		       const struct tally_sampler_options *options, struct tally_error *err)
{
	size_t nr = tally_counters_events(counters);

	if (!nr)
		return tly_error(err, -EINVAL, "there are no events to sample");
	for (size_t i = 0; i < nr; i++) {
		const struct perf_event_attr *attr = tally_counters_attr(counters, i);

		if (nr > 1 &&
		    (!attr->sample_id_all || !(attr->sample_type & PERF_SAMPLE_IDENTIFIER)))
			return tly_error(
				err, -EINVAL,
				"event %zu has no sample_id_all and PERF_SAMPLE_IDENTIFIER: "
				"records of several events could not be told apart",
				i);
		if (options->ordered &&
		    (!attr->sample_id_all || !(attr->sample_type & PERF_SAMPLE_TIME)))
			return tly_error(err, -EINVAL,
					 "event %zu has no sample_id_all and PERF_SAMPLE_TIME: its "
					 "records cannot be put in order",
					 i);
	}
	return 0;
}

static size_t default_pages(size_t nr_rings)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	size_t budget = tally_system_ring_budget();
	size_t bytes = RING_BYTES_MAX;

	while (bytes > RING_BYTES_MIN && bytes > RING_BYTES_TOTAL / nr_rings)
		bytes /= 2;
	/* The page in front of the data is locked too. */
	while (bytes > page_size && bytes + page_size > budget / nr_rings)
		bytes /= 2;
	return bytes / page_size;
}

static int set_signal(int fd, const struct tally_sampler_options *options, struct tally_error *err)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = options->signal_tid};
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETSIG, options->signal) < 0 ||
	    fcntl(fd, F_SETOWN_EX, &owner) < 0 || fcntl(fd, F_SETFL, flags | O_ASYNC) < 0)
		return tly_error(err, -errno, "asking for signal %d at wakeups: %m",
				 options->signal);
	return 0;
}

/* Takes the counter of one cell in: the first maps the ring of its place, the rest share it. */
static int add_counter(const struct tally_sampler_options *options, size_t pages,
		       struct ring_place *place, struct tally_counter *counter,
		       struct tally_error *err)
{
	unsigned int flags = 0;
	int ret;

	if (options->signal) {
		ret = set_signal(tally_counter_fd(counter), options, err);
		if (ret < 0)
			return ret;
	}
	if (place->ring) {
		ret = tally_counter_set_output(counter, place->owner);
		if (ret < 0)
			return tly_error(err, ret,
					 "the events of one processor or task cannot share a ring: "
					 "they differ in their clock or in their AUX unit");
		return 0;
	}
	if (place->backward)
		flags = TALLY_RING_BACKWARD | (options->overwrite ? TALLY_RING_OVERWRITE : 0);
	ret = tally_ring_map(tally_counter_fd(counter), pages, flags, &place->ring, err);
	if (ret < 0)
		return ret;
	place->owner = counter;
	if (options->aux_pages && !place->backward)
		return tally_ring_map_aux(place->ring, tally_counter_fd(counter),
					  options->aux_pages, options->overwrite, err);
	return 0;
}

static size_t count_cells(struct tally_sampler *sampler)
{
	struct tally_counters *counters = sampler->counters;
	size_t nr = 0;

	for (size_t event = 0; event < tally_counters_events(sampler->counters); event++)
		for (size_t task = 0; task < tally_counters_tasks(counters); task++)
			for (size_t cpu = 0; cpu < tally_counters_cpus(counters); cpu++)
				nr += tally_counters_at(counters, event, task, cpu) != NULL;
	return nr;
}

static int add_place(struct tally_sampler *sampler, const struct tally_sampler_options *options,
		     size_t pages, const struct ring_place *where, struct tally_error *err)
{
	struct ring_place *place = &sampler->places[sampler->nr_rings];

	*place = *where;
	for (size_t task = place->first_task; task < place->first_task + place->nr_tasks; task++) {
		for (size_t e = 0; e < tally_counters_events(sampler->counters); e++) {
			struct tally_counter *counter = counter_at(sampler, place, task, e);
			struct tly_id *id = &sampler->ids[sampler->nr_ids];
			int ret;

			if (!counter)
				continue;
			/* Counted at once: whatever fails, it is released with the sampler. */
			if (!place->ring)
				sampler->nr_rings++;
			ret = add_counter(options, pages, place, counter, err);
			if (ret < 0)
				return ret;
			sampler->rings[place - sampler->places] = place->ring;
			ret = tally_counter_id(counter, &id->id);
			if (ret < 0)
				return tly_error(err, ret, "reading the id of an event");
			id->event = e;
			sampler->nr_ids++;
		}
	}
	if (!place->ring)
		return 0;
	sampler->nr_live++;
	return watch_from(sampler, place, place->first_task, 0);
}

static int map_places(struct tally_sampler *sampler, const struct tally_sampler_options *options,
		      size_t pages, struct tally_error *err)
{
	size_t nr_tasks = tally_counters_tasks(sampler->counters);
	size_t nr = sampler->per_task ? nr_tasks : tally_counters_cpus(sampler->counters);

	for (int backward = 0; backward < 2; backward++) {
		for (size_t i = 0; sampler->directions[backward] && i < nr; i++) {
			struct ring_place where = {
				.backward = backward,
				.cpu = sampler->per_task ? 0 : i,
				.first_task = sampler->per_task ? i : 0,
				.nr_tasks = sampler->per_task ? 1 : nr_tasks,
				.fd = -1,
			};
			int ret = add_place(sampler, options, pages, &where, err);

			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

/* The events that were redirected are detached with the last mapping of their ring. */
static void unmap_places(struct tally_sampler *sampler)
{
	for (size_t i = 0; i < sampler->nr_rings; i++) {
		if (sampler->places[i].fd >= 0)
			epoll_ctl(sampler->epoll, EPOLL_CTL_DEL, sampler->places[i].fd, NULL);
		tally_ring_unmap(sampler->places[i].ring);
	}
	sampler->nr_rings = sampler->nr_live = sampler->nr_ids = 0;
}

static int add_places(struct tally_sampler *sampler, const struct tally_sampler_options *options,
		      struct tally_error *err)
{
	size_t nr_cpus = tally_counters_cpus(sampler->counters);
	size_t nr_places, pages = options->pages;
	int ret;

	for (size_t e = 0; e < tally_counters_events(sampler->counters); e++)
		sampler->directions[tally_counters_attr(sampler->counters, e)->write_backward] =
			true;
	sampler->per_task = nr_cpus == 1 && tally_counters_cpu(sampler->counters, 0) < 0;
	nr_places = (sampler->per_task ? tally_counters_tasks(sampler->counters) : nr_cpus) *
		    (sampler->directions[0] + sampler->directions[1]);
	if (!nr_places)
		return tly_error(err, -ESRCH, "there is nothing to sample");
	if (!pages)
		pages = default_pages(nr_places);
	sampler->places = calloc(nr_places, sizeof(*sampler->places));
	sampler->rings = calloc(nr_places, sizeof(struct tally_ring *));
	sampler->ids = calloc(count_cells(sampler) + 1, sizeof(*sampler->ids));
	if (!sampler->places || !sampler->rings || !sampler->ids)
		return tly_error(err, -ENOMEM, "out of memory");
	/* Others may have used up some of the budget: what was asked for is not made smaller. */
	while ((ret = map_places(sampler, options, pages, err)) == -EPERM && !options->pages &&
	       pages > 1) {
		unmap_places(sampler);
		pages /= 2;
	}
	return ret;
}

int tally_sampler_new(struct tally_counters *counters, const struct tally_sampler_options *options,
		      struct tally_sampler **sampler, struct tally_error *err)
{
	static const struct tally_sampler_options defaults;
	size_t nr_events = tally_counters_events(counters);
	struct tally_sampler *s;
	int ret;

	*sampler = NULL;
	if (!options)
		options = &defaults;
	ret = check_attrs(counters, options, err);
	if (ret < 0)
		return ret;
	s = calloc(1, sizeof(*s));
	if (!s)
		return tly_error(err, -ENOMEM, "out of memory");
	s->counters = counters;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->formats = calloc(nr_events, sizeof(*s->formats));
	if (s->epoll < 0 || !s->formats) {
		ret = tly_error(err, s->epoll < 0 ? -errno : -ENOMEM, "setting up a sampler: %m");
		goto fail;
	}
	for (size_t i = 0; i < nr_events; i++)
		tally_record_format_init(&s->formats[i], tally_counters_attr(counters, i));
	ret = add_places(s, options, err);
	if (ret < 0)
		goto fail;
	ret = tly_merge_init(&s->merge, s->rings, s->nr_rings, s->formats, nr_events, s->ids,
			     s->nr_ids, options->ordered);
	if (ret < 0) {
		tly_error(err, ret, "out of memory");
		goto fail;
	}
	*sampler = s;
	return 0;
fail:
	tally_sampler_free(s);
	return ret;
}

void tally_sampler_free(struct tally_sampler *sampler)
{
	if (!sampler)
		return;
	tly_merge_release(&sampler->merge);
	unmap_places(sampler);
	if (sampler->epoll >= 0)
		close(sampler->epoll);
	free(sampler->places);
	free(sampler->rings);
	free(sampler->formats);
	free(sampler->ids);
	free(sampler);
}

/* ---- reading ---- */

int tally_sampler_pause(struct tally_sampler *sampler, bool pause)
{
	int ret = 0;

	for (size_t i = 0; i < sampler->nr_rings; i++) {
		const struct ring_place *place = &sampler->places[i];
		int code = 0;

		if (place->ring->flags & TALLY_RING_OVERWRITE)
			code = tally_counter_pause_output(place->owner, pause);
		if (code < 0)
			ret = code;
	}
	return ret;
}

int tally_sampler_next(struct tally_sampler *sampler, bool flush, struct tally_record *record,
		       size_t *event, struct tally_error *err)
{
	return tly_merge_next(&sampler->merge, flush, record, event, err);
}

size_t tally_sampler_rings(const struct tally_sampler *sampler)
{
	return sampler->nr_rings;
}

struct tally_ring *tally_sampler_ring(const struct tally_sampler *sampler, size_t index)
{
	return sampler->rings[index];
}

bool tally_sampler_ring_is_backward(const struct tally_sampler *sampler, size_t index)
{
	return sampler->places[index].backward;
}

void tally_sampler_stats(const struct tally_sampler *sampler, struct tally_sampler_stats *stats)
{
	tly_merge_stats(&sampler->merge, stats);
}
