// SPDX-License-Identifier: MIT
/*
 * /proc/PID/fd and fdinfo without the descriptors of the runtime: programs read them to close what
 * they have inherited, tests to find what has leaked.
 */
#include "runtime/linux/listing.h"

#include <asm/errno.h>
#include <asm/statfs.h>
#include <linux/magic.h>
#include <stddef.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/files.h"
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
	char rest[14];
};

bool listing_of_descriptors(uint64_t fd)
{
	struct statfs fs;
	char link[32], path[64];
	int64_t n;
	char *name;

	if (sys(__NR_fstatfs, fd, &fs) || fs.f_type != PROC_SUPER_MAGIC)
		return false;
	format(link, sizeof(link), "/proc/self/fd/%d", (int64_t)(int)fd);
	n = sys(__NR_readlink, link, path, sizeof(path) - sizeof("/fd/2147483647"));
	if (n <= 0)
		return false;
	path[n] = '\0';
	name = strrchr(path, '/');
	if (!name || (strcmp(name, "/fd") && strcmp(name, "/fdinfo")))
		return false;
	format(name, sizeof("/fd/2147483647"), "/fd/%d", (int64_t)descriptors.runtime);
	return files_lead_to_runtime(-1, path);
}

bool listing_number(const char *name, uint64_t *value)
{
	const char *digits = name;

	*value = 0;
	for (; *name >= '0' && *name <= '9'; name++)
		*value = *value * 10 + (uint64_t)(*name - '0');
	return !*name && name > digits;
}

static bool is_ours(const char *name)
{
	uint64_t value;

	return listing_number(name, &value) && descriptors_have(value);
}

int64_t listing_without(uint64_t start, int64_t size, unsigned int name,
			bool (*hidden)(const char *name))
{
	uint64_t at = start, end = start + (uint64_t)size;
	struct entry entry;

	while (at + offsetof(struct entry, rest) + name < end) {
		size_t known = end - at < sizeof(entry) ? end - at : sizeof(entry);

		if (copy_in(&entry, at, known) || !entry.length || entry.length > end - at)
			break;
		entry.rest[sizeof(entry.rest) - 1] = '\0';
		if (!hidden(entry.rest + name)) {
			at += entry.length;
			continue;
		}
		if (copy_out(at, (const void *)(at + entry.length), end - at - entry.length))
			break;
		end -= entry.length;
	}
	return (int64_t)(end - start);
}

int64_t sys_getdents(struct thread *thread, struct syscall *call)
{
	unsigned int name = (uint32_t)call->number == __NR_getdents64 ? LISTING_64 : LISTING_OLD;
	int64_t result, left;

	/* Nothing left of a buffer is not yet the end of the folder. */
	do {
		result = left = syscall_pass(thread, call);
		if (result > 0 && listing_of_descriptors(call->args[0]))
			left = listing_without(call->args[1], result, name, is_ours);
	} while (result > 0 && !left);
	return left;
}
