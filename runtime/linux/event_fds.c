// SPDX-License-Identifier: MIT
#include "runtime/linux/event_fds.h"

#include <asm/errno.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/resource.h>
#include <linux/stat.h>

#include "abi/control.h"
#include "core/arena.h"
#include "core/core.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/control.h"
#include "runtime/linux/fork_locks.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/task.h"
#include "runtime/linux/uio.h"
#include "runtime/string.h"
#include "runtime/sys.h"

#ifndef PIPEFS_MAGIC
#define PIPEFS_MAGIC 0x50495045
#endif

enum { REMEMBERED = 65536 };

/* What a number is. */
struct known {
	uint32_t event; /* 0: not known, or PLAIN */
	uint32_t generation;
};
#define PLAIN UINT32_MAX

static struct known *table;
struct lock event_fds_lock;

/* The numbers of a vfork child are its own, the table is its parent's. */
static bool has_own_numbers(void)
{
	return task_self()->vfork || task_self()->own_numbers;
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

static void remember(uint64_t fd, uint32_t event, uint32_t generation)
{
	if (!remembers(fd) || !make_table())
		return;
	__atomic_store_n(&table[fd].generation, generation, __ATOMIC_RELAXED);
	__atomic_store_n(&table[fd].event, event, __ATOMIC_RELEASE);
}

/* Of a pipe, which has an inode number that no other pipe of the system has. */
static uint32_t find_inode(uint64_t inode)
{
	const uint32_t made = core_tree()->made;

	for (uint32_t i = 1; i <= made; i++) {
		const struct core_event *event = core_event(i);

		if (event->inode == inode && event->state != CORE_FREE && !event->parent)
			return i;
	}
	return 0;
}

static uint32_t look_up(uint64_t fd)
{
	struct statfs fs;
	struct stat file;
	uint32_t event = 0;

	if (sys(__NR_fstat, fd, &file))
		return 0;
	if (S_ISFIFO(file.st_mode) && arena_events())
		event = find_inode(file.st_ino);
	if (event && (sys(__NR_fstatfs, fd, &fs) || fs.f_type != PIPEFS_MAGIC))
		event = 0;
	remember(fd, event ? event : PLAIN, event ? core_event(event)->generation : 0);
	return event;
}

/* As the table has it, which is there: 0 for a number that is not known, or PLAIN. */
static inline uint32_t in_table(uint64_t fd)
{
	uint32_t event = __atomic_load_n(&table[fd].event, __ATOMIC_ACQUIRE);

	if (event && event != PLAIN && core_event(event)->generation != table[fd].generation)
		return PLAIN;
	return event;
}

uint32_t event_of_fd(uint64_t fd)
{
	uint32_t event;

	fd = (uint32_t)fd; /* the kernel looks at no more */
	if (!core_nr_events() || fd > INT32_MAX)
		return 0;
	if (!remembers(fd) || !table)
		return look_up(fd);
	event = in_table(fd);
	if (!event)
		return look_up(fd);
	return event == PLAIN ? 0 : event;
}

uint32_t event_known(uint64_t fd)
{
	uint32_t event;

	fd = (uint32_t)fd;
	if (!table || !remembers(fd))
		return 0;
	event = in_table(fd);
	return event == PLAIN ? 0 : event;
}

/*
 * The pipe, for which one number has to be free, as for an event of the kernel's. The other end has
 * to have one for a moment, beyond the limit if need be.
 */
static int64_t make_pipe(int ends[2])
{
	struct {
		uint64_t now, max;
	} limit, raised;
	int64_t error = sys(__NR_pipe2, ends, O_CLOEXEC);

	if (error != -EMFILE || sys(__NR_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) ||
	    limit.now == limit.max)
		return error;
	raised = limit;
	raised.now++;
	if (sys(__NR_prlimit64, 0, RLIMIT_NOFILE, &raised, NULL))
		return error;
	error = sys(__NR_pipe2, ends, O_CLOEXEC);
	sys(__NR_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL);
	return error;
}

int64_t event_fd_make(uint32_t event, bool cloexec)
{
	struct control_message message = {
		.what = CONTROL_OPEN,
		.event = event,
		.generation = core_event(event)->generation,
	};
	struct stat file;
	int ends[2];
	int64_t error = make_pipe(ends);
	bool told;

	if (error)
		return error;
	sys(__NR_fstat, ends[0], &file);
	core_event(event)->inode = file.st_ino;
	told = control_send(&message, ends[1]);
	sys(__NR_close, ends[1]);
	if (!told) {
		sys(__NR_close, ends[0]);
		return -ENODEV;
	}
	if (!cloexec)
		sys(__NR_fcntl, ends[0], F_SETFD, 0);
	remember((uint64_t)ends[0], event, message.generation);
	return ends[0];
}

void event_fds_forget(uint64_t first, uint64_t last)
{
	if (!table || has_own_numbers())
		return;
	for (uint64_t fd = first; fd <= last && fd < REMEMBERED; fd++)
		__atomic_store_n(&table[fd].event, 0, __ATOMIC_RELEASE);
}

bool event_fd_drain(uint64_t fd, uint32_t event)
{
	char bytes[64];
	const struct vector vector = {bytes, sizeof(bytes)};
	bool any = false;
	int64_t n;

	/* First, so that what happens from here on is told of again. */
	__atomic_store_n(&core_event(event)->woken, 0, __ATOMIC_SEQ_CST);
	do {
		n = sys(__NR_preadv2, fd, &vector, 1, -1, -1, RWF_NOWAIT);
		any |= n > 0;
	} while (n == sizeof(bytes));
	return any;
}
