// SPDX-License-Identifier: MIT
/* What is synthesized from a /proc and a /sys of the test's own making, decoded again. */
#include <elf.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/perfdata.h>
#include <tally/record.h>

#include "tool/synth.h"

struct fixture {
	char root[64];
	struct utsname host;
	struct tally_record_format format;
	struct tool_synth synth;
	size_t at;
};

static void put(const struct fixture *f, const char *path, const void *data, size_t size)
{
	char full[PATH_MAX];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", f->root, path);
	for (char *slash = full + strlen(f->root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
}

static void put_text(const struct fixture *f, const char *path, const char *text)
{
	put(f, path, text, strlen(text));
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER,
		.sample_id_all = 1,
	};

	if (!f)
		return -1;
	strcpy(f->root, "/tmp/tally-synth-XXXXXX");
	if (!mkdtemp(f->root))
		return -1;
	uname(&f->host);
	tally_record_format_init(&f->format, &attr);
	tool_synth_init(&f->synth, f->root, f->format.trailer_size);
	*state = f;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tool_synth_free(&f->synth);
	nftw(f->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

static struct tally_record next(struct fixture *f, uint32_t type)
{
	struct tally_record record;
	long size = tally_record_decode(&f->format, f->synth.data + f->at, f->synth.size - f->at,
					&record, NULL);

	assert_true(size > 0);
	assert_int_equal(size % 8, 0);
	assert_int_equal(record.type, type);
	f->at += size;
	return record;
}

static void assert_end(const struct fixture *f)
{
	assert_int_equal(f->at, f->synth.size);
}

static const uint8_t id[20] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
			       11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

/* A note of another kind, and then the build-id. */
static size_t make_notes(unsigned char *notes, size_t id_size)
{
	const Elf64_Nhdr other = {6, 3, 0x100};
	const Elf64_Nhdr build_id = {4, id_size, NT_GNU_BUILD_ID};
	size_t at = 0;

	memcpy(notes + at, &other, sizeof(other));
	memcpy(notes + at + sizeof(other), "Linux\0\0\0abc", 12);
	at += sizeof(other) + 12;
	memcpy(notes + at, &build_id, sizeof(build_id));
	memcpy(notes + at + sizeof(build_id), "GNU", 4);
	memcpy(notes + at + sizeof(build_id) + 4, id, id_size < 20 ? id_size : 20);
	return at + sizeof(build_id) + 4 + id_size;
}

static void test_kernel_and_modules(void **state)
{
	struct fixture *f = *state;
	unsigned char notes[128] = {0};
	char path[512], line[256];

	put_text(f, "/proc/kallsyms",
		 "0000000000000000 A fixed_percpu_data\n"
		 "ffffffff81000000 T _text\n"
		 "ffffffff81000000 T _stext\n"
		 "ffffffff81000040 t some_text_thing\n"
		 "ffffffff82000000 T _etext\n");
	put(f, "/sys/kernel/notes", notes, make_notes(notes, 20));
	put_text(f, "/proc/modules",
		 "snd_hda 40960 2 snd, Live 0xffffffffc0200000\n"
		 "hidden 4096 0 - Live 0x0000000000000000\n"
		 "lost 8192 0 - Live 0xffffffffc0400000 (OE)\n");
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", f->host.release);
	put_text(f, path,
		 "kernel/fs/hda.ko: kernel/x/snd.ko\n"
		 "kernel/sound/snd-hda.ko.xz: kernel/sound/snd.ko.xz\n");
	put(f, "/sys/module/snd_hda/notes/.note.gnu.build-id", notes, make_notes(notes, 20));
	assert_true(tool_synth_kernel(&f->synth));

	struct tally_record record = next(f, PERF_RECORD_MMAP2);

	assert_int_equal(record.misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL);
	assert_string_equal(record.mmap.filename, "[kernel.kallsyms]_text");
	assert_int_equal(record.mmap.start, 0xffffffff81000000);
	assert_int_equal(record.mmap.pgoff, 0xffffffff81000000);
	assert_int_equal(record.mmap.len, 0x1000000);
	assert_int_equal(record.mmap.pid, UINT32_MAX);
	assert_true(record.mmap.has_build_id);
	assert_memory_equal(record.mmap.build_id, id, 20);

	record = next(f, PERF_RECORD_MMAP2);
	snprintf(line, sizeof(line), "%s/lib/modules/%s/kernel/sound/snd-hda.ko.xz", f->root,
		 f->host.release);
	assert_string_equal(record.mmap.filename, line);
	assert_int_equal(record.mmap.start, 0xffffffffc0200000);
	assert_int_equal(record.mmap.len, 40960);
	assert_true(record.mmap.has_build_id);

	/* Of a module whose address is hidden nothing can be said. */
	record = next(f, PERF_RECORD_MMAP2);
	assert_string_equal(record.mmap.filename, "[lost]");
	assert_false(record.mmap.has_build_id);
	assert_end(f);
}

/* Where iomem says how large the text is, kallsyms is not read to the end. */
static void test_kernel_size_of_iomem(void **state)
{
	struct fixture *f = *state;

	put_text(f, "/proc/kallsyms",
		 "ffffffff81000000 T _text\n"
		 "ffffffff82000000 T _etext\n");
	put_text(f, "/proc/iomem",
		 "00001000-0009ffff : System RAM\n"
		 "  01000000-017fffff : Kernel code\n");
	assert_true(tool_synth_kernel(&f->synth));
	assert_int_equal(next(f, PERF_RECORD_MMAP2).mmap.len, 0x800000);
	assert_end(f);
}

static void test_hidden_kernel(void **state)
{
	struct fixture *f = *state;

	assert_false(tool_synth_kernel(&f->synth));
	put_text(f, "/proc/kallsyms",
		 "0000000000000000 T _text\n"
		 "0000000000000000 T _etext\n");
	put_text(f, "/proc/iomem", "  00000000-00000000 : Kernel code\n");
	assert_false(tool_synth_kernel(&f->synth));
	assert_end(f);
}

static void put_process(const struct fixture *f)
{
	put_text(f, "/proc/42/status", "Name:\tcalc\nTgid:\t42\nPid:\t42\nPPid:\t7\n");
	put_text(f, "/proc/42/task/42/comm", "calc\n");
	put_text(f, "/proc/42/task/43/comm", "odd\nname\n");
	put_text(f, "/proc/42/maps",
		 "00400000-00401000 r--p 00000000 fd:01 99  /bin/calc\n"
		 "00401000-00480000 r-xp 00001000 fd:01 99    /bin/calc\n"
		 "7f0000000000-7f0000001000 rwxs 00000000 00:00 0 \n"
		 "7f0000002000-7f0000003000 r-xp 00000000 00:00 0    [vdso]\n"
		 "7f0000004000-7f0000005000 r-xp 00002000 fd:01 77  /tmp/a b\\012c (deleted)\n"
		 "broken line\n");
}

static void test_process(void **state)
{
	struct fixture *f = *state;

	put_process(f);
	put_text(f, "/proc/43/status", "Name:\tworker\nTgid:\t42\nPid:\t43\nPPid:\t7\n");
	/* Asked for by one of its threads: the whole process is written. */
	tool_synth_process(&f->synth, 43);

	struct tally_record record = next(f, PERF_RECORD_FORK);

	assert_int_equal(record.task.pid, 42);
	assert_int_equal(record.task.ppid, 7);
	assert_int_equal(record.task.tid, 42);
	record = next(f, PERF_RECORD_COMM);
	assert_int_equal(record.comm.tid, 42);
	assert_string_equal(record.comm.comm, "calc");

	record = next(f, PERF_RECORD_MMAP2);
	assert_string_equal(record.mmap.filename, "/bin/calc");
	assert_int_equal(record.mmap.start, 0x401000);
	assert_int_equal(record.mmap.len, 0x7f000);
	assert_int_equal(record.mmap.pgoff, 0x1000);
	assert_int_equal(record.mmap.maj, 0xfd);
	assert_int_equal(record.mmap.min, 1);
	assert_int_equal(record.mmap.ino, 99);
	assert_int_equal(record.mmap.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(record.mmap.flags, MAP_PRIVATE);
	record = next(f, PERF_RECORD_MMAP2);
	assert_string_equal(record.mmap.filename, "//anon");
	assert_int_equal(record.mmap.prot, PROT_READ | PROT_WRITE | PROT_EXEC);
	assert_int_equal(record.mmap.flags, MAP_SHARED);
	assert_string_equal(next(f, PERF_RECORD_MMAP2).mmap.filename, "[vdso]");
	assert_string_equal(next(f, PERF_RECORD_MMAP2).mmap.filename, "/tmp/a b\nc (deleted)");

	record = next(f, PERF_RECORD_FORK);
	assert_int_equal(record.task.tid, 43);
	assert_int_equal(record.task.ptid, 42);
	assert_int_equal(record.task.ppid, 42);
	record = next(f, PERF_RECORD_COMM);
	assert_int_equal(record.comm.pid, 42);
	assert_int_equal(record.comm.tid, 43);
	assert_string_equal(record.comm.comm, "odd\nname");
	assert_end(f);
}

static void test_data_maps(void **state)
{
	struct fixture *f = *state;
	struct tally_record record;

	put_process(f);
	f->synth.data_maps = true;
	tool_synth_process(&f->synth, 42);
	next(f, PERF_RECORD_FORK);
	next(f, PERF_RECORD_COMM);
	record = next(f, PERF_RECORD_MMAP2);
	assert_int_equal(record.mmap.start, 0x400000);
	assert_int_equal(record.mmap.prot, PROT_READ);
	assert_true(record.misc & PERF_RECORD_MISC_MMAP_DATA);
	assert_false(next(f, PERF_RECORD_MMAP2).misc & PERF_RECORD_MISC_MMAP_DATA);
}

static void test_cgroups(void **state)
{
	struct fixture *f = *state;
	struct tally_record record;
	char names[4][64] = {0};
	struct stat st;
	char path[128];
	int nr = 0;

	/* Neither is mounted. */
	put_text(f, "/proc/self/mounts", "tmpfs /run tmpfs rw 0 0\nbroken\n");
	tool_synth_cgroups(&f->synth);
	assert_int_equal(f->synth.size, 0);
	put_text(f, "/proc/self/mounts",
		 "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
		 "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nsdelegate 0 0\n");
	put_text(f, "/sys/fs/cgroup/cpu/other/tasks", "");
	put_text(f, "/sys/fs/cgroup/unified/a/b/cgroup.procs", "");
	tool_synth_cgroups(&f->synth);
	for (; f->at < f->synth.size; nr++) {
		record = next(f, PERF_RECORD_CGROUP);
		assert_true(nr < 4);
		snprintf(names[nr], sizeof(names[nr]), "%s", record.cgroup.path);
		snprintf(path, sizeof(path), "%s/sys/fs/cgroup/unified%s", f->root,
			 record.cgroup.path);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(record.cgroup.id, st.st_ino);
	}
	assert_int_equal(nr, 3);
	assert_string_equal(names[0], "/");
	assert_string_equal(names[1], "/a");
	assert_string_equal(names[2], "/a/b");
	/* A hierarchy of perf_event's own comes first. */
	put_text(f, "/proc/self/mounts",
		 "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
		 "cgroup /sys/fs/cgroup/cpu cgroup rw,perf_event 0 0\n");
	tool_synth_cgroups(&f->synth);
	assert_string_equal(next(f, PERF_RECORD_CGROUP).cgroup.path, "/");
	assert_string_equal(next(f, PERF_RECORD_CGROUP).cgroup.path, "/other");
	assert_end(f);
}

static void test_all_processes(void **state)
{
	struct fixture *f = *state;

	put_process(f);
	put_text(f, "/proc/8/status", "Tgid:\t8\nPPid:\t2\n");
	put_text(f, "/proc/8/task/8/comm", "kworker\n");
	put_text(f, "/proc/sys/kernel/x", "");
	/* Ended between the listing and the reading. */
	put_text(f, "/proc/9/task/x", "");
	tool_synth_all(&f->synth);

	size_t processes = 0, records = 0;

	while (f->at < f->synth.size) {
		struct tally_record record;
		long size = tally_record_decode(&f->format, f->synth.data + f->at,
						f->synth.size - f->at, &record, NULL);

		assert_true(size > 0);
		f->at += size;
		records++;
		if (record.type == PERF_RECORD_FORK && record.task.pid == record.task.tid)
			processes++;
	}
	assert_int_equal(processes, 2);
	assert_int_equal(records, 8 + 2);
}

/* The build-id of a file is read where its process sees it, if it is still the mapped file. */
static void test_build_id_of_file(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX], maps[PATH_MAX + 256], self[PATH_MAX] = "";
	struct tally_record record;
	struct stat st;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	put_process(f);
	snprintf(path, sizeof(path), "%s/proc/42/root", f->root);
	assert_int_equal(symlink("/", path), 0);
	assert_int_equal(stat(self, &st), 0);
	snprintf(maps, sizeof(maps),
		 "00400000-00401000 r-xp 00000000 fd:01 %lu %s\n"
		 "00500000-00501000 r-xp 00000000 fd:01 %lu %s\n"
		 "00600000-00601000 r-xp 00000000 fd:01 %lu %s\n",
		 st.st_ino, self, st.st_ino + 1, self, st.st_ino, self);
	put_text(f, "/proc/42/maps", maps);
	tool_synth_process(&f->synth, 42);
	next(f, PERF_RECORD_FORK);
	next(f, PERF_RECORD_COMM);
	record = next(f, PERF_RECORD_MMAP2);
	assert_true(record.mmap.has_build_id);
	assert_int_equal(record.mmap.build_id_size, 20);
	assert_false(next(f, PERF_RECORD_MMAP2).mmap.has_build_id);
	assert_memory_equal(next(f, PERF_RECORD_MMAP2).mmap.build_id, record.mmap.build_id, 20);
	assert_int_equal(f->synth.nr_files, 2);
}

static void test_many_files(void **state)
{
	struct fixture *f = *state;
	char *maps = NULL;
	size_t size;
	FILE *out = open_memstream(&maps, &size);

	put_process(f);
	for (int i = 0; i < 2000; i++)
		fprintf(out, "%x000-%x800 r-xp 00000000 fd:%x %d /lib/%d\n", i + 1, i + 1, i % 7,
			i / 7 + 1, i);
	fclose(out);
	put_text(f, "/proc/42/maps", maps);
	free(maps);
	tool_synth_process(&f->synth, 42);
	assert_int_equal(f->synth.nr_files, 2000);
	assert_false(f->synth.failed);
}

static void test_what_was_measured(void **state)
{
	struct fixture *f = *state;
	const pid_t tids[] = {42, 5};
	const int cpus[] = {0, 2, 3};

	put_process(f);
	tool_synth_thread_map(&f->synth, tids, 2);
	tool_synth_cpu_map(&f->synth, cpus, 3);
	tool_synth_lost_samples(&f->synth, 9);

	struct tally_record record = next(f, TALLY_RECORD_THREAD_MAP);

	assert_int_equal(record.size, 8 + 8 + 2 * 24);
	assert_int_equal(tally_u64(record.body), 2);
	assert_int_equal(tally_u64((const char *)record.body + 8), 42);
	assert_string_equal((const char *)record.body + 16, "calc");
	assert_string_equal((const char *)record.body + 40, "");
	record = next(f, TALLY_RECORD_CPU_MAP);
	assert_int_equal(record.size, 24);
	assert_memory_equal(record.body, ((const uint16_t[]){0, 3, 0, 2, 3}), 10);
	assert_int_equal(next(f, PERF_RECORD_LOST_SAMPLES).lost_samples.lost, 9);
	assert_end(f);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_kernel_and_modules),
		CASE(test_kernel_size_of_iomem),
		CASE(test_hidden_kernel),
		CASE(test_process),
		CASE(test_data_maps),
		CASE(test_all_processes),
		CASE(test_cgroups),
		CASE(test_build_id_of_file),
		CASE(test_many_files),
		CASE(test_what_was_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
