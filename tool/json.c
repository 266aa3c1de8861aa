// SPDX-License-Identifier: MIT
#include "tool/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "tool/buffer.h"

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

static void quote(FILE *out, const char *text)
{
	struct buffer quoted = {.fd = -1};

	buffer_json(&quoted, text);
	fwrite(quoted.data, 1, quoted.size, out);
	buffer_free(&quoted);
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
