// SPDX-License-Identifier: MIT
/*
 * `stepper COMMAND` executes a static program instruction by instruction, natively, and writes how
 * many it executed, and how many of them were jumps, calls and returns:
 *
 *	INSTRUCTIONS BRANCHES
 *
 * With -b, before the command, it writes the branches that led somewhere instead, one a line, as
 * hexadecimal digits: FROM TO.
 *
 * A string instruction with a repeat count traps after each repetition with rip where it was, and
 * is one instruction as it is to a processor's counters. Exit status 77: tracing is not permitted.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct code {
	uint64_t rip;
	uint8_t bytes[8];
};

static struct code code_at(pid_t pid)
{
	struct user_regs_struct regs;
	struct code code;
	long word;

	ptrace(PTRACE_GETREGS, pid, NULL, &regs);
	word = ptrace(PTRACE_PEEKTEXT, pid, (void *)regs.rip, NULL);
	memcpy(code.bytes, &word, sizeof(word));
	code.rip = regs.rip;
	return code;
}

static bool repeats(const uint8_t *byte)
{
	return *byte == 0xf2 || *byte == 0xf3;
}

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0x2e || byte == 0x3e || (byte & 0xf0) == 0x40;
}

/* Of the encodings that compilers and count_target.c use. */
static bool is_branch(const uint8_t *byte)
{
	while (is_prefix(*byte) || repeats(byte))
		byte++;
	switch (*byte) {
	case 0x70 ... 0x7f: /* jcc */
	case 0xe0 ... 0xe3: /* loop, jrcxz */
	case 0xe8:	    /* call */
	case 0xe9:	    /* jmp */
	case 0xeb:
	case 0xc2: /* ret */
	case 0xc3:
		return true;
	case 0x0f:
		return (byte[1] & 0xf0) == 0x80;
	case 0xff: /* call, jmp indirect */
		return (byte[1] >> 3 & 7) == 2 || (byte[1] >> 3 & 7) == 4;
	}
	return false;
}

/* Of a condition that does not hold; 0: the branch always leads somewhere. */
static unsigned int length_of_condition(const uint8_t *byte)
{
	unsigned int prefixes = 0;

	while (is_prefix(byte[prefixes]) || repeats(byte + prefixes))
		prefixes++;
	byte += prefixes;
	if ((*byte & 0xf0) == 0x70 || (*byte & 0xfc) == 0xe0)
		return prefixes + 2;
	return *byte == 0x0f ? prefixes + 6 : 0;
}

static void tell(const struct code *code, uint64_t to)
{
	const unsigned int length = length_of_condition(code->bytes);

	if (!length || to != code->rip + length)
		printf("%lx %lx\n", code->rip, to);
}

/* Makes one step; false when the program has ended. @signo: to be delivered, and what comes next.
 */
static bool step(pid_t pid, int *signo)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(long)*signo) < 0 ||
	    waitpid(pid, &status, 0) != pid) {
		perror("stepper");
		exit(1);
	}
	*signo = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
	return WIFSTOPPED(status);
}

static void count(pid_t pid, bool tells)
{
	unsigned long instructions = 0, branches = 0;
	int signo = 0;

	for (;;) {
		const struct code code = code_at(pid);
		const bool delivered = signo && signo != SIGTRAP;
		bool goes_on;

		if (signo == SIGTRAP)
			signo = 0;
		goes_on = step(pid, &signo);
		/* A step into a handler executes nothing, nor does one that ends in a signal. */
		if (goes_on && (delivered || signo != SIGTRAP))
			continue;
		if (goes_on && repeats(code.bytes) && code_at(pid).rip == code.rip)
			continue;
		instructions++;
		branches += is_branch(code.bytes);
		if (!goes_on)
			break;
		if (tells && is_branch(code.bytes))
			tell(&code, code_at(pid).rip);
	}
	if (!tells)
		printf("%lu %lu\n", instructions, branches);
}

int main(int argc, char **argv)
{
	const bool tells = argc > 1 && !strcmp(argv[1], "-b");
	pid_t pid;
	int status;

	argv += tells;
	if (argc < 2 + tells)
		return 2;
	pid = fork();
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	if (!WIFSTOPPED(status))
		return WEXITSTATUS(status);
	count(pid, tells);
	return 0;
}
