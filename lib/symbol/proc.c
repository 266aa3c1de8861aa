// SPDX-License-Identifier: MIT
/* What runs before a recording begins has no records: /proc says where it is mapped. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/symbol/dso.h"
#include "lib/symbol/machine.h"

/* One line of /proc/PID/maps. False: not code. */
static bool parse_map(char *line, struct tly_map *map, const char **filename)
{
	char permissions[5];
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &map->start,
		   &map->end, permissions, &map->pgoff, &at) != 4 ||
	    !at)
		return false;
	*filename = line + at;
	return permissions[2] == 'x';
}

static int feed_maps(struct tally_machine *machine, int pid, struct tally_error *err)
{
	char path[32], *line = NULL;
	size_t size = 0;
	FILE *maps;
	int ret = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps) {
		ret = errno == ENOENT ? -ESRCH : -errno;
		tly_error(err, ret, "cannot read the mappings of process %d: %s", pid,
			  strerror(-ret));
		if (ret == -EACCES)
			tly_error_remedy(err, "run as the user of the process, or as root");
		return ret;
	}
	while (!ret && getline(&line, &size, maps) > 0) {
		struct tly_map map = {0};
		const char *filename;

		if (parse_map(line, &map, &filename))
			ret = tly_machine_map_user(machine, pid, filename, NULL, &map, 0);
	}
	free(line);
	fclose(maps);
	if (ret)
		tly_error(err, ret, "out of memory");
	return ret;
}

static int feed_comms(struct tally_machine *machine, int pid)
{
	struct tly_moment now = {0, machine->order++};
	struct dirent *entry;
	char path[64];
	DIR *tasks;
	int ret = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !ret && (entry = readdir(tasks))) {
		unsigned int tid = strtoul(entry->d_name, NULL, 10);
		char comm[64] = "";
		FILE *file;

		if (!tid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", pid, tid);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file)) {
			comm[strcspn(comm, "\n")] = '\0';
			ret = tly_comms_name(&machine->comms, tid, comm, now);
		}
		fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return ret;
}

static int add_module(const char *name, uint64_t start, uint64_t size, void *arg)
{
	struct tly_map map = {.start = start, .end = start + size};

	if (map.end < start)
		return 0;
	return tly_machine_map_kernel(arg, name, NULL, &map, 0);
}

static int feed_kernel(struct tally_machine *machine, struct tally_error *err)
{
	const struct tly_kallsyms *kallsyms = &machine->symbols->kallsyms;
	struct tly_build_id id;
	struct tly_map map = {0};
	int ret = tly_kallsyms_read(machine->symbols);

	if (ret)
		return tly_error(err, ret, "cannot read %s: %s", kallsyms->path, strerror(-ret));
	if (kallsyms->restricted || !kallsyms->symtab.nr) {
		tly_error(err, -EACCES, "%s hides the kernel's addresses from this user",
			  kallsyms->path);
		return tly_error_remedy(err, "run as root, or: sysctl kernel.kptr_restrict=0");
	}
	/* Whatever is not a module's is the kernel's: its own code and what it made at run time. */
	map.start = kallsyms->text ? kallsyms->text : kallsyms->symtab.symbols[0].start;
	map.end = kallsyms->symtab.symbols[kallsyms->symtab.nr - 1].end;
	if (machine->symbols->options.kallsyms)
		id.size = 0;
	else
		tly_kernel_build_id(&id);
	ret = tly_machine_map_kernel(machine, "[kernel.kallsyms]", &id, &map, 0);
	if (!ret)
		ret = tly_kernel_modules(machine->symbols, add_module, machine);
	if (ret)
		tly_error(err, ret, "out of memory");
	return ret;
}

int tally_machine_feed_proc(struct tally_machine *machine, int pid, struct tally_error *err)
{
	int ret;

	if (pid < 0)
		return feed_kernel(machine, err);
	ret = feed_maps(machine, pid, err);
	if (!ret) {
		ret = feed_comms(machine, pid);
		if (ret)
			tly_error(err, ret, "out of memory");
	}
	return ret;
}
