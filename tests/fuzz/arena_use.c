// SPDX-License-Identifier: MIT
/*
 * arena_use PID: what is in use of the arena of the `tally run` that is process PID, and what that
 * process holds itself. For whoever looks for leaks; the run goes on undisturbed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/arena.h"
#include "core/arena.h"
#include "core/ring.h"

static const char arena_name[] = "/memfd:tally (deleted)";

/* Opens it, and counts the descriptors on the way. */
static int open_arena(const char *pid, unsigned int *descriptors)
{
	char path[300], link[64];
	const struct dirent *entry;
	int fd = -1;
	ssize_t n;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/%s/fd/%s", pid, entry->d_name);
		n = readlink(path, link, sizeof(link));
		if (n < 0)
			continue;
		++*descriptors;
		if (n == sizeof(arena_name) - 1 && !memcmp(link, arena_name, (size_t)n) && fd < 0)
			fd = open(path, O_RDONLY);
	}
	if (folder)
		closedir(folder);
	return fd;
}

static unsigned long memory_of(const char *pid)
{
	unsigned long kib = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmRSS: %lu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static unsigned int count_rings(void)
{
	const struct core_ring *rings = core_arena(ARENA_RINGS_AT);
	unsigned int rings_used = 0;

	for (unsigned int i = 0; i < CORE_RINGS; i++)
		rings_used += rings[i].at != 0;
	return rings_used;
}

/* That are measured: others may be left, until somebody takes their page. */
static unsigned int count_tasks(void)
{
	const struct arena_header *pages = core_arena(0);
	unsigned int tasks = 0;

	for (uint32_t page = 1; page <= pages->used && page < ARENA_PAGES; page++)
		tasks += core_task(page)->live && core_task(page)->events;
	return tasks;
}

int main(int argc, char **argv)
{
	unsigned int descriptors = 0;
	struct stat file;
	void *memory;
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: arena_use PID\n");
		return 2;
	}
	fd = open_arena(argv[1], &descriptors);
	memory = fd < 0 ? MAP_FAILED : mmap(NULL, ARENA_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED || fstat(fd, &file) < 0) {
		fprintf(stderr, "arena_use: process %s has no arena\n", argv[1]);
		return 1;
	}
	core_attach(memory);
	printf("events %u\nrings %u\ntasks %u\narena %lu\ndescriptors %u\nmemory %lu\n",
	       core_tree()->events, count_rings(), count_tasks(), (unsigned long)file.st_blocks / 2,
	       descriptors, memory_of(argv[1]));
	return 0;
}
