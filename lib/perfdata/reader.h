/* SPDX-License-Identifier: MIT */
/* The inside of a struct tally_perfdata, shared by the files that read. */
#ifndef LIB_PERFDATA_READER_H
#define LIB_PERFDATA_READER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/perfdata.h>

#include "abi/cursor.h"
#include "lib/perfdata/ids.h"
#include "lib/perfdata/inflate.h"
#include "lib/perfdata/window.h"

/* More is damage: what keeps a size that is not true from asking for all memory. */
#define TLY_MAX_EVENTS 65536u

struct tly_order;

struct tly_event {
	struct tally_perfdata_event public;
	bool has_time;
	size_t time_in_sample, time_from_end; /* tally_record_time_position() */
};

/* A record found but not decoded. Valid until the next one is fetched. */
struct tly_raw {
	const uint8_t *data;
	uint32_t type;
	uint16_t size;
	uint64_t offset; /* in the file; of its carrier when it was compressed */
};

/* Memory that lives as long as the reader, so that what was handed out stays valid. */
struct tly_kept {
	struct tly_kept *next;
	uint64_t data[];
};

struct tally_perfdata {
	char *path;
	int fd;
	struct tly_kept *kept;
	struct tally_perfdata_info info;

	struct tly_event **events;
	size_t nr_events, nr_named;
	struct tly_ids ids;
	bool has_ids; /* samples carry an id, at this place in all events */
	size_t id_in_sample, id_from_end;
	struct tally_perfdata_build_id *build_ids;
	size_t nr_build_ids;

	struct tly_window window;
	struct tly_inflate *inflate; /* NULL until the first compressed record */
	bool inflating;		     /* the last carrier is not used up */
	uint64_t carrier;	     /* its offset */
	uint64_t skip;		     /* payload behind the last record (AUXTRACE) */
	uint64_t data_offset, data_end;
	uint64_t declared_end; /* what lies behind is a bonus: see tly_header_read() */
	bool peeked;	       /* next is the next record */
	struct tly_raw next;
	uint64_t nr_headers, nr_headers_taken; /* in this pass; in all */
	unsigned int select;

	struct tly_order *order;
	int failed; /* sticks: what error says */
	struct tally_error error;
	struct tally_error late; /* a damaged feature: reported behind the last record */
};

/* NULL when memory is short. */
void *tly_keep(struct tally_perfdata *reader, size_t size);
char *tly_keep_string(struct tally_perfdata *reader, const char *string, size_t size);

/*
 * "PATH is damaged at byte OFFSET: ..." in reader->error. Returns -EBADMSG, and so will all that
 * is asked of the reader from then on.
 */
int tly_damaged(struct tally_perfdata *reader, uint64_t offset, const char *what, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for any other error number: "PATH: ...". */
int tly_reader_fails(struct tally_perfdata *reader, int code, const char *what, ...)
	__attribute__((format(printf, 3, 4)));

/* header.c: the header of a file and its attrs; sets where the data is. */
int tly_header_read(struct tally_perfdata *reader);

/*
 * Adds an event whose attr takes @attr_size bytes at @attr, its own size field included in what is
 * not trusted. @offset is where it stands, for the error.
 */
int tly_event_add(struct tally_perfdata *reader, const void *attr, size_t attr_size,
		  const void *ids, size_t nr_ids, uint64_t offset);
/* Gives those a name that the file has none for, made from their attr. */
int tly_events_name(struct tally_perfdata *reader);

/*
 * features.c: takes in one header feature of @size bytes. Returns false when its contents
 * contradict its size; unknown features are none of ours and fine.
 */
bool tly_feature_known(unsigned int feature);
bool tly_feature_read(struct tally_perfdata *reader, unsigned int feature, const void *data,
		      size_t size);

/*
 * stream.c: the next record that is neither a header nor a carrier; those are taken in. 1, 0 at
 * the end, negative when reader->failed.
 */
int tly_stream_next(struct tally_perfdata *reader, struct tly_raw *raw);
/* Back to the first record. */
void tly_stream_rewind(struct tally_perfdata *reader);

/* pipe.c: headers that come as records, and taking one in. */
bool tly_is_header(uint32_t type);
int tly_header_record(struct tally_perfdata *reader, const struct tly_raw *raw);

/*
 * reader.c: whether the caller selected records like @raw, and then the index of its event in
 * *@event, SIZE_MAX when it is of none. A sample of an event that the file does not have is counted
 * and not wanted.
 */
bool tly_record_wanted(struct tally_perfdata *reader, const struct tly_raw *raw, size_t *event);
/* 1, or negative when the record is damaged. */
int tly_record_decode(struct tally_perfdata *reader, const struct tly_raw *raw, size_t event,
		      struct tally_perfdata_record *record);

#endif
