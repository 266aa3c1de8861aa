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

/* Maps an AUX area of @pages behind the ring (ABI: mmap.aux_*); @overwrite is a snapshot buffer. */
int tally_ring_map_aux(struct tally_ring *ring, size_t pages, bool overwrite,
		       struct tally_error *err);

/*
 * What may be read now, as one or two pieces without copying: a record may continue from the first
 * piece into the second. Returns the bytes in both. For a forward ring the data stays until
 * tally_ring_consume(); for a backward ring pause the output first (tally_counter_pause_output()).
 */
struct tally_span {
	const void *data;
	size_t size;
};
size_t tally_ring_peek(struct tally_ring *ring, struct tally_span piece[2]);
void tally_ring_consume(struct tally_ring *ring, size_t bytes);
size_t tally_ring_peek_aux(struct tally_ring *ring, struct tally_span piece[2]);
void tally_ring_consume_aux(struct tally_ring *ring, size_t bytes);

/*
 * The next whole record, contiguous (a wrapped one is copied to the ring's own bounce buffer),
 * decoded with @format. Returns 1; 0 when the ring is empty; -EBADMSG when the data is corrupt (the
 * rest of what is pending is dropped and counted). The record is valid until the next call; its
 * space is given back to the kernel then.
 */
int tally_ring_next(struct tally_ring *ring, const struct tally_record_format *format,
		    struct tally_record *record, struct tally_error *err);

struct tally_sampler_options {
	size_t pages; /* data pages per ring, a power of two; 0: as many as the budget allows */
	unsigned int ring_flags; /* TALLY_RING_* */
	size_t aux_pages;	 /* 0: no AUX area */
	bool ordered;		 /* hand records out in time order (needs PERF_SAMPLE_TIME) */
	int signal;		 /* not 0: ask for this signal (F_SETSIG) at wakeups ... */
	pid_t signal_tid;	 /* ... sent to this thread (F_SETOWN_EX) */
};

struct tally_sampler_stats {
	uint64_t records, samples, bytes;
	uint64_t lost;	       /* samples that the kernel says it lost (LOST, LOST_SAMPLES) */
	uint64_t throttled;    /* THROTTLE records seen */
	uint64_t corrupt;      /* bytes dropped */
	uint64_t out_of_order; /* records that came later than their round allowed */
};

struct tally_sampler;

/*
 * Maps one ring for each (task, cpu) of @counters and redirects the other events of that cell into
 * it (ABI: ioctl.set_output). @counters must outlive the sampler; events must have been opened with
 * PERF_SAMPLE_IDENTIFIER when there are several.
 */
int tally_sampler_new(struct tally_counters *counters, const struct tally_sampler_options *options,
		      struct tally_sampler **sampler, struct tally_error *err);
void tally_sampler_free(struct tally_sampler *sampler);

/*
 * Waits until a ring passes its wakeup mark, all targets have ended, or @timeout_ms passes (-1: for
 * ever). Returns 1 when there is something to read, 0 on timeout, -EPIPE when every target is gone
 * and every ring is drained, -EINTR.
 */
int tally_sampler_wait(struct tally_sampler *sampler, int timeout_ms);

/*
 * The next record of any ring with the index of its event; in time order with options.ordered,
 * where a record is held back until no ring can hold an earlier one (@flush: hand out all, at the
 * end). Returns 1, 0 when nothing is ready, or -EBADMSG.
 */
int tally_sampler_next(struct tally_sampler *sampler, bool flush, struct tally_record *record,
		       size_t *event, struct tally_error *err);

/* The rings, for callers that move bytes without looking at them. */
size_t tally_sampler_rings(const struct tally_sampler *sampler);
struct tally_ring *tally_sampler_ring(const struct tally_sampler *sampler, size_t index);
/* Descriptor to poll for ring @index, and the processor or task that it serves. */
int tally_sampler_ring_fd(const struct tally_sampler *sampler, size_t index);

/* Counts only what passed through tally_sampler_next(). */
void tally_sampler_stats(const struct tally_sampler *sampler, struct tally_sampler_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
