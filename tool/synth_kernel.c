// SPDX-License-Identifier: MIT
/* Where the kernel's text and its modules are. */
#include "tool/synth.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <tally/symbol.h>

#define KERNEL_PID UINT32_MAX /* as the kernel's own records of its text have it */

/* "  01000000-02209987 : Kernel code": its size, 0 where the addresses are hidden. */
static uint64_t kernel_code_size(const struct tool_synth *synth)
{
	FILE *iomem = tool_synth_open(synth, "/proc/iomem");
	uint64_t start, end, size = 0;
	char line[256];

	while (iomem && fgets(line, sizeof(line), iomem)) {
		if (strstr(line, ": Kernel code") &&
		    sscanf(line, " %" SCNx64 "-%" SCNx64, &start, &end) == 2 && end > start)
			size = end + 1 - start;
	}
	if (iomem)
		fclose(iomem);
	return size;
}

/*
 * Where the kernel's text starts and ends. Its start is on the first lines of kallsyms; its end is
 * most of a hundred thousand lines further, so that it is taken from iomem where that tells it.
 */
static bool kernel_text(const struct tool_synth *synth, uint64_t *start, uint64_t *end)
{
	FILE *kallsyms = tool_synth_open(synth, "/proc/kallsyms");
	uint64_t size = 0, address;
	char line[512], name[128];

	*start = *end = 0;
	while (kallsyms && !*end && fgets(line, sizeof(line), kallsyms)) {
		if (!strstr(line, "text") ||
		    sscanf(line, "%" SCNx64 " %*c %127s", &address, name) != 2 || !address)
			continue;
		if (!strcmp(name, "_text")) {
			*start = address;
			size = kernel_code_size(synth);
			if (size)
				*end = address + size;
		} else if (!strcmp(name, "_etext") && *start) {
			*end = address;
		}
	}
	if (kallsyms)
		fclose(kallsyms);
	return *start && *end > *start;
}

/* A module's file by its name, from the list that depmod(8) keeps; "[name]" when it is not there.
 */
static void module_path(const struct tool_synth *synth, const char *name, const char *list,
			size_t list_size, char *path, size_t size)
{
	struct utsname host;
	const char *line = list;

	snprintf(path, size, "[%s]", name);
	while (line && line < list + list_size) {
		const char *colon = memchr(line, ':', list + list_size - line);
		const char *base = line;
		size_t i;

		if (!colon)
			return;
		for (const char *p = line; p < colon; p++)
			if (*p == '/')
				base = p + 1;
		/* The kernel's name has '_' where the file's may have '-'. */
		for (i = 0; name[i] && base + i < colon; i++)
			if (name[i] != (base[i] == '-' ? '_' : base[i]))
				break;
		if (!name[i] && colon - (base + i) >= 3 && !memcmp(base + i, ".ko", 3) &&
		    uname(&host) == 0) {
			snprintf(path, size, "%s/lib/modules/%s/%.*s", synth->root, host.release,
				 (int)(colon - line), line);
			return;
		}
		line = memchr(colon, '\n', list + list_size - colon);
		line = line ? line + 1 : NULL;
	}
}

static char *read_module_list(const struct tool_synth *synth, size_t *size)
{
	char path[PATH_MAX], *list = NULL;
	struct utsname host;
	struct stat st;
	int fd;

	*size = 0;
	if (uname(&host) < 0)
		return NULL;
	snprintf(path, sizeof(path), "%s/lib/modules/%s/modules.dep", synth->root, host.release);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		list = malloc(st.st_size);
	if (list) {
		ssize_t n = read(fd, list, st.st_size);

		*size = n > 0 ? n : 0;
	}
	close(fd);
	return list;
}

/* "ext4 811008 1 - Live 0xffffffffc0200000" */
static void add_modules(struct tool_synth *synth)
{
	FILE *modules = tool_synth_open(synth, "/proc/modules");
	char line[1024], name[128], path[PATH_MAX], notes[PATH_MAX];
	size_t list_size;
	char *list;

	if (!modules)
		return;
	list = read_module_list(synth, &list_size);
	while (fgets(line, sizeof(line), modules)) {
		struct tool_mapping mapping = {
			.pid = KERNEL_PID, .misc = PERF_RECORD_MISC_KERNEL, .name = path};

		if (sscanf(line, "%127s %" SCNu64 " %*s %*s %*s %" SCNx64, name, &mapping.len,
			   &mapping.start) != 3 ||
		    !mapping.start)
			continue;
		module_path(synth, name, list, list_size, path, sizeof(path));
		snprintf(notes, sizeof(notes), "%s/sys/module/%s/notes/.note.gnu.build-id",
			 synth->root, name);
		mapping.build_id.size = tally_build_id_read(notes, mapping.build_id.bytes);
		tool_synth_mapping(synth, &mapping);
	}
	free(list);
	fclose(modules);
}

bool tool_synth_kernel(struct tool_synth *synth)
{
	struct tool_mapping mapping = {.pid = KERNEL_PID,
				       .misc = PERF_RECORD_MISC_KERNEL,
				       .name = "[kernel.kallsyms]_text"};
	char notes[PATH_MAX];
	uint64_t end;

	if (!kernel_text(synth, &mapping.start, &end))
		return false;
	mapping.len = end - mapping.start;
	/* Where the symbol in the name lies: what tells readers by how much the kernel was moved.
	 */
	mapping.pgoff = mapping.start;
	snprintf(notes, sizeof(notes), "%s/sys/kernel/notes", synth->root);
	mapping.build_id.size = tally_build_id_read(notes, mapping.build_id.bytes);
	tool_synth_mapping(synth, &mapping);
	add_modules(synth);
	return true;
}
