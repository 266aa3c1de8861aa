/* SPDX-License-Identifier: MIT */
/*
 * The state of one ring, apart from how it came to be mapped: tests build it over plain memory with
 * a head, a tail and records of their own making.
 */
#ifndef LIB_SAMPLER_RING_H
#define LIB_SAMPLER_RING_H

#include <tally/sampler.h>

/*
 *	 page                 data                                 aux
 *	+--------------------+------------------------------------+- - - - - - - - -+
 *	| head, tail, clock  |  size bytes, a power of two        |  aux_size bytes |
 *	+--------------------+------------------------------------+- - - - - - - - -+
 *
 * Positions are 64-bit counts of bytes that wrap on their own; the place in the data is the
 * position modulo size. A forward ring is read from tail up to head. In a backward ring the head
 * counts down from 0: the newest record starts at head, the oldest ends at tail, which is where
 * head stood at the last reading (or one size above head, once that much has been overwritten).
 */
struct tally_ring {
	struct perf_event_mmap_page *page;
	const unsigned char *data;
	size_t size;
	unsigned int flags;
	uint64_t tail;
	size_t held; /* bytes of the record handed out last, given back at the next call */
	uint64_t dropped;
	unsigned char *bounce; /* TLY_RECORD_MAX bytes, made when first needed */

	/* Backward: where the records of this reading start, newest first. */
	uint64_t *starts;
	size_t nr_starts, max_starts;
	uint64_t snapshot_head, snapshot_end;
	size_t snapshot_torn; /* bytes at its old end that are no records */
	bool in_snapshot;

	const unsigned char *aux;
	size_t aux_size;
	uint64_t aux_tail;
	bool aux_overwrite;
};

/* A record's size is a u16, and a multiple of 8 (ABI: record.header.size). */
#define TLY_RECORD_MAX 65536

void tly_ring_init(struct tally_ring *ring, struct perf_event_mmap_page *page, const void *data,
		   size_t size, unsigned int flags);
/* Frees what reading has allocated; the memory of page and data is the caller's. */
void tly_ring_release(struct tally_ring *ring);

/* Whether a record of @size may start where @available bytes are left. */
bool tly_record_size_ok(size_t size, size_t available);

/*
 * Gives the record handed out before back to the kernel and stores the next one, contiguous, in
 * *@record, if it starts before position @limit (forward rings; see tly_ring_head()). Returns 1; 0
 * when there is none; -EBADMSG when the data is corrupt, which has then been dropped; -ENOMEM.
 */
int tly_ring_fetch(struct tally_ring *ring, uint64_t limit, struct tally_span *record,
		   struct tally_error *err);

/* Decodes a record that was fetched. Returns 1, or -EBADMSG: this record is dropped. */
int tly_ring_decode(struct tally_ring *ring, const struct tally_record_format *format,
		    struct tally_span raw, struct tally_record *record, struct tally_error *err);

/* Counts a sample. @time is 0 when it is not known. */
static inline void tly_stats_sample(struct tally_sampler_stats *stats, uint64_t time)
{
	stats->samples++;
	if (time && (!stats->first_time || time < stats->first_time))
		stats->first_time = time;
	if (time > stats->last_time)
		stats->last_time = time;
}

/* Up to where records are complete now, and where the next one to be fetched starts. */
uint64_t tly_ring_head(const struct tally_ring *ring);
uint64_t tly_ring_position(const struct tally_ring *ring);

#endif
