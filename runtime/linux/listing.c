// SPDX-License-Identifier: MIT
/*
 * /proc/PID/fd and fdinfo without the descriptors of the runtime: programs read them to close what
 * they have inherited, tests to find what has leaked. And /proc/PID/map_files without its mappings.
 */
#include "runtime/linux/listing.h"

#include <asm/errno.h>
#include <asm/statfs.h>
#include <linux/magic.h>
#include <stddef.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/files.h"
#include "runtime/linux/maps_layout.h"
#include "runtime/linux/syscalls.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/*
 * What getdents(2) and getdents64(2) write: the name begins at once, or behind a byte for the type
 * of the file. Only short names matter here.
 */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	char rest[30];
};

/* The path of a folder of /proc, with room for the name of a descriptor; returns where its last
 * part begins, with the slash, or NULL: it is another folder. */
static char *read_path(uint64_t fd, char *path, size_t size)
{
	struct statfs fs;
	char link[32];
	int64_t n;

	if (sys(__NR_fstatfs, fd, &fs) || fs.f_type != PROC_SUPER_MAGIC)
		return NULL;
	format(link, sizeof(link), "/proc/self/fd/%d", (int64_t)(int)fd);
	n = sys(__NR_readlink, link, path, size - sizeof("/fd/2147483647"));
	if (n <= 0)
		return NULL;
	path[n] = '\0';
	return strrchr(path, '/');
}

static bool are_descriptors(char *path, char *name)
{
	if (strcmp(name, "/fd") && strcmp(name, "/fdinfo"))
		return false;
	format(name, sizeof("/fd/2147483647"), "/fd/%d", (int64_t)descriptors.runtime);
	return files_lead_to_runtime(-1, path);
}

bool listing_of_descriptors(uint64_t fd)
{
	char path[64], *name = read_path(fd, path, sizeof(path));

	return name && are_descriptors(path, name);
}

/* "/proc/PID/map_files": of which process; 0: it is none. */
static int of_mappings(char *path, char *name)
{
	uint64_t pid;

	if (strcmp(name, "/map_files"))
		return 0;
	*name = '\0';
	name = strrchr(path, '/');
	return name && listing_number(name + 1, &pid) ? (int)pid : 0;
}

bool listing_number(const char *name, uint64_t *value)
{
	const char *digits = name;

	*value = 0;
	for (; *name >= '0' && *name <= '9'; name++)
		*value = *value * 10 + (uint64_t)(*name - '0');
	return !*name && name > digits;
}

static bool is_ours(const char *name, const void *with)
{
	uint64_t value;

	(void)with;
	return listing_number(name, &value) && descriptors_have(value);
}

int64_t listing_without(uint64_t start, int64_t size, unsigned int name,
			bool (*hidden)(const char *name, const void *with), const void *with)
{
	uint64_t at = start, end = start + (uint64_t)size;
	struct entry entry;

	while (at + offsetof(struct entry, rest) + name < end) {
		size_t known = end - at < sizeof(entry) ? end - at : sizeof(entry);

		if (copy_in(&entry, at, known) || !entry.length || entry.length > end - at)
			break;
		entry.rest[sizeof(entry.rest) - 1] = '\0';
		if (!hidden(entry.rest + name, with)) {
			at += entry.length;
			continue;
		}
		if (copy_out(at, (const void *)(at + entry.length), end - at - entry.length))
			break;
		end -= entry.length;
	}
	return (int64_t)(end - start);
}

/* What is left of @size bytes that the kernel has listed. */
static int64_t without_ours(const struct syscall *call, int64_t size, unsigned int name)
{
	char path[64], *last = read_path(call->args[0], path, sizeof(path));
	struct maps_known known;
	int pid;

	if (!last)
		return size;
	pid = of_mappings(path, last);
	if (pid && maps_known_of(pid, &known)) {
		size = listing_without(call->args[1], size, name, maps_view_hides, &known.layout);
		maps_known_free(&known);
	} else if (!pid && are_descriptors(path, last)) {
		size = listing_without(call->args[1], size, name, is_ours, NULL);
	}
	return size;
}

int64_t sys_getdents(struct thread *thread, struct syscall *call)
{
	unsigned int name = (uint32_t)call->number == __NR_getdents64 ? LISTING_64 : LISTING_OLD;
	int64_t result, left;

	/* Nothing left of a buffer is not yet the end of the folder. */
	do {
		result = left = syscall_pass(thread, call);
		if (result > 0)
			left = without_ours(call, result, name);
	} while (result > 0 && !left);
	return left;
}
