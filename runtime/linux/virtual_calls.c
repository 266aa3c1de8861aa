// SPDX-License-Identifier: MIT
/* Calls with paths. A file of ours is opened as a memfd that nobody can write to. */
#include <asm/errno.h>
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <linux/openat2.h>
#include <linux/stat.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/files.h"
#include "runtime/linux/virtual.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

enum {
	TEXT = 256,
	FILE_SIZE = 4096, /* as sysfs has it */
	SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
};

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
		virtual_remember((int)fd, folder);
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

static int64_t stat_node(const struct virtual_node *node, uint64_t to)
{
	const struct stat file = {
		.st_ino = virtual_inode(node),
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
		.stx_ino = virtual_inode(node),
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

/* By how it ends: then a link before that is followed in any case. */
static bool means_folder(const char *path)
{
	const char *end = path + strlen(path);

	if (end > path && end[-1] == '.')
		end--;
	if (end > path && end[-1] == '.')
		end--;
	return *path && (end == path || end[-1] == '/');
}

/* Of a relative @path, if that may be one of ours. */
static bool absolute_of(int64_t dirfd, const char *path, char *absolute, size_t size)
{
	enum virtual_folder folder;

	if ((int)dirfd == AT_FDCWD)
		return virtual_from_here(path, absolute, size);
	if (!virtual_folder_of((int)dirfd, &folder))
		return false;
	format(absolute, size, "%s/%s", virtual_path(folder), path);
	return true;
}

int64_t virtual_path_call(struct thread *thread, struct syscall *call, int64_t dirfd,
			  const char *path, bool follow)
{
	const uint32_t number = (uint32_t)call->number;
	char absolute[PATH_MAX + 64];
	struct virtual_node node;
	uint64_t flags;

	(void)thread;
	if (number == __NR_readlink || number == __NR_readlinkat ||
	    (open_flags(call, &flags) && flags & O_NOFOLLOW))
		follow = false;
	if (means_folder(path))
		follow = true;
	if (path[0] != '/') {
		if (!absolute_of(dirfd, path, absolute, sizeof(absolute)))
			return VIRTUAL_OTHER;
		path = absolute;
	}
	node = virtual_find(path, follow);
	if (node.kind == VIRTUAL_HIDDEN)
		return -ENOENT;
	return node.kind == VIRTUAL_NONE ? VIRTUAL_OTHER : node_call(call, &node);
}
