// SPDX-License-Identifier: MIT
/*
 * The header of a perf.data file, its attrs and their ids, and the features behind the data.
 *
 * perf writes the size of the data and the features when it ends, this library the size after
 * every write. So a file whose recording was killed has size 0 (perf) or no features (ours): then
 * all that follows the header is data, and the end of what the size covered is remembered, because
 * only behind it a record may be half.
 */
#include "lib/perfdata/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/perfdata/format.h"

#define MAX_FEATURE (256u << 20)
#define MAX_ATTR    4096u

/* All of @size bytes at @offset; -ENODATA when the file has less. */
static int read_at(struct tally_perfdata *reader, void *buf, size_t size, uint64_t offset)
{
	size_t done = 0;

	if (offset > INT64_MAX - size)
		return -ENODATA;
	while (done < size) {
		ssize_t n =
			pread(reader->fd, (char *)buf + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		done += (size_t)n;
	}
	return 0;
}

static bool section_fits(const struct tly_section *section, uint64_t file_size)
{
	return section->offset <= file_size && section->size <= file_size - section->offset;
}

static int check_magic(struct tally_perfdata *reader, const char magic[8])
{
	if (!memcmp(magic, TLY_MAGIC, 8))
		return 0;
	if (!memcmp(magic, TLY_MAGIC_BSW, 8)) {
		tly_reader_fails(reader, -EOPNOTSUPP,
				 "the file was recorded on a machine of the other byte order");
		return tly_error_remedy(&reader->error, "read it on such a machine");
	}
	if (!memcmp(magic, TLY_MAGIC_V1, 8)) {
		tly_reader_fails(reader, -EOPNOTSUPP,
				 "the file has version 1 of the format, of kernels before 3.6");
		return tly_error_remedy(&reader->error, "record it again with a newer perf");
	}
	tly_reader_fails(reader, -EBADMSG, "not a perf.data file (it does not begin with \"%s\")",
			 TLY_MAGIC);
	tly_error_remedy(&reader->error, "name a file that tally record or perf record wrote");
	return tly_error_at(&reader->error, 0);
}

/* Why a section that the header names is not in the file. */
static int bad_section(struct tally_perfdata *reader, const char *name,
		       const struct tly_section *section, uint64_t file_size)
{
	return tly_damaged(reader, section->offset < file_size ? section->offset : file_size,
			   "the header puts %" PRIu64 " bytes of %s at byte %" PRIu64
			   ", but the file has %" PRIu64,
			   section->size, name, section->offset, file_size);
}

static int read_ids(struct tally_perfdata *reader, const struct tly_section *section,
		    uint64_t file_size, uint64_t **ids)
{
	*ids = NULL;
	if (!section->size)
		return 0;
	if (section->size % sizeof(**ids) || !section_fits(section, file_size))
		return bad_section(reader, "event ids", section, file_size);
	*ids = malloc(section->size);
	if (!*ids)
		return tly_reader_fails(reader, -ENOMEM, "no memory for the event ids");
	if (read_at(reader, *ids, section->size, section->offset)) {
		free(*ids);
		return bad_section(reader, "event ids", section, file_size);
	}
	return 0;
}

static int read_attrs(struct tally_perfdata *reader, const struct tly_file_header *header,
		      uint64_t file_size)
{
	size_t entry = header->attr_size;
	size_t attr_size = entry - sizeof(struct tly_section);
	uint8_t *attrs;
	int ret = 0;

	if (entry < PERF_ATTR_SIZE_VER0 + sizeof(struct tly_section) || entry > MAX_ATTR)
		return tly_damaged(reader, offsetof(struct tly_file_header, attr_size),
				   "an event's attributes cannot take %zu bytes", entry);
	if (!header->attrs.size || header->attrs.size % entry ||
	    header->attrs.size / entry > TLY_MAX_EVENTS || !section_fits(&header->attrs, file_size))
		return bad_section(reader, "attributes", &header->attrs, file_size);
	attrs = malloc(header->attrs.size);
	if (!attrs)
		return tly_reader_fails(reader, -ENOMEM, "no memory for the events");
	if (read_at(reader, attrs, header->attrs.size, header->attrs.offset))
		ret = bad_section(reader, "attributes", &header->attrs, file_size);
	for (size_t at = 0; !ret && at < header->attrs.size; at += entry) {
		struct tly_section section;
		uint64_t *ids;

		memcpy(&section, attrs + at + attr_size, sizeof(section));
		ret = read_ids(reader, &section, file_size, &ids);
		if (ret)
			break;
		ret = tly_event_add(reader, attrs + at, attr_size, ids, section.size / sizeof(*ids),
				    header->attrs.offset + at);
		free(ids);
	}
	free(attrs);
	return ret;
}

/* What is wrong with a feature does not stop the records from being read. */
static void feature_is_damaged(struct tally_perfdata *reader, unsigned int feature, uint64_t offset)
{
	if (reader->late.code)
		return;
	tly_damaged(reader, offset, "header feature %u is cut off or contradicts itself", feature);
	tly_error_remedy(&reader->error, "all records were read; only facts about the recording "
					 "(host, command line, names) may be missing");
	reader->late = reader->error;
	reader->failed = 0;
}

static int read_feature(struct tally_perfdata *reader, unsigned int feature,
			const struct tly_section *section, uint64_t file_size)
{
	void *data;

	if (!section_fits(section, file_size) || section->size > MAX_FEATURE) {
		feature_is_damaged(reader, feature,
				   section->offset < file_size ? section->offset : file_size);
		return 0;
	}
	if (!tly_feature_known(feature))
		return 0;
	data = malloc(section->size ? section->size : 1);
	if (!data)
		return tly_reader_fails(reader, -ENOMEM, "no memory for the header features");
	if (read_at(reader, data, section->size, section->offset) ||
	    !tly_feature_read(reader, feature, data, section->size))
		feature_is_damaged(reader, feature, section->offset);
	free(data);
	return 0;
}

static int read_features(struct tally_perfdata *reader, uint64_t at, uint64_t file_size)
{
	for (unsigned int feature = 0; feature < TLY_FEATURE_BITS; feature++) {
		struct tly_section section;
		int ret;

		if (!(reader->info.features[feature / 64] >> feature % 64 & 1))
			continue;
		if (read_at(reader, &section, sizeof(section), at)) {
			feature_is_damaged(reader, feature, at < file_size ? at : file_size);
			return 0;
		}
		ret = read_feature(reader, feature, &section, file_size);
		if (ret)
			return ret;
		at += sizeof(section);
	}
	return 0;
}

static bool has_features(const struct tly_file_header *header)
{
	return header->features[0] | header->features[1] | header->features[2] |
	       header->features[3];
}

/* Pipe mode in a regular file: all that follows the short header is records. */
static int begin_pipe(struct tally_perfdata *reader)
{
	reader->info.pipe = true;
	reader->data_offset = sizeof(struct tly_pipe_header);
	reader->data_end = UINT64_MAX;
	reader->declared_end = UINT64_MAX;
	return 0;
}

static int read_pipe_header(struct tally_perfdata *reader)
{
	struct tly_pipe_header header;
	ssize_t have = tly_window_fill(&reader->window, sizeof(header));
	int ret;

	if (have < 0)
		return tly_reader_fails(reader, (int)have, "%s", strerror((int)-have));
	if (have == 0) {
		tly_reader_fails(reader, -ENODATA, "nothing came through the pipe");
		return tly_error_remedy(&reader->error,
					"see what the command before the pipe said");
	}
	if ((size_t)have < sizeof(header))
		return tly_damaged(reader, (uint64_t)have, "it ends inside its header");
	memcpy(&header, reader->window.buf + reader->window.head, sizeof(header));
	ret = check_magic(reader, header.magic);
	if (ret)
		return ret;
	if (header.size != sizeof(header)) {
		tly_reader_fails(reader, -ESPIPE, "a perf.data file cannot be read through a pipe");
		return tly_error_remedy(&reader->error,
					"give its name with -i, or record with -o -");
	}
	tly_window_consume(&reader->window, sizeof(header));
	return begin_pipe(reader);
}

int tly_header_read(struct tally_perfdata *reader)
{
	struct tly_file_header header;
	uint64_t file_size;
	struct stat st;
	int ret;

	if (!reader->window.seekable)
		return read_pipe_header(reader);
	if (fstat(reader->fd, &st))
		return tly_reader_fails(reader, -errno, "%s", strerror(errno));
	file_size = (uint64_t)st.st_size;
	if (!file_size) {
		tly_reader_fails(reader, -ENODATA, "the file is empty");
		return tly_error_remedy(&reader->error, "record again");
	}
	ret = read_at(reader, &header, sizeof(struct tly_pipe_header), 0);
	if (ret == -ENODATA)
		return tly_damaged(reader, file_size, "it ends inside its header");
	if (ret)
		return tly_reader_fails(reader, ret, "%s", strerror(-ret));
	ret = check_magic(reader, header.magic);
	if (ret)
		return ret;
	if (header.size == sizeof(struct tly_pipe_header))
		return begin_pipe(reader);
	if (header.size < sizeof(header))
		return tly_damaged(reader, offsetof(struct tly_file_header, size),
				   "a header cannot take %" PRIu64 " bytes", header.size);
	if (read_at(reader, &header, sizeof(header), 0))
		return tly_damaged(reader, file_size, "it ends inside its header");
	if (header.data.offset > file_size)
		return bad_section(reader, "data", &header.data, file_size);
	ret = read_attrs(reader, &header, file_size);
	if (ret)
		return ret;
	reader->data_offset = header.data.offset;
	reader->declared_end = header.data.offset + header.data.size;
	if (reader->declared_end < header.data.offset)
		return bad_section(reader, "data", &header.data, file_size);
	reader->data_end = reader->declared_end;
	if (header.data.size && has_features(&header)) {
		memcpy(reader->info.features, header.features, sizeof(header.features));
		return read_features(reader, reader->data_end, file_size);
	}
	reader->info.unfinished = true;
	reader->data_end = UINT64_MAX;
	if (!header.data.size)
		reader->declared_end = UINT64_MAX;
	return 0;
}
