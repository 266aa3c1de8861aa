// SPDX-License-Identifier: MIT
/*
 * Random programs, executed natively and in the translator in one process: registers, flags, memory
 * and vector registers have to agree at the end (here), at each step (steps_test.c) and where
 * counters overflow (due_test.c).
 *
 * Usage: test-translate [PROGRAMS [SEED [PROCESSOR]]]
 */
#include "runtime/translate/translate_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/translate/caches.h"
#include "runtime/translate/filter.h"
#include "runtime/translate/tables.h"
#include "runtime/translate/test_native.h"
#include "runtime/translate/test_program.h"

/* What the two runs left behind, but for what lies below the stack pointer. */
static bool same_memory(struct data *native)
{
	struct data *now = &world->data;

	now->finish = native->finish;
	for (unsigned int i = 0; i < sizeof(*now); i++)
		if (((uint8_t *)native)[i] != ((uint8_t *)now)[i]) {
			printf("# at %u: %#x %#x\n", i, ((uint8_t *)native)[i],
			       ((uint8_t *)now)[i]);
			return false;
		}
	return true;
}

static bool agrees(uint64_t program)
{
	static struct data native_data;
	struct regs native, translated;

	program_new(program);
	program_start(&native, native_finish, 0);
	native_run(&native);
	memcpy(&native_data, &world->data, sizeof(native_data));
	/* The second time everything is linked. */
	for (unsigned int round = 0; round < 2; round++) {
		program_start(&translated, host_finish, 0);
		host_run(&translated);
		translated.rip = native.rip;
		if (!same_state(&native, &translated))
			return differ(program, "registers differ", &native, &translated);
		if (!same_memory(&native_data))
			return differ(program, "memory differs", &native, &translated);
	}
	return true;
}

/* Code that nobody wrote for this: the C library's, far away from the cache. */
static unsigned long printed;

static void print_numbers(long n)
{
	char line[200];

	printed = 0;
	for (long i = 0; i < n; i++) {
		snprintf(line, sizeof(line), "%ld %s %.7g %lx", i, "and", (double)i / 3, i * i);
		printed = printed * 31 + line[strlen(line) - 1];
	}
}

static bool runs_library(uint64_t n)
{
	unsigned long native;

	print_numbers(n);
	native = printed;
	host_call(print_numbers, n);
	return native == printed;
}

/* time(2) where old programs call it. */
static void ask_time(long unused)
{
	(void)unused;
	printed = ((long (*)(long *))0xffffffffff600400)(NULL);
}

static bool has_vsyscall(uint64_t unused)
{
	const uint64_t before = time(NULL);

	(void)unused;
	host_call(ask_time, 0);
	return printed >= before && printed <= (uint64_t)time(NULL);
}

/* Makes the translator think that data lies between the code, so that fragments check themselves.
 */
static bool heat(uint64_t program)
{
	const uint64_t code = (uint64_t)world->code, page = 4096;
	bool hot = agrees(program);

	for (uint64_t p = code; p < code + CODE_SIZE; p += page)
		for (unsigned int i = 0; i < 32; i++)
			translate_written(host_thread(), p);
	return hot && cache_is_hot(cache_number(0), code / page);
}

/* Makes it nearly full: somewhere on the way it is emptied, and all goes on. */
static bool is_emptied(uint64_t program)
{
	struct cache *cache = cache_number(0);
	unsigned int rounds = 0;

	cache->code_next = cache->stubs - 2 * FRAGMENT_BYTES;
	while (cache->code_next > cache->stubs / 2 && rounds++ < 20)
		if (!agrees(program))
			return false;
	return cache->code_next < cache->stubs / 2 && agrees(program);
}

/* In caches for more and more instrumentation, and, when there can be no more, in the last. */
static bool has_many_caches(uint64_t program)
{
	struct instrumentation wanted = {.counted = program % (2 * CACHES_MAX)};
	struct cache *cache;

	if (!translate_instrument(host_thread(), &wanted))
		return false;
	cache = (struct cache *)host_thread()->lookup;
	if (wanted.counted & ~cache->does.counted)
		return false;
	if (!agrees(program) || cache->nr_fragments < 3)
		return false;
	return translate_instrument(host_thread(), &(struct instrumentation){0}) &&
	       host_thread()->lookup == &cache_number(0)->lookup && agrees(program);
}

/* Nobody but children calls it. */
static __attribute__((noinline)) void of_children(long n)
{
	printed = (unsigned long)n * 3;
}

static bool child_runs(long n)
{
	int status;
	pid_t child;

	translate_forking(host_thread());
	child = fork();
	if (!child) {
		translate_forked(host_thread());
		host_call(of_children, n);
		_exit(printed != (unsigned long)n * 3);
	}
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

static bool learns(uint64_t n)
{
	const struct cache *cache = cache_number(0);

	for (uint64_t children = 0; children < 2; children++) {
		if (!child_runs((long)n) || cache_find(cache, (uint64_t)of_children)) {
			printf("# there is code after %lu children\n", children);
			return false;
		}
	}
	translate_forking(host_thread());
	return cache_find(cache, (uint64_t)of_children);
}

/* Without memory for the model's cache the thread stays where it is, and is told. */
static bool is_refused(uint64_t program)
{
	/* The same cache as that of counts(), since there are few. */
	const uint64_t floating = CORE_KINDS_FLOATING;
	const struct instrumentation cycles = {.counted = CORE_KIND_BIT(CORE_CYCLES) | floating},
				     misses = {.counted = CORE_KIND_BIT(CORE_L1D_LOAD_MISSES) |
							  CORE_KIND_BIT(CORE_INSTRUCTIONS) |
							  floating};
	const struct lookup *plain = host_thread()->lookup, *traced;
	struct instrumentation waits;

	host_short_of_memory = true;
	if (translate_instrument(host_thread(), &cycles) || host_thread()->lookup != plain)
		return false;
	host_short_of_memory = false;
	if (!translate_instrument(host_thread(), &cycles) || host_thread()->lookup == plain)
		return false;
	/* One does for all. */
	traced = host_thread()->lookup;
	if (!translate_instrument(host_thread(), &misses) || host_thread()->lookup != traced)
		return false;
	/* And another for all who wait for a counter. */
	waits = misses;
	waits.checked = CORE_KIND_BIT(CORE_INSTRUCTIONS);
	if (!translate_instrument(host_thread(), &waits) || host_thread()->lookup == traced)
		return false;
	traced = host_thread()->lookup;
	waits.checked = CORE_KIND_BIT(CORE_BRANCH_MISSES);
	if (!translate_instrument(host_thread(), &waits) || host_thread()->lookup != traced)
		return false;
	return agrees(program) && translate_instrument(host_thread(), &(struct instrumentation){0});
}

/* Processors that branches are emitted for. */
static const struct processor {
	const char *name;
	enum table_index index;
	bool quick_loop;
} processors[] = {
	{"intel", INDEX_PEXT, false},
	{"amd", INDEX_PEXT, true},
	{"zen2", INDEX_RORX, true},
	{"old", INDEX_MOVZX, false},
};

static void be(const char *name)
{
	for (unsigned int i = 0; i < sizeof(processors) / sizeof(*processors); i++) {
		const struct processor *processor = &processors[i];

		if (strcmp(name, processor->name))
			continue;
		if (processor->index != INDEX_MOVZX && !__builtin_cpu_supports("bmi2")) {
			printf("1..0 # SKIP the processor has no BMI2\n");
			exit(0);
		}
		tables_choose(processor->index, processor->quick_loop);
		return;
	}
	fprintf(stderr, "no processor is called %s\n", name);
	exit(2);
}

static void run(const char *name, bool (*test)(uint64_t), unsigned int n, uint64_t first)
{
	static unsigned int number;
	unsigned int i;

	number++;
	for (i = 0; i < n && test(first + i); i++)
		;
	printf("%sok %u - %s: %u programs from seed %#lx on\n", i < n ? "not " : "", number, name,
	       i, first);
}

/* Apart from the others, since there can be few caches. */
static int watch(unsigned int programs, uint64_t first)
{
	host_start();
	if (!filter_possible()) {
		printf("1..0 # SKIP the processor has no quick pext\n");
		return 0;
	}
	printf("1..5\n");
	run("there are caches for what is watched", has_watching_caches, 1, 0);
	program_place(MAP_32BIT, PROT_READ | PROT_EXEC);
	run("what is touched is met, in low memory", watches, programs, first << 20);
	program_place(0, PROT_READ | PROT_EXEC);
	run("what is touched is met, in high memory", watches, programs, first << 21);
	run("what is touched is met in any number of sets of instrumentation", watches_in_many,
	    programs, first << 21);
	program_place(0, PROT_READ | PROT_WRITE | PROT_EXEC);
	run("what is touched is met, of programs that may be written to", watches, programs / 4 + 1,
	    first << 22);
	return 0;
}

int main(int argc, char **argv)
{
	const unsigned int programs = argc > 1 ? strtoul(argv[1], NULL, 0) : 100;
	const uint64_t first =
		argc > 2 && *argv[2] ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 3 && !strcmp(argv[3], "watched"))
		return watch(programs, first);
	if (argc > 3)
		be(argv[3]);
	printf("1..20\n");
	host_start();
	run("the C library runs", runs_library, 3, 1000);
	run("vsyscalls are made", has_vsyscall, 1, 0);
	run("what is remembered of code that runs once is little", is_small, 1, 0);
	run("what two children translated is there for the third", learns, 1, 5);
	program_place(MAP_32BIT, PROT_READ | PROT_EXEC);
	run("what there is no memory for is refused", is_refused, 1, first << 20);
	run("there are caches for what is counted", has_caches, 1, 0);
	run("random programs in low memory end alike", agrees, programs, first << 20);
	run("every step has a true state", recovers, programs / 20 + 1, first << 20);
	run("every step is counted", counts, programs / 10 + 1, first << 20);
	program_place(0, PROT_READ | PROT_EXEC);
	run("overflows stop where they are due", stops, programs / 4 + 5, first << 21);
	run("random programs in high memory end alike", agrees, programs, first << 21);
	run("every step has a true state", recovers, programs / 20 + 1, first << 21);
	run("every step is counted", counts, programs / 10 + 1, first << 21);
	run("a full cache is emptied", is_emptied, 10, first << 20);
	run("a thread goes from cache to cache", has_many_caches, 4 * CACHES_MAX, first << 20);
	program_place(0, PROT_READ | PROT_WRITE | PROT_EXEC);
	run("programs that may be written to are counted", counts, programs / 20 + 1, first << 20);
	run("pages become hot", heat, 1, first << 20);
	run("programs between data end alike", agrees, programs / 4 + 1, first << 22);
	run("every step has a true state", recovers, programs / 20 + 1, first << 22);
	run("every step is counted", counts, programs / 10 + 1, first << 22);
	return 0;
}
