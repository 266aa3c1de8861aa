// SPDX-License-Identifier: MIT
#include "runtime/linux/event_mappings.h"

#include <asm/mman.h>
#include <asm/stat.h>
#include <linux/elf.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/stat.h>

#include "core/core.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/memory_map.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/linux/syscalls.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"
#include "runtime/translate/translate.h"

enum { SEGMENTS = 64, NOTES = 4096, BUILD_ID = 3 };

static bool read_at(int64_t fd, void *to, uint64_t size, uint64_t offset)
{
	return sys(__NR_pread64, fd, to, size, offset) == (int64_t)size;
}

/* Among the notes of a segment. */
static bool find_id(const char *notes, uint64_t size, struct core_mapping *mapping)
{
	Elf64_Nhdr note;

	for (uint64_t at = 0; at + sizeof(note) <= size;) {
		memcpy(&note, notes + at, sizeof(note));
		uint64_t name = at + sizeof(note), id = name + ((note.n_namesz + 3ul) & ~3ul);

		if (id > size || note.n_descsz > size - id)
			return false;
		if (note.n_type == BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && note.n_descsz &&
		    note.n_descsz <= sizeof(mapping->build_id)) {
			memcpy(mapping->build_id, notes + id, note.n_descsz);
			mapping->build_id_size = (uint8_t)note.n_descsz;
			return true;
		}
		at = id + ((note.n_descsz + 3ul) & ~3ul);
	}
	return false;
}

/* A file that is none, or has none, leaves it empty. */
static void read_build_id(int64_t fd, struct core_mapping *mapping)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	char notes[NOTES];

	if (!read_at(fd, &header, sizeof(header), 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_phentsize != sizeof(segment))
		return;
	for (unsigned int i = 0; i < header.e_phnum && i < SEGMENTS; i++) {
		if (!read_at(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment)))
			return;
		if (segment.p_type == PT_NOTE && segment.p_filesz <= sizeof(notes) &&
		    read_at(fd, notes, segment.p_filesz, segment.p_offset) &&
		    find_id(notes, segment.p_filesz, mapping))
			return;
	}
}

/* What only the file itself says. To open a device may do something. */
static void look_into(const char *path, struct core_mapping *mapping)
{
	uint32_t generation;
	struct stat file;
	int64_t fd;

	if (sys(__NR_newfstatat, AT_FDCWD, path, &file, 0) || !S_ISREG(file.st_mode))
		return;
	fd = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	read_build_id(fd, mapping);
	if (!sys(__NR_ioctl, fd, FS_IOC_GETVERSION, &generation))
		mapping->inode_generation = generation;
	sys(__NR_close, fd);
}

/* Of what is no file the kernel counts from address 0; /proc does not show that. */
static uint64_t offset_of(uint64_t start, const struct maps_entry *entry,
			  const struct maps_file *file)
{
	if (file->inode)
		return file->offset + (start - entry->start);
	return file->path[0] && strcmp(file->path, "[heap]") ? 0 : start;
}

/* As the program sees it: code that can only be executed the runtime can read as well. */
static uint32_t prot_at(uint64_t address, const struct maps_entry *entry)
{
	const struct range *range;
	uint32_t prot = entry->prot;

	translate_lock();
	range = map_at(address);
	if (range && range->kind != RANGE_OWN)
		prot = range->prot;
	translate_unlock();
	return prot;
}

/* @size bytes at @start, within @entry. */
static void tell(struct thread *thread, uint64_t start, uint64_t size,
		 const struct maps_entry *entry, const struct maps_file *file)
{
	struct core_mapping mapping = {
		.start = start,
		.length = size,
		.offset = offset_of(start, entry, file),
		.major = file->major,
		.minor = file->minor,
		.inode = file->inode,
		.prot = prot_at(start, entry),
		.flags = file->shared ? MAP_SHARED : MAP_PRIVATE,
		.path = file->path[0] ? file->path : "//anon",
	};

	if (file->path[0] == '/' && core_tells_file(&thread->events, &mapping))
		look_into(file->path, &mapping);
	core_mapped(&thread->events, &mapping);
}

static bool find(struct thread *thread, uint64_t start, struct maps_entry *entry,
		 struct maps_file *file)
{
	return thread->events.mappings && arena_events() && maps_find_file(start, entry, file);
}

void event_mapped(struct thread *thread, uint64_t start, uint64_t size)
{
	struct maps_entry entry;
	struct maps_file file;

	if (size && find(thread, start, &entry, &file))
		tell(thread, start, PAGE_UP(size), &entry, &file);
}

/* What another key protects has changed, too. */
static bool changes(const struct syscall *call, uint64_t address, const struct maps_entry *entry)
{
	const uint64_t prot = call->args[2] & (PROT_READ | PROT_WRITE | PROT_EXEC);

	if ((uint32_t)call->number == __NR_pkey_mprotect && (int)call->args[3] != -1)
		return true;
	return prot_at(address, entry) != prot;
}

static void note_piece(struct event_pieces *pieces, uint64_t start, uint64_t end)
{
	if (pieces->nr == EVENT_PIECES)
		pieces->pieces[EVENT_PIECES - 1].end = end;
	else
		pieces->pieces[pieces->nr++] = (struct event_piece){start, end};
}

void event_protecting(struct thread *thread, const struct syscall *call,
		      struct event_pieces *pieces)
{
	const uint64_t start = call->args[0], end = PAGE_UP(start + call->args[1]);
	struct maps_reader reader;
	struct maps_entry entry;

	pieces->nr = 0;
	if (!thread->events.mappings || !arena_events() || !maps_open(&reader))
		return;
	while (maps_next(&reader, &entry, NULL) && entry.start < end) {
		const uint64_t at = entry.start > start ? entry.start : start;

		if (at < entry.end && changes(call, at, &entry))
			note_piece(pieces, at, entry.end < end ? entry.end : end);
	}
	maps_close(&reader);
}

void event_protected(struct thread *thread, const struct event_pieces *pieces)
{
	for (unsigned int i = 0; i < pieces->nr; i++)
		event_mapped(thread, pieces->pieces[i].start,
			     pieces->pieces[i].end - pieces->pieces[i].start);
}

void event_mapped_whole(struct thread *thread, uint64_t start)
{
	struct maps_entry entry;
	struct maps_file file;

	if (find(thread, start, &entry, &file))
		tell(thread, start, entry.end - start, &entry, &file);
}

void event_mapped_heap(struct thread *thread, uint64_t start, uint64_t size, bool first)
{
	struct maps_entry entry;
	struct maps_file file;

	if (!find(thread, start, &entry, &file))
		return;
	memcpy(file.path, "[heap]", first ? 0 : 7);
	tell(thread, start, size, &entry, &file);
}

void event_mapped_ring(struct thread *thread, uint64_t start, uint64_t size)
{
	static const char name[] = "anon_inode:[perf_event]";
	struct maps_entry entry;
	struct maps_file file;

	if (!find(thread, start, &entry, &file))
		return;
	memcpy(file.path, name, sizeof(name));
	/* Where it lies in the arena is nobody's business, nor what lies before it there. */
	entry.start = start;
	file.offset = 0;
	tell(thread, start, PAGE_UP(size), &entry, &file);
}

/* As far as the runtime's own mappings and the program's are not of one piece to the kernel. */
static bool is_own(uint64_t address)
{
	const struct range *range;
	bool own;

	translate_lock();
	range = map_at(address);
	own = range && range->kind == RANGE_OWN;
	translate_unlock();
	return own;
}

void event_mapped_all(struct thread *thread)
{
	struct maps_reader reader;
	struct maps_entry entry;
	struct maps_file file;

	if (!thread->events.mappings || !arena_events() || !maps_open(&reader))
		return;
	while (maps_next(&reader, &entry, &file))
		if (entry.start < ADDRESS_MAX && !is_own(entry.start))
			tell(thread, entry.start, entry.end - entry.start, &entry, &file);
	maps_close(&reader);
}
