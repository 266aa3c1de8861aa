// SPDX-License-Identifier: MIT
#include "lib/counter/refusal/refusal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tally/event.h>

#include "abi/attr.h"
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

uint64_t tly_refusal_get(const struct tly_refusal *refusal, const char *name)
{
	return tly_attr_get(&refusal->attr->attr, tly_attr_find(name, NULL));
}

bool tly_refusal_samples(const struct tly_refusal *refusal, uint64_t bits)
{
	return (tly_refusal_get(refusal, "sample_type") & bits) == bits;
}

bool tly_refusal_system_wide(const struct tly_refusal *refusal)
{
	return refusal->pid == -1 || (refusal->flags & PERF_FLAG_PID_CGROUP);
}

long tly_refusal_paranoid(void)
{
	return tly_read_setting("/proc/sys/kernel/perf_event_paranoid", 2);
}

bool tly_refusal_find_unit(struct tly_refusal *refusal)
{
	DIR *dir = opendir(TLY_UNITS);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		char path[sizeof(TLY_UNITS) + sizeof(entry->d_name) + 8];

		snprintf(path, sizeof(path), TLY_UNITS "/%s/type", entry->d_name);
		found = tly_read_setting(path, -1) == (long)refusal->attr->attr.type;
		tly_refusal_detail(refusal, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

bool tly_refusal_always(struct tly_refusal *refusal)
{
	(void)refusal;
	return true;
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
	snprintf(buf, size, "%ld", tly_refusal_paranoid());
}

/* How to come by CAP_PERFMON. Root without it is root of a container. */
static void write_right(const struct tly_refusal *refusal, char *buf, size_t size)
{
	char program[PATH_MAX];
	ssize_t n;

	(void)refusal;
	if (geteuid() == 0) {
		snprintf(buf, size,
			 "give this container the right: docker run --cap-add PERFMON, or measure "
			 "from outside of it");
		return;
	}
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (n > 0) {
		program[n] = '\0';
		snprintf(buf, size,
			 "run as root, or give the program the right: sudo setcap cap_perfmon+ep "
			 "%s",
			 program);
	} else {
		snprintf(buf, size, "run as root");
	}
}

static const struct {
	const char *key;
	void (*write)(const struct tly_refusal *refusal, char *buf, size_t size);
} placeholders[] = {
	{"{event}", write_event},	{"{detail}", write_detail}, {"{pid}", write_pid},
	{"{cpu}", write_cpu},		{"{type}", write_type},	    {"{error}", write_error},
	{"{paranoid}", write_paranoid}, {"{right}", write_right},
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

static const struct tly_cause *find_cause(struct tly_refusal *refusal)
{
	static const struct tly_cause *const tables[] = {tly_causes_of_call, tly_causes_of_attr,
							 tly_causes_of_target, tly_causes_of_rights,
							 tly_causes_of_event};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct tly_cause *c = tables[i]; c->holds; c++)
			if ((!c->code || c->code == refusal->code) && c->holds(refusal))
				return c;
	return NULL;
}

int tly_refusal_explain(struct tly_refusal *refusal, struct tally_error *err)
{
	const struct tly_cause *cause = find_cause(refusal);
	char event[128], what[256], remedy[sizeof(err->remedy)];

	write_event(refusal, event, sizeof(event));
	expand(refusal, cause->what, what, sizeof(what));
	expand(refusal, cause->remedy, remedy, sizeof(remedy));
	tly_error(err, refusal->code, "cannot open %s: %s", event, what);
	return tly_error_remedy(err, "%s", remedy);
}
