// SPDX-License-Identifier: MIT
/*
 * A program for recordings: a few functions that call each other in an order drawn from a fixed
 * sequence, so that its call chains are deep and differ as those of an interpreter or a parser do.
 * Built with frame pointers. `deep SECONDS` ends by the processor time it has used.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEEPEST 40

static volatile uint64_t sink;
static uint64_t seed = 1;

static unsigned int draw(unsigned int limit)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (seed >> 33) % limit;
}

static void descend(unsigned int depth);

static __attribute__((noinline)) void spin(unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++)
		sink = sink * 31 + i;
}

/* The statement after the call keeps it from becoming a jump. */
#define STEP(name, turns)                                                                          \
	static __attribute__((noinline)) void name(unsigned int depth)                             \
	{                                                                                          \
		spin(turns);                                                                       \
		descend(depth);                                                                    \
		sink++;                                                                            \
	}

STEP(parse_list, 60)
STEP(parse_item, 20)
STEP(parse_call, 90)
STEP(expand_name, 200)
STEP(fold_constant, 120)
STEP(check_type, 40)
STEP(find_symbol, 150)
STEP(emit_code, 250)

static __attribute__((noinline)) void descend(unsigned int depth)
{
	static void (*const steps[])(unsigned int) = {
		parse_list,    parse_item, parse_call,	expand_name,
		fold_constant, check_type, find_symbol, emit_code,
	};

	if (depth)
		steps[draw(8)](depth - 1);
	sink++;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;

	while ((double)clock() / CLOCKS_PER_SEC < seconds)
		descend(5 + draw(DEEPEST - 5));
	printf("%llu\n", (unsigned long long)sink);
	return 0;
}
