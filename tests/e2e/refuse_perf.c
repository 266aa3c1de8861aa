// SPDX-License-Identifier: MIT
/*
 * refuse_perf ERRNO[,CALL[:FIRST]...] COMMAND [ARG...]: runs the command under a seccomp filter
 * that answers perf_event_open(2), and the calls with these numbers, with the number ERRNO, as
 * container runtimes do. With FIRST only if that is their first argument. With "kill" for ERRNO who
 * makes one of the calls is ended, as in services of systemd.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_CALLS = 64, MOST_OF_CALL = 5 };

static const struct sock_filter load_call =
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));

static unsigned short refuse(struct sock_filter *code, unsigned int call, unsigned int answer)
{
	code[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
	code[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
	return 2;
}

static unsigned short refuse_first(struct sock_filter *code, unsigned int call, unsigned int first,
				   unsigned int answer)
{
	code[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
	code[1] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, args[0]));
	refuse(&code[2], first, answer);
	code[4] = load_call;
	return MOST_OF_CALL;
}

int main(int argc, char **argv)
{
	struct sock_filter code[MOST_OF_CALL * MAX_CALLS + 4] = {load_call};
	struct sock_fprog program = {.len = 1, .filter = code};
	unsigned int answer, call;
	char *at;

	if (argc < 3) {
		fprintf(stderr, "usage: refuse_perf ERRNO[,CALL[:FIRST]...] COMMAND [ARG...]\n");
		return 2;
	}
	answer = SECCOMP_RET_ERRNO | (unsigned int)strtoul(argv[1], &at, 10);
	if (!strncmp(argv[1], "kill", 4)) {
		answer = SECCOMP_RET_KILL_PROCESS;
		at = argv[1] + 4;
	}
	program.len += refuse(code + program.len, SYS_perf_event_open, answer);
	while (*at == ',' && program.len < MOST_OF_CALL * (MAX_CALLS - 1)) {
		call = (unsigned int)strtoul(at + 1, &at, 10);
		program.len += *at == ':'
				       ? refuse_first(code + program.len, call,
						      (unsigned int)strtoul(at + 1, &at, 0), answer)
				       : refuse(code + program.len, call, answer);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "refuse_perf: %s\n", strerror(errno));
		return 2;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "refuse_perf: %s: %s\n", argv[2], strerror(errno));
	return 2;
}
