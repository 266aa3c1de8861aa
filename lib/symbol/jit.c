// SPDX-License-Identifier: MIT
/*
 * What a JIT compiler says of its code, in the file that perf made the custom:
 *
 *	/tmp/perf-PID.map:	START SIZE name, hexadecimal, up to the end of the line
 *
 * PID is the process's own idea of it, so for one in a container the file is below its root and
 * has its inner pid. The file grows as long as the process runs: an address that is not in it is
 * reason to look again, though not more often than ten times a second.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/symbol/dso.h"

#define LOOK_AGAIN_NS 100000000

/* Callers keep pointers to symbols, so a table that was read anew stays. */
struct tly_retired {
	struct tly_retired *next;
	struct tly_symtab symtab;
};

/* The innermost pid of a live process, @pid itself when it is gone. */
static uint32_t inner_pid(uint32_t pid)
{
	char path[64], line[256];
	uint32_t inner = pid;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	status = fopen(path, "re");
	if (!status)
		return pid;
	while (fgets(line, sizeof(line), status)) {
		if (!strncmp(line, "NSpid:", 6)) {
			const char *last = strrchr(line, '\t');

			inner = strtoul(last ? last : line + 6, NULL, 10);
			break;
		}
	}
	fclose(status);
	return inner;
}

static FILE *open_regular(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	FILE *file = NULL;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, st) && S_ISREG(st->st_mode))
		file = fdopen(fd, "r");
	if (!file)
		close(fd);
	return file;
}

static FILE *open_map(const struct tally_dso *dso, struct stat *st)
{
	const char *symfs = dso->owner->options.symfs;
	uint32_t inner = inner_pid(dso->pid);
	FILE *file = NULL;
	char path[4096];

	if (inner != dso->pid) {
		snprintf(path, sizeof(path), "/proc/%u/root/tmp/perf-%u.map", dso->pid, inner);
		file = open_regular(path, st);
	}
	if (!file) {
		snprintf(path, sizeof(path), "%s/tmp/perf-%u.map", symfs ? symfs : "", dso->pid);
		file = open_regular(path, st);
	}
	return file;
}

static int read_map(struct tally_dso *dso, FILE *file)
{
	struct tly_strings *strings = &dso->owner->strings;
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int ret = 0;

	while (!ret && (len = getline(&line, &size, file)) > 0) {
		uint64_t start, length;
		const char *name;
		char *end;

		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		else if (dso->own_symtab.nr_raw)
			break; /* still being written */
		start = strtoull(line, &end, 16);
		if (end == line || *end != ' ')
			continue;
		length = strtoull(end + 1, &end, 16);
		if (*end != ' ' || !end[1] || !length)
			continue;
		name = tly_strings_intern(strings, end + 1);
		ret = name ? tly_symtab_add(&dso->own_symtab, start, length, name, TLY_GLOBAL)
			   : -ENOMEM;
	}
	free(line);
	return ret ? ret : tly_symtab_finish_jit(&dso->own_symtab, strings);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int64_t modified(const struct stat *st)
{
	return st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
}

void tly_dso_load_jit(struct tally_dso *dso)
{
	struct stat st;
	FILE *file = open_map(dso, &st);

	dso->jit_checked = now();
	if (!file) {
		tly_dso_problem(
			dso,
			"let its runtime write one: node --perf-basic-prof, python3.12 -X "
			"perf, java 17 -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
			"the process left no /tmp/perf-%u.map that names this code", dso->pid);
		return;
	}
	dso->jit_size = st.st_size;
	dso->jit_mtime = modified(&st);
	dso->problem = NULL;
	read_map(dso, file);
	fclose(file);
}

bool tly_dso_refresh_jit(struct tally_dso *dso)
{
	struct tly_retired *retired;
	struct stat st;
	FILE *file;
	bool changed;

	if (now() - dso->jit_checked < LOOK_AGAIN_NS)
		return false;
	dso->jit_checked = now();
	file = open_map(dso, &st);
	if (!file)
		return false;
	changed = st.st_size != dso->jit_size || modified(&st) != dso->jit_mtime;
	fclose(file);
	retired = changed ? calloc(1, sizeof(*retired)) : NULL;
	if (!retired)
		return false;
	retired->symtab = dso->own_symtab;
	retired->next = dso->retired;
	dso->retired = retired;
	memset(&dso->own_symtab, 0, sizeof(dso->own_symtab));
	tly_dso_load_jit(dso);
	return true;
}

void tly_dso_free_jit(struct tally_dso *dso)
{
	struct tly_retired *retired, *next;

	for (retired = dso->retired; retired; retired = next) {
		next = retired->next;
		tly_symtab_free(&retired->symtab);
		free(retired);
	}
}
