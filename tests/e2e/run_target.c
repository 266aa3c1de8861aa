// SPDX-License-Identifier: MIT
/*
 * What run_test.py wants of a program that no interpreter gives it. Linked statically and at fixed
 * addresses: below 2 GiB, where tally-rt has tables of its own.
 *
 *	auxv			what the kernel tells of the program
 *	close-range COMMAND...	closes all but the standard descriptors, executes COMMAND
 *	again N			executes itself N times
 *	brk			the heap
 *	replace			maps over, protects and unmaps all that is not the program's
 *	handle			says how often SIGTERM is handled within half a second
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/run/kernels_maps.h"

extern const Elf64_Ehdr __ehdr_start;
extern char end[];

static int show_auxv(void)
{
	const Elf64_Phdr *headers = (const Elf64_Phdr *)getauxval(AT_PHDR);

	printf("%d %lu %d\n", (const char *)headers == (const char *)&__ehdr_start + 64,
	       getauxval(AT_PHNUM), getauxval(AT_ENTRY) == __ehdr_start.e_entry);
	printf("%lu %s %d\n", getauxval(AT_BASE), (const char *)getauxval(AT_EXECFN),
	       (int)getauxval(AT_SECURE));
	return 0;
}

static int close_range_and_execute(char **argv)
{
	syscall(SYS_close_range, 3, ~0U, 0);
	syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
	execv(argv[0], argv);
	perror(argv[0]);
	return 1;
}

static int again(const char *self, int times)
{
	char number[16];

	printf("%d\n", times);
	fflush(stdout);
	if (!times)
		return 0;
	snprintf(number, sizeof(number), "%d", times - 1);
	execl(self, self, "again", number, NULL);
	perror(self);
	return 1;
}

static int use_heap(void)
{
	const size_t size = 64 << 20;
	char *start = sbrk(0), *more = sbrk((intptr_t)size);

	printf("%d %d\n", start >= end, more == start);
	memset(start, 1, size);
	printf("%d\n", sbrk(-(intptr_t)size) == start + size);
	more = sbrk((intptr_t)size);
	printf("%d %d\n", more == start, more[size / 2]); /* zeroed again */
	printf("%d\n", sbrk((intptr_t)1 << 46) == (void *)-1 && errno == ENOMEM);
	return brk(start);
}

/* Whether the memory from @start is of the program: its image, stack and heap. */
static bool is_ours(uintptr_t start, const char *name)
{
	return start < (uintptr_t)end || strstr(name, "[stack]") || strstr(name, "[heap]") ||
	       strstr(name, "[v") || (start >= (uintptr_t)end && start < (uintptr_t)sbrk(0));
}

static void attack(uintptr_t start, uintptr_t limit)
{
	void *at = (void *)start;
	size_t size = limit - start;

	/* Unmapping finds a hole there: nothing to do, and well done. */
	munmap(at, size);
	if (mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at ||
	    !mprotect(at, size, PROT_NONE) || !madvise(at, size, MADV_DONTNEED) ||
	    mremap(at, size, 2 * size, MREMAP_MAYMOVE) != MAP_FAILED)
		printf("memory of the runtime was changed\n");
}

/* Natively there is nothing to attack, and the output is the same. */
static int replace(void)
{
	static struct {
		uintptr_t start, limit;
	} found[256];
	static char maps[1 << 16];
	char name[4096];
	size_t nr = 0;

	if (!read_kernels_maps(maps, sizeof(maps)))
		return 1;
	for (char *line = strtok(maps, "\n"); line && nr < sizeof(found) / sizeof(*found);
	     line = strtok(NULL, "\n")) {
		name[0] = '\0';
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %4095[^\n]",
			   &found[nr].start, &found[nr].limit, name) >= 2 &&
		    !is_ours(found[nr].start, name))
			nr++;
	}
	for (size_t i = 0; i < nr; i++)
		attack(found[i].start, found[i].limit);
	printf("still here\n");
	return 0;
}

static volatile sig_atomic_t handled;

static void handle(int number)
{
	const struct timespec moment = {.tv_nsec = 10000000};

	handled += number == SIGTERM;
	nanosleep(&moment, NULL); /* one more would find this one begun */
}

static int count_handled(void)
{
	const struct timespec step = {.tv_nsec = 20000000};

	signal(SIGTERM, handle);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < 25; i++)
		nanosleep(&step, NULL);
	printf("%d\n", (int)handled);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "auxv"))
		return show_auxv();
	if (!strcmp(what, "close-range") && argc > 2)
		return close_range_and_execute(argv + 2);
	if (!strcmp(what, "again") && argc > 2)
		return again(argv[0], atoi(argv[2]));
	if (!strcmp(what, "brk"))
		return use_heap();
	if (!strcmp(what, "replace"))
		return replace();
	if (!strcmp(what, "handle"))
		return count_handled();
	if (!strcmp(what, "hello"))
		return puts("hello") < 0;
	return 2;
}
