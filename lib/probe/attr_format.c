// SPDX-License-Identifier: MIT
#include <tally/attr.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "abi/attr.h"

struct text {
	char *buf;
	size_t size, length; /* length is what it would need */
};

static void __attribute__((format(printf, 2, 3))) append(struct text *text, const char *format, ...)
{
	size_t room = text->length < text->size ? text->size - text->length : 0;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(room ? text->buf + text->length : NULL, room, format, ap);
	va_end(ap);
	if (n > 0)
		text->length += n;
}

/* "IP|TID|TIME"; bits without a name as one number. */
static void append_mask(struct text *text, const char *mask, uint64_t value)
{
	const char *separator = "";

	for (size_t i = 0; i < tly_attr_nr_items; i++) {
		const struct tly_attr_item *bit = &tly_attr_items[i];

		if (!bit->of || strcmp(bit->of, mask) || !(value >> bit->shift & 1))
			continue;
		append(text, "%s%s", separator, bit->name);
		separator = "|";
		value &= ~(UINT64_C(1) << bit->shift);
	}
	if (value)
		append(text, "%s%#" PRIx64, separator, value);
}

static void append_value(struct text *text, const struct tly_attr_item *item, uint64_t value)
{
	switch ((enum tly_attr_style)item->style) {
	case TLY_ATTR_DECIMAL:
		append(text, "%" PRIu64, value);
		break;
	case TLY_ATTR_SIGNED:
		append(text, "%" PRId32, (int32_t)value);
		break;
	case TLY_ATTR_HEX:
		append(text, "%#" PRIx64, value);
		break;
	case TLY_ATTR_MASK:
		append_mask(text, item->name, value);
		break;
	}
}

int tally_attr_format(const struct perf_event_attr *attr, char *buf, size_t size)
{
	struct text text = {buf, size, 0};

	if (size)
		buf[0] = '\0';
	for (size_t i = 0; i < tly_attr_nr_items; i++) {
		const struct tly_attr_item *item = &tly_attr_items[i];
		uint64_t value = tly_attr_get(attr, item);

		if (item->of || (!value && strcmp(item->name, "type")))
			continue;
		append(&text, "%s%s=", text.length ? " " : "", item->name);
		append_value(&text, item, value);
	}
	return (int)text.length;
}
