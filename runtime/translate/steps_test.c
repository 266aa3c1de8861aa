// SPDX-License-Identifier: MIT
/*
 * Single-stepped in the cache: whatever byte of the code cache a signal hits, what
 * translate_recover() makes of it has to be a state that the processor went through natively, in
 * order. Where it counts, what has been counted has to be what the instructions that were
 * single-stepped natively up to there add up to.
 */
#include "runtime/translate/translate_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/block.h"
#include "runtime/translate/caches.h"
#include "runtime/translate/test_native.h"
#include "runtime/translate/test_program.h"

/* Of the run in the translator. */
static struct {
	unsigned int now;  /* where in the trace it is */
	struct sums start; /* of the counters */
	struct regs wrong;
	struct sums wrong_sums;
	bool failed;
} stepped;

/* What the code has to do that the tests run in. */
static struct instrumentation does;

/* Before each run, when the program is there and has been traced; NULL: nothing. */
static void (*begin_run)(void);

/* What the records of the trace add that nobody has taken in yet. */
static void add_record(struct sums *sums, const struct block *block, unsigned int insns,
		       uint64_t next)
{
	const unsigned int all = block->counts & 0xffff;

	sums->of[CORE_INSTRUCTIONS] += insns < all ? insns : all;
	if (insns >= all) {
		sums->of[CORE_LOADS] += block->counts >> 16 & 0xffff;
		sums->of[CORE_STORES] += block->counts >> 32 & 0xffff;
		sums->of[CORE_BRANCHES] += block->counts >> 48;
		sums->of[CORE_BRANCHES_CONDITIONAL] += block->end == BLOCK_CONDITIONAL;
		sums->of[CORE_CALLS] +=
			block->end == BLOCK_CALL || block->end == BLOCK_CALL_INDIRECT;
		sums->of[CORE_RETURNS] += block->end == BLOCK_RETURN;
		sums->of[CORE_BRANCHES_INDIRECT] +=
			block->end == BLOCK_JUMP_INDIRECT || block->end == BLOCK_CALL_INDIRECT;
		sums->of[CORE_BRANCHES_TAKEN] += block->end == BLOCK_CONDITIONAL
							 ? next != block->pc + block->length
							 : block->end != BLOCK_ON;
		return;
	}
	for (unsigned int i = 0; i < block->nr_accesses; i++) {
		const struct block_access *a = &block->accesses[i];

		if ((a->insn & ~BLOCK_MODIFIES) >= insns)
			continue;
		sums->of[CORE_LOADS] += !(a->what & BLOCK_STORE);
		sums->of[CORE_STORES] += a->what & BLOCK_STORE || a->insn & BLOCK_MODIFIES;
	}
}

/* Whether where the strings of a whole record end is known: no program's is that long. */
static bool strings_end(const uint64_t *record, const struct block *block)
{
	for (unsigned int i = 0; i < block->nr_accesses; i++) {
		const struct block_access *a = &block->accesses[i];

		if (a->what & BLOCK_STRING &&
		    record[a->word + 1] - record[a->word] + DATA_SIZE > 2UL * DATA_SIZE)
			return false;
	}
	return true;
}

static void add_trace(struct sums *sums, uint8_t cut, uint64_t pc, uint64_t at)
{
	const uint64_t *record, *end = (const uint64_t *)at;

	for (record = host_thread()->trace_start; record < end;) {
		const struct block *block = record_block(*record);
		const uint64_t *const words = record;
		unsigned int insns = 0xffff;

		record += block->words;
		if (record >= end && cut)
			insns = cut == CUT_LAST ? (block->counts & 0xffff) - 1 : cut - 1u;
		if (insns && !strings_end(words, block))
			stepped.failed = true;
		add_record(sums, block, insns, record < end ? record_block(*record)->pc : pc);
	}
}

/* Where code has counters in registers, or where its trace goes, @xmm has them. */
static struct sums counted(const struct counts *more, uint64_t pc, uint8_t (*xmm)[16])
{
	const struct thread *thread = host_thread();
	const bool traces = does.counted & CORE_KINDS_MODEL;
	uint64_t trace_at = thread->trace;
	struct sums sums;

	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++) {
		int64_t counter = thread->events.counter[kind];

		if (!traces && kind / 2 < thread->lookup->vectors && more->vectors >> kind / 2 & 1)
			memcpy(&counter, xmm[15 - kind / 2] + kind % 2 * 8, 8);
		sums.of[kind] = counter + more->of[kind];
	}
	if (traces && more->vectors & 1)
		memcpy(&trace_at, xmm[15], 8);
	if (traces)
		add_trace(&sums, more->cut, pc, trace_at);
	return sums;
}

static bool same_sums(const struct sums *a, const struct sums *b)
{
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		if (does.counted >> kind & 1 && a->of[kind] - stepped.start.of[kind] != b->of[kind])
			return false;
	return true;
}

/* The bits of rflags for those of enum insn_flag. */
static uint64_t rflags_of(uint8_t flags)
{
	static const uint16_t bits[] = {0x800, 0x80, 0x40, 0x10, 4, 1, 0x400, 0x200};
	uint64_t rflags = 0;

	for (unsigned int i = 0; i < 8; i++)
		rflags |= flags >> i & 1 ? bits[i] : 0;
	return rflags;
}

/* Where something is counted, flags that nobody asks for may be lost. */
static bool as_in_trace(unsigned int i, const struct regs *regs, const struct sums *sums,
			const struct vectors *vectors)
{
	struct regs native = trace.states[i];
	const uint64_t dead = does.counted ? ~rflags_of(trace.live_flags[i]) : 0;

	native.rflags = (native.rflags & ~dead) | (regs->rflags & dead);
	/* It begins by loading them. */
	return same_state(&native, regs) && same_sums(sums, &trace.sums[i]) &&
	       (i < 16 || !memcmp(vectors, &trace.vectors[i], sizeof(*vectors)));
}

/* Whether the instruction at @i did nothing but jump: there need not be a byte that stands for it.
 */
static bool only_jumps(unsigned int i)
{
	struct regs there = trace.states[i + 1];

	there.rip = trace.states[i].rip;
	return same_state(&trace.states[i], &there);
}

/* The state has to be the one that the last point had, or the next one. */
static bool follows(const struct regs *regs, const struct sums *sums, const struct vectors *vectors)
{
	unsigned int last = stepped.now + 1;

	while (last + 1 < trace.n && only_jumps(last))
		last++;
	for (unsigned int i = stepped.now; i <= last && i < trace.n; i++)
		if (as_in_trace(i, regs, sums, vectors)) {
			stepped.now = i;
			return true;
		}
	return false;
}

/* What translate_count() would make of a frame. */
static struct vectors vectors_recovered(uint8_t (*xmm)[16], const struct counts *more)
{
	const struct thread *thread = host_thread();
	struct vectors vectors;

	memcpy(vectors.xmm, xmm, sizeof(vectors));
	for (unsigned int i = 0; i < thread->lookup->vectors; i++)
		if (more->vectors & (COUNT_SAVED | 1u << i))
			memcpy(vectors.xmm[15 - i], thread->vectors[i], 16);
	return vectors;
}

static void on_translated_step(int signo, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	struct vectors vectors;
	struct counts counts;
	struct sums sums;
	struct regs regs;

	(void)signo, (void)info;
	host_regs(c, &regs);
	switch (translate_recover(host_thread(), &regs, &counts)) {
	case TRANSLATE_ELSEWHERE:
		/* It comes back with the program's flags. */
		c->uc_mcontext.gregs[17] &= ~TRAP_FLAG;
		return;
	case TRANSLATE_LEAVING:
		return;
	case TRANSLATE_INSIDE:
		break;
	}
	if (stepped.failed || regs.rip - (uint64_t)world->code >= CODE_SIZE)
		return;
	sums = counted(&counts, regs.rip, frame_vectors(c));
	vectors = vectors_recovered(frame_vectors(c), &counts);
	stepped.failed |= !follows(&regs, &sums, &vectors);
	stepped.wrong = regs;
	stepped.wrong_sums = sums;
}

bool recovers(uint64_t program)
{
	struct regs regs;

	program_new(program);
	native_trace();
	stepped.now = 0;
	stepped.failed = false;
	on_step(on_translated_step);
	program_start(&regs, host_finish, TRAP_FLAG);
	if (begin_run)
		begin_run();
	/* What is not written is no address. */
	if (does.counted & CORE_KINDS_MODEL)
		memset((void *)host_thread()->trace, 0xa5, (size_t)-host_thread()->trace_full);
	stepped.start = counted(&(struct counts){{0}}, 0, NULL);
	host_run(&regs);
	if (stepped.failed && getenv("SHOW"))
		for (unsigned int i = stepped.now ? stepped.now - 1 : 0; i < stepped.now + 4; i++)
			show_state("#", &trace.states[i]);
	if (stepped.failed && does.counted)
		for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
			printf("# kind %u: %ld, native %ld\n", kind,
			       stepped.wrong_sums.of[kind] - stepped.start.of[kind],
			       trace.sums[stepped.now].of[kind]);
	if (stepped.failed)
		return differ(program, "a state that never was", &trace.states[stepped.now],
			      &stepped.wrong);
	if (stepped.now + 1 < trace.n)
		return differ(program, "states are missing", &trace.states[stepped.now], &regs);
	return true;
}

/* What host_finish does until it is left. */
static const struct sums finish = {{[CORE_INSTRUCTIONS] = 5, [CORE_STORES] = 3}};

/* Running freely it counts the same. */
static bool sums_agree(uint64_t program)
{
	struct regs regs;
	struct sums sums;

	for (unsigned int round = 0; round < 2; round++) {
		program_start(&regs, host_finish, 0);
		if (begin_run)
			begin_run();
		stepped.start = counted(&(struct counts){{0}}, 0, NULL);
		host_run(&regs);
		sums = counted(&(struct counts){{0}}, 0, NULL);
		for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
			sums.of[kind] -= finish.of[kind];
		if (!same_sums(&sums, &trace.sums[trace.n])) {
			printf("# program %#lx:", program);
			for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
				printf(" %ld/%ld", sums.of[kind] - stepped.start.of[kind],
				       trace.sums[trace.n].of[kind]);
			printf("\n");
			return false;
		}
	}
	return true;
}

/*
 * Those of stops(), too, as there can be few caches. The trace does not tell whether a jump to the
 * next instruction was taken.
 */
#define PLAIN  (CORE_KINDS_EXACT & ~CORE_KINDS_FLOATING)
#define TRACED ((CORE_KINDS_EXACT & ~CORE_KIND_BIT(CORE_BRANCHES_TAKEN)) | CORE_KINDS_MODEL)

static const struct instrumentation all[] = {
	{.counted = PLAIN},
	{.counted = 3},
	{.counted = PLAIN, .checked = PLAIN},
	{CORE_KINDS_EXACT, CORE_KINDS_EXACT, INSTRUMENT_FINE},
	{.counted = TRACED},
	{.counted = TRACED, .checked = CORE_KINDS_MODEL},
	{.counted = CORE_KINDS_EXACT},
	{.counted = PLAIN, .extras = CORE_EXTRA_STOPS},
	{.counted = TRACED, .extras = CORE_EXTRA_STOPS},
};

enum { ALL = sizeof(all) / sizeof(*all) };

/* Whoever comes too late gets one that does everything. */
bool has_caches(uint64_t program)
{
	(void)program;
	for (unsigned int i = 0; i < ALL; i++)
		if (!translate_instrument(host_thread(), &all[i]))
			return false;
	return translate_instrument(host_thread(), &(struct instrumentation){0});
}

/* At some instructions that are executed; those of programs before are stopped at, too. */
static void set_stops(uint64_t program)
{
	translate_lock();
	for (unsigned int i = 0; i < 4 && trace.n; i++)
		translate_stop_at(trace.states[(program * 31 + i * 97) % trace.n].rip);
	translate_unlock();
}

bool counts_with(uint64_t program, const struct instrumentation *wanted, void (*begin)(void))
{
	bool good;

	does = *wanted;
	begin_run = begin;
	if (does.extras & CORE_EXTRA_STOPS)
		set_stops(program / ALL);
	good = translate_instrument(host_thread(), &does) && recovers(program) &&
	       sums_agree(program);
	if (!good)
		printf("# kinds %#lx, extras %#lx\n", does.counted, does.extras);
	does = (struct instrumentation){0};
	begin_run = NULL;
	return translate_instrument(host_thread(), &does) && good;
}

bool counts(uint64_t program)
{
	return counts_with(program, &all[program % ALL], NULL);
}
