// SPDX-License-Identifier: MIT
#include "lib/symbol/build_id.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tally/symbol.h>

#include "lib/symbol/elffile.h"

void tly_build_id_format(const struct tly_build_id *id, char text[TLY_BUILD_ID_TEXT])
{
	text[0] = '\0';
	for (unsigned int i = 0; i < id->size; i++)
		sprintf(text + 2 * i, "%02x", id->bytes[i]);
}

/* Records have room for 20 bytes; of a longer one they hold the beginning. */
static void take(struct tly_build_id *build_id, const void *bytes, size_t size)
{
	build_id->size = size < TLY_BUILD_ID_MAX ? size : TLY_BUILD_ID_MAX;
	memcpy(build_id->bytes, bytes, build_id->size);
}

void tly_build_id_of_elf(Elf *elf, struct tly_build_id *build_id)
{
	const void *bytes;
	ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);

	build_id->size = 0;
	if (size > 0)
		take(build_id, bytes, size);
}

static size_t padded(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

/* A section of notes: a header, the name and the description, each padded to four bytes. */
static void find_in_notes(const uint8_t *notes, size_t size, struct tly_build_id *build_id)
{
	Elf64_Nhdr note;

	while (size >= sizeof(note)) {
		const uint8_t *name = notes + sizeof(note);
		size_t rest = size - sizeof(note);

		memcpy(&note, notes, sizeof(note));
		if (padded(note.n_namesz) > rest || note.n_descsz > rest - padded(note.n_namesz))
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU))) {
			take(build_id, name + padded(note.n_namesz), note.n_descsz);
			return;
		}
		rest -= padded(note.n_namesz);
		if (padded(note.n_descsz) > rest)
			return;
		size = rest - padded(note.n_descsz);
		notes = name + padded(note.n_namesz) + padded(note.n_descsz);
	}
}

static void read_notes(const char *path, struct tly_build_id *build_id)
{
	uint8_t notes[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t size;

	if (fd < 0)
		return;
	size = read(fd, notes, sizeof(notes));
	close(fd);
	if (size > 0)
		find_in_notes(notes, size, build_id);
}

void tly_build_id_read(const char *path, struct tly_build_id *build_id)
{
	struct tly_elf file;
	int ret = tly_elf_open(&file, path, false);

	build_id->size = 0;
	if (ret == 0) {
		tly_build_id_of_elf(file.elf, build_id);
		tly_elf_close(&file);
	} else if (ret == -ENOEXEC) {
		read_notes(path, build_id);
	}
}

size_t tally_build_id_read(const char *path, uint8_t build_id[20])
{
	struct tly_build_id found;

	tly_build_id_read(path, &found);
	memcpy(build_id, found.bytes, found.size);
	return found.size;
}
