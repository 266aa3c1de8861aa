// SPDX-License-Identifier: MIT
#include "runtime/linux/files.h"

#include <asm/errno.h>
#include <linux/fcntl.h>
#include <linux/inotify.h>

#include "abi/handover.h"
#include "runtime/boot/handover.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/listing.h"
#include "runtime/linux/maps_files.h"
#include "runtime/linux/self_comm.h"
#include "runtime/linux/self_memory.h"
#include "runtime/linux/syscalls.h"
#include "runtime/linux/virtual.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* Whether a path could be such a link at all: most are not, and cost no system call. */
static bool ends_in_exe(const char *path, size_t length)
{
	return length >= 3 && !memcmp(path + length - 3, "exe", 3) &&
	       (length == 3 || path[length - 4] == '/');
}

bool files_lead_to_runtime(int64_t dirfd, const char *path)
{
	char fd[32], ours[PATH_MAX], link[PATH_MAX];
	int64_t length, n;

	n = sys(__NR_readlinkat, dirfd, path, link, sizeof(link));
	if (n <= 0)
		return false;
	format(fd, sizeof(fd), "/proc/self/fd/%d", (int64_t)descriptors.runtime);
	length = sys(__NR_readlinkat, AT_FDCWD, fd, ours, sizeof(ours));
	return length == n && !memcmp(link, ours, (size_t)n);
}

/* Enough of the handover for the numbers in it. */
enum { HANDED = 128 };

/* The string of the environment that is handed over, which is the last one of its name. */
static bool read_handover(int64_t fd, char handed[HANDED])
{
	static const char name[] = HANDOVER_NAME;
	const size_t from = sizeof(name) - 1;
	char text[1024];
	size_t at = 0; /* within a string, as long as it may be the one */
	bool may = true, found = false;

	for (;;) {
		int64_t n = sys(__NR_read, fd, text, sizeof(text));

		if (n <= 0)
			return found;
		for (int64_t i = 0; i < n; i++) {
			if (may && at < from && text[i] != name[at])
				may = false;
			if (may && at >= from && at - from < HANDED - 1) {
				handed[at - from] = text[i];
				handed[at - from + 1] = '\0';
				found = true;
			}
			at++;
			if (!text[i])
				may = true, at = 0;
		}
	}
}

/*
 * Before an image is at work its program has the descriptor that the one before has handed over
 * (descriptors_settle()), and a tracer looks at it then. @path is of its environment. -1: none.
 */
static int handed_program(int64_t dirfd, const char *path)
{
	char handed[HANDED] = "";
	struct handover handover = {.descriptors.program = -1};
	int64_t fd = sys(__NR_openat, dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (!read_handover(fd, handed) || handover_read(&handover, handed))
		handover.descriptors.program = -1;
	sys(__NR_close, fd);
	return handover.descriptors.program;
}

bool files_program_link(int64_t dirfd, char path[PATH_MAX + 16])
{
	size_t length = strlen(path);
	int handed;

	if (!ends_in_exe(path, length) || !files_lead_to_runtime(dirfd, path))
		return false;
	char *name = path + length - 3, link[2];

	format(name, 16, "fd/%d", (int64_t)descriptors.program);
	if (sys(__NR_readlinkat, dirfd, path, link, sizeof(link)) != -ENOENT)
		return true;
	memcpy(name, "environ", sizeof("environ"));
	handed = handed_program(dirfd, path);
	format(name, 16, "fd/%d", (int64_t)(handed < 0 ? descriptors.program : handed));
	return true;
}

bool files_hidden(int64_t dirfd, const char *path)
{
	char folder[PATH_MAX];
	const char *name = strrchr(path, '/');
	uint64_t number;
	size_t length;

	name = name ? name + 1 : path;
	if (!listing_number(name, &number) || !descriptors_have(number))
		return false;
	length = (size_t)(name - path);
	memcpy(folder, path, length);
	memcpy(folder + length, ".", 2);
	int64_t fd = sys(__NR_openat, dirfd, folder, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool hidden = listing_of_descriptors((uint64_t)fd);
	sys(__NR_close, fd);
	return hidden;
}

/* Whether the last part of the path, when it is a symbolic link, is followed. */
enum follow { ALWAYS = 1, NEVER, UNLESS_FLAG, IF_FLAG };

/* Where a call has its path, the folder that this is relative to, and its flags. */
struct path_call {
	uint8_t follow; /* enum follow; 0: it has no path */
	uint8_t path;
	uint8_t folder; /* an index, or none */
	uint8_t flags;
	uint32_t flag;
};

enum { NO_FOLDER = 6 };

#define PATH(follow_)                                                                              \
	{                                                                                          \
		.follow = follow_, .folder = NO_FOLDER                                             \
	}
#define AT(follow_)                                                                                \
	{                                                                                          \
		.follow = follow_, .path = 1                                                       \
	}
#define AT_FLAGS(at)                                                                               \
	{                                                                                          \
		.follow = UNLESS_FLAG, .path = 1, .flags = at, .flag = AT_SYMLINK_NOFOLLOW         \
	}
#define AT_FOLLOWS(at)                                                                             \
	{                                                                                          \
		.follow = IF_FLAG, .path = 1, .flags = at, .flag = AT_SYMLINK_FOLLOW               \
	}

static const struct path_call path_calls[] = {
	[__NR_access] = PATH(ALWAYS),
	[__NR_chmod] = PATH(ALWAYS),
	[__NR_chown] = PATH(ALWAYS),
	[__NR_creat] = PATH(ALWAYS),
	[__NR_faccessat] = AT(ALWAYS),
	[__NR_faccessat2] = AT_FLAGS(3),
	[__NR_fchmodat] = AT(ALWAYS),
	[__NR_fchownat] = AT_FLAGS(4),
	[__NR_futimesat] = AT(ALWAYS),
	[__NR_getxattr] = PATH(ALWAYS),
	[__NR_inotify_add_watch] = {.follow = UNLESS_FLAG,
				    .path = 1,
				    .folder = NO_FOLDER,
				    .flags = 2,
				    .flag = IN_DONT_FOLLOW},
	[__NR_lchown] = PATH(NEVER),
	[__NR_lgetxattr] = PATH(NEVER),
	[__NR_link] = PATH(NEVER),
	[__NR_linkat] = AT_FOLLOWS(4),
	[__NR_listxattr] = PATH(ALWAYS),
	[__NR_llistxattr] = PATH(NEVER),
	[__NR_lstat] = PATH(NEVER),
	[__NR_mount] = PATH(ALWAYS), /* what is bound elsewhere */
	[__NR_name_to_handle_at] = AT_FOLLOWS(4),
	[__NR_newfstatat] = AT_FLAGS(3),
	[__NR_open] = PATH(ALWAYS),
	[__NR_openat] = AT(ALWAYS),
	[__NR_openat2] = AT(ALWAYS),
	[__NR_open_tree] = AT_FLAGS(2),
	/* What these read is not the link that is asked for, but where it leads. */
	[__NR_readlink] = PATH(ALWAYS),
	[__NR_readlinkat] = AT(ALWAYS),
	[__NR_removexattr] = PATH(ALWAYS),
	[__NR_setxattr] = PATH(ALWAYS),
	[__NR_stat] = PATH(ALWAYS),
	[__NR_statfs] = PATH(ALWAYS),
	[__NR_statx] = AT_FLAGS(2),
	[__NR_truncate] = PATH(ALWAYS),
	[__NR_utime] = PATH(ALWAYS),
	[__NR_utimensat] = AT_FLAGS(3),
	[__NR_utimes] = PATH(ALWAYS),
};

bool files_takes_path(uint32_t number)
{
	return number < sizeof(path_calls) / sizeof(*path_calls) && path_calls[number].follow;
}

static bool follows(const struct path_call *how, const struct syscall *call)
{
	switch (how->follow) {
	case UNLESS_FLAG:
		return !(call->args[how->flags] & how->flag);
	case IF_FLAG:
		return call->args[how->flags] & how->flag;
	default:
		return how->follow == ALWAYS;
	}
}

/* The kernel opens no event by a path of its descriptor: what was opened was the pipe. */
static bool opened_event(const char *path, int64_t fd)
{
	const char *name = strrchr(path, '/');
	uint64_t number;

	return listing_number(name ? name + 1 : path, &number) && event_of_fd((uint64_t)fd);
}

static bool opens(uint32_t number)
{
	return number == __NR_open || number == __NR_openat || number == __NR_openat2;
}

/* AT_EMPTY_PATH: about its first argument. */
static bool is_of_descriptor(const struct syscall *call, const struct path_call *how)
{
	switch ((uint32_t)call->number) {
	case __NR_newfstatat:
	case __NR_statx:
		return call->args[how->flags] & AT_EMPTY_PATH;
	default:
		return false;
	}
}

int64_t sys_path(struct thread *thread, struct syscall *call)
{
	const struct path_call *how = &path_calls[(uint32_t)call->number];
	int64_t dirfd = how->folder == NO_FOLDER ? AT_FDCWD : (int)call->args[how->folder];
	char path[PATH_MAX + 16];
	int64_t length = copy_string_in(path, call->args[how->path], PATH_MAX), result;

	if (length <= 0 && maps_files_any() && is_of_descriptor(call, how) &&
	    maps_files_stat(call, &result))
		return result;
	if (length < 3 && (length <= 0 || dirfd != AT_FDCWD || !virtual_near_here()))
		return syscall_pass(thread, call);
	result = virtual_path_call(thread, call, dirfd, path, follows(how, call));
	if (result != VIRTUAL_OTHER)
		return result;
	if (files_hidden(dirfd, path))
		return -ENOENT;
	if (follows(how, call) && files_program_link(dirfd, path))
		call->args[how->path] = (uint64_t)path;
	result = syscall_pass(thread, call);
	if (result >= 0 && opens((uint32_t)call->number)) {
		if (opened_event(path, result)) {
			event_fds_forget((uint64_t)result, (uint64_t)result);
			sys(__NR_close, result);
			return -ENXIO;
		}
		self_memory_opened(path, result);
		self_comm_opened(path);
		if (maps_files_named(path, (size_t)length))
			maps_files_opened((int)result);
	}
	return result;
}
