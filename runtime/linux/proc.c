// SPDX-License-Identifier: MIT
#include "runtime/linux/proc.h"

#include <asm/errno.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <linux/stat.h>
#include <stddef.h>

#include "core/used.h"
#include "runtime/linux/memory.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

enum { TEXT = 4096 };

/* The beginning of a file, as a string; false when there is nothing to be had. */
static bool read_text(const char *path, char *text, size_t size)
{
	int64_t fd = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	int64_t n;

	if (fd < 0)
		return false;
	n = sys(__NR_read, fd, text, size - 1);
	sys(__NR_close, fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool proc_thread_file(int32_t pid, int32_t tid, const char *name, char *text, size_t size)
{
	char path[64];

	format(path, sizeof(path), "/proc/%d/task/%d/%s", (int64_t)pid, (int64_t)tid, name);
	return read_text(path, text, size);
}

uint32_t proc_device_type(const char *name)
{
	char path[64], text[TEXT];

	format(path, sizeof(path), "/sys/devices/%s/type", name);
	return read_text(path, text, sizeof(text)) ? (uint32_t)core_text_number(text) : UINT32_MAX;
}

static int32_t number_in_status(int32_t tid, const char *name)
{
	char path[32], text[TEXT];

	format(path, sizeof(path), "/proc/%d/status", (int64_t)tid);
	return read_text(path, text, sizeof(text)) ? (int32_t)core_text_field(text, name) : 0;
}

int32_t proc_process_of(int32_t tid)
{
	return number_in_status(tid, "Tgid");
}

int32_t proc_tracer_of(int32_t tid)
{
	return number_in_status(tid, "TracerPid");
}

int32_t proc_descriptors(void)
{
	return number_in_status((int32_t)sys(__NR_getpid), "FDSize");
}

static uint64_t inode(const char *path)
{
	struct stat file;

	return sys(__NR_newfstatat, AT_FDCWD, path, &file, 0) ? 0 : file.st_ino;
}

uint64_t proc_name_space(void)
{
	return inode("/proc/self/ns/pid");
}

uint64_t proc_user_name_space(void)
{
	return inode("/proc/self/ns/user");
}

uint64_t proc_physical(uint64_t address)
{
	const uint64_t present = 1UL << 63, frame = (1UL << 55) - 1;
	int64_t fd = sys(__NR_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	if (fd < 0)
		return 0;
	sys(__NR_pread64, fd, &entry, sizeof(entry), address / PAGE * sizeof(entry));
	sys(__NR_close, fd);
	if (!(entry & present) || !(entry & frame))
		return 0;
	return (entry & frame) * PAGE + address % PAGE;
}

/*
 * The hierarchy by which events go: that of the controller perf_event if an old system has one, or
 * else the unified one, which mixed systems have beside those of the controllers. What there is of
 * it is @line in /proc/PID/cgroup, and its root.
 */
struct hierarchy {
	const char *line, *root;
	int64_t magic;
};

static const struct hierarchy hierarchies[] = {
	{":perf_event:", "/sys/fs/cgroup/perf_event", CGROUP_SUPER_MAGIC},
	{"0::", "/sys/fs/cgroup/unified", CGROUP2_SUPER_MAGIC},
	{"0::", "/sys/fs/cgroup", CGROUP2_SUPER_MAGIC},
};
enum { HIERARCHIES = sizeof(hierarchies) / sizeof(hierarchies[0]), CGROUP_PATH = TEXT + 32 };

static const struct hierarchy *hierarchy(void)
{
	struct statfs fs;

	for (unsigned int i = 0; i < HIERARCHIES; i++)
		if (!sys(__NR_statfs, hierarchies[i].root, &fs) &&
		    fs.f_type == hierarchies[i].magic)
			return &hierarchies[i];
	return NULL;
}

int64_t proc_cgroup_of(int fd)
{
	const struct hierarchy *ours = hierarchy();
	struct stat folder, root;
	struct statfs fs;

	if (sys(__NR_fstatfs, fd, &fs) || sys(__NR_fstat, fd, &folder) ||
	    (fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC) ||
	    !(folder.st_mode & S_IFDIR))
		return -EBADF;
	if (!ours || sys(__NR_newfstatat, AT_FDCWD, ours->root, &root, 0) ||
	    root.st_dev != folder.st_dev)
		return -ENOENT;
	return (int64_t)folder.st_ino;
}

bool proc_cgroup_path(int fd, char path[PROC_PATH])
{
	const struct hierarchy *ours = hierarchy();
	size_t root = ours ? strlen(ours->root) : 0;
	char link[32];
	int64_t length;

	format(link, sizeof(link), "/proc/self/fd/%d", (int64_t)fd);
	length = sys(__NR_readlinkat, AT_FDCWD, link, path, PROC_PATH);
	if (length < 0 || length == PROC_PATH || !root || strncmp(path, ours->root, root) != 0)
		return false;
	path[length] = '\0';
	memmove(path, path + root, (size_t)length - root + 1);
	return path[0] == '/';
}

static int64_t cgroup_at(const char *path)
{
	int64_t fd = sys(__NR_openat, AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC), cgroup;

	if (fd < 0)
		return fd;
	cgroup = proc_cgroup_of((int)fd);
	sys(__NR_close, fd);
	return cgroup;
}

/* What is behind @what in @text: within a line, or where one begins if @what begins one. */
static char *behind(char *text, const char *what)
{
	size_t length = strlen(what);

	for (char *at = text; *at; at++)
		if (!strncmp(at, what, length) && (*what == ':' || at == text || at[-1] == '\n'))
			return at + length;
	return NULL;
}

/* The folder of the thread's cgroup. */
static bool cgroup_path(int32_t tid, char path[CGROUP_PATH])
{
	const struct hierarchy *ours = hierarchy();
	char text[TEXT], name[32], *at, *end;

	format(name, sizeof(name), "/proc/%d/cgroup", (int64_t)tid);
	if (!ours || !read_text(name, text, sizeof(text)))
		return false;
	at = behind(text, ours->line);
	if (!at)
		return false;
	for (end = at; *end && *end != '\n'; end++)
		;
	*end = '\0';
	format(path, CGROUP_PATH, "%s%s", ours->root, at);
	return true;
}

uint64_t proc_cgroup(int32_t tid)
{
	char path[CGROUP_PATH];
	int64_t cgroup = cgroup_path(tid, path) ? cgroup_at(path) : 0;

	return cgroup > 0 ? (uint64_t)cgroup : 0;
}

/* Upwards from where the thread is. */
bool proc_in_cgroup(int32_t tid, uint64_t cgroup)
{
	char path[CGROUP_PATH], *slash;

	if (!cgroup_path(tid, path))
		return false;
	for (;;) {
		int64_t here = cgroup_at(path);

		if (here < 0)
			return false; /* above the root */
		if ((uint64_t)here == cgroup)
			return true;
		slash = strrchr(path, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
}

void proc_namespaces(struct perf_ns_link_info *to)
{
	static const char *const names[NR_NAMESPACES] = {
		[NET_NS_INDEX] = "net",	      [UTS_NS_INDEX] = "uts",	[IPC_NS_INDEX] = "ipc",
		[PID_NS_INDEX] = "pid",	      [USER_NS_INDEX] = "user", [MNT_NS_INDEX] = "mnt",
		[CGROUP_NS_INDEX] = "cgroup",
	};
	char path[64];
	struct stat file;

	for (unsigned int i = 0; i < NR_NAMESPACES; i++) {
		to[i] = (struct perf_ns_link_info){0};
		format(path, sizeof(path), "/proc/thread-self/ns/%s", names[i]);
		if (!sys(__NR_newfstatat, AT_FDCWD, path, &file, 0))
			to[i] = (struct perf_ns_link_info){file.st_dev, file.st_ino};
	}
}
