// SPDX-License-Identifier: MIT
#include "runtime/linux/proc_maps.h"

#include <asm/errno.h>
#include <asm/ioctl.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <stddef.h>

#include "runtime/say.h"
#include "runtime/sys.h"

/* Lines are read a buffer at a time: "start-end rwxp ..." matters, the rest may be any length. */
static int next_char(struct maps_reader *reader)
{
	if (reader->at == reader->filled) {
		int64_t n = sys(__NR_read, reader->fd, reader->buffer, sizeof(reader->buffer));

		if (n <= 0)
			return -1;
		reader->at = 0;
		reader->filled = (uint32_t)n;
	}
	return (unsigned char)reader->buffer[reader->at++];
}

/* A hexadecimal number and the character behind it. */
static int read_hex(struct maps_reader *reader, uint64_t *value)
{
	int c;

	*value = 0;
	for (;;) {
		c = next_char(reader);
		if (c >= '0' && c <= '9')
			*value = *value * 16 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value * 16 + (uint64_t)(c - 'a' + 10);
		else
			return c;
	}
}

static bool read_range(struct maps_reader *reader, struct maps_entry *entry)
{
	if (read_hex(reader, &entry->start) != '-' || read_hex(reader, &entry->end) != ' ')
		return false;
	entry->prot = 0;
	entry->prot |= next_char(reader) == 'r' ? PROT_READ : 0;
	entry->prot |= next_char(reader) == 'w' ? PROT_WRITE : 0;
	entry->prot |= next_char(reader) == 'x' ? PROT_EXEC : 0;
	return true;
}

static void skip_line(struct maps_reader *reader)
{
	int c;

	do
		c = next_char(reader);
	while (c >= 0 && c != '\n');
}

/* What follows the permissions: "p 00001000 fe:01 1234      /path". */
static void read_file(struct maps_reader *reader, struct maps_file *file)
{
	uint64_t number;
	size_t length = 0;
	int c;

	file->shared = next_char(reader) == 's';
	next_char(reader);
	read_hex(reader, &file->offset);
	read_hex(reader, &number);
	file->major = (uint32_t)number;
	read_hex(reader, &number);
	file->minor = (uint32_t)number;
	for (file->inode = 0; (c = next_char(reader)) >= '0' && c <= '9';)
		file->inode = file->inode * 10 + (uint64_t)(c - '0');
	while (c == ' ')
		c = next_char(reader);
	for (; c >= 0 && c != '\n'; c = next_char(reader))
		if (length < sizeof(file->path) - 1)
			file->path[length++] = (char)c;
	file->path[length] = '\0';
}

uint64_t maps_device(const struct maps_file *file)
{
	return (file->minor & 0xff) | (uint64_t)file->major << 8 |
	       (uint64_t)(file->minor & ~0xffU) << 12;
}

static bool open_file(struct maps_reader *reader, const char *path)
{
	reader->fd = (int)sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	reader->at = reader->filled = 0;
	return reader->fd >= 0;
}

bool maps_open(struct maps_reader *reader)
{
	return open_file(reader, "/proc/self/maps");
}

bool maps_open_of(struct maps_reader *reader, int pid)
{
	char path[32];

	format(path, sizeof(path), "/proc/%d/maps", (int64_t)pid);
	return open_file(reader, path);
}

bool maps_next(struct maps_reader *reader, struct maps_entry *entry, struct maps_file *file)
{
	if (!read_range(reader, entry))
		return false;
	if (file)
		read_file(reader, file);
	else
		skip_line(reader);
	return true;
}

/* PROCMAP_QUERY, which older headers do not have. */
struct query {
	uint64_t size, flags, address;
	uint64_t start, end, mapping_flags, page_size, offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct query)

bool maps_has_file(const struct maps_reader *reader, uint64_t start, uint64_t end)
{
	enum { OR_NEXT = 0x10, OF_FILE = 0x20 };
	struct query query = {
		.size = sizeof(query),
		.flags = OR_NEXT | OF_FILE,
		.address = start,
	};
	const int64_t error = sys(__NR_ioctl, reader->fd, QUERY, &query);

	return error ? error != -ENOENT : query.start < end;
}

void maps_close(const struct maps_reader *reader)
{
	sys(__NR_close, reader->fd);
}

static bool find(uint64_t at, struct maps_entry *entry, struct maps_file *file)
{
	struct maps_reader reader;
	bool found = false;

	if (!maps_open(&reader))
		return false;
	while (!found && maps_next(&reader, entry, file) && entry->start <= at)
		found = at < entry->end;
	maps_close(&reader);
	return found;
}

bool maps_find(uint64_t at, struct maps_entry *entry)
{
	return find(at, entry, NULL);
}

bool maps_find_file(uint64_t at, struct maps_entry *entry, struct maps_file *file)
{
	return find(at, entry, file);
}
