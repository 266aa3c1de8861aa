// SPDX-License-Identifier: MIT
/*
 * Where a stripped file's symbols and debug information are kept, in the order of gdb's manual:
 * by build-id, by the name in .gnu_debuglink beside the file or below the debug directory, from a
 * debuginfod server when the user names one. A candidate is used when its build-id is the same, or
 * without build-ids when its checksum is the one that the link gives.
 */
#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/symbol/dso.h"

static uint32_t update_crc(uint32_t crc, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

static bool has_checksum(int fd, uint32_t wanted)
{
	uint8_t buffer[16384];
	uint32_t crc = UINT32_MAX;
	off_t at = 0;
	ssize_t size;

	while ((size = pread(fd, buffer, sizeof(buffer), at)) > 0) {
		crc = update_crc(crc, buffer, size);
		at += size;
	}
	return !size && ~crc == wanted;
}

/* Frees @path and returns NULL when it is not the debug file wanted. */
static char *check(char *path, const struct tly_build_id *wanted, const uint32_t *crc)
{
	struct tly_build_id found;
	struct tly_elf file;
	bool good;

	if (!path || tly_elf_open(&file, path, false)) {
		free(path);
		return NULL;
	}
	tly_build_id_of_elf(file.elf, &found);
	if (wanted->size || !crc)
		good = wanted->size && tly_build_id_equal(wanted, &found);
	else
		good = has_checksum(file.fd, *crc);
	tly_elf_close(&file);
	if (good)
		return path;
	free(path);
	return NULL;
}

static char *by_build_id(const char *debug_dir, const struct tly_build_id *id)
{
	char text[TLY_BUILD_ID_TEXT];
	char *path;

	tly_build_id_format(id, text);
	if (asprintf(&path, "%s/.build-id/%.2s/%s.debug", debug_dir, text, text + 2) < 0)
		return NULL;
	return check(path, id, NULL);
}

static char *by_link(const struct tally_dso *dso, Elf *elf, const struct tly_build_id *id)
{
	const char *end = strrchr(dso->path, '/');
	/* Beside the file, below it, and below the debug directory as the file is below the root.
	 */
	const char *const places[][2] = {
		{"", ""}, {"", "/.debug"}, {dso->owner->options.debug_dir, ""}};
	const char *link;
	GElf_Word crc;
	char *path;

	link = dwelf_elf_gnu_debuglink(elf, &crc);
	if (!link || !link[0] || strchr(link, '/') || !end)
		return NULL;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (asprintf(&path, "%s%.*s%s/%s", places[i][0], (int)(end - dso->path), dso->path,
			     places[i][1], link) < 0)
			return NULL;
		/* A link of a file to itself says nothing. */
		if (strcmp(path, dso->path))
			path = check(path, id, &crc);
		else {
			free(path);
			path = NULL;
		}
		if (path)
			return path;
	}
	return NULL;
}

/*
 * libdebuginfod brings an HTTP client with it, so it is opened only by those who asked for it by
 * setting DEBUGINFOD_URLS.
 */
static char *by_debuginfod(const struct tally_dso *dso, const struct tly_build_id *id)
{
	void *(*begin)(void);
	void (*end)(void *);
	int (*find)(void *, const unsigned char *, int, char **);
	const char *urls = getenv("DEBUGINFOD_URLS");
	char *path = NULL;
	void *library, *client;

	if (dso->owner->options.no_debuginfod || !urls || !urls[0])
		return NULL;
	library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return NULL;
	/* It is left open: its HTTP client keeps per-process state that does not survive dlclose().
	 */
	begin = (void *(*)(void))dlsym(library, "debuginfod_begin");
	end = (void (*)(void *))dlsym(library, "debuginfod_end");
	find = (int (*)(void *, const unsigned char *, int, char **))dlsym(
		library, "debuginfod_find_debuginfo");
	client = begin && end && find ? begin() : NULL;
	if (client) {
		int fd = find(client, id->bytes, id->size, &path);

		if (fd >= 0)
			close(fd);
		else
			path = NULL;
		end(client);
	}
	return path;
}

char *tly_debug_file(const struct tally_dso *dso, Elf *elf)
{
	struct tly_build_id id;
	char *path = NULL;

	tly_build_id_of_elf(elf, &id);
	if (id.size)
		path = by_build_id(dso->owner->options.debug_dir, &id);
	if (!path && dso->path)
		path = by_link(dso, elf, &id);
	if (!path && id.size)
		path = by_debuginfod(dso, &id);
	return path;
}
