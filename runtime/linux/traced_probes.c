// SPDX-License-Identifier: MIT
#include "runtime/linux/traced_probes.h"

#include <asm/errno.h>
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/stat.h>
#include <stdbool.h>

#include "core/core.h"
#include "core/used.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/event_request.h"
#include "runtime/linux/files.h"
#include "runtime/linux/memory.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* ---- lines ---- */

/* Longer lines are no probes that we know: a path and a few arguments have room. */
enum { LINE = 2 * PATH_MAX };

/* Where the tracing directory is mounted; the second is that of older kernels. */
static const char *const folders[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

struct list {
	const char *folder;
	int64_t fd;
	size_t size; /* of what has been read, */
	size_t used; /* and looked at */
	bool skip;   /* within a line that is too long */
	char text[LINE + 1];
};

static bool open_list(struct list *list)
{
	char path[64];

	list->fd = -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders) && list->fd < 0; i++) {
		list->folder = folders[i];
		format(path, sizeof(path), "%s/uprobe_events", list->folder);
		list->fd = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	}
	return list->fd >= 0;
}

static char *end_of_line(struct list *list)
{
	for (size_t i = list->used; i < list->size; i++)
		if (list->text[i] == '\n')
			return list->text + i;
	return NULL;
}

/* The next line, as a string; NULL behind the last. */
static char *next_line(struct list *list)
{
	for (;;) {
		char *end = end_of_line(list), *line = list->text + list->used;
		int64_t n;

		if (end) {
			const bool skipped = list->skip;

			*end = '\0';
			list->used = (size_t)(end + 1 - list->text);
			list->skip = false;
			if (!skipped)
				return line;
			continue;
		}
		list->size -= list->used;
		memmove(list->text, line, list->size);
		list->used = 0;
		if (list->size == LINE) {
			list->skip = true;
			list->size = 0;
		}
		n = sys(__NR_read, list->fd, list->text + list->size, LINE - list->size);
		if (n <= 0)
			return NULL;
		list->size += (size_t)n;
	}
}

/* ---- what a line says ---- */

/*
 *	p:GROUP/NAME PATH:0xOFFSET[(0xCOUNTER)][ ARGUMENT=WHERE]...
 *
 * with an r for the return of a function.
 */
struct traced {
	bool returns, has_arguments;
	const char *name; /* GROUP/NAME */
	const char *path;
	uint64_t offset, counter;
};

/* Behind "0x"; *@at is behind the number then. */
static bool read_hex(char **at, uint64_t *value)
{
	char *from;

	if (strncmp(*at, "0x", 2) != 0)
		return false;
	*at += 2;
	from = *at;
	for (*value = 0; **at; ++*at) {
		const char c = **at;

		if (c >= '0' && c <= '9')
			*value = *value << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	return *at > from;
}

/* Takes the text apart up to @c. */
static char *cut(char **text, char c)
{
	char *from = *text;

	for (char *at = from; *at; at++)
		if (*at == c) {
			*at = '\0';
			*text = at + 1;
			return from;
		}
	return NULL;
}

static bool read_counter(char **at, uint64_t *counter)
{
	*counter = 0;
	if (**at != '(')
		return true;
	++*at;
	return read_hex(at, counter) && *(*at)++ == ')';
}

/* A path has no spaces, and may have what looks like a place. */
static bool read_place(char *text, struct traced *to)
{
	for (char *at = text; *at; at++) {
		char *number = at + 1;

		if (*at != ':' || !read_hex(&number, &to->offset) ||
		    !read_counter(&number, &to->counter) || (*number && *number != ' '))
			continue;
		to->path = text;
		to->has_arguments = *number;
		*at = '\0';
		return true;
	}
	return false;
}

static bool read_line(char *line, struct traced *to)
{
	*to = (struct traced){.returns = *line == 'r'};
	if ((*line != 'p' && *line != 'r') || line[1] != ':')
		return false;
	line += 2;
	to->name = cut(&line, ' ');
	return to->name && read_place(line, to);
}

static bool has_id(const struct list *list, const struct traced *probe, uint64_t id)
{
	char path[512], text[24];
	int64_t fd, n;

	format(path, sizeof(path), "%s/events/%s/id", list->folder, probe->name);
	fd = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = sys(__NR_read, fd, text, sizeof(text) - 1);
	sys(__NR_close, fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 && core_text_number(text) == id;
}

/* ---- the event ---- */

static bool find_file(const struct traced *probe, struct core_file *to)
{
	struct stat file;

	if (sys(__NR_newfstatat, AT_FDCWD, probe->path, &file, 0) || !S_ISREG(file.st_mode))
		return false;
	*to = (struct core_file){file.st_dev, file.st_ino};
	return true;
}

static int64_t become(struct event_request *request, const struct traced *probe)
{
	struct perf_event_attr *attr = &request->attr.attr;
	const uint64_t id = attr->config;

	/* Nobody tells from which folder it was found; nor, when it is gone, which file it was,
	 * that some may still execute. The kernel knows, but meets nothing. */
	if (*probe->path != '/' || !find_file(probe, &request->target.file))
		return -EOPNOTSUPP;
	/* Nobody reads registers and memory for them: better none than wrong ones. */
	if (probe->has_arguments && attr->sample_period && attr->sample_type & PERF_SAMPLE_RAW)
		return -EOPNOTSUPP;
	attr->type = core_settings()->probe_type;
	attr->config = (probe->returns ? 1 : 0) | probe->counter << 32;
	attr->uprobe_path = 0;
	attr->probe_offset = probe->offset;
	request->target.record = (uint16_t)id;
	return 0;
}

int64_t traced_probe(struct event_request *request)
{
	const struct perf_event_attr *attr = &request->attr.attr;
	const uint64_t id = attr->config;
	struct list *list;
	struct traced probe;
	bool found = false;
	int64_t error = 0;
	char *line;

	if (attr->type != PERF_TYPE_TRACEPOINT || !core_settings()->probe_type || confined())
		return 0;
	list = memory_allocate(sizeof(*list), 0);
	if (!list)
		return 0;
	if (open_list(list)) {
		while (!error && (line = next_line(list))) {
			if (!read_line(line, &probe) || !has_id(list, &probe, id))
				continue;
			/* One at several places has a line for each. */
			error = found ? -EOPNOTSUPP : become(request, &probe);
			found = true;
		}
		sys(__NR_close, list->fd);
	}
	memory_free(list, sizeof(*list));
	return error;
}
