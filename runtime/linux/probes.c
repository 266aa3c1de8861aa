// SPDX-License-Identifier: MIT
/*
 * Uprobes. Whoever has the right to can make the kernel put a breakpoint into the code of every
 * process that maps a file. Executed in its place, it is the kernel's; in a copy it would end the
 * program. So what a breakpoint hides is taken from the file, and probes are not met in a run.
 */
#include <linux/fcntl.h>
#include <linux/stat.h>

#include "core/host.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/say.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

enum { BREAKPOINT = 0xcc };

/* Whether it is the file that is mapped, and not one that has its name now. */
static bool is_mapped(int fd, const struct maps_file *file)
{
	struct statx is;

	return !sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &is) &&
	       is.stx_ino == file->inode && is.stx_dev_major == file->major &&
	       is.stx_dev_minor == file->minor;
}

static int open_mapped(const struct maps_entry *entry, const struct maps_file *file)
{
	char path[64];
	int fd;

	fd = (int)sys(__NR_openat, AT_FDCWD, file->path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && is_mapped(fd, file))
		return fd;
	if (fd >= 0)
		sys(__NR_close, fd);
	/* For who may follow it, whatever has become of the name. */
	format(path, sizeof(path), "/proc/self/map_files/%x-%x", entry->start, entry->end);
	return (int)sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

bool linux_probed(uint64_t pc, uint8_t *byte)
{
	struct maps_entry entry;
	struct maps_file file;
	bool probed = false;
	int fd;

	if (!maps_find_file(pc, &entry, &file) || !file.inode || file.shared)
		return false;
	fd = open_mapped(&entry, &file);
	if (fd < 0)
		return false;
	if (sys(__NR_pread64, fd, byte, 1, file.offset + (pc - entry.start)) == 1)
		probed = *byte != BREAKPOINT;
	sys(__NR_close, fd);
	return probed;
}

size_t linux_code(void *to, uint64_t from, size_t size)
{
	uint8_t *first = to, byte;

	size = core_host_read(to, from, size);
	if (size && *first == BREAKPOINT && linux_probed(from, &byte))
		*first = byte;
	return size;
}
