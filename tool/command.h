/* SPDX-License-Identifier: MIT */
/*
 * A subcommand and its options, each in one table: dispatch, parsing, `tally help` and the shell
 * completions all read the same rows.
 */
#ifndef TOOL_COMMAND_H
#define TOOL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include <tally/error.h>

/* Exit statuses of the tool itself; a measured command's own status is passed on unchanged. */
enum tool_status {
	TOOL_OK = 0,
	TOOL_FAILED = 1,   /* what was asked could not be done; said why on stderr */
	TOOL_USAGE = 129,  /* the command line is wrong; as git and perf have it */
	TOOL_NOEXEC = 126, /* the command to measure cannot be executed */
	TOOL_NOENT = 127,  /* the command to measure was not found */
};

/* What follows an option, for `tally help` and the completions. */
enum tool_argument {
	TOOL_NONE,
	TOOL_EVENT,
	TOOL_FILE,
	TOOL_PID,
	TOOL_TID,
	TOOL_CPUS,
	TOOL_CGROUP,
	TOOL_NUMBER,
	TOOL_TEXT,
	TOOL_WORD, /* one of the words in tool_option.metavar, "fp|dwarf|none" */
};

struct tool_option {
	int key;	  /* the short option's character, or a number above 255 when it has none */
	const char *name; /* the long option, or NULL */
	enum tool_argument argument;
	/*
	 * The argument may be left out. It is given as --name=ARG or -nARG; in commands without
	 * operands also as the next word, as perf report takes its -g.
	 */
	bool optional;
	const char *metavar; /* what help shows for the argument */
	const char *help;
};

struct tool_command {
	const char *name;
	const char *summary;		   /* one line, for `tally help` */
	const char *usage;		   /* "[options] [--] COMMAND [ARG...]" */
	const struct tool_option *options; /* ends with a row whose key is 0 */
	bool no_operands;
	int (*run)(const struct tool_command *command, int argc, char **argv);
};

/* Ends with a row whose name is NULL. */
extern const struct tool_command *tool_commands[];

/* The parsing of one command line. Zero it but for the first three members. */
struct tool_parse {
	const struct tool_command *command;
	int argc;
	char **argv;
	const char *argument; /* of the option that tool_next_option() returned, or NULL */
	int index;	      /* after the last option: of the first operand in argv */
	void *state;
};

/*
 * The next option's key; 0 after the last (options end at the first operand); -1 after a bad one,
 * which has been reported; then the command returns TOOL_USAGE. -h and --help print the help and
 * return -2: the command returns TOOL_OK.
 */
int tool_next_option(struct tool_parse *parse);
/* Releases what is left of a parsing that stops before the last option. Harmless at any time. */
void tool_end_options(struct tool_parse *parse);

/* Says what went wrong and what to change on stderr; returns TOOL_FAILED. */
int tool_error(const struct tally_error *err);
int tool_fail(const char *what, ...) __attribute__((format(printf, 1, 2)));
int tool_usage(const struct tool_command *command, const char *what, ...)
	__attribute__((format(printf, 2, 3)));

/* Number with an optional k, m, g (1000) or K, M, G (1024) suffix; false when it is not one. */
bool tool_parse_number(const char *text, unsigned long long *value);
/* "0,2-3" into an array to be freed. */
bool tool_parse_list(const char *text, int **values, size_t *nr);

#endif
