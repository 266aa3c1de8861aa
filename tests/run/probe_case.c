// SPDX-License-Identifier: MIT
#include "probe_case.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

__attribute__((noipa)) int called(int n)
{
	__asm__ volatile("");
	return n + 1;
}

void call(function *code, int times)
{
	for (int i = 0; i < times; i++)
		code(i);
}

char own_path[4096];

struct place {
	uintptr_t address;
	uint64_t offset;
};

static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *place = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const uintptr_t at = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && place->address - at < segment->p_filesz)
			place->offset = place->address - at + segment->p_offset;
	}
	return place->offset != 0;
}

uint64_t offset_of(const void *code)
{
	struct place place = {.address = (uintptr_t)code};

	dl_iterate_phdr(find_offset, &place);
	need(place.offset);
	return place.offset;
}

static uint32_t unit(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int type = 0;

	if (!file) {
		say("skip: the kernel has no uprobes\n");
		_exit(0);
	}
	need(fscanf(file, "%d", &type) == 1);
	fclose(file);
	return (uint32_t)type;
}

struct perf_event_attr probe_in(const char *path, uint64_t offset)
{
	struct perf_event_attr attr = {
		.type = unit(),
		.size = sizeof(attr),
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = offset;
	return attr;
}

struct perf_event_attr probe(function *code, int when)
{
	struct perf_event_attr attr;

	need(realpath("/proc/self/exe", own_path));
	attr = probe_in(own_path, offset_of((const void *)(uintptr_t)code));
	attr.config = (uint64_t)when;
	return attr;
}

void say_count(const char *what, int fd)
{
	say("%s %lu\n", what, (unsigned long)count_of(fd));
}

void enable(int fd)
{
	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
}
