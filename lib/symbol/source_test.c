// SPDX-License-Identifier: MIT
/* Frames at random addresses of programs built here and of the C library, against addr2line(1). */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/symbol.h>

#include "lib/symbol/dso.h"

#define NR_ADDRESSES 1500
#define MAX_FRAMES   64

static char dir[] = "/tmp/tally-source-XXXXXX";
static struct tally_symbols *symbols;

static const char c_main[] = "#include <stdio.h>\n"
			     "#include <stdlib.h>\n"
			     "#include \"shared.h\"\n"
			     "extern int other(int);\n"
			     "static inline int leaf(int x) { return x * 7 ^ x >> 3; }\n"
			     "static inline int middle(int x)\n"
			     "{\n"
			     "	int sum = 0;\n"
			     "	for (int i = 0; i < x; i++) {\n"
			     "		if (leaf(i) & 1)\n"
			     "			sum += leaf(i + x);\n"
			     "		else\n"
			     "			sum -= shared(i);\n"
			     "	}\n"
			     "	return sum;\n"
			     "}\n"
			     "__attribute__((noinline)) int work(int x)\n"
			     "{\n"
			     "	if (__builtin_expect(x == 12345, 0))\n"
			     "		abort();\n"
			     "	return middle(x) + middle(x / 2) + other(x);\n"
			     "}\n"
			     "int main(int argc, char **argv)\n"
			     "{\n"
			     "	(void)argv;\n"
			     "	for (int i = 0; i < 10; i++)\n"
			     "		printf(\"%d\\n\", work(i * argc));\n"
			     "	return 0;\n"
			     "}\n";

static const char c_shared[] = "static inline int shared(int x)\n"
			       "{\n"
			       "	return x % 17 ? x / 3 : x << 2;\n"
			       "}\n";

static const char c_other[] = "#include <string.h>\n"
			      "#include \"shared.h\"\n"
			      "int other(int x)\n"
			      "{\n"
			      "	char buffer[64];\n"
			      "	memset(buffer, x, sizeof(buffer));\n"
			      "	for (int i = 0; i < 64; i++)\n"
			      "		buffer[i] ^= shared(i + x);\n"
			      "	return buffer[x & 63];\n"
			      "}\n";

static const char cxx_main[] =
	"#include <algorithm>\n"
	"#include <map>\n"
	"#include <string>\n"
	"#include <vector>\n"
	"#include <iostream>\n"
	"namespace outer { namespace {\n"
	"template <typename T> struct Table {\n"
	"	std::vector<T> rows;\n"
	"	void add(const T &row) { rows.push_back(row); }\n"
	"	T total() const { T t{}; for (auto &r : rows) t += r; return t; }\n"
	"};\n"
	"} }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	outer::Table<int> numbers;\n"
	"	outer::Table<std::string> words;\n"
	"	std::map<std::string, int> count;\n"
	"	for (int i = 0; i < argc * 20; i++) {\n"
	"		numbers.add(i * 3 % 7);\n"
	"		words.add(argv[i % argc]);\n"
	"		count[words.rows.back()]++;\n"
	"	}\n"
	"	std::sort(numbers.rows.begin(), numbers.rows.end(),\n"
	"		  [](int a, int b) { return a > b; });\n"
	"	std::cout << numbers.total() << words.total() << count.size() << '\\n';\n"
	"}\n";

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int set_up(void **state)
{
	(void)state;
	symbols = tally_symbols_new(&(struct tally_symbols_options){.no_demangle = true});
	return symbols ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	tally_symbols_free(symbols);
	return 0;
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *format, ...)
{
	char command[2048];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	return !system(command);
}

/* Random addresses in the code of @path that are of a function, not of the padding between two. */
static void choose(struct tally_dso *dso, const char *path, uint64_t *addresses)
{
	unsigned int seed = 20240229;
	struct tly_elf file;
	GElf_Shdr text;

	assert_int_equal(tly_elf_open(&file, path, false), 0);
	assert_non_null(tly_elf_section(file.elf, ".text", &text));
	tly_elf_close(&file);
	for (size_t i = 0; i < NR_ADDRESSES; i++) {
		do
			addresses[i] = text.sh_addr + (uint64_t)rand_r(&seed) % text.sh_size;
		while (!tly_dso_find(dso, addresses[i]));
	}
}

/* One line of addr2line's answer, without the newline; false at the end. */
static bool get_line(FILE *in, char *line, size_t size)
{
	if (!fgets(line, size, in))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* "dir/file.c:12 (discriminator 3)" is split; unknown parts become NULL and 0. */
static void split_place(char *place, const char **file, unsigned int *line)
{
	char *colon = strrchr(place, ':');

	assert_non_null(colon);
	*line = strtoul(colon + 1, NULL, 10);
	*colon = '\0';
	*file = strcmp(place, "??") ? place : NULL;
}

static bool same_file(const char *ours, const char *theirs)
{
	char left[4096], right[4096];

	if (!ours || !theirs)
		return ours == theirs;
	/* The same file by another spelling: dir/../x.h. */
	if (!strcmp(ours, theirs))
		return true;
	if (realpath(ours, left) && realpath(theirs, right))
		return !strcmp(left, right);
	ours = strrchr(ours, '/') ? strrchr(ours, '/') : ours;
	theirs = strrchr(theirs, '/') ? strrchr(theirs, '/') : theirs;
	return !strcmp(ours, theirs);
}

/* What an answer differs in, and how many inlined functions it had. */
struct result {
	unsigned int frames, files, inlined;
};

/* addr2line falls back on the symbol where DWARF has no mangled name. */
static bool same_function(struct tally_dso *dso, uint64_t address, const char *ours,
			  const char *theirs)
{
	const struct tally_symbol *symbol;

	if (ours && !strcmp(ours, theirs))
		return true;
	symbol = tly_dso_find(dso, address);
	return symbol && (!strcmp(symbol->name, theirs) || (ours && !strcmp(symbol->name, ours)));
}

/* Compares every frame of every address. */
static struct result compare(const char *path, const char *code)
{
	uint64_t addresses[NR_ADDRESSES];
	char list[256], command[1024], line[8192];
	struct result result = {0};
	struct tally_dso *dso;
	FILE *file;
	bool more;

	snprintf(list, sizeof(list), "%s/addresses", dir);
	dso = tly_dso_get(symbols, path, TLY_DSO_FILE, NULL, 0);
	assert_non_null(dso);
	choose(dso, code, addresses);
	file = fopen(list, "w");
	assert_non_null(file);
	for (size_t i = 0; i < NR_ADDRESSES; i++)
		fprintf(file, "%#lx\n", addresses[i]);
	fclose(file);
	snprintf(command, sizeof(command), "addr2line -a -i -f -e %s <%s", path, list);
	file = popen(command, "r");
	assert_non_null(file);
	more = get_line(file, line, sizeof(line));
	for (size_t i = 0; i < NR_ADDRESSES; i++) {
		struct tally_source_frame frames[MAX_FRAMES];
		size_t nr = tally_dso_source(dso, addresses[i], frames, MAX_FRAMES), at = 0;
		bool good = true;

		assert_true(nr <= MAX_FRAMES);
		assert_true(more);
		assert_int_equal(strtoull(line, NULL, 16), addresses[i]);
		while ((more = get_line(file, line, sizeof(line))) && strncmp(line, "0x", 2)) {
			char function[8192];
			const char *place;
			unsigned int number;

			strcpy(function, line);
			assert_true(get_line(file, line, sizeof(line)));
			split_place(line, &place, &number);
			/* Without debug information it answers with the symbol alone. */
			if (!nr && !at)
				good = !number;
			else if (at >= nr || frames[at].inlined != (at + 1 < nr))
				good = false;
			else
				good &= frames[at].line == number &&
					same_function(dso, addresses[i], frames[at].function,
						      function);
			if (at < nr) {
				result.files += !same_file(frames[at].file, place);
				result.inlined += frames[at].inlined;
			}
			if (!good && result.frames < 5)
				print_message(
					"# %#lx frame %zu of %zu: %s %s:%u, addr2line: %s "
					"%s:%u\n",
					addresses[i], at, nr, at < nr ? frames[at].function : "-",
					at < nr ? frames[at].file : "-",
					at < nr ? frames[at].line : 0, function, place, number);
			at++;
		}
		result.frames += !good;
	}
	pclose(file);
	return result;
}

static void check_program(const char *compiler, const char *sources, const char *flags)
{
	struct result result;
	char path[256];

	if (!run("addr2line --version >/dev/null 2>&1") ||
	    !run("%s --version >/dev/null 2>&1", compiler)) {
		print_message("# SKIP %s or addr2line is not installed\n", compiler);
		skip();
	}
	write_file("main.c", c_main);
	write_file("other.c", c_other);
	write_file("shared.h", c_shared);
	write_file("main.cc", cxx_main);
	snprintf(path, sizeof(path), "%s/program", dir);
	assert_true(run("cd %s && %s %s -o program %s", dir, compiler, flags, sources));
	result = compare(path, path);
	assert_int_equal(result.frames, 0);
	/* In DWARF 5, binutils 2.40 takes one file of a unit for another here and there. */
	assert_true(result.files <= (strstr(flags, "-gdwarf-4") ? 0 : NR_ADDRESSES / 10));
	assert_true(result.inlined > 100);
}

static void test_c_dwarf_5(void **state)
{
	(void)state;
	check_program("gcc", "main.c other.c", "-O2 -g -gdwarf-5");
}

static void test_c_dwarf_4(void **state)
{
	(void)state;
	check_program("gcc", "main.c other.c", "-O3 -g -gdwarf-4");
}

static void test_c_sections(void **state)
{
	(void)state;
	check_program("gcc", "main.c other.c",
		      "-O2 -g -ffunction-sections -Wl,--gc-sections -no-pie");
}

/* With room for one unit, each is dropped for the next; the answers are the same. */
static void test_limited_memory(void **state)
{
	(void)state;
	symbols->source_limit = 0;
	check_program("gcc", "main.c other.c", "-O2 -g -gdwarf-4");
}

static void test_clang(void **state)
{
	(void)state;
	check_program("clang", "main.c other.c", "-O2 -g -gdwarf-4");
}

static void test_cxx(void **state)
{
	(void)state;
	check_program("g++", "main.cc", "-O2 -g -gdwarf-4");
}

/* The debug information of the C library is in a file of its own, with a supplement of dwz's. */
static void test_system_library(void **state)
{
	uint64_t addresses[NR_ADDRESSES];
	struct tally_source_frame frames[MAX_FRAMES];
	struct tly_elf file;
	struct tally_dso *dso;
	struct result result;
	char *debug;
	const char *path = "/lib/x86_64-linux-gnu/libc.so.6";

	(void)state;
	if (tly_elf_open(&file, path, false)) {
		print_message("# SKIP the C library is not where Debian has it\n");
		skip();
	}
	dso = tly_dso_get(symbols, path, TLY_DSO_FILE, NULL, 0);
	tly_dso_load(dso);
	debug = tly_debug_file(dso, file.elf);
	tly_elf_close(&file);
	if (!debug) {
		print_message("# SKIP the debug information of %s is not installed\n", path);
		skip();
	}
	/* Through the library's own name, and what addr2line says of the debug file itself. */
	choose(dso, path, addresses);
	assert_true(tally_dso_source(dso, addresses[0], frames, MAX_FRAMES) > 0);
	result = compare(debug, path);
	assert_int_equal(result.frames, 0);
	assert_true(result.files <= NR_ADDRESSES / 10);
	assert_true(result.inlined > 10);
	free(debug);
}

/* Without the file that holds the functions, lines are left, and the symbol for a function. */
static void test_split_file_is_gone(void **state)
{
	struct tally_source_frame frame;
	struct tally_dso *dso;
	unsigned int lines = 0;
	char path[256];

	(void)state;
	if (!run("gcc --version >/dev/null 2>&1")) {
		print_message("# SKIP gcc is not installed\n");
		skip();
	}
	write_file("main.c", c_main);
	write_file("other.c", c_other);
	write_file("shared.h", c_shared);
	assert_true(run("cd %s && gcc -O2 -g -gdwarf-5 -gsplit-dwarf -o split main.c other.c && "
			"rm -f *.dwo",
			dir));
	snprintf(path, sizeof(path), "%s/split", dir);
	dso = tly_dso_get(symbols, path, TLY_DSO_FILE, NULL, 0);
	tly_dso_load(dso);
	for (size_t i = 0; i < dso->symtab->nr; i++) {
		const struct tally_symbol *symbol = &dso->symtab->symbols[i];

		if (strcmp(symbol->name, "work") && strcmp(symbol->name, "other"))
			continue;
		assert_int_equal(tally_dso_source(dso, symbol->start, &frame, 1), 1);
		assert_string_equal(frame.function, symbol->name);
		assert_non_null(frame.file);
		lines += frame.line > 0;
	}
	assert_int_equal(lines, 2);
}

static void test_separate_debug_file(void **state)
{
	struct tally_source_frame frame;
	const struct tally_symbol *symbol;
	struct tally_dso *dso;
	char path[256];
	uint64_t address = 0;

	(void)state;
	if (!run("gcc --version >/dev/null 2>&1 && objcopy --version >/dev/null 2>&1")) {
		print_message("# SKIP gcc or objcopy is not installed\n");
		skip();
	}
	write_file("main.c", c_main);
	write_file("other.c", c_other);
	write_file("shared.h", c_shared);
	assert_true(run("cd %s && gcc -O2 -g -Wl,--build-id=none -o split main.c other.c && "
			"objcopy --only-keep-debug split split.debug && strip split && "
			"objcopy --add-gnu-debuglink=split.debug split && nm split.debug | "
			"grep ' T work' >symbols",
			dir));
	snprintf(path, sizeof(path), "%s/symbols", dir);
	{
		FILE *file = fopen(path, "r");

		assert_non_null(file);
		assert_int_equal(fscanf(file, "%lx", &address), 1);
		fclose(file);
	}
	snprintf(path, sizeof(path), "%s/split", dir);
	dso = tly_dso_get(symbols, path, TLY_DSO_FILE, NULL, 0);
	symbol = tly_dso_find(dso, address);
	assert_non_null(symbol);
	assert_string_equal(symbol->name, "work");
	assert_int_equal(tally_dso_source(dso, address, &frame, 1), 1);
	assert_string_equal(frame.function, "work");
	assert_non_null(strstr(frame.file, "main.c"));
	/* A file of that name that is another's is not believed. */
	assert_true(run("cd %s && echo >>split.debug", dir));
	snprintf(path, sizeof(path), "%s/./split", dir);
	dso = tly_dso_get(symbols, path, TLY_DSO_FILE, NULL, 0);
	assert_null(tly_dso_find(dso, address));
	assert_int_equal(tally_dso_source(dso, address, &frame, 1), 0);
}

static void test_no_debug_information(void **state)
{
	struct tally_source_frame frame;
	struct tally_dso *dso = tly_dso_get(symbols, "[heap]", TLY_DSO_OPAQUE, NULL, 0);

	(void)state;
	assert_int_equal(tally_dso_source(dso, 0x1000, &frame, 1), 0);
	dso = tly_dso_get(symbols, "/no/such/file", TLY_DSO_FILE, NULL, 0);
	assert_int_equal(tally_dso_source(dso, 0x1000, &frame, 1), 0);
	dso = tly_dso_get(symbols, "/etc/passwd", TLY_DSO_FILE, NULL, 0);
	assert_int_equal(tally_dso_source(dso, 0x1000, &frame, 1), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_c_dwarf_5),
		TEST(test_c_dwarf_4),
		TEST(test_c_sections),
		TEST(test_limited_memory),
		TEST(test_clang),
		TEST(test_cxx),
		TEST(test_system_library),
		TEST(test_split_file_is_gone),
		TEST(test_separate_debug_file),
		TEST(test_no_debug_information),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
