/* SPDX-License-Identifier: MIT */
/*
 * JSON written as it comes, without building it first.
 *
 *	tool_json_start(&json, stdout, true);
 *	tool_json_object(&json, NULL);
 *	tool_json_text(&json, "event", name);
 *	tool_json_end(&json);
 *	tool_json_finish(&json);
 *
 * In an object each value has a key, in an array (and at the top) the key is NULL.
 */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TOOL_JSON_DEPTH 16

struct tool_json {
	FILE *out;
	bool pretty; /* a line for each member; else all on one line */
	int depth;
	char closing[TOOL_JSON_DEPTH]; /* '}' or ']' of each open level */
	bool first;		       /* nothing on the current level yet */
};

void tool_json_start(struct tool_json *json, FILE *out, bool pretty);
/* Ends the line. Every object and array must have been closed. */
void tool_json_finish(struct tool_json *json);

void tool_json_object(struct tool_json *json, const char *key);
void tool_json_array(struct tool_json *json, const char *key);
void tool_json_end(struct tool_json *json);

/* NULL becomes null; bytes that are not UTF-8 become U+FFFD. */
void tool_json_text(struct tool_json *json, const char *key, const char *value);
void tool_json_bool(struct tool_json *json, const char *key, bool value);
void tool_json_int(struct tool_json *json, const char *key, int64_t value);
void tool_json_uint(struct tool_json *json, const char *key, uint64_t value);
/* What is not finite becomes null: JSON has no such numbers. */
void tool_json_double(struct tool_json *json, const char *key, double value);
void tool_json_null(struct tool_json *json, const char *key);

#endif
