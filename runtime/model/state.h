/* SPDX-License-Identifier: MIT */
/* What a model consists of; the parts that compute it. */
#ifndef RUNTIME_MODEL_STATE_H
#define RUNTIME_MODEL_STATE_H

#include "runtime/model/model.h"
#include "runtime/model/predict.h"
#include "runtime/model/sets.h"

/*
 * A piece of the trace at a time goes through the model in steps (run.c), each a short loop that
 * leaves lists for the next. What was counted in 16 bits must not overflow in a piece.
 */
enum {
	PIECE_RECORDS = 256,
	MISSES_MAX = 1024,
	MISSES_SLACK = 512, /* one record more; strings make room for themselves */
};

_Static_assert(PIECE_RECORDS *BLOCK_MAX_INSNS < 1 << 16, "");
_Static_assert(PIECE_RECORDS *BLOCK_MAX_ACCESSES * 2 < 1 << 16, "");

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
	uint64_t key; /* line or page */
	uint32_t at;  /* when: in accesses, roughly */
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

	/* Of the piece at hand. */
	uint64_t conditions[PIECE_RECORDS + 1]; /* behind << 1 | taken */
	unsigned int nr_conditions, nr_misses;
	struct miss misses[MISSES_MAX];

	/* Since the beginning. */
	uint32_t now;	      /* accesses */
	uint32_t last_memory; /* the access that last waited for memory */
	uint64_t slots;	      /* of a cycle, not counted yet */
	uint64_t front, back; /* cycles that were waited, not counted yet */
	uint64_t ref, bus;    /* what is left of a division */
	struct model_miss last_miss;

	struct stream streams[STREAMS];

	struct predictor predictor;

	struct block after; /* the last record's successor; no accesses */
};

/* miss.c: what was missed nearest, further down. */
void model_miss(struct model *model, int64_t *counter);

#endif
