// SPDX-License-Identifier: MIT
#include "lib/event/breakpoint.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"

/* perf's: a word of the machine for code, four bytes for data. */
#define DEFAULT_CODE_LENGTH sizeof(long)
#define DEFAULT_DATA_LENGTH 4

static struct tly_span take_number(const char **cursor)
{
	struct tly_span span = {.at = *cursor};

	while (isalnum((unsigned char)**cursor))
		++*cursor;
	span.length = *cursor - span.at;
	return span;
}

static const struct {
	char letter;
	unsigned int type;
} accesses[] = {{'r', HW_BREAKPOINT_R}, {'w', HW_BREAKPOINT_W}, {'x', HW_BREAKPOINT_X}};

/* Whether ":..." is an access and not modifiers; none of their letters is among r, w, x. */
static bool is_access(const char *p)
{
	return *p == 'r' || *p == 'w' || *p == 'x';
}

static int parse_access(struct tly_parse *parse, const char **cursor, unsigned int *type)
{
	*type = 0;
	for (; isalpha((unsigned char)**cursor); ++*cursor) {
		unsigned int bit = 0;

		for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++)
			if (**cursor == accesses[i].letter)
				bit = accesses[i].type;
		if (!bit || *type & bit) {
			tly_parse_error(parse, -EINVAL, *cursor,
					"'%c' is not an access of a breakpoint, or is given twice",
					**cursor);
			return tly_error_remedy(parse->err, "r, w and x, each once: mem:0x1000:rw");
		}
		*type |= bit;
	}
	return 0;
}

int tly_breakpoint_add(struct tly_parse *parse, const char **cursor)
{
	unsigned int type = HW_BREAKPOINT_RW;
	uint64_t address, length = 0;
	struct tly_event *event;
	struct tly_span span;
	int ret;

	span = take_number(cursor);
	if (!tly_number(span, &address)) {
		tly_parse_error(parse, -EINVAL, span.at, "'%.*s' is not an address",
				TLY_SPAN(span));
		return tly_error_remedy(parse->err, "mem:ADDRESS[/LENGTH][:rwx], as in "
						    "mem:0x7ffd1000/8:w");
	}
	if (**cursor == '/') {
		++*cursor;
		span = take_number(cursor);
		if (!tly_number(span, &length) || !length) {
			tly_parse_error(parse, -EINVAL, span.at,
					"'%.*s' is not the length of a breakpoint", TLY_SPAN(span));
			return tly_error_remedy(parse->err, "bytes to watch: 1, 2, 4 or 8");
		}
	}
	if (**cursor == ':' && is_access(*cursor + 1)) {
		++*cursor;
		ret = parse_access(parse, cursor, &type);
		if (ret)
			return ret;
	}
	if (!length)
		length = type == HW_BREAKPOINT_X ? DEFAULT_CODE_LENGTH : DEFAULT_DATA_LENGTH;
	event = tly_parse_add(parse, PERF_TYPE_BREAKPOINT, 0, tly_span_of(""));
	if (!event)
		return tly_parse_no_memory(parse);
	event->attr.attr.bp_type = type;
	event->attr.attr.bp_addr = address;
	event->attr.attr.bp_len = length;
	return 0;
}

int tly_breakpoint_name(const struct perf_event_attr *attr, char *buf, size_t size)
{
	char access[4], *p = access;

	for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++)
		if (attr->bp_type & accesses[i].type)
			*p++ = accesses[i].letter;
	*p = '\0';
	return snprintf(buf, size, "mem:0x%" PRIx64 "/%" PRIu64 "%s%s", (uint64_t)attr->bp_addr,
			(uint64_t)attr->bp_len, *access ? ":" : "", access);
}
