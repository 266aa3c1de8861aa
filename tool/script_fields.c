// SPDX-License-Identifier: MIT
#include <string.h>

#include "tool/script.h"

#define WHERE (FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO)

/* Needs: the bits of sample_type without which there is nothing to show. */
static const struct {
	const char *name;
	enum field field;
	uint64_t needs;
} fields[] = {
	{"comm", FIELD_COMM, PERF_SAMPLE_TID},
	{"pid", FIELD_PID, PERF_SAMPLE_TID},
	{"tid", FIELD_TID, PERF_SAMPLE_TID},
	{"cpu", FIELD_CPU, PERF_SAMPLE_CPU},
	{"time", FIELD_TIME, PERF_SAMPLE_TIME},
	{"period", FIELD_PERIOD, 0},
	{"event", FIELD_EVENT, 0},
	{"trace", FIELD_TRACE, PERF_SAMPLE_RAW},
	{"addr", FIELD_ADDR, PERF_SAMPLE_ADDR},
	{"weight", FIELD_WEIGHT, PERF_SAMPLE_WEIGHT_TYPE},
	{"phys_addr", FIELD_PHYS_ADDR, PERF_SAMPLE_PHYS_ADDR},
	{"ip", FIELD_IP, PERF_SAMPLE_IP},
	{"sym", FIELD_SYM, PERF_SAMPLE_IP},
	{"symoff", FIELD_SYMOFF, PERF_SAMPLE_IP},
	{"dso", FIELD_DSO, PERF_SAMPLE_IP},
	{"srcline", FIELD_SRCLINE, PERF_SAMPLE_IP},
};

#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

bool fields_parse(struct field_change *change, const char *text, const char **bad,
		  size_t *bad_length)
{
	*change = (struct field_change){.replaces = *text != '+' && *text != '-'};
	for (const char *word = text;; word++) {
		bool remove = *word == '-';
		size_t length, i;

		word += *word == '+' || *word == '-';
		length = strcspn(word, ",");
		for (i = 0; i < NR_FIELDS; i++)
			if (strlen(fields[i].name) == length &&
			    !strncmp(fields[i].name, word, length))
				break;
		if (i == NR_FIELDS) {
			*bad = word;
			*bad_length = length;
			return false;
		}
		if (remove)
			change->remove |= fields[i].field;
		else
			change->add |= fields[i].field;
		word += length;
		if (!*word)
			return true;
	}
}

unsigned int fields_apply(const struct field_change *change, unsigned int set)
{
	return ((change->replaces ? 0 : set) | change->add) & ~change->remove;
}

unsigned int fields_recorded(const struct tally_perfdata_event *event)
{
	unsigned int set = 0;

	for (size_t i = 0; i < NR_FIELDS; i++)
		if (!fields[i].needs || (event->format.sample_type & fields[i].needs))
			set |= fields[i].field;
	if (event->attr->type != PERF_TYPE_TRACEPOINT)
		set &= ~FIELD_TRACE;
	return set;
}

unsigned int fields_default(const struct tally_perfdata_event *event)
{
	unsigned int set = FIELD_COMM | FIELD_TID | FIELD_CPU | FIELD_TIME | FIELD_EVENT;

	if (event->attr->type != PERF_TYPE_TRACEPOINT)
		set |= FIELD_PERIOD | WHERE;
	else
		set |= FIELD_TRACE;
	if (event->format.sample_type & PERF_SAMPLE_CALLCHAIN)
		set |= WHERE;
	return set & fields_recorded(event);
}
