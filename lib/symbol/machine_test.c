// SPDX-License-Identifier: MIT
/* Made-up recordings: who was mapped where, and when. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/symbol.h>

#include "lib/symbol/space.h"

static struct tally_symbols *symbols;
static struct tally_machine *machine;

static int set_up(void **state)
{
	(void)state;
	symbols = tally_symbols_new(NULL);
	machine = tally_machine_new(symbols);
	return machine ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	tally_symbols_free(symbols);
	return 0;
}

static void feed(const struct tally_record *record, uint64_t time)
{
	assert_int_equal(tally_machine_feed(machine, record, time), 0);
}

static void feed_mmap(uint32_t pid, uint64_t start, uint64_t len, const char *name, uint64_t time)
{
	struct tally_record record = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_USER,
		.mmap = {.pid = pid, .tid = pid, .start = start, .len = len, .filename = name},
	};

	feed(&record, time);
}

static void feed_comm(uint32_t pid, uint32_t tid, const char *comm, bool exec, uint64_t time)
{
	struct tally_record record = {
		.type = PERF_RECORD_COMM,
		.misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0,
		.comm = {.pid = pid, .tid = tid, .comm = comm},
	};

	feed(&record, time);
}

static void feed_fork(uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid, uint64_t time)
{
	struct tally_record record = {
		.type = PERF_RECORD_FORK,
		.task = {.pid = pid, .tid = tid, .ppid = ppid, .ptid = ptid, .time = time},
	};

	feed(&record, time);
}

static void feed_ksymbol(uint64_t addr, uint32_t len, const char *name, bool gone, uint64_t time)
{
	struct tally_record record = {
		.type = PERF_RECORD_KSYMBOL,
		.ksymbol = {.addr = addr,
			    .len = len,
			    .name = name,
			    .flags = gone ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER : 0},
	};

	feed(&record, time);
}

static const char *dso_at(uint32_t pid, uint64_t time, uint64_t ip)
{
	struct tally_location location;

	tally_machine_resolve(machine, pid, time, PERF_RECORD_MISC_USER, ip, &location);
	return location.dso ? tally_dso_name(location.dso) : "-";
}

static void test_mapping_bounds(void **state)
{
	struct tally_location location;

	(void)state;
	feed_mmap(1, 0x1000, 0x2000, "/no/a", 0);
	assert_string_equal(dso_at(1, 5, 0xfff), "-");
	assert_string_equal(dso_at(1, 5, 0x1000), "/no/a");
	assert_string_equal(dso_at(1, 5, 0x2fff), "/no/a");
	assert_string_equal(dso_at(1, 5, 0x3000), "-");
	assert_string_equal(dso_at(2, 5, 0x1000), "-");
	tally_machine_resolve(machine, 1, 5, PERF_RECORD_MISC_USER, 0x2000, &location);
	assert_int_equal(location.level, '.');
	assert_string_equal(tally_dso_short_name(location.dso), "a");
	assert_non_null(strstr(tally_dso_problem(location.dso), "cannot open the file"));
}

static void test_later_mapping_hides_the_middle(void **state)
{
	(void)state;
	/* Fed out of order. */
	feed_mmap(1, 0x3000, 0x1000, "/no/new", 20);
	feed_mmap(1, 0x1000, 0x5000, "/no/old", 10);
	assert_string_equal(dso_at(1, 19, 0x3800), "/no/old");
	assert_string_equal(dso_at(1, 20, 0x2fff), "/no/old");
	assert_string_equal(dso_at(1, 20, 0x3000), "/no/new");
	assert_string_equal(dso_at(1, 20, 0x3fff), "/no/new");
	assert_string_equal(dso_at(1, 20, 0x4000), "/no/old");
	/* And back in time again: the cache knows the span of its answers. */
	assert_string_equal(dso_at(1, 19, 0x3000), "/no/old");
	assert_string_equal(dso_at(1, 1000, 0x3000), "/no/new");
}

static void test_same_time_last_fed_wins(void **state)
{
	(void)state;
	feed_mmap(1, 0x1000, 0x1000, "/no/first", 0);
	assert_string_equal(dso_at(1, 0, 0x1000), "/no/first");
	feed_mmap(1, 0x1000, 0x1000, "/no/second", 0);
	assert_string_equal(dso_at(1, 0, 0x1000), "/no/second");
}

static void test_sample_before_its_mapping(void **state)
{
	(void)state;
	feed_mmap(1, 0x1000, 0x1000, "/no/a", 100);
	assert_string_equal(dso_at(1, 50, 0x1000), "/no/a");
}

static void test_exec_replaces(void **state)
{
	(void)state;
	feed_mmap(1, 0x1000, 0x2000, "/no/shell", 10);
	feed_comm(1, 1, "ls", true, 20);
	feed_mmap(1, 0x2000, 0x4000, "/no/ls", 21);
	assert_string_equal(dso_at(1, 19, 0x1000), "/no/shell");
	assert_string_equal(dso_at(1, 19, 0x2000), "/no/shell");
	assert_string_equal(dso_at(1, 30, 0x2000), "/no/ls");
	assert_string_equal(dso_at(1, 30, 0x5000), "/no/ls");
	/* Where execve() was called from, as long as nothing new is there. */
	assert_string_equal(dso_at(1, 20, 0x1000), "/no/shell");
	/* But not what was there two programs ago. */
	feed_comm(1, 1, "cat", true, 60);
	assert_string_equal(dso_at(1, 70, 0x5000), "/no/ls");
	assert_string_equal(dso_at(1, 70, 0x1000), "-");
	/* A new name alone changes nothing. */
	feed_comm(1, 1, "renamed", false, 40);
	assert_string_equal(dso_at(1, 50, 0x5000), "/no/ls");
}

static void test_fork_inherits_that_moment(void **state)
{
	(void)state;
	feed_mmap(1, 0x1000, 0x1000, "/no/a", 10);
	feed_fork(2, 2, 1, 1, 20);
	feed_mmap(1, 0x1000, 0x1000, "/no/after", 30);
	assert_string_equal(dso_at(1, 40, 0x1000), "/no/after");
	assert_string_equal(dso_at(2, 40, 0x1000), "/no/a");
	feed_mmap(2, 0x1000, 0x1000, "/no/own", 50);
	assert_string_equal(dso_at(2, 49, 0x1000), "/no/a");
	assert_string_equal(dso_at(2, 50, 0x1000), "/no/own");
	/* A grandchild, through both. */
	feed_fork(3, 3, 2, 2, 45);
	assert_string_equal(dso_at(3, 60, 0x1000), "/no/a");
	/* A thread has no space of its own. */
	feed_fork(1, 7, 1, 1, 60);
	assert_string_equal(dso_at(1, 70, 0x1000), "/no/after");
}

static void test_pid_is_used_again(void **state)
{
	(void)state;
	feed_mmap(5, 0x1000, 0x1000, "/no/first", 10);
	feed_mmap(1, 0x1000, 0x1000, "/no/parent", 10);
	feed_fork(5, 5, 1, 1, 100);
	assert_string_equal(dso_at(5, 99, 0x1000), "/no/first");
	assert_string_equal(dso_at(5, 100, 0x1000), "/no/parent");
}

static void test_forks_in_a_circle(void **state)
{
	(void)state;
	feed_fork(2, 2, 3, 3, 10);
	feed_fork(3, 3, 2, 2, 10);
	feed_fork(4, 4, 4, 4, 10);
	assert_string_equal(dso_at(2, 20, 0x1000), "-");
	assert_string_equal(tally_machine_comm(machine, 2, 2, 20), ":2");
	assert_string_equal(tally_machine_comm(machine, 4, 4, 20), ":4");
}

static void test_comms(void **state)
{
	(void)state;
	assert_string_equal(tally_machine_comm(machine, 0, 0, 5), "swapper");
	assert_string_equal(tally_machine_comm(machine, 9, 9, 5), ":9");
	feed_comm(1, 1, "bash", false, 0);
	feed_fork(2, 2, 1, 1, 10);
	assert_string_equal(tally_machine_comm(machine, 2, 2, 15), "bash");
	feed_comm(2, 2, "make", true, 20);
	assert_string_equal(tally_machine_comm(machine, 2, 2, 19), "bash");
	assert_string_equal(tally_machine_comm(machine, 2, 2, 20), "make");
	/* A thread inherits the name of the thread that made it, and may take another. */
	feed_fork(2, 3, 2, 2, 30);
	assert_string_equal(tally_machine_comm(machine, 2, 3, 31), "make");
	feed_comm(2, 3, "worker", false, 40);
	assert_string_equal(tally_machine_comm(machine, 2, 3, 41), "worker");
	assert_string_equal(tally_machine_comm(machine, 2, 3, 39), "make");
	/* What the parent was called is learned late. */
	feed_comm(2, 2, "ninja", false, 29);
	assert_string_equal(tally_machine_comm(machine, 2, 3, 31), "ninja");
	/* A thread never heard of goes by its process. */
	assert_string_equal(tally_machine_comm(machine, 2, 99, 21), "make");
}

static void test_ksymbols(void **state)
{
	const uint64_t addr = 0xffffffffc0100000;
	struct tally_location location;

	(void)state;
	feed_ksymbol(addr, 0x100, "bpf_prog_12_x", false, 10);
	feed_ksymbol(addr, 0x100, "", true, 20);
	feed_ksymbol(addr + 0x80, 0x100, "bpf_prog_34_y", false, 30);
	tally_machine_resolve(machine, 7, 15, PERF_RECORD_MISC_KERNEL, addr + 0x90, &location);
	assert_string_equal(location.symbol->name, "bpf_prog_12_x");
	assert_int_equal(location.address, 0x90);
	assert_int_equal(location.level, 'k');
	tally_machine_resolve(machine, 7, 25, PERF_RECORD_MISC_KERNEL, addr + 0x90, &location);
	assert_null(location.symbol);
	tally_machine_resolve(machine, 7, 35, PERF_RECORD_MISC_KERNEL, addr + 0x90, &location);
	assert_string_equal(location.symbol->name, "bpf_prog_34_y");
}

static void test_build_ids_tell_files_apart(void **state)
{
	struct tally_record record = {
		.type = PERF_RECORD_MMAP2,
		.misc = PERF_RECORD_MISC_USER,
		.mmap = {.pid = 1,
			 .start = 0x1000,
			 .len = 0x1000,
			 .filename = "/proc/self/exe",
			 .has_build_id = true,
			 .build_id_size = 20},
	};
	struct tally_location first, second;
	uint8_t id[20];

	(void)state;
	record.mmap.build_id[0] = 1;
	feed(&record, 10);
	record.mmap.build_id[0] = 2;
	feed(&record, 20);
	tally_machine_resolve(machine, 1, 10, PERF_RECORD_MISC_USER, 0x1000, &first);
	tally_machine_resolve(machine, 1, 20, PERF_RECORD_MISC_USER, 0x1000, &second);
	assert_ptr_not_equal(first.dso, second.dso);
	assert_null(first.symbol);
	assert_non_null(strstr(tally_dso_problem(first.dso), "changed since the recording"));
	assert_int_equal(tally_dso_build_id(first.dso, id), 20);
	assert_int_equal(id[0], 1);
}

static void test_build_id_from_the_table(void **state)
{
	uint8_t id[20] = {9};
	struct tally_location location;

	(void)state;
	feed_mmap(1, 0x1000, 0x1000, "/proc/self/exe", 10);
	assert_int_equal(tally_machine_build_id(machine, "/proc/self/exe", id, sizeof(id)), 0);
	assert_int_equal(tally_machine_build_id(machine, "/proc/self/exe", id, 21), 0);
	tally_machine_resolve(machine, 1, 10, PERF_RECORD_MISC_USER, 0x1000, &location);
	assert_non_null(strstr(tally_dso_problem(location.dso), "0900000000"));
}

static void test_levels(void **state)
{
	static const struct {
		uint16_t mode;
		char level;
	} rows[] = {
		{PERF_RECORD_MISC_KERNEL, 'k'},	    {PERF_RECORD_MISC_USER, '.'},
		{PERF_RECORD_MISC_HYPERVISOR, 'H'}, {PERF_RECORD_MISC_GUEST_KERNEL, 'g'},
		{PERF_RECORD_MISC_GUEST_USER, 'u'},
	};
	struct tally_location location;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		tally_machine_resolve(machine, 1, 0, rows[i].mode, 0x10, &location);
		assert_int_equal(location.level, rows[i].level);
		assert_int_equal(location.address, 0x10);
	}
	tally_machine_resolve(machine, 1, 0, 0, 0x10, &location);
	assert_int_equal(location.level, '.');
	tally_machine_resolve(machine, 1, 0, 0, UINT64_MAX, &location);
	assert_int_equal(location.level, 'k');
}

/* A copy of another machine's kallsyms and modules. */
static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void remove_file(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

static void feed_kernel_mmap(uint64_t start, uint64_t len, uint64_t pgoff, const char *name)
{
	struct tally_record record = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_KERNEL,
		.mmap = {.pid = UINT32_MAX,
			 .start = start,
			 .len = len,
			 .pgoff = pgoff,
			 .filename = name},
	};

	feed(&record, 0);
}

static void open_kernel(const char *dir, const char *kallsyms)
{
	struct tally_symbols_options options = {0};
	char path[256];

	write_file(dir, "kallsyms", kallsyms);
	snprintf(path, sizeof(path), "%s/kallsyms", dir);
	options.kallsyms = path;
	tally_symbols_free(symbols);
	symbols = tally_symbols_new(&options);
	machine = tally_machine_new(symbols);
}

static const char *kernel_name(uint64_t ip, struct tally_location *location)
{
	tally_machine_resolve(machine, 1, 0, PERF_RECORD_MISC_KERNEL, ip, location);
	return location->symbol ? location->symbol->name : "-";
}

static void test_kernel_and_modules(void **state)
{
	char dir[] = "/tmp/tally-test-XXXXXX";
	struct tally_location location;

	(void)state;
	assert_non_null(mkdtemp(dir));
	write_file(dir, "modules",
		   "ext4 1000 1 - Live 0xffffffffc0200000\n"
		   "dm_mod 1000 1 ext4, Live 0xffffffffc0300000\n");
	open_kernel(dir, "ffffffff90000000 T _stext\n"
			 "ffffffff90000000 T _text\n"
			 "ffffffff90000100 t do_one\n"
			 "ffffffff90000200 T do_two\n"
			 "ffffffff90000280 D data\n"
			 "ffffffff90000300 W do_three\n"
			 "ffffffffc0200010 t ext4_map\t[ext4]\n"
			 "ffffffffc0300040 t dm_go\t[dm_mod]\n"
			 "ffffffffc0400000 t bpf_prog_1_f\t[bpf]\n");
	/* Recorded at a boot that had put everything elsewhere. */
	feed_kernel_mmap(0xffffffff81000000, 0x1000, 0xffffffff81000000, "[kernel.kallsyms]_text");
	feed_kernel_mmap(0xffffffffc1000000, 0x1000, 0, "/lib/modules/6.1/kernel/ext4/ext4.ko");
	feed_kernel_mmap(0xffffffffc1100000, 0x1000, 0, "/lib/modules/6.1/kernel/dm-mod.ko.xz");
	assert_string_equal(kernel_name(0xffffffff81000180, &location), "do_one");
	assert_string_equal(tally_dso_name(location.dso), "[kernel.kallsyms]");
	assert_string_equal(tally_dso_short_name(location.dso), "[kernel]");
	assert_int_equal(location.address, 0xffffffff90000180);
	assert_string_equal(kernel_name(0xffffffff81000290, &location), "do_two");
	assert_string_equal(kernel_name(0xffffffff81000300, &location), "do_three");
	assert_string_equal(kernel_name(0xffffffffc1000020, &location), "ext4_map");
	assert_string_equal(tally_dso_short_name(location.dso), "[ext4]");
	assert_int_equal(location.address, 0x20);
	assert_string_equal(kernel_name(0xffffffffc1000000, &location), "-");
	assert_string_equal(kernel_name(0xffffffffc1100044, &location), "dm_go");
	assert_string_equal(kernel_name(0xffffffffc0400010, &location), "bpf_prog_1_f");
	remove_file(dir, "kallsyms");
	remove_file(dir, "modules");
	rmdir(dir);
}

static void test_restricted_kallsyms(void **state)
{
	char dir[] = "/tmp/tally-test-XXXXXX";
	struct tally_location location;
	struct tally_error err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	open_kernel(dir, "0000000000000000 T _text\n0000000000000000 T schedule\n");
	assert_int_equal(tally_machine_feed_proc(machine, -1, &err), -EACCES);
	assert_non_null(strstr(err.remedy, "kptr_restrict"));
	feed_kernel_mmap(0xffffffff81000000, 0x1000, 0xffffffff81000000, "[kernel.kallsyms]_text");
	assert_string_equal(kernel_name(0xffffffff81000180, &location), "-");
	assert_non_null(strstr(tally_dso_remedy(location.dso), "kptr_restrict"));
	remove_file(dir, "kallsyms");
	rmdir(dir);
}

static void test_broken_kallsyms(void **state)
{
	char dir[] = "/tmp/tally-test-XXXXXX";
	struct tally_location location;

	(void)state;
	assert_non_null(mkdtemp(dir));
	open_kernel(dir, "\n \nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n"
			 "zz T x\nffffffff81000100 T good\nffffffff81000200 T \t[m]\nffffffff810");
	assert_string_equal(kernel_name(0xffffffff81000180, &location), "good");
	remove_file(dir, "kallsyms");
	rmdir(dir);
}

/* The tree against the plain definition, on random mappings. */
static void test_space_against_a_list(void **state)
{
	const struct tly_moment from = {0, 0}, until = {UINT64_MAX, UINT64_MAX};
	struct tly_space space = {0};
	struct tly_map maps[400];
	unsigned int seed = 12345;

	(void)state;
	for (size_t i = 0; i < 400; i++) {
		uint64_t start = rand_r(&seed) % 2000;
		uint64_t time = rand_r(&seed) % 50;

		maps[i] = (struct tly_map){
			.start = start, .end = start + rand_r(&seed) % 200, .since = {time, i}};
		assert_int_equal(tly_space_add(&space, &maps[i]), 0);
		for (int probe = 0; probe < 50; probe++) {
			uint64_t address = rand_r(&seed) % 2300, at = rand_r(&seed) % 50;
			const struct tly_map *best = NULL, *next = NULL;
			struct tly_space_result result;

			for (size_t j = 0; j <= i; j++) {
				if (address < maps[j].start || address >= maps[j].end)
					continue;
				if (maps[j].since.time <= at) {
					if (!best || tly_moment_before(best->since, maps[j].since))
						best = &maps[j];
				} else if (!next || tly_moment_before(maps[j].since, next->since)) {
					next = &maps[j];
				}
			}
			result = tly_space_find(&space, address, at, from, until);
			assert_int_equal(!result.map, !best);
			assert_int_equal(!result.next, !next);
			if (best)
				assert_int_equal(result.map->since.order, best->since.order);
			if (next)
				assert_int_equal(result.next->since.order, next->since.order);
		}
	}
	tly_space_free(&space);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_mapping_bounds),
		TEST(test_later_mapping_hides_the_middle),
		TEST(test_same_time_last_fed_wins),
		TEST(test_sample_before_its_mapping),
		TEST(test_exec_replaces),
		TEST(test_fork_inherits_that_moment),
		TEST(test_pid_is_used_again),
		TEST(test_forks_in_a_circle),
		TEST(test_comms),
		TEST(test_ksymbols),
		TEST(test_build_ids_tell_files_apart),
		TEST(test_build_id_from_the_table),
		TEST(test_levels),
		TEST(test_kernel_and_modules),
		TEST(test_restricted_kallsyms),
		TEST(test_broken_kallsyms),
		TEST(test_space_against_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
