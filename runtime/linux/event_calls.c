// SPDX-License-Identifier: MIT
#include "runtime/linux/event_calls.h"

#include <asm/errno.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/close_range.h>
#include <linux/fadvise.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <linux/stat.h>
#include <linux/time_types.h>

#include "core/core.h"
#include "runtime/linux/control.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_feed.h"
#include "runtime/linux/event_poll.h"
#include "runtime/linux/event_request.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/tasks.h"
#include "runtime/linux/uio.h"
#include "runtime/linux/virtual.h"
#include "runtime/sys.h"

#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif

enum { VECTORS = 1024 };      /* UIO_MAXIOV */
#define SPLICES UINT64_C(0xf) /* the flags that there are, SPLICE_F_ */

/* ---- memory ---- */

/* The kernel looks at that before all else, whatever it is about to write there. */
static bool is_outside(uint64_t start, uint64_t size)
{
	return start + size < start || start + size > ADDRESS_MAX - PAGE;
}

/* 1: some vector has a length, 0: none has; or what is wrong with them. */
static int64_t check_vectors(uint64_t at, uint64_t number)
{
	struct vector vector;
	bool any = false;

	if (number > VECTORS)
		return -EINVAL;
	for (uint64_t i = 0; i < number; i++) {
		if (copy_in(&vector, at + i * sizeof(vector), sizeof(vector)))
			return -EFAULT;
		if ((int64_t)vector.length < 0)
			return -EINVAL;
		if (is_outside((uint64_t)vector.base, vector.length))
			return -EFAULT;
		any |= vector.length != 0;
	}
	return any;
}

/* ---- read ---- */

static int64_t read_event(uint64_t event, uint64_t to, uint64_t size)
{
	uint64_t values[CORE_READ_MAX / 8];
	int64_t result;

	if (is_outside(to, size))
		return -EFAULT;
	result = core_read(event, values, size < sizeof(values) ? size : sizeof(values));
	if (result > 0 && copy_out(to, values, (size_t)result))
		return -EFAULT;
	return result;
}

static int64_t event_read(struct thread *thread, struct syscall *call, uint64_t event)
{
	(void)thread;
	return read_event(event, call->args[1], call->args[2]);
}

/* Each vector is a read of its own, until one is not filled. */
static int64_t event_readv(struct thread *thread, struct syscall *call, uint64_t event)
{
	const int64_t any = check_vectors(call->args[1], call->args[2]);
	struct vector vector;
	int64_t total = 0;

	(void)thread;
	if (any <= 0)
		return any;
	for (uint64_t i = 0; i < call->args[2]; i++) {
		if (copy_in(&vector, call->args[1] + i * sizeof(vector), sizeof(vector)))
			return total ? total : -EFAULT;
		int64_t result = read_event(event, (uint64_t)vector.base, vector.length);

		if (result < 0)
			return total ? total : result;
		total += result;
		if ((uint64_t)result < vector.length)
			break;
	}
	return total;
}

/* A place before the beginning is wrong for any file. */
static int64_t event_has_no_place(struct thread *thread, struct syscall *call, uint64_t event)
{
	(void)thread, (void)event;
	return (int64_t)call->args[3] < 0 ? -EINVAL : -ESPIPE;
}

/* At the place where the file stands; it has no other. */
static int64_t event_preadv2(struct thread *thread, struct syscall *call, uint64_t event)
{
	if (call->args[3] != UINT64_MAX)
		return event_has_no_place(thread, call, event);
	if (call->args[5] & ~(uint64_t)RWF_HIPRI)
		return -EOPNOTSUPP;
	return event_readv(thread, call, event);
}

/* ---- what is of no effect ---- */

/* One of the two descriptors of a call, of which the other one may be what is wrong. */
struct side {
	int64_t flags; /* as F_GETFL has them, or an errno value */
	bool is_pipe;
};

static struct side side_of(uint64_t fd)
{
	struct side side = {O_RDWR, false};
	struct stat file;

	if (event_of_fd(fd))
		return side;
	side.flags = sys(__NR_fcntl, fd, F_GETFL);
	if (side.flags >= 0 && side.flags & O_PATH)
		side.flags = -EBADF;
	side.is_pipe = side.flags >= 0 && !sys(__NR_fstat, fd, &file) && S_ISFIFO(file.st_mode);
	return side;
}

static bool is_without(const struct side *side, int64_t access)
{
	return side->flags < 0 || (side->flags & O_ACCMODE) == access;
}

/* Of what comes from @in and goes to @out. */
static int64_t check_sides(const struct side *in, const struct side *out)
{
	if (is_without(in, O_WRONLY) || is_without(out, O_RDONLY))
		return -EBADF;
	return -EINVAL;
}

/* Where in a file, which a pipe has none of. */
static int64_t check_place(const struct side *side, uint64_t place)
{
	int64_t at;

	if (!place)
		return 0;
	if (side->is_pipe)
		return -ESPIPE;
	return copy_in(&at, place, sizeof(at));
}

/* To or from an event; only of nothing at all is that said of it. */
static int64_t event_splice(struct thread *thread, struct syscall *call, uint64_t event)
{
	const struct side in = side_of(call->args[0]), out = side_of(call->args[2]);
	int64_t error;

	(void)thread, (void)event;
	if (!call->args[4])
		return 0;
	if (call->args[5] & ~SPLICES)
		return -EINVAL;
	if (in.flags < 0 || out.flags < 0)
		return -EBADF;
	if ((in.is_pipe && call->args[1]) || (out.is_pipe && call->args[3]))
		return -ESPIPE;
	/* Without a pipe nobody looks at the places, but that they can be read. */
	error = check_place(&out, call->args[3]);
	if (!error)
		error = check_place(&in, call->args[1]);
	return error ? error : check_sides(&in, &out);
}

static int64_t event_tee(struct thread *thread, struct syscall *call, uint64_t event)
{
	const struct side in = side_of(call->args[0]), out = side_of(call->args[1]);

	(void)thread, (void)event;
	if (call->args[3] & ~SPLICES)
		return -EINVAL;
	return call->args[2] ? check_sides(&in, &out) : 0;
}

/* A pipe takes nothing of nothing. */
static int64_t send_from_event(const struct side *out, uint64_t size)
{
	return out->is_pipe && !size ? 0 : -EINVAL;
}

/* That it cannot be written to is found when there is something to write; but only of files is
 * it known whether there is. */
static int64_t send_to_event(uint64_t fd, int64_t place, uint64_t size)
{
	struct stat file;
	int64_t result;
	char first;

	if (place < 0)
		return -EINVAL;
	if (!size)
		return 0;
	if (sys(__NR_fstat, fd, &file) || !(S_ISREG(file.st_mode) || S_ISBLK(file.st_mode)))
		return -EINVAL;
	result = sys(__NR_pread64, fd, &first, sizeof(first), place);
	return result > 0 ? -EINVAL : result;
}

static int64_t event_sendfile(struct thread *thread, struct syscall *call, uint64_t event)
{
	const struct side in = side_of(call->args[1]), out = side_of(call->args[0]);
	int64_t place = 0;

	(void)thread, (void)event;
	if (call->args[2] && copy_in(&place, call->args[2], sizeof(place)))
		return -EFAULT;
	if (is_without(&in, O_WRONLY))
		return -EBADF;
	if (call->args[2] && (in.is_pipe || event_of_fd(call->args[1])))
		return -ESPIPE;
	if (is_without(&out, O_RDONLY))
		return -EBADF;
	if (event_of_fd(call->args[1]))
		return send_from_event(&out, call->args[3]);
	if (!call->args[2])
		place = sys(__NR_lseek, call->args[1], 0, SEEK_CUR); /* none: it has no places */
	return send_to_event(call->args[1], place, call->args[3]);
}

static int64_t event_vmsplice(struct thread *thread, struct syscall *call, uint64_t event)
{
	int64_t any;

	(void)thread, (void)event;
	if (call->args[3] & ~SPLICES)
		return -EINVAL;
	any = check_vectors(call->args[1], call->args[2]);
	return any > 0 ? -EBADF : any;
}

static int64_t event_lseek(struct thread *thread, struct syscall *call, uint64_t event)
{
	(void)thread, (void)event;
	return (uint32_t)call->args[2] > SEEK_MAX ? -EINVAL : -ESPIPE;
}

/* What is wrong without regard to the file comes first; after that a pipe has another error. */
static int64_t event_fallocate(struct thread *thread, struct syscall *call, uint64_t event)
{
	const int64_t result = syscall_pass(thread, call);

	(void)event;
	return result == -EBADF || result == -ESPIPE ? -ENODEV : result;
}

static int64_t event_pwritev2(struct thread *thread, struct syscall *call, uint64_t event)
{
	if (call->args[3] == UINT64_MAX)
		return -EINVAL;
	return event_has_no_place(thread, call, event);
}

/* It may be told what nobody heeds. */
static int64_t event_advised(struct thread *thread, struct syscall *call, uint64_t event)
{
	(void)thread, (void)event;
	return (int64_t)call->args[2] < 0 || (int)call->args[3] < 0 ||
			       (int)call->args[3] > POSIX_FADV_NOREUSE
		       ? -EINVAL
		       : 0;
}

/* ---- what it looks like ---- */

/* With the struct to be filled in at argument @at. */
static int64_t stat_event(struct thread *thread, struct syscall *call, unsigned int at)
{
	struct syscall changed = *call;
	struct stat file;

	changed.args[at] = (uint64_t)&file;
	int64_t result = syscall_pass(thread, &changed);
	if (result)
		return result;
	file.st_mode = S_IRUSR | S_IWUSR;
	return copy_out(call->args[at], &file, sizeof(file));
}

static int64_t event_fstat(struct thread *thread, struct syscall *call, uint64_t event)
{
	(void)event;
	return stat_event(thread, call, 1);
}

/*
 * How C libraries make fstat: an empty path, or none at all from Linux 6.11 on. With any other an
 * event is no folder.
 */
static bool path_is_empty(const struct syscall *call, uint64_t flags)
{
	char path[1];

	return flags & AT_EMPTY_PATH && (!call->args[1] || !copy_string_in(path, call->args[1], 1));
}

static int64_t event_fstatat(struct thread *thread, struct syscall *call, uint64_t event)
{
	(void)event;
	return path_is_empty(call, call->args[3]) ? stat_event(thread, call, 2) : EVENT_CALL_OTHER;
}

static int64_t event_statx(struct thread *thread, struct syscall *call, uint64_t event)
{
	struct syscall changed = *call;
	struct statx file;

	(void)event;
	if (!path_is_empty(call, call->args[2]))
		return EVENT_CALL_OTHER;
	changed.args[4] = (uint64_t)&file;
	int64_t result = syscall_pass(thread, &changed);
	if (result)
		return result;
	file.stx_mode = S_IRUSR | S_IWUSR;
	return copy_out(call->args[4], &file, sizeof(file));
}

/* As of all that has no file system. */
static int64_t event_fstatfs(struct thread *thread, struct syscall *call, uint64_t event)
{
	struct syscall changed = *call;
	struct statfs of;
	int64_t result;

	(void)event;
	changed.args[1] = (uint64_t)&of;
	result = syscall_pass(thread, &changed);
	if (result)
		return result;
	of.f_type = ANON_INODE_FS_MAGIC;
	return copy_out(call->args[1], &of, sizeof(of));
}

/* Whether a path that begins at the event is the event itself, and no other file. */
static bool is_itself(uint64_t path)
{
	char first;

	return !path || (!copy_in(&first, path, sizeof(first)) && !first);
}

/* As of utimensat(2), of which only libc's headers tell. */
enum { UTIME_OMIT = (1 << 30) - 2 };

static bool sets_none(uint64_t times)
{
	struct __kernel_timespec set[2];

	return times && !copy_in(set, times, sizeof(set)) && set[0].tv_nsec == UTIME_OMIT &&
	       set[1].tv_nsec == UTIME_OMIT;
}

/* Its pipe would have them. */
static int64_t event_has_no_times(struct thread *thread, struct syscall *call, uint64_t event)
{
	const int64_t result = syscall_pass(thread, call);

	(void)event;
	if (result || !is_itself(call->args[1]))
		return result;
	/* Then nobody looks at the file. */
	if ((uint32_t)call->number == __NR_utimensat && sets_none(call->args[2]))
		return 0;
	return -EOPNOTSUPP;
}

/* fchownat, fchmodat2: whose it is, and who may, cannot be changed. */
static int64_t event_has_no_owner(struct thread *thread, struct syscall *call, uint64_t event)
{
	const bool is_chmod = (uint32_t)call->number == __NR_fchmodat2;
	const uint64_t flags = (uint32_t)call->args[is_chmod ? 3 : 4];

	(void)event;
	if (flags & ~(uint64_t)(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) || !(flags & AT_EMPTY_PATH) ||
	    !call->args[1] || !is_itself(call->args[1]))
		return syscall_pass(thread, call);
	return -EOPNOTSUPP;
}

/* ---- closing ---- */

/*
 * Numbers that are about to be closed: as soon as they are, they may be other threads', who are not
 * to find what they were. closed() comes behind it for who has looked meanwhile.
 */
static uint64_t closing(uint32_t first, uint32_t last)
{
	event_fds_forget(first, last);
	return event_fds_now();
}

static void closed(uint32_t first, uint32_t last, uint64_t before)
{
	event_fds_forget(first, last);
	event_passed_closed(first, last, before);
}

static int64_t event_close(struct thread *thread, struct syscall *call, uint64_t event)
{
	const uint32_t fd = (uint32_t)call->args[0];
	const uint64_t before = closing(fd, fd);
	const int64_t result = syscall_pass(thread, call);

	(void)event;
	if (result == SYSCALL_NOT_MADE)
		return result;
	closed(fd, fd, before);
	control_settle();
	return result;
}

/* Of what is none of ours: perhaps the kernel's. */
static int64_t close_other(struct thread *thread, struct syscall *call)
{
	const uint32_t fd = (uint32_t)call->args[0];
	const uint64_t before = closing(fd, fd);
	const int64_t result = syscall_pass(thread, call);

	if (result != SYSCALL_NOT_MADE)
		closed(fd, fd, before);
	return result;
}

/* dup2 and dup3, over any descriptor. */
static int64_t dup_over(struct thread *thread, struct syscall *call)
{
	const uint32_t to = (uint32_t)call->args[1];
	const uint64_t event = event_of_fd(to);
	uint64_t before;
	int64_t result;

	if (to == (uint32_t)call->args[0])
		return syscall_pass(thread, call);
	before = closing(to, to);
	result = syscall_pass(thread, call);
	if (result < 0)
		return result;
	closed(to, to, before);
	if (event)
		control_settle();
	return result;
}

static int64_t close_many(struct thread *thread, struct syscall *call)
{
	const uint32_t first = (uint32_t)call->args[0], last = (uint32_t)call->args[1];
	const uint64_t before = closing(first, last);
	const int64_t result = sys_close_range(thread, call);

	if (result || call->args[2] & CLOSE_RANGE_CLOEXEC)
		return result;
	closed(first, last, before);
	if (core_nr_events())
		control_settle();
	return result;
}

/* ---- which ---- */

static const struct concerned {
	bool maps;		/* changes the memory map, in which events may be */
	uint8_t at;		/* the argument that is a descriptor, */
	uint8_t or_at;		/* and another one; 0: there is none */
	event_handler *handler; /* and what is done where that is an event, */
	uint8_t error;		/* or how it fails */
	syscall_handler *whole; /* of calls that find descriptors of events in other ways */
} calls[] = {
	[__NR_bpf] = {.whole = event_bpf},
	[__NR_close] = {.handler = event_close},
	[__NR_close_range] = {.whole = close_many},
	[__NR_dup2] = {.whole = dup_over},
	[__NR_dup3] = {.whole = dup_over},
	[__NR_epoll_ctl] = {.whole = event_epoll_ctl},
	[__NR_epoll_pwait] = {.whole = event_epoll_wait},
	[__NR_epoll_pwait2] = {.whole = event_epoll_wait},
	[__NR_epoll_wait] = {.whole = event_epoll_wait},
	[__NR_fadvise64] = {.handler = event_advised},
	[__NR_fallocate] = {.handler = event_fallocate},
	[__NR_fchmod] = {.error = EOPNOTSUPP},
	[__NR_fchmodat2] = {.handler = event_has_no_owner},
	[__NR_fchown] = {.error = EOPNOTSUPP},
	[__NR_fchownat] = {.handler = event_has_no_owner},
	[__NR_fcntl] = {.handler = event_fcntl},
	[__NR_fdatasync] = {.error = EINVAL},
	[__NR_fstat] = {.handler = event_fstat},
	[__NR_fstatfs] = {.handler = event_fstatfs},
	[__NR_fsync] = {.error = EINVAL},
	[__NR_ftruncate] = {.error = EINVAL},
	[__NR_futimesat] = {.handler = event_has_no_times},
	[__NR_ioctl] = {.handler = event_ioctl},
	[__NR_lseek] = {.handler = event_lseek},
	[__NR_mmap] = {.handler = event_mmap, .at = 4, .maps = true},
	[__NR_mprotect] = {.maps = true},
	[__NR_pkey_mprotect] = {.maps = true},
	[__NR_mremap] = {.maps = true},
	[__NR_munmap] = {.maps = true},
	[__NR_madvise] = {.maps = true},
	[__NR_msync] = {.maps = true},
	[__NR_remap_file_pages] = {.maps = true},
	[__NR_newfstatat] = {.handler = event_fstatat},
	[__NR_poll] = {.whole = event_poll},
	[__NR_ppoll] = {.whole = event_poll},
	[__NR_pread64] = {.handler = event_has_no_place},
	[__NR_preadv] = {.handler = event_has_no_place},
	[__NR_preadv2] = {.handler = event_preadv2},
	[__NR_pselect6] = {.whole = event_select},
	[__NR_pwrite64] = {.handler = event_has_no_place},
	[__NR_pwritev] = {.handler = event_has_no_place},
	[__NR_pwritev2] = {.handler = event_pwritev2},
	[__NR_read] = {.handler = event_read},
	[__NR_readv] = {.handler = event_readv},
	[__NR_select] = {.whole = event_select},
	[__NR_sendfile] = {.handler = event_sendfile, .or_at = 1},
	[__NR_splice] = {.handler = event_splice, .or_at = 2},
	[__NR_statx] = {.handler = event_statx},
	[__NR_tee] = {.handler = event_tee, .or_at = 1},
	[__NR_utimensat] = {.handler = event_has_no_times},
	[__NR_vmsplice] = {.handler = event_vmsplice},
	[__NR_write] = {.error = EINVAL},
	[__NR_writev] = {.error = EINVAL},
};

/* ---- in a hurry ---- */

bool event_call_quick(struct thread *thread)
{
	uint64_t *const gpr = thread->regs.gpr;
	event_switch *what = NULL;
	uint64_t event;

	switch ((uint32_t)gpr[REG_RAX]) {
	case __NR_ioctl:
		what = event_ioctl_switch((uint32_t)gpr[REG_RSI]);
		if (!what)
			return false;
		break;
	case __NR_read:
		break;
	default:
		return false;
	}
	event = event_known(gpr[REG_RDI]);
	if (!event)
		return false;
	tasks_update(thread);
	gpr[REG_RAX] = (uint64_t)(what ? what(event, gpr[REG_RDX] & PERF_IOC_FLAG_GROUP)
				       : read_event(event, gpr[REG_RSI], gpr[REG_RDX]));
	tasks_update(thread);
	return true;
}

static bool any;

bool event_calls_any(void)
{
	if (!any && (core_nr_events() || virtual_any() || event_passed_any()))
		any = true;
	return any;
}

/* Whether it may be about events, by its number alone; NULL: it is not. */
static const struct concerned *concerned(uint32_t number)
{
	const struct concerned *found = &calls[number];

	if (number >= sizeof(calls) / sizeof(*calls))
		return NULL;
	return found->handler || found->error || found->whole || found->maps ? found : NULL;
}

static int64_t call_on_descriptor(struct thread *thread, struct syscall *call,
				  const struct concerned *how)
{
	uint64_t event;

	if (how->whole)
		return how->whole(thread, call);
	if (!how->handler && !how->error)
		return EVENT_CALL_OTHER;
	event = event_of_fd(call->args[how->at]);
	if (!event && how->or_at)
		event = event_of_fd(call->args[how->or_at]);
	if (event) {
		/* What has happened so far comes before the call. */
		tasks_update(thread);
		return how->error ? -how->error : how->handler(thread, call, event);
	}
	switch ((uint32_t)call->number) {
	case __NR_close:
		return close_other(thread, call);
	case __NR_ioctl:
		return event_passed_ioctl(thread, call);
	case __NR_mmap:
		return event_passed_mmap(thread, call);
	default:
		return EVENT_CALL_OTHER;
	}
}

static int64_t call_of(struct thread *thread, struct syscall *call, const struct concerned *how)
{
	int64_t result = how->maps ? event_map_call(thread, call) : EVENT_CALL_OTHER;

	if (result == EVENT_MAP_VACATED) {
		result = call_on_descriptor(thread, call, how);
		if (result == EVENT_CALL_OTHER)
			result = sys_mmap(thread, call);
		return event_map_release(thread, call, result);
	}
	return result == EVENT_CALL_OTHER ? call_on_descriptor(thread, call, how) : result;
}

int64_t event_call(struct thread *thread, struct syscall *call)
{
	const struct concerned *how = concerned((uint32_t)call->number);

	if (virtual_any()) {
		int64_t result = virtual_fd_call(thread, call);

		if (result != VIRTUAL_OTHER)
			return result;
	}
	return how ? call_of(thread, call, how) : EVENT_CALL_OTHER;
}
