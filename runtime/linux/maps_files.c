// SPDX-License-Identifier: MIT
#include "runtime/linux/maps_files.h"

#include <asm/errno.h>
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <linux/resource.h>
#include <linux/stat.h>

/* Behind <linux/fcntl.h>, with which <asm/statfs.h> is at odds otherwise. */
#include <asm/statfs.h>

#include "runtime/linux/confined.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/fork_locks.h"
#include "runtime/linux/listing.h"
#include "runtime/linux/maps_layout.h"
#include "runtime/linux/maps_view.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/syscalls.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* Open at a time, and read from their beginnings again. Of more each is what it was when it was
 * opened. */
enum { FILES = 16, PATH = 64 };

struct file {
	bool open;
	int fd;
	uint64_t device, inode; /* of the memfd: the number may be another file's by now */
	int pid;
	bool read;
	uint32_t changes; /* of the program's memory, by the time that it was written */
	char path[PATH];  /* in /proc */
};

static struct file files[FILES];
static unsigned int nr_open;
static uint32_t changes;
struct lock maps_files_lock = {.kind = LOCK_MAPS_FILES};

bool maps_files_named(const char *path, size_t length)
{
	return length >= 4 && !memcmp(path + length - 4, "maps", 4);
}

bool maps_files_any(void)
{
	return __atomic_load_n(&nr_open, __ATOMIC_RELAXED) && !confined();
}

/* ---- which file that is ---- */

static bool is_view(const char *name)
{
	return !strcmp(name, "maps") || !strcmp(name, "smaps") || !strcmp(name, "numa_maps");
}

/* Takes the last part off @path, and returns it. */
static const char *last_part(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return "";
	*slash = '\0';
	return slash + 1;
}

/* "/proc/PID/maps" and "/proc/PID/task/TID/maps"; 0: it is another file. */
static int process_of(const char *path)
{
	char rest[PATH];
	uint64_t pid, thread;

	memcpy(rest, path, sizeof(rest));
	if (!is_view(last_part(rest)) || !listing_number(last_part(rest), &thread))
		return 0;
	pid = thread;
	if (!strcmp(last_part(rest), "task") && !listing_number(last_part(rest), &pid))
		return 0;
	return (int)pid;
}

/* Which process's file of maps @fd is, and where; 0: it is another file. */
static int read_path(int fd, char path[PATH])
{
	struct statfs fs;
	char link[32];
	int64_t n;

	if (sys(__NR_fstatfs, fd, &fs) || fs.f_type != PROC_SUPER_MAGIC)
		return 0;
	format(link, sizeof(link), "/proc/self/fd/%d", (int64_t)fd);
	n = sys(__NR_readlink, link, path, PATH - 1);
	if (n <= 0)
		return 0;
	path[n] = '\0';
	return process_of(path);
}

/* ---- what is in it ---- */

struct out {
	int fd;
	uint64_t at, max;
	size_t filled;
	bool failed;
	char buffer[4096];
};

static void flush(struct out *out)
{
	/* Beyond its limit on the size of files the process would get a signal. */
	if (out->at + out->filled > out->max ||
	    sys(__NR_pwrite64, out->fd, out->buffer, out->filled, out->at) != (int64_t)out->filled)
		out->failed = true;
	out->at += out->filled;
	out->filled = 0;
}

static void put(void *to, const char *text, size_t size)
{
	struct out *out = to;

	while (size && !out->failed) {
		const size_t room = sizeof(out->buffer) - out->filled;
		const size_t n = size < room ? size : room;

		memcpy(out->buffer + out->filled, text, n);
		out->filled += n;
		text += n;
		size -= n;
		if (out->filled == sizeof(out->buffer))
			flush(out);
	}
}

/* Each line of @from to the view; false: it cannot be read, or understood. */
static bool view_lines(struct maps_view *view, int from)
{
	char text[MAPS_LINE];
	size_t filled = 0;
	int64_t n;

	while ((n = sys(__NR_read, from, text + filled, sizeof(text) - filled)) > 0) {
		size_t start = 0;

		filled += (size_t)n;
		for (size_t at = filled - (size_t)n; at < filled; at++) {
			if (text[at] != '\n')
				continue;
			text[at] = '\0';
			if (!maps_view_line(view, text + start))
				return false;
			start = at + 1;
		}
		filled -= start;
		memmove(text, text + start, filled);
		if (filled == sizeof(text))
			return false;
	}
	return !n && !filled;
}

static uint64_t limit_on_size(void)
{
	struct {
		uint64_t now, max;
	} limit = {UINT64_MAX, UINT64_MAX};

	sys(__NR_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit);
	return limit.now;
}

/* Once; then whether it goes with what was known when it began. */
static bool write_once(const struct maps_known *known, struct out *out, int from)
{
	struct maps_view view;

	maps_view_begin(&view, &known->layout, put, out);
	if (!view_lines(&view, from))
		out->failed = true;
	maps_view_end(&view);
	if (out->filled)
		flush(out);
	return maps_known_still(known);
}

/* Writes to @to what @from has, which is what the kernel has opened. */
static bool write_view(int pid, int to, int from)
{
	enum { TRIES = 8 };
	const uint64_t max = limit_on_size();
	struct out out;
	bool whole = false;

	for (unsigned int tries = 0; tries < TRIES && !whole; tries++) {
		struct maps_known known;

		if (!maps_known_of(pid, &known))
			return false;
		out.fd = to;
		out.at = out.filled = 0;
		out.max = max;
		out.failed = false;
		whole = write_once(&known, &out, from) || out.failed;
		maps_known_free(&known);
		sys(__NR_lseek, from, 0, SEEK_SET);
	}
	return !out.failed && !sys(__NR_ftruncate, to, out.at);
}

/* ---- its descriptors ---- */

/* Memfds are on a device of their own. */
static bool is_memfd_of(int fd, const struct file *file)
{
	struct stat found;

	return !sys(__NR_fstat, fd, &found) && found.st_dev == file->device &&
	       found.st_ino == file->inode;
}

static int64_t open_again(int fd, uint64_t flags)
{
	char link[32];

	format(link, sizeof(link), "/proc/self/fd/%d", (int64_t)fd);
	return sys(__NR_openat, AT_FDCWD, link, flags | O_CLOEXEC);
}

/* Under the number @fd, opened with @how, comes what @memory has, to be read only. */
static bool replace(int fd, int64_t how, int memory)
{
	const int64_t flags = sys(__NR_fcntl, fd, F_GETFD);
	const int64_t read_only =
		open_again(memory, O_RDONLY | (how & (O_APPEND | O_NONBLOCK | O_NOATIME)));
	const bool done = read_only >= 0 &&
			  sys(__NR_dup3, read_only, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) == fd;

	if (read_only >= 0)
		sys(__NR_close, read_only);
	return done;
}

static void drop(struct file *file)
{
	file->open = false;
	__atomic_sub_fetch(&nr_open, 1, __ATOMIC_RELAXED);
}

/*
 * Without the lock, which is held while a view is written: nobody else who reads is to wait for
 * that. What is not there yet, its number nobody has been told.
 */
static bool may_be(int fd)
{
	for (unsigned int i = 0; i < FILES; i++)
		if (__atomic_load_n(&files[i].open, __ATOMIC_RELAXED) &&
		    __atomic_load_n(&files[i].fd, __ATOMIC_RELAXED) == fd)
			return true;
	return false;
}

/* With the lock held. */
static struct file *with_number(int fd)
{
	for (unsigned int i = 0; i < FILES; i++)
		if (files[i].open && files[i].fd == fd)
			return &files[i];
	return NULL;
}

/* Who closes one does not say so. */
static void drop_closed(void)
{
	for (unsigned int i = 0; i < FILES; i++)
		if (files[i].open && !is_memfd_of(files[i].fd, &files[i]))
			drop(&files[i]);
}

/* Likewise, as all below; NULL: there are too many. */
static struct file *place_for(int fd)
{
	struct file *file = with_number(fd);

	if (file)
		return file;
	if (nr_open == FILES)
		drop_closed();
	for (unsigned int i = 0; i < FILES && !file; i++)
		if (!files[i].open)
			file = &files[i];
	if (file)
		__atomic_add_fetch(&nr_open, 1, __ATOMIC_RELAXED);
	return file;
}

static void remember(int fd, int pid, const char *path, uint32_t when)
{
	struct stat memfd;
	struct file *file;

	if (sys(__NR_fstat, fd, &memfd))
		return;
	file = place_for(fd);
	if (!file)
		return;
	*file = (struct file){
		.open = true,
		.fd = fd,
		.device = memfd.st_dev,
		.inode = memfd.st_ino,
		.pid = pid,
		.changes = when,
	};
	memcpy(file->path, path, sizeof(file->path));
}

void maps_files_opened(int fd)
{
	const int64_t flags = sys(__NR_fcntl, fd, F_GETFL);
	const uint32_t when = __atomic_load_n(&changes, __ATOMIC_RELAXED);
	char path[PATH];
	int memory, pid;

	if (confined() || flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
		return;
	pid = read_path(fd, path);
	if (!pid)
		return;
	/* From here on: a child of fork(2) has no descriptor more. */
	lock_take(&maps_files_lock);
	memory = (int)sys(__NR_memfd_create, "maps", MFD_CLOEXEC);
	if (memory >= 0 && write_view(pid, memory, fd) && replace(fd, flags, memory))
		remember(fd, pid, path, when);
	if (memory >= 0)
		sys(__NR_close, memory);
	lock_give(&maps_files_lock);
}

/* The one that @fd is. */
static struct file *find(int fd)
{
	struct file *file = with_number(fd);

	if (file && !is_memfd_of(fd, file)) {
		drop(file);
		file = NULL;
	}
	return file;
}

/* Whether what was written when it was opened is what the kernel would say now. What pages there
 * are changes without calls. */
static bool is_new(const struct file *file)
{
	return !file->read && file->changes == __atomic_load_n(&changes, __ATOMIC_RELAXED) &&
	       !strcmp(strrchr(file->path, '/'), "/maps") && maps_is_own(file->pid);
}

/* Whether the process of what has been opened so has ended: what is left of it has no memory. */
static bool has_ended(int64_t from)
{
	char byte;

	if (from < 0)
		return from == -ENOENT;
	return !sys(__NR_pread64, from, &byte, 1, 0);
}

static void write_again(const struct file *file)
{
	const int64_t from = sys(__NR_openat, AT_FDCWD, file->path, O_RDONLY | O_CLOEXEC);
	const int64_t to = open_again(file->fd, O_RDWR);

	/* Another thread may have given the number to another file. */
	if (to >= 0 && is_memfd_of((int)to, file)) {
		if (has_ended(from))
			sys(__NR_ftruncate, to, 0);
		else if (from >= 0)
			write_view(file->pid, (int)to, (int)from);
	}
	if (from >= 0)
		sys(__NR_close, from);
	if (to >= 0)
		sys(__NR_close, to);
}

void maps_files_read(int fd, uint64_t offset)
{
	int64_t from = (int64_t)offset;
	struct file *file;

	if (!may_be(fd))
		return;
	lock_take(&maps_files_lock);
	file = with_number(fd);
	if (file && offset == MAPS_FILES_POSITION)
		from = sys(__NR_lseek, fd, 0, SEEK_CUR);
	/* What has no position is another file by now. */
	file = from > 0 ? NULL : find(fd);
	if (file && !is_new(file))
		write_again(file);
	if (file)
		file->read = true;
	lock_give(&maps_files_lock);
}

static bool find_path(int fd, char path[PATH])
{
	const struct file *file;

	if (!may_be(fd))
		return false;
	lock_take(&maps_files_lock);
	file = find(fd);
	if (file)
		memcpy(path, file->path, PATH);
	lock_give(&maps_files_lock);
	return file;
}

static void copied(int fd, int to)
{
	struct file *file, *copy;

	if (!may_be(fd))
		return;
	lock_take(&maps_files_lock);
	file = find(fd);
	copy = file ? place_for(to) : NULL;
	if (copy) {
		*copy = *file;
		copy->fd = to;
	}
	lock_give(&maps_files_lock);
}

static bool is_copying(const struct syscall *call)
{
	return (uint32_t)call->number != __NR_fcntl || call->args[1] == F_DUPFD ||
	       call->args[1] == F_DUPFD_CLOEXEC;
}

void maps_files_called(const struct syscall *call, int64_t result)
{
	switch ((uint32_t)call->number) {
	case __NR_brk:
	case __NR_madvise:
	case __NR_mbind:
	case __NR_mlock:
	case __NR_mlock2:
	case __NR_mlockall:
	case __NR_mmap:
	case __NR_mprotect:
	case __NR_mremap:
	case __NR_munlock:
	case __NR_munlockall:
	case __NR_munmap:
	case __NR_pkey_mprotect:
	case __NR_prctl:
	case __NR_remap_file_pages:
	case __NR_shmat:
	case __NR_shmdt:
		__atomic_add_fetch(&changes, 1, __ATOMIC_RELAXED);
		break;
	case __NR_dup:
	case __NR_dup2:
	case __NR_dup3:
	case __NR_fcntl:
		if (result >= 0 && maps_files_any() && is_copying(call))
			copied((int)call->args[0], (int)result);
		break;
	default:
		break;
	}
}

/* Of what only needs to be looked up: where to, and of what size. */
static int64_t answer(uint64_t to, const void *what, size_t size, int64_t error)
{
	if (error)
		return error;
	memory_unwatch(to, size);
	return copy_out(to, what, size);
}

bool maps_files_stat(const struct syscall *call, int64_t *result)
{
	char path[PATH];
	struct stat file;
	struct statx more;

	if (!find_path((int)call->args[0], path))
		return false;
	switch ((uint32_t)call->number) {
	case __NR_fstat:
	case __NR_newfstatat:
		*result = sys(__NR_newfstatat, AT_FDCWD, path, &file, 0);
		*result = answer(call->args[(uint32_t)call->number == __NR_fstat ? 1 : 2], &file,
				 sizeof(file), *result);
		break;
	case __NR_statx:
		*result = sys(__NR_statx, AT_FDCWD, path, call->args[2] & ~(uint64_t)AT_EMPTY_PATH,
			      call->args[3], &more);
		*result = answer(call->args[4], &more, sizeof(more), *result);
		break;
	default:
		return false;
	}
	/* Its process is gone. */
	return *result != -ENOENT;
}

/* ---- calls that have no other handler ---- */

int64_t sys_fstat(struct thread *thread, struct syscall *call)
{
	int64_t result;

	if (maps_files_any() && maps_files_stat(call, &result))
		return result;
	return syscall_pass(thread, call);
}

/* It has no end that could be known before it is read. */
int64_t sys_lseek(struct thread *thread, struct syscall *call)
{
	char path[PATH];

	if (call->args[2] > SEEK_CUR && maps_files_any() && find_path((int)call->args[0], path))
		return -EINVAL;
	return syscall_pass(thread, call);
}

int64_t sys_read_vector(struct thread *thread, struct syscall *call)
{
	if (maps_files_any())
		maps_files_read((int)call->args[0], (uint32_t)call->number == __NR_readv
							    ? MAPS_FILES_POSITION
							    : call->args[3]);
	return syscall_pass(thread, call);
}
