// SPDX-License-Identifier: MIT
#include "tool/synth.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <tally/perfdata.h>
#include <tally/symbol.h>

/* A file is read once, however many processes have it mapped. */
struct tool_synth_file {
	unsigned int maj, min;
	uint64_t ino;
	struct tool_build_id build_id;
};

void tool_synth_init(struct tool_synth *synth, const char *root, size_t trailer_size)
{
	*synth = (struct tool_synth){.root = root, .trailer_size = trailer_size};
}

void tool_synth_free(struct tool_synth *synth)
{
	free(synth->data);
	free(synth->files);
	synth->data = NULL;
	synth->files = NULL;
}

/* ---- records ---- */

/*
 * Room for a record of @fixed bytes, a string behind them and the trailer, all of it zero but for
 * the header and the string. NULL when memory is short, or the string is absurd.
 */
static void *add_record(struct tool_synth *synth, uint32_t type, uint16_t misc, size_t fixed,
			const char *string, bool trailer)
{
	size_t length = string ? (strlen(string) + 1 + 7) & ~(size_t)7 : 0;
	size_t size = fixed + length + (trailer ? synth->trailer_size : 0);
	struct perf_event_header *header;

	if (size > UINT16_MAX)
		return NULL;
	if (synth->size + size > synth->max) {
		size_t max = synth->max ? 2 * synth->max : 256 * 1024;
		unsigned char *grown = realloc(synth->data, max);

		if (!grown) {
			synth->failed = true;
			return NULL;
		}
		synth->data = grown;
		synth->max = max;
	}
	header = memset(synth->data + synth->size, 0, size);
	*header = (struct perf_event_header){type, misc, size};
	if (string)
		memcpy((char *)header + fixed, string, strlen(string));
	synth->size += size;
	return header;
}

static void add_comm(struct tool_synth *synth, pid_t pid, pid_t tid, const char *comm)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
	} *record = add_record(synth, PERF_RECORD_COMM, 0, sizeof(*record), comm, true);

	if (record) {
		record->pid = pid;
		record->tid = tid;
	}
}

static void add_fork(struct tool_synth *synth, pid_t pid, pid_t ppid, pid_t tid)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} * record;

	/* Not a fork(2) that shares the parent's maps: its own follow. */
	record = add_record(synth, PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC, sizeof(*record),
			    NULL, true);
	if (record) {
		record->pid = pid;
		record->ppid = ppid;
		record->tid = tid;
		record->ptid = tid == pid ? ppid : pid;
	}
}

void tool_synth_mapping(struct tool_synth *synth, const struct tool_mapping *mapping)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t start, len, pgoff;
		union {
			struct {
				uint32_t maj, min;
				uint64_t ino, ino_generation;
			};
			struct {
				uint8_t build_id_size;
				uint8_t reserved[3];
				uint8_t build_id[20];
			};
		};
		uint32_t prot, flags;
	} * record;
	uint16_t misc = mapping->misc;

	if (mapping->build_id.size)
		misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	record = add_record(synth, PERF_RECORD_MMAP2, misc, sizeof(*record), mapping->name, true);
	if (!record)
		return;
	record->pid = mapping->pid;
	record->tid = mapping->tid;
	record->start = mapping->start;
	record->len = mapping->len;
	record->pgoff = mapping->pgoff;
	record->prot = mapping->prot;
	record->flags = mapping->flags;
	if (mapping->build_id.size) {
		record->build_id_size = mapping->build_id.size;
		memcpy(record->build_id, mapping->build_id.bytes, mapping->build_id.size);
	} else {
		record->maj = mapping->maj;
		record->min = mapping->min;
		record->ino = mapping->ino;
	}
}

/* ---- build-ids ---- */

static size_t hash_file(const struct tool_mapping *mapping)
{
	return (mapping->ino * 31 + mapping->min) * 31 + mapping->maj;
}

static struct tool_synth_file *file_slot(struct tool_synth_file *files, size_t max,
					 const struct tool_mapping *mapping)
{
	for (size_t i = hash_file(mapping) & (max - 1);; i = (i + 1) & (max - 1)) {
		struct tool_synth_file *file = &files[i];

		if (!file->ino || (file->ino == mapping->ino && file->maj == mapping->maj &&
				   file->min == mapping->min))
			return file;
	}
}

static bool grow_files(struct tool_synth *synth)
{
	size_t max = synth->max_files ? 2 * synth->max_files : 256;
	struct tool_synth_file *files = calloc(max, sizeof(*files));

	if (!files)
		return false;
	for (size_t i = 0; i < synth->max_files; i++) {
		const struct tool_synth_file *old = &synth->files[i];
		struct tool_mapping key = {.maj = old->maj, .min = old->min, .ino = old->ino};

		if (old->ino)
			*file_slot(files, max, &key) = *old;
	}
	free(synth->files);
	synth->files = files;
	synth->max_files = max;
	return true;
}

/*
 * The build-id of a mapped file. It is opened by way of its process's root, so that programs in
 * containers are found; the inode says whether it is still the file that was mapped.
 */
static void find_build_id(struct tool_synth *synth, struct tool_mapping *mapping)
{
	struct tool_synth_file *file;
	char path[PATH_MAX + 64];
	struct stat st;

	if (mapping->name[0] != '/' || !mapping->ino)
		return;
	if (2 * (synth->nr_files + 1) > synth->max_files && !grow_files(synth))
		return;
	file = file_slot(synth->files, synth->max_files, mapping);
	if (!file->ino) {
		*file = (struct tool_synth_file){mapping->maj, mapping->min, mapping->ino, {0}};
		synth->nr_files++;
		snprintf(path, sizeof(path), "%s/proc/%u/root%s", synth->root, mapping->pid,
			 mapping->name);
		if (stat(path, &st) == 0 && st.st_ino == mapping->ino)
			file->build_id.size = tally_build_id_read(path, file->build_id.bytes);
	}
	mapping->build_id = file->build_id;
}

/* ---- processes ---- */

FILE *tool_synth_open(const struct tool_synth *synth, const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", synth->root, path);
	return fopen(full, "re");
}

/* Octal escapes in a name of /proc/PID/maps: only a newline is written so. */
static void unescape(char *name)
{
	char *to = name;

	for (const char *from = name; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static void add_maps(struct tool_synth *synth, pid_t pid)
{
	char path[64], *line = NULL;
	size_t line_size = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = tool_synth_open(synth, path);
	if (!maps)
		return;
	while (getline(&line, &line_size, maps) > 0) {
		struct tool_mapping mapping = {
			.pid = pid, .tid = pid, .misc = PERF_RECORD_MISC_USER};
		char access[5];
		uint64_t end;
		int name = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
			   &mapping.start, &end, access, &mapping.pgoff, &mapping.maj, &mapping.min,
			   &mapping.ino, &name) != 7 ||
		    !name)
			continue;
		if (access[2] != 'x') {
			if (!synth->data_maps || access[0] != 'r')
				continue;
			mapping.misc |= PERF_RECORD_MISC_MMAP_DATA;
		}
		line[strcspn(line, "\n")] = '\0';
		unescape(line + name);
		mapping.name = line[name] ? line + name : "//anon";
		mapping.len = end - mapping.start;
		mapping.prot = (access[0] == 'r' ? PROT_READ : 0) |
			       (access[1] == 'w' ? PROT_WRITE : 0) |
			       (access[2] == 'x' ? PROT_EXEC : 0);
		mapping.flags = access[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
		find_build_id(synth, &mapping);
		tool_synth_mapping(synth, &mapping);
	}
	free(line);
	fclose(maps);
}

static bool read_comm(const struct tool_synth *synth, pid_t pid, pid_t tid, char comm[64])
{
	char path[64];
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	file = tool_synth_open(synth, path);
	if (!file)
		return false;
	size = fread(comm, 1, 63, file);
	fclose(file);
	/* A name may hold a newline of its own: only the last one was added. */
	if (size && comm[size - 1] == '\n')
		size--;
	comm[size] = '\0';
	return true;
}

static bool read_ids(const struct tool_synth *synth, pid_t tid, pid_t *pid, pid_t *parent)
{
	char path[64], line[256];
	FILE *file;

	*pid = *parent = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	file = tool_synth_open(synth, path);
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "Tgid: %d", pid);
		if (sscanf(line, "PPid: %d", parent) == 1)
			break;
	}
	if (file)
		fclose(file);
	return *pid;
}

static bool is_number(const char *name)
{
	return isdigit((unsigned char)name[0]);
}

void tool_synth_process(struct tool_synth *synth, pid_t task)
{
	char path[PATH_MAX], comm[64];
	struct dirent *entry;
	pid_t pid, parent;
	DIR *tasks;

	if (!read_ids(synth, task, &pid, &parent) || !read_comm(synth, pid, pid, comm))
		return;
	add_fork(synth, pid, parent, pid);
	add_comm(synth, pid, pid, comm);
	add_maps(synth, pid);

	snprintf(path, sizeof(path), "%s/proc/%d/task", synth->root, pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		pid_t tid = is_number(entry->d_name) ? atoi(entry->d_name) : pid;

		if (tid == pid || !read_comm(synth, pid, tid, comm))
			continue;
		add_fork(synth, pid, pid, tid);
		add_comm(synth, pid, tid, comm);
	}
	if (tasks)
		closedir(tasks);
}

void tool_synth_all(struct tool_synth *synth)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *processes;

	snprintf(path, sizeof(path), "%s/proc", synth->root);
	processes = opendir(path);
	while (processes && (entry = readdir(processes)))
		if (is_number(entry->d_name))
			tool_synth_process(synth, atoi(entry->d_name));
	if (processes)
		closedir(processes);
}

/* ---- what was measured ---- */

void tool_synth_thread_map(struct tool_synth *synth, const pid_t *tids, size_t nr)
{
	struct entry {
		uint64_t tid;
		char comm[16];
	};
	struct {
		struct perf_event_header header;
		uint64_t nr;
		struct entry entries[];
	} * record;

	/* A record holds so many and no more. */
	if (nr > (UINT16_MAX - sizeof(*record)) / sizeof(struct entry))
		nr = (UINT16_MAX - sizeof(*record)) / sizeof(struct entry);
	record = add_record(synth, TALLY_RECORD_THREAD_MAP, 0,
			    sizeof(*record) + nr * sizeof(struct entry), NULL, false);
	if (!record)
		return;
	record->nr = nr;
	for (size_t i = 0; i < nr; i++) {
		char comm[64] = "";

		read_comm(synth, tids[i], tids[i], comm);
		record->entries[i].tid = (int64_t)tids[i];
		memcpy(record->entries[i].comm, comm, strnlen(comm, 15));
	}
}

void tool_synth_cgroup(struct tool_synth *synth, uint64_t id, const char *path)
{
	struct {
		struct perf_event_header header;
		uint64_t id;
	} *record = add_record(synth, PERF_RECORD_CGROUP, 0, sizeof(*record), path, true);

	if (record)
		record->id = id;
}

void tool_synth_lost_samples(struct tool_synth *synth, uint64_t lost)
{
	struct {
		struct perf_event_header header;
		uint64_t lost;
	} *record = add_record(synth, PERF_RECORD_LOST_SAMPLES, 0, sizeof(*record), NULL, true);

	if (record)
		record->lost = lost;
}

void tool_synth_cpu_map(struct tool_synth *synth, const int *cpus, size_t nr)
{
	struct {
		struct perf_event_header header;
		uint16_t type; /* 0: a plain list */
		uint16_t nr;
		uint16_t cpus[];
	} * record;
	size_t size;

	if (nr > (UINT16_MAX - sizeof(*record) - 7) / sizeof(uint16_t))
		nr = (UINT16_MAX - sizeof(*record) - 7) / sizeof(uint16_t);
	size = (sizeof(*record) + nr * sizeof(uint16_t) + 7) & ~(size_t)7;
	record = add_record(synth, TALLY_RECORD_CPU_MAP, 0, size, NULL, false);
	if (!record)
		return;
	record->nr = nr;
	for (size_t i = 0; i < nr; i++)
		record->cpus[i] = cpus[i];
}
