/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/maps, smaps and numa_maps as the program would have them without the runtime: what is
 * the runtime's is not there, code has the permissions that the program gave it, and what only
 * these have cut is one mapping again. Line by line, from what the kernel says.
 */
#ifndef RUNTIME_LINUX_MAPS_VIEW_H
#define RUNTIME_LINUX_MAPS_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/linux/memory_map.h"

/* What the runtime knows of the process's memory. */
struct maps_layout {
	const struct range *ranges; /* as in the memory map */
	size_t nr;
	uint64_t heap_start, heap_end; /* whole pages; the same: there is none */
};

enum {
	MAPS_LINE = 4096 + 512, /* longer ones are given up */
	MAPS_FIELDS = 40,
};

/* A line of smaps below that of its mapping. */
struct maps_field {
	char text[160]; /* whole, or of a size what comes before the number, up to the colon */
	bool is_size;	/* in kB */
	uint64_t size;
};

struct maps_mapping {
	uint64_t start, end, offset;
	bool of_file;
	char kernels[5], perms[5]; /* "rwxp", as the kernel has it, and as it is shown */
	const char *name;	   /* in @text, behind the device and the inode */
	char text[MAPS_LINE];
	size_t nr_fields;
	struct maps_field fields[MAPS_FIELDS];
};

struct maps_view {
	const struct maps_layout *layout;
	void (*put)(void *to, const char *text, size_t size);
	void *to;
	bool has_line, has_shown;
	bool is_first; /* what is shown next is the first of @line that is */
	struct maps_mapping line, shown;
};

void maps_view_begin(struct maps_view *view, const struct maps_layout *layout,
		     void (*put)(void *to, const char *text, size_t size), void *to);

/* The next line, with '\0' in place of its end. False: it is none that can be understood. */
bool maps_view_line(struct maps_view *view, const char *line);

void maps_view_end(struct maps_view *view);

/* Whether @name, "START-END", in /proc/PID/map_files is one that is not there; @layout as above. */
bool maps_view_hides(const char *name, const void *layout);

#endif
