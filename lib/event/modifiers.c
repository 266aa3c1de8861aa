// SPDX-License-Identifier: MIT
#include "lib/event/modifiers.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"

static const char modifier_letters[] = "ukhGHIpPSDeW";

static bool has(struct tly_span modifiers, char letter)
{
	return memchr(modifiers.at, letter, modifiers.length);
}

int tly_modifiers_parse(struct tly_parse *parse, const char **cursor, struct tly_span *span)
{
	unsigned int precise = 0;

	*span = (struct tly_span){.at = *cursor};
	for (; isalnum((unsigned char)**cursor); ++*cursor, span->length++) {
		char c = **cursor;

		if (!strchr(modifier_letters, c)) {
			tly_parse_error(parse, -EINVAL, *cursor, "'%c' is not a modifier", c);
			return tly_error_remedy(parse->err,
						"the modifiers are u k h (user, kernel, "
						"hypervisor), G H (guest, host), I (not idle), "
						"p pp ppp P (precise), S (leader samples), D "
						"(pinned), e (exclusive), W (weak group)");
		}
		if (c == 'p' ? ++precise > 3 : has(*span, c))
			return tly_parse_error(parse, -EINVAL, *cursor,
					       "modifier '%c' is given too often", c);
	}
	if (!span->length)
		return tly_parse_error(parse, -EINVAL, *cursor, "modifiers are missing after ':'");
	return 0;
}

size_t tly_modifiers_length(const char *text)
{
	return strspn(text, modifier_letters);
}

/*
 * u, k and h add to each other, within an event and from its group: the first of them excludes all
 * that was not named, the others let theirs in. So do G and H.
 */
int tly_modifiers_apply(struct tly_parse *parse, struct tly_event *event, struct tly_span modifiers)
{
	struct perf_event_attr *attr = &event->attr.attr;
	bool user = has(modifiers, 'u'), kernel = has(modifiers, 'k');
	bool hv = has(modifiers, 'h'), guest = has(modifiers, 'G'), host = has(modifiers, 'H');
	unsigned int precise = attr->precise_ip;

	if (user || kernel || hv) {
		if (!attr->exclude_user && !attr->exclude_kernel && !attr->exclude_hv)
			attr->exclude_user = attr->exclude_kernel = attr->exclude_hv = 1;
		attr->exclude_user &= !user;
		attr->exclude_kernel &= !kernel;
		attr->exclude_hv &= !hv;
		event->event.flags |= TALLY_EVENT_MODIFIED;
	}
	if (guest || host) {
		if (!event->guest_host)
			attr->exclude_guest = attr->exclude_host = 1;
		attr->exclude_guest &= !guest;
		attr->exclude_host &= !host;
		event->guest_host = true;
		event->event.flags |= TALLY_EVENT_MODIFIED;
	}
	for (size_t i = 0; i < modifiers.length; i++)
		precise += modifiers.at[i] == 'p';
	if (precise > 3)
		return tly_parse_error(parse, -EINVAL, modifiers.at,
				       "'%s' gets more than three p modifiers with its group's",
				       event->event.name);
	attr->precise_ip = precise;
	attr->exclude_idle |= has(modifiers, 'I');
	if (has(modifiers, 'P'))
		event->event.flags |= TALLY_EVENT_PRECISE_MAX;
	if (has(modifiers, 'S'))
		event->event.flags |= TALLY_EVENT_LEADER_SAMPLING;
	if (has(modifiers, 'W'))
		event->event.flags |= TALLY_EVENT_WEAK;
	return 0;
}

void tly_modifiers_pin(struct tly_event *event, struct tly_span modifiers)
{
	event->attr.attr.pinned |= has(modifiers, 'D');
	event->attr.attr.exclusive |= has(modifiers, 'e');
}

int tly_modifiers_name(struct tly_parse *parse, struct tly_event *event, struct tly_span modifiers)
{
	const char *name = event->event.name, *own = name + strlen(name);
	char letters[sizeof(modifier_letters) + 2], *p = letters;
	bool separated;

	if (event->event.flags & TALLY_EVENT_NAMED)
		return 0;
	/* The event's own modifiers are the letters behind a last ':' or '/', if all are such. */
	while (own > name && strchr(modifier_letters, own[-1]))
		own--;
	separated = own > name && (own[-1] == '/' || (own[-1] == ':' && *own));
	if (!separated)
		*p++ = ':';
	for (size_t i = 0; i < modifiers.length; i++)
		if (strchr("ukhGHIpP", modifiers.at[i]) &&
		    (modifiers.at[i] == 'p' || !separated || !strchr(own, modifiers.at[i])))
			*p++ = modifiers.at[i];
	*p = '\0';
	if (!letters[!separated])
		return 0;

	char *text = NULL;

	if (asprintf(&text, "%s%s", name, letters) < 0)
		return tly_parse_no_memory(parse);
	event->event.name = tly_event_string(event, text, strlen(text));
	free(text);
	return event->event.name ? 0 : tly_parse_no_memory(parse);
}
