// SPDX-License-Identifier: MIT
/*
 * A file of ours is opened as a memfd that nobody can write to. A folder is some folder of the
 * kernel's, which is listed in another way as long as this process knows its number.
 */
#include <asm/errno.h>
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <linux/openat2.h>
#include <linux/stat.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/files.h"
#include "runtime/linux/virtual.h"
#include "runtime/lock.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

enum {
	TEXT = 256,
	OPEN = 64,	  /* folders at a time */
	FILE_SIZE = 4096, /* as sysfs has it */
	INODES = 0x74610000,
	SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
};

/* ---- open folders ---- */

struct folder {
	int fd;
	bool open;
	bool kernels_done; /* VIRTUAL_DEVICES: the kernel's entries have been listed */
	enum virtual_folder folder;
	unsigned int next; /* entry to be listed */
};

static struct folder open_folders[OPEN];
static struct lock folders_lock;
static bool any;

bool virtual_any(void)
{
	return any;
}

/* With the lock held; NULL if @fd is no folder of ours. */
static struct folder *find(int fd)
{
	for (unsigned int i = 0; i < OPEN; i++)
		if (open_folders[i].open && open_folders[i].fd == fd)
			return &open_folders[i];
	return NULL;
}

static void remember(int fd, enum virtual_folder folder)
{
	struct folder *place;

	lock_take(&folders_lock);
	place = find(fd);
	for (unsigned int i = 0; i < OPEN && !place; i++)
		if (!open_folders[i].open)
			place = &open_folders[i];
	if (place)
		*place = (struct folder){.fd = fd, .open = true, .folder = folder};
	any = true;
	lock_give(&folders_lock);
}

static bool folder_of(int fd, enum virtual_folder *folder)
{
	const struct folder *found;

	if (!any)
		return false;
	lock_take(&folders_lock);
	found = find(fd);
	if (found)
		*folder = found->folder;
	lock_give(&folders_lock);
	return found;
}

/* ---- opening ---- */

/* What stands for a folder: the same one of the kernel's if it is there, or any. */
static int64_t open_folder(enum virtual_folder folder, uint64_t flags)
{
	int64_t fd;

	flags = (flags & (O_CLOEXEC | O_PATH)) | O_DIRECTORY | O_RDONLY;
	fd = sys(__NR_openat, AT_FDCWD, virtual_path(folder), flags);
	if (fd < 0)
		fd = sys(__NR_openat, AT_FDCWD, "/", flags);
	if (fd >= 0)
		remember((int)fd, folder);
	return fd;
}

static int64_t open_file(const struct virtual_node *node, uint64_t flags)
{
	char text[TEXT];
	size_t length = virtual_text(node, text, sizeof(text));
	int64_t fd;

	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	if ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC)
		return -EACCES;
	fd = sys(__NR_memfd_create, "tally",
		 MFD_ALLOW_SEALING | (flags & O_CLOEXEC ? MFD_CLOEXEC : 0));
	if (fd < 0)
		return fd;
	sys(__NR_pwrite64, fd, text, length, 0);
	sys(__NR_fcntl, fd, F_ADD_SEALS, SEALS);
	return fd;
}

static int64_t open_node(const struct virtual_node *node, uint64_t flags)
{
	if (node->kind == VIRTUAL_LINK)
		return -ELOOP; /* O_NOFOLLOW */
	if (node->kind == VIRTUAL_FILE)
		return open_file(node, flags);
	if ((flags & O_ACCMODE) != O_RDONLY)
		return -EISDIR;
	return open_folder(node->folder, flags);
}

static bool open_flags(const struct syscall *call, uint64_t *flags)
{
	switch ((uint32_t)call->number) {
	case __NR_open:
		*flags = call->args[1];
		return true;
	case __NR_openat:
		*flags = call->args[2];
		return true;
	case __NR_openat2:
		return !copy_in(flags, call->args[2] + offsetof(struct open_how, flags),
				sizeof(*flags));
	}
	return false;
}

/* ---- looking ---- */

static uint32_t mode_of(const struct virtual_node *node)
{
	switch (node->kind) {
	case VIRTUAL_FOLDER:
		return S_IFDIR | 0755;
	case VIRTUAL_LINK:
		return S_IFLNK | 0777;
	default:
		return S_IFREG | 0444;
	}
}

static uint64_t inode_of(const struct virtual_node *node)
{
	return INODES + node->folder * 0x100u + node->index + (node->kind != VIRTUAL_FOLDER);
}

static int64_t stat_node(const struct virtual_node *node, uint64_t to)
{
	const struct stat file = {
		.st_ino = inode_of(node),
		.st_nlink = 1,
		.st_mode = mode_of(node),
		.st_size = node->kind == VIRTUAL_FILE ? FILE_SIZE : 0,
		.st_blksize = FILE_SIZE,
	};

	return copy_out(to, &file, sizeof(file));
}

static int64_t statx_node(const struct virtual_node *node, uint64_t to)
{
	const struct statx file = {
		.stx_mask = STATX_BASIC_STATS,
		.stx_blksize = FILE_SIZE,
		.stx_nlink = 1,
		.stx_mode = (uint16_t)mode_of(node),
		.stx_ino = inode_of(node),
		.stx_size = node->kind == VIRTUAL_FILE ? FILE_SIZE : 0,
	};

	return copy_out(to, &file, sizeof(file));
}

static int64_t read_link(const struct virtual_node *node, uint64_t to, uint64_t size)
{
	char text[TEXT];
	size_t length;

	if (node->kind != VIRTUAL_LINK || (int)size <= 0)
		return -EINVAL;
	length = virtual_text(node, text, sizeof(text));
	if (length > size)
		length = size;
	return copy_out(to, text, length) ? -EFAULT : (int64_t)length;
}

static int64_t access_node(const struct virtual_node *node, uint64_t mode)
{
	enum { X = 1, W = 2 };

	if (mode & W || (mode & X && node->kind == VIRTUAL_FILE))
		return -EACCES;
	return 0;
}

static int64_t node_call(struct syscall *call, const struct virtual_node *node)
{
	uint64_t flags;

	switch ((uint32_t)call->number) {
	case __NR_open:
	case __NR_openat:
	case __NR_openat2:
		return open_flags(call, &flags) ? open_node(node, flags) : -EFAULT;
	case __NR_stat:
	case __NR_lstat:
		return stat_node(node, call->args[1]);
	case __NR_newfstatat:
		return stat_node(node, call->args[2]);
	case __NR_statx:
		return statx_node(node, call->args[4]);
	case __NR_access:
		return access_node(node, call->args[1]);
	case __NR_faccessat:
	case __NR_faccessat2:
		return access_node(node, call->args[2]);
	case __NR_readlink:
		return read_link(node, call->args[1], call->args[2]);
	case __NR_readlinkat:
		return read_link(node, call->args[2], call->args[3]);
	case __NR_getxattr:
	case __NR_lgetxattr:
		return -ENODATA;
	case __NR_listxattr:
	case __NR_llistxattr:
		return 0;
	default:
		return VIRTUAL_OTHER;
	}
}

int64_t virtual_path_call(struct thread *thread, struct syscall *call, int64_t dirfd,
			  const char *path, bool follow)
{
	const uint32_t number = (uint32_t)call->number;
	char absolute[PATH_MAX + 64];
	enum virtual_folder folder;
	struct virtual_node node;
	uint64_t flags;

	(void)thread;
	if (number == __NR_readlink || number == __NR_readlinkat ||
	    (open_flags(call, &flags) && flags & O_NOFOLLOW))
		follow = false;
	/* A folder is meant, so a link is followed in any case. */
	if (path[strlen(path) - 1] == '/')
		follow = true;
	if (path[0] != '/') {
		if (!folder_of((int)dirfd, &folder))
			return VIRTUAL_OTHER;
		format(absolute, sizeof(absolute), "%s/%s", virtual_path(folder), path);
		path = absolute;
	}
	node = virtual_find(path, follow);
	if (node.kind == VIRTUAL_HIDDEN)
		return -ENOENT;
	return node.kind == VIRTUAL_NONE ? VIRTUAL_OTHER : node_call(call, &node);
}

/* ---- listing ---- */

/* What getdents64(2) writes. */
struct listed {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	uint8_t type;
	char name[45];
};

enum { TYPE_FOLDER = 4, TYPE_FILE = 8, TYPE_LINK = 10, HEAD = offsetof(struct listed, name) };

/* The entries from folder->next on, as many as fit. */
static int64_t list_ours(struct folder *folder, uint64_t to, uint64_t size)
{
	static const uint8_t types[] = {
		[VIRTUAL_FOLDER] = TYPE_FOLDER,
		[VIRTUAL_FILE] = TYPE_FILE,
		[VIRTUAL_LINK] = TYPE_LINK,
	};
	struct virtual_node node = {.folder = folder->folder};
	uint64_t filled = 0;
	const char *name;

	for (;; folder->next++) {
		struct listed entry = {0};

		/* Every folder of its own begins with itself and the one above. */
		if (folder->folder != VIRTUAL_DEVICES && folder->next < 2) {
			name = folder->next ? ".." : ".";
			node.kind = VIRTUAL_FOLDER;
		} else {
			node.index = folder->next - (folder->folder == VIRTUAL_DEVICES ? 0 : 2);
			if (!virtual_entry(folder->folder, node.index, &name, &node.kind))
				return (int64_t)filled;
		}
		entry.inode = inode_of(&node);
		entry.offset = folder->next + 1;
		entry.type = types[node.kind];
		size_t length = format(entry.name, sizeof(entry.name), "%s", name);

		entry.length = (uint16_t)((HEAD + length + 1 + 7) & ~7UL);
		if (entry.length > size - filled)
			return filled ? (int64_t)filled : -EINVAL;
		if (copy_out(to + filled, &entry, entry.length))
			return -EFAULT;
		filled += entry.length;
	}
}

/* A machine with a PMU has one that is called as ours. */
static bool is_listed(const char *name)
{
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return true;
	return strcmp(name, "cpu") && !virtual_hides(name, strlen(name));
}

/* Takes what is hidden out of what the kernel has listed. */
static int64_t take_out_hidden(uint64_t start, int64_t size)
{
	uint64_t at = start, end = start + (uint64_t)size;
	struct listed entry;

	while (at + HEAD < end) {
		size_t known = end - at < sizeof(entry) ? end - at : sizeof(entry);

		if (copy_in(&entry, at, known) || !entry.length || entry.length > end - at)
			break;
		entry.name[sizeof(entry.name) - 1] = '\0';
		if (is_listed(entry.name)) {
			at += entry.length;
			continue;
		}
		if (copy_out(at, (const void *)(at + entry.length), end - at - entry.length))
			break;
		end -= entry.length;
	}
	return (int64_t)(end - start);
}

static int64_t list(struct thread *thread, struct syscall *call, struct folder *folder)
{
	int64_t result, left;

	while (folder->folder == VIRTUAL_DEVICES && !folder->kernels_done) {
		result = syscall_pass(thread, call);
		if (result < 0)
			return result;
		left = take_out_hidden(call->args[1], result);
		if (left)
			return left;
		folder->kernels_done = !result;
	}
	return list_ours(folder, call->args[1], (uint32_t)call->args[2]);
}

static int64_t rewind_folder(struct thread *thread, struct syscall *call, struct folder *folder)
{
	int64_t result = syscall_pass(thread, call);

	if (result == 0) {
		folder->next = 0;
		folder->kernels_done = false;
	}
	return result;
}

static int64_t copy_folder(struct thread *thread, struct syscall *call, struct folder *folder)
{
	const enum virtual_folder copied = folder->folder;
	int64_t result = syscall_pass(thread, call);

	if (result >= 0)
		remember((int)result, copied);
	return result;
}

int64_t virtual_fd_call(struct thread *thread, struct syscall *call)
{
	struct folder *folder;

	lock_take(&folders_lock);
	folder = find((int)call->args[0]);
	lock_give(&folders_lock);
	if (!folder)
		return VIRTUAL_OTHER;
	switch ((uint32_t)call->number) {
	case __NR_getdents64:
		return list(thread, call, folder);
	case __NR_lseek:
		return rewind_folder(thread, call, folder);
	case __NR_close:
		folder->open = false;
		return VIRTUAL_OTHER;
	case __NR_dup:
		return copy_folder(thread, call, folder);
	case __NR_fcntl:
		if (call->args[1] == F_DUPFD || call->args[1] == F_DUPFD_CLOEXEC)
			return copy_folder(thread, call, folder);
		return VIRTUAL_OTHER;
	default:
		return VIRTUAL_OTHER;
	}
}
