// SPDX-License-Identifier: MIT
/*
 * From what execve(2) is given to the file with the code, with the kernel's errno for each mistake.
 * Where there is doubt the answer is "native, without mention": then the kernel itself decides.
 */
#include <asm/errno.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/stat.h>

#include "runtime/boot/image.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/exec.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000 /* Linux 6.14 */
#endif
#define X_OK	  1
#define ST_NOSUID 2

/* For kernels that cannot be asked: all that can be seen from here; not whether it is being
 * written to. */
static int64_t check_by_hand(int64_t dirfd, const char *path, uint64_t flags)
{
	struct stat file;
	int64_t error = sys(__NR_newfstatat, dirfd, path, &file, flags);

	if (error)
		return error;
	if (S_ISLNK(file.st_mode))
		return -ELOOP;
	if (!S_ISREG(file.st_mode))
		return -EACCES;
	error = sys(__NR_faccessat2, dirfd, path, X_OK, flags | AT_EACCESS);
	/* Filters of seccomp(2) from before Linux 5.8 do not know the call. */
	if (error == -ENOSYS || error == -EPERM)
		error = sys(__NR_faccessat, dirfd, path, X_OK);
	return error;
}

/* Whether the file may be executed. */
static int64_t check(int64_t dirfd, const char *path, uint64_t flags)
{
	static const char *const no_arguments[] = {"", NULL};
	static bool unknown;
	int64_t error = -EINVAL;

	if (!unknown)
		error = sys(__NR_execveat, dirfd, path, no_arguments, no_arguments + 1,
			    flags | AT_EXECVE_CHECK);
	if (error != -EINVAL && error != -ENOSYS)
		return error;
	unknown = true;
	return check_by_hand(dirfd, path, flags);
}

/* Of AT_EMPTY_PATH: a descriptor that can be read, of what may be open by its name only. */
static int64_t reopen(int64_t fd)
{
	char path[32];
	int64_t again;

	format(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	return again == -ENOENT ? sys(__NR_fcntl, fd, F_DUPFD_CLOEXEC, 0) : again;
}

static int64_t open_to_read(int64_t dirfd, const char *path)
{
	return *path ? sys(__NR_openat, dirfd, path, O_RDONLY | O_CLOEXEC) : reopen(dirfd);
}

/* Privileges that the file would bring and tally-rt would not. */

static bool no_new_privileges(int fd)
{
	struct statfs fs;

	return sys(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	       (!sys(__NR_fstatfs, fd, &fs) && fs.f_flags & ST_NOSUID);
}

static const char *privileges(int fd)
{
	struct stat file;
	char capabilities[64];
	uint64_t euid = (uint64_t)sys(__NR_geteuid), egid = (uint64_t)sys(__NR_getegid);
	const char *why = NULL;

	if (sys(__NR_fstat, fd, &file))
		return "";
	if (file.st_mode & S_ISUID && file.st_uid != euid)
		why = "a set-user-ID program";
	else if (file.st_mode & S_ISGID && file.st_mode & S_IXGRP && file.st_gid != egid)
		why = "a set-group-ID program";
	else if (euid && sys(__NR_fgetxattr, fd, "security.capability", capabilities,
			     sizeof(capabilities)) > 0)
		why = "a program with file capabilities";
	return why && no_new_privileges(fd) ? NULL : why;
}

/* tally-rt itself: a run within the run. One translator does not translate another. */
static bool is_runtime(int fd)
{
	struct stat file, ours;

	return !sys(__NR_fstat, fd, &file) && !sys(__NR_fstat, descriptors.runtime, &ours) &&
	       file.st_ino == ours.st_ino && file.st_dev == ours.st_dev;
}

/* Scripts */

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool ends_word(char c)
{
	return blank(c) || !c;
}

/*
 * Cuts "#! INTERPRETER [ARGUMENT]" out of @line, where the file begins, or all of it and zeroes
 * behind, in place. The argument is one, whatever blanks it has, and NULL when there is none.
 */
static bool parse_script(char line[SCRIPT_LINE + 1], char **interpreter, char **argument)
{
	char *end = line + 2, *at = line + 2;

	while (end < line + SCRIPT_LINE - 1 && *end != '\n')
		end++;
	if (*end != '\n') {
		/* Cut off: all right if it is in the argument. */
		char *p = line + 2;

		while (p <= end && blank(*p))
			p++;
		while (p <= end && !ends_word(*p))
			p++;
		if (p > end)
			return false;
	}
	while (end > at && blank(end[-1]))
		end--;
	*end = '\0';
	while (blank(*at))
		at++;
	if (at == end)
		return false;
	*interpreter = at;
	while (!ends_word(*at))
		at++;
	*argument = NULL;
	if (*at) {
		*at++ = '\0';
		while (blank(*at))
			at++;
		*argument = *at ? at : NULL;
	}
	return true;
}

/* Puts a script's interpreter and its argument before the words so far. */
static void prepend(struct exec *exec, const char *interpreter, const char *argument)
{
	unsigned int nr = argument ? 2 : 1;

	memmove(exec->words + nr, exec->words, exec->nr_words * sizeof(*exec->words));
	exec->words[0] = interpreter;
	if (argument)
		exec->words[1] = argument;
	exec->nr_words += nr;
}

/* What execveat(2) makes of a descriptor and a path. */
static void name(struct exec *exec)
{
	if (exec->path[0] == '/' || exec->dirfd == AT_FDCWD)
		format(exec->filename, sizeof(exec->filename), "%s", exec->path);
	else
		format(exec->filename, sizeof(exec->filename), "/dev/fd/%d%s%s", exec->dirfd,
		       exec->path[0] ? "/" : "", exec->path);
}

/* The kernel would go through /dev/fd/N, which exec closes. */
static bool closes(const struct exec *exec)
{
	return exec->dirfd != AT_FDCWD && exec->path[0] != '/' &&
	       sys(__NR_fcntl, exec->dirfd, F_GETFD) & FD_CLOEXEC;
}

/* Programs */

/* The interpreter that the program names has to be one that can be loaded. */
static int64_t check_interpreter(struct exec *exec, const struct image *program)
{
	char path[PATH_MAX];
	struct image interpreter;
	int64_t error, fd;

	if (!program->has_interpreter)
		return 0;
	exec->native = "";
	if (!image_interpreter(program, exec->program, path, sizeof(path)))
		return 0;
	error = check(AT_FDCWD, path, 0);
	if (error)
		return error;
	fd = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (image_read(&interpreter, (int)fd) == IMAGE_GOOD && interpreter.header.e_type == ET_DYN)
		exec->native = NULL;
	sys(__NR_close, fd);
	return 0;
}

/* PR_GET_MDWE, 6.3: older kernels know nothing of it. */
enum { GET_MDWE = 66 };

static int64_t check_program(struct exec *exec)
{
	struct image image;

	switch (image_read(&image, exec->program)) {
	case IMAGE_GOOD:
		exec->native = is_runtime(exec->program) ? "" : privileges(exec->program);
		if (!exec->native && sys(__NR_prctl, GET_MDWE, 0, 0, 0, 0) > 0)
			exec->native = "executed where memory that is written cannot become code";
		return exec->native ? 0 : check_interpreter(exec, &image);
	case IMAGE_32_BIT:
		exec->native = "a 32-bit program";
		return 0;
	case IMAGE_TOO_COMPLEX:
		exec->native = "a program of more segments than can be loaded";
		return 0;
	case IMAGE_UNKNOWN:
		exec->native = "";
	}
	return 0;
}

/* Opens one file of the chain into exec->program; sets exec->native if it cannot be read. */
static int64_t open_one(struct exec *exec, int64_t dirfd, const char *path, uint64_t flags)
{
	int64_t error = check(dirfd, path, flags), fd;

	if (error)
		return error;
	fd = open_to_read(dirfd, path);
	exec->program = (int)fd;
	if (fd == -EACCES)
		exec->native = "a program that cannot be read";
	else if (fd < 0)
		exec->native = "";
	return 0;
}

static int64_t find(struct exec *exec)
{
	const char *path = exec->path;
	char *interpreter, *argument;
	int64_t dirfd = exec->dirfd, error;
	uint64_t flags = exec->flags;

	for (unsigned int scripts = 0;; scripts++) {
		char *line;

		error = open_one(exec, dirfd, path, flags);
		if (error || exec->native)
			return error;
		if (scripts > SCRIPTS_MAX)
			return -ELOOP;
		line = exec->lines[scripts];
		if (sys(__NR_pread64, exec->program, line, SCRIPT_LINE, 0) < 2 || line[0] != '#' ||
		    line[1] != '!')
			return check_program(exec);
		if (!scripts && closes(exec))
			return -ENOENT;
		if (!parse_script(line, &interpreter, &argument))
			return -ENOEXEC;
		/* A file that ends behind "#!": the kernel opens "", the current folder. */
		if (!*interpreter)
			return -EACCES;
		prepend(exec, interpreter, argument);
		path = interpreter;
		dirfd = AT_FDCWD;
		flags = 0;
		sys(__NR_close, exec->program);
		exec->program = -1;
	}
}

int64_t exec_find(struct exec *exec)
{
	int64_t error;

	if (exec->flags & ~(uint64_t)(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -EINVAL;
	if (!exec->path[0] && !(exec->flags & AT_EMPTY_PATH))
		return -ENOENT;
	name(exec);
	files_program_link(exec->dirfd, exec->path);
	exec->program = -1;
	exec->native = NULL;
	exec->words[0] = exec->filename;
	exec->nr_words = 1;
	memset(exec->lines, 0, sizeof(exec->lines));
	error = find(exec);
	if (error && exec->program >= 0)
		sys(__NR_close, exec->program);
	return error;
}
