// SPDX-License-Identifier: MIT
/*
 * Damaged files: bytes of a program with debug information are changed, or its end is cut off, and
 * all that can be asked of it is asked. TALLY_SEED and TALLY_ROUNDS change what is tried; 1182 has
 * call frame information with a register that does not exist.
 */
#include <asm/perf_regs.h>
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

#include "lib/symbol/dso.h"

static const char source[] = "#include <stdio.h>\n"
			     "static inline int square(int x) { return x * x; }\n"
			     "int sum(int n)\n"
			     "{\n"
			     "	int s = 0;\n"
			     "	for (int i = 0; i < n; i++)\n"
			     "		s += square(i) ^ s;\n"
			     "	return s;\n"
			     "}\n"
			     "int main(int argc, char **argv)\n"
			     "{\n"
			     "	printf(\"%s %d\\n\", argv[0], sum(argc));\n"
			     "	return 0;\n"
			     "}\n";

static char dir[] = "/tmp/tally-corrupt-XXXXXX";
static char path[64], damaged_path[64];
static uint8_t *image, *damaged;
static size_t image_size;

static int make_program(void **state)
{
	char command[256];
	struct stat st;
	FILE *file;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/program", dir);
	snprintf(damaged_path, sizeof(damaged_path), "%s/damaged", dir);
	snprintf(command, sizeof(command), "gcc -O2 -g -x c -o %s - 2>%s", path, damaged_path);
	file = popen(command, "w");
	if (!file)
		return -1;
	fputs(source, file);
	/* Without a compiler, whatever program is there. */
	if (pclose(file))
		snprintf(path, sizeof(path), "/bin/true");
	file = fopen(path, "r");
	if (!file || fstat(fileno(file), &st))
		return -1;
	image_size = st.st_size;
	image = malloc(image_size);
	damaged = malloc(image_size);
	if (!image || !damaged || fread(image, 1, image_size, file) != image_size)
		return -1;
	fclose(file);
	return 0;
}

static int remove_program(void **state)
{
	(void)state;
	free(image);
	free(damaged);
	unlink(damaged_path);
	if (strcmp(path, "/bin/true"))
		unlink(path);
	return rmdir(dir);
}

static void write_damaged(size_t size)
{
	FILE *file = fopen(damaged_path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(damaged, 1, size, file), size);
	fclose(file);
}

/* Names, lines and unwinding, all over the file. Returns how many addresses had a name. */
static unsigned int ask_everything(const char *file)
{
	struct tally_symbols *symbols =
		tally_symbols_new(&(struct tally_symbols_options){.no_debuginfod = true});
	struct tally_machine *machine = tally_machine_new(symbols);
	struct tally_record record = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_USER,
		.mmap = {.pid = 1, .start = 0x100000, .len = image_size, .filename = file}};
	uint64_t stack[64], ips[16], regs[2];
	struct tally_sample sample = {
		.stack = stack,
		.stack_size = sizeof(stack),
		.stack_dyn_size = sizeof(stack),
		.regs_user = {.abi = PERF_SAMPLE_REGS_ABI_64,
			      .mask = 1U << PERF_REG_X86_SP | 1U << PERF_REG_X86_IP,
			      .values = regs,
			      .nr = 2},
	};
	struct tally_source_frame frames[8];
	unsigned int named = 0;

	assert_non_null(machine);
	assert_int_equal(tally_machine_feed(machine, &record, 0), 0);
	for (size_t at = 0; at < image_size; at += 24) {
		struct tally_location location;

		tally_machine_resolve(machine, 1, 0, PERF_RECORD_MISC_USER, 0x100000 + at,
				      &location);
		named += location.symbol != NULL;
		if (location.dso && at % 48 == 0)
			tally_dso_source(location.dso, location.address, frames, 8);
		for (size_t i = 0; i < 64; i++)
			stack[i] = 0x100000 + (at + i * 40) % image_size;
		regs[0] = 0x7ffc0000;
		regs[1] = 0x100000 + at;
		assert_true(tally_machine_unwind(machine, 1, 0, &sample, ips, 16, NULL) <= 16);
	}
	tally_symbols_free(symbols);
	return named;
}

static void test_whole_file(void **state)
{
	(void)state;
	assert_true(ask_everything(path) > 10);
}

static void test_changed_bytes(void **state)
{
	const char *seed_text = getenv("TALLY_SEED"), *rounds_text = getenv("TALLY_ROUNDS");
	unsigned int seed = seed_text ? strtoul(seed_text, NULL, 10) : 1140;
	unsigned int rounds = rounds_text ? strtoul(rounds_text, NULL, 10) : 60;

	(void)state;
	for (unsigned int round = 0; round < rounds; round++) {
		unsigned int current = seed + round, random = current;
		unsigned int changes = 1 + rand_r(&random) % 30;

		fprintf(stderr, "# seed %u\r", current);
		memcpy(damaged, image, image_size);
		for (unsigned int i = 0; i < changes; i++) {
			size_t at = (size_t)rand_r(&random) % image_size;

			/* Headers are few bytes and decide most. */
			if (rand_r(&random) % 4 == 0)
				at %= 1024;
			else if (rand_r(&random) % 4 == 0)
				at = image_size - 1 - at % 3000;
			damaged[at] = rand_r(&random) % 3 ? rand_r(&random) : 0xff;
		}
		write_damaged(image_size);
		ask_everything(damaged_path);
	}
}

static void test_cut_files(void **state)
{
	(void)state;
	memcpy(damaged, image, image_size);
	for (size_t size = 0; size < image_size; size += size < 256 ? 16 : image_size / 40) {
		write_damaged(size);
		ask_everything(damaged_path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_file),
		cmocka_unit_test(test_changed_bytes),
		cmocka_unit_test(test_cut_files),
	};

	return cmocka_run_group_tests(tests, make_program, remove_program);
}
