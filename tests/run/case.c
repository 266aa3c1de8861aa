// SPDX-License-Identifier: MIT
#include "case.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int case_argc;
char **case_argv;

void say(const char *format, ...)
{
	int saved = errno;
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof(text))
		length = sizeof(text) - 1;
	if (write(STDOUT_FILENO, text, length) != length)
		_exit(98);
	errno = saved;
}

void need_true(bool holds, const char *what, const char *file, int line)
{
	if (holds)
		return;
	dprintf(STDERR_FILENO, "%s:%d: needed: %s (%s)\n", strrchr(file, '/') + 1, line, what,
		strerrorname_np(errno));
	_exit(99);
}

const char *errno_name(int number)
{
	return strerrorname_np(number);
}

const char *result_name(long result)
{
	static _Thread_local char text[32];

	if (result == -1)
		return errno_name(errno);
	snprintf(text, sizeof(text), "%ld", result);
	return text;
}

void say_status(const char *what, int status)
{
	if (WIFEXITED(status))
		say("%s: exit %d\n", what, WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		say("%s: signal %d%s\n", what, WTERMSIG(status), WCOREDUMP(status) ? " core" : "");
	else if (WIFSTOPPED(status))
		say("%s: stopped by %d\n", what, WSTOPSIG(status));
	else if (WIFCONTINUED(status))
		say("%s: continued\n", what);
	else
		say("%s: status %#x\n", what, status);
}

void say_end(const char *what, pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		need(errno == EINTR);
	say_status(what, status);
}

void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};

	need(sigaction(signal, &action, NULL) == 0);
}

void no_core(void)
{
	struct rlimit limit = {0, 0};

	need(setrlimit(RLIMIT_CORE, &limit) == 0);
}

__asm__(".text\n"
	".globl raw\n"
	".type raw, @function\n"
	"raw:\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	mov %r8, %r10\n"
	"	mov %r9, %r8\n"
	"	mov 8(%rsp), %r9\n"
	"	syscall\n"
	"	ret\n"
	".size raw, . - raw\n");

int main(int argc, char **argv)
{
	case_argc = argc;
	case_argv = argv;
	if (argc < 2) {
		for (const struct test_case *test = cases; test->name; test++)
			if (test->name[0] != '_')
				printf("%s\n", test->name);
		return 0;
	}
	for (const struct test_case *test = cases; test->name; test++) {
		if (strcmp(test->name, argv[1]) == 0) {
			test->run();
			say("end of %s\n", test->name);
			return 0;
		}
	}
	fprintf(stderr, "no case '%s'\n", argv[1]);
	return 2;
}
