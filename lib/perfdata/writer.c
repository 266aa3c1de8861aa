// SPDX-License-Identifier: MIT
/*
 * Writing perf.data so that it can be read at any moment.
 *
 * The attrs and ids come first, then the data; after every write the size of the data in the
 * header follows. Killed between the two, the file has a few records more than its header says.
 * When the disk is full, the file is cut back to its last whole record. The features, which stand
 * behind the data, are written at the end; what of them is known at the start also goes out as
 * records in front of all others, as in a pipe, so that a killed recording has names too.
 */
#include "lib/perfdata/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/perfdata/bytes.h"
#include "lib/perfdata/deflate.h"
#include "lib/perfdata/facts.h"
#include "lib/perfdata/format.h"
#include "lib/perfdata/frame.h"

struct tally_perfdata_writer {
	char *path;
	int fd;
	bool pipe;
	bool started;
	bool round_due;
	struct tly_written_event *events;
	size_t nr_events;
	struct tly_facts facts;
	struct tly_bytes build_ids;
	struct tly_deflate *deflate;
	struct tly_bytes carriers; /* of one write, reused */
	struct iovec *pieces;	   /* of one write, reused */
	int room;
	struct tly_file_header header;
	uint64_t position; /* where the next byte goes */
	int failed;	   /* sticks: what error says */
	struct tally_error error;
};

static void writer_free(struct tally_perfdata_writer *writer)
{
	for (size_t i = 0; i < writer->nr_events; i++) {
		free(writer->events[i].name);
		free(writer->events[i].unit);
		free(writer->events[i].attr);
		free(writer->events[i].ids);
	}
	free(writer->events);
	tly_bytes_free(&writer->build_ids);
	tly_bytes_free(&writer->carriers);
	tly_deflate_free(writer->deflate);
	free(writer->pieces);
	if (writer->fd >= 0)
		close(writer->fd);
	free(writer->path);
	free(writer);
}

static int fails(struct tally_perfdata_writer *writer, int code, const char *remedy)
{
	writer->failed = code;
	tly_error(&writer->error, code, "writing %s: %s", writer->path, strerror(-code));
	return tly_error_remedy(&writer->error, "%s", remedy);
}

static int write_fails(struct tally_perfdata_writer *writer, int code)
{
	switch (code) {
	case -ENOSPC:
	case -EDQUOT:
		return fails(writer, code,
			     "what was recorded until then is kept; make room, or write "
			     "elsewhere with -o");
	case -EPIPE:
		return fails(writer, code, "the reader of the pipe has ended");
	case -EFBIG:
		return fails(writer, code, "what was recorded until then is kept; see ulimit -f");
	case -ENOMEM:
		return fails(writer, code, "free some memory");
	default:
		return fails(writer, code, "what was recorded until then is kept");
	}
}

/* ---- bytes to the descriptor ---- */

/*
 * Writes all of @pieces at the position and moves it on. On failure *@written says how many bytes
 * made it. Changes @pieces.
 */
static int write_all(struct tally_perfdata_writer *writer, struct iovec *pieces, int nr_pieces,
		     uint64_t *written)
{
	*written = 0;
	while (nr_pieces) {
		int some = nr_pieces < IOV_MAX ? nr_pieces : IOV_MAX;
		ssize_t n;

		if (!pieces->iov_len) {
			pieces++;
			nr_pieces--;
			continue;
		}
		if (writer->pipe)
			n = writev(writer->fd, pieces, some);
		else
			n = pwritev(writer->fd, pieces, some, (off_t)writer->position);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		*written += (uint64_t)n;
		writer->position += (uint64_t)n;
		for (; nr_pieces && (size_t)n >= pieces->iov_len; pieces++, nr_pieces--)
			n -= (ssize_t)pieces->iov_len;
		/* It can have stopped within a piece. */
		if (nr_pieces) {
			pieces->iov_base = (char *)pieces->iov_base + n;
			pieces->iov_len -= (size_t)n;
		}
	}
	return 0;
}

static int write_bytes(struct tally_perfdata_writer *writer, const void *data, size_t size)
{
	struct iovec piece = {(void *)(uintptr_t)data, size};
	uint64_t written;

	return write_all(writer, &piece, 1, &written);
}

static int write_at(struct tally_perfdata_writer *writer, const void *data, size_t size,
		    uint64_t offset)
{
	uint64_t position = writer->position;
	int ret;

	writer->position = offset;
	ret = write_bytes(writer, data, size);
	writer->position = position;
	return ret;
}

/* The header says that the data ends at the position. */
static int update_size(struct tally_perfdata_writer *writer)
{
	if (writer->pipe)
		return 0;
	writer->header.data.size = writer->position - writer->header.data.offset;
	return write_at(writer, &writer->header.data.size, sizeof(writer->header.data.size),
			offsetof(struct tly_file_header, data.size));
}

/* Forgets what was written behind @position; rewriting the header needs no room on the disk. */
static void cut_back(struct tally_perfdata_writer *writer, uint64_t position)
{
	if (writer->pipe)
		return;
	writer->position = position;
	if (!ftruncate(writer->fd, (off_t)position))
		update_size(writer);
}

/* ---- the start ---- */

/* One size for all attrs: theirs, or ours when the rest of them is zero. perf insists. */
static size_t common_attr_size(const struct tly_writer_event *events, size_t nr_events)
{
	size_t size = sizeof(struct perf_event_attr);

	for (size_t i = 0; i < nr_events; i++) {
		const uint8_t *attr = (const uint8_t *)events[i].attr;

		for (size_t at = size; at < events[i].attr->size; at++)
			if (attr[at])
				size = events[i].attr->size;
	}
	return size;
}

static bool copy_event(struct tly_written_event *event, const struct tly_writer_event *from,
		       size_t attr_size)
{
	size_t size = from->attr->size ? from->attr->size : PERF_ATTR_SIZE_VER0;

	event->name = strdup(from->name);
	event->unit = strdup(from->unit ? from->unit : "");
	event->scale = from->scale;
	event->leader = from->leader;
	event->attr = calloc(1, attr_size);
	if (!event->name || !event->unit || !event->attr)
		return false;
	memcpy(event->attr, from->attr, size < attr_size ? size : attr_size);
	event->attr->size = (uint32_t)attr_size;
	return true;
}

static uint64_t now_ns(int clockid)
{
	struct timespec ts = {0};

	clock_gettime(clockid, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int open_output(struct tally_perfdata_writer *writer, const char *path)
{
	struct stat st;

	if (!strcmp(path, "-")) {
		writer->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		writer->pipe = true;
	} else {
		writer->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	}
	if (writer->fd < 0 || fstat(writer->fd, &st)) {
		int code = -errno;

		return fails(writer, code,
			     code == -EACCES || code == -EROFS
				     ? "name a file that you may write, with -o"
				     : "name another file, with -o");
	}
	if (!S_ISREG(st.st_mode))
		writer->pipe = true;
	return 0;
}

static int writer_init(struct tally_perfdata_writer *writer, const struct tly_writer_event *events,
		       size_t nr_events, const struct tally_perfdata_options *options)
{
	struct tly_facts *facts = &writer->facts;

	writer->events = calloc(nr_events ? nr_events : 1, sizeof(*writer->events));
	if (!writer->events)
		return write_fails(writer, -ENOMEM);
	writer->nr_events = nr_events;
	*facts = (struct tly_facts){
		.events = writer->events,
		.nr_events = nr_events,
		.attr_size = common_attr_size(events, nr_events),
		.argv = options->argv,
		.clockid = options->clockid,
		.zstd_level = options->zstd_level,
		.build_ids = &writer->build_ids,
	};
	for (size_t i = 0; i < nr_events; i++)
		if (!copy_event(&writer->events[i], &events[i], facts->attr_size))
			return write_fails(writer, -ENOMEM);
	if (facts->clockid >= 0) {
		facts->clock_ns = now_ns(facts->clockid);
		facts->wall_ns = now_ns(CLOCK_REALTIME);
	}
	if (facts->zstd_level) {
		writer->deflate = tly_deflate_new(facts->zstd_level);
		if (!writer->deflate)
			return write_fails(writer, -ENOMEM);
	}
	return 0;
}

int tly_writer_new(const char *path, const struct tly_writer_event *events, size_t nr_events,
		   const struct tally_perfdata_options *options, struct tally_perfdata_writer **out,
		   struct tally_error *err)
{
	struct tally_perfdata_writer *writer = calloc(1, sizeof(*writer));
	int ret;

	*out = NULL;
	if (!writer)
		return tly_error(err, -ENOMEM, "no memory to write %s with", path);
	writer->fd = -1;
	writer->path = strdup(strcmp(path, "-") ? path : "standard output");
	if (!writer->path) {
		free(writer);
		return tly_error(err, -ENOMEM, "no memory to write %s with", path);
	}
	ret = writer_init(writer, events, nr_events, options);
	if (!ret)
		ret = open_output(writer, path);
	if (ret) {
		if (err)
			*err = writer->error;
		writer_free(writer);
		return ret;
	}
	*out = writer;
	return 0;
}

int tally_perfdata_create(const char *path, const struct tally_events *events,
			  const struct tally_perfdata_options *options,
			  struct tally_perfdata_writer **writer, struct tally_error *err)
{
	size_t nr = tally_events_count(events);
	struct tly_writer_event *from = calloc(nr ? nr : 1, sizeof(*from));
	int ret;

	*writer = NULL;
	if (!from)
		return tly_error(err, -ENOMEM, "no memory to write %s with", path);
	for (size_t i = 0; i < nr; i++) {
		const struct tally_event *event = tally_events_at(events, i);

		from[i] = (struct tly_writer_event){
			.name = event->name,
			.unit = event->unit,
			.scale = event->scale,
			.attr = event->attr,
			.leader = event->leader,
		};
	}
	ret = tly_writer_new(path, from, nr, options, writer, err);
	free(from);
	return ret;
}

int tally_perfdata_writer_ids(struct tally_perfdata_writer *writer, size_t event,
			      const uint64_t *ids, size_t nr_ids)
{
	struct tly_written_event *to;
	uint64_t *grown;

	if (event >= writer->nr_events || writer->started)
		return -EINVAL;
	if (!nr_ids)
		return 0;
	to = &writer->events[event];
	if (nr_ids > SIZE_MAX - to->nr_ids)
		return -ENOMEM;
	grown = reallocarray(to->ids, to->nr_ids + nr_ids, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	to->ids = grown;
	memcpy(to->ids + to->nr_ids, ids, nr_ids * sizeof(*ids));
	to->nr_ids += nr_ids;
	return 0;
}

static int ids_do_not_fit(struct tally_perfdata_writer *writer,
			  const struct tly_written_event *event)
{
	writer->failed =
		tly_error(&writer->error, -E2BIG,
			  "writing %s: %zu ids of event '%s' do not fit in a pipe's record",
			  writer->path, event->nr_ids, event->name);
	return tly_error_remedy(&writer->error,
				"write to a file (-o FILE), or record fewer tasks at once");
}

static int start(struct tally_perfdata_writer *writer)
{
	const struct tly_written_event *too_large = NULL;
	struct tly_bytes out = {0};
	int ret = 0;

	writer->started = true;
	if (writer->pipe)
		too_large = tly_frame_start_pipe(&writer->facts, &out);
	else
		tly_frame_start_file(&writer->facts, &writer->header, &out);
	if (out.failed)
		ret = write_fails(writer, -ENOMEM);
	else if (too_large)
		ret = ids_do_not_fit(writer, too_large);
	if (!ret) {
		ret = write_bytes(writer, out.data, out.size);
		if (!ret)
			ret = update_size(writer);
		if (ret)
			write_fails(writer, ret);
	}
	tly_bytes_free(&out);
	return ret;
}

/* ---- the data ---- */

/* @size bytes of @pieces from @offset on. */
static void gather(const struct iovec *pieces, uint64_t offset, void *buf, size_t size)
{
	for (; size; pieces++) {
		size_t some;

		if (offset >= pieces->iov_len) {
			offset -= pieces->iov_len;
			continue;
		}
		some = pieces->iov_len - offset;
		if (some > size)
			some = size;
		memcpy(buf, (const char *)pieces->iov_base + offset, some);
		buf = (char *)buf + some;
		size -= some;
		offset = 0;
	}
}

/* How much of the first @written bytes of @pieces is whole records. */
static uint64_t whole_records(const struct iovec *pieces, uint64_t written)
{
	uint64_t whole = 0;

	for (;;) {
		struct perf_event_header header;

		if (written - whole < sizeof(header))
			return whole;
		gather(pieces, whole, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > written - whole)
			return whole;
		whole += header.size;
	}
}

static const struct perf_event_header round_mark = {
	.type = TALLY_RECORD_FINISHED_ROUND,
	.size = sizeof(round_mark),
};

/* A copy of @pieces that may be changed, behind the mark of the last round when that is due. */
static int collect(struct tally_perfdata_writer *writer, const struct iovec *pieces, int nr_pieces)
{
	int nr = 0;

	if (writer->room < nr_pieces + 1) {
		struct iovec *grown =
			reallocarray(writer->pieces, (size_t)nr_pieces + 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		writer->pieces = grown;
		writer->room = nr_pieces + 1;
	}
	if (writer->round_due)
		writer->pieces[nr++] =
			(struct iovec){(void *)(uintptr_t)&round_mark, sizeof(round_mark)};
	if (nr_pieces)
		memcpy(writer->pieces + nr, pieces, (size_t)nr_pieces * sizeof(*pieces));
	return nr + nr_pieces;
}

static int compress(struct tally_perfdata_writer *writer, const struct iovec *pieces, int nr_pieces,
		    struct iovec *carriers)
{
	struct tly_bytes *out = &writer->carriers;
	int ret;

	out->size = 0;
	ret = tly_deflate(writer->deflate, pieces, nr_pieces, out);
	if (ret)
		return ret;
	for (int i = 0; i < nr_pieces; i++)
		writer->facts.plain += pieces[i].iov_len;
	writer->facts.compressed += out->size;
	*carriers = (struct iovec){out->data, out->size};
	return 0;
}

static int write_data(struct tally_perfdata_writer *writer, const struct iovec *pieces,
		      int nr_pieces)
{
	uint64_t before = writer->position, written = 0;
	struct iovec carriers;
	int nr, ret;

	if (!writer->started) {
		ret = start(writer);
		if (ret)
			return ret;
		before = writer->position;
	}
	if (writer->deflate) {
		ret = compress(writer, pieces, nr_pieces, &carriers);
		if (ret)
			return write_fails(writer, ret);
		pieces = &carriers;
		nr_pieces = 1;
	}
	nr = collect(writer, pieces, nr_pieces);
	if (nr < 0)
		return write_fails(writer, nr);
	ret = write_all(writer, writer->pieces, nr, &written);
	if (!ret) {
		writer->round_due = false;
		ret = update_size(writer);
	} else {
		/*
		 * Half a compressed stream cannot be read, half of plain records can. Collected
		 * again, as writing used them up; the room is there, so this cannot fail.
		 */
		collect(writer, pieces, nr_pieces);
		cut_back(writer,
			 before + (writer->deflate ? 0 : whole_records(writer->pieces, written)));
	}
	return ret ? write_fails(writer, ret) : 0;
}

static int report(struct tally_perfdata_writer *writer, struct tally_error *err)
{
	if (writer->failed && err)
		*err = writer->error;
	return writer->failed;
}

int tally_perfdata_write(struct tally_perfdata_writer *writer, const struct iovec *pieces,
			 int nr_pieces, struct tally_error *err)
{
	if (!writer->failed)
		write_data(writer, pieces, nr_pieces);
	return report(writer, err);
}

int tally_perfdata_writer_round(struct tally_perfdata_writer *writer, struct tally_error *err)
{
	/* Goes out in front of the next write, to save a system call for 8 bytes. */
	writer->round_due = writer->started;
	return report(writer, err);
}

uint64_t tally_perfdata_writer_bytes(const struct tally_perfdata_writer *writer)
{
	return writer->position;
}

void tally_perfdata_writer_times(struct tally_perfdata_writer *writer, uint64_t first,
				 uint64_t last)
{
	writer->facts.first = first;
	writer->facts.last = last;
}

int tally_perfdata_writer_build_id(struct tally_perfdata_writer *writer,
				   const struct tally_perfdata_build_id *build_id)
{
	struct tly_bytes *out = &writer->build_ids;
	struct tly_build_id_record record = {
		.pid = build_id->pid,
		.build_id_size = build_id->size,
	};
	const size_t skip = sizeof(struct perf_event_header);
	size_t start = out->size;

	if (build_id->size > sizeof(record.build_id))
		return -EINVAL;
	memcpy(record.build_id, build_id->build_id, build_id->size);
	tly_bytes_begin_record(out, TALLY_RECORD_HEADER_BUILD_ID,
			       build_id->misc | TLY_MISC_BUILD_ID_SIZE);
	tly_bytes_put(out, (const char *)&record + skip, sizeof(record) - skip);
	tly_bytes_put(out, build_id->filename, strlen(build_id->filename) + 1);
	if (!tly_bytes_end_record(out, start))
		return -EINVAL;
	return out->failed ? -ENOMEM : 0;
}

/* ---- the end ---- */

static int write_features(struct tally_perfdata_writer *writer)
{
	uint64_t end = writer->position;
	struct tly_bytes out = {0};
	int ret = -ENOMEM;

	tly_frame_end_file(&writer->facts, end, &writer->header, &out);
	if (!out.failed)
		ret = write_bytes(writer, out.data, out.size);
	tly_bytes_free(&out);
	if (!ret)
		ret = write_at(writer, &writer->header, sizeof(writer->header), 0);
	if (ret) {
		memset(writer->header.features, 0, sizeof(writer->header.features));
		cut_back(writer, end);
	}
	return ret;
}

int tally_perfdata_finish(struct tally_perfdata_writer *writer, struct tally_error *err)
{
	int ret;

	if (!writer->failed)
		write_data(writer, NULL, 0); /* the mark of the last round, or an empty file */
	if (writer->pipe && !writer->failed) {
		ret = write_bytes(writer, writer->build_ids.data, writer->build_ids.size);
		if (ret)
			write_fails(writer, ret);
	}
	/* Also after a failure: there may be room for them where a record did not fit. */
	if (!writer->pipe && writer->started) {
		ret = write_features(writer);
		if (ret && !writer->failed)
			write_fails(writer, ret);
	}
	if (close(writer->fd) && !writer->failed)
		write_fails(writer, -errno);
	writer->fd = -1;
	ret = report(writer, err);
	writer_free(writer);
	return ret;
}
