/* SPDX-License-Identifier: MIT */
/* Which samples of a recording are looked at: the filters that report and script have in common. */
#ifndef TOOL_FILTER_H
#define TOOL_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/symbol.h>

#define UNKNOWN "[unknown]" /* the name of a file or function that nothing is known of */

/* A list of words as typed: "a,b". Starts zeroed; empty means that everything passes. */
struct words {
	char *text; /* the words, each terminated */
	const char **items;
	size_t nr;
};

struct filter {
	struct words comms, dsos, symbols;
	int *pids, *tids, *cpus;
	size_t nr_pids, nr_tids, nr_cpus;
	/* As typed; filter_resolve_time() makes nanoseconds of it. */
	const char *time;
	uint64_t start, end; /* both inclusive */
};

void words_parse(struct words *words, const char *text);
bool words_have(const struct words *words, const char *word);
void words_free(struct words *words);

/*
 * Turns filter->time into start and end: "10.5,12" in seconds (either side may be empty), or
 * "10%-20%" of the span from @first to @last. NULL is everything. False when it is neither.
 */
bool filter_resolve_time(struct filter *filter, uint64_t first, uint64_t last);

/* Whether @id is in the list; an empty one has everything. */
bool filter_has_id(const int *ids, size_t nr, uint32_t id);

/* Whether --dso names @dso, by its path or by the last part of it. */
bool filter_has_dso(const struct filter *filter, const struct tally_dso *dso);

void filter_free(struct filter *filter);

#endif
