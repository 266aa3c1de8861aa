// SPDX-License-Identifier: MIT
#include "tool/nameless.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/memory.h"

#define MOST_LINES     5
#define LEAST_PER_CENT 1

void nameless_stack(struct nameless *nameless, uint64_t samples)
{
	nameless->stack++;
	nameless->weight = samples;
	nameless->samples += samples;
}

static void add(struct nameless *nameless, uint32_t number)
{
	struct nameless_dso *dso;

	/* Outside of all mappings there is no file that could name it. */
	if (!number)
		return;
	if (number >= nameless->nr) {
		nameless->dsos = tool_grow(nameless->dsos, &nameless->room, number + 1,
					   sizeof(*nameless->dsos));
		memset(nameless->dsos + nameless->nr, 0,
		       (number + 1 - nameless->nr) * sizeof(*nameless->dsos));
		nameless->nr = number + 1;
	}
	dso = &nameless->dsos[number];
	if (dso->stack == nameless->stack)
		return;
	dso->stack = nameless->stack;
	dso->samples += nameless->weight;
}

void nameless_function(struct nameless *nameless, uint32_t function)
{
	const struct function *f = places_function(nameless->places, function);

	if (f->nameless)
		add(nameless, f->dso);
}

void nameless_line(struct nameless *nameless, const struct frame *frame)
{
	nameless->lines = true;
	if (!frame->source)
		add(nameless, places_function(nameless->places, frame->function)->dso);
}

/* The dso with the most samples below those of @above, or 0. Equal ones follow by number. */
static uint32_t next_dso(const struct nameless *nameless, uint32_t above)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < nameless->nr; i++) {
		uint64_t samples = nameless->dsos[i].samples;

		if (above && (samples > nameless->dsos[above].samples ||
			      (samples == nameless->dsos[above].samples && i <= above)))
			continue;
		if (!best || samples > nameless->dsos[best].samples)
			best = i;
	}
	return best;
}

void nameless_tell(const struct nameless *nameless)
{
	const char *told = NULL;
	int lines = 0;

	for (uint32_t i = 0; lines < MOST_LINES && (i = next_dso(nameless, i));) {
		double percent = 100.0 * nameless->dsos[i].samples / nameless->samples;
		struct tally_dso *dso = places_dso(nameless->places, i);
		const char *problem = tally_dso_problem(dso);
		const char *remedy = tally_dso_remedy(dso), *what = "functions";
		const char *lack = "have no names";

		if (percent < LEAST_PER_CENT)
			return;
		if (!problem) {
			/* The kernel's lines, and those of code made at run time, nobody has. */
			if (!nameless->lines || *tally_dso_name(dso) != '/')
				continue;
			what = "source lines";
			lack = "are not known";
			problem = "there is no debug information for them";
			remedy = "compile it with -g, or install its -dbgsym or -debuginfo package";
		}
		/* Most often it is the same for all. */
		if (remedy && told && !strcmp(remedy, told))
			remedy = NULL;
		else if (remedy)
			told = remedy;
		fprintf(stderr, "tally: %s of %s %s in %.1f%% of the samples: %s%s%s%s\n", what,
			tally_dso_name(dso), lack, percent, problem, remedy ? " (" : "",
			remedy ? remedy : "", remedy ? ")" : "");
		lines++;
	}
}

void nameless_free(struct nameless *nameless)
{
	free(nameless->dsos);
}
