// SPDX-License-Identifier: MIT
/*
 * Open folders of ours: each is some folder of the kernel's, which is listed in another way as long
 * as this process knows its number.
 */
#include <asm/errno.h>
#include <linux/fcntl.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/fork_locks.h"
#include "runtime/linux/listing.h"
#include "runtime/linux/virtual.h"
#include "runtime/lock.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

enum { OPEN = 64 }; /* folders at a time */

/* ---- which are open ---- */

struct folder {
	int fd;
	bool open;
	bool kernels_done; /* VIRTUAL_DEVICES: the kernel's entries have been listed */
	enum virtual_folder folder;
	unsigned int next; /* entry to be listed */
};

static struct folder open_folders[OPEN];
struct lock virtual_folders_lock = {.kind = LOCK_VIRTUAL_FOLDERS};
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

void virtual_remember(int fd, enum virtual_folder folder)
{
	struct folder *place;

	lock_take(&virtual_folders_lock);
	place = find(fd);
	for (unsigned int i = 0; i < OPEN && !place; i++)
		if (!open_folders[i].open)
			place = &open_folders[i];
	if (place)
		*place = (struct folder){.fd = fd, .open = true, .folder = folder};
	any = true;
	lock_give(&virtual_folders_lock);
}

bool virtual_folder_of(int fd, enum virtual_folder *folder)
{
	const struct folder *found;

	if (!any)
		return false;
	lock_take(&virtual_folders_lock);
	found = find(fd);
	if (found)
		*folder = found->folder;
	lock_give(&virtual_folders_lock);
	return found;
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
		entry.inode = virtual_inode(&node);
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

/* A machine with a PMU has some that are called as ours. */
static bool is_hidden(const char *name, const void *with)
{
	(void)with;
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	return virtual_replaces(name, strlen(name)) || virtual_hides(name, strlen(name));
}

static int64_t list(struct thread *thread, struct syscall *call, struct folder *folder)
{
	int64_t result, left;

	while (folder->folder == VIRTUAL_DEVICES && !folder->kernels_done) {
		result = syscall_pass(thread, call);
		if (result < 0)
			return result;
		left = listing_without(call->args[1], result, LISTING_64, is_hidden, NULL);
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
		virtual_remember((int)result, copied);
	return result;
}

int64_t virtual_fd_call(struct thread *thread, struct syscall *call)
{
	struct folder *folder;

	lock_take(&virtual_folders_lock);
	folder = find((int)call->args[0]);
	lock_give(&virtual_folders_lock);
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
