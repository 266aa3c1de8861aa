/* SPDX-License-Identifier: MIT */
/* What a model consists of; the parts that compute it. */
#ifndef RUNTIME_MODEL_STATE_H
#define RUNTIME_MODEL_STATE_H

#include "runtime/model/compile.h"
#include "runtime/model/far.h"
#include "runtime/model/model.h"
#include "runtime/model/near.h"
#include "runtime/model/offsets.h"
#include "runtime/model/predict.h"
#include "runtime/model/scan.h"

enum { MISSES_MAX = 512 };

/*
 * Sums of one run, in registers while it lasts: enter.S says which. None gets into the next one,
 * since a run has at most MODEL_RECORDS records.
 */
enum { SUM_INSTRUCTIONS, SUM_LINES, SUM_BRANCHES, SUM_STEPS, SUMS };
enum { SUM_LOADS = 19 };				/* in SUM_INSTRUCTIONS */
enum { SUM_CONDITIONS = 14, SUM_STORES = 27 };		/* in SUM_LINES */
enum { SUM_TAKEN = 0, SUM_JUMPS = 13, SUM_CALLS = 26 }; /* in SUM_BRANCHES: taken conditions */

enum { MODEL_RECORDS = MODEL_MAX_WORDS };

_Static_assert(MODEL_RECORDS *BLOCK_MAX_INSNS < 1 << SUM_LOADS, "");
_Static_assert(MODEL_RECORDS * 2 < 1 << SUM_CONDITIONS, "lines");
_Static_assert(MODEL_RECORDS < 1 << (SUM_STORES - SUM_CONDITIONS), "conditions");
_Static_assert(MODEL_RECORDS < 1 << (SUM_JUMPS - SUM_TAKEN), "");
_Static_assert(MODEL_RECORDS < 1 << (SUM_CALLS - SUM_JUMPS), "");
_Static_assert(MODEL_RECORDS * 0xffffUL < 1UL << PREDICT_WRONG, "");

enum miss_kind { MISS_FETCH, MISS_LOAD, MISS_STORE, MISS_KINDS };

/* A line that was missed in the first level; they are kept in the order in which they were. */
struct miss {
	uint64_t line;
	uint32_t when; /* in instructions */
	uint32_t kind;
};

/* Where it was. A load that waits for memory while another one does is told apart. */
enum level { LEVEL_L2, LEVEL_LLC, LEVEL_MEMORY, LEVEL_MEMORY_TOO, LEVELS };

enum { STREAMS = 32 };

/* Misses that go on line by line, in a page. */
struct stream {
	uint64_t last;	/* the line that was missed last */
	uint64_t ahead; /* the one that was prefetched last */
	int32_t step;	/* 1 or -1; 0: there was only one yet */
};

/* Waiting is counted in sixteenths of cycles. */
#define WAIT_UNIT 16

/* Slots of the first level. */
enum { DATA_SLOTS = MODEL_DATA_SLOTS, CODE_SLOTS = 16384 };

/* Code compares the upper half of a slot with a constant: the rest of the key has chosen it. */
_Static_assert(CODE_SLOTS >= 1 << (32 - NEAR_PLACE_BITS), "");

struct model {
	/* What compiled blocks call and know: offsets.h. */
	uint64_t time; /* the next one, of uses in the first level; see near.h */
	void (*leave)(void), (*call_fetch)(void), (*call_access)(void), (*call_target)(void);
	uint64_t history; /* of conditions, newest lowest; 1: taken */
	uint64_t sums[SUMS];
	uint64_t fs_base;
	void (*call_line)(void);
	uint64_t *near_slots; /* of data */
	uint64_t indirect;    /* branches, in this run */
	uint32_t ordered;     /* neighbouring lines are in one set, or their pages are */
	struct predictor predictor;

	uint64_t extra_slots; /* of issue, beside one for each instruction */
	uint64_t wrong;	      /* predictions of targets and returns */
	uint32_t depth;	      /* of calls, when the run began */

	int64_t *counter;
	uint8_t vectors[16 * SCAN_VECTORS]; /* of the program, during a run */

	struct machine machine;
	struct near code, data;
	struct far_sets l2, llc, stlb;

	unsigned int nr_misses;
	struct miss misses[MISSES_MAX];
	uint32_t found[MISS_KINDS][LEVELS]; /* of them, in one run */

	/* Since the beginning. */
	uint32_t insns;
	uint32_t last_memory; /* when memory was waited for last, in instructions */
	uint64_t slots;	      /* of a cycle, not counted yet */
	uint64_t front, back; /* cycles that were waited, not counted yet */
	uint64_t ref, bus;    /* what is left of a division */

	struct stream streams[STREAMS];

	/* Of lines in the first level: as many as it has are used. */
	_Alignas(64) uint64_t code_times[NEAR_MAX_WAYS], data_times[NEAR_MAX_WAYS];

	uint64_t code_slots[CODE_SLOTS];
	uint64_t data_slots[DATA_SLOTS];
};

/* Code takes the place of a time from the lower 16 bits of a slot, and knows by their mask that
 * there is nothing above. */
_Static_assert(offsetof(struct model, code_slots) <= sizeof(uint64_t) * MODEL_SLOT_MASK, "");
_Static_assert(MODEL_SLOT_MASK <= 0xffff && MODEL_PLACE_BITS == NEAR_PLACE_BITS, "");
_Static_assert(MODEL_TICK == NEAR_TICK, "");

_Static_assert(offsetof(struct model, time) == 0, "where what is in no slot is used");
_Static_assert(offsetof(struct model, leave) == MODEL_LEAVE, "");
_Static_assert(offsetof(struct model, call_fetch) == MODEL_FETCH, "");
_Static_assert(offsetof(struct model, call_access) == MODEL_ACCESS, "");
_Static_assert(offsetof(struct model, call_target) == MODEL_TARGET, "");
_Static_assert(offsetof(struct model, time) == MODEL_TIME, "");
_Static_assert(offsetof(struct model, history) == MODEL_HISTORY, "");
_Static_assert(offsetof(struct model, sums) == MODEL_SUMS, "");
_Static_assert(offsetof(struct model, fs_base) == MODEL_FS, "");
_Static_assert(offsetof(struct model, call_line) == MODEL_LINE, "");
_Static_assert(offsetof(struct model, near_slots) == MODEL_SLOTS, "");
_Static_assert(offsetof(struct block_head, pc) == MODEL_HEAD_PC, "");
_Static_assert(offsetof(struct model, indirect) == MODEL_INDIRECT, "");
_Static_assert(offsetof(struct model, ordered) == MODEL_ORDERED, "");
_Static_assert(offsetof(struct model, predictor.path) == MODEL_PATH, "");
_Static_assert(offsetof(struct model, predictor.spread_branch) == MODEL_SPREAD_BRANCH, "");
_Static_assert(offsetof(struct model, predictor.spread_path) == MODEL_SPREAD_PATH, "");
_Static_assert(offsetof(struct model, predictor.depth) == MODEL_DEPTH, "");
_Static_assert(offsetof(struct model, predictor.targets) == MODEL_TARGETS, "");
_Static_assert(offsetof(struct model, predictor.last) == MODEL_LAST, "");
_Static_assert(offsetof(struct model, predictor.sure) == MODEL_SURE, "");
_Static_assert(offsetof(struct model, predictor.by_history) == MODEL_BY_HISTORY, "");
_Static_assert(MODEL_TARGET_BITS == PREDICT_TARGET_BITS, "");
_Static_assert(MODEL_SURE_MOST == PREDICT_SURE && MODEL_PATH_SHIFT == PREDICT_PATH_SHIFT, "");

/* enter.S */
void model_enter(struct model *model, const uint64_t *trace);
void model_leave(void), model_call_fetch(void), model_call_line(void), model_call_access(void),
	model_call_target(void);

/* run.c: called from there. @sum is that of instructions, so far in this run. */
void model_fetch(struct model *m, uint64_t line);
void model_access(struct model *m, const uint64_t *record, uint32_t which, uint64_t sum);
void model_line(struct model *m, uint64_t line, uint32_t which, uint64_t sum);
void model_target(struct model *m, uint32_t behind, uint32_t pc);

/* Which accesses of a block go together. */
#define ACCESSES(first, nr)    ((first) | (uint32_t)(nr) << 8)
#define ACCESSES_FIRST(which)  ((which)&0xff)
#define ACCESSES_NUMBER(which) ((which) >> 8 & 0xff)
#define ACCESSES_STORE	       0x10000u /* the first one is a store */

/* miss.c: what was missed nearest, further down. Lines are gone through together, */
void model_miss(struct model *model);
/* and their sum is counted at the end of a run. */
void model_count_misses(struct model *model);
void model_miss_page(struct model *model, uint64_t page, enum miss_kind kind);

#endif
