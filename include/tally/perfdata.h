/* SPDX-License-Identifier: MIT */
/*
 * perf.data: reading and writing, as files and as pipes.
 *
 * The reader takes what perf(1) writes (all header features, compressed records, pipe mode) and
 * keeps going up to the first byte that is wrong; the writer's files are read by perf report and
 * perf script.
 *
 * A reader or writer is used by one thread at a time; different ones are independent.
 */
#ifndef TALLY_PERFDATA_H
#define TALLY_PERFDATA_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <tally/error.h>
#include <tally/event.h>
#include <tally/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Records that only perf.data has, beside those of the kernel. */
enum tally_user_record {
	TALLY_RECORD_HEADER_ATTR = 64,
	TALLY_RECORD_HEADER_EVENT_TYPE = 65,
	TALLY_RECORD_HEADER_TRACING_DATA = 66,
	TALLY_RECORD_HEADER_BUILD_ID = 67,
	TALLY_RECORD_FINISHED_ROUND = 68,
	TALLY_RECORD_ID_INDEX = 69,
	TALLY_RECORD_AUXTRACE_INFO = 70,
	TALLY_RECORD_AUXTRACE = 71,
	TALLY_RECORD_AUXTRACE_ERROR = 72,
	TALLY_RECORD_THREAD_MAP = 73,
	TALLY_RECORD_CPU_MAP = 74,
	TALLY_RECORD_STAT_CONFIG = 75,
	TALLY_RECORD_STAT = 76,
	TALLY_RECORD_STAT_ROUND = 77,
	TALLY_RECORD_EVENT_UPDATE = 78,
	TALLY_RECORD_TIME_CONV = 79,
	TALLY_RECORD_HEADER_FEATURE = 80,
	TALLY_RECORD_COMPRESSED = 81,
	TALLY_RECORD_FINISHED_INIT = 82,
	TALLY_RECORD_COMPRESSED2 = 83,
};

/* ---- reading ---- */

struct tally_perfdata;

/* One event of the file. Strings and arrays belong to the reader. */
struct tally_perfdata_event {
	const char *name;		    /* of the file, or made from attr */
	const struct perf_event_attr *attr; /* attr->size bytes valid */
	struct tally_record_format format;
	const uint64_t *ids;
	size_t nr_ids;
	const char *unit;
	double scale;
	bool user_mode; /* not of the kernel's: recorded under `tally run` */
};

struct tally_perfdata_group {
	const char *name; /* as given, or "{anon_group}" */
	uint32_t leader;  /* index of its event */
	uint32_t nr_members;
};

struct tally_perfdata_pmu {
	uint32_t type; /* attr.type */
	const char *name;
};

/* The header features, NULL or 0 where the file has none. */
struct tally_perfdata_info {
	const char *hostname, *osrelease, *version, *arch, *cpudesc, *cpuid;
	const char *cmdline; /* one line, quoted as for a shell */
	uint32_t nr_cpus_online, nr_cpus_avail;
	uint64_t total_mem_kb;
	uint64_t first_sample_time, last_sample_time; /* nanoseconds; 0: unknown */
	int clockid;				      /* -1: unknown */
	uint64_t wall_clock_ns,
		clock_ns; /* the time of day at clock_ns of that clock; 0: unknown */
	bool compressed;
	const void *tracing_data; /* the ftrace formats blob */
	size_t tracing_data_size;
	const struct tally_perfdata_group *groups;
	size_t nr_groups;
	const struct tally_perfdata_pmu *pmus;
	size_t nr_pmus;
	uint64_t features[4]; /* the header's bitmap */
	bool pipe;
	bool unfinished;	  /* the recorder was killed: no features, the end may be missing */
	uint64_t unknown_samples; /* met so far, of events that the file does not have; left out */
};

struct tally_perfdata_build_id {
	const char *filename;
	uint8_t size;
	uint8_t build_id[20];
	int32_t pid;
	uint16_t misc; /* PERF_RECORD_MISC_KERNEL, _USER ... */
};

/* One record as it comes from the file. Valid until the next call on the reader. */
struct tally_perfdata_record {
	struct tally_record record;
	uint64_t offset; /* in the file; of its compressed carrier when it was compressed */
	size_t event; /* index of its event, SIZE_MAX when it is of none; a sample always has one */
};

/*
 * Opens @path, "-" for standard input. Headers are read here, records later.
 * Errors: those of open(2); -ENODATA the file is empty; -EBADMSG it is not a perf.data file or its
 * header is damaged (err->offset says where); -EOPNOTSUPP of the other byte order, from another
 * word size, or a directory, as perf record --threads makes.
 */
int tally_perfdata_open(const char *path, struct tally_perfdata **reader, struct tally_error *err);
/* NULL is accepted. */
void tally_perfdata_close(struct tally_perfdata *reader);

/*
 * What the header says, or in a pipe the records met so far: both can grow until the end. NULL for
 * an index past the last.
 */
size_t tally_perfdata_events(const struct tally_perfdata *reader);
const struct tally_perfdata_event *tally_perfdata_event(const struct tally_perfdata *reader,
							size_t index);
/* Never NULL. Belongs to the reader; in a pipe its content grows with the records met. */
const struct tally_perfdata_info *tally_perfdata_info(const struct tally_perfdata *reader);
size_t tally_perfdata_build_ids(const struct tally_perfdata *reader);
const struct tally_perfdata_build_id *tally_perfdata_build_id(const struct tally_perfdata *reader,
							      size_t index);

/*
 * Which records are handed out; at first all. Records that are not are passed over undecoded, which
 * makes a pass over the mappings and tasks of a large file cheap.
 */
#define TALLY_SELECT_SAMPLES (1u << 0)
#define TALLY_SELECT_OTHERS  (1u << 1)
void tally_perfdata_select(struct tally_perfdata *reader, unsigned int select);

/*
 * The next record in file order, decompressed; compressed carriers, attributes and features of pipe
 * mode are taken in and not handed out, every other record is. Returns 1, 0 at the end, -EBADMSG
 * when the file is corrupt or cut off at err->offset (everything before it has been handed out), or
 * the error of read(2). An error stays until a rewind. Memory does not grow with the file.
 */
int tally_perfdata_next(struct tally_perfdata *reader, struct tally_perfdata_record *record,
			struct tally_error *err);

/*
 * The same in time order, as the rounds of the file allow. A record without a time is handed out
 * when it is met; FINISHED_ROUND is not handed out. Do not mix with tally_perfdata_next() without
 * a rewind. Memory grows with the longest two rounds. After corruption, what was read before it is
 * handed out first, then the error.
 */
int tally_perfdata_next_ordered(struct tally_perfdata *reader, struct tally_perfdata_record *record,
				struct tally_error *err);

/* Back to the first record. -ESPIPE for a pipe. */
int tally_perfdata_rewind(struct tally_perfdata *reader, struct tally_error *err);

/* ---- writing ---- */

struct tally_perfdata_writer;

struct tally_perfdata_options {
	int zstd_level;		 /* 0: not compressed; 1..22, above that as 22 */
	const char *const *argv; /* the command line for the header, ended by NULL; NULL: none */
	int clockid;		 /* -1: the default clock */
};

/*
 * Starts a file at @path ("-": pipe mode on standard output; also for a path that is a pipe) for
 * events whose attrs are those of @events. Nothing is written before the first record. From then
 * on the file can be read at any moment: cut off by SIGKILL or a full disk, it can be read up to
 * the cut. The list may be freed afterwards; argv must live until the end.
 * Errors: those of open(2), -ENOMEM.
 */
int tally_perfdata_create(const char *path, const struct tally_events *events,
			  const struct tally_perfdata_options *options,
			  struct tally_perfdata_writer **writer, struct tally_error *err);

/*
 * Says that records with these ids are of event @event; adds to what was said before. -EINVAL after
 * the first write or for an event that is not in the list, -ENOMEM.
 */
int tally_perfdata_writer_ids(struct tally_perfdata_writer *writer, size_t event,
			      const uint64_t *ids, size_t nr_ids);

/*
 * Names a build-id for the header's table, any time before the end. The writer copies. -EINVAL when
 * it is longer than 20 bytes or the name than a record, -ENOMEM.
 */
int tally_perfdata_writer_build_id(struct tally_perfdata_writer *writer,
				   const struct tally_perfdata_build_id *build_id);

/* The times of the first and the last sample, for the header; may be left out. */
void tally_perfdata_writer_times(struct tally_perfdata_writer *writer, uint64_t first,
				 uint64_t last);

/*
 * Appends whole records, byte by byte as given; one may begin in one piece and end in the next.
 * One system call moves all pieces, a second one keeps the header true. Errors: -ENOSPC, -EDQUOT,
 * -EFBIG, -EIO (all records before the failure are kept), -EPIPE (ignore SIGPIPE to get it), -E2BIG
 * more ids of one event than pipe mode can say, -ENOMEM. An error is final: later calls repeat it.
 */
int tally_perfdata_write(struct tally_perfdata_writer *writer, const struct iovec *pieces,
			 int nr_pieces, struct tally_error *err);

/* Marks that all rings were drained once: PERF_RECORD_FINISHED_ROUND. Errors: of an earlier write.
 */
int tally_perfdata_writer_round(struct tally_perfdata_writer *writer, struct tally_error *err);

/* Bytes written so far: the size of the file, features not included before the end. */
uint64_t tally_perfdata_writer_bytes(const struct tally_perfdata_writer *writer);

/*
 * Writes the header features and closes. The object is released also when this fails; after an
 * earlier error it does what can be done and repeats that error.
 */
int tally_perfdata_finish(struct tally_perfdata_writer *writer, struct tally_error *err);

#ifdef __cplusplus
}
#endif

#endif
