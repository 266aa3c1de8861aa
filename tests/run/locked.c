// SPDX-License-Identifier: MIT
/* mlockall(2) brings the program's memory, and not the room that the runtime has. Run by `tally
 * run`. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 64UL

static const size_t page = 4096;

static char *map(int prot)
{
	char *at = mmap(NULL, PAGES * page, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static size_t there(const void *at, size_t pages)
{
	unsigned char each[2 * PAGES];
	size_t nr = 0;

	assert_return_code(mincore((void *)at, pages * page, each), errno);
	for (size_t i = 0; i < pages; i++)
		nr += each[i] & 1;
	return nr;
}

static unsigned long resident_kb(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long kb = 0;
	char line[256];

	assert_non_null(status);
	while (!kb && fgets(line, sizeof(line), status))
		sscanf(line, "VmRSS: %lu", &kb);
	fclose(status);
	assert_true(kb);
	return kb;
}

static void lock_all(int flags)
{
	if (mlockall(flags)) {
		assert_true(errno == EPERM || errno == ENOMEM);
		print_message("mlockall: %s\n", strerror(errno));
		skip();
	}
}

static void what_there_is(void **state)
{
	const unsigned long before = resident_kb();
	char *at = map(PROT_READ | PROT_WRITE);

	(void)state;
	assert_int_equal(there(at, PAGES), 0);
	lock_all(MCL_CURRENT);
	assert_int_equal(there(at, PAGES), PAGES);
	/* The runtime has 150 MB for code alone. */
	assert_in_range(resident_kb(), before, before + 32 * 1024);
	munmap(at, PAGES * page);
	at = map(PROT_READ | PROT_WRITE);
	assert_int_equal(there(at, PAGES), 0);
	munmap(at, PAGES * page);
	munlockall();
}

static void what_there_will_be(void **state)
{
	char *at, *heap;
	int status;

	(void)state;
	lock_all(MCL_FUTURE);
	at = map(PROT_READ | PROT_WRITE);
	assert_int_equal(there(at, PAGES), PAGES);
	at = mremap(at, PAGES * page, 2 * PAGES * page, MREMAP_MAYMOVE);
	assert_true(at != MAP_FAILED);
	assert_int_equal(there(at, 2 * PAGES), 2 * PAGES);
	munmap(at, 2 * PAGES * page);

	heap = sbrk((PAGES + 1) * page);
	assert_true(heap != (char *)-1);
	assert_int_equal(there((char *)((uintptr_t)heap & -page) + page, PAGES), PAGES);

	at = map(PROT_NONE);
	assert_int_equal(there(at, PAGES), 0);
	assert_return_code(mprotect(at, PAGES * page, PROT_READ | PROT_WRITE), errno);
	assert_int_equal(there(at, PAGES), PAGES);
	munmap(at, PAGES * page);

	if (!fork())
		_exit(there(map(PROT_READ | PROT_WRITE), PAGES) != 0);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);

	assert_return_code(munlockall(), errno);
	at = map(PROT_READ | PROT_WRITE);
	assert_int_equal(there(at, PAGES), 0);
	munmap(at, PAGES * page);
}

static void on_fault(void **state)
{
	char *at;

	(void)state;
	lock_all(MCL_FUTURE);
	lock_all(MCL_FUTURE | MCL_ONFAULT);
	at = map(PROT_READ | PROT_WRITE);
	assert_int_equal(there(at, PAGES), 0);
	munmap(at, PAGES * page);
	munlockall();
}

static void wrong_flags(void **state)
{
	(void)state;
	assert_int_equal(mlockall(0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mlockall(MCL_ONFAULT), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mlockall(MCL_CURRENT | 64), -1);
	assert_int_equal(errno, EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_there_is),
		cmocka_unit_test(what_there_will_be),
		cmocka_unit_test(on_fault),
		cmocka_unit_test(wrong_flags),
	};

	return cmocka_run_group_tests_name("run/locked", tests, NULL, NULL);
}
