/* SPDX-License-Identifier: MIT */
/*
 * Putting bytes where they will be executed, or, to find out what bytes that are there already
 * stand for, into a buffer (recover.c).
 */
#ifndef RUNTIME_TRANSLATE_EMIT_H
#define RUNTIME_TRANSLATE_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/translate/cache.h"
#include "runtime/translate/count.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/filter.h"
#include "runtime/translate/kept.h"
#include "runtime/translate/trace.h"
#include "runtime/translate/translate.h"

enum where {
	AT_PC,	   /* where state.pc says */
	AT_TARGET, /* where thread->target says */
	AT_STACK,  /* where the word at the top of the stack says, to be taken off */
};

enum spill {
	SPILL_RCX = 1,
	SPILL_RDX = 2,
	SPILL_RAX = 4,
	SPILL_FAR = 8,	      /* state.far is in the slot of rax */
	SPILL_FLAGS = 16,     /* in ax, by lahf and seto */
	SPILL_LOW_FLAGS = 32, /* in ah, by lahf */
};

/*
 * How to get from the processor's registers at some byte of emitted code to the program's: where
 * the program is, which of its registers are in the thread's slots, what to add to rsp.
 */
struct state {
	uint64_t pc;
	uint8_t where;
	uint8_t spills;
	uint8_t far;
	int8_t rsp;
	uint8_t held[2]; /* as in struct trace */
	bool done;  /* the instruction at hand has been executed, though the program is at it */
	bool begun; /* so has the fragment's first one */
	struct counts counts; /* what the program has done and not counted yet */
};

/* What a call goes through on its way to its target; emitted behind the fragment. */
struct thunk {
	uint8_t *call; /* behind its rel32 */
	uint64_t pc;
	uint64_t address; /* of the return */
	uint64_t target;
	struct counts counts; /* of the call */
	unsigned int gone;    /* count_near.c */
};

#define THUNK_INDIRECT 1 /* for a target in thread->target; no call has this one */

/* What is kept of a fragment until it is published: where its instructions are and its exits. */
struct draft {
	struct position {
		uint64_t pc;
		uint32_t offset;
		uint16_t level; /* of an entry there, */
		bool even;	/* if nothing is left to be done there for who enters */
	} insns[96];
	struct draft_exit exits[FRAGMENT_EXITS];
};

/* Of all lists how long they are is said elsewhere: nobody clears them for each fragment. */
struct lists {
	struct thunk thunks[16];
	uint8_t *waiting[24]; /* behind their rel8, the first farthest away */
	struct near near[COUNT_NEAR_MAX];
	struct trace_open_end open_ends[2 * BLOCK_MAX_WORDS];
	struct trace_header headers[96];
	struct filter_site sites[FILTER_SITES];
};

struct builder {
	struct cache *cache;
	uint8_t *at;	/* where the next byte goes */
	intptr_t shift; /* it will be executed at at + shift: 0 but for a rehearsal */

	/* The instruction at hand. */
	uint64_t pc;
	uint64_t source_end; /* behind it, and all before it */
	const uint8_t *code; /* where it can be read */
	uint8_t *begin;	     /* where it begins in the cache, with all that comes before it */
	struct insn insn;

	struct fragment *fragment;
	uint64_t marks[COUNT_MARKS]; /* enum count_mark, a bit for each instruction */
	uint64_t pages[KEPT_PAGES];  /* on whose code it depends */
	unsigned int nr_pages;
	unsigned int nr_insns;
	unsigned int limit; /* as many at most */
	uint32_t pad;	    /* where the last pad begins */
	uint8_t theirs;	    /* vector registers that are the program's at the moment: vectors.h */
	struct count count;
	struct trace trace;
	unsigned int nr_sites;	   /* of filters, */
	struct filter_known known; /* and what they know */

	struct draft *draft; /* NULL in a rehearsal */
	struct lists *lists;
	unsigned int nr_exits;

	/* Of calls: what is to come at the end, and pads without a way to a miss. */
	unsigned int nr_thunks, nr_waiting;
	uint8_t *miss; /* the last way, or NULL */

	/* Of a rehearsal: the address in the cache that is asked about, and the answer so far. */
	uint64_t asked;
	struct state state;
	uint64_t likewise; /* or an address where it is the same; 0: none */

	/* Where the program's code can be read; see fetch.c. */
	struct code_range range;
	const uint8_t *copy; /* of the code from fragment->pc on; NULL: it is read in place */
	uint32_t copied;     /* bytes in it */
	uint8_t window[32];
};

/* Where the next byte will be executed. */
static inline uint64_t here(const struct builder *b)
{
	return (uint64_t)b->at + b->shift;
}

/* The same as an offset in the cache, as fragments and entries have it. */
static inline uint32_t offset_here(const struct builder *b)
{
	return here(b) - (uint64_t)b->cache->lookup.code;
}

/* From here on the program's state is as told. */
static inline void mark(struct builder *b, struct state state)
{
	if (__builtin_expect(b->asked != 0, 0) && here(b) <= b->asked) {
		state.begun = b->state.begun || state.where != AT_PC || state.done ||
			      state.pc != b->fragment->pc;
		b->state = state;
		b->state.counts = count_state(b, &state);
		trace_state(b, &b->state);
	}
}

/* Whoever is beyond this, and at the fragment's first instruction, has not executed it. */
static inline void mark_not_begun(struct builder *b)
{
	if (here(b) <= b->asked)
		b->state.begun = false;
}

static inline void mark_pc(struct builder *b, uint64_t pc, uint8_t spills)
{
	mark(b, (struct state){.pc = pc, .spills = spills});
}

#define EMIT(b, ...)                                                                               \
	do {                                                                                       \
		static const uint8_t bytes_[] = {__VA_ARGS__};                                     \
                                                                                                   \
		__builtin_memcpy((b)->at, bytes_, sizeof(bytes_));                                 \
		(b)->at += sizeof(bytes_);                                                         \
	} while (0)

static inline void emit8(struct builder *b, uint8_t value)
{
	*b->at++ = value;
}

static inline void emit32(struct builder *b, uint32_t value)
{
	__builtin_memcpy(b->at, &value, 4);
	b->at += 4;
}

static inline void emit64(struct builder *b, uint64_t value)
{
	__builtin_memcpy(b->at, &value, 8);
	b->at += 8;
}

static inline bool fits32(int64_t value)
{
	return value == (int32_t)value;
}

/* A rel32 or RIP-relative disp32 at the end of an instruction. Emitted code is within reach. */
static inline void emit_relative(struct builder *b, uint64_t target)
{
	emit32(b, (uint32_t)(target - (here(b) + 4)));
}

/* Whether such a disp32 reaches @target with @more bytes before its end. */
static inline bool reaches(const struct builder *b, uint64_t target, unsigned int more)
{
	return fits32((int64_t)(target - (here(b) + more)));
}

/* The middle of an instruction on a member of the thread, with an absolute disp32:
 *	65 48 OP MODRM(reg, 100) SIB(25) disp32
 * Where comments say %gs it may be %fs: runtime/segment.h.
 */
static inline void emit_gs(struct builder *b, uint8_t opcode, enum reg reg, uint32_t member)
{
	const uint8_t head[] = {segment_prefix, 0x48 | (reg & 8 ? 4 : 0), opcode,
				0x04 | (reg & 7) << 3, 0x25};

	__builtin_memcpy(b->at, head, sizeof(head));
	b->at += sizeof(head);
	emit32(b, member);
}

/* mov %reg, %gs:member */
static inline void emit_spill(struct builder *b, enum reg reg, uint32_t member)
{
	emit_gs(b, 0x89, reg, member);
}

/* movl, of both halves: no register is needed. */
static inline void emit_spill_constant(struct builder *b, uint64_t value, uint32_t member)
{
	for (unsigned int half = 0; half < 2; half++) {
		emit8(b, segment_prefix);
		EMIT(b, 0xc7, 0x04, 0x25);
		emit32(b, member + 4 * half);
		emit32(b, (uint32_t)(value >> 32 * half));
	}
}

/* mov %gs:member, %reg */
static inline void emit_fill(struct builder *b, enum reg reg, uint32_t member)
{
	emit_gs(b, 0x8b, reg, member);
}

/* lea DISP(%base, %index, scale), %to */
static inline void emit_lea_of(struct builder *b, enum reg to, enum reg base, enum reg index,
			       uint8_t scale, int32_t disp)
{
	const bool narrow = disp == (int8_t)disp;

	emit8(b, 0x48 | (to & 8 ? 4 : 0) | (index & 8 ? 2 : 0) | (base & 8 ? 1 : 0));
	emit8(b, 0x8d);
	emit8(b, (narrow ? 0x40 : 0x80) | (to & 7) << 3 | 4);
	emit8(b, scale << 6 | (index & 7) << 3 | (base & 7));
	if (narrow)
		emit8(b, (uint8_t)disp);
	else
		emit32(b, (uint32_t)disp);
}

/*
 * Whatever is patched while threads execute it must not cross a cache line, so that they see it
 * before or after. Before an instruction with a rel32 behind @opcode bytes.
 */
static inline void align_patch(struct builder *b, unsigned int opcode)
{
	static const uint8_t nops[4][4] = {{0}, {0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}};
	const unsigned int offset = (here(b) + opcode) & 63;

	if (__builtin_expect(offset > 60, 0)) {
		__builtin_memcpy(b->at, nops[64 - offset], 4);
		b->at += 64 - offset;
	}
}

#endif
