// SPDX-License-Identifier: MIT
#include "lib/counter/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tally/event.h>

#include "lib/error.h"

long tly_read_setting(const char *path, long absent)
{
	char text[32];
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n <= 0)
		return absent;
	text[n] = '\0';
	return strtol(text, NULL, 0);
}

void tly_refusal_detail(struct tly_refusal *refusal, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(refusal->detail, sizeof(refusal->detail), format, ap);
	va_end(ap);
}

static void write_event(const struct tly_refusal *refusal, char *buf, size_t size)
{
	if (refusal->name)
		snprintf(buf, size, "%s", refusal->name);
	else
		tally_event_name(&refusal->attr->attr, buf, size);
}

static void write_detail(const struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%s", refusal->detail);
}

static void write_pid(const struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%d", refusal->pid);
}

static void write_cpu(const struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%d", refusal->cpu);
}

static void write_type(const struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%u", refusal->attr->attr.type);
}

static void write_error(const struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%s", strerror(-refusal->code));
}

static void write_paranoid(const struct tly_refusal *refusal, char *buf, size_t size)
{
	(void)refusal;
	snprintf(buf, size, "%ld", tly_read_setting("/proc/sys/kernel/perf_event_paranoid", 2));
}

/* The program to which a capability would be given; its name alone when /proc does not tell. */
static void write_program(const struct tly_refusal *refusal, char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);

	(void)refusal;
	if (n > 0)
		buf[n] = '\0';
	else
		snprintf(buf, size, "%s", program_invocation_short_name);
}

static const struct {
	const char *key;
	void (*write)(const struct tly_refusal *refusal, char *buf, size_t size);
} placeholders[] = {
	{"{event}", write_event},	{"{detail}", write_detail},   {"{pid}", write_pid},
	{"{cpu}", write_cpu},		{"{type}", write_type},	      {"{error}", write_error},
	{"{paranoid}", write_paranoid}, {"{program}", write_program},
};

/* Returns how much of @text was a placeholder, 0 when it starts with none. */
static size_t expand_one(const struct tly_refusal *refusal, const char *text, char *buf,
			 size_t size)
{
	for (size_t i = 0; i < sizeof(placeholders) / sizeof(placeholders[0]); i++) {
		size_t length = strlen(placeholders[i].key);

		if (strncmp(text, placeholders[i].key, length))
			continue;
		placeholders[i].write(refusal, buf, size);
		return length;
	}
	return 0;
}

static void expand(const struct tly_refusal *refusal, const char *text, char *buf, size_t size)
{
	size_t used = 0;

	while (*text && used + 1 < size) {
		size_t length = 0;

		if (*text == '{')
			length = expand_one(refusal, text, buf + used, size - used);
		if (length)
			used += strlen(buf + used);
		else
			buf[used++] = *text;
		text += length ? length : 1;
	}
	buf[used] = '\0';
}

int tly_refusal_explain(struct tly_refusal *refusal, struct tally_error *err)
{
	const struct tly_cause *cause = tly_causes;
	char event[128], what[256], remedy[sizeof(err->remedy)];

	while ((cause->code && cause->code != refusal->code) || !cause->holds(refusal))
		cause++;
	write_event(refusal, event, sizeof(event));
	expand(refusal, cause->what, what, sizeof(what));
	expand(refusal, cause->remedy, remedy, sizeof(remedy));
	tly_error(err, refusal->code, "cannot open %s: %s", event, what);
	return tly_error_remedy(err, "%s", remedy);
}
