// SPDX-License-Identifier: MIT
#include "runtime/boot/handover.h"

#include <stdbool.h>
#include <stddef.h>

#include "abi/handover.h"

/* A number of at most @most and the comma behind it. */
static bool next_number(const char **text, uint64_t most, uint64_t *value)
{
	const char *at = *text;

	for (*value = 0; *at >= '0' && *at <= '9'; at++) {
		*value = *value * 10 + (uint64_t)(*at - '0');
		if (*value > most)
			return false;
	}
	if (at == *text || *at != ',')
		return false;
	*text = at + 1;
	return true;
}

/* -1, that there is none, is the only number below 0. */
static bool next_descriptor(const char **text, int *fd)
{
	const bool none = **text == '-';
	const char *at = *text + none;
	uint64_t value;

	if (!next_number(&at, none ? 1 : INT32_MAX, &value) || (none && value != 1))
		return false;
	*text = at;
	*fd = none ? -1 : (int)value;
	return true;
}

static bool read_rest(struct handover *handover, const char *text)
{
	struct descriptors *fds = &handover->descriptors;
	uint64_t owner, confined, fixed;

	if (!next_descriptor(&text, &fds->arena) || !next_descriptor(&text, &fds->monitor) ||
	    !next_descriptor(&text, &fds->runtime) || !next_descriptor(&text, &fds->program) ||
	    !next_number(&text, HANDOVER_PAGES + UINT32_MAX, &owner) || owner < HANDOVER_PAGES ||
	    !next_number(&text, 1, &confined) || !next_number(&text, 1, &fixed) || !*text)
		return false;
	handover->owner = (uint32_t)(owner - HANDOVER_PAGES);
	handover->confined = confined;
	handover->fixed = fixed;
	handover->filename = text;
	return true;
}

const char *handover_read(struct handover *handover, const char *text)
{
	uint64_t version;

	if (!text || !next_number(&text, UINT32_MAX, &version))
		return "tally-rt is started by tally: use 'tally run -- COMMAND'";
	if (version != HANDOVER_VERSION)
		return "tally and tally-rt are of different versions: install them together";
	if (!read_rest(handover, text))
		return "tally-rt is started by tally: use 'tally run -- COMMAND'";
	return NULL;
}
