/* SPDX-License-Identifier: MIT */
/*
 * Files that say what there is to be counted: to the program the virtual PMU is a device of sysfs,
 * beside those of the kernel, and its settings are sysctls.
 *
 *	virtual.c		the tree: what is there, and what is in it
 *	virtual_calls.c		the calls that meet it by a path
 *	virtual_folders.c	its folders that are open, and the calls on their descriptors
 *	virtual_here.c		the working folder, which paths may begin at
 */
#ifndef RUNTIME_LINUX_VIRTUAL_H
#define RUNTIME_LINUX_VIRTUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/linux/syscalls.h"

enum virtual_kind {
	VIRTUAL_NONE,
	VIRTUAL_FOLDER,
	VIRTUAL_FILE,
	VIRTUAL_LINK,
	VIRTUAL_HIDDEN, /* the kernel has it, and the program has not */
};

enum virtual_folder {
	VIRTUAL_DEVICES, /* with the kernel's own beside ours */
	VIRTUAL_CPU,
	VIRTUAL_CPU_CAPS,
	VIRTUAL_CPU_EVENTS,
	VIRTUAL_CPU_FORMAT,
	VIRTUAL_BTS,
	VIRTUAL_IBS_OP,
	VIRTUAL_UPROBE,
	VIRTUAL_UPROBE_FORMAT,
	VIRTUAL_SOFTWARE,   /* where the kernel has none */
	VIRTUAL_BREAKPOINT, /* likewise */
	VIRTUAL_SYSCTL,	    /* single files among the kernel's: it is not listed */
	VIRTUAL_FOLDERS,
};

struct virtual_node {
	enum virtual_kind kind;
	enum virtual_folder folder; /* that it is, or that it is in */
	unsigned int index;	    /* there */
};

/* What @path, which is absolute, leads to; with @follow through a link that it ends in. */
struct virtual_node virtual_find(const char *path, bool follow);

/* Whether what the kernel has under that name, of @length, is another device than ours. */
bool virtual_replaces(const char *name, size_t length);

/* Whether a device of the kernel's with that name, of @length, is hidden. */
bool virtual_hides(const char *name, size_t length);

/* The entry @index of a folder: its name and what it is; false behind the last. */
bool virtual_entry(enum virtual_folder folder, unsigned int index, const char **name,
		   enum virtual_kind *kind);

/* What is in a file, or where a link leads; returns the length. */
size_t virtual_text(const struct virtual_node *node, char *text, size_t size);

/* The path of a folder. */
const char *virtual_path(enum virtual_folder folder);

uint64_t virtual_inode(const struct virtual_node *node);

#define VIRTUAL_OTHER ((int64_t)-0x40000004)

/* ---- virtual_calls.c ---- */

/* A call with @path as seen from @dirfd: its result, or VIRTUAL_OTHER if that is none of ours. */
int64_t virtual_path_call(struct thread *thread, struct syscall *call, int64_t dirfd,
			  const char *path, bool follow);

/* ---- virtual_here.c ---- */

/* Whether paths that are relative to the working folder may lead here. */
bool virtual_near_here(void);

/* Such a path from the root on; false: it is none, or too long. */
bool virtual_from_here(const char *path, char *absolute, size_t size);

/* ---- virtual_folders.c ---- */

/* The same for a call on a descriptor: getdents, lseek, close, dup. */
int64_t virtual_fd_call(struct thread *thread, struct syscall *call);

/* Whether the process may have opened folders of ours. */
bool virtual_any(void);

/* From now on @fd is that folder. */
void virtual_remember(int fd, enum virtual_folder folder);

/* Whether @fd is a folder of ours, and which. */
bool virtual_folder_of(int fd, enum virtual_folder *folder);

#endif
