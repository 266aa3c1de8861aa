// SPDX-License-Identifier: MIT
#include "lib/probe/refusal/refusal.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tally/event.h>

#include "abi/attr.h"
#include "lib/error.h"
#include "lib/probe/system.h"
#include "lib/readfile.h"

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

const struct tally_system *tly_refusal_system(struct tly_refusal *refusal)
{
	if (!refusal->system) {
		tly_system_facts(&refusal->facts);
		refusal->system = &refusal->facts;
	}
	return refusal->system;
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

static void write_event(struct tly_refusal *refusal, char *buf, size_t size)
{
	if (refusal->name)
		snprintf(buf, size, "%s", refusal->name);
	else
		tally_event_name(&refusal->attr->attr, buf, size);
}

static void write_detail(struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%s", refusal->detail);
}

static void write_pid(struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%d", refusal->pid);
}

static void write_cpu(struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%d", refusal->cpu);
}

static void write_type(struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%u", refusal->attr->attr.type);
}

static void write_error(struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%s", strerror(-refusal->code));
}

static void write_paranoid(struct tly_refusal *refusal, char *buf, size_t size)
{
	snprintf(buf, size, "%d", tly_refusal_system(refusal)->paranoid);
}

static const struct {
	const char *key;
	void (*write)(struct tly_refusal *refusal, char *buf, size_t size);
} placeholders[] = {
	{"{event}", write_event},
	{"{detail}", write_detail},
	{"{pid}", write_pid},
	{"{cpu}", write_cpu},
	{"{type}", write_type},
	{"{error}", write_error},
	{"{paranoid}", write_paranoid},
	{"{perfmon}", tly_write_perfmon},
	{"{perfmon right}", tly_write_perfmon_right},
	{"{admin}", tly_write_admin},
	{"{admin right}", tly_write_admin_right},
	{"{sysctl}", tly_write_sysctl},
	{"{filter}", tly_write_filter},
	{"{machine}", tly_write_machine},
	{"{pmu}", tly_write_pmu},
};

/* Returns how much of @text was a placeholder, 0 when it starts with none. */
static size_t expand_one(struct tly_refusal *refusal, const char *text, char *buf, size_t size)
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

static void expand(struct tly_refusal *refusal, const char *text, char *buf, size_t size)
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

/* Whether it is there, but not for us or not now. */
static bool is_withheld(struct tly_refusal *refusal)
{
	switch (-refusal->code) {
	case EACCES:
	case EPERM:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EBUSY:
	case EINTR:
		return true;
	case ENOSYS:
		return tly_refusal_system(refusal)->seccomp > 0;
	}
	return false;
}

enum tally_verdict tly_refusal_cause(struct tly_refusal *refusal, struct tally_error *err)
{
	const struct tly_cause *cause = find_cause(refusal);
	char what[sizeof(err->what)], remedy[sizeof(err->remedy)];

	expand(refusal, cause->what, what, sizeof(what));
	expand(refusal, cause->remedy, remedy, sizeof(remedy));
	tly_error(err, refusal->code, "%s", what);
	tly_error_remedy(err, "%s", remedy);
	return is_withheld(refusal) ? TALLY_MAY_NOT : TALLY_CANNOT;
}

int tly_refusal_explain(struct tly_refusal *refusal, struct tally_error *err)
{
	struct tally_error cause;
	char event[128];

	tly_refusal_cause(refusal, &cause);
	write_event(refusal, event, sizeof(event));
	tly_error(err, refusal->code, "cannot open %s: %.250s", event, cause.what);
	return tly_error_remedy(err, "%s", cause.remedy);
}
