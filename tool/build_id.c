// SPDX-License-Identifier: MIT
#include "tool/build_id.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void take_build_id(struct tool_build_id *build_id, const void *bytes, size_t size)
{
	if (!size || size > TOOL_BUILD_ID_MAX)
		return;
	build_id->size = size;
	memcpy(build_id->bytes, bytes, size);
}

void tool_build_id_of_notes(const char *path, struct tool_build_id *build_id)
{
	unsigned char notes[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size;
	size_t at = 0;

	build_id->size = 0;
	if (fd < 0)
		return;
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
			take_build_id(build_id, notes + at + name, note.n_descsz);
			break;
		}
		at += name + desc;
	}
}

void tool_build_id_of_file(const char *path, struct tool_build_id *build_id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const void *bytes;
	struct stat st;
	ssize_t size;
	Elf *elf;

	build_id->size = 0;
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		elf_version(EV_CURRENT);
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
