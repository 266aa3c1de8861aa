// SPDX-License-Identifier: MIT
#include "case.h"

#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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

static void copy_maps_of(pid_t pid, int to)
{
	char path[32], part[4096];
	int nobody = open("/dev/null", O_WRONLY), from;
	ssize_t n;

	/* where tally says that the child goes on natively */
	dup2(nobody, STDERR_FILENO);
	raw(SYS_arch_prctl, ARCH_SET_GS, part);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	from = open(path, O_RDONLY);
	while ((n = read(from, part, sizeof(part))) > 0)
		if (write(to, part, n) != n)
			_exit(1);
	_exit(n < 0);
}

void read_kernels_maps(char *to, size_t size)
{
	const pid_t parent = getpid();
	int ends[2], status;
	size_t length = 0;
	ssize_t n;
	pid_t child;

	need(pipe(ends) == 0);
	child = fork();
	if (child == 0)
		copy_maps_of(parent, ends[1]);
	close(ends[1]);
	while ((n = read(ends[0], to + length, size - 1 - length)) > 0)
		length += (size_t)n;
	to[length] = '\0';
	close(ends[0]);
	need(waitpid(child, &status, 0) == child && status == 0 && length);
}

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
