// SPDX-License-Identifier: MIT
/* MMAP and MMAP2: which mappings are told, and what about them. */
#include <fcntl.h>
#include <link.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "conformance.h"
#include "track.h"

struct mapping {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	char file[];
};

static const struct mapping *mapping_of(const struct perf_event_header *header)
{
	return (const void *)(header + 1);
}

/* Linux leaves the build-id mark of another event's record in ours: that bit tells nothing here. */
static unsigned int misc_of(const struct perf_event_header *header)
{
	return header->misc & ~(unsigned int)PERF_RECORD_MISC_MMAP_BUILD_ID;
}

static char *own_path(void)
{
	char *path = realpath("/proc/self/exe", NULL);

	CHECK(path);
	return path;
}

static void *map_own(int prot, int flags)
{
	int fd = (int)CHECK_OK(open("/proc/self/exe", O_RDONLY));
	void *map = mmap(NULL, 8192, prot, flags, fd, 4096);

	CHECK(map != MAP_FAILED);
	CHECK_OK(close(fd));
	return map;
}

ABI_CASE("attr.mmap record.mmap record.mmap.fields record.misc.user",
	 "an executable mapping: place, length, offset in bytes, file")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	const struct mapping *mapping;
	char *path = own_path();
	struct track t;
	void *map;

	attr.mmap = 1;
	t = abi_track(&attr);
	map_own(PROT_READ, MAP_PRIVATE); /* not executable: nothing */
	map = map_own(PROT_READ | PROT_EXEC, MAP_PRIVATE);
	header = NEXT_IS(&t, PERF_RECORD_MMAP);
	CHECK_EQ(misc_of(header), PERF_RECORD_MISC_USER);
	CHECK_EQ(header->size, 8 + 32 + (strlen(path) + 8) / 8 * 8 + TRAILER_SIZE);
	mapping = mapping_of(header);
	CHECK_EQ(mapping->pid, getpid());
	CHECK_EQ(mapping->tid, getpid());
	CHECK_EQ(mapping->addr, (uintptr_t)map);
	CHECK_EQ(mapping->len, 8192);
	CHECK_EQ(mapping->pgoff, 4096);
	CHECK_EQ(strcmp(mapping->file, path), 0);
	CHECK_EQ(TRAILER(&attr, header).id, ID(t.fd));
	CHECK_OK(munmap(map, 8192));
	CHECK(NEXT(&t.ring) == NULL);
}

ABI_CASE("record.mmap.fields record.mmap record.legacy-munmap attr.legacy-fields",
	 "anonymous ones are //anon; mprotect to executable tells too; munmap is silent")
{
	struct perf_event_attr attr = abi_tracker();
	const struct mapping *mapping;
	struct track t;
	void *map;

	attr.mmap = 1;
	t = abi_track(&attr);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED);
	CHECK_OK(mprotect(map, 4096, PROT_READ | PROT_EXEC));
	mapping = mapping_of(NEXT_IS(&t, PERF_RECORD_MMAP));
	CHECK_EQ(mapping->addr, (uintptr_t)map);
	CHECK_EQ(mapping->len, 4096);
	CHECK_EQ(mapping->pgoff, (uintptr_t)map);
	CHECK_EQ(strcmp(mapping->file, "//anon"), 0);
	CHECK_OK(munmap(map, 4096));
	CHECK(NEXT(&t.ring) == NULL);
}

ABI_CASE("record.mmap.fields record.mmap2.prot_flags",
	 "of what mprotect finds to be so already, nothing; of several mappings, each that changes")
{
	struct perf_event_attr attr = abi_tracker();
	const struct mapping *mapping;
	struct track t;
	char *map;

	attr.mmap = 1;
	map = mmap(NULL, 3 * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED);
	for (int i = 0; i < 2; i++) /* apart, as neither begins in the file where the other ends */
		CHECK(mmap(map + i * 8192, 8192, PROT_READ, MAP_PRIVATE | MAP_FIXED,
			   (int)CHECK_OK(open("/proc/self/exe", O_RDONLY)), 0) != MAP_FAILED);
	t = abi_track(&attr);
	CHECK_OK(mprotect(map, 8192, PROT_READ | PROT_EXEC));
	mapping = mapping_of(NEXT_IS(&t, PERF_RECORD_MMAP));
	CHECK_EQ(mapping->addr, (uintptr_t)map);
	CHECK_EQ(mapping->len, 8192);
	CHECK_OK(mprotect(map, 8192, PROT_READ | PROT_EXEC));
	CHECK_OK(mprotect(map + 4096, 4096, PROT_READ | PROT_EXEC));
	CHECK(NEXT(&t.ring) == NULL);
	CHECK_OK(mprotect(map, 2 * 8192, PROT_READ | PROT_EXEC));
	mapping = mapping_of(NEXT_IS(&t, PERF_RECORD_MMAP));
	CHECK_EQ(mapping->addr, (uintptr_t)map + 8192);
	CHECK_EQ(mapping->len, 8192);
	CHECK(NEXT(&t.ring) == NULL);
	CHECK_OK(mprotect(map, 2 * 8192, PROT_READ | PROT_WRITE | PROT_EXEC));
	for (int i = 0; i < 2; i++) {
		mapping = mapping_of(NEXT_IS(&t, PERF_RECORD_MMAP));
		CHECK_EQ(mapping->addr, (uintptr_t)map + i * 8192ul);
		CHECK_EQ(mapping->len, 8192);
	}
	CHECK(NEXT(&t.ring) == NULL);
}

ABI_CASE("attr.mmap_data record.misc.mmap_data record.misc.bit13-alias",
	 "alone it tells the other mappings, marked as data")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	struct track t;
	void *map;

	attr.mmap_data = 1;
	t = abi_track(&attr);
	map_own(PROT_READ | PROT_EXEC, MAP_PRIVATE);
	map = map_own(PROT_READ, MAP_PRIVATE);
	header = NEXT_IS(&t, PERF_RECORD_MMAP);
	CHECK_EQ(mapping_of(header)->addr, (uintptr_t)map);
	CHECK_EQ(misc_of(header), PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA);
	CHECK(NEXT(&t.ring) == NULL);
	attr.mmap = 1; /* together: both, each marked as it is */
	t = abi_track(&attr);
	map = map_own(PROT_READ | PROT_EXEC, MAP_PRIVATE);
	header = NEXT_IS(&t, PERF_RECORD_MMAP);
	CHECK_EQ(mapping_of(header)->addr, (uintptr_t)map);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_MMAP_DATA, 0);
}

ABI_CASE("attr.mmap_data record.mmap.fields", "shared memory of System V's")
{
	struct perf_event_attr attr = abi_tracker();
	int shared = (int)CHECK_OK(shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600));
	const struct mapping *mapping;
	struct track t;
	void *map;

	attr.mmap_data = 1;
	t = abi_track(&attr);
	map = shmat(shared, NULL, 0);
	CHECK_OK(shmctl(shared, IPC_RMID, NULL));
	CHECK(map != (void *)-1);
	mapping = mapping_of(NEXT_IS(&t, PERF_RECORD_MMAP));
	CHECK_EQ(mapping->addr, (uintptr_t)map);
	CHECK_EQ(mapping->len, 8192);
	CHECK_EQ(mapping->pgoff, 0);
	CHECK_EQ(strcmp(mapping->file, "/SYSV00000000 (deleted)"), 0);
}

ABI_CASE("attr.mmap_data record.mmap.fields", "a heap that grows, and the event's own buffer")
{
	struct perf_event_attr attr = abi_tracker();
	const struct mapping *mapping;
	struct track t;
	uintptr_t start;
	void *map;

	attr.mmap_data = 1;
	sbrk(4096); /* the first piece has no name */
	t = abi_track(&attr);
	start = (uintptr_t)sbrk(8192);
	mapping = mapping_of(NEXT_IS(&t, PERF_RECORD_MMAP));
	CHECK_CMP(mapping->addr, <, start);
	CHECK_CMP(mapping->addr + mapping->len, >=, start + 8192);
	CHECK_EQ(strcmp(mapping->file, "[heap]"), 0);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, OPEN_SELF(&attr), 0);
	CHECK(map != MAP_FAILED);
	mapping = mapping_of(NEXT_IS(&t, PERF_RECORD_MMAP));
	CHECK_EQ(mapping->addr, (uintptr_t)map);
	CHECK_EQ(mapping->len, 4096);
	CHECK_EQ(mapping->pgoff, 0);
	CHECK_EQ(strcmp(mapping->file, "anon_inode:[perf_event]"), 0);
}

static const uint32_t *mmap2_halves(const struct perf_event_header *header)
{
	return (const uint32_t *)(const void *)((const char *)(header + 1) + 32);
}

static const char *mmap2_file(const struct perf_event_header *header)
{
	return (const char *)header + 72;
}

static const struct protection {
	struct abi_row about;
	int prot, flags;
	uint32_t told_prot, told_flags;
} protections[] = {
	{{"record.mmap2.prot_flags", "read and execute, private"},
	 PROT_READ | PROT_EXEC,
	 MAP_PRIVATE,
	 5,
	 2},
	{{"record.mmap2.prot_flags", "execute, shared"}, PROT_READ | PROT_EXEC, MAP_SHARED, 5, 1},
	{{"record.mmap2.prot_flags", "execute alone"}, PROT_EXEC, MAP_PRIVATE, 4, 2},
	{{"record.mmap2.prot_flags", "all three, private"},
	 PROT_READ | PROT_WRITE | PROT_EXEC,
	 MAP_PRIVATE,
	 7,
	 2},
};

ABI_TABLE(protections)
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	struct track t;

	attr.mmap = 1;
	attr.mmap2 = 1;
	t = abi_track(&attr);
	map_own(row->prot, row->flags);
	header = NEXT_IS(&t, PERF_RECORD_MMAP2);
	CHECK_EQ(mmap2_halves(header)[6], row->told_prot);
	CHECK_EQ(mmap2_halves(header)[7], row->told_flags);
}

ABI_CASE("attr.mmap2 record.mmap2 record.mmap2.inode", "the extended form: device and inode")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	const uint32_t *halves;
	char *path = own_path();
	struct track t;
	struct stat file;
	uint32_t generation;
	uint64_t inode;
	int file_fd;
	void *map;

	CHECK_OK(stat(path, &file));
	attr.mmap = 1; /* alone, mmap2 tells something only while anybody asks for mmap */
	attr.mmap2 = 1;
	t = abi_track(&attr);
	map = map_own(PROT_READ | PROT_EXEC, MAP_PRIVATE);
	header = NEXT_IS(&t, PERF_RECORD_MMAP2);
	CHECK_EQ(header->size, 72 + (strlen(path) + 8) / 8 * 8 + TRAILER_SIZE);
	CHECK_EQ(misc_of(header), PERF_RECORD_MISC_USER);
	CHECK_EQ(mapping_of(header)->addr, (uintptr_t)map);
	CHECK_EQ(mapping_of(header)->len, 8192);
	CHECK_EQ(mapping_of(header)->pgoff, 4096);
	halves = mmap2_halves(header);
	memcpy(&inode, halves + 2, sizeof(inode));
	/* a filesystem over several devices tells another number through stat */
	if (halves[0] == major(file.st_dev) && halves[1] == minor(file.st_dev))
		CHECK_EQ(inode, file.st_ino);
	CHECK(inode != 0);
	file_fd = (int)CHECK_OK(open(path, O_RDONLY));
	if (!ioctl(file_fd, FS_IOC_GETVERSION, &generation)) /* not of all filesystems */
		CHECK_EQ(halves[4], generation);
	CHECK_EQ(strcmp(mmap2_file(header), path), 0);

	map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	header = NEXT_IS(&t, PERF_RECORD_MMAP2);
	CHECK_EQ(mapping_of(header)->addr, (uintptr_t)map);
	for (int i = 0; i < 6; i++)
		CHECK_EQ(mmap2_halves(header)[i], 0);
	CHECK_EQ(strcmp(mmap2_file(header), "//anon"), 0);
}

struct build_id {
	unsigned char bytes[20];
	unsigned int size;
};

/* The build id of the main program, from its notes in memory. */
static int find_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct build_id *out = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *at = (const char *)info->dlpi_addr + segment->p_vaddr;
		const char *end = at + segment->p_memsz;

		while (segment->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *owner = at + sizeof(*note);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    memcmp(owner, "GNU", 4) == 0 && note->n_descsz <= 20) {
				out->size = note->n_descsz;
				memcpy(out->bytes, owner + 4, note->n_descsz);
			}
			at = owner + (note->n_namesz + 3) / 4 * 4 + (note->n_descsz + 3) / 4 * 4;
		}
	}
	return 1; /* the first object is the program itself */
}

ABI_CASE("attr.build_id record.mmap2.build_id record.misc.mmap_build_id",
	 "the file's build id, marked; anonymous mappings keep the inode form")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	const unsigned char *bytes;
	struct build_id own = {0};
	struct track t;

	dl_iterate_phdr(find_build_id, &own);
	if (!own.size)
		CANNOT("this program was linked without a build id");
	attr.mmap = 1;
	attr.mmap2 = 1;
	attr.build_id = 1;
	abi_keep_recorders_out(); /* perf would die of our mark in its records */
	t = abi_track(&attr);
	map_own(PROT_READ | PROT_EXEC, MAP_PRIVATE);
	header = NEXT_IS(&t, PERF_RECORD_MMAP2);
	if (!(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		FAIL("the record of a file with a build id is not marked");
	bytes = (const unsigned char *)mmap2_halves(header);
	CHECK_EQ(bytes[0], own.size);
	CHECK_EQ(bytes[1] | bytes[2] | bytes[3], 0);
	CHECK_EQ(memcmp(bytes + 4, own.bytes, own.size), 0);
	for (unsigned int i = own.size; i < 20; i++)
		CHECK_EQ(bytes[4 + i], 0);

	CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	      MAP_FAILED);
	header = NEXT_IS(&t, PERF_RECORD_MMAP2);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID, 0);

	attr.mmap_data = 1;
	t = abi_track(&attr);
	map_own(PROT_READ, MAP_PRIVATE);
	header = NEXT_IS(&t, PERF_RECORD_MMAP2);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_MMAP_DATA, PERF_RECORD_MISC_MMAP_DATA);
	if (!(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		FAIL("the record of the file's data is not marked");
	CHECK_EQ(memcmp((const unsigned char *)mmap2_halves(header) + 4, own.bytes, own.size), 0);
}
