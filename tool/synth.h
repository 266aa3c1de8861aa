/* SPDX-License-Identifier: MIT */
/*
 * Side-band records for what was there before the recording began: the kernel and its modules, the
 * tasks, what they have mapped. Written as the kernel would have, had it been asked in time, so
 * that readers need not know the difference; their time is 0.
 */
#ifndef TOOL_SYNTH_H
#define TOOL_SYNTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct tool_synth_file;

struct tool_synth {
	const char *root;    /* prefix of /proc and /sys: "" but for tests */
	size_t trailer_size; /* tally_record_format.trailer_size of the events */
	bool data_maps;	     /* mappings that are not executable, too (ABI: attr.mmap_data) */

	/* What was written so far; to be freed. */
	unsigned char *data;
	size_t size, max;
	bool failed; /* out of memory: records are missing */

	struct tool_synth_file *files; /* build-ids of files that were seen */
	size_t nr_files, max_files;
};

void tool_synth_init(struct tool_synth *synth, const char *root, size_t trailer_size);
void tool_synth_free(struct tool_synth *synth);

/*
 * The kernel's text and modules. Returns false, with nothing written, when /proc/kallsyms does not
 * tell this user any address.
 */
bool tool_synth_kernel(struct tool_synth *synth);

/* Every cgroup that the kernel may name in samples. */
void tool_synth_cgroups(struct tool_synth *synth);

/* The process of @task with its threads and maps; nothing when it has ended meanwhile. */
void tool_synth_process(struct tool_synth *synth, pid_t task);
/* Every process. */
void tool_synth_all(struct tool_synth *synth);

/* PERF_RECORD_THREAD_MAP and PERF_RECORD_CPU_MAP of perf.data: what was measured. */
void tool_synth_thread_map(struct tool_synth *synth, const pid_t *tids, size_t nr);
void tool_synth_cpu_map(struct tool_synth *synth, const int *cpus, size_t nr);

/* PERF_RECORD_LOST_SAMPLES: samples that the kernel lost and had no room to tell of. */
void tool_synth_lost_samples(struct tool_synth *synth, uint64_t lost);

/* ---- for the files of synth ---- */

struct tool_build_id {
	uint8_t size; /* 0: there is none */
	uint8_t bytes[20];
};

struct tool_mapping {
	uint32_t pid, tid;
	uint64_t start, len, pgoff;
	unsigned int maj, min;
	uint64_t ino;
	uint32_t prot, flags;
	uint16_t misc;
	const char *name;
	struct tool_build_id build_id;
};

void tool_synth_cgroup(struct tool_synth *synth, uint64_t id, const char *path);
void tool_synth_mapping(struct tool_synth *synth, const struct tool_mapping *mapping);
/* Opens a file below the root to be read; NULL when it cannot be. */
FILE *tool_synth_open(const struct tool_synth *synth, const char *path);

#endif
