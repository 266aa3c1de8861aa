/* SPDX-License-Identifier: MIT */
/*
 * Sampling: the ring buffers of events, read one by one or together in time order.
 *
 *	tally_ring	one mmap of one event descriptor (ABI: mmap.*)
 *	tally_sampler	the rings of a whole tally_counters: poll, drain, order, account for losses
 *
 * A ring or sampler is used by one thread at a time.
 */
#ifndef TALLY_SAMPLER_H
#define TALLY_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tally/counter.h>
#include <tally/error.h>
#include <tally/record.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally_ring;

/* tally_ring_map() flags */
#define TALLY_RING_OVERWRITE (1u << 0) /* map read-only: the newest data wins (mmap.overwrite) */
#define TALLY_RING_BACKWARD  (1u << 1) /* the event has attr.write_backward */

/*
 * Maps @pages (a power of two) data pages of @fd. Errors: -EPERM over the mlock budget (the remedy
 * says how much is allowed and how to raise it), -EINVAL, -ENOMEM. Unmap with tally_ring_unmap().
 */
int tally_ring_map(int fd, size_t pages, unsigned int flags, struct tally_ring **ring,
		   struct tally_error *err);
void tally_ring_unmap(struct tally_ring *ring);

/*
 * Maps an AUX area of @pages behind the ring of @fd (ABI: mmap.aux_*); @overwrite is a snapshot
 * buffer. Errors: -EOPNOTSUPP the event's unit has no AUX data, and those of tally_ring_map().
 */
int tally_ring_map_aux(struct tally_ring *ring, int fd, size_t pages, bool overwrite,
		       struct tally_error *err);

/*
 * What may be read now, as one or two pieces without copying: a record may continue from the first
 * piece into the second. Returns the bytes in both. Of a forward ring the oldest record comes first
 * and the data stays until tally_ring_consume(). Of a backward ring the newest comes first; whole
 * records only, down to the last reading. Pause the output of overwrite rings while you read them
 * (tally_counter_pause_output(), tally_sampler_pause()): nothing else keeps the kernel from writing
 * there.
 */
struct tally_span {
	const void *data;
	size_t size;
};
size_t tally_ring_peek(struct tally_ring *ring, struct tally_span piece[2]);
/* Gives back the first @bytes of what was peeked; of a backward ring, all of it. */
void tally_ring_consume(struct tally_ring *ring, size_t bytes);

/* The same for the AUX area; an overwrite area is given whole, oldest byte first. */
size_t tally_ring_peek_aux(struct tally_ring *ring, struct tally_span piece[2]);
void tally_ring_consume_aux(struct tally_ring *ring, size_t bytes);

/*
 * The next whole record, contiguous (a wrapped one is copied to the ring's own bounce buffer),
 * decoded with @format. Of a backward ring the oldest record comes first too: the first call looks
 * at all that is there (pause the output before it), and 0 ends that snapshot.
 *
 * Returns 1; 0 when there is nothing more; -EBADMSG when data is corrupt: what cannot be read was
 * dropped and counted, and reading may go on; -ENOMEM. The record is valid until the next call; its
 * space is given back to the kernel then.
 */
int tally_ring_next(struct tally_ring *ring, const struct tally_record_format *format,
		    struct tally_record *record, struct tally_error *err);

/* Bytes dropped because they could not be read: corrupt, or overwritten too early. */
uint64_t tally_ring_dropped(const struct tally_ring *ring);

struct tally_sampler_options {
	size_t pages;	  /* data pages per ring, a power of two; 0: what the mlock budget gives */
	bool overwrite;	  /* map rings of events with attr.write_backward to be overwritten */
	size_t aux_pages; /* 0: no AUX area */
	bool ordered;	  /* hand records out in time order */
	int signal;	  /* not 0: ask for this signal (F_SETSIG) at wakeups ... */
	pid_t signal_tid; /* ... sent to this thread (F_SETOWN_EX) */
};

/* What passed through the rings. */
struct tally_sampler_stats {
	uint64_t records, samples, bytes;
	uint64_t first_time, last_time; /* of samples; 0: none had a time that was looked at */
	uint64_t lost;	       /* samples that the kernel says it lost (LOST, LOST_SAMPLES) */
	uint64_t throttled;    /* THROTTLE records seen */
	uint64_t corrupt;      /* bytes dropped */
	uint64_t out_of_order; /* records that came later than their round allowed */
};

/*
 * Adds to @stats what the records of a peeked ring are, from their headers alone, for callers that
 * move bytes. @time_at: bytes from the start of a sample's body to its time, where
 * tally_record_time_position() says, or SIZE_MAX to leave the times out. Returns the size of the
 * whole, well-formed records at the start of the pieces: what follows them can never be read and is
 * counted as corrupt.
 */
size_t tally_ring_scan(const struct tally_span piece[2], size_t time_at,
		       struct tally_sampler_stats *stats);

struct tally_sampler;

/*
 * Maps the rings that @counters write to and redirects the events of a cell into them (ABI:
 * ioctl.set_output): one ring for each processor, which all tasks share, or one for each task where
 * events are not bound to a processor; and apart from those, the same again for events with
 * attr.write_backward. Events must have been opened with sample_id_all and PERF_SAMPLE_IDENTIFIER
 * when there are several, and with PERF_SAMPLE_TIME for options.ordered.
 * @counters must outlive the sampler; @options may be NULL: all zero.
 *
 * Errors: -EINVAL the attrs do not allow what was asked, -EPERM over the mlock budget, -ENOMEM,
 * those of tally_ring_map_aux().
 */
int tally_sampler_new(struct tally_counters *counters, const struct tally_sampler_options *options,
		      struct tally_sampler **sampler, struct tally_error *err);
void tally_sampler_free(struct tally_sampler *sampler);

/*
 * Waits until a ring passes its wakeup mark, all targets have ended, or @timeout_ms passes (-1: for
 * ever). Returns 1 when there may be something to read, 0 on timeout, -EPIPE when every target is
 * gone (what the rings still hold can be read), -EINTR.
 */
int tally_sampler_wait(struct tally_sampler *sampler, int timeout_ms);

/*
 * A descriptor that polls readable when tally_sampler_wait() would return at once. Polling takes
 * the rings' wakeups: afterwards read the rings whatever tally_sampler_wait(sampler, 0) returns.
 */
int tally_sampler_fd(const struct tally_sampler *sampler);

/*
 * Stops the kernel from writing to the overwrite rings, or lets it write again. All are tried;
 * returns 0 or the negative errno value of one that failed.
 */
int tally_sampler_pause(struct tally_sampler *sampler, bool pause);

/*
 * The next record of any ring with the index of its event; in time order with options.ordered,
 * where a record is held back until no ring can hold an earlier one (@flush: hand out all, at the
 * end). Returns as tally_ring_next(); the record is valid until the next call.
 */
int tally_sampler_next(struct tally_sampler *sampler, bool flush, struct tally_record *record,
		       size_t *event, struct tally_error *err);

/* The rings, for callers that move bytes without looking at them. */
size_t tally_sampler_rings(const struct tally_sampler *sampler);
/* They stay the sampler's; @index has to be below tally_sampler_rings(). */
struct tally_ring *tally_sampler_ring(const struct tally_sampler *sampler, size_t index);
/* Whether ring @index is that of events with attr.write_backward. */
bool tally_sampler_ring_is_backward(const struct tally_sampler *sampler, size_t index);

/* Counts only what passed through tally_sampler_next(). */
void tally_sampler_stats(const struct tally_sampler *sampler, struct tally_sampler_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
