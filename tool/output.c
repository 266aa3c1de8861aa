// SPDX-License-Identifier: MIT
#include "tool/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/command.h"
#include "tool/terminal.h"

static bool start_pager(struct output *output)
{
	const char *pager = getenv("PAGER");
	int ends[2];
	pid_t pid;

	if (!pager)
		pager = "less";
	if (!*pager || !strcmp(pager, "cat") || pipe2(ends, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid) {
		dup2(ends[0], STDIN_FILENO);
		setenv("LESS", "FRSX", 0);
		execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
		_exit(TOOL_NOENT);
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return false;
	}
	/* The pager ends when it likes, and decides what Ctrl-C means. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	output->pager = pid;
	output->buffer.fd = ends[1];
	return true;
}

void output_open(struct output *output, bool pager)
{
	*output = (struct output){.buffer = {.fd = STDOUT_FILENO}};
	output->colour = tool_colours(stdout);
	if (pager && isatty(STDOUT_FILENO))
		start_pager(output);
}

int output_close(struct output *output)
{
	int error = buffer_flush(&output->buffer);

	if (output->pager) {
		close(output->buffer.fd);
		while (waitpid(output->pager, NULL, 0) < 0 && errno == EINTR)
			;
		if (error == -EPIPE)
			error = 0;
	}
	buffer_free(&output->buffer);
	return error ? tool_fail("cannot write to standard output: %s", strerror(-error)) : TOOL_OK;
}
