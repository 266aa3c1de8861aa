/* SPDX-License-Identifier: MIT */
/* The build-ids of files and of the kernel, read without looking at anything else in them. */
#ifndef TOOL_BUILD_ID_H
#define TOOL_BUILD_ID_H

#include <stdint.h>

#define TOOL_BUILD_ID_MAX 20

struct tool_build_id {
	uint8_t size; /* 0: there is none */
	uint8_t bytes[TOOL_BUILD_ID_MAX];
};

/* Of an ELF file. */
void tool_build_id_of_file(const char *path, struct tool_build_id *build_id);

/* Of an ELF note section as sysfs shows it ("/sys/kernel/notes"). */
void tool_build_id_of_notes(const char *path, struct tool_build_id *build_id);

#endif
