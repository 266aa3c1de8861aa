// SPDX-License-Identifier: MIT
/*
 * The model against one that is written down as plainly as can be: caches that search all their
 * lines and keep the time of each use, in one pass, access by access, without lists.
 */
#include "runtime/model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "abi/machine.h"
#include "runtime/model/state.h"

/* ---- random numbers, the same each time ---- */

static uint64_t seed;

static uint64_t any(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % below;
}

/* ---- the plain model ---- */

struct line {
	uint64_t key, used;
};

struct plain_cache {
	struct machine_cache is;
	struct line lines[64 * 16];
	uint64_t time;
};

static struct plain_cache l1i, l1d, l2, llc, itlb, dtlb, stlb;

static bool use(struct plain_cache *cache, uint64_t key)
{
	struct line *set = &cache->lines[key % cache->is.sets * cache->is.ways], *oldest = set;

	for (uint32_t i = 0; i < cache->is.ways; i++) {
		if (set[i].used && set[i].key == key) {
			set[i].used = ++cache->time;
			return true;
		}
		if (set[i].used < oldest->used)
			oldest = &set[i];
	}
	*oldest = (struct line){key, ++cache->time};
	return false;
}

static int64_t expected[64];

static void plain_far(uint64_t line, enum core_kind kind, enum core_kind misses)
{
	if (l2.is.sets) {
		expected[CORE_L2_REFERENCES]++;
		if (use(&l2, line))
			return;
		expected[CORE_L2_MISSES]++;
	}
	expected[CORE_LLC_REFERENCES]++;
	if (kind != CORE_KINDS)
		expected[kind]++;
	if (use(&llc, line))
		return;
	expected[CORE_LLC_MISSES]++;
	if (kind != CORE_KINDS)
		expected[misses]++;
}

static uint64_t last_page;

static void plain_fetch(uint64_t pc, uint64_t length)
{
	for (uint64_t line = pc / 64; line <= (pc + length - 1) / 64; line++) {
		expected[CORE_L1I_LOADS]++;
		expected[CORE_ITLB_LOADS]++;
		if (line / 64 != last_page && !use(&itlb, line / 64)) {
			expected[CORE_ITLB_LOAD_MISSES]++;
			use(&stlb, line / 64);
		}
		last_page = line / 64;
		if (!use(&l1i, line)) {
			expected[CORE_L1I_LOAD_MISSES]++;
			plain_far(line, CORE_KINDS, CORE_KINDS);
		}
	}
}

static void plain_line(uint64_t line, bool store)
{
	if (!use(&dtlb, line / 64)) {
		expected[store ? CORE_DTLB_STORE_MISSES : CORE_DTLB_LOAD_MISSES]++;
		expected[CORE_DTLB_WALKS] += !use(&stlb, line / 64);
	}
	if (use(&l1d, line))
		return;
	expected[store ? CORE_L1D_STORE_MISSES : CORE_L1D_LOAD_MISSES]++;
	if (store)
		plain_far(line, CORE_LLC_STORES, CORE_LLC_STORE_MISSES);
	else
		plain_far(line, CORE_LLC_LOADS, CORE_LLC_LOAD_MISSES);
}

static void plain_access(uint64_t address, uint64_t size, bool store)
{
	for (uint64_t line = address / 64; line <= (address + size - 1) / 64; line++)
		plain_line(line, store);
}

/* From byte to byte: what is in a line is used many times, which changes nothing. */
static void plain_strings(const uint64_t *from, const uint64_t *to, unsigned int n,
			  const uint64_t *size, const bool *store)
{
	uint64_t at[2] = {from[0], from[1]};
	bool more = true;

	while (more) {
		more = false;
		for (unsigned int i = 0; i < n; i++) {
			if (at[i] == to[i])
				continue;
			plain_access(at[i], size[i], store[i]);
			at[i] += to[i] > from[i] ? size[i] : -size[i];
			more = true;
		}
	}
}

/* Counters of two bits, as the books have them. */
static unsigned int by_branch[1 << 14], by_history[1 << 15], chooser[1 << 14];
static uint64_t history;

static unsigned int trained(unsigned int counter, bool up)
{
	return up ? counter + (counter < 3) : counter - (counter > 0);
}

static bool plain_condition(uint64_t branch, bool taken)
{
	const unsigned int one = (branch ^ branch >> 14) % (1 << 14);
	const unsigned int two = (branch ^ branch >> 15 ^ history) % (1 << 15);
	const bool first = by_branch[one] > 1, second = by_history[two] > 1;
	const bool said = chooser[one] > 1 ? second : first;

	if (first != second)
		chooser[one] = trained(chooser[one], second == taken);
	by_branch[one] = trained(by_branch[one], taken);
	by_history[two] = trained(by_history[two], taken);
	history = history * 2 + taken;
	return said == taken;
}

/* ---- programs ---- */

enum { BLOCKS = 40, WORDS = MODEL_MAX_WORDS - BLOCK_MAX_WORDS, DATA = 1 << 21 };

static struct block *blocks[BLOCKS];
static uint64_t codes[BLOCKS];
static uint64_t trace[WORDS + BLOCK_MAX_WORDS + 1];

/* What lies below 2 GiB: blocks, their code, and where traces end. */
enum { BLOCKS_SIZE = 1 << 16, LOW_SIZE = 1 << 20 };

static uint8_t *low;
static unsigned int nr_low;
static struct compiled compiled;
static struct compiled_end *trace_end;

static int map_low(void **state)
{
	(void)state;
	low = mmap(NULL, LOW_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		return -1;
	trace_end = (struct compiled_end *)(low + LOW_SIZE - 4096);
	model_compile_end(trace_end);
	return 0;
}

static int unmap_low(void **state)
{
	(void)state;
	return munmap(low, LOW_SIZE);
}

/* Blocks are made anew from here on. */
static void forget_blocks(void)
{
	nr_low = 0;
	memset(low, 0, BLOCKS_SIZE);
	compiled = (struct compiled){.hot = low + BLOCKS_SIZE, .cold = low + LOW_SIZE - 4096};
}

static struct block *new_block(void)
{
	struct block *b = (struct block *)(low + nr_low);

	nr_low += sizeof(*b) + 8 * sizeof(struct block_access);
	return b;
}

static uint64_t compile(const struct block *b)
{
	uint8_t *hot = compiled.hot, *cold = compiled.cold;
	const uint64_t code = model_compile(&compiled, b);

	assert_true(compiled.hot - hot + (cold - compiled.cold) <=
		    COMPILED_BLOCK + COMPILED_ACCESS * b->nr_accesses);
	assert_ptr_equal(record_block(code), b);
	return code;
}

/* Beside the access before, as those of pushes and of members are. */
static void neighbour(struct block_access *a)
{
	const int32_t size = (a[-1].what & BLOCK_SIZE) + 1;

	a->word = a[-1].word;
	a->base = a[-1].base;
	a->delta = a[-1].delta + (any(3) ? -size : size);
	a->what = (a[-1].what & BLOCK_SIZE) | (a->what & BLOCK_STORE);
}

static struct block *random_block(bool strings)
{
	struct block *b = new_block();
	const unsigned int insns = 1 + any(20);
	const uint8_t element = (1 << any(4)) - 1;

	b->pc = 0x400000 + any(200) * any(1000);
	b->length = 1 + any(BLOCK_MAX_LENGTH);
	/* Targets and returns have tests of their own. */
	b->end = any(2) ? any(BLOCK_CALL + 1) : BLOCK_CONDITIONAL;
	b->words = 1;
	b->cost = BLOCK_COST(insns + any(30), (b->pc + b->length - 1) / 64 - b->pc / 64 + 1);
	b->nr_accesses = any(9);
	for (unsigned int i = 0; i < b->nr_accesses; i++) {
		struct block_access *a = &b->accesses[i];

		a->base = any(8) ? BLOCK_BASE_NONE : BLOCK_BASE_FS;
		a->what = (any(2) ? any(64) : (1u << any(5)) - 1) | (any(3) ? 0 : BLOCK_STORE);
		a->delta = any(2000) - 1000;
		if (strings && !any(6)) {
			/* All of a block have elements of one size: two may be of one instruction.
			 */
			*a = (struct block_access){
				.what = element | BLOCK_STRING | (a->what & BLOCK_STORE),
				.word = b->words,
			};
			b->words += 2;
		} else if (i && any(2) && !(a[-1].what & BLOCK_STRING)) {
			neighbour(a);
		} else if (any(3)) {
			a->word = b->words++;
		} else {
			a->word = b->words > 1 ? 1 : 0;
		}
	}
	b->counts = BLOCK_COUNT(insns, BLOCK_INSTRUCTIONS) |
		    BLOCK_COUNT(any(9), BLOCK_LOAD_OPERANDS) |
		    BLOCK_COUNT(any(any(8) ? 9 : 65), BLOCK_STORE_OPERANDS) |
		    BLOCK_COUNT(b->end != BLOCK_ON, BLOCK_BRANCHES);
	return b;
}

static void random_blocks(bool strings)
{
	forget_blocks();
	for (unsigned int i = 0; i < BLOCKS; i++) {
		blocks[i] = random_block(strings);
		/* Some follows in the program, too. */
		if (i && any(2))
			blocks[i]->pc = blocks[i - 1]->pc + blocks[i - 1]->length;
		blocks[i]->cost = (uint32_t)blocks[i]->cost |
				  BLOCK_COST(0, (blocks[i]->pc + blocks[i]->length - 1) / 64 -
							blocks[i]->pc / 64 + 1);
		codes[i] = compile(blocks[i]);
	}
}

static uint64_t random_address(void)
{
	return 0x10000000 + (any(2) ? any(DATA) : any(4) * 64 * 1024 + any(256));
}

static const uint64_t fs_base = 0x7000;

static void plain_block(const struct block *b, const uint64_t *record, uint64_t next)
{
	const uint64_t behind = b->pc + b->length;

	plain_fetch(b->pc, b->length);
	for (unsigned int i = 0; i < b->nr_accesses; i++) {
		const struct block_access *a = &b->accesses[i];
		uint64_t size[2] = {(a->what & BLOCK_SIZE) + 1u, 0};
		bool store[2] = {a->what & BLOCK_STORE, false};

		if (a->what & BLOCK_STRING) {
			const bool two = i + 1u < b->nr_accesses && a[1].what & BLOCK_STRING;
			uint64_t from[2] = {record[a->word], 0}, to[2] = {record[a->word + 1], 0};

			if (two) {
				from[1] = record[a[1].word];
				to[1] = record[a[1].word + 1];
				size[1] = (a[1].what & BLOCK_SIZE) + 1u;
				store[1] = a[1].what & BLOCK_STORE;
				i++;
			}
			plain_strings(from, to, 1 + two, size, store);
			continue;
		}
		plain_access((a->word ? record[a->word] : (uint64_t)b) +
				     (a->base == BLOCK_BASE_FS ? fs_base : 0) + a->delta,
			     size[0], store[0]);
	}
	for (unsigned int i = 0; i < 4; i++) {
		static const enum core_kind kinds[] = {CORE_INSTRUCTIONS, CORE_LOADS, CORE_STORES,
						       CORE_BRANCHES};

		expected[kinds[i]] += b->counts >> 16 * i & 0xffff;
	}
	if (b->end == BLOCK_CONDITIONAL) {
		expected[CORE_BRANCHES_CONDITIONAL]++;
		expected[CORE_BRANCHES_TAKEN] += next != behind;
		if (!plain_condition(behind, next != behind)) {
			expected[CORE_BRANCH_MISSES]++;
			expected[CORE_BRANCH_MISSES_CONDITIONAL]++;
		}
	} else if (b->end != BLOCK_ON) {
		expected[CORE_BRANCHES_TAKEN]++;
	}
	expected[CORE_CALLS] += b->end == BLOCK_CALL;
}

/* Appends a record and returns how long it is. Strings that go together are equally long, as those
 * of one instruction are. */
static unsigned int random_record(uint64_t *to, unsigned int which)
{
	const struct block *b = blocks[which];
	bool second = false;
	uint64_t elements = 0;

	to[0] = codes[which];
	for (unsigned int i = 1; i < b->words; i++)
		to[i] = random_address();
	for (unsigned int i = 0; i < b->nr_accesses; i++) {
		const struct block_access *a = &b->accesses[i];
		const uint64_t size = (a->what & BLOCK_SIZE) + 1u;

		if (!(a->what & BLOCK_STRING)) {
			second = false;
			continue;
		}
		if (!second)
			elements = any(4) ? any(100) : any(20000);
		/* Aligned, so that no element lies in two lines. */
		to[a->word] &= -size;
		to[a->word + 1] = to[a->word] + (any(2) ? elements * size : -elements * size);
		second = !second;
	}
	return b->words;
}

static void plain_make(struct plain_cache *cache, struct machine_cache is)
{
	*cache = (struct plain_cache){.is = is};
}

static struct model *make(const struct machine *machine)
{
	const size_t size = (model_size(machine) + 4095) & ~4095UL;
	void *memory = aligned_alloc(4096, size);
	struct model *model;

	assert_non_null(memory);
	memset(memory, 0, size);
	plain_make(&l1i, machine->l1i);
	plain_make(&l1d, machine->l1d);
	plain_make(&l2, machine->l2);
	plain_make(&llc, machine->llc);
	plain_make(&itlb, machine->itlb);
	plain_make(&dtlb, machine->dtlb);
	plain_make(&stlb, machine->stlb);
	memset(expected, 0, sizeof(expected));
	memset(by_branch, 0, sizeof(by_branch));
	memset(by_history, 0, sizeof(by_history));
	memset(chooser, 0, sizeof(chooser));
	history = last_page = 0;
	model = model_make(memory, machine);
	return model;
}

/* A random walk over the blocks, told to both. */
static void compare(const struct machine *machine, bool strings, unsigned int records)
{
	struct model *model = make(machine);
	int64_t counter[64] = {0};
	unsigned int next = any(BLOCKS);

	random_blocks(strings);
	while (records) {
		uint64_t *at = trace, *end = trace + 1 + any(WORDS);

		/* Nothing depends on where the trace is cut. */
		while (at < end && records) {
			const struct block *b = blocks[next];
			uint64_t *record = at;

			at += random_record(at, next);
			next = any(3) ? (next + 1) % BLOCKS : any(BLOCKS);
			plain_block(b, record, blocks[next]->pc);
			records--;
		}
		model_run(model, trace, at, trace_end, blocks[next]->pc, fs_base, counter);
	}
	for (unsigned int kind = 0; kind < CORE_HARDWARE_KINDS; kind++)
		if (expected[kind] && counter[kind] != expected[kind])
			fail_msg("kind %u: %ld, not %ld", kind, (long)counter[kind],
				 (long)expected[kind]);
	assert_true(counter[CORE_L1D_LOAD_MISSES] && counter[CORE_LLC_MISSES]);
	assert_true(counter[CORE_ITLB_LOAD_MISSES] == expected[CORE_ITLB_LOAD_MISSES]);
	assert_true(counter[CORE_CYCLES] >=
		    counter[CORE_STALLED_FRONTEND] + counter[CORE_STALLED_BACKEND]);
	free(model);
}

/* Small, so that everything is evicted all the time. Nothing is prefetched: the plain one cannot.
 */
static const struct machine small = {
	.l1i = {4, 2},
	.l1d = {8, 3},
	.l2 = {16, 4},
	.llc = {64, 5},
	.itlb = {2, 2},
	.dtlb = {4, 3},
	.stlb = {16, 3},
	.width = 4,
	.window = 100,
	.mispredict = 10,
	.l2_hit = 10,
	.llc_hit = 40,
	.memory = 200,
	.stlb_hit = 7,
	.walk = 30,
	.ref_num = 1,
	.ref_den = 1,
	.bus = 10,
};

static void test_blocks(void **state)
{
	(void)state;
	for (seed = 1; seed < 20000000; seed = seed * 7 + 1)
		compare(&small, false, 30000);
}

static void test_strings(void **state)
{
	(void)state;
	seed = 77;
	for (unsigned int i = 0; i < 4; i++)
		compare(&small, true, 2000);
}

/* Without the second level, with caches of one way, of one set, and of more ways than are looked at
 * together. */
static void test_shapes(void **state)
{
	struct machine machine = small;

	(void)state;
	seed = 99;
	machine.l2.sets = 0;
	compare(&machine, true, 2000);
	machine = small;
	machine.l1i.ways = machine.l1d.ways = machine.dtlb.ways = machine.itlb.ways = 1;
	/* Two strings in one place take it from each other with each element: not modelled. */
	compare(&machine, false, 20000);
	/* Neighbours in one set, and their pages. */
	machine = small;
	machine.l1d = machine.dtlb = (struct machine_cache){1, 6};
	compare(&machine, false, 20000);
	machine = small;
	machine.l1d = (struct machine_cache){4, 9};
	machine.l1i = (struct machine_cache){2, 16};
	machine.l2 = (struct machine_cache){8, 17};
	machine.llc = (struct machine_cache){16, 32};
	machine.stlb = (struct machine_cache){4, 20};
	compare(&machine, false, 60000);
}

/* The same program costs the same, however the trace is cut; cycles have fractions to lose. */
static void test_cuts(void **state)
{
	int64_t whole[64] = {0}, parts[64] = {0};
	struct model *one = make(&tly_machine_reference), *other = make(&tly_machine_reference);

	(void)state;
	seed = 5;
	random_blocks(true);
	for (unsigned int round = 0; round < 16; round++) {
		uint64_t *at = trace, *from = trace;

		while (at < trace + WORDS)
			at += random_record(at, any(BLOCKS));
		model_run(one, trace, at, trace_end, 0x1234, fs_base, whole);
		while (from < at) {
			uint64_t *to = from, word;

			do
				to += record_block(*to)->words;
			while (to < at && any(3));
			word = *to;
			model_run(other, from, to, trace_end,
				  to < at ? record_block(word)->pc : 0x1234, fs_base, parts);
			*to = word;
			from = to;
		}
	}
	for (unsigned int kind = 0; kind < CORE_HARDWARE_KINDS; kind++)
		assert_int_equal(whole[kind], parts[kind]);
	assert_true(whole[CORE_BUS_CYCLES] && whole[CORE_L1D_PREFETCHES]);
	free(one);
	free(other);
}

/* A block that somebody left in the middle is taken in by its description alone. */
static void test_parts(void **state)
{
	int64_t whole[64] = {0}, parts[64] = {0};
	struct model *one = make(&small), *other = make(&small);

	(void)state;
	seed = 12;
	random_blocks(true);
	for (unsigned int i = 0; i < 3000; i++) {
		const unsigned int which = any(BLOCKS), n = random_record(trace, which);
		const struct block *b = blocks[which];
		const uint64_t pc = any(2) ? b->pc + b->length : 0x1234 + 16 * any(3);

		model_run_part(other, trace, b, pc, fs_base, parts);
		model_run(one, trace, trace + n, trace_end, pc, fs_base, whole);
	}
	for (unsigned int kind = 0; kind < CORE_HARDWARE_KINDS; kind++)
		assert_int_equal(whole[kind], parts[kind]);
	assert_true(parts[CORE_LOADS] && parts[CORE_L1D_STORE_MISSES]);
	free(one);
	free(other);
}

/* Of lines that are prefetched those are told that L2 had not. */
static void test_prefetches(void **state)
{
	enum { LINES = 2048 }; /* more than L1 has, less than L2 */
	struct model *model = make(&tly_machine_reference);
	int64_t counter[64] = {0}, first;
	struct block *b;
	uint64_t code;

	(void)state;
	forget_blocks();
	b = new_block();
	*b = (struct block){
		.pc = 0x1000, .length = 4, .words = 2, .nr_accesses = 1, .end = BLOCK_JUMP};
	b->accesses[0] = (struct block_access){.word = 1, .what = 7};
	code = compile(b);
	for (unsigned int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < LINES; i++) {
			trace[0] = code;
			trace[1] = (1UL << 30) + 64 * i;
			model_run(model, trace, trace + 2, trace_end, 0x1000, 0, counter);
		}
		if (round)
			break;
		first = counter[CORE_L1D_PREFETCHES];
		assert_in_range(first, LINES / 2, LINES);
		assert_int_equal(counter[CORE_LLC_PREFETCHES], first);
		assert_int_equal(counter[CORE_LLC_LOADS] + counter[CORE_LLC_PREFETCHES], LINES);
	}
	assert_int_equal(counter[CORE_L1D_PREFETCHES], 2 * first);
	assert_int_equal(counter[CORE_LLC_PREFETCHES], first);
	free(model);
}

/* ---- branches ---- */

/* Runs single blocks from pc to pc, and returns what was predicted wrongly. */
static int64_t walk(struct model *model, const uint64_t *path, unsigned int n)
{
	int64_t counter[64] = {0};

	memcpy(trace, path, n * sizeof(*path));
	model_run(model, trace, trace + n, trace_end, record_block(path[0])->pc, 0, counter);
	return counter[CORE_BRANCH_MISSES];
}

static uint64_t branch_block(uint64_t pc, enum block_end end)
{
	struct block *b = new_block();

	*b = (struct block){.pc = pc, .length = 5, .words = 1, .end = end};
	return compile(b);
}

static void test_returns(void **state)
{
	struct model *model = make(&tly_machine_reference);
	uint64_t call, ret, on, other;

	(void)state;
	forget_blocks();
	call = branch_block(0x1000, BLOCK_CALL);
	ret = branch_block(0x2000, BLOCK_RETURN);
	on = branch_block(0x1005, BLOCK_JUMP);
	other = branch_block(0x3000, BLOCK_JUMP);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(walk(model, (uint64_t[]){call, ret, on}, 3), 0);
	assert_int_equal(walk(model, (uint64_t[]){call, ret, other}, 3), 1);
	free(model);
}

/* Of each way to end as many are counted as there were, also where returns outnumber calls. */
static void test_ends(void **state)
{
	static const struct {
		enum block_end end;
		enum core_kind kind;
	} ends[] = {{BLOCK_CALL, CORE_CALLS},
		    {BLOCK_RETURN, CORE_RETURNS},
		    {BLOCK_JUMP_INDIRECT, CORE_BRANCHES_INDIRECT},
		    {BLOCK_CALL_INDIRECT, CORE_CALLS},
		    {BLOCK_JUMP, CORE_KINDS},
		    {BLOCK_CONDITIONAL, CORE_BRANCHES_CONDITIONAL},
		    {BLOCK_ON, CORE_KINDS}};
	enum { ENDS = sizeof(ends) / sizeof(*ends) };
	struct model *model = make(&tly_machine_reference);
	int64_t counter[64] = {0}, wanted[CORE_KINDS + 1] = {0};
	uint64_t code[ENDS];

	(void)state;
	forget_blocks();
	for (unsigned int i = 0; i < ENDS; i++)
		code[i] = branch_block(0x1000 * (i + 1), ends[i].end);
	seed = 3;
	for (unsigned int run = 0; run < 40; run++) {
		const unsigned int most = run % 2 ? ENDS : 2, n = 1 + any(WORDS);

		for (unsigned int i = 0; i < n; i++) {
			const unsigned int which = any(most);
			const bool branch = ends[which].end != BLOCK_ON;

			trace[i] = code[which];
			wanted[ends[which].kind]++;
			wanted[CORE_BRANCHES] += branch;
			/* None goes on behind itself. */
			wanted[CORE_BRANCHES_TAKEN] += branch;
			wanted[CORE_BRANCHES_INDIRECT] += ends[which].end == BLOCK_CALL_INDIRECT;
		}
		model_run(model, trace, trace + n, trace_end, 0x5000, 0, counter);
	}
	for (enum core_kind kind = CORE_BRANCHES; kind <= CORE_BRANCHES_INDIRECT; kind++)
		assert_int_equal(counter[kind], wanted[kind]);
	free(model);
}

/* Conditions that are wrong are told apart, and are branch misses, too. */
static void test_conditions(void **state)
{
	struct model *model = make(&tly_machine_reference);
	int64_t counter[64] = {0};
	uint64_t condition, ret;

	(void)state;
	forget_blocks();
	condition = branch_block(0x1000, BLOCK_CONDITIONAL);
	ret = branch_block(0x2000, BLOCK_RETURN);
	/* Always taken, from a counter that says no; no return has had a call. */
	for (unsigned int i = 0; i < 100; i++) {
		trace[0] = condition;
		trace[1] = ret;
		model_run(model, trace, trace + 2, trace_end, 0x3000, 0, counter);
	}
	assert_in_range(counter[CORE_BRANCH_MISSES_CONDITIONAL], 1, 40);
	assert_int_equal(counter[CORE_BRANCH_MISSES],
			 counter[CORE_BRANCH_MISSES_CONDITIONAL] + 100);
	free(model);
}

static void test_targets(void **state)
{
	struct model *model = make(&tly_machine_reference);
	uint64_t jump, path[6];
	int64_t wrong = 0;

	(void)state;
	forget_blocks();
	jump = branch_block(0x1000, BLOCK_JUMP_INDIRECT);
	for (unsigned int i = 0; i < 3; i++) {
		path[2 * i] = jump;
		path[2 * i + 1] = branch_block(0x2000 + 0x110 * i, BLOCK_JUMP);
	}
	/* Three targets in turn: the path tells which comes, once it has been seen. */
	for (unsigned int i = 0; i < 20; i++)
		wrong = walk(model, path, 6);
	assert_int_equal(wrong, 0);
	free(model);
}

/* ---- machines ---- */

static void test_machines(void **state)
{
	struct machine machine = tly_machine_reference;
	struct machine_cache cache;

	(void)state;
	assert_true(tly_machine_valid(&machine));
	machine.l1d.sets = 0;
	assert_false(tly_machine_valid(&machine));
	machine.l1d.sets = 48;
	assert_false(tly_machine_valid(&machine));
	machine = tly_machine_reference;
	machine.llc.sets = 0;
	assert_true(tly_machine_valid(&machine));
	machine.llc.sets = 2 * MACHINE_MAX_SETS;
	assert_false(tly_machine_valid(&machine));
	machine = tly_machine_reference;
	machine.width = 0;
	assert_false(tly_machine_valid(&machine));

	cache = tly_machine_cache(32 << 10, 8, 64);
	assert_int_equal(cache.sets, 64);
	assert_int_equal(cache.ways, 8);
	/* 11 slices of 20 ways: the sets that are a power of two */
	cache = tly_machine_cache(11UL * 2048 * 20 * 64, 20, 64);
	assert_int_equal(cache.sets, 16384);
	assert_int_equal(cache.ways, 20);
	/* fully associative */
	cache = tly_machine_cache(64, 0xff, 1);
	assert_int_equal(cache.sets, 8);
	assert_int_equal(cache.ways, 8);
	assert_int_equal(tly_machine_cache(0, 8, 64).sets, 0);
	assert_int_equal(tly_machine_cache(3, 8, 1).ways, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),	   cmocka_unit_test(test_strings),
		cmocka_unit_test(test_shapes),	   cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_parts),	   cmocka_unit_test(test_returns),
		cmocka_unit_test(test_ends),	   cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_prefetches), cmocka_unit_test(test_targets),
		cmocka_unit_test(test_machines),
	};

	return cmocka_run_group_tests(tests, map_low, unmap_low);
}
