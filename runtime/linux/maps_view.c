// SPDX-License-Identifier: MIT
/*
 * A mapping is held back until the next one is there, with which it may be one; and, in smaps,
 * until all of its fields are.
 */
#include "runtime/linux/maps_view.h"

#include <linux/mman.h>

#include "runtime/linux/memory.h"
#include "runtime/say.h"
#include "runtime/string.h"

/* ---- reading ---- */

static const char *read_hex(const char *at, uint64_t *value)
{
	const char *begin = at;

	*value = 0;
	for (;; at++)
		if (*at >= '0' && *at <= '9')
			*value = *value * 16 + (uint64_t)(*at - '0');
		else if (*at >= 'a' && *at <= 'f')
			*value = *value * 16 + (uint64_t)(*at - 'a' + 10);
		else
			return at > begin ? at : NULL;
}

static size_t word(const char *at)
{
	size_t length = 0;

	while (at[length] && at[length] != ' ')
		length++;
	return length;
}

/* "START-END rwxp OFFSET DEVICE INODE      NAME" */
static bool read_mapping(struct maps_mapping *mapping, const char *line)
{
	const char *at = read_hex(line, &mapping->start), *device, *inode;
	size_t length;

	if (!at || *at != '-')
		return false;
	at = read_hex(at + 1, &mapping->end);
	if (!at || *at != ' ' || word(at + 1) != 4)
		return false;
	memcpy(mapping->kernels, at + 1, 4);
	mapping->kernels[4] = '\0';
	at = read_hex(at + 6, &mapping->offset);
	if (!at || *at != ' ')
		return false;
	device = at + 1;
	inode = device + word(device) + 1;
	if (!inode[-1])
		return false;
	mapping->of_file = *inode != '0' || (inode[1] && inode[1] != ' ');
	length = (size_t)(inode - device) + word(inode);
	at = device + length;
	while (*at == ' ')
		at++;
	memcpy(mapping->text, device, length);
	mapping->text[length] = '\0';
	mapping->name = mapping->text + length + 1;
	memcpy(mapping->text + length + 1, at, strlen(at) + 1);
	mapping->nr_fields = 0;
	return true;
}

/* "KEY:     NUMBER kB", or anything. */
static bool read_field(struct maps_field *field, const char *line)
{
	const size_t length = strlen(line);
	size_t at = length, key = 0;

	if (length >= sizeof(field->text))
		return false;
	while (line[key] && line[key] != ':')
		key++;
	memcpy(field->text, line, length + 1);
	field->is_size = length > 3 && !strcmp(line + length - 3, " kB") && key < length - 3;
	if (!field->is_size)
		return true;
	field->size = 0;
	for (at = key + 1; line[at] == ' '; at++)
		;
	for (; line[at] >= '0' && line[at] <= '9'; at++)
		field->size = field->size * 10 + (uint64_t)(line[at] - '0');
	field->text[key + 1] = '\0';
	return at == length - 3;
}

/* ---- writing ---- */

static void put_text(const struct maps_view *view, const char *text)
{
	view->put(view->to, text, strlen(text));
}

static void put_padding(const struct maps_view *view, size_t from, size_t to)
{
	for (; from < to; from++)
		view->put(view->to, " ", 1);
}

/* As the kernel has them, eight digits at least. */
static size_t format_hex(char *to, uint64_t value)
{
	char digits[17];
	const size_t length = format(digits, sizeof(digits), "%x", value);
	const size_t zeros = length < 8 ? 8 - length : 0;

	memset(to, '0', zeros);
	memcpy(to + zeros, digits, length + 1);
	return zeros + length;
}

static void put_mapping(const struct maps_view *view, const struct maps_mapping *mapping)
{
	enum { NAME = 72 };
	char line[160];
	size_t length = format_hex(line, mapping->start);

	line[length++] = '-';
	length += format_hex(line + length, mapping->end);
	length += format(line + length, sizeof(line) - length, " %s ", mapping->perms);
	length += format_hex(line + length, mapping->offset);
	length += format(line + length, sizeof(line) - length, " %s ", mapping->text);
	put_text(view, line);
	if (*mapping->name) {
		put_padding(view, length, NAME);
		put_text(view, " ");
		put_text(view, mapping->name);
	}
	put_text(view, "\n");
}

static void put_field(const struct maps_view *view, const struct maps_field *field)
{
	/* Where a number begins at the earliest, and ends if it is short. */
	enum { NUMBER = 16, NUMBER_END = 24 };
	const size_t key = strlen(field->text), begin = key < NUMBER ? NUMBER : key + 1;
	char number[32];

	put_text(view, field->text);
	if (field->is_size) {
		put_padding(view, key, begin);
		put_padding(view, begin + format(number, sizeof(number), "%u", field->size),
			    NUMBER_END);
		put_text(view, number);
		put_text(view, " kB");
	}
	put_text(view, "\n");
}

static void put_shown(struct maps_view *view)
{
	const struct maps_mapping *shown = &view->shown;

	if (!view->has_shown)
		return;
	put_mapping(view, shown);
	for (size_t i = 0; i < shown->nr_fields; i++)
		put_field(view, &shown->fields[i]);
	view->has_shown = false;
}

/* ---- what is shown of a mapping ---- */

/* The first that ends behind @at. */
static const struct range *range_from(const struct maps_layout *layout, uint64_t at)
{
	size_t low = 0, high = layout->nr;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (layout->ranges[middle].end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low < layout->nr ? &layout->ranges[low] : NULL;
}

static void write_permissions(char perms[5], uint64_t prot, char shared)
{
	perms[0] = prot & PROT_READ ? 'r' : '-';
	perms[1] = prot & PROT_WRITE ? 'w' : '-';
	perms[2] = prot & PROT_EXEC ? 'x' : '-';
	perms[3] = shared;
	perms[4] = '\0';
}

/* What the kernel has otherwise than the program has asked for is the runtime's doing only where
 * it is what the runtime does. */
static void permissions_of(const struct maps_mapping *line, const struct range *range,
			   char perms[5])
{
	memcpy(perms, line->kernels, 5);
	if (!range)
		return;
	write_permissions(perms,
			  memory_readable(range->watched ? range->prot & ~PROT_WRITE : range->prot),
			  line->kernels[3]);
	if (!strcmp(perms, line->kernels))
		write_permissions(perms, range->prot, line->kernels[3]);
	else
		memcpy(perms, line->kernels, 5);
}

static const char *name_of(const struct maps_view *view, uint64_t start, uint64_t end)
{
	const struct maps_mapping *line = &view->line;
	const bool heap = start >= view->layout->heap_start && end <= view->layout->heap_end;

	if (line->of_file || (*line->name && strcmp(line->name, "[heap]")))
		return line->name;
	return heap ? "[heap]" : "";
}

static bool is_of_pages(const struct maps_field *field)
{
	return !strcmp(field->text, "KernelPageSize:") || !strcmp(field->text, "MMUPageSize:");
}

static const char flags_name[] = "VmFlags:";

/* "VmFlags: rd wr mr mw me" of what the program may do. */
static void change_flags(struct maps_field *field, const char perms[5])
{
	const char *rest = field->text + sizeof(flags_name) - 1;
	char text[sizeof(field->text)];

	while (!strncmp(rest, " rd", 3) || !strncmp(rest, " wr", 3) || !strncmp(rest, " ex", 3))
		rest += 3;
	format(text, sizeof(text), "%s%s%s%s%s", flags_name, perms[0] == 'r' ? " rd" : "",
	       perms[1] == 'w' ? " wr" : "", perms[2] == 'x' ? " ex" : "", rest);
	memcpy(field->text, text, sizeof(text));
}

/*
 * Of a mapping that is shown in pieces the first has all that the kernel has counted, so that sums
 * are right.
 */
static struct maps_field field_of(const struct maps_view *view, size_t i, uint64_t size,
				  const char perms[5])
{
	struct maps_field field = view->line.fields[i];

	if (!strcmp(field.text, "Size:"))
		field.size = size / 1024;
	else if (field.is_size && !is_of_pages(&field) && !view->is_first)
		field.size = 0;
	else if (!strncmp(field.text, flags_name, sizeof(flags_name) - 1) &&
		 strcmp(perms, view->line.kernels))
		change_flags(&field, perms);
	return field;
}

/* Whether that goes on with what is shown: of one mapping of the kernel's, or parted by
 * permissions that are the runtime's. */
static bool goes_on(const struct maps_view *view, uint64_t start, const char perms[5],
		    const char *name)
{
	const struct maps_mapping *shown = &view->shown, *line = &view->line;
	const uint64_t offset = line->offset + (start - line->start);

	return view->has_shown && shown->end == start && !strcmp(shown->perms, perms) &&
	       (!view->is_first || strcmp(shown->kernels, line->kernels)) &&
	       !strcmp(shown->text, line->text) && !strcmp(shown->name, name) &&
	       shown->nr_fields == line->nr_fields &&
	       (!line->of_file || shown->offset + (shown->end - shown->start) == offset);
}

static void show(struct maps_view *view, uint64_t start, uint64_t end, const struct range *range)
{
	struct maps_mapping *shown = &view->shown;
	const struct maps_mapping *line = &view->line;
	const char *name = name_of(view, start, end);
	char perms[5];

	permissions_of(line, range, perms);
	if (goes_on(view, start, perms, name)) {
		for (size_t i = 0; i < line->nr_fields; i++)
			if (line->fields[i].is_size && !is_of_pages(&line->fields[i]))
				shown->fields[i].size += field_of(view, i, end - start, perms).size;
	} else {
		put_shown(view);
		shown->start = start;
		shown->offset = line->offset + (line->of_file ? start - line->start : 0);
		shown->of_file = line->of_file;
		memcpy(shown->perms, perms, sizeof(perms));
		memcpy(shown->text, line->text, (size_t)(line->name - line->text));
		shown->name = shown->text + (line->name - line->text);
		memcpy(shown->text + (line->name - line->text), name, strlen(name) + 1);
		shown->nr_fields = line->nr_fields;
		for (size_t i = 0; i < line->nr_fields; i++)
			shown->fields[i] = field_of(view, i, end - start, perms);
		view->has_shown = true;
	}
	shown->end = end;
	memcpy(shown->kernels, line->kernels, sizeof(shown->kernels));
	view->is_first = false;
}

static uint64_t before(uint64_t end, uint64_t at, uint64_t border)
{
	return at < border && border < end ? border : end;
}

static void show_line(struct maps_view *view)
{
	const struct maps_layout *layout = view->layout;
	const struct range *range;
	uint64_t end;

	if (!view->has_line)
		return;
	view->has_line = false;
	view->is_first = true;
	for (uint64_t at = view->line.start; at < view->line.end; at = end) {
		range = range_from(layout, at);
		end = before(view->line.end, at, layout->heap_start);
		end = before(end, at, layout->heap_end);
		if (range)
			end = before(before(end, at, range->start), at, range->end);
		if (range && range->start > at)
			range = NULL;
		if (!range || range->kind != RANGE_OWN)
			show(view, at, end, range);
	}
}

static bool is_own(const struct maps_layout *layout, uint64_t at)
{
	const struct range *range = range_from(layout, at);

	return range && range->start <= at && range->kind == RANGE_OWN;
}

/* "ADDRESS POLICY KEY=VALUE..." of numa_maps */
static void show_policy(const struct maps_view *view, uint64_t at, const char *line)
{
	if (is_own(view->layout, at))
		return;
	put_text(view, line);
	put_text(view, "\n");
}

bool maps_view_hides(const char *name, const void *layout)
{
	uint64_t at;

	return read_hex(name, &at) && is_own(layout, at);
}

void maps_view_begin(struct maps_view *view, const struct maps_layout *layout,
		     void (*put)(void *to, const char *text, size_t size), void *to)
{
	view->layout = layout;
	view->put = put;
	view->to = to;
	view->has_line = view->has_shown = false;
}

bool maps_view_line(struct maps_view *view, const char *line)
{
	struct maps_mapping *mapping = &view->line;
	uint64_t address;
	const char *at = read_hex(line, &address);

	if (at && *at == '-') {
		show_line(view);
		view->has_line = read_mapping(mapping, line);
		return view->has_line;
	}
	if (!view->has_line) {
		if (at && *at == ' ')
			show_policy(view, address, line);
		return at && *at == ' ';
	}
	return mapping->nr_fields < MAPS_FIELDS &&
	       read_field(&mapping->fields[mapping->nr_fields++], line);
}

void maps_view_end(struct maps_view *view)
{
	show_line(view);
	put_shown(view);
}
