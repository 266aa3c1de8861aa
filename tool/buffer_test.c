// SPDX-License-Identifier: MIT
#include "tool/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const char *text_of(struct buffer *buffer)
{
	buffer_char(buffer, '\0');
	buffer->size--;
	return buffer->data;
}

static void test_numbers(void **state)
{
	struct buffer buffer = {.fd = -1};

	(void)state;
	buffer_decimal(&buffer, 0, 0, ' ');
	buffer_char(&buffer, ' ');
	buffer_decimal(&buffer, UINT64_MAX, 0, ' ');
	buffer_char(&buffer, '|');
	buffer_decimal(&buffer, 42, 5, ' ');
	buffer_char(&buffer, '|');
	buffer_decimal(&buffer, 42, 5, '0');
	buffer_char(&buffer, '|');
	buffer_decimal(&buffer, 123456, 3, ' ');
	buffer_char(&buffer, '|');
	buffer_hex(&buffer, UINT64_MAX, 0, ' ');
	buffer_char(&buffer, '|');
	buffer_hex(&buffer, 0xabc, 6, ' ');
	assert_string_equal(text_of(&buffer), "0 18446744073709551615|   42|00042|123456|"
					      "ffffffffffffffff|   abc");
	buffer_free(&buffer);
}

static void test_grouped(void **state)
{
	static const struct {
		uint64_t value;
		const char *text;
	} rows[] = {
		{0, "0"},
		{999, "999"},
		{1000, "1,000"},
		{1234567, "1,234,567"},
		{UINT64_MAX, "18,446,744,073,709,551,615"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buffer buffer = {.fd = -1};

		buffer_grouped(&buffer, rows[i].value);
		assert_string_equal(text_of(&buffer), rows[i].text);
		buffer_free(&buffer);
	}
}

static void test_percent(void **state)
{
	static const struct {
		uint64_t part, whole;
		const char *text;
	} rows[] = {
		{0, 0, "  0.00"},
		{1, 3, " 33.33"},
		{2, 3, " 66.67"},
		{7, 7, "100.00"},
		{UINT64_MAX, UINT64_MAX, "100.00"},
		{UINT64_MAX / 2, UINT64_MAX, " 50.00"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buffer buffer = {.fd = -1};

		buffer_percent(&buffer, rows[i].part, rows[i].whole, 6);
		assert_string_equal(text_of(&buffer), rows[i].text);
		buffer_free(&buffer);
	}
}

static void test_fields(void **state)
{
	struct buffer buffer = {.fd = -1};

	(void)state;
	buffer_field(&buffer, "ab", 4);
	buffer_char(&buffer, '|');
	buffer_field(&buffer, "ab", -4);
	buffer_char(&buffer, '|');
	buffer_field(&buffer, "abcdef", 4);
	buffer_printf(&buffer, "|%s-%d", "x", -7);
	assert_string_equal(text_of(&buffer), "ab  |  ab|abcdef|x--7");
	buffer_free(&buffer);
}

static void test_json(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"", "\"\""},
		{"a\"b\\c", "\"a\\\"b\\\\c\""},
		{"\n\t\x01", "\"\\n\\t\\u0001\""},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		 "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
		{"\xff", "\"\xef\xbf\xbd\""},
		{"\xc3", "\"\xef\xbf\xbd\""},
		{"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xed\xa0\x80x", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buffer buffer = {.fd = -1};

		buffer_json(&buffer, rows[i].in);
		assert_string_equal(text_of(&buffer), rows[i].out);
		buffer_free(&buffer);
	}
}

static void test_written_out(void **state)
{
	struct buffer buffer;
	char bytes[70000];
	size_t seen = 0;

	(void)state;
	buffer = (struct buffer){.fd = memfd_create("written", MFD_CLOEXEC)};
	assert_true(buffer.fd >= 0);
	for (int i = 0; i < 60000; i++)
		buffer_text(&buffer, "0123456789");
	assert_int_equal(buffer_flush(&buffer), 0);
	for (ssize_t n; (n = pread(buffer.fd, bytes, sizeof(bytes), seen)) > 0; seen += n)
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(bytes[i], '0' + (seen + i) % 10);
	assert_int_equal(seen, 600000);
	close(buffer.fd);
	buffer_free(&buffer);
}

static void test_first_error_is_kept(void **state)
{
	int fd = open("/dev/full", O_WRONLY);
	struct buffer buffer = {.fd = fd};

	(void)state;
	if (fd < 0)
		skip();
	for (int i = 0; i < 1000000; i++)
		buffer_char(&buffer, 'x');
	assert_int_equal(buffer_flush(&buffer), -ENOSPC);
	assert_true(buffer.room < 1000000);
	close(fd);
	buffer_free(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_grouped),
		cmocka_unit_test(test_percent),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_written_out),
		cmocka_unit_test(test_first_error_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
