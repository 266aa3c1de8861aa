// SPDX-License-Identifier: MIT
/* Programs that execute programs: what is found, what is handed over, what goes wrong and how. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

extern char **environ;
extern const Elf64_Ehdr __ehdr_start;

static const char *directory(void)
{
	return getenv("CASE_DIR") ? getenv("CASE_DIR") : ".";
}

static const char *path_of(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int turn;
	char *path = paths[turn++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", directory(), name);
	return path;
}

/* A path as it is, but for the parts that differ from run to run. */
static const char *known(const char *path)
{
	static char text[PATH_MAX + 8];
	size_t length = strlen(directory());

	if (strncmp(path, directory(), length) == 0)
		snprintf(text, sizeof(text), "DIR%s", path + length);
	else
		snprintf(text, sizeof(text), "%s", path);
	return text;
}

static const char *make_file(const char *name, const void *content, size_t size, mode_t mode)
{
	const char *path = path_of(name);

	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	need(fd >= 0);
	need(write(fd, content, size) == (ssize_t)size);
	need(fchmod(fd, mode) == 0);
	close(fd);
	return path;
}

static const char *make_script(const char *name, const char *text)
{
	return make_file(name, text, strlen(text), 0755);
}

static const char *copy_self(const char *name)
{
	static char buffer[1 << 20];
	int fd = open("/proc/self/exe", O_RDONLY);
	need(fd >= 0);
	ssize_t size = read(fd, buffer, sizeof(buffer));
	need(size > 0 && size < (ssize_t)sizeof(buffer));
	close(fd);
	return make_file(name, buffer, (size_t)size, 0755);
}

static void say_bytes(const char *what, const char *path)
{
	char buffer[4096];
	int fd = open(path, O_RDONLY);
	need(fd >= 0);
	ssize_t size = read(fd, buffer, sizeof(buffer) - 1);
	need(size >= 0);
	close(fd);
	for (ssize_t i = 0; i < size; i++)
		if (buffer[i] == 0)
			buffer[i] = '|';
	buffer[size] = 0;
	say("%s: %s\n", what, known(buffer));
}

/* What the program knows of itself. */
static void case__self(void)
{
	char path[PATH_MAX];

	for (int i = 0; i < case_argc; i++)
		say("argv[%d] %s\n", i, known(case_argv[i]));
	for (char **variable = environ; *variable; variable++)
		if (strncmp(*variable, "CASE_", 5) == 0 && strncmp(*variable, "CASE_DIR", 8) != 0)
			say("env %s\n", *variable);
	say_bytes("cmdline", "/proc/self/cmdline");
	say_bytes("comm", "/proc/self/comm");
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	need(length > 0);
	path[length] = 0;
	say("exe %s\n", known(path));
	snprintf(path, sizeof(path), "/proc/%d/exe", getpid());
	char again[PATH_MAX];
	need(readlink(path, again, sizeof(again)) == length);
	struct stat by_link, by_name;
	need(stat("/proc/self/exe", &by_link) == 0);
	need(stat(path, &by_name) == 0 && by_link.st_ino == by_name.st_ino);
	need(strcmp(case_argv[1], "_self") == 0);
	say("AT_EXECFN %s\n", known((char *)getauxval(AT_EXECFN)));
	say("AT_PHDR %d AT_PHNUM %ld AT_PHENT %ld AT_PAGESZ %ld\n",
	    getauxval(AT_PHDR) == (unsigned long)&__ehdr_start + __ehdr_start.e_phoff,
	    getauxval(AT_PHNUM), getauxval(AT_PHENT), getauxval(AT_PAGESZ));
	extern char _start[];
	say("AT_ENTRY %d AT_BASE %d AT_SECURE %ld AT_UID %d\n",
	    getauxval(AT_ENTRY) == (unsigned long)_start, getauxval(AT_BASE) != 0,
	    getauxval(AT_SECURE), getauxval(AT_UID) == getuid());
	say("AT_RANDOM %d AT_SYSINFO_EHDR %d AT_HWCAP %d AT_CLKTCK %ld\n",
	    getauxval(AT_RANDOM) != 0, getauxval(AT_SYSINFO_EHDR) != 0, getauxval(AT_HWCAP) != 0,
	    getauxval(AT_CLKTCK));
	say("stack aligned %d\n", (unsigned long)__builtin_frame_address(0) % 16 == 0);
	char *brk = sbrk(0);
	need(sbrk(100000) == brk && sbrk(0) == brk + 100000);
	memset(brk, 1, 100000);
	need(sbrk(-100000) == brk + 100000);
	say("brk works\n");
}

/* Runs @path with the words given and says how it went: the errno of exec, or the end. */
static void try_exec(const char *what, const char *path, char *const *arguments)
{
	int report[2], error = 0, status;

	need(pipe2(report, O_CLOEXEC) == 0);
	pid_t child = fork();
	if (child == 0) {
		execve(path, arguments, environ);
		need(write(report[1], &errno, sizeof(errno)) == sizeof(errno));
		_exit(0);
	}
	close(report[1]);
	ssize_t got = read(report[0], &error, sizeof(error));
	close(report[0]);
	need(waitpid(child, &status, 0) == child);
	if (got == sizeof(error))
		say("%s: %s\n", what, errno_name(error));
	else
		say_status(what, status);
}
#define WORDS(...)                                                                                 \
	(char *[])                                                                                 \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void case_itself(void)
{
	setenv("CASE_ONE", "1 2", 1);
	try_exec("plain", "/proc/self/exe", WORDS("a name", "_self", "", "x y"));
	const char *copy = copy_self("copy");
	try_exec("copy", copy, WORDS((char *)copy, "_self"));
	need(symlink("copy", path_of("link")) == 0);
	try_exec("link", path_of("link"), WORDS("link", "_self"));
	need(chdir(directory()) == 0);
	try_exec("relative", "./copy", WORDS("", "_self"));
	try_exec("no slash", "copy", WORDS("copy", "_self"));
	try_exec("a long name", copy_self("a-name-of-more-than-fifteen-bytes"),
		 WORDS("n", "_self"));
}

static void case__environment(void)
{
	say("argc %d argv[0] '%s' environ %d\n", case_argc, case_argv[0], environ[0] != NULL);
}

static void case__arguments(void)
{
	size_t total = 0;

	for (int i = 0; i < case_argc; i++)
		total += strlen(case_argv[i]);
	say("arguments %d bytes %zu\n", case_argc, total);
}

static void case_arguments(void)
{
	static char *many[20003], big[120000];

	pid_t child = fork();
	if (child == 0) {
		execve("/proc/self/exe", WORDS("", "_environment"), WORDS((char *)NULL));
		_exit(99);
	}
	say_end("no environment", child);
	child = fork();
	if (child == 0) {
		execve("/proc/self/exe", WORDS("", "_environment"), NULL);
		_exit(99);
	}
	say_end("NULL for the environment", child);
	many[0] = "x";
	many[1] = "_arguments";
	for (int i = 2; i < 20002; i++)
		many[i] = "0123456789";
	try_exec("many", "/proc/self/exe", many);
	memset(big, 'x', sizeof(big) - 1);
	try_exec("one long", "/proc/self/exe", WORDS("x", "_arguments", big));
	static char bigger[200000];
	memset(bigger, 'x', sizeof(bigger) - 1);
	try_exec("too long", "/proc/self/exe", WORDS("x", "_arguments", bigger));
	for (int i = 2; i < 20002; i++)
		many[i] = big;
	try_exec("too many", "/proc/self/exe", many);
}

/* Makes a first line of @size characters that names the shell. */
static void shell_line(char *text, size_t size)
{
	static const char shell[] = "/bin/sh";

	memset(text, '/', size);
	memcpy(text, "#!", 2);
	memcpy(text + size - strlen(shell), shell, sizeof(shell));
}

static void case_scripts(void)
{
	char text[PATH_MAX + 64];
	const char *copy = copy_self("interpreter");

	make_script("simple", "#!/bin/sh\necho \"$0: $*\" | sed 's,^.*/,,'\nexit 4\n");
	try_exec("simple", path_of("simple"), WORDS("ignored", "one", "two three"));
	snprintf(text, sizeof(text), "#! %s   _self with  spaces  \nrest", copy);
	try_exec("one argument", make_script("argument", text), WORDS("ignored", "more"));
	snprintf(text, sizeof(text), "#!%s _arguments", copy);
	try_exec("no newline", make_script("line", text), WORDS("ignored", "more"));
	snprintf(text, sizeof(text), "#!%s x\n", path_of("line"));
	try_exec("script of a script", make_script("nested", text), WORDS("ignored", "more"));
	make_script("loop", "#!/nothing\n");
	snprintf(text, sizeof(text), "#!%s\n", path_of("loop"));
	make_script("loop", text);
	try_exec("its own interpreter", path_of("loop"), WORDS("x"));
	try_exec("interpreter missing", make_script("s1", "#!/nowhere/sh\n"), WORDS("x"));
	try_exec("interpreter is a directory", make_script("s2", "#!/tmp\n"), WORDS("x"));
	try_exec("no interpreter", make_script("s3", "#!\n"), WORDS("x"));
	try_exec("only spaces", make_script("s4", "#!   \t \n"), WORDS("x"));
	try_exec("not executable", make_script("s5", "#!/etc/passwd\n"), WORDS("x"));
	memset(text, 'a', 300);
	memcpy(text, "#!/", 3);
	text[300] = 0;
	try_exec("a line too long", make_script("s6", text), WORDS("x"));
	/* The kernel reads 256 bytes. The last one has to end the interpreter's name. */
	shell_line(text, 256);
	try_exec("a name that may go on", make_script("s8", text), WORDS("x"));
	shell_line(text, 255);
	try_exec("a name to the last byte", make_script("s9", text), WORDS("x"));
	strcat(text, " ");
	try_exec("the last byte is a space", make_script("s10", text), WORDS("x"));
	strcat(text, "-x");
	try_exec("an argument from there on", make_script("s11", text), WORDS("x"));
	need(chdir(directory()) == 0);
	try_exec("relative interpreter", make_script("s7", "#!interpreter _arguments\n"),
		 WORDS("x"));
	setenv("PATH", directory(), 1);
	pid_t child = fork();
	if (child == 0) {
		execlp("line", "x", "y", (char *)NULL);
		_exit(98);
	}
	say_end("found by PATH", child);
	make_script("plain", "exit 6\n");
	child = fork();
	if (child == 0) {
		execlp("plain", "x", "y", (char *)NULL);
		_exit(98);
	}
	say_end("without a first line, by the shell", child);
}

static void case_refusals(void)
{
	Elf64_Ehdr header = __ehdr_start;
	char name[400];

	try_exec("missing", path_of("missing"), WORDS("x"));
	try_exec("empty path", "", WORDS("x"));
	try_exec("directory", directory(), WORDS("x"));
	try_exec("below a file", "/etc/passwd/x", WORDS("x"));
	try_exec("without permission", make_file("f1", "#!/bin/sh\n", 10, 0644), WORDS("x"));
	try_exec("text", make_file("f2", "hello\n", 6, 0755), WORDS("x"));
	try_exec("empty file", make_file("f3", "", 0, 0755), WORDS("x"));
	try_exec("short ELF", make_file("f4", &header, 20, 0755), WORDS("x"));
	try_exec("ELF without program headers", make_file("f5", &header, sizeof(header), 0755),
		 WORDS("x"));
	header.e_machine = EM_AARCH64;
	try_exec("another machine", make_file("f6", &header, sizeof(header), 0755), WORDS("x"));
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	try_exec("long name", name, WORDS("x"));
	try_exec("device", "/dev/null", WORDS("x"));
	try_exec("bad path", (char *)16, WORDS("x"));
	try_exec("bad arguments", "/proc/self/exe", (char *const *)16);
	try_exec("bad argument", "/proc/self/exe", WORDS("x", (char *)16));
	need(symlink(path_of("l2"), path_of("l1")) == 0 &&
	     symlink(path_of("l1"), path_of("l2")) == 0);
	try_exec("links in a circle", path_of("l1"), WORDS("x"));
	const char *copy = copy_self("busy");
	int fd = open(copy, O_WRONLY);
	try_exec("being written", copy, WORDS("x", "_arguments"));
	close(fd);
	mkfifo(path_of("fifo"), 0755);
	try_exec("fifo", path_of("fifo"), WORDS("x"));
	say("still here\n");
}

static void exec_at(const char *what, int fd, const char *path, int flags)
{
	pid_t child = fork();

	if (child == 0) {
		long result = raw(SYS_execveat, fd, path, WORDS("at", "_self"), environ, flags);
		say("%s: %s\n", what, errno_name((int)-result));
		_exit(0);
	}
	say_end(what, child);
}

static void case_by_descriptor(void)
{
	const char *copy = copy_self("copy");
	int fd = open(copy, O_RDONLY), path_fd = open(copy, O_PATH);
	int dir = open(directory(), O_RDONLY | O_DIRECTORY);
	int closing = open(copy, O_RDONLY | O_CLOEXEC);

	need(symlink("copy", path_of("link")) == 0);
	need(fd >= 0 && path_fd >= 0 && dir >= 0 && closing >= 0);
	exec_at("by directory", dir, "copy", 0);
	exec_at("no such file", dir, "nothing", 0);
	exec_at("a link", dir, "link", 0);
	exec_at("a link not followed", dir, "link", AT_SYMLINK_NOFOLLOW);
	exec_at("empty path", fd, "", 0);
	exec_at("bad descriptor", 99, "copy", 0);
	exec_at("not a directory", fd, "copy", 0);
	exec_at("bad flags", dir, "copy", 0x10);
	exec_at("absolute", 99, copy, 0);
	pid_t child = fork();
	if (child == 0) {
		execveat(fd, "", WORDS("f", "_arguments"), environ, AT_EMPTY_PATH);
		_exit(98);
	}
	say_end("descriptor", child);
	child = fork();
	if (child == 0) {
		execveat(path_fd, "", WORDS("f", "_arguments"), environ, AT_EMPTY_PATH);
		_exit(98);
	}
	say_end("O_PATH", child);
	child = fork();
	if (child == 0) {
		fexecve(closing, WORDS("f", "_arguments"), environ);
		_exit(98);
	}
	say_end("close-on-exec", child);
	int script = open(make_script("script", "#!/bin/sh\necho script\n"), O_RDONLY);
	child = fork();
	if (child == 0) {
		fexecve(script, WORDS("f"), environ);
		_exit(98);
	}
	say_end("script", child);
	fcntl(script, F_SETFD, FD_CLOEXEC);
	child = fork();
	if (child == 0) {
		execveat(script, "", WORDS("f"), environ, AT_EMPTY_PATH);
		say("%s\n", errno_name(errno));
		_exit(0);
	}
	say_end("script that is closed", child);
	unlink(copy);
	child = fork();
	if (child == 0) {
		fexecve(fd, WORDS("f", "_deleted"), environ);
		_exit(98);
	}
	say_end("deleted file", child);
	int memory = memfd_create("name", 0);
	int self = open("/proc/self/exe", O_RDONLY);
	static char buffer[1 << 20];
	ssize_t size = read(self, buffer, sizeof(buffer));
	need(write(memory, buffer, (size_t)size) == size);
	child = fork();
	if (child == 0) {
		fexecve(memory, WORDS("f", "_deleted"), environ);
		_exit(98);
	}
	say_end("memfd", child);
}

static void case__deleted(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	need(length > 0);
	path[length] = 0;
	say("exe %s\n", known(path));
}

/* ---- what stays and what goes ---- */

static void case__inherited(void)
{
	for (int fd = 3; fd < 12; fd++)
		say("fd %d %s\n", fd, fcntl(fd, F_GETFD) < 0 ? errno_name(errno) : "open");
	char byte = 0;
	say("read %s\n", result_name(read(5, &byte, 1)));
	say("byte %c umask %o\n", byte, umask(0));
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	say("limit %ld\n", (long)limit.rlim_cur);
	say("nice %d pgrp %d dumpable %d no_new_privs %d\n", getpriority(PRIO_PROCESS, 0),
	    getpgrp() == getpid(), prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	char cwd[PATH_MAX];
	need(getcwd(cwd, sizeof(cwd)));
	say("cwd %s\n", known(cwd));
	/* None of the runtime's may be in the way of the numbers that programs get. */
	say("next %d\n", dup(0));
}

static void case_inherited(void)
{
	int ends[2];

	for (int fd = 3; fd < 100; fd++)
		close(fd);
	need(pipe(ends) == 0);
	need(dup2(ends[0], 5) == 5 && dup2(ends[1], 7) == 7);
	need(write(7, "z", 1) == 1);
	fcntl(7, F_SETFD, FD_CLOEXEC);
	need(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);
	struct rlimit limit = {50, 50};
	umask(027);
	chdir(directory());
	setpgid(0, 0);
	setpriority(PRIO_PROCESS, 0, 3);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	setrlimit(RLIMIT_NOFILE, &limit);
	execl("/proc/self/exe", "x", "_inherited", (char *)NULL);
	need(false);
}

/* Programs that close everything, in each of the usual ways, and go on to execute. */
static void case_close_all(void)
{
	for (int way = 0; way < 3; way++) {
		pid_t child = fork();

		if (child == 0) {
			if (way == 0)
				for (int fd = 3; fd < 4096; fd++)
					close(fd);
			else if (way == 1)
				raw(SYS_close_range, 3, ~0u, 0);
			else
				raw(SYS_close_range, 3, ~0u, 4); /* CLOSE_RANGE_CLOEXEC */
			pid_t inner = fork();
			if (inner == 0) {
				execl("/proc/self/exe", "x", "_arguments", (char *)NULL);
				_exit(98);
			}
			say_end("inner", inner);
			system("echo from the shell");
			_exit(0);
		}
		say_end("closed", child);
	}
	/* Every number at hand is used for something else. */
	pid_t child = fork();
	if (child == 0) {
		struct rlimit limit;

		getrlimit(RLIMIT_NOFILE, &limit);
		/* Some are left for the loader. */
		int top = limit.rlim_cur < 4112 ? (int)limit.rlim_cur - 16 : 4096;
		for (int fd = 3; fd < top; fd++)
			dup2(0, fd);
		execl("/proc/self/exe", "x", "_arguments", (char *)NULL);
		_exit(98);
	}
	say_end("replaced", child);
}

static void case__deeper(void)
{
	int depth = atoi(case_argv[2]);
	char text[16];

	if (depth == 0) {
		say("bottom\n");
		_exit(77);
	}
	snprintf(text, sizeof(text), "%d", depth - 1);
	if (depth % 3 == 0) {
		pid_t child = fork();
		if (child) {
			say_end("level", child);
			_exit(depth);
		}
	}
	execl("/proc/self/exe", "x", "_deeper", text, (char *)NULL);
	_exit(98);
}

static void case_deep(void)
{
	try_exec("deep", "/proc/self/exe", WORDS("x", "_deeper", "21"));
}

/* Other processes of the tree look at this one. */
static void case_seen_from_outside(void)
{
	int ends[2];
	char path[64], target[PATH_MAX];
	const char *copy = copy_self("copy");

	need(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[0], 0);
		dup2(ends[1], 1);
		execl(copy, "a name", "_wait", "z", (char *)NULL);
		_exit(98);
	}
	char byte;
	need(read(ends[0], &byte, 1) == 1);
	snprintf(path, sizeof(path), "/proc/%d/exe", child);
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	need(length > 0);
	target[length] = 0;
	say("exe %s\n", known(target));
	struct stat by_link, by_name;
	need(stat(path, &by_link) == 0 && stat(copy, &by_name) == 0);
	say("same file %d\n", by_link.st_ino == by_name.st_ino);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", child);
	say_bytes("cmdline", path);
	snprintf(path, sizeof(path), "/proc/%d/comm", child);
	say_bytes("comm", path);
	kill(child, SIGTERM);
	say_end("child", child);
}

/* So does a tracer, before the program that is executed has done anything. */
static void case_seen_by_a_tracer(void)
{
	const char *copy = copy_self("copy");
	char path[64], target[PATH_MAX];
	int status;

	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		if (child == 0) {
			/* Much besides, and what looks like what the runtime looks for. */
			setenv("CASE_MUCH", i ? memset(calloc(1, 100001), 'x', 100000) : "", 1);
			setenv("TALLY_RUN_", "1,2,3", 1);
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
			execl(copy, "a name", "_arguments", (char *)NULL);
			_exit(98);
		}
		need(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		snprintf(path, sizeof(path), "/proc/%d/exe", child);
		ssize_t length = readlink(path, target, sizeof(target) - 1);
		say("exe %s\n", length < 0 ? strerror(errno) : (target[length] = 0, known(target)));
		struct stat by_link = {}, by_name;
		need(stat(copy, &by_name) == 0);
		say("same file %d\n",
		    stat(path, &by_link) == 0 && by_link.st_ino == by_name.st_ino);
		ptrace(PTRACE_DETACH, child, NULL, NULL);
		say_end("child", child);
	}
}

static void case__wait(void)
{
	need(write(1, "r", 1) == 1);
	for (;;)
		pause();
}

/* Runs where there is no /proc and nothing else but a copy of itself. */
static void case_chroot(void)
{
	if (geteuid() != 0) {
		say("skip: chroot needs root\n");
		_exit(0);
	}
	copy_self("copy");
	pid_t child = fork();
	if (child == 0) {
		need(chroot(directory()) == 0 && chdir("/") == 0);
		execl("/copy", "x", "_arguments", (char *)NULL);
		say("%s\n", errno_name(errno));
		_exit(0);
	}
	say_end("chroot", child); /* of the static program 0, of the dynamic one no interpreter */
}

/* Programs that have no choice of their own count on some addresses. */
static void case_addresses_that_are_free(void)
{
	static const struct {
		const char *who;
		uintptr_t start, end;
	} wanted[] = {
		{"Windows programs", 0x10000, 0x200000},
		{"and their libraries", 0x7ffe0000, 0x7ffe1000},
		{"Lisp", 0x50000000, 0x5a000000},
		{"the same, dynamic", 0x1000000000, 0x1200000000},
		{"Go", 0xc000000000, 0xc004000000},
		{"AddressSanitizer", 0x7fff7000, 0x10007fff8000},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *at = (void *)wanted[i].start;
		void *got = mmap(at, wanted[i].end - wanted[i].start, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				 -1, 0);

		say("%s %s\n", wanted[i].who, got == at ? "free" : errno_name(errno));
		if (got == at)
			munmap(at, wanted[i].end - wanted[i].start);
	}
}

const struct test_case cases[] = {
	{"addresses_that_are_free", case_addresses_that_are_free},
	{"itself", case_itself},
	{"arguments", case_arguments},
	{"scripts", case_scripts},
	{"refusals", case_refusals},
	{"by_descriptor", case_by_descriptor},
	{"inherited", case_inherited},
	{"close_all", case_close_all},
	{"deep", case_deep},
	{"seen_from_outside", case_seen_from_outside},
	{"seen_by_a_tracer", case_seen_by_a_tracer},
	{"chroot", case_chroot},
	{"_self", case__self},
	{"_environment", case__environment},
	{"_arguments", case__arguments},
	{"_deleted", case__deleted},
	{"_inherited", case__inherited},
	{"_deeper", case__deeper},
	{"_wait", case__wait},
	{NULL, NULL},
};
