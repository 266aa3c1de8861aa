// SPDX-License-Identifier: MIT
#include "runtime/linux/event_passed_list.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/stat.h>
#include <stddef.h>

#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_joined.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/task.h"
#include "runtime/lock.h"
#include "runtime/sys.h"

enum { PASSED = 1024 };

static struct passed *passed;
static unsigned int nr_passed;
struct lock event_passed_lock = {.kind = LOCK_EVENT_PASSED};

bool event_passed_any(void)
{
	return __atomic_load_n(&nr_passed, __ATOMIC_RELAXED);
}

/* -1: one that is unused. */
struct passed *passed_find(int fd)
{
	for (unsigned int i = 0; i < nr_passed; i++)
		if (passed[i].fd == fd)
			return &passed[i];
	return NULL;
}

struct passed *passed_next(struct passed *is)
{
	for (is = is ? is + 1 : passed; is && is < passed + nr_passed; is++)
		if (is->fd >= 0)
			return is;
	return NULL;
}

bool passed_is_copy(int fd, int64_t of)
{
	enum { KCMP_FILE = 0 };
	const int64_t self = task_self()->pid;

	return !sys(__NR_kcmp, self, self, KCMP_FILE, fd, of);
}

/* Events of the kernel's are files of no type. */
static bool may_be_event(int fd)
{
	struct stat file;

	return !sys(__NR_fstat, fd, &file) && !(file.st_mode & S_IFMT);
}

bool passed_look_up(int fd, struct passed *is)
{
	const struct passed *found;

	if (!event_passed_any() || fd < 0)
		return false;
	lock_take(&event_passed_lock);
	found = passed_find(fd);
	if (found)
		*is = *found;
	lock_give(&event_passed_lock);
	return found;
}

bool passed_is(int fd)
{
	struct passed is;

	return passed_look_up(fd, &is);
}

int passed_number(int fd)
{
	int known = fd;

	if (!event_passed_any() || fd < 0)
		return fd;
	if (passed_is(fd) || !may_be_event(fd))
		return fd;
	lock_take(&event_passed_lock);
	for (unsigned int i = 0; i < nr_passed && known == fd; i++)
		if (passed[i].fd >= 0 && passed_is_copy(passed[i].fd, fd))
			known = passed[i].fd;
	lock_give(&event_passed_lock);
	return known;
}

bool passed_room(void)
{
	bool room;

	lock_take(&event_passed_lock);
	if (!passed)
		passed = memory_allocate(PASSED * sizeof(*passed), 0);
	room = passed && (nr_passed < PASSED || passed_find(-1));
	lock_give(&event_passed_lock);
	return room;
}

void passed_add(const struct passed *event)
{
	struct passed *place;

	lock_take(&event_passed_lock);
	place = passed_find(-1);
	if (!place && nr_passed < PASSED)
		place = &passed[nr_passed++];
	if (place) {
		*place = *event;
		place->since = event_fds_now();
	}
	lock_give(&event_passed_lock);
}

int passed_leader(int fd)
{
	const struct passed *found = passed_find(fd);

	return !found || found->group_fd < 0 ? fd : found->group_fd;
}

static bool is_within(int fd, uint32_t first, uint32_t last)
{
	return fd >= 0 && (uint32_t)fd >= first && (uint32_t)fd <= last;
}

void event_passed_closed(uint32_t first, uint32_t last, uint64_t before)
{
	if (!event_passed_any())
		return;
	event_joined_closed(first, last, before);
	lock_take(&event_passed_lock);
	for (unsigned int i = 0; i < nr_passed; i++) {
		if (passed[i].since >= before)
			continue;
		if (is_within(passed[i].fd, first, last))
			passed[i].fd = -1;
		/* Members without a leader are by themselves. */
		if (is_within(passed[i].group_fd, first, last))
			passed[i].group_fd = -1;
	}
	lock_give(&event_passed_lock);
}
