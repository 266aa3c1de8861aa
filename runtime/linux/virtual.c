// SPDX-License-Identifier: MIT
#include "runtime/linux/virtual.h"

#include <asm/errno.h>
#include <linux/fcntl.h>
#include <linux/perf_event.h>

#include "core/core.h"
#include "core/encoding.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/files.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

#define BUS    "/sys/bus/event_source/devices"
#define DEVICE "/sys/devices/"
#define SYSCTL "/proc/sys/kernel"

/* By enum virtual_folder. */
static const char *const folders[VIRTUAL_FOLDERS] = {
	BUS,
	DEVICE "cpu",
	DEVICE "cpu/caps",
	DEVICE "cpu/events",
	DEVICE "cpu/format",
	DEVICE "intel_bts",
	DEVICE "ibs_op",
	DEVICE "uprobe",
	DEVICE "uprobe/format",
	DEVICE "software",
	DEVICE "breakpoint",
	SYSCTL,
};

/* Those that have a list of their own; the others' entries are the tables of core/encoding.h. */
struct entry {
	const char *name;
	enum virtual_kind kind;
	uint32_t offset;  /* of the number in core_settings, */
	const char *text; /* or what it says */
};

#define NUMBER(name, member)                                                                       \
	{                                                                                          \
		name, VIRTUAL_FILE, offsetof(struct core_settings, member), NULL                   \
	}
#define TEXT(name, text)                                                                           \
	{                                                                                          \
		name, VIRTUAL_FILE, 0, text                                                        \
	}

/* The first are ours whatever the kernel has: what it has under those names is another
 * processor, or puts breakpoints into code that is not what is executed. */
enum { OURS = 4 };

static const struct entry devices[] = {
	{"cpu", VIRTUAL_LINK, 0, "../../../devices/cpu"},
	{"intel_bts", VIRTUAL_LINK, 0, "../../../devices/intel_bts"},
	{"ibs_op", VIRTUAL_LINK, 0, "../../../devices/ibs_op"},
	{"uprobe", VIRTUAL_LINK, 0, "../../../devices/uprobe"},
	{"software", VIRTUAL_LINK, 0, "../../../devices/software"},
	{"breakpoint", VIRTUAL_LINK, 0, "../../../devices/breakpoint"},
	{0},
};
static const struct entry cpu[] = {
	{"caps", VIRTUAL_FOLDER, 0, NULL},
	{"events", VIRTUAL_FOLDER, 0, NULL},
	{"format", VIRTUAL_FOLDER, 0, NULL},
	TEXT("perf_event_mux_interval_ms", "4"),
	TEXT("rdpmc", "1"),
	NUMBER("type", cpu_type),
	TEXT("uevent", ""),
	{0},
};
static const struct entry caps[] = {
	TEXT("branches", "32"),
	TEXT("max_precise", "3"),
	TEXT("pmu_name", "tally"),
	{0},
};
static const struct entry bts[] = {
	TEXT("perf_event_mux_interval_ms", "4"),
	NUMBER("type", trace_type),
	TEXT("uevent", ""),
	{0},
};
static const struct entry ibs_op[] = {
	TEXT("perf_event_mux_interval_ms", "4"),
	NUMBER("type", op_type),
	TEXT("uevent", ""),
	{0},
};
static const struct entry uprobe[] = {
	{"format", VIRTUAL_FOLDER, 0, NULL},
	TEXT("perf_event_mux_interval_ms", "4"),
	NUMBER("type", probe_type),
	TEXT("uevent", ""),
	{0},
};
static const struct entry uprobe_format[] = {
	TEXT("ref_ctr_offset", "config:32-63"),
	TEXT("retprobe", "config:0"),
	{0},
};
static const struct entry software[] = {TEXT("type", "1"), TEXT("uevent", ""), {0}};
static const struct entry breakpoint[] = {
	NUMBER("type", breakpoint_type),
	TEXT("uevent", ""),
	{0},
};
static const struct entry sysctl[] = {
	TEXT("perf_cpu_time_max_percent", "25"),
	TEXT("perf_event_max_contexts_per_stack", "8"),
	NUMBER("perf_event_max_sample_rate", max_sample_rate),
	NUMBER("perf_event_max_stack", max_stack),
	NUMBER("perf_event_mlock_kb", mlock_kb),
	NUMBER("perf_event_paranoid", paranoid),
	{0},
};

static const struct entry *const lists[VIRTUAL_FOLDERS] = {
	[VIRTUAL_DEVICES] = devices,
	[VIRTUAL_CPU] = cpu,
	[VIRTUAL_CPU_CAPS] = caps,
	[VIRTUAL_BTS] = bts,
	[VIRTUAL_IBS_OP] = ibs_op,
	[VIRTUAL_UPROBE] = uprobe,
	[VIRTUAL_UPROBE_FORMAT] = uprobe_format,
	[VIRTUAL_SOFTWARE] = software,
	[VIRTUAL_BREAKPOINT] = breakpoint,
	[VIRTUAL_SYSCTL] = sysctl,
};

const char *virtual_path(enum virtual_folder folder)
{
	return folders[folder];
}

/* The kernel's own device of that name is better than ours, which tells its number and no more. */
static bool kernel_has(const char *name)
{
	char path[64];

	format(path, sizeof(path), DEVICE "%s/type", name);
	return !sys(__NR_faccessat, AT_FDCWD, path, 0);
}

static bool there(enum virtual_folder folder)
{
	switch (folder) {
	case VIRTUAL_SOFTWARE:
		return !kernel_has("software");
	case VIRTUAL_BREAKPOINT:
		return !kernel_has("breakpoint");
	default:
		return true;
	}
}

/* Devices of the kernel's are listed by the kernel. */
static unsigned int skip_kernels(enum virtual_folder folder, unsigned int index)
{
	if (folder != VIRTUAL_DEVICES)
		return index;
	for (unsigned int at = OURS; at <= index && devices[at].name; at++)
		index += kernel_has(devices[at].name);
	return index;
}

bool virtual_entry(enum virtual_folder folder, unsigned int index, const char **name,
		   enum virtual_kind *kind)
{
	*kind = VIRTUAL_FILE;
	if (folder == VIRTUAL_CPU_EVENTS && index < core_nr_named_events) {
		*name = core_named_events[index].name;
		return true;
	}
	if (folder == VIRTUAL_CPU_FORMAT && core_format(index)) {
		*name = core_format(index)->name;
		return true;
	}
	if (!lists[folder])
		return false;
	index = skip_kernels(folder, index);
	*name = lists[folder][index].name;
	*kind = lists[folder][index].kind;
	return *name;
}

size_t virtual_text(const struct virtual_node *node, char *text, size_t size)
{
	const struct entry *entry;
	const char *number;

	if (node->folder == VIRTUAL_CPU_EVENTS)
		return format(text, size, "%s\n",
			      core_event_terms(&core_named_events[node->index]));
	if (node->folder == VIRTUAL_CPU_FORMAT)
		return format(text, size, "%s\n", core_format(node->index)->bits);
	entry = &lists[node->folder][node->index];
	if (node->kind == VIRTUAL_LINK)
		return format(text, size, "%s", entry->text);
	if (entry->text)
		return format(text, size, *entry->text ? "%s\n" : "%s", entry->text);
	number = (const char *)core_settings() + entry->offset;
	return format(text, size, "%d\n", (int64_t) * (const int32_t *)number);
}

/* ---- finding ---- */

/* Takes "//", "." and ".." out of an absolute path; none of it leads through a link of ours. */
static void tidy(char *to, const char *path)
{
	char *end = to;

	while (*path) {
		size_t length = 0;

		while (*path == '/')
			path++;
		while (path[length] && path[length] != '/')
			length++;
		if (length == 2 && path[0] == '.' && path[1] == '.') {
			while (end > to && *--end != '/')
				;
		} else if (length && !(length == 1 && *path == '.')) {
			*end++ = '/';
			memcpy(end, path, length);
			end += length;
		}
		path += length;
	}
	*end = '\0';
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Whether a path has to do with what is here at all: most have not. */
static bool near(const char *path)
{
	return begins(path, "/sys/") || begins(path, "/proc/sys/") ||
	       (begins(path, "/") && path[1] == '/');
}

/* Which folder @path is, or is in; then @rest is what follows. */
static enum virtual_folder folder_of(const char *path, const char **rest)
{
	enum virtual_folder best = VIRTUAL_FOLDERS;
	size_t longest = 0;

	for (unsigned int i = 0; i < VIRTUAL_FOLDERS; i++) {
		size_t length = strlen(folders[i]);

		if (length <= longest || !begins(path, folders[i]) ||
		    (path[length] && path[length] != '/'))
			continue;
		best = i;
		longest = length;
		*rest = path + length + (path[length] == '/');
	}
	return best;
}

/* A device's folder on the bus is a link to the device. */
static void follow_bus(char *path, bool follow)
{
	const size_t bus = strlen(BUS "/"), device = strlen(DEVICE);
	size_t name = 0;

	if (!begins(path, BUS "/"))
		return;
	while (path[bus + name] && path[bus + name] != '/')
		name++;
	if (!path[bus + name] && !follow)
		return;
	memcpy(path, DEVICE, device);
	memmove(path + device, path + bus, strlen(path + bus) + 1);
}

bool virtual_hides(const char *name, size_t length)
{
	static const char *const stay[] = {"software", "breakpoint"};

	if (core_settings()->host)
		return false;
	for (unsigned int i = 0; i < sizeof(stay) / sizeof(*stay); i++)
		if (strlen(stay[i]) == length && !memcmp(name, stay[i], length))
			return false;
	return true;
}

bool virtual_replaces(const char *name, size_t length)
{
	for (unsigned int i = 0; i < OURS; i++)
		if (strlen(devices[i].name) == length && !memcmp(name, devices[i].name, length))
			return true;
	return false;
}

/* A device of the kernel's that is not to be there. */
static bool is_hidden(const char *path)
{
	const char *name = path + strlen(BUS "/");
	size_t length = 0;

	if (!begins(path, BUS "/"))
		return false;
	while (name[length] && name[length] != '/')
		length++;
	return !virtual_replaces(name, length) && virtual_hides(name, length);
}

struct virtual_node virtual_find(const char *path, bool follow)
{
	struct virtual_node node = {VIRTUAL_NONE, 0, 0};
	char tidied[PATH_MAX + 64];
	const char *rest, *name;
	enum virtual_kind kind;

	if (!near(path) || !arena_used())
		return node;
	tidy(tidied, path);
	if (is_hidden(tidied)) {
		node.kind = VIRTUAL_HIDDEN;
		return node;
	}
	follow_bus(tidied, follow);
	node.folder = folder_of(tidied, &rest);
	if (node.folder == VIRTUAL_FOLDERS || !there(node.folder))
		return node;
	if (!*rest) {
		node.kind = node.folder == VIRTUAL_SYSCTL ? VIRTUAL_NONE : VIRTUAL_FOLDER;
		return node;
	}
	for (; virtual_entry(node.folder, node.index, &name, &kind); node.index++)
		if (!strcmp(name, rest)) {
			node.index = skip_kernels(node.folder, node.index);
			node.kind = kind;
			break;
		}
	return node;
}

uint64_t virtual_inode(const struct virtual_node *node)
{
	enum { FIRST = 0x74610000 };

	return FIRST + node->folder * 0x100u + node->index + (node->kind != VIRTUAL_FOLDER);
}
