// SPDX-License-Identifier: MIT
#include "tool/complete.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tally/event.h>

#include "tool/command.h"

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/*
 * The word being typed, and the part of it to complete: the argument in "--event=cycles", the last
 * item of a list.
 */
struct typed {
	const char *word, *part;
};

/* Offers the word with @candidate in place of the part, when it begins with that. */
static void offer(struct typed typed, const char *candidate, const char *desc)
{
	if (starts_with(candidate, typed.part))
		printf("%.*s%s\t%s\n", (int)(typed.part - typed.word), typed.word, candidate, desc);
}

/* Events */

/*
 * The last event of a list: behind the last ',' or brace that is not among the terms of a unit.
 * Slashes in the path of a uprobe enclose no terms.
 */
static const char *last_event(const char *typed)
{
	const char *event = typed;
	bool in_terms = false;

	for (const char *p = typed; *p; p++) {
		if (*p == '/' && !starts_with(event, "uprobe:") &&
		    !starts_with(event, "uretprobe:"))
			in_terms = !in_terms;
		else if (!in_terms && strchr(",{}", *p))
			event = p + 1;
	}
	return event;
}

struct offering {
	struct typed typed;
	char system[128]; /* the last system of tracepoints offered */
};

static int offer_event(const struct tally_event_info *info, void *ctx)
{
	struct offering *o = ctx;
	size_t length;

	/* Thousands of tracepoints: first their systems alone. */
	if (info->kind == TALLY_EVENT_TRACEPOINT && !strchr(o->typed.part, ':')) {
		length = strcspn(info->name, ":") + 1;
		if (length >= sizeof(o->system) || !strncmp(info->name, o->system, length))
			return 0;
		snprintf(o->system, sizeof(o->system), "%.*s", (int)length, info->name);
		offer(o->typed, o->system, "tracepoints");
		return 0;
	}
	offer(o->typed, info->name, info->desc);
	if (*info->alias)
		offer(o->typed, info->alias, info->desc);
	return 0;
}

static void complete_events(struct typed typed)
{
	/* What these go on with only the user knows. */
	static const char *const prefixes[][2] = {
		{"mem:", "hardware breakpoint at an address"},
		{"kprobe:", "entry of a kernel function"},
		{"kretprobe:", "return of a kernel function"},
		{"uprobe:", "entry of a function of a program or library"},
		{"uretprobe:", "return of a function of a program or library"},
	};
	struct offering o = {.typed = {typed.word, last_event(typed.part)}};

	puts(":nospace");
	tally_events_enumerate(1u << TALLY_EVENT_HARDWARE | 1u << TALLY_EVENT_SOFTWARE |
				       1u << TALLY_EVENT_CACHE | 1u << TALLY_EVENT_PMU |
				       1u << TALLY_EVENT_TRACEPOINT | 1u << TALLY_EVENT_VENDOR,
			       offer_event, &o, NULL);
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		offer(o.typed, prefixes[i][0], prefixes[i][1]);
}

/* Lists of numbers */

static void complete_tasks(struct typed typed)
{
	const char *comma = strrchr(typed.part, ',');
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (comma)
		typed.part = comma + 1;
	while (proc && (entry = readdir(proc))) {
		char path[300], comm[64] = "";
		FILE *file;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file))
			comm[strcspn(comm, "\n")] = '\0';
		fclose(file);
		offer(typed, entry->d_name, comm);
	}
	if (proc)
		closedir(proc);
}

static void complete_cpus(struct typed typed)
{
	long nr = sysconf(_SC_NPROCESSORS_CONF);
	const char *argument = typed.part;
	char number[24];

	/* Behind the last ',' or '-' of a list. */
	typed.part += strlen(typed.part);
	while (typed.part > argument && isdigit((unsigned char)typed.part[-1]))
		typed.part--;
	for (long cpu = 0; cpu < nr; cpu++) {
		snprintf(number, sizeof(number), "%ld", cpu);
		offer(typed, number, "processor");
	}
}

/* Words */

/* "fp|dwarf|none" */
static void complete_words(struct typed typed, const char *words)
{
	while (*words) {
		size_t length = strcspn(words, "|");
		char word[64];

		if (length < sizeof(word)) {
			snprintf(word, sizeof(word), "%.*s", (int)length, words);
			offer(typed, word, "");
		}
		words += length;
		words += *words == '|';
	}
}

static void complete_commands(struct typed typed)
{
	for (const struct tool_command **c = tool_commands; *c; c++)
		offer(typed, (*c)->name, (*c)->summary);
}

static void complete_options(const struct tool_command *command, struct typed typed)
{
	char text[80];

	for (const struct tool_option *o = command->options; o->key; o++) {
		if (o->name) {
			snprintf(text, sizeof(text), "--%s", o->name);
			offer(typed, text, o->help);
		}
		if (o->key < 256) {
			snprintf(text, sizeof(text), "-%c", o->key);
			offer(typed, text, o->help);
		}
	}
	offer(typed, "--help", "show the options");
}

static void complete_argument(const struct tool_option *option, struct typed typed)
{
	switch (option->argument) {
	case TOOL_EVENT:
		complete_events(typed);
		break;
	case TOOL_FILE:
		puts(":files");
		break;
	case TOOL_PID:
	case TOOL_TID:
		complete_tasks(typed);
		break;
	case TOOL_CPUS:
		complete_cpus(typed);
		break;
	case TOOL_WORD:
		complete_words(typed, option->metavar);
		break;
	case TOOL_NONE:
	case TOOL_CGROUP:
	case TOOL_NUMBER:
	case TOOL_TEXT:
		break;
	}
}

/* What a command's operands are stands in its usage. */
static void complete_operand(const struct tool_command *command, struct typed typed, int index)
{
	if (!strcmp(command->name, "help")) {
		complete_commands(typed);
	} else if (strstr(command->usage, "PATTERN")) {
		complete_words(typed, "hw|sw|cache|pmu|tracepoint|raw|mem|probe");
		complete_events(typed);
	} else if (strstr(command->usage, "COMMAND")) {
		printf(":command %d\n", index);
	} else if (strstr(command->usage, "FILE")) {
		puts(":files");
	}
}

/* The option of @word, "-ge" or "--event", when the word behind it is its argument. */
static const struct tool_option *wants_argument(const struct tool_command *command,
						const char *word)
{
	for (const struct tool_option *o = command->options; o->key; o++) {
		if (o->argument == TOOL_NONE || o->optional)
			continue;
		if (word[1] == '-' ? o->name && !strcmp(word + 2, o->name)
				   : o->key < 256 && word[strlen(word) - 1] == o->key)
			return o;
	}
	return NULL;
}

/* "--name=argument" */
static bool complete_joined(const struct tool_command *command, const char *word)
{
	const char *equals = strchr(word, '=');

	for (const struct tool_option *o = command->options; o->key && equals; o++)
		if (o->name && strlen(o->name) == (size_t)(equals - word - 2) &&
		    !strncmp(word + 2, o->name, equals - word - 2)) {
			complete_argument(o, (struct typed){word, equals + 1});
			return true;
		}
	return false;
}

static void complete_command_line(const struct tool_command *command, int argc, char **argv)
{
	struct typed typed = {argv[argc - 1], argv[argc - 1]};
	const struct tool_option *pending = NULL;
	int i;

	/* argv[0] is the command; options end at the first operand, as everywhere in the tool. */
	for (i = 1; i < argc - 1; i++) {
		if (pending) {
			pending = NULL;
			continue;
		}
		if (!strcmp(argv[i], "--")) {
			i++;
			complete_operand(command, typed, i);
			return;
		}
		if (argv[i][0] != '-' || !argv[i][1])
			break;
		pending = wants_argument(command, argv[i]);
	}
	if (pending)
		complete_argument(pending, typed);
	else if (i < argc - 1 || typed.word[0] != '-')
		complete_operand(command, typed, i);
	else if (!starts_with(typed.word, "--") || !complete_joined(command, typed.word))
		complete_options(command, typed);
}

int tool_complete(int argc, char **argv)
{
	if (argc && !strcmp(argv[0], "--")) {
		argc--;
		argv++;
	}
	if (argc < 1)
		return TOOL_USAGE;
	if (argc == 1) {
		complete_commands((struct typed){argv[0], argv[0]});
		return TOOL_OK;
	}
	for (const struct tool_command **c = tool_commands; *c; c++)
		if (!strcmp((*c)->name, argv[0]))
			complete_command_line(*c, argc, argv);
	return TOOL_OK;
}
