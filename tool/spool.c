// SPDX-License-Identifier: MIT
#include "tool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/memory.h"

#define PIECE (1024 * 1024)

static int refuse(struct tally_error *err, const char *what, const char *remedy)
{
	*err = (struct tally_error){.code = -errno, .offset = TALLY_NO_OFFSET};
	snprintf(err->what, sizeof(err->what), "%s: %s", what, strerror(errno));
	snprintf(err->remedy, sizeof(err->remedy), "%s", remedy);
	return err->code;
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			data += n;
			size -= n;
		}
	}
	return 0;
}

static int copy(int from, int to, struct tally_error *err)
{
	char *piece = tool_alloc(1, PIECE);
	int result = 0;

	for (;;) {
		ssize_t n = read(from, piece, PIECE);

		if (!n)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			result = refuse(err, "cannot read standard input", "");
		else if (write_all(to, piece, n))
			result = refuse(err, "cannot keep standard input in a temporary file",
					"set TMPDIR to a directory with more room");
		if (result)
			break;
	}
	free(piece);
	return result;
}

static int open_unnamed(const char *dir)
{
	char name[4096];
	int file = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (file >= 0)
		return file;
	/* Not every file system has unnamed files. */
	snprintf(name, sizeof(name), "%s/tally.XXXXXX", dir);
	file = mkostemp(name, O_CLOEXEC);
	if (file >= 0)
		unlink(name);
	return file;
}

int spool_standard_input(struct tally_error *err)
{
	const char *dir = getenv("TMPDIR");
	struct stat st;
	int file, result;

	if (!fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode))
		return 0;
	file = open_unnamed(dir && *dir ? dir : "/tmp");
	if (file < 0)
		return refuse(err, "cannot make a temporary file",
			      "set TMPDIR to a directory that you may write to");
	result = copy(STDIN_FILENO, file, err);
	if (!result && (lseek(file, 0, SEEK_SET) < 0 || dup2(file, STDIN_FILENO) < 0))
		result = refuse(err, "cannot read the temporary file", "");
	close(file);
	return result;
}
