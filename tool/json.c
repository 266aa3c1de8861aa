// SPDX-License-Identifier: MIT
#include "tool/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

void tool_json_start(struct tool_json *json, FILE *out, bool pretty)
{
	*json = (struct tool_json){.out = out, .pretty = pretty, .first = true};
}

void tool_json_finish(struct tool_json *json)
{
	assert(!json->depth);
	fputc('\n', json->out);
}

static void new_line(struct tool_json *json)
{
	if (json->pretty)
		fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

/*
 * Length of the well-formed UTF-8 sequence at @s, or 0: neither overlong forms nor surrogates nor
 * what lies above U+10FFFF.
 */
static size_t utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char first_low, first_high, second_low, second_high;
		size_t length;
	} forms[] = {
		{0x00, 0x7f, 0, 0, 1},	     {0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (s[0] < forms[i].first_low || s[0] > forms[i].first_high)
			continue;
		if (forms[i].length > 1 &&
		    (s[1] < forms[i].second_low || s[1] > forms[i].second_high))
			return 0;
		for (size_t n = 2; n < forms[i].length; n++)
			if (s[n] < 0x80 || s[n] > 0xbf)
				return 0;
		return forms[i].length;
	}
	return 0;
}

static void quote(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', out);
	while (*s) {
		size_t length = utf8_length(s);

		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s == '\n')
			fputs("\\n", out);
		else if (*s == '\t')
			fputs("\\t", out);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(out, "\\u%04x", *s);
		else if (!length)
			fputs("\\ufffd", out);
		else
			fwrite(s, 1, length, out);
		s += length ? length : 1;
	}
	fputc('"', out);
}

/* What stands before every value: the comma, the line and the key. */
static void lead_in(struct tool_json *json, const char *key)
{
	if (!json->first)
		fputs(json->pretty || !json->depth ? "," : ", ", json->out);
	if (json->depth)
		new_line(json);
	json->first = false;
	if (key) {
		quote(json->out, key);
		fputs(": ", json->out);
	}
}

static void open_level(struct tool_json *json, const char *key, char opening, char closing)
{
	lead_in(json, key);
	assert(json->depth < TOOL_JSON_DEPTH);
	fputc(opening, json->out);
	json->closing[json->depth++] = closing;
	json->first = true;
}

void tool_json_object(struct tool_json *json, const char *key)
{
	open_level(json, key, '{', '}');
}

void tool_json_array(struct tool_json *json, const char *key)
{
	open_level(json, key, '[', ']');
}

void tool_json_end(struct tool_json *json)
{
	assert(json->depth > 0);
	char closing = json->closing[--json->depth];

	if (!json->first)
		new_line(json);
	fputc(closing, json->out);
	json->first = false;
}

void tool_json_text(struct tool_json *json, const char *key, const char *value)
{
	lead_in(json, key);
	if (value)
		quote(json->out, value);
	else
		fputs("null", json->out);
}

void tool_json_bool(struct tool_json *json, const char *key, bool value)
{
	lead_in(json, key);
	fputs(value ? "true" : "false", json->out);
}

void tool_json_int(struct tool_json *json, const char *key, int64_t value)
{
	lead_in(json, key);
	fprintf(json->out, "%" PRId64, value);
}

void tool_json_uint(struct tool_json *json, const char *key, uint64_t value)
{
	lead_in(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void tool_json_double(struct tool_json *json, const char *key, double value)
{
	if (!isfinite(value)) {
		tool_json_null(json, key);
		return;
	}
	lead_in(json, key);
	fprintf(json->out, "%.12g", value);
}

void tool_json_null(struct tool_json *json, const char *key)
{
	lead_in(json, key);
	fputs("null", json->out);
}
