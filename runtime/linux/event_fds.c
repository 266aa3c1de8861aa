// SPDX-License-Identifier: MIT
#include "runtime/linux/event_fds.h"

#include <asm/errno.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/stat.h>

#include "abi/control.h"
#include "core/arena.h"
#include "core/core.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/control.h"
#include "runtime/linux/event_poll.h"
#include "runtime/linux/fork_locks.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/task.h"
#include "runtime/linux/uio.h"
#include "runtime/string.h"
#include "runtime/sys.h"

#ifndef PIPEFS_MAGIC
#define PIPEFS_MAGIC 0x50495045
#endif
#ifndef SPLICE_F_NONBLOCK
#define SPLICE_F_NONBLOCK 2 /* linux/splice.h, which is the kernel's own */
#endif

enum { REMEMBERED = 65536 };

/* What a number is: the name of an event; 0: not known; or PLAIN. */
static uint64_t *table;
#define PLAIN UINT32_MAX

struct lock event_fds_lock = {.kind = LOCK_EVENT_FDS};

/* Somebody else closes and opens what is in this table, too. */
static bool shared;

void event_fds_shared(void)
{
	shared = true;
}

/* The numbers of a vfork child are its own, the table is its parent's. */
static bool has_own_numbers(void)
{
	return shared || task_self()->vfork || task_self()->own_numbers;
}

static bool remembers(uint64_t fd)
{
	return fd < REMEMBERED && !has_own_numbers();
}

static bool make_table(void)
{
	if (__atomic_load_n(&table, __ATOMIC_ACQUIRE))
		return true;
	lock_take(&event_fds_lock);
	if (!table)
		__atomic_store_n(&table, memory_allocate(REMEMBERED * sizeof(*table), 0),
				 __ATOMIC_RELEASE);
	lock_give(&event_fds_lock);
	return table;
}

static void remember(uint64_t fd, uint64_t event)
{
	if (remembers(fd) && make_table())
		__atomic_store_n(&table[fd], event, __ATOMIC_RELEASE);
}

static uint64_t now;

uint64_t event_fds_now(void)
{
	return __atomic_add_fetch(&now, 1, __ATOMIC_ACQ_REL);
}

/* What a number was found to be counts only if nobody has closed anything since @before, and
 * nothing else is known of it meanwhile: it may be another thread's by now. */
static void remember_found(uint64_t fd, uint64_t event, uint64_t before, uint64_t known)
{
	if (!remembers(fd) || !make_table())
		return;
	lock_take(&event_fds_lock);
	if (__atomic_load_n(&now, __ATOMIC_RELAXED) == before && table[fd] == known)
		__atomic_store_n(&table[fd], event, __ATOMIC_RELEASE);
	lock_give(&event_fds_lock);
}

/* Of a pipe, which has an inode number that no other pipe of the system has. */
static uint64_t find_inode(uint64_t inode)
{
	const uint32_t made = core_tree()->made;

	for (uint32_t i = 1; i <= made; i++) {
		const struct core_event *event = core_event(i);
		/* First: if the slot changes hands meanwhile, what is found is closed. */
		const uint32_t generation = __atomic_load_n(&event->generation, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&event->inode, __ATOMIC_ACQUIRE) == inode &&
		    event->state != CORE_FREE && !event->parent)
			return core_name(i, generation);
	}
	return 0;
}

/* What is @known of it so far is not enough. */
static uint64_t look_up(uint64_t fd, uint64_t known)
{
	const uint64_t before = __atomic_load_n(&now, __ATOMIC_ACQUIRE);
	struct statfs fs;
	struct stat file;
	uint64_t event = 0;

	if (sys(__NR_fstat, fd, &file))
		return 0;
	if (S_ISFIFO(file.st_mode) && arena_events())
		event = find_inode(file.st_ino);
	/* What was opened by a path of it for its name alone (O_PATH) can do nothing either. */
	if (event && (sys(__NR_fstatfs, fd, &fs) || fs.f_type != PIPEFS_MAGIC ||
		      sys(__NR_fcntl, fd, F_GETFL) & O_PATH))
		event = 0;
	remember_found(fd, event ? event : PLAIN, before, known);
	return event;
}

/* As the table has it, which is there: @known, and what that stands for now. An event that is gone
 * is none, and the number may be any. */
static inline uint64_t in_table(uint64_t fd, uint64_t *known)
{
	const uint64_t event = *known = __atomic_load_n(&table[fd], __ATOMIC_ACQUIRE);

	if (event && event != PLAIN && core_named(event)->generation != event >> 32)
		return 0;
	return event;
}

uint64_t event_of_fd(uint64_t fd)
{
	uint64_t event, known;

	fd = (uint32_t)fd; /* the kernel looks at no more */
	if (!core_nr_events() || fd > INT32_MAX)
		return 0;
	if (!remembers(fd) || !table)
		return look_up(fd, 0);
	event = in_table(fd, &known);
	if (!event)
		return look_up(fd, known);
	return event == PLAIN ? 0 : event;
}

uint64_t event_known(uint64_t fd)
{
	uint64_t event, known;

	fd = (uint32_t)fd;
	if (!table || !remembers(fd))
		return 0;
	event = in_table(fd, &known);
	return event == PLAIN ? 0 : event;
}

int64_t event_fd_of(uint64_t event, int64_t guess)
{
	enum { MOST = 4096 };

	if (event_of_fd((uint64_t)guess) == event)
		return guess;
	for (int64_t fd = 0; fd < MOST; fd++)
		if (event_of_fd((uint64_t)fd) == event)
			return fd;
	return -EBADF;
}

int64_t event_fd_make(uint64_t event, bool cloexec)
{
	struct control_message message = {
		.what = CONTROL_OPEN,
		.event = (uint32_t)event,
		.generation = (uint32_t)(event >> 32),
	};
	const int64_t fd = control_pipe(cloexec, &message.inode);

	if (fd < 0)
		return fd;
	core_set_pipe(event, message.inode);
	if (!control_send(&message, -1)) {
		sys(__NR_close, fd);
		return -ENODEV;
	}
	remember((uint64_t)fd, event);
	return fd;
}

void event_fd_becomes(uint64_t fd, uint64_t event)
{
	event_fds_now();
	remember(fd, event);
}

void event_fds_forget(uint64_t first, uint64_t last)
{
	if (!table || has_own_numbers())
		return;
	lock_take(&event_fds_lock);
	event_fds_now();
	for (uint64_t fd = first; fd <= last && fd < REMEMBERED; fd++)
		__atomic_store_n(&table[fd], 0, __ATOMIC_RELEASE);
	lock_give(&event_fds_lock);
}

/* Without waiting, whatever @fd is by now. */
static int64_t take_bytes(uint64_t fd, const struct vector *vector)
{
	const int64_t n = sys(__NR_preadv2, fd, vector, 1, -1, -1, RWF_NOWAIT);

	/* Of pipes it can be asked since Linux 6.4. */
	return n == -EOPNOTSUPP ? sys(__NR_vmsplice, fd, vector, 1, SPLICE_F_NONBLOCK) : n;
}

bool event_fd_drain(uint64_t fd, uint64_t event)
{
	char bytes[64];
	const struct vector vector = {bytes, sizeof(bytes)};
	bool any = false;
	int64_t n;

	/* First, so that what happens from here on is told of again: once too often does no harm,
	 * if the slot is another event's by now. */
	core_wake_seen(core_named(event));
	do {
		n = take_bytes(fd, &vector);
		any |= n > 0;
	} while (n == sizeof(bytes));
	return any;
}
