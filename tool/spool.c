// SPDX-License-Identifier: MIT
#include "tool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

bool spool_is_stream(void)
{
	/* The magic, and the size of a header that has nothing else. */
	static const unsigned char wanted[16] = "PERFILE2\x10";
	unsigned char found[sizeof(wanted)];
	bool same = false;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return false;
	if (tee(STDIN_FILENO, ends[1], sizeof(found), 0) == sizeof(found))
		same = read(ends[0], found, sizeof(found)) == sizeof(found) &&
		       !memcmp(found, wanted, sizeof(wanted));
	close(ends[0]);
	close(ends[1]);
	return same;
}

bool spool_has_more(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&input, 1, 0) > 0;
}
