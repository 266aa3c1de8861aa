// SPDX-License-Identifier: MIT
/*
 * Random calls from a seed, and a transcript of what came back, to hold two implementations of
 * perf_event_open(2) against each other.
 *
 * The transcript has to be the same on every correct implementation, so it says only what is
 * determined: errno, sizes, records, and values of events whose number is known (watchpoints,
 * events that never happen). Times are told as zero or not, ids as the slot they belong to, counts
 * of faults and clocks not at all; and nothing is sampled that the machine's timing decides. Kept
 * out are habits of Linux that depend on when the task is next scheduled or are nothing to imitate:
 * a leader that is closed before its members, groups over several units, exclusive ones, a refresh
 * that runs out (since 6.17 a watchpoint then never starts again), a new period (part of the old
 * one stays).
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "differential.h"
#include "draw.h"
#include "tests/breakpoints.h"

_Thread_local uint64_t draw_state;
struct slot slots[SLOTS];
bool of_cgroups_too = true;
bool watchpoints_too = true;
volatile uint64_t words[WORDS] __attribute__((aligned(8)));

const char *error_name(long result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

int slot_of_id(uint64_t id)
{
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].fd >= 0 && slots[i].id == id)
			return i;
	return -1;
}

static void step_about(struct slot *slot)
{
	switch (below(11)) {
	case 0:
	case 1:
		do_read(slot);
		break;
	case 2:
		do_map(slot);
		break;
	case 3:
	case 4:
		do_drain(slot);
		break;
	case 5:
		do_poll(slot);
		break;
	case 6:
		if (one_in(2))
			do_close(slot);
		else if (one_in(3))
			do_unmap(slot);
		else
			do_odd(slot);
		break;
	default:
		do_ioctl(slot);
	}
}

static void step(void)
{
	unsigned int index = below(SLOTS), choice = below(40);

	if (choice < 10) {
		do_work();
		return;
	}
	if (choice == 10) {
		do_prctl();
		return;
	}
	if (choice == 11) {
		do_task();
		return;
	}
	printf("%u: ", index);
	if (slots[index].fd < 0)
		do_open(&slots[index]);
	else
		step_about(&slots[index]);
}

static void transcript(uint64_t seed, unsigned int steps)
{
	draw_state = seed;
	for (int i = 0; i < SLOTS; i++)
		slots[i].fd = -1;
	tasks_begin("/proc/self/exe");
	while (steps--)
		step();
	fflush(stdout);
}

/* ---- the same seed twice ---- */

/* The transcript of a process of its own, in memory. */
static char *collect(uint64_t seed, unsigned int steps, size_t *size)
{
	int file = memfd_create("transcript", MFD_CLOEXEC), status;
	pid_t pid;
	char *text;

	fflush(stdout);
	pid = file < 0 ? -1 : fork();
	if (pid == 0) {
		dup2(file, STDOUT_FILENO);
		transcript(seed, steps);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return NULL;
	*size = (size_t)lseek(file, 0, SEEK_END);
	text = calloc(1, *size + 1);
	if (text && pread(file, text, *size, 0) != (ssize_t)*size) {
		free(text);
		text = NULL;
	}
	close(file);
	return text;
}

static void show_difference(const char *one, const char *other)
{
	unsigned int line = 1;
	size_t start = 0;

	for (size_t i = 0; one[i] && one[i] == other[i]; i++)
		if (one[i] == '\n') {
			start = i + 1;
			line++;
		}
	printf("# line %u: %.*s\n# line %u: %.*s\n", line, (int)strcspn(one + start, "\n"),
	       one + start, line, (int)strcspn(other + start, "\n"), other + start);
}

static bool same_twice(uint64_t seed, unsigned int steps)
{
	size_t sizes[2] = {0};
	char *texts[2] = {collect(seed, steps, &sizes[0]), collect(seed, steps, &sizes[1])};
	bool same = texts[0] && texts[1] && sizes[0] && sizes[0] == sizes[1] &&
		    memcmp(texts[0], texts[1], sizes[0]) == 0;

	if (texts[0] && texts[1] && !same)
		show_difference(texts[0], texts[1]);
	free(texts[0]);
	free(texts[1]);
	return same;
}

static bool has_call(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) < 0 && errno == EFAULT;
}

static int twice(unsigned int seeds, unsigned int steps)
{
	bool usable = has_call(), failed = false;

	printf("1..%u\n", seeds);
	for (unsigned int seed = 1; seed <= seeds; seed++) {
		bool same = usable && same_twice(seed, steps);

		failed |= usable && !same;
		printf("%s %u - the same transcript twice from seed %u%s\n",
		       same || !usable ? "ok" : "not ok", seed, seed,
		       usable ? "" : " # SKIP no perf_event_open");
	}
	return failed;
}

static const char usage[] =
	"usage: differential [--no-cgroups] [--no-watchpoints] [--seed N] [--steps N]\n"
	"       differential [--no-cgroups] [--no-watchpoints] --twice SEEDS [--steps N]\n"
	"\n"
	"Makes random perf_event_open calls, ioctls and reads from the seed and prints a\n"
	"transcript that does not depend on time, place or ids. With --twice it makes each of\n"
	"the first SEEDS transcripts two times, wants them equal, and prints TAP. Without\n"
	"cgroups no sample tells of them.\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"steps", required_argument, NULL, 'n'},
		{"twice", required_argument, NULL, 't'},
		{"no-cgroups", no_argument, NULL, 'g'},
		{"no-watchpoints", no_argument, NULL, 'w'},
		{"forgets", no_argument, NULL, 'f'}, /* whether breakpoints are never hit */
		{"nothing", no_argument, NULL, 'x'}, /* what a child executes */
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	unsigned int steps = 1000, seeds = 0;
	uint64_t seed = 1;
	int option;

	while ((option = getopt_long(argc, argv, "s:n:t:h", options, NULL)) != -1)
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			steps = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 't':
			seeds = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'g':
			of_cgroups_too = false;
			break;
		case 'w':
			watchpoints_too = false;
			break;
		case 'f':
			return breakpoints_forgotten() ? 0 : 1;
		case 'x':
			return 0;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	if (seeds)
		return twice(seeds, steps);
	transcript(seed, steps);
	return 0;
}
