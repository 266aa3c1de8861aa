// SPDX-License-Identifier: MIT
#include "lib/perfdata/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/perfdata/format.h"
#include "lib/perfdata/order.h"

void *tly_keep(struct tally_perfdata *reader, size_t size)
{
	struct tly_kept *kept;

	if (size > SIZE_MAX - sizeof(*kept))
		return NULL;
	kept = calloc(1, sizeof(*kept) + size);
	if (!kept)
		return NULL;
	kept->next = reader->kept;
	reader->kept = kept;
	return kept->data;
}

char *tly_keep_string(struct tally_perfdata *reader, const char *string, size_t size)
{
	char *copy = tly_keep(reader, size + 1);

	return copy ? memcpy(copy, string, size) : NULL;
}

int tly_damaged(struct tally_perfdata *reader, uint64_t offset, const char *what, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, what);
	vsnprintf(text, sizeof(text), what, ap);
	va_end(ap);
	reader->failed = -EBADMSG;
	tly_error(&reader->error, -EBADMSG, "%s is damaged at byte %" PRIu64 ": %s", reader->path,
		  offset, text);
	tly_error_remedy(&reader->error, "all records before that byte were read; nothing behind "
					 "it can be trusted");
	return tly_error_at(&reader->error, offset);
}

int tly_reader_fails(struct tally_perfdata *reader, int code, const char *what, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, what);
	vsnprintf(text, sizeof(text), what, ap);
	va_end(ap);
	reader->failed = code;
	return tly_error(&reader->error, code, "%s: %s", reader->path, text);
}

/* perf record --threads writes a directory of files. */
static int is_directory(struct tally_perfdata *reader)
{
	tly_reader_fails(reader, -EOPNOTSUPP,
			 "a recording of perf record --threads, which is a directory of files");
	return tly_error_remedy(&reader->error, "record without --threads");
}

static int open_file(struct tally_perfdata *reader, const char *path)
{
	struct stat st;

	if (!strcmp(path, "-"))
		reader->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		reader->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (reader->fd < 0) {
		int code = -errno;

		tly_reader_fails(reader, code, "%s", strerror(-code));
		if (code == -ENOENT)
			tly_error_remedy(&reader->error,
					 "record one first (tally record), or name one with -i");
		else if (code == -EACCES)
			tly_error_remedy(&reader->error, "read it as the user who recorded it");
		return code;
	}
	if (fstat(reader->fd, &st))
		return tly_reader_fails(reader, -errno, "%s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return faccessat(reader->fd, "data", F_OK, 0)
			       ? tly_reader_fails(reader, -EISDIR, "%s", strerror(EISDIR))
			       : is_directory(reader);
	if (tly_window_init(&reader->window, reader->fd, S_ISREG(st.st_mode)))
		return tly_reader_fails(reader, -ENOMEM, "no memory to read with");
	return 0;
}

/* The headers of pipe mode are records; they end before the first one that is none. */
static int read_ahead(struct tally_perfdata *reader)
{
	int ret = tly_stream_next(reader, &reader->next);

	reader->peeked = ret > 0;
	if (reader->nr_events)
		return 0; /* an error comes when its place is reached */
	if (ret < 0)
		return ret;
	return tly_damaged(reader, reader->window.offset, "it does not say what was recorded");
}

static int read_headers(struct tally_perfdata *reader, const char *path)
{
	int ret = open_file(reader, path);

	if (!ret)
		ret = tly_header_read(reader);
	if (ret)
		return ret;
	if (reader->info.features[0] >> TLY_FEATURE_DIR_FORMAT & 1)
		return is_directory(reader);
	if (reader->window.seekable)
		tly_stream_rewind(reader);
	if (reader->info.pipe)
		ret = read_ahead(reader);
	if (!ret)
		ret = tly_events_name(reader);
	return ret;
}

int tally_perfdata_open(const char *path, struct tally_perfdata **out, struct tally_error *err)
{
	struct tally_perfdata *reader = calloc(1, sizeof(*reader));
	int ret;

	*out = NULL;
	if (!reader)
		return tly_error(err, -ENOMEM, "no memory to read %s with", path);
	reader->fd = -1;
	reader->info.clockid = -1;
	reader->select = TALLY_SELECT_SAMPLES | TALLY_SELECT_OTHERS;
	reader->path = strdup(strcmp(path, "-") ? path : "standard input");
	if (!reader->path) {
		free(reader);
		return tly_error(err, -ENOMEM, "no memory to read %s with", path);
	}
	ret = read_headers(reader, path);
	if (ret) {
		if (err)
			*err = reader->error;
		tally_perfdata_close(reader);
		return ret;
	}
	*out = reader;
	return 0;
}

void tally_perfdata_close(struct tally_perfdata *reader)
{
	if (!reader)
		return;
	tly_order_free(reader->order);
	tly_inflate_free(reader->inflate);
	tly_window_fini(&reader->window);
	tly_ids_free(&reader->ids);
	free(reader->events);
	free(reader->build_ids);
	while (reader->kept) {
		struct tly_kept *kept = reader->kept;

		reader->kept = kept->next;
		free(kept);
	}
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader->path);
	free(reader);
}

size_t tally_perfdata_events(const struct tally_perfdata *reader)
{
	return reader->nr_events;
}

const struct tally_perfdata_event *tally_perfdata_event(const struct tally_perfdata *reader,
							size_t index)
{
	return index < reader->nr_events ? &reader->events[index]->public : NULL;
}

const struct tally_perfdata_info *tally_perfdata_info(const struct tally_perfdata *reader)
{
	return &reader->info;
}

size_t tally_perfdata_build_ids(const struct tally_perfdata *reader)
{
	return reader->nr_build_ids;
}

const struct tally_perfdata_build_id *tally_perfdata_build_id(const struct tally_perfdata *reader,
							      size_t index)
{
	return index < reader->nr_build_ids ? &reader->build_ids[index] : NULL;
}

void tally_perfdata_select(struct tally_perfdata *reader, unsigned int select)
{
	reader->select = select;
}

/* The index of the event that @raw is of, SIZE_MAX when it is of none. */
static size_t record_event(const struct tally_perfdata *reader, const struct tly_raw *raw)
{
	size_t header = sizeof(struct perf_event_header);

	if (raw->type >= TALLY_RECORD_HEADER_ATTR)
		return SIZE_MAX;
	if (reader->nr_events == 1)
		return 0;
	if (raw->type != PERF_RECORD_SAMPLE) {
		size_t from_end = reader->id_from_end;

		if (!from_end || raw->size < header + from_end)
			return SIZE_MAX;
		return tly_ids_find(&reader->ids, tally_u64(raw->data + raw->size - from_end));
	}
	if (raw->size < header + reader->id_in_sample + WORD)
		return SIZE_MAX;
	return tly_ids_find(&reader->ids, tally_u64(raw->data + header + reader->id_in_sample));
}

bool tly_record_wanted(struct tally_perfdata *reader, const struct tly_raw *raw, size_t *event)
{
	bool sample = raw->type == PERF_RECORD_SAMPLE;

	if (!(reader->select & (sample ? TALLY_SELECT_SAMPLES : TALLY_SELECT_OTHERS)))
		return false;
	*event = record_event(reader, raw);
	if (!sample || *event != SIZE_MAX)
		return true;
	reader->info.unknown_samples++;
	return false;
}

int tly_record_decode(struct tally_perfdata *reader, const struct tly_raw *raw, size_t event,
		      struct tally_perfdata_record *record)
{
	static const struct tally_record_format none;
	const struct tally_record_format *format = &none;
	const char *why = "";
	long size;

	/* Records that perf made up have id 0, and the layout that all events share. */
	if (reader->nr_events)
		format = &reader->events[event == SIZE_MAX ? 0 : event]->public.format;
	size = tally_record_decode(format, raw->data, raw->size, &record->record, &why);
	if (size < 0)
		return tly_damaged(reader, raw->offset, "the record cannot be: %s", why);
	record->offset = raw->offset;
	record->event = event;
	return 1;
}

static int report(struct tally_perfdata *reader, int ret, struct tally_error *err)
{
	if (ret < 0 && err)
		*err = reader->error;
	return ret;
}

int tally_perfdata_next(struct tally_perfdata *reader, struct tally_perfdata_record *record,
			struct tally_error *err)
{
	struct tly_raw raw;
	size_t event;
	int ret;

	do {
		ret = tly_stream_next(reader, &raw);
		if (ret <= 0)
			return report(reader, ret, err);
	} while (!tly_record_wanted(reader, &raw, &event));
	return report(reader, tly_record_decode(reader, &raw, event, record), err);
}

int tally_perfdata_next_ordered(struct tally_perfdata *reader, struct tally_perfdata_record *record,
				struct tally_error *err)
{
	if (!reader->order) {
		reader->order = tly_order_new();
		if (!reader->order)
			return tly_error(err, -ENOMEM, "no memory to order records with");
	}
	return report(reader, tly_order_next(reader->order, reader, record), err);
}

int tally_perfdata_rewind(struct tally_perfdata *reader, struct tally_error *err)
{
	if (!reader->window.seekable) {
		tly_error(err, -ESPIPE, "%s is a pipe and can be read once only", reader->path);
		return tly_error_remedy(err, "record to a file (-o FILE) and name it with -i");
	}
	tly_stream_rewind(reader);
	tly_order_free(reader->order);
	reader->order = NULL;
	reader->failed = 0;
	reader->info.unknown_samples = 0;
	return 0;
}
