/* SPDX-License-Identifier: MIT */
/*
 * A recording being looked at: what report and script share.
 *
 * The file is read twice. The first pass takes in what was mapped where and when, and passes over
 * the samples; the second hands out the samples, each of which can then be resolved at once, in
 * whatever order it comes. A pipe is first copied to a temporary file, unless it is followed: then
 * all records are taken in and handed out as they come, in the order of time.
 */
#ifndef TOOL_SESSION_H
#define TOOL_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/perfdata.h>
#include <tally/symbol.h>

#include "tool/cgroups.h"
#include "tool/command.h"
#include "tool/filter.h"
#include "tool/places.h"

struct session_options {
	const char *input; /* NULL: perf.data */
	struct filter filter;
	struct tally_symbols_options symbols;
	unsigned int max_stack; /* 0: 127 */
	bool no_inline;
	bool ordered; /* hand out in time order */
	bool others;  /* hand out other records than samples, too */
	bool follow;  /* a pipe, while it is written: needs @ordered; there are no totals */
};

struct session_totals {
	uint64_t samples;     /* in the file, before filters */
	uint64_t lost;	      /* that the kernel says it lost */
	uint64_t throttled;   /* THROTTLE records */
	uint64_t traces;      /* AUXTRACE records: pieces of what a unit that traces has written */
	uint64_t first, last; /* times of samples, when timed */
	bool timed;
};

struct session {
	const struct session_options *options;
	struct filter filter;
	struct tally_perfdata *reader;
	struct tally_symbols *symbols;
	struct tally_machine *machine;
	struct places *places;
	struct cgroups *cgroups;
	struct session_totals totals;
	/* What was wrong with the file, when code is not 0: it is read up to there. */
	struct tally_error damage;
	bool follows; /* a pipe */
	struct session_state *state;
};

/* One sample, or with options->others any record. Valid until the next session_next(). */
struct session_item {
	const struct tally_record *record;
	bool is_sample; /* what follows is of samples alone, but for pid, tid and time */
	size_t event;	/* SIZE_MAX: of none */
	uint32_t pid, tid;
	uint64_t time; /* nanoseconds, or the place in the file when the recording has no times */
	uint64_t period;
	uint32_t space;
	const char *comm; /* of the task that the record is about */
};

/*
 * Opens and reads the side-band. On failure nothing is left to release. A file that is damaged past
 * its header opens, with session->damage filled in.
 */
int session_open(struct session *session, const struct session_options *options,
		 struct tally_error *err);
void session_close(struct session *session);

/* The next item that passes the filters: 1, 0 at the end or at the damage, negative errno. */
int session_next(struct session *session, struct session_item *item, struct tally_error *err);

/*
 * Replaces *@pid and *@tid, those of the task that wrote a record, by those of the task that it is
 * about where it says so.
 */
void session_subject(const struct tally_record *record, uint32_t *pid, uint32_t *tid);

/*
 * A sample's stack: its call chain, leaf first, with a PERF_CONTEXT_ marker before each part, or
 * its instruction pointer alone. With @self its own address comes first even when its chain begins
 * elsewhere (a recording of user chains only), else the chain is as it was recorded.
 * The words need no alignment: read them with tally_u64(). Valid until the next call.
 */
size_t session_stack(struct session *session, const struct session_item *item, bool self,
		     const uint64_t **words);

/*
 * The places of a stack, one for each word; a marker is kept as its low half, which no place has as
 * its number: session_is_marker().
 */
void session_resolve(struct session *session, const struct session_item *item,
		     const uint64_t *words, size_t nr, uint32_t *places);

static inline bool session_is_marker(uint32_t place)
{
	return place >= (uint32_t)PERF_CONTEXT_MAX;
}

/*
 * Whether a sample's own address lies in a file of --dso (when @dso) and in a function of --sym
 * (when @symbol).
 */
bool session_hit_passes(struct session *session, const struct session_item *item, bool dso,
			bool symbol);

/* Whether the events of @event have call chains, of either kind. */
bool session_event_has_chain(const struct session *session, size_t event);

/* Ends the report of a damaged file: says what was wrong; TOOL_OK when nothing was. */
int session_verdict(const struct session *session);

/* The rows of the options that session_option() handles, for a command's table. */
enum session_key {
	SESSION_COMM = 0x1000,
	SESSION_DSO,
	SESSION_SYMBOL,
	SESSION_PID,
	SESSION_TID,
	SESSION_TIME,
	SESSION_MAX_STACK,
	SESSION_NO_INLINE,
	SESSION_NO_DEMANGLE,
	SESSION_NO_DEBUGINFOD,
	SESSION_SYMFS,
	SESSION_KALLSYMS,
	SESSION_VMLINUX,
};

#define SESSION_OPTIONS                                                                              \
	{                                                                                            \
		'i',   "input", TOOL_FILE,                                                           \
		false, "FILE",	"the recording (perf.data); - is standard input"},                   \
		{SESSION_COMM, "comm", TOOL_TEXT, false, "NAMES", "only samples of these commands"}, \
		{SESSION_PID, "pid", TOOL_PID, false, "PIDS", "only samples of these processes"},    \
		{SESSION_TID, "tid", TOOL_TID, false, "TIDS", "only samples of these threads"},      \
		{'C', "cpu", TOOL_CPUS, false, "CPUS", "only samples on these processors: 0,2-3"},   \
		{SESSION_TIME, "time",                                                               \
		 TOOL_TEXT,    false,                                                                \
		 "FROM,TO",    "only samples of this time: 12.5,13 in seconds, or 10%-20%"},         \
		{SESSION_DSO, "dso", TOOL_TEXT, false, "NAMES", "only what lies in these files"},    \
		{SESSION_SYMBOL, "sym", TOOL_TEXT, false, "NAMES", "only these functions"},          \
		{SESSION_MAX_STACK,	      "max-stack", TOOL_NUMBER, false, "N",                  \
		 "cut call chains to N (127)"},                                                      \
		{SESSION_NO_INLINE,	     "no-inline", TOOL_NONE, false, NULL,                    \
		 "do not show inlined calls"},                                                       \
		{SESSION_NO_DEMANGLE,		"no-demangle", TOOL_NONE, false, NULL,               \
		 "names as the linker has them"},                                                    \
		{SESSION_NO_DEBUGINFOD,                                                              \
		 "no-debuginfod",                                                                    \
		 TOOL_NONE,                                                                          \
		 false,                                                                              \
		 NULL,                                                                               \
		 "ask no server for debug information"},                                             \
		{SESSION_SYMFS, "symfs", TOOL_FILE,                                                  \
		 false,		"DIR",	 "look for files with symbols under DIR"},                   \
		{SESSION_KALLSYMS, "kallsyms",                                                       \
		 TOOL_FILE,	   false,                                                            \
		 "FILE",	   "kernel symbols of another boot"},                                \
	{                                                                                            \
		'k', "vmlinux", TOOL_FILE, false, "FILE", "the kernel's image"                       \
	}

/* 1 when @key was one of them and is dealt with, 0 when not, -1 when its argument is wrong. */
int session_option(struct session_options *options, const struct tool_command *command, int key,
		   const char *argument);

#endif
