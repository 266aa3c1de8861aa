/* SPDX-License-Identifier: MIT */
/* Looks into /proc/self/maps, and those of other processes: as the kernel has them. */
#ifndef RUNTIME_LINUX_PROC_MAPS_H
#define RUNTIME_LINUX_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct maps_entry {
	uint64_t start, end;
	unsigned int prot; /* PROT_... */
};

/* What is mapped there. */
struct maps_file {
	bool shared;
	uint64_t offset, inode;
	uint32_t major, minor;
	char path[4096]; /* "[vdso]", "" of no file */
};

/* Its device, as stat(2) has it where a file system has no layers. */
uint64_t maps_device(const struct maps_file *file);

/* From the lowest address to the highest. What is mapped meanwhile may be in it or not. */
struct maps_reader {
	int fd;
	uint32_t at, filled;
	char buffer[1024];
};

bool maps_open(struct maps_reader *reader);
bool maps_open_of(struct maps_reader *reader, int pid);
/* False at the end; @file may be NULL. */
bool maps_next(struct maps_reader *reader, struct maps_entry *entry, struct maps_file *file);
/* Whether some file is mapped from @start to @end: no, or perhaps. Much quicker than to read, from
 * Linux 6.11 on. */
bool maps_has_file(const struct maps_reader *reader, uint64_t start, uint64_t end);
void maps_close(const struct maps_reader *reader);

/* The mapping around @at; false when there is none, or no /proc. */
bool maps_find(uint64_t at, struct maps_entry *entry);
bool maps_find_file(uint64_t at, struct maps_entry *entry, struct maps_file *file);

#endif
