// SPDX-License-Identifier: MIT
/* Code that several threads meet for the first time, and together. */
#include <pthread.h>

#include "case.h"

enum { THREADS = 4, TOGETHER = 16 };

__attribute__((noinline)) static unsigned int leaf(unsigned int x)
{
	return x ^ x >> 13;
}

__attribute__((noinline)) static unsigned int twice(unsigned int x)
{
	return 2 * leaf(x);
}

__attribute__((noinline)) static unsigned int odd(unsigned int x)
{
	return x % 3 ? x | 1 : twice(x);
}

static unsigned int (*const others[4])(unsigned int) = {leaf, twice, odd, leaf};

/* Each has conditions, a loop, and calls that are direct and indirect. */
#define FUNCTION(n)                                                                                \
	__attribute__((noinline, noclone)) static unsigned int f##n(unsigned int x)                \
	{                                                                                          \
		for (unsigned int i = 0; i < (n) % 5 + 1; i++) {                                   \
			if (x & 1 << (n) % 7)                                                      \
				x = x * 3 + others[x % 4](x);                                      \
			else                                                                       \
				x = leaf(x ^ (n));                                                 \
			x = x & 16 ? x * 0x9e3779b9u + (n) : x + (n);                              \
		}                                                                                  \
		return x;                                                                          \
	}
#define ADDRESS(n) f##n,

/* Their names are octal numbers, 01000 to 04777. */
#define ONES(m, n) m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6) m(n##7)
#define TENS(m, n)                                                                                 \
	ONES(m, n##0)                                                                              \
	ONES(m, n##1)                                                                              \
	ONES(m, n##2) ONES(m, n##3) ONES(m, n##4) ONES(m, n##5) ONES(m, n##6) ONES(m, n##7)
#define HUNDREDS(m, n)                                                                             \
	TENS(m, n##0)                                                                              \
	TENS(m, n##1)                                                                              \
	TENS(m, n##2) TENS(m, n##3) TENS(m, n##4) TENS(m, n##5) TENS(m, n##6) TENS(m, n##7)
#define ALL(m) HUNDREDS(m, 01) HUNDREDS(m, 02) HUNDREDS(m, 03) HUNDREDS(m, 04)

ALL(FUNCTION)

static unsigned int (*const functions[])(unsigned int) = {ALL(ADDRESS)};

static pthread_barrier_t barrier;

static void *run_all(void *result)
{
	unsigned int x = 1;

	for (unsigned int i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		if (i % TOGETHER == 0)
			pthread_barrier_wait(&barrier);
		x = functions[i](x);
	}
	*(unsigned int *)result = x;
	return NULL;
}

static void cold_code(void)
{
	pthread_t threads[THREADS];
	unsigned int results[THREADS];

	need(!pthread_barrier_init(&barrier, NULL, THREADS));
	for (int i = 0; i < THREADS; i++)
		need(!pthread_create(&threads[i], NULL, run_all, &results[i]));
	for (int i = 0; i < THREADS; i++) {
		need(!pthread_join(threads[i], NULL));
		say("%08x\n", results[i]);
	}
}

const struct test_case cases[] = {
	{"cold_code", cold_code},
	{0},
};
