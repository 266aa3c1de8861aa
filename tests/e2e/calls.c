// SPDX-License-Identifier: MIT
/*
 * A program whose profile is known: main calls outer, which calls left three times as much as
 * right, which both call work. `calls [MILLISECONDS [fork|exec]]`, by the processor time used.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static inline __attribute__((always_inline)) void mix(unsigned int i)
{
	sink = sink * 31 + i;
}

static void work(unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++)
		mix(i);
}

static void left(void)
{
	work(90000);
}

static void right(void)
{
	work(30000);
}

static void outer(void)
{
	left();
	right();
}

/* Not from malloc(), which fills memory on its own where MALLOC_PERTURB_ tells it to. */
static void fill_pages(void)
{
	enum { SIZE = 1 << 15 };
	volatile char *memory =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	for (size_t i = 0; i < SIZE; i += 4096)
		memory[i] = 1;
	sink += memory[SIZE - 1];
	munmap((void *)memory, SIZE);
}

int main(int argc, char **argv)
{
	double limit = (argc > 1 ? atoi(argv[1]) : 100) / 1000.0;

	if (argc > 2) {
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child && !strcmp(argv[2], "exec"))
			execl(argv[0], argv[0], argv[1], (char *)NULL);
		if (child)
			waitpid(child, NULL, 0);
	}
	while ((double)clock() / CLOCKS_PER_SEC < limit) {
		outer();
		fill_pages();
	}
	return 0;
}
