// SPDX-License-Identifier: MIT
#include "tool/synth.h"

#include <ctype.h>
#include <dirent.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <tally/perfdata.h>

#define KERNEL_PID   UINT32_MAX /* as the kernel's own records of its text have it */
#define BUILD_ID_MAX 20

struct build_id {
	uint8_t size;
	uint8_t bytes[BUILD_ID_MAX];
};

/* A file is read once, however many processes have it mapped. */
struct tool_synth_file {
	unsigned int maj, min;
	uint64_t ino;
	struct build_id build_id;
};

struct mapping {
	uint32_t pid, tid;
	uint64_t start, len, pgoff;
	unsigned int maj, min;
	uint64_t ino;
	uint32_t prot, flags;
	uint16_t misc;
	const char *name;
	struct build_id build_id;
};

void tool_synth_init(struct tool_synth *synth, const char *root, size_t trailer_size)
{
	*synth = (struct tool_synth){.root = root, .trailer_size = trailer_size};
	elf_version(EV_CURRENT);
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

static void add_mapping(struct tool_synth *synth, const struct mapping *mapping)
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
				uint8_t build_id[BUILD_ID_MAX];
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

static void take_build_id(struct build_id *build_id, const void *bytes, size_t size)
{
	if (!size || size > BUILD_ID_MAX)
		return;
	build_id->size = size;
	memcpy(build_id->bytes, bytes, size);
}

size_t tool_build_id_of_notes(const char *path, uint8_t build_id[20])
{
	unsigned char notes[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct build_id found = {0};
	ssize_t size;
	size_t at = 0;

	if (fd < 0)
		return 0;
	size = read(fd, notes, sizeof(notes));
	close(fd);
	while (size > 0 && (size_t)size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;

		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		uint64_t name = ((uint64_t)note.n_namesz + 3) & ~UINT64_C(3);
		uint64_t desc = ((uint64_t)note.n_descsz + 3) & ~UINT64_C(3);

		if (name + desc > (size_t)size - at)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + at, "GNU", 4)) {
			take_build_id(&found, notes + at + name, note.n_descsz);
			break;
		}
		at += name + desc;
	}
	memcpy(build_id, found.bytes, found.size);
	return found.size;
}

static void read_build_id(const char *path, struct build_id *build_id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const void *bytes;
	struct stat st;
	ssize_t size;
	Elf *elf;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		elf = elf_begin(fd, ELF_C_READ, NULL);
		if (elf) {
			size = dwelf_elf_gnu_build_id(elf, &bytes);
			if (size > 0)
				take_build_id(build_id, bytes, size);
			elf_end(elf);
		}
	}
	close(fd);
}

static size_t hash_file(const struct mapping *mapping)
{
	return (mapping->ino * 31 + mapping->min) * 31 + mapping->maj;
}

static struct tool_synth_file *file_slot(struct tool_synth_file *files, size_t max,
					 const struct mapping *mapping)
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
		struct mapping key = {.maj = old->maj, .min = old->min, .ino = old->ino};

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
static void find_build_id(struct tool_synth *synth, struct mapping *mapping)
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
			read_build_id(path, &file->build_id);
	}
	mapping->build_id = file->build_id;
}

/* ---- the kernel ---- */

static FILE *open_file(const struct tool_synth *synth, const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", synth->root, path);
	return fopen(full, "re");
}

/* "  01000000-02209987 : Kernel code": its size, 0 where the addresses are hidden. */
static uint64_t kernel_code_size(const struct tool_synth *synth)
{
	FILE *iomem = open_file(synth, "/proc/iomem");
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
	FILE *kallsyms = open_file(synth, "/proc/kallsyms");
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
	FILE *modules = open_file(synth, "/proc/modules");
	char line[1024], name[128], path[PATH_MAX], notes[PATH_MAX];
	size_t list_size;
	char *list;

	if (!modules)
		return;
	list = read_module_list(synth, &list_size);
	while (fgets(line, sizeof(line), modules)) {
		struct mapping mapping = {
			.pid = KERNEL_PID, .misc = PERF_RECORD_MISC_KERNEL, .name = path};

		if (sscanf(line, "%127s %" SCNu64 " %*s %*s %*s %" SCNx64, name, &mapping.len,
			   &mapping.start) != 3 ||
		    !mapping.start)
			continue;
		module_path(synth, name, list, list_size, path, sizeof(path));
		snprintf(notes, sizeof(notes), "%s/sys/module/%s/notes/.note.gnu.build-id",
			 synth->root, name);
		mapping.build_id.size = tool_build_id_of_notes(notes, mapping.build_id.bytes);
		add_mapping(synth, &mapping);
	}
	free(list);
	fclose(modules);
}

bool tool_synth_kernel(struct tool_synth *synth)
{
	struct mapping mapping = {.pid = KERNEL_PID,
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
	mapping.build_id.size = tool_build_id_of_notes(notes, mapping.build_id.bytes);
	add_mapping(synth, &mapping);
	add_modules(synth);
	return true;
}

/* ---- processes ---- */

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
	maps = open_file(synth, path);
	if (!maps)
		return;
	while (getline(&line, &line_size, maps) > 0) {
		struct mapping mapping = {.pid = pid, .tid = pid, .misc = PERF_RECORD_MISC_USER};
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
		add_mapping(synth, &mapping);
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
	file = open_file(synth, path);
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
	file = open_file(synth, path);
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
