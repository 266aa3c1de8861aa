// SPDX-License-Identifier: MIT
/* Where the symbols of a stripped, moved or replaced file are found; files are made with gcc. */
#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/symbol.h>

#include "lib/symbol/build_id.h"
#include "lib/symbol/elffile.h"

static char dir[] = "/tmp/tally-files-XXXXXX";
static char previous_home[256];
static struct tally_symbols *symbols;
static struct tally_machine *machine;
/* Of the unstripped program: where hidden() is in its code, and its build-id. */
static uint64_t hidden_offset;
static struct tly_build_id build_id;

static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *format, ...)
{
	char command[2048], text[1800];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	snprintf(command, sizeof(command), "cd %s && { %s; } >/dev/null 2>&1", dir, text);
	return !system(command);
}

static const char *in_dir(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void find_hidden(void)
{
	struct tly_segment *segments;
	struct tly_elf file;
	char line[256];
	uint64_t address = 0;
	FILE *nm;
	int nr;

	assert_true(run("nm program | grep ' t hidden' >symbols"));
	nm = fopen(in_dir("symbols"), "r");
	assert_non_null(nm);
	assert_non_null(fgets(line, sizeof(line), nm));
	fclose(nm);
	address = strtoull(line, NULL, 16);
	assert_int_equal(tly_elf_open(&file, in_dir("program"), false), 0);
	tly_build_id_of_elf(file.elf, &build_id);
	nr = tly_elf_segments(file.elf, &segments);
	tly_elf_close(&file);
	for (int i = 0; i < nr; i++) {
		if (address >= segments[i].vaddr && address - segments[i].vaddr < segments[i].size)
			hidden_offset = address - segments[i].vaddr + segments[i].offset;
	}
	free(segments);
	assert_int_not_equal(hidden_offset, 0);
	assert_int_equal(build_id.size, 20);
}

static int make_program(void **state)
{
	FILE *source;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	source = fopen(in_dir("program.c"), "w");
	if (!source)
		return -1;
	fputs("__attribute__((noinline)) static int hidden(int x) { return x * 3; }\n"
	      "int main(int argc, char **argv) { (void)argv; return hidden(argc); }\n",
	      source);
	fclose(source);
	snprintf(previous_home, sizeof(previous_home), "%s", getenv("HOME") ? getenv("HOME") : "");
	if (run("gcc -O1 -g -Wl,--build-id=sha1 -o program program.c"))
		find_hidden();
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int remove_dir(void **state)
{
	(void)state;
	return nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int set_up(void **state)
{
	(void)state;
	symbols = NULL;
	run("rm -rf stripped* .debug debug home map root store");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tally_symbols_free(symbols);
	setenv("HOME", previous_home, 1);
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	return 0;
}

static void need_tools(void)
{
	if (!hidden_offset || !run("objcopy --version && strip --version")) {
		print_message("# SKIP gcc, objcopy or strip is not installed\n");
		skip();
	}
}

static void open_machine(const struct tally_symbols_options *options)
{
	symbols = tally_symbols_new(options);
	machine = tally_machine_new(symbols);
	assert_non_null(machine);
}

/* What hidden() is called in the file of that name, mapped as a whole. */
static const char *hidden_name(const char *name, const struct tly_build_id *id,
			       struct tally_location *location)
{
	struct tally_record record = {
		.type = PERF_RECORD_MMAP2,
		.misc = PERF_RECORD_MISC_USER,
		.mmap = {.pid = getpid(), .start = 0x10000, .len = 0x100000, .filename = name}};

	if (id) {
		record.mmap.has_build_id = true;
		record.mmap.build_id_size = id->size;
		memcpy(record.mmap.build_id, id->bytes, id->size);
	}
	assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
	tally_machine_resolve(machine, getpid(), 0, PERF_RECORD_MISC_USER, 0x10000 + hidden_offset,
			      location);
	return location->symbol ? location->symbol->name : "-";
}

static void hex(char text[TLY_BUILD_ID_TEXT])
{
	tly_build_id_format(&build_id, text);
}

static void test_stripped(void **state)
{
	struct tally_location location;

	(void)state;
	need_tools();
	assert_true(run("strip -o stripped program"));
	open_machine(NULL);
	assert_string_equal(hidden_name(in_dir("stripped"), NULL, &location), "-");
	assert_non_null(location.dso);
}

static void test_debug_directory(void **state)
{
	struct tally_symbols_options options = {.debug_dir = in_dir("debug")};
	struct tally_source_frame frame;
	struct tally_location location;
	char id[TLY_BUILD_ID_TEXT];

	(void)state;
	need_tools();
	hex(id);
	assert_true(run("strip -o stripped program && mkdir -p debug/.build-id/%.2s && "
			"objcopy --only-keep-debug program debug/.build-id/%.2s/%s.debug",
			id, id, id + 2));
	open_machine(&options);
	assert_string_equal(hidden_name(in_dir("stripped"), NULL, &location), "hidden");
	assert_int_equal(tally_dso_source(location.dso, location.address, &frame, 1), 1);
	assert_int_equal(frame.line, 1);
}

static void test_mini_debug_info(void **state)
{
	struct tally_location location;

	(void)state;
	need_tools();
	if (!run("xz --version")) {
		print_message("# SKIP xz is not installed\n");
		skip();
	}
	assert_true(run("objcopy --strip-debug program stripped.mini && xz -k stripped.mini && "
			"strip -o stripped program && "
			"objcopy --add-section .gnu_debugdata=stripped.mini.xz stripped"));
	open_machine(&(struct tally_symbols_options){.debug_dir = "/no"});
	assert_string_equal(hidden_name(in_dir("stripped"), NULL, &location), "hidden");
	assert_int_equal(location.symbol->start, location.address);
}

static void test_file_was_replaced(void **state)
{
	struct tally_location location;
	char id[TLY_BUILD_ID_TEXT];

	(void)state;
	need_tools();
	hex(id);
	assert_true(run("gcc -O2 -Wl,--build-id=sha1 -DOTHER -o stripped.new program.c && "
			"mkdir -p home"));
	setenv("HOME", in_dir("home"), 1);
	open_machine(NULL);
	assert_string_equal(hidden_name(in_dir("stripped.new"), &build_id, &location), "-");
	assert_non_null(strstr(tally_dso_problem(location.dso), "changed since the recording"));
	assert_non_null(strstr(tally_dso_problem(location.dso), id));
	tally_symbols_free(symbols);
	/* perf's store has the one that was recorded. */
	assert_true(run("mkdir -p home/.debug/.build-id/%.2s/%s && "
			"cp program home/.debug/.build-id/%.2s/%s/elf",
			id, id + 2, id, id + 2));
	open_machine(NULL);
	assert_string_equal(hidden_name(in_dir("stripped.new"), &build_id, &location), "hidden");
	assert_null(tally_dso_problem(location.dso));
	assert_null(tally_dso_remedy(location.dso));
	assert_string_equal(tally_dso_name(location.dso), in_dir("stripped.new"));
}

static void test_deleted_file(void **state)
{
	struct tally_location location;
	char name[600];

	(void)state;
	need_tools();
	snprintf(name, sizeof(name), "%s (deleted)", in_dir("program"));
	open_machine(NULL);
	assert_string_equal(hidden_name(name, NULL, &location), "-");
	assert_non_null(strstr(tally_dso_problem(location.dso), "deleted"));
	assert_non_null(strstr(tally_dso_remedy(location.dso), "record again"));
	tally_symbols_free(symbols);
	/* The same build was put back. */
	open_machine(NULL);
	assert_string_equal(hidden_name(name, &build_id, &location), "hidden");
}

/* A program that was upgraded while it runs: the kernel keeps the file. */
static void test_deleted_file_that_runs(void **state)
{
	struct tally_location location;
	char name[600], byte;
	struct tally_record record = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_USER,
		.mmap = {.start = 0x10000, .len = 0x100000, .filename = name},
	};
	int in[2], out[2], status;
	bool named = false;
	pid_t child;

	(void)state;
	need_tools();
	assert_true(run("cp /bin/cat stripped.cat"));
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	snprintf(name, sizeof(name), "%s", in_dir("stripped.cat"));
	child = fork();
	if (!child) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execl(name, "cat", NULL);
		_exit(127);
	}
	assert_int_equal(write(in[1], "x", 1), 1);
	assert_int_equal(read(out[0], &byte, 1), 1);
	assert_int_equal(unlink(name), 0);
	open_machine(NULL);
	strcat(name, " (deleted)");
	record.mmap.pid = child;
	assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
	for (uint64_t offset = 0; !named; offset += 8) {
		tally_machine_resolve(machine, child, 0, PERF_RECORD_MISC_USER, 0x10000 + offset,
				      &location);
		assert_string_equal(tally_dso_name(location.dso), name);
		named = location.symbol != NULL;
		assert_true(offset < 0x10000);
	}
	assert_non_null(strstr(tally_dso_problem(location.dso), "stripped"));
	close(in[1]);
	close(in[0]);
	close(out[0]);
	close(out[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
}

/* A process that sees another file by the recorded name, as in a container. */
static void test_mount_namespace(void **state)
{
	struct tally_record record = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_USER,
		.mmap = {.start = 0x10000, .len = 0x100000},
	};
	struct tally_location location;
	char name[512], byte = 0;
	int ready[2], done[2], status;
	pid_t child;

	(void)state;
	need_tools();
	assert_true(run("mkdir -p map && cp /bin/true map/program"));
	snprintf(name, sizeof(name), "%s", in_dir("map/program"));
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(done), 0);
	child = fork();
	if (!child) {
		if (!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		    !mount("none", in_dir("map"), "tmpfs", 0, NULL) &&
		    run("cp program map/program"))
			byte = 1;
		if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	if (byte) {
		open_machine(NULL);
		record.mmap.pid = child;
		record.mmap.filename = name;
		assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
		tally_machine_resolve(machine, child, 0, PERF_RECORD_MISC_USER,
				      0x10000 + hidden_offset, &location);
		assert_non_null(location.symbol);
		assert_string_equal(location.symbol->name, "hidden");
		assert_string_equal(tally_dso_name(location.dso), name);
	}
	assert_int_equal(write(done[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!byte) {
		print_message("# SKIP this user cannot make a mount namespace\n");
		skip();
	}
}

static void test_symfs(void **state)
{
	struct tally_symbols_options options = {0};
	struct tally_location location;

	(void)state;
	need_tools();
	assert_true(run("mkdir -p root/opt/x && cp program root/opt/x/program"));
	options.symfs = in_dir("root");
	open_machine(&options);
	assert_string_equal(hidden_name("/opt/x/program", NULL, &location), "hidden");
	assert_string_equal(tally_dso_name(location.dso), "/opt/x/program");
}

/* A directory can be a debuginfod server. */
static void test_debuginfod(void **state)
{
	struct tally_symbols_options options = {.debug_dir = "/no"};
	struct tally_location location;
	char id[TLY_BUILD_ID_TEXT], url[600];

	(void)state;
	need_tools();
	if (access("/usr/lib/x86_64-linux-gnu/libdebuginfod.so.1", R_OK)) {
		print_message("# SKIP libdebuginfod is not installed\n");
		skip();
	}
	hex(id);
	assert_true(run("strip -o stripped program && mkdir -p store/buildid/%s && "
			"objcopy --only-keep-debug program store/buildid/%s/debuginfo",
			id, id));
	snprintf(url, sizeof(url), "file://%s", in_dir("store"));
	setenv("DEBUGINFOD_CACHE_PATH", in_dir("home"), 1);
	/* Nobody is asked who was not named, or when told not to. */
	open_machine(&options);
	assert_string_equal(hidden_name(in_dir("stripped"), NULL, &location), "-");
	tally_symbols_free(symbols);
	setenv("DEBUGINFOD_URLS", url, 1);
	options.no_debuginfod = true;
	open_machine(&options);
	assert_string_equal(hidden_name(in_dir("stripped"), NULL, &location), "-");
	tally_symbols_free(symbols);
	options.no_debuginfod = false;
	open_machine(&options);
	assert_string_equal(hidden_name(in_dir("stripped"), NULL, &location), "hidden");
}

/* One library is closed and another comes to lie in its place. */
static void test_two_libraries_at_one_address(void **state)
{
	struct tally_record record = {
		.type = PERF_RECORD_MMAP2,
		.misc = PERF_RECORD_MISC_USER,
		.mmap = {.pid = 1, .start = 0x7f0000000000, .len = 0x10000},
	};
	static const char *const names[] = {"first", "second"};
	struct tally_location location;

	(void)state;
	need_tools();
	open_machine(NULL);
	for (unsigned int i = 0; i < 2; i++) {
		char path[512];

		assert_true(run("echo 'int %s(int x) { return x + 1; }' | "
				"gcc -O1 -shared -fPIC -nostdlib -x c -o stripped.%s.so -",
				names[i], names[i]));
		snprintf(path, sizeof(path), "%s/stripped.%s.so", dir, names[i]);
		record.mmap.filename = path;
		assert_int_equal(tally_machine_feed(machine, &record, 10 * (i + 1)), 0);
	}
	for (unsigned int i = 0; i < 4; i++) {
		tally_machine_resolve(machine, 1, 15 + 10 * (i % 2), PERF_RECORD_MISC_USER,
				      0x7f0000001000, &location);
		assert_non_null(location.symbol);
		assert_string_equal(location.symbol->name, names[i % 2]);
	}
}

/* A kernel's file, linked elsewhere than the kernel of the recording ran. */
static void test_vmlinux(void **state)
{
	struct tally_symbols_options options = {0};
	struct tally_record record = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_KERNEL,
		.mmap = {.pid = UINT32_MAX,
			 .start = 0xffffffff91000000,
			 .len = 0x10000,
			 .pgoff = 0xffffffff91000000,
			 .filename = "[kernel.kallsyms]_text"},
	};
	struct tally_source_frame frame;
	struct tally_location location;

	(void)state;
	need_tools();
	assert_true(run("echo '__asm__(\".globl _text; _text:\");"
			"void schedule(void) { __asm__ volatile (\"hlt\"); }' | "
			"gcc -O1 -g -nostdlib -static -mcmodel=kernel -fno-pic -no-pie "
			"-Wl,-Ttext=0xffffffff81000000 -Wl,-e,0 -x c -o vmlinux -"));
	options.vmlinux = in_dir("vmlinux");
	open_machine(&options);
	assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
	tally_machine_resolve(machine, 1, 0, PERF_RECORD_MISC_KERNEL, 0xffffffff91000000,
			      &location);
	assert_non_null(location.symbol);
	assert_string_equal(location.symbol->name, "schedule");
	assert_int_equal(location.address, 0xffffffff81000000);
	assert_int_equal(tally_dso_source(location.dso, location.address, &frame, 1), 1);
	assert_string_equal(frame.function, "schedule");
	assert_int_equal(frame.line, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_stripped),	    TEST(test_debug_directory),
		TEST(test_mini_debug_info), TEST(test_file_was_replaced),
		TEST(test_deleted_file),    TEST(test_deleted_file_that_runs),
		TEST(test_mount_namespace), TEST(test_symfs),
		TEST(test_debuginfod),	    TEST(test_two_libraries_at_one_address),
		TEST(test_vmlinux),
	};

	return cmocka_run_group_tests(tests, make_program, remove_dir);
}
