// SPDX-License-Identifier: MIT
/*
 * hostile SEED SECONDS
 *
 * Ends with 0 when all has gone well: the callers went on all the time, none died but of what was
 * done to it, and the bystander has counted right. Says `ready` before the first event is opened
 * and `quiet` when all are closed; each time it waits for a line of its input, so that somebody can
 * look from outside what is in use.
 */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Nobody does anything for so long but who hangs, on the busiest machine. */
enum { HANG_SECONDS = 60, STEP_MS = 20 };

struct shared *shared;

static uint64_t seed;
static unsigned int begun;
static uint64_t seen[CALLERS];
static time_t moved[CALLERS];

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec;
}

static void wait_for_line(const char *word)
{
	char byte;

	printf("%s\n", word);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n')
		;
}

/* In a process group of its own: what it leaves behind is ended with it. */
static void start(unsigned int number)
{
	const uint64_t mine = seed * 1000003 + begun++;
	pid_t pid = fork();

	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	if (!pid) {
		setpgid(0, 0);
		caller(number, mine);
	}
	setpgid(pid, pid);
	shared->callers[number].pid = pid;
	moved[number] = now();
}

static int start_bystander(void)
{
	pid_t pid = fork();

	if (!pid)
		bystander();
	shared->bystander = pid;
	return pid < 0;
}

static bool deadly(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
	       signal == SIGABRT || signal == SIGSYS || signal == SIGTRAP;
}

static int ended(unsigned int number, int status)
{
	kill(-shared->callers[number].pid, SIGKILL);
	if (WIFSIGNALED(status) && deadly(WTERMSIG(status))) {
		printf("caller %u died of signal %d; its last call was %lu at %#lx\n", number,
		       WTERMSIG(status), (unsigned long)shared->callers[number].last,
		       (unsigned long)shared->callers[number].where);
		return 1;
	}
	start(number);
	return 0;
}

/* All that has ended: grandchildren come here, too. */
static int collect(void)
{
	int status, failed = 0;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == shared->bystander) {
			printf("the bystander ended with status %#x: %s\n", status, shared->wrong);
			shared->bystander = 0;
			return 1;
		}
		for (unsigned int i = 0; i < CALLERS; i++)
			if (pid == shared->callers[i].pid)
				failed |= ended(i, status);
	}
	return failed;
}

static void show_hang(unsigned int number)
{
	char command[200];

	printf("caller %u (%d) has not moved for %d s; its last call is %lu at %#lx\n", number,
	       shared->callers[number].pid, HANG_SECONDS,
	       (unsigned long)shared->callers[number].last,
	       (unsigned long)shared->callers[number].where);
	snprintf(command, sizeof(command),
		 "for t in /proc/%d/task/*; do echo $t; cat $t/syscall $t/wchan $t/stack; "
		 "grep -E 'State|Sig' $t/status; done 2>&1",
		 shared->callers[number].pid);
	fflush(stdout);
	if (system(command))
		printf("(it is gone)\n");
}

static int look_for_hangs(void)
{
	static uint64_t rounds;
	static time_t round_at;
	int failed = 0;

	for (unsigned int i = 0; i < CALLERS; i++) {
		if (shared->callers[i].calls != seen[i]) {
			seen[i] = shared->callers[i].calls;
			moved[i] = now();
		}
		if (now() - moved[i] > HANG_SECONDS) {
			show_hang(i);
			failed = 1;
		}
	}
	if (rounds != shared->rounds || !round_at)
		round_at = now();
	rounds = shared->rounds;
	if (now() - round_at > HANG_SECONDS) {
		printf("the bystander has not moved for %d s\n", HANG_SECONDS);
		failed = 1;
	}
	return failed;
}

/* Now and then one is killed, whatever it is doing. */
static void kill_some(unsigned int *state)
{
	if (rand_r(state) % 8 == 0)
		kill(-shared->callers[rand_r(state) % CALLERS].pid, SIGKILL);
}

static int let_them(unsigned int seconds)
{
	const time_t end = now() + (time_t)seconds;
	unsigned int state = (unsigned int)seed;
	int failed = 0;

	while (!failed && now() < end) {
		usleep(STEP_MS * 1000);
		kill_some(&state);
		failed = collect() | look_for_hangs();
	}
	return failed;
}

static int end_all(void)
{
	const time_t begin = now();
	int status = 0, failed = 0;
	pid_t pid;

	for (unsigned int i = 0; i < CALLERS; i++)
		kill(-shared->callers[i].pid, SIGKILL);
	shared->enough = true;
	for (;;) {
		pid = waitpid(-1, &status, WNOHANG);
		if (pid < 0 && errno == ECHILD)
			return failed;
		if (pid && pid == shared->bystander && status) {
			printf("the bystander ended with status %#x: %s\n", status, shared->wrong);
			failed = 1;
		}
		if (now() - begin > HANG_SECONDS) {
			printf("some process cannot be killed\n");
			return 1;
		}
		if (!pid)
			usleep(1000);
	}
}

static void share(void)
{
	int file = memfd_create("hostile", 0), sockets[2];

	if (file < 0 || ftruncate(file, sizeof(*shared)) < 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sockets) < 0)
		exit(2);
	dup2(file, SHARED_FD);
	dup2(sockets[0], SOCKET_FDS);
	dup2(sockets[1], SOCKET_FDS + 1);
	close(file);
	close(sockets[0]);
	close(sockets[1]);
}

static void map_shared(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (shared == MAP_FAILED)
		exit(2);
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = {0, 0};
	uint64_t calls = 0;
	int failed;

	if (argc == 5 && !strcmp(argv[1], "again")) {
		map_shared();
		caller_again((unsigned int)strtoul(argv[2], NULL, 0), strtoull(argv[3], NULL, 0),
			     (unsigned int)strtoul(argv[4], NULL, 0));
	}
	if (argc != 3) {
		fprintf(stderr, "usage: hostile SEED SECONDS\n");
		return 2;
	}
	seed = strtoull(argv[1], NULL, 0);
	if (!getenv("HOSTILE_CORES"))
		setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	share();
	map_shared();
	wait_for_line("ready");
	failed = start_bystander();
	for (unsigned int i = 0; i < CALLERS; i++)
		start(i);
	failed |= let_them((unsigned int)strtoul(argv[2], NULL, 0));
	failed |= end_all();
	for (unsigned int i = 0; i < CALLERS; i++)
		calls += shared->callers[i].calls;
	/* The messages on their way hold events. */
	close(SOCKET_FDS);
	close(SOCKET_FDS + 1);
	printf("calls %lu, callers %u, rounds %lu%s\n", (unsigned long)calls, begun,
	       (unsigned long)shared->rounds, shared->counts ? "" : " without hardware events");
	wait_for_line("quiet");
	return failed;
}
