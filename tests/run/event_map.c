// SPDX-License-Identifier: MIT
/* Mappings of events. */
#include "event_case.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void case_map(void)
{
	int fd = own_faults();
	char *ring;
	int status;

	TRY_AT(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
	TRY_AT(mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
	TRY_AT(mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, fd, 0));
	TRY_AT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE));
	ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(ring != MAP_FAILED);
	say("data at %d, %d bytes\n", (int)((struct perf_event_mmap_page *)ring)->data_offset,
	    (int)((struct perf_event_mmap_page *)ring)->data_size);
	TRY_AT(mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	TRY_AT(mremap(ring, RING, 2 * RING, MREMAP_MAYMOVE));
	char *again = mmap(NULL, RING, PROT_READ, MAP_SHARED, fd, 0);
	need(again != MAP_FAILED);
	say("the same: %d\n",
	    !memcmp(ring + offsetof(struct perf_event_mmap_page, data_head),
		    again + offsetof(struct perf_event_mmap_page, data_head), 64));
	pid_t child = fork();
	if (!child) {
		/* A child does not have them. */
		unsigned char there;

		report("mincore", mincore(ring, PAGE, &there));
		_exit(0);
	}
	need(waitpid(child, &status, 0) == child);
	TRY(munmap(again, RING));
	close(fd);
	say("and without the descriptor: %d\n",
	    (int)((struct perf_event_mmap_page *)ring)->data_size);
	TRY(munmap(ring, RING));
}

enum { GUARD_INSTALL = 102, GUARD_REMOVE }; /* MADV_ */

/* Whatever is said of a ring's memory, it stays, and leads nowhere else. */
static void case_map_advised(void)
{
	int fd = own_faults();
	struct perf_event_mmap_page *ring =
		mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	need(ring != MAP_FAILED);
	for (int advice = 0; advice < 25; advice++) {
		madvise(ring, RING, advice);
		madvise(ring, PAGE, advice);
	}
	/* Where older kernels know of no guards, it is no advice at all. */
	TRY(madvise(ring, RING, GUARD_INSTALL));
	TRY(madvise(ring, RING, GUARD_REMOVE));
	say("another place: %s\n", result_name(remap_file_pages(ring, PAGE, 0, 1, 0)));
	say("its page is %s\n", ring->data_offset == PAGE ? "there" : "gone");
}

static void case_map_synchronized(void)
{
	const int flags[] = {0, MS_ASYNC, MS_SYNC, MS_INVALIDATE, MS_SYNC | MS_ASYNC, 8};
	int fd = own_faults();
	char *ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	need(ring != MAP_FAILED);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		report("msync", msync(ring, RING, flags[i]));
		report("of a page", msync(ring + PAGE, PAGE, flags[i]));
	}
	TRY(msync(ring + 1, PAGE, MS_SYNC));
}

/* More pages than an int can number are more than there can be, whatever their number. */
static void case_map_too_much(void)
{
	const int fd = own_faults();

	TRY_AT(mmap(NULL, 1UL << 43, PROT_READ, MAP_SHARED, fd, 0));
	TRY_AT(mmap(NULL, 1UL << 46, PROT_READ, MAP_SHARED, fd, 0));
	TRY_AT(mmap(NULL, 1UL << 42, PROT_READ, MAP_SHARED, fd, 0));
}

/* At address 0, where the kernel lets somebody have it. */
static void case_map_at_the_bottom(void)
{
	char *volatile bottom = NULL;
	int fd = own_faults();

	TRY_AT(mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, -PAGE));
	TRY_AT(mmap(bottom, RING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0));
	TRY(munmap(bottom, RING));
	/* The ring has gone. */
	TRY_AT(mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

/* What mremap(2) answers, and where in a region with a ring in it there is something afterwards. */
static void remapped(const char *what, long from, long old_size, long new_size, int flags, long to)
{
	enum { PAGES = 20, AT = 6 };
	const int fd = own_faults();
	char *region = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *ring, *end;

	need(region != MAP_FAILED);
	ring = region + AT * PAGE;
	need(mmap(ring, RING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == ring);
	end = mremap(ring + from * PAGE, (size_t)(old_size * PAGE), (size_t)(new_size * PAGE),
		     flags, ring + to * PAGE);
	if (end == MAP_FAILED)
		say("%s: %s\n", what, strerrorname_np(errno));
	else
		say("%s: at %ld\n", what, (long)(end - ring) / PAGE);
	/* Another size can be had if the ring has gone, and only then. */
	TRY_AT(mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	munmap(region, PAGES * PAGE);
	close(fd);
}

static void case_map_remapped(void)
{
	const int move = MREMAP_MAYMOVE | MREMAP_FIXED;
	const long all = RING / PAGE;

	remapped("as it is", 0, all, all, 0, 0);
	remapped("a part as it is", 1, 1, 1, 0, 0);
	remapped("a part moved", 1, 1, 1, move, all);
	remapped("its beginning moved", 0, 1, 1, move, all);
	remapped("all moved", 0, all, all, move, all);
	remapped("all moved, and there, too", 0, all, all, move | MREMAP_DONTUNMAP, all);
	remapped("less", 0, all, 1, 0, 0);
	remapped("less, elsewhere", 0, all, 1, move, all);
	remapped("nothing less", all - 1, all, 1, MREMAP_MAYMOVE, 0);
	remapped("what is behind it", 0, all + 2, all, MREMAP_MAYMOVE, 0);
	remapped("it and what is around", -2, all + 4, 2, 0, 0);
	remapped("its beginning", -2, 4, 2, 0, 0);
	remapped("its end", -2, all + 2, all, 0, 0);
	remapped("more", 0, all, all + 1, MREMAP_MAYMOVE, 0);
	remapped("more of its end", all - 1, 1, all + 1, MREMAP_MAYMOVE, 0);
	remapped("once more", 0, 0, 1, MREMAP_MAYMOVE, 0);
	remapped("something over its end", -3, 2, 2, move, all - 1);
	remapped("something over all of it", -6, all, all, move, 0);
}

static void case_map_replaced(void)
{
	int fd = own_faults();
	char *ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	need(ring != MAP_FAILED);
	need(mmap(ring, RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		  0) == ring);
	say("replaced: %d\n", *ring);
	/* The ring has gone: another size can be had. */
	TRY_AT(mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

enum { OTHER_EVENT = -2 };

static void not_replaced(const char *what, size_t pages, int prot, int flags, int by)
{
	int fd = own_faults(), other = own_faults();
	char *ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned char there;

	need(ring != MAP_FAILED);
	say("%s: ", what);
	report("mmap", mmap(ring, pages * PAGE, prot, flags | MAP_FIXED,
			    by == OTHER_EVENT ? other : by, 0) == MAP_FAILED
			       ? -1
			       : 0);
	report("is there anything", mincore(ring, PAGE, &there));
	/* Another size can be had if the ring has gone, and only then. */
	TRY_AT(mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	munmap(ring, RING);
	close(fd);
	close(other);
}

/* What is refused at once leaves the ring, and what the event refuses leaves nothing. */
static void case_map_not_replaced(void)
{
	const int both = PROT_READ | PROT_WRITE;
	int file = open("/proc/self/exe", O_RDONLY), folder = open("/", O_RDONLY);

	not_replaced("no descriptor", 5, both, MAP_SHARED, 999);
	not_replaced("not open for that", 5, both, MAP_SHARED, file);
	not_replaced("a folder", 5, both, MAP_PRIVATE, folder);
	not_replaced("code", 5, both | PROT_EXEC, MAP_SHARED, OTHER_EVENT);
	not_replaced("neither shared nor private", 5, both, 0, OTHER_EVENT);
	not_replaced("private", 5, both, MAP_PRIVATE, OTHER_EVENT);
	not_replaced("a part", 3, both, MAP_SHARED, OTHER_EVENT);
	not_replaced("a part, no descriptor", 3, both, MAP_SHARED, 999);
	not_replaced("a file", 5, PROT_READ, MAP_PRIVATE, file);
}

/* A mapping of an event is not cut, but what would not change it is no cut. */
static void case_protected_in_part(void)
{
	const int both = PROT_READ | PROT_WRITE;
	char *ring = mmap(NULL, RING, both, MAP_SHARED, own_faults(), 0);

	need(ring != MAP_FAILED);
	TRY(mprotect(ring, PAGE, both));
	TRY(mprotect(ring + PAGE, 2 * PAGE, both));
	TRY(mprotect(ring, PAGE, PROT_READ));
	TRY(mprotect(ring, PAGE, PROT_NONE));
	TRY(mprotect(ring, PAGE, both | PROT_EXEC));
	TRY(mprotect(ring, RING, PROT_READ));
	TRY(mprotect(ring, PAGE, PROT_READ));
	TRY(mprotect(ring, PAGE, both));
	TRY(mprotect(ring, RING, both));
	TRY(mprotect(ring + RING - PAGE, PAGE, both));
}

/* Other memory takes the place of a ring, which is gone then. */
static void case_map_moved_over(void)
{
	int fd = own_faults();
	char *ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *other =
		mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(ring != MAP_FAILED && other != MAP_FAILED);
	*other = 7;
	need(!munmap(other + 2 * PAGE, PAGE) && !munmap(ring, RING));
	ring = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(ring != MAP_FAILED);
	need(mremap(other, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, ring) == ring);
	say("moved: %d\n", *ring);
	TRY_AT(mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	need(mprotect(ring, PAGE, PROT_READ) == 0);
	need(munmap(ring, PAGE) == 0);
}

static _Atomic bool enough;

/* What it maps stays its own for as long as it has it. */
static void *map_beside(void *unused)
{
	long wrong = 0;

	(void)unused;
	while (!enough) {
		int *mine = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		need(mine != MAP_FAILED);
		mine[0] = mine[PAGE / sizeof(int)] = 1;
		sched_yield();
		wrong += mine[0] != 1 || mine[PAGE / sizeof(int)] != 1;
		need(!munmap(mine, 2 * PAGE));
	}
	return (void *)wrong;
}

/* A ring's place is nobody else's before it is whoever's who takes it, and nobody's after. */
static void case_map_replaced_beside_others(void)
{
	int fd = own_faults();
	pthread_t thread;
	void *wrong;

	need(!pthread_create(&thread, NULL, map_beside, NULL));
	/* Each round takes the kernel a thousand times as long as us. */
	for (time_t end = time(NULL) + 2; time(NULL) < end;) {
		char *ring = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		need(ring != MAP_FAILED);
		need(mmap(ring, 2 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == ring);
		need(!munmap(ring, 2 * PAGE));
	}
	enough = true;
	need(!pthread_join(thread, &wrong));
	say("another thread's memory was lost: %ld\n", (long)wrong);
}

/* Its mappings are gone when it is: then another size can be had. */
static void case_map_of_the_dead(void)
{
	int fd = own_faults(), status;

	for (int killed = 0; killed < 2; killed++) {
		pid_t child = fork();

		if (!child) {
			map_ring(fd);
			if (killed)
				raise(SIGKILL);
			_exit(0);
		}
		need(waitpid(child, &status, 0) == child);
		char *other = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		report("after a child", other == MAP_FAILED ? -1 : 0);
		munmap(other, 3 * PAGE);
	}
}

/* There is not so much for one process to lock that rings could be left behind. */
static void case_map_again_and_again(void)
{
	int status, left = 0;

	for (int i = 0; i < 300; i++) {
		pid_t child = fork();

		if (!child) {
			map_ring(own_faults());
			if (i % 2)
				raise(SIGKILL);
			_exit(0);
		}
		need(waitpid(child, &status, 0) == child);
		left += status && !WIFSIGNALED(status);
	}
	say("without: %d\n", left);
}

static void case_map_until_exec(void)
{
	char name[16];
	int fd = own_faults();

	map_ring(fd);
	snprintf(name, sizeof(name), "%d", fd);
	execl("/proc/self/exe", case_argv[0], "_unmapped", name, NULL);
	need(!"exec");
}

static void case_unmapped(void)
{
	TRY_AT(mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(case_argv[2]), 0));
}

static void try_map(int fd, const char *what, uint64_t size, int flags)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	report(what, at == MAP_FAILED ? -1 : 0);
	if (at != MAP_FAILED)
		munmap(at, size);
}

static void case_map_flags(void)
{
	const int fd = own_faults();

	try_map(fd, "validated", RING, MAP_SHARED_VALIDATE);
	try_map(fd, "synchronous", RING, MAP_SHARED_VALIDATE | MAP_SYNC);
	try_map(fd, "synchronous, shared", RING, MAP_SHARED | MAP_SYNC);
	try_map(fd, "synchronous, private", RING, MAP_PRIVATE | MAP_SYNC);
	try_map(fd, "unknown flag", RING, MAP_SHARED_VALIDATE | 1 << 27);
	try_map(fd, "unknown flag, shared", RING, MAP_SHARED | 1 << 27);
	try_map(fd, "known flags", RING, MAP_SHARED_VALIDATE | MAP_POPULATE | MAP_NORESERVE);
	try_map(fd, "huge pages", RING, MAP_SHARED | MAP_HUGETLB);
	try_map(fd, "huge pages, validated", RING, MAP_SHARED_VALIDATE | MAP_HUGETLB);
	try_map(fd, "grows", RING, MAP_SHARED | MAP_GROWSDOWN);
	try_map(fd, "grows, validated", RING, MAP_SHARED_VALIDATE | MAP_GROWSDOWN);
	try_map(fd, "no type", RING, 0);
	try_map(fd, "type 4", RING, 4);
}

const struct test_case cases[] = {
	{"protected_in_part", case_protected_in_part},
	{"map_flags", case_map_flags},
	{"map", case_map},
	{"map_advised", case_map_advised},
	{"map_synchronized", case_map_synchronized},
	{"map_at_the_bottom", case_map_at_the_bottom},
	{"map_too_much", case_map_too_much},
	{"map_replaced", case_map_replaced},
	{"map_not_replaced", case_map_not_replaced},
	{"map_remapped", case_map_remapped},
	{"map_moved_over", case_map_moved_over},
	{"map_replaced_beside_others", case_map_replaced_beside_others},
	{"map_of_the_dead", case_map_of_the_dead},
	{"map_again_and_again", case_map_again_and_again},
	{"map_until_exec", case_map_until_exec},
	{"_unmapped", case_unmapped},
	{NULL, NULL},
};
