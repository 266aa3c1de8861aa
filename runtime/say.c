// SPDX-License-Identifier: MIT
#include "runtime/say.h"

#include <asm/errno.h>
#include <stdarg.h>

#include "runtime/string.h"
#include "runtime/sys.h"

struct text {
	char *at, *end; /* @end is where the terminating zero can stand at the latest */
};

static void put(struct text *text, char c)
{
	if (text->at < text->end)
		*text->at++ = c;
}

static void put_string(struct text *text, const char *string)
{
	for (; *string; string++)
		put(text, *string);
}

static void put_number(struct text *text, uint64_t value, unsigned int base)
{
	char digits[20];
	unsigned int nr = 0;

	do {
		digits[nr++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (nr)
		put(text, digits[--nr]);
}

static void put_signed(struct text *text, int64_t value)
{
	if (value < 0)
		put(text, '-');
	put_number(text, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

static void put_format(struct text *text, const char *format, va_list ap)
{
	for (; *format; format++) {
		if (*format != '%') {
			put(text, *format);
			continue;
		}
		switch (*++format) {
		case 's':
			put_string(text, va_arg(ap, const char *));
			break;
		case 'd':
			put_signed(text, va_arg(ap, int64_t));
			break;
		case 'u':
			put_number(text, va_arg(ap, uint64_t), 10);
			break;
		case 'x':
			put_number(text, va_arg(ap, uint64_t), 16);
			break;
		case 'c':
			put(text, (char)va_arg(ap, int));
			break;
		default:
			put(text, *format);
		}
	}
	*text->at = '\0';
}

size_t format(char *to, size_t size, const char *format, ...)
{
	struct text text = {to, to + size - 1};
	va_list ap;

	va_start(ap, format);
	put_format(&text, format, ap);
	va_end(ap);
	return (size_t)(text.at - to);
}

static void say_line(const char *format, va_list ap)
{
	char line[1024];
	struct text text = {line, line + sizeof(line) - 2};

	put_string(&text, "tally: ");
	put_format(&text, format, ap);
	*text.at++ = '\n';
	sys(__NR_write, 2, line, text.at - line);
}

void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say_line(format, ap);
	va_end(ap);
}

_Noreturn void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say_line(format, ap);
	va_end(ap);
	for (;;)
		sys(__NR_exit_group, 127);
}

const char *error_text(int64_t error)
{
	static const struct {
		int error;
		const char *text;
	} texts[] = {
		{EPERM, "operation not permitted"},
		{ENOENT, "no such file or directory"},
		{EIO, "input/output error"},
		{E2BIG, "argument list too long"},
		{ENOEXEC, "not in a format that can be executed"},
		{EAGAIN, "resource temporarily unavailable"},
		{ENOMEM, "not enough memory"},
		{EACCES, "permission denied"},
		{EINVAL, "invalid argument"},
		{EMFILE, "too many open files"},
		{ETXTBSY, "it is open for writing"},
		{ENAMETOOLONG, "name too long"},
		{ENOTDIR, "not a directory"},
		{EISDIR, "it is a directory"},
		{ELOOP, "too many levels of symbolic links or interpreters"},
		{ELIBBAD, "its interpreter is damaged"},
	};
	static char number[32];

	if (error < 0)
		error = -error;
	for (unsigned int i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].error == error)
			return texts[i].text;
	format(number, sizeof(number), "error %d", error);
	return number;
}
