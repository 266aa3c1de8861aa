// SPDX-License-Identifier: MIT
/*
 * Records taken in piece by piece, beside the same records taken in as a whole: the counts must be
 * the same after each, and what has brought a counter to 0 is what the test finds by itself.
 */
#include "runtime/pmu/single.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "abi/machine.h"
#include "runtime/model/foresee.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/translate.h"

static uint64_t seed;

static uint32_t any(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % below);
}

/* ---- blocks ---- */

/* What an instruction is here is its length and how slow it is. */
static const struct {
	uint8_t bytes[6];
	uint8_t length, slots;
} insns[] = {
	{{0x90}, 1, 1},
	{{0x48, 0x89, 0xc0}, 3, 1},
	{{0x0f, 0x1f, 0x44, 0, 0}, 5, 1},
	{{0x48, 0xf7, 0xf1}, 3, 65}, /* div */
	{{0xf0, 0x48, 0x01, 0x07}, 4, 65},
};

enum { MOST_INSNS = 12, MOST_ACCESSES = 6, WORDS = 8, BLOCKS = 64 };

static uint8_t code[BLOCKS][BLOCK_MAX_LENGTH + INSN_MAX] __attribute__((aligned(64)));

struct made {
	struct block *block;
	uint64_t ips[MOST_INSNS];
};

/* Blocks, and the room for parts of them, which has to be near. */
enum { BLOCK_ROOM = 256 };

_Static_assert(sizeof(struct block) + MOST_ACCESSES * sizeof(struct block_access) <= BLOCK_ROOM,
	       "");
_Static_assert((size_t)SINGLE_ROOM <= BLOCK_ROOM, "");

static uint8_t *memory;

static struct made blocks[BLOCKS];

size_t linux_code(void *to, uint64_t from, size_t size)
{
	memcpy(to, (const void *)from, size);
	return size;
}

static struct block_access any_access(uint8_t insn)
{
	return (struct block_access){
		.word = (uint8_t)any(WORDS),
		.delta = (int32_t)any(256),
		.what = (uint8_t)(any(16) | (any(3) ? 0 : BLOCK_STORE)),
		.base = any(8) ? BLOCK_BASE_NONE : BLOCK_BASE_FS,
		.insn = (uint8_t)(insn | (any(5) ? 0 : BLOCK_MODIFIES)),
	};
}

/* A string of one operand or of two, which has the block to itself. */
static void make_string(struct block *block)
{
	block->nr_accesses = (uint8_t)(1 + any(2));
	for (unsigned int i = 0; i < block->nr_accesses; i++)
		block->accesses[i] = (struct block_access){
			.word = (uint8_t)(1 + 2 * i),
			.what = (uint8_t)(BLOCK_STRING | (i ? BLOCK_STORE : 0)),
		};
}

static void make_accesses(struct block *block, uint32_t nr_insns)
{
	for (uint8_t insn = 0; insn < nr_insns; insn++) {
		if (any(2) || block->nr_accesses == MOST_ACCESSES)
			continue;
		block->accesses[block->nr_accesses++] = any_access(insn);
	}
}

static void count_operands(struct block *block)
{
	/* Some operands' addresses cannot be told. */
	unsigned int loads = !any(8), stores = !any(8);

	for (unsigned int i = 0; i < block->nr_accesses; i++) {
		const struct block_access *a = &block->accesses[i];

		if (a->what & BLOCK_STORE)
			stores++;
		else
			loads++;
		stores += !(a->what & BLOCK_STORE) && a->insn & BLOCK_MODIFIES;
	}
	block->counts |=
		BLOCK_COUNT(loads, BLOCK_LOAD_OPERANDS) | BLOCK_COUNT(stores, BLOCK_STORE_OPERANDS);
}

static void make_block(unsigned int number)
{
	struct made *made = &blocks[number];
	struct block *block = (struct block *)(memory + number * BLOCK_ROOM);
	const uint32_t nr = 1 + any(MOST_INSNS);
	uint8_t *at = code[number];
	uint32_t slots = 0;

	made->block = block;
	block->pc = (uint64_t)at;
	block->words = WORDS;
	block->end = (uint8_t)any(BLOCK_RETURN + 1);
	for (uint32_t i = 0; i < nr; i++) {
		const unsigned int which = any(16) < 14 ? any(3) : 3 + any(2);

		made->ips[i] = (uint64_t)at;
		memcpy(at, insns[which].bytes, insns[which].length);
		at += insns[which].length;
		slots += insns[which].slots;
	}
	block->length = (uint16_t)(at - code[number]);
	block->cost = BLOCK_COST(slots, (block->pc + block->length - 1) / 64 - block->pc / 64 + 1);
	block->counts = BLOCK_COUNT(nr, BLOCK_INSTRUCTIONS) |
			BLOCK_COUNT(block->end != BLOCK_ON, BLOCK_BRANCHES);
	if (any(8))
		make_accesses(block, nr);
	else
		make_string(block);
	count_operands(block);
}

static uint32_t insns_of(const struct block *block)
{
	return block->counts & 0xffff;
}

/* ---- records ---- */

enum { FS_BASE = 0x7000000 };

/* Addresses that miss now and then. */
static void make_record(uint64_t *record, const struct block *block)
{
	record[0] = (uint64_t)block;
	for (unsigned int i = 1; i < WORDS; i++)
		record[i] = 0x10000000 + (any(4) ? any(1 << 14) : any(1 << 26));
	/* A string goes from one word to the next one, in both operands alike. */
	if (block->nr_accesses && block->accesses[0].what & BLOCK_STRING) {
		record[2] = record[1] + any(1000);
		record[4] = record[3] + (record[2] - record[1]);
	}
}

static uint64_t address_of(const uint64_t *record, const struct block_access *a)
{
	if (a->what & BLOCK_STRING)
		return record[a->word];
	return record[a->word] + (a->base ? FS_BASE : 0) + (uint64_t)(int64_t)a->delta;
}

/* ---- what is right ---- */

static bool counts(const struct block_access *a, unsigned int kind)
{
	const bool store = a->what & BLOCK_STORE;

	return kind == CORE_STORES ? store || a->insn & BLOCK_MODIFIES : !store;
}

/* The access that is the @left'th of @kind in the block; NULL: its address is not told. */
static const struct block_access *find_access(const struct block *block, unsigned int kind,
					      int64_t left)
{
	for (unsigned int i = 0; i < block->nr_accesses; i++)
		if (counts(&block->accesses[i], kind) && !--left)
			return &block->accesses[i];
	return NULL;
}

static void check_cause(const struct made *made, const uint64_t *record, unsigned int kind,
			int64_t left, const struct core_cause *cause)
{
	const uint32_t last = insns_of(made->block) - 1;
	const struct block_access *access;

	if (kind == CORE_INSTRUCTIONS) {
		assert_int_equal(cause->ip, made->ips[left - 1]);
	} else if (kind == CORE_LOADS || kind == CORE_STORES) {
		access = find_access(made->block, kind, left);
		assert_int_equal(cause->address, access ? address_of(record, access) : 0);
		assert_int_equal(cause->ip,
				 made->ips[access ? access->insn & ~BLOCK_MODIFIES : last]);
	} else if (kind == CORE_BRANCHES || kind == CORE_BRANCH_MISSES) {
		assert_int_equal(cause->ip, made->ips[last]);
	} else if (kind == CORE_L1D_LOAD_MISSES) {
		assert_true(cause->latency >= tly_machine_reference.l2_hit);
		assert_false(cause->source & PERF_MEM_S(LVL, L1));
	}
}

/* ---- what is foreseen ---- */

/* What @before has become is no more than that; and of what is missed there is nothing. */
static void check_foreseen(const struct model *model, const struct foreseen *sums,
			   const int64_t *before, const int64_t *now)
{
	for (unsigned int kind = 0; kind < CORE_HARDWARE_KINDS; kind++)
		assert_true(now[kind] - before[kind] <=
			    (int64_t)model_foreseen(model, sums, (enum core_kind)kind));
}

/* ---- all ---- */

static struct model *new_model(void)
{
	return model_make(calloc(1, model_size(&tly_machine_reference)), &tly_machine_reference);
}

static void the_same_counts_and_the_cause(void **state)
{
	static const unsigned int kinds[] = {
		CORE_INSTRUCTIONS,  CORE_LOADS,	 CORE_STORES,	       CORE_BRANCHES,
		CORE_BRANCH_MISSES, CORE_CYCLES, CORE_L1D_LOAD_MISSES, CORE_STALLED_BACKEND,
	};
	enum { NR_KINDS = sizeof(kinds) / sizeof(*kinds) };
	static unsigned int found[NR_KINDS];
	unsigned int nr_foreseen = 0, nr_predicted = 0;
	int64_t whole[64] = {0}, parts[64] = {0};
	struct model *model = new_model();
	struct single single = {
		.model = new_model(),
		.machine = &tly_machine_reference,
		.counter = parts,
		.fs_base = FS_BASE,
	};

	(void)state;
	seed = 0x9e3779b97f4a7c15;
	memory = calloc(BLOCKS + 1, BLOCK_ROOM);
	assert_non_null(memory);
	single.room = memory + BLOCKS * BLOCK_ROOM;
	for (unsigned int i = 0; i < BLOCKS; i++)
		make_block(i);
	for (unsigned int i = 0; i < 100000; i++) {
		const struct made *made = &blocks[any(BLOCKS)];
		const unsigned int which = any(NR_KINDS), kind = kinds[which];
		const int64_t left = 1 + any(6);
		const uint64_t next = any(2) ? blocks[any(BLOCKS)].block->pc
					     : made->block->pc + made->block->length;
		uint64_t record[WORDS];
		struct foreseen sums = {0};
		int64_t before[64];
		uint64_t branches;
		bool foreseen;

		make_record(record, made->block);
		whole[kind] = parts[kind] = -left;
		single.watched = CORE_KIND_BIT(kind);
		single.found = 0;
		memcpy(before, whole, sizeof(before));
		foreseen = model_foresee(model, record, made->block, FS_BASE, &sums);
		branches = sums.wrong;
		if (foreseen)
			model_foresee_branch(model, made->block, next, true, &sums);
		nr_foreseen += foreseen;
		nr_predicted += foreseen && sums.wrong < branches;
		model_run_part(model, record, made->block, next, FS_BASE, whole);
		if (foreseen)
			check_foreseen(model, &sums, before, whole);
		single_run(&single, made->block, record, next);
		assert_memory_equal(whole, parts, sizeof(whole));
		assert_int_equal(single.found, whole[kind] >= 0 ? single.watched : 0);
		if (!single.found)
			continue;
		found[which]++;
		check_cause(made, record, kind, left, &single.causes[kind]);
	}
	for (unsigned int i = 0; i < NR_KINDS; i++)
		assert_true(found[i] > 100);
	assert_true(nr_foreseen > 10000 && nr_predicted > 1000);
	free(memory);
	free(model);
	free(single.model);
}

/* A row of conditions, before any of them is taken in: what is foreseen is not wrong. */
static void rows_of_conditions(void **state)
{
	enum { ROW = 40, PLACES = 12 };
	unsigned int nr_sure = 0, nr_wrong = 0;
	int64_t counter[64] = {0};
	struct model *model = new_model();
	struct block *block = calloc(1, BLOCK_ROOM);

	(void)state;
	assert_non_null(block);
	block->end = BLOCK_CONDITIONAL;
	block->words = 1;
	block->length = 2;
	block->counts = BLOCK_COUNT(1, BLOCK_INSTRUCTIONS);
	for (unsigned int i = 0; i < 20000; i++) {
		uint64_t record[1] = {(uint64_t)block}, pcs[ROW], next[ROW];
		bool sure[ROW];
		struct foreseen sums = {0};
		/* some rows are those of a loop, some of anything */
		const unsigned int places = 1 + any(PLACES), noise = any(3) ? 1000 : 4;

		for (unsigned int k = 0; k < ROW; k++) {
			const unsigned int place = any(4) ? k % places : any(PLACES);
			const bool taken = (place % 3 != 0) ^ !any(noise);
			const uint64_t before = sums.wrong;

			/* places of the tables that are shared, too */
			pcs[k] = block->pc = 0x400000 + ((uint64_t)(place % 8) << 2) +
					     ((uint64_t)(place / 8) << 28);
			next[k] = block->pc + (taken ? 100 : 2);
			sums.wrong++;
			model_foresee_branch(model, block, next[k], !k, &sums);
			sure[k] = sums.wrong == before;
		}
		for (unsigned int k = 0; k < ROW; k++) {
			const int64_t before = counter[CORE_BRANCH_MISSES];

			block->pc = pcs[k];
			model_run_part(model, record, block, next[k], FS_BASE, counter);
			assert_true(!sure[k] || counter[CORE_BRANCH_MISSES] == before);
			nr_sure += sure[k];
			nr_wrong += counter[CORE_BRANCH_MISSES] != before;
		}
	}
	assert_true(nr_sure > 20000 * ROW / 4);
	assert_true(nr_wrong > 20000);
	free(block);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_counts_and_the_cause),
		cmocka_unit_test(rows_of_conditions),
	};

	return cmocka_run_group_tests_name("runtime/single", tests, NULL, NULL);
}
