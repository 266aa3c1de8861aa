// SPDX-License-Identifier: MIT
#include "tool/user_mode.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tally/attr.h>
#include <tally/counter.h>
#include <tally/probe.h>

#include "tool/own_path.h"

/*
 * Set for who is started anew: where the run has no events, as its memory is limited, it is not to
 * start another one. It is gone before the command that is measured is started.
 */
static const char entered_name[] = "TALLY_ENTERED";

static bool has_entered(void)
{
	static bool known, entered;

	if (!known) {
		known = true;
		entered = getenv(entered_name);
		unsetenv(entered_name);
	}
	return entered;
}

/* In a run, where nobody asks for another one. */
static bool in_user_mode(void)
{
	return has_entered() || tally_user_mode();
}

static int take_option(enum tool_pmu *pmu, const struct tool_command *command, const char *argument)
{
	static const char *const words[] = {"auto", "kernel", "user"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(argument, words[i])) {
			*pmu = (enum tool_pmu)i;
			return TOOL_OK;
		}
	return tool_usage(command, "--pmu wants auto, kernel or user, not '%s'", argument);
}

/* Whether one of the events that @text names is of that unit. */
static bool names_unit(const char *text, const char *unit)
{
	for (const char *at = text; (at = strstr(at, unit)); at++)
		if (at == text || strchr(",{ ", at[-1]))
			return true;
	return false;
}

/* The PMU of a run has events that no other has, and its name in sysfs where there is none here. */
static const char *own_unit(const char *text)
{
	if (names_unit(text, "tally::"))
		return "tally:: is the PMU of user mode";
	if (names_unit(text, "cpu/") && access("/sys/bus/event_source/devices/cpu", F_OK))
		return "this machine has no unit 'cpu'";
	if ((names_unit(text, "uprobe:") || names_unit(text, "uretprobe:")) &&
	    access("/sys/bus/event_source/devices/uprobe", F_OK))
		return "this machine has no unit 'uprobe'";
	return NULL;
}

/* Probes of the kernel, tracepoints and the units of other hardware are the kernel's alone, as
 * is what counts its code only. */
static bool user_mode_has(const struct tally_event *event)
{
	const struct perf_event_attr *attr = event->attr;

	return !attr->exclude_user &&
	       (!strcmp(event->pmu, "uprobe") || attr->type == PERF_TYPE_SOFTWARE ||
		attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
		attr->type == PERF_TYPE_RAW || attr->type == PERF_TYPE_BREAKPOINT);
}

/* A right that is missing for the kernel's side alone narrows the event, as it does when it is
 * opened in earnest. */
static bool kernel_has(const struct tally_event *event, struct tally_error *why)
{
	struct perf_event_attr *attr = event->attr;
	const bool disabled = attr->disabled, all = !attr->exclude_kernel, hv = !attr->exclude_hv;
	struct tally_counter *counter;
	int code;

	attr->disabled = 1;
	code = tally_counter_open(attr, 0, -1, NULL, 0, &counter, why);
	if ((code == -EACCES || code == -EPERM) && all && !(event->flags & TALLY_EVENT_MODIFIED)) {
		attr->exclude_kernel = attr->exclude_hv = 1;
		code = tally_counter_open(attr, 0, -1, NULL, 0, &counter, why);
		attr->exclude_kernel = 0;
		attr->exclude_hv = !hv;
	}
	attr->disabled = disabled;
	tally_counter_close(counter);
	return !code;
}

/* By the event's name; who has the attr alone has numbers for a probe. */
static void call_by_name(struct tally_error *why, const struct tally_event *event)
{
	const struct tally_error by_attr = *why;
	const char *cause = strstr(by_attr.what, ": ");

	if (cause)
		snprintf(why->what, sizeof(why->what), "cannot open %.128s%s", event->name, cause);
}

bool tool_wants_user_mode(const struct tool_counting *counting, struct tally_events *events,
			  struct tally_error *why)
{
	if (counting->own) {
		snprintf(why->what, sizeof(why->what), "%s", counting->own);
		return true;
	}
	if (counting->pmu != TOOL_PMU_AUTO)
		return false;
	for (size_t i = 0; i < tally_events_count(events); i++) {
		const struct tally_event *event = tally_events_at(events, i);

		if (user_mode_has(event) && !kernel_has(event, why)) {
			call_by_name(why, event);
			return !in_user_mode();
		}
	}
	return false;
}

bool tool_is_modelled(const struct perf_event_attr *attr)
{
	const uint64_t access = PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16;
	const uint64_t loads = PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 | access;
	const uint64_t stores =
		PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_WRITE << 8 | access;

	if (attr->type == PERF_TYPE_HARDWARE)
		return attr->config != PERF_COUNT_HW_INSTRUCTIONS &&
		       attr->config != PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	return attr->type == PERF_TYPE_HW_CACHE && attr->config != loads && attr->config != stores;
}

/* The event of those from @from on that is modelled, or the end. */
static size_t next_modelled(struct tally_events *events, size_t from)
{
	const size_t nr = events ? tally_events_count(events) : 0;

	for (; from < nr; from++) {
		const struct perf_event_attr *attr = tally_events_at(events, from)->attr;

		if (tool_is_modelled(attr) && !attr->exclude_user)
			break;
	}
	return from;
}

static void say(const char *why, struct tally_events *events)
{
	const size_t nr = events ? tally_events_count(events) : 0;
	const size_t first = next_modelled(events, 0);

	fprintf(stderr, "tally: %s: user mode counts (tally run)", why);
	for (size_t i = first, next; i < nr; i = next) {
		next = next_modelled(events, i + 1);
		fprintf(stderr, "%s%s",
			i == first  ? ", slowly for "
			: next < nr ? ", "
				    : " and ",
			tally_events_at(events, i)->name);
	}
	if (first < nr)
		fputs("; -e instructions,branches is quick", stderr);
	fputc('\n', stderr);
}

/* What the kernel allows everybody here is allowed in the run, too, which by itself is as strict
 * as most kernels are. */
static bool is_less_strict(char option[32])
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level;
	const bool known = file && fscanf(file, "%d", &level) == 1;

	if (file)
		fclose(file);
	if (!known || level >= 2)
		return false;
	snprintf(option, 32, "--paranoid=%d", level < -1 ? -1 : level);
	return true;
}

int tool_enter_user_mode(const struct tool_counting *counting, const char *why,
			 struct tally_events *events)
{
	static char run[] = "run", end[] = "--", all[] = "--max-sample-rate=1000000000";
	const size_t argc = (size_t)counting->argc;
	char **words = calloc(argc + 7, sizeof(*words)), **word = words;
	char path[PATH_MAX], paranoid[32];

	if (!words || !tool_own_path(path)) {
		free(words);
		return tool_fail("cannot go on in user mode: %s",
				 words ? "/proc is not mounted" : "out of memory");
	}
	*word++ = path;
	*word++ = run;
	if (is_less_strict(paranoid))
		*word++ = paranoid;
	/* The kernel's limit is for the good of the machine. Here it would leave out most of a
	 * short program's samples, and others each time. */
	if (counting->has_period)
		*word++ = all;
	*word++ = end;
	*word++ = path;
	/* As they were typed, since recordings tell. */
	memcpy(word, counting->argv, argc * sizeof(*words));
	if (why)
		say(why, events);
	fflush(NULL);
	setenv(entered_name, "1", 1);
	execv(path, words);
	unsetenv(entered_name);
	free(words);
	return tool_fail("cannot go on in user mode: %s", strerror(errno));
}

/* Descriptors with which a run, and what measures in it, have enough for a few events. */
enum { FEW_DESCRIPTORS = 32 };

static bool is_limited(int resource, rlim_t enough)
{
	struct rlimit limit;

	return !getrlimit(resource, &limit) && limit.rlim_cur < enough;
}

/* The arena of the run could not be made, or not be reached from here: what most likely is why. */
static int no_events_here(void)
{
	int fd = memfd_create("tally", MFD_CLOEXEC), code = errno;

	if (fd >= 0)
		close(fd);
	if (is_limited(RLIMIT_NOFILE, FEW_DESCRIPTORS))
		return tool_fail("user mode has too few descriptors for events: raise the limit on "
				 "open files (ulimit -n) to %d or more",
				 2 * FEW_DESCRIPTORS);
	if (fd < 0)
		return tool_fail("user mode cannot have events here: memfd_create: %s",
				 strerror(code));
	return tool_fail(
		"user mode has no room here for events: most likely a limit on memory (ulimit -v) or on "
		"the size of files (ulimit -f) is too low; it wants 2 GB of both, and uses little of it");
}

int tool_choose_counting(struct tool_counting *counting, const struct tool_command *command,
			 int argc, char **argv, int key)
{
	struct tool_parse parse = {.command = command, .argc = argc, .argv = argv};
	const char *own = NULL;
	int found, status = TOOL_OK;

	*counting = (struct tool_counting){.argc = argc, .argv = argv};
	has_entered();
	while (status == TOOL_OK && (found = tool_next_option(&parse)) > 0)
		if (found == key)
			status = take_option(&counting->pmu, command, parse.argument);
		else if (found == 'e') {
			own = own ? own : own_unit(parse.argument);
			counting->has_period |= strstr(parse.argument, "period=") != NULL;
		} else if (found == 'c')
			counting->has_period = true;
	if (status != TOOL_OK) {
		tool_end_options(&parse);
		return status;
	}
	if (found < 0)
		return found;
	if (has_entered() && !tally_user_mode())
		return no_events_here();
	if (counting->pmu == TOOL_PMU_AUTO && parse.index < argc && !in_user_mode())
		counting->own = own;
	if (counting->pmu != TOOL_PMU_USER || in_user_mode())
		return TOOL_OK;
	if (parse.index >= argc)
		return tool_usage(command, "--pmu=user wants a command: what runs already is not "
					   "under tally run");
	return tool_enter_user_mode(counting, NULL, NULL);
}
