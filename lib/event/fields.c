// SPDX-License-Identifier: MIT
/*
 * A format file holds a line for each field,
 *
 *	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
 *
 * first those common to all events, then an empty line, then the event's own.
 */
#include "lib/event/fields.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/event/roots.h"
#include "lib/event/tracepoint.h"
#include "lib/readfile.h"

#define FORMAT_SIZE (64 << 10) /* the largest of Linux 6.18 has 12 KiB */
#define TYPE_SIZE   256

static bool is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Splits "char prev_comm[16]" into its name, within @declaration, and "char[16]" in @type. */
static const char *split(char *declaration, char type[TYPE_SIZE])
{
	char *end = declaration + strlen(declaration), *name;
	char *array = end > declaration && end[-1] == ']' ? strrchr(declaration, '[') : NULL;
	const char *suffix = array ? array : "";

	if (array)
		end = array;
	for (name = end; name > declaration && is_identifier(name[-1]); name--)
		;
	if (name == end)
		return NULL;

	char *type_end = name;

	while (type_end > declaration && isspace((unsigned char)type_end[-1]))
		type_end--;
	if (type_end == declaration)
		return NULL;
	if (snprintf(type, TYPE_SIZE, "%.*s%s", (int)(type_end - declaration), declaration,
		     suffix) >= TYPE_SIZE)
		return NULL;
	*end = '\0';
	return name;
}

/* "\tfield:...;\toffset:8;\tsize:16;\tsigned:0;" in place; a kernel may leave signed out. */
static bool parse_line(char *line, struct tally_tracepoint_field *field, char type[TYPE_SIZE])
{
	char *declaration = strstr(line, "field:"), *rest = strstr(line, ";\toffset:");
	unsigned int is_signed = 0;

	if (!declaration || !rest)
		return false;
	*rest++ = '\0';
	if (sscanf(rest, " offset:%u; size:%u; signed:%u;", &field->offset, &field->size,
		   &is_signed) < 2)
		return false;
	field->is_signed = is_signed;
	field->name = split(declaration + strlen("field:"), type);
	field->type = type;
	return field->name;
}

int tly_fields_parse(char *text,
		     int (*visit)(const struct tally_tracepoint_field *field, void *ctx), void *ctx)
{
	char *save = NULL;
	int ret = 0;

	for (char *line = strtok_r(text, "\n", &save); line && !ret;
	     line = strtok_r(NULL, "\n", &save)) {
		struct tally_tracepoint_field field;
		char type[TYPE_SIZE];

		if (strncmp(line, "\tfield:", strlen("\tfield:")))
			continue;
		if (!parse_line(line, &field, type))
			return -EINVAL;
		if (strncmp(field.name, "common_", strlen("common_")))
			ret = visit(&field, ctx);
	}
	return ret;
}

int tally_tracepoint_fields(const char *name,
			    int (*visit)(const struct tally_tracepoint_field *field, void *ctx),
			    void *ctx, struct tally_error *err)
{
	const struct tly_roots *roots = &tly_roots_default;
	char events[PATH_MAX], path[PATH_MAX + 2 * NAME_MAX];
	const char *colon = strchr(name, ':');
	char *text;
	ssize_t n;
	int ret;

	if (!colon || strchr(name, '/') || colon - name > NAME_MAX || strlen(colon) > NAME_MAX)
		return tly_error(err, -EINVAL, "'%s' is not the name of a tracepoint", name);
	if (tly_tracefs_events(roots, events, sizeof(events)))
		return tly_tracepoint_no_tracefs(err);
	snprintf(path, sizeof(path), "%s/%.*s/%s/format", events, (int)(colon - name), name,
		 colon + 1);
	text = malloc(FORMAT_SIZE);
	if (!text)
		return tly_error(err, -ENOMEM, "out of memory");
	n = tly_read_file(path, text, FORMAT_SIZE);
	if (n >= 0) {
		ret = tly_fields_parse(text, visit, ctx);
		if (ret == -EINVAL)
			tly_error(err, ret, "%s cannot be understood", path);
	} else if (n == -EACCES) {
		ret = tly_tracepoint_refused(err, events);
	} else {
		ret = tly_error(err, n, n == -ENOENT ? "no tracepoint '%s'" : "cannot read '%s'",
				name);
	}
	free(text);
	return ret;
}
