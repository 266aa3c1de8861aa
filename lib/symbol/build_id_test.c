// SPDX-License-Identifier: MIT
#include <elf.h>
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

static char path[] = "/tmp/tally-build-id-XXXXXX";
static const uint8_t id[24] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
			       12, 13, 14, 15, 16, 17, 18, 19, 20, 21};

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd) ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void put(const void *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* Another note, whose parts are padded, and behind it that of a build-id of @id_size bytes. */
static size_t make_notes(uint8_t *notes, size_t id_size)
{
	const Elf64_Nhdr other = {6, 3, 0x100};
	const Elf64_Nhdr build_id = {4, id_size, NT_GNU_BUILD_ID};
	size_t at = 0;

	memcpy(notes + at, &other, sizeof(other));
	memcpy(notes + at + sizeof(other), "Linux\0\0\0abc", 12);
	at += sizeof(other) + 12;
	memcpy(notes + at, &build_id, sizeof(build_id));
	memcpy(notes + at + sizeof(build_id), "GNU", 4);
	memcpy(notes + at + sizeof(build_id) + 4, id, id_size);
	return at + sizeof(build_id) + 4 + id_size;
}

static void test_notes(void **state)
{
	uint8_t notes[256] = {0}, found[20];
	size_t size = make_notes(notes, 20);

	(void)state;
	put(notes, size);
	assert_int_equal(tally_build_id_read(path, found), 20);
	assert_memory_equal(found, id, 20);
	put(notes, make_notes(notes, 8));
	assert_int_equal(tally_build_id_read(path, found), 8);
	/* Of one that no record can hold, the beginning. */
	put(notes, make_notes(notes, 24));
	assert_int_equal(tally_build_id_read(path, found), 20);
	assert_memory_equal(found, id, 20);
}

static void test_damaged_notes(void **state)
{
	uint8_t notes[256] = {0}, found[20];
	size_t size = make_notes(notes, 20);

	(void)state;
	for (size_t cut = 0; cut < size; cut++) {
		put(notes, cut);
		assert_int_equal(tally_build_id_read(path, found), 0);
	}
	/* Sizes that would wrap, where either part or both have them. */
	memset(notes, 0xff, sizeof(notes));
	put(notes, sizeof(notes));
	assert_int_equal(tally_build_id_read(path, found), 0);
	memset(notes, 0, 4);
	put(notes, sizeof(notes));
	assert_int_equal(tally_build_id_read(path, found), 0);
}

static void test_no_file(void **state)
{
	char fifo[sizeof(path) + 8];
	uint8_t found[20];

	(void)state;
	assert_int_equal(tally_build_id_read("/nonexistent", found), 0);
	assert_int_equal(tally_build_id_read("/", found), 0);
	/* Nobody writes to it: opening must not wait for that. */
	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(tally_build_id_read(fifo, found), 0);
	assert_int_equal(unlink(fifo), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_damaged_notes),
		cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
