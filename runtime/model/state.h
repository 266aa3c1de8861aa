/* SPDX-License-Identifier: MIT */
/* What a model consists of; the parts that compute it. */
#ifndef RUNTIME_MODEL_STATE_H
#define RUNTIME_MODEL_STATE_H

#include "runtime/model/model.h"
#include "runtime/model/predict.h"
#include "runtime/model/sets.h"

/* A piece of the trace goes through the model at a time: what is counted in 16 bits must not
 * overflow. */
enum { PIECE_WORDS = 256, MISSES_MAX = 512 };

_Static_assert((PIECE_WORDS + 1) * BLOCK_MAX_INSNS < 1 << 16, "");
_Static_assert((PIECE_WORDS + 1) * BLOCK_MAX_ACCESSES * 2 < 1 << 16, "");

enum miss_kind {
	MISS_FETCH,
	MISS_LOAD,
	MISS_STORE,
	MISS_FETCH_PAGE,
	MISS_LOAD_PAGE,
	MISS_STORE_PAGE
};

/* What was missed in the first level, in the order in which it was. */
struct miss {
	uint64_t key;  /* line or page */
	uint32_t when; /* in instructions */
	uint32_t kind;
};

enum { STREAMS = 32 };

/* Misses that go on line by line, in a page. */
struct stream {
	uint64_t last;	/* the line that was missed last */
	uint64_t ahead; /* the one that was prefetched last */
	int32_t step;	/* 1 or -1; 0: there was only one yet */
};

/* Waiting is counted in sixteenths of cycles. */
#define WAIT_UNIT 16

struct model {
	struct machine machine;

	struct near_sets l1i, l1d, itlb, dtlb;
	struct far_sets l2, llc, stlb;

	uint64_t fetched_page;

	unsigned int nr_misses;
	struct miss misses[MISSES_MAX];

	/* Since the beginning. */
	uint32_t insns;
	uint32_t last_memory; /* when memory was waited for last, in instructions */
	uint64_t slots;	      /* of a cycle, not counted yet */
	uint64_t front, back; /* cycles that were waited, not counted yet */
	uint64_t ref, bus;    /* what is left of a division */

	struct stream streams[STREAMS];

	struct predictor predictor;

	struct block after; /* the last record's successor; no accesses */
};

/* miss.c: what was missed nearest, further down. */
void model_miss(struct model *model, int64_t *counter);

#endif
