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

int spool_open(int fd, struct tally_error *err)
{
	const char *dir = getenv("TMPDIR");
	struct stat st;
	int file;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		return file < 0 ? refuse(err, "cannot read standard input", "") : file;
	}
	if (!dir || !*dir)
		dir = "/tmp";
	file = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (file < 0) {
		char name[4096];

		/* Not every file system has unnamed files. */
		snprintf(name, sizeof(name), "%s/tally.XXXXXX", dir);
		file = mkostemp(name, O_CLOEXEC);
		if (file < 0)
			return refuse(err, "cannot make a temporary file",
				      "set TMPDIR to a directory that you may write to");
		unlink(name);
	}
	int result = copy(fd, file, err);

	if (!result && lseek(file, 0, SEEK_SET) < 0)
		result = refuse(err, "cannot read the temporary file", "");
	if (result) {
		close(file);
		return result;
	}
	return file;
}
