// SPDX-License-Identifier: MIT
#include <json.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/json.h"

struct sink {
	struct tool_json json;
	FILE *file;
	char *text;
	size_t size;
};

static void start(struct sink *sink, bool pretty)
{
	sink->text = NULL;
	sink->file = open_memstream(&sink->text, &sink->size);
	assert_non_null(sink->file);
	tool_json_start(&sink->json, sink->file, pretty);
}

static void finish(struct sink *sink)
{
	tool_json_finish(&sink->json);
	assert_int_equal(fclose(sink->file), 0);
}

static void everything(struct tool_json *json)
{
	tool_json_object(json, NULL);
	tool_json_text(json, "text", "a");
	tool_json_text(json, "none", NULL);
	tool_json_bool(json, "yes", true);
	tool_json_int(json, "low", INT64_MIN);
	tool_json_uint(json, "high", UINT64_MAX);
	tool_json_double(json, "half", 0.5);
	tool_json_double(json, "nan", NAN);
	tool_json_array(json, "list");
	tool_json_int(json, NULL, 1);
	tool_json_int(json, NULL, 2);
	tool_json_object(json, NULL);
	tool_json_end(json);
	tool_json_end(json);
	tool_json_array(json, "empty");
	tool_json_end(json);
	tool_json_end(json);
}

static void test_one_line(void **state)
{
	struct sink sink;

	(void)state;
	start(&sink, false);
	everything(&sink.json);
	finish(&sink);
	assert_string_equal(sink.text,
			    "{\"text\": \"a\", \"none\": null, \"yes\": true, "
			    "\"low\": -9223372036854775808, \"high\": 18446744073709551615, "
			    "\"half\": 0.5, \"nan\": null, \"list\": [1, 2, {}], \"empty\": []}\n");
	free(sink.text);
}

/* A second implementation reads what was written and finds the same. */
static void test_read_back(void **state)
{
	struct json_object *object, *list;
	struct sink sink;

	(void)state;
	start(&sink, true);
	everything(&sink.json);
	finish(&sink);
	object = json_tokener_parse(sink.text);
	assert_non_null(object);
	list = json_object_object_get(object, "list");
	assert_int_equal(json_object_array_length(list), 3);
	assert_int_equal(json_object_get_int(json_object_array_get_idx(list, 1)), 2);
	assert_true(json_object_get_uint64(json_object_object_get(object, "high")) == UINT64_MAX);
	assert_true(json_object_get_int64(json_object_object_get(object, "low")) == INT64_MIN);
	json_object_put(object);
	free(sink.text);
}

static void test_strings(void **state)
{
	static const struct {
		const char *text, *json;
	} rows[] = {
		{"", "\"\"\n"},
		{"\"\\\n\t\x01\x7f", "\"\\\"\\\\\\n\\t\\u0001\\u007f\"\n"},
		{"gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"\n"},
		{"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"\n"},
		{"a\xff"
		 "b",
		 "\"a\xef\xbf\xbd"
		 "b\"\n"},
		{"\xc3", "\"\xef\xbf\xbd\"\n"},					/* cut off */
		{"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"\n"},			/* overlong */
		{"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n"}, /* surrogate */
		{"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"\n"},
		{"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sink sink;

		start(&sink, false);
		tool_json_text(&sink.json, NULL, rows[i].text);
		finish(&sink);
		assert_string_equal(sink.text, rows[i].json);
		free(sink.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_line),
		cmocka_unit_test(test_read_back),
		cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
