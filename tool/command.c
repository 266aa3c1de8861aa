// SPDX-License-Identifier: MIT
#include "tool/command.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/help.h"

#define MAX_OPTIONS 64
#define KEY_HELP    0x10000

/* getopt_long(3) wants its own two tables; they live here, made from the command's rows. */
struct getopt_tables {
	char brief[MAX_OPTIONS * 3 + 2];
	struct option full[MAX_OPTIONS + 2];
};

static struct getopt_tables *make_tables(const struct tool_command *command)
{
	struct getopt_tables *tables = calloc(1, sizeof(*tables));
	char *brief;
	size_t n = 0;

	if (!tables)
		return NULL;
	brief = tables->brief;
	*brief++ = '+';
	*brief++ = ':';
	for (const struct tool_option *o = command->options; o->key; o++) {
		int has_arg = o->argument == TOOL_NONE ? no_argument
			      : o->optional	       ? optional_argument
						       : required_argument;

		if (o->key < 256) {
			*brief++ = o->key;
			if (has_arg == required_argument)
				*brief++ = ':';
			else if (has_arg == optional_argument)
				brief = stpcpy(brief, "::");
		}
		if (o->name)
			tables->full[n++] = (struct option){o->name, has_arg, NULL, o->key};
	}
	*brief++ = 'h';
	tables->full[n] = (struct option){"help", no_argument, NULL, KEY_HELP};
	return tables;
}

static bool is_optional(const struct tool_command *command, int key)
{
	for (const struct tool_option *o = command->options; o->key; o++)
		if (o->key == key)
			return o->optional;
	return false;
}

int tool_next_option(struct tool_parse *parse)
{
	int key;

	if (!parse->state) {
		parse->state = make_tables(parse->command);
		if (!parse->state) {
			tool_fail("out of memory");
			return -1;
		}
		optind = 0;
		opterr = 0;
	}
	struct getopt_tables *tables = parse->state;

	key = getopt_long(parse->argc, parse->argv, tables->brief, tables->full, NULL);
	if (!optarg && parse->command->no_operands && optind < parse->argc &&
	    parse->argv[optind][0] != '-' && is_optional(parse->command, key))
		optarg = parse->argv[optind++];
	parse->argument = optarg;
	parse->index = optind;
	switch (key) {
	case 'h':
	case KEY_HELP:
		tool_help_command(parse->command, stdout);
		key = -2;
		break;
	case ':':
		tool_usage(parse->command, "option '%s' needs an argument",
			   parse->argv[optind - 1]);
		key = -1;
		break;
	case '?':
		if (optopt && optopt < 256 && !strncmp(parse->argv[optind - 1], "-", 1) &&
		    parse->argv[optind - 1][1] != '-')
			tool_usage(parse->command, "unknown option '-%c'", optopt);
		else
			tool_usage(parse->command, "unknown option '%s'", parse->argv[optind - 1]);
		key = -1;
		break;
	case -1:
		key = 0;
		break;
	default:
		return key;
	}
	tool_end_options(parse);
	return key;
}

void tool_end_options(struct tool_parse *parse)
{
	free(parse->state);
	parse->state = NULL;
}

int tool_error(const struct tally_error *err)
{
	fprintf(stderr, "tally: %s\n", err->what);
	if (err->remedy[0])
		fprintf(stderr, "       %s\n", err->remedy);
	return TOOL_FAILED;
}

int tool_fail(const char *what, ...)
{
	va_list ap;

	fputs("tally: ", stderr);
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fputc('\n', stderr);
	return TOOL_FAILED;
}

int tool_usage(const struct tool_command *command, const char *what, ...)
{
	va_list ap;

	fprintf(stderr, "tally %s: ", command->name);
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fprintf(stderr, "\n       try 'tally help %s'\n", command->name);
	return TOOL_USAGE;
}

bool tool_parse_number(const char *text, unsigned long long *value)
{
	static const char suffixes[] = "kmgKMG";
	unsigned long long factor = 1;
	const char *suffix;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	if (errno)
		return false;
	if (*end) {
		suffix = strchr(suffixes, *end);
		if (!suffix || end[1])
			return false;
		for (long i = (suffix - suffixes) % 3; i >= 0; i--)
			factor *= suffix - suffixes < 3 ? 1000 : 1024;
	}
	return !__builtin_mul_overflow(*value, factor, value);
}

bool tool_parse_list(const char *text, int **values, size_t *nr)
{
	const char *p = text;

	*values = NULL;
	*nr = 0;
	for (;;) {
		char *end;
		long first, last;

		if (!isdigit((unsigned char)*p))
			goto bad;
		first = last = strtol(p, &end, 10);
		if (*end == '-') {
			p = end + 1;
			if (!isdigit((unsigned char)*p))
				goto bad;
			last = strtol(p, &end, 10);
		}
		/* A list names processors or tasks: more than PID_MAX_LIMIT is a typing error. */
		if (first > last || last > INT_MAX || last - first > 1 << 22)
			goto bad;
		int *grown = realloc(*values, (*nr + last - first + 1) * sizeof(**values));

		if (!grown)
			goto bad;
		*values = grown;
		while (first <= last)
			(*values)[(*nr)++] = first++;
		if (!*end)
			return true;
		if (*end != ',')
			goto bad;
		p = end + 1;
	}
bad:
	free(*values);
	*values = NULL;
	*nr = 0;
	return false;
}
