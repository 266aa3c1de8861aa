// SPDX-License-Identifier: MIT
/*
 * work TURNS [THREADS [MS]]: a program whose profile is known. Each thread takes nine tenths of its
 * turns in hot() and one tenth in cold(), by the same instructions; a round of both is far shorter
 * than what lies between two samples, or these would fall in step with it. 0 turns: until it is
 * killed, or for a minute if somebody forgets that. MS: it stays so long when it has done its work.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TENTH = 100, MOST_THREADS = 16 };

static inline __attribute__((always_inline)) uint64_t turn(uint64_t x, uint64_t turns)
{
	for (uint64_t i = 0; i < turns; i++) {
		x = x * 6364136223846793005 + 1;
		__asm__ volatile("" : "+r"(x)); /* each of them */
	}
	return x;
}

static uint64_t hot(uint64_t turns)
{
	return turn(1, turns);
}

static uint64_t cold(uint64_t turns)
{
	return turn(2, turns);
}

static void *work(void *turns)
{
	volatile uint64_t sink;

	for (uint64_t left = *(uint64_t *)turns; left; left--) {
		sink = hot(9 * TENTH);
		sink += cold(TENTH);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t turns = argc > 1 ? strtoull(argv[1], NULL, 0) / (10 * TENTH) : 0;
	unsigned long threads = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	pthread_t others[MOST_THREADS];

	if (argc < 2 || threads < 1 || threads > MOST_THREADS) {
		fprintf(stderr, "usage: work TURNS [THREADS [MS]]\n");
		return 2;
	}
	if (!turns) {
		alarm(60);
		turns = UINT64_MAX;
	}
	for (unsigned long i = 1; i < threads; i++)
		if (pthread_create(&others[i], NULL, work, &turns))
			return 1;
	work(&turns);
	for (unsigned long i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	if (argc > 3) {
		usleep(1000 * (useconds_t)strtoul(argv[3], NULL, 0));
		_exit(0);
	}
	return 0;
}
