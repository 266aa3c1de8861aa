// SPDX-License-Identifier: MIT
/* This process, its libraries and its children, against what the dynamic linker and nm say. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/symbol.h>

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

static struct tally_location resolve(int pid, const void *address)
{
	struct tally_location location;

	tally_machine_resolve(machine, pid, 0, PERF_RECORD_MISC_USER, (uintptr_t)address,
			      &location);
	return location;
}

__attribute__((noinline)) static int local_function(int value)
{
	return value * 3;
}

static void test_own_functions(void **state)
{
	struct tally_location location;

	(void)state;
	assert_int_equal(tally_machine_feed_proc(machine, getpid(), NULL), 0);
	assert_int_equal(local_function(2), 6);
	location = resolve(getpid(), local_function);
	assert_string_equal(location.symbol->name, "local_function");
	assert_int_equal(location.symbol->start, location.address);
	assert_non_null(strstr(tally_dso_name(location.dso), "test-symbol-resolve"));
	location = resolve(getpid(), (char *)local_function + 3);
	assert_string_equal(location.symbol->name, "local_function");
	location = resolve(getpid(), tally_machine_resolve);
	assert_string_equal(location.symbol->name, "tally_machine_resolve");
}

/* Each dynamic function of libc that dladdr() knows is found with the same extent. */
static void test_libc_against_nm(void **state)
{
	struct tally_location location;
	char command[512], line[512];
	unsigned int checked = 0;
	Dl_info libc;
	FILE *nm;

	(void)state;
	assert_int_equal(tally_machine_feed_proc(machine, getpid(), NULL), 0);
	assert_true(dladdr((void *)getpid, &libc));
	if (system("nm --version >/dev/null 2>&1")) {
		print_message("# SKIP nm is not installed\n");
		skip();
	}
	snprintf(command, sizeof(command), "nm -D -S --defined-only %s", libc.dli_fname);
	nm = popen(command, "r");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm)) {
		unsigned long start, size;
		char type;

		if (sscanf(line, "%lx %lx %c", &start, &size, &type) != 3 || !strchr("TW", type) ||
		    !size)
			continue;
		location = resolve(getpid(), (char *)libc.dli_fbase + start + size / 2);
		assert_non_null(location.symbol);
		assert_int_equal(location.address, start + size / 2);
		assert_true(location.symbol->start >= start &&
			    location.symbol->start <= location.address);
		assert_true(location.symbol->end > location.address);
		checked++;
	}
	pclose(nm);
	assert_true(checked > 1000);
}

static void test_names_that_dladdr_gives(void **state)
{
	static const char *const names[] = {"qsort", "getenv", "dladdr", "pclose", "setenv"};

	(void)state;
	assert_int_equal(tally_machine_feed_proc(machine, getpid(), NULL), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *function = dlsym(RTLD_DEFAULT, names[i]);
		struct tally_location location = resolve(getpid(), function);
		Dl_info info;

		assert_non_null(function);
		assert_true(dladdr(function, &info));
		/* Aliases (dladdr, __dladdr) may go by another name; the place is the same. */
		assert_non_null(location.symbol);
		assert_int_equal(location.symbol->start,
				 (char *)info.dli_saddr - (char *)info.dli_fbase);
		assert_non_null(strstr(location.symbol->name, names[i]));
	}
}

static void test_plt(void **state)
{
	struct tally_location location;
	char path[] = "/tmp/tally-plt-XXXXXX", command[256], line[256];
	unsigned long start = 0;
	FILE *out;

	(void)state;
	if (system("objdump --version >/dev/null 2>&1")) {
		print_message("# SKIP objdump is not installed\n");
		skip();
	}
	assert_int_equal(close(mkstemp(path)), 0);
	assert_int_equal(tally_machine_feed_proc(machine, getpid(), NULL), 0);
	location = resolve(getpid(), local_function);
	snprintf(command, sizeof(command), "objdump -d -j .plt -j .plt.sec -j .plt.got %s 2>%s",
		 tally_dso_name(location.dso), path);
	out = popen(command, "r");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		if (strstr(line, "<getauxval@plt>:")) {
			start = strtoul(line, NULL, 16);
			break;
		}
	}
	pclose(out);
	unlink(path);
	assert_int_not_equal(start, 0);
	/* Where in memory the table is, by where this function is in both. */
	location = resolve(getpid(), (char *)local_function - location.address + start + 4);
	assert_string_equal(location.symbol->name, "getauxval@plt");
}

static void test_vdso(void **state)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	struct tally_location location;
	unsigned int named = 0;
	bool found = false;

	(void)state;
	if (!image) {
		print_message("# SKIP this kernel maps no vdso\n");
		skip();
	}
	assert_int_equal(tally_machine_feed_proc(machine, getpid(), NULL), 0);
	for (size_t at = 0; at < 4096; at += 16) {
		location = resolve(getpid(), image + at);
		if (!location.dso)
			continue;
		assert_string_equal(tally_dso_name(location.dso), "[vdso]");
		if (location.symbol) {
			named++;
			found |= strstr(location.symbol->name, "vdso_clock_gettime") ||
				 strstr(location.symbol->name, "clock_gettime");
		}
	}
	assert_true(named > 0);
	assert_true(found);
}

static void test_kernel(void **state)
{
	struct tally_location location;
	struct tally_error err;
	unsigned long address;
	char line[512], name[256], type;
	unsigned int checked = 0;
	FILE *kallsyms;

	(void)state;
	if (tally_machine_feed_proc(machine, -1, &err)) {
		print_message("# SKIP %s\n", err.what);
		skip();
	}
	kallsyms = fopen("/proc/kallsyms", "r");
	assert_non_null(kallsyms);
	while (fgets(line, sizeof(line), kallsyms) && checked < 20000) {
		if (sscanf(line, "%lx %c %255s", &address, &type, name) != 3 ||
		    !strchr("T", type) || strchr(line, '['))
			continue;
		tally_machine_resolve(machine, 1, 0, PERF_RECORD_MISC_KERNEL, address, &location);
		assert_non_null(location.symbol);
		assert_int_equal(location.symbol->start, address);
		checked++;
	}
	fclose(kallsyms);
	assert_true(checked > 1000);
}

static void test_jit_map(void **state)
{
	struct tally_record record = {.type = PERF_RECORD_MMAP,
				      .misc = PERF_RECORD_MISC_USER,
				      .mmap = {.start = 0x10000, .len = 0x1000}};
	struct timespec wait = {.tv_nsec = 120000000};
	const uint32_t pid = 4200000; /* above any pid_max of a test machine's processes */
	struct tally_location location;
	const struct tally_symbol *kept;
	char path[64];
	FILE *map;

	(void)state;
	record.mmap.pid = pid;
	record.mmap.filename = "//anon";
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
	unlink(path);
	map = fopen(path, "w");
	assert_non_null(map);
	fprintf(map, "10000 20 LazyCompile:~main a.js:1\n0x10040 0x10 Stub\nbroken\n10050 zz x\n"
		     "10060 0 empty\n");
	fflush(map);
	assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
	location = resolve(pid, (void *)0x1001f);
	assert_string_equal(location.symbol->name, "LazyCompile:~main a.js:1");
	assert_string_equal(tally_dso_name(location.dso), path);
	assert_int_equal(location.address, 0x1001f);
	kept = location.symbol;
	location = resolve(pid, (void *)0x10041);
	assert_string_equal(location.symbol->name, "Stub");
	location = resolve(pid, (void *)0x10060);
	assert_null(location.symbol);
	/* It grows; what was found before stays. */
	fprintf(map, "10060 10 Late\n");
	fclose(map);
	nanosleep(&wait, NULL);
	location = resolve(pid, (void *)0x10065);
	assert_string_equal(location.symbol->name, "Late");
	assert_string_equal(kept->name, "LazyCompile:~main a.js:1");
	unlink(path);
}

static void test_jit_without_map(void **state)
{
	struct tally_record record = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_USER,
		.mmap = {.pid = 4200001, .start = 0x10000, .len = 0x1000, .filename = "//anon"}};
	struct tally_location location;

	(void)state;
	assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
	location = resolve(4200001, (void *)0x10010);
	assert_null(location.symbol);
	assert_non_null(strstr(tally_dso_problem(location.dso), "/tmp/perf-4200001.map"));
}

/* A FIFO by the name of a map must not stop anything. */
static void test_jit_map_is_a_fifo(void **state)
{
	struct tally_record record = {.type = PERF_RECORD_MMAP,
				      .misc = PERF_RECORD_MISC_USER,
				      .mmap = {.pid = 4200002,
					       .start = 0x10000,
					       .len = 0x1000,
					       .filename = "/dev/zero (deleted)"}};

	(void)state;
	unlink("/tmp/perf-4200002.map");
	assert_int_equal(mkfifo("/tmp/perf-4200002.map", 0600), 0);
	assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
	assert_null(resolve(4200002, (void *)0x10010).symbol);
	unlink("/tmp/perf-4200002.map");
}

/* A process in a container: pid 1 there, with its own /tmp. Writes its pid as seen from here. */
static void contain(int ready, int done)
{
	pid_t inner = 0;
	FILE *map;
	char byte;

	if (!unshare(CLONE_NEWNS | CLONE_NEWPID) &&
	    !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("none", "/tmp", "tmpfs", 0, NULL)) {
		map = fopen("/tmp/perf-1.map", "w");
		fprintf(map, "10000 100 Contained\n");
		fclose(map);
		inner = fork();
		if (!inner) {
			if (read(done, &byte, 1) < 0)
				_exit(1);
			_exit(0);
		}
	}
	if (write(ready, &inner, sizeof(inner)) != sizeof(inner))
		_exit(1);
	if (inner > 0)
		waitpid(inner, NULL, 0);
	_exit(0);
}

static void test_jit_map_in_a_container(void **state)
{
	struct tally_record record = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_USER,
		.mmap = {.start = 0x10000, .len = 0x1000, .filename = "//anon"}};
	struct tally_location location;
	int ready[2], done[2], status;
	pid_t child, inner;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(done), 0);
	child = fork();
	if (!child)
		contain(ready[1], done[0]);
	assert_int_equal(read(ready[0], &inner, sizeof(inner)), sizeof(inner));
	if (inner > 0) {
		record.mmap.pid = inner;
		assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
		location = resolve(inner, (void *)0x10010);
		assert_non_null(location.symbol);
		assert_string_equal(location.symbol->name, "Contained");
	}
	assert_int_equal(write(done[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (inner <= 0) {
		print_message("# SKIP this user cannot make a container\n");
		skip();
	}
}

static void test_executed_child(void **state)
{
	struct tally_location location;
	char byte, path[64];
	int in[2], out[2], status;
	FILE *maps;
	char line[512];
	unsigned long start = 0;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	child = fork();
	if (!child) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execlp("cat", "cat", NULL);
		_exit(127);
	}
	assert_int_equal(write(in[1], "x", 1), 1);
	assert_int_equal(read(out[0], &byte, 1), 1);
	assert_int_equal(tally_machine_feed_proc(machine, child, NULL), 0);
	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	maps = fopen(path, "r");
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "r-xp") && strstr(line, "/cat")) {
			start = strtoul(line, NULL, 16);
			break;
		}
	}
	fclose(maps);
	assert_int_not_equal(start, 0);
	location = resolve(child, (void *)start);
	assert_string_equal(tally_dso_short_name(location.dso), "cat");
	assert_string_equal(tally_machine_comm(machine, child, child, 0), "cat");
	close(in[1]);
	close(out[0]);
	close(in[0]);
	close(out[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
}

static void test_no_such_process(void **state)
{
	struct tally_error err;

	(void)state;
	assert_int_equal(tally_machine_feed_proc(machine, 4200003, &err), -ESRCH);
	assert_non_null(strstr(err.what, "4200003"));
}

static void test_not_an_elf_file(void **state)
{
	static const struct {
		const char *name, *problem;
	} rows[] = {
		{"/etc/passwd", "not an ELF file"},
		{"/etc", "not an ELF file"},
		{"/dev/null", "not an ELF file"},
		{"/no/such/file", "cannot open the file: No such file"},
		{"/usr/bin/env (deleted)", "deleted while the program ran"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally_record record = {.type = PERF_RECORD_MMAP,
					      .misc = PERF_RECORD_MISC_USER,
					      .mmap = {.pid = 1,
						       .start = 0x10000 * (i + 1),
						       .len = 0x1000,
						       .filename = rows[i].name}};
		struct tally_location location;

		assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
		location = resolve(1, (void *)(0x10000 * (i + 1)));
		assert_null(location.symbol);
		assert_non_null(strstr(tally_dso_problem(location.dso), rows[i].problem));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_own_functions),
		TEST(test_libc_against_nm),
		TEST(test_names_that_dladdr_gives),
		TEST(test_plt),
		TEST(test_vdso),
		TEST(test_kernel),
		TEST(test_jit_map),
		TEST(test_jit_without_map),
		TEST(test_jit_map_is_a_fifo),
		TEST(test_jit_map_in_a_container),
		TEST(test_executed_child),
		TEST(test_no_such_process),
		TEST(test_not_an_elf_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
