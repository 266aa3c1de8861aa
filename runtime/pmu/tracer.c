// SPDX-License-Identifier: MIT
#include "runtime/pmu/tracer.h"

#include "runtime/fs.h"
#include "runtime/model/foresee.h"
#include "runtime/model/model.h"
#include "runtime/pmu/branch_trace.h"
#include "runtime/pmu/single.h"
#include "runtime/translate/translate.h"

enum {
	BORDER = 64 << 10,
	WORDS_MAX = MODEL_MAX_WORDS - BLOCK_MAX_WORDS - TRACER_UNSEEN,
	/* Behind the border, and what may be written behind that: of a block that was cut, and of
	 * parts of one. What is executed is on a page of its own. */
	CUT = 3072,
	PARTS = 4096,
	END = 8192,
	BUFFER_SIZE = 2 * BORDER + END + 4096,
};

_Static_assert(8 * WORDS_MAX <= BORDER / 2, "bit 15 of all addresses before the border is 1");
_Static_assert(8 * (TRACER_UNSEEN + BLOCK_MAX_WORDS) <= CUT, "");

struct tracer {
	struct tracer *next; /* of all in this process; with the translator locked */
	struct model *model;
	size_t model_size;
	void *buffer;
	uint64_t *start, *border;
	struct compiled_end *end;
	uint8_t cut;
	struct single single;
	/* Of kinds that somebody waits for, how many there have been in a word lately, times
	 * RATE_ONE; and since that was reckoned. */
	uint64_t rates[CORE_HARDWARE_KINDS];
	uint64_t seen[CORE_HARDWARE_KINDS], seen_words;
	uint32_t alone; /* records that were taken in alone, since the last overflow */
};

static struct machine machine;
static struct tracer *tracers;

void tracer_machine(const struct machine *m)
{
	machine = *m;
}

/* ---- beginning and end ---- */

static struct tracer *tracer_of(const struct thread *thread)
{
	return thread->tracer;
}

#define HARDWARE_KINDS (CORE_KIND_BIT(CORE_HARDWARE_KINDS) - 1)
/* Those that come by the trace. */
#define TRACED_KINDS (HARDWARE_KINDS & ~CORE_KINDS_FLOATING)

/* Kinds whose counters somebody waits for to get to 0. */
static uint64_t waited_for(const struct thread *thread)
{
	const struct core_task *task = &thread->events;
	uint64_t kinds = 0;

	core_for_each_kind(kind, task->counting_down & TRACED_KINDS) if (task->counter[kind] < 0)
		kinds |= CORE_KIND_BIT(kind);
	return kinds;
}

/*
 * How long the trace may get: when it is taken in the thread should not be far from what has
 * brought a counter to 0. An eighth of the way at a time, and record by record in the end.
 */
enum { RATE_ONE = 1 << 24, RATE_WORDS = 2048, SHARES = 8 };

/*
 * Of what is rare nobody can say when the last one comes, and to come out behind each record takes
 * ten times as long as to go on. So after a while the thread may have got that far when it is seen.
 */
enum { ALONE_MAX = 512, TOGETHER = 64 };

static uint64_t words_until(const struct tracer *t, uint64_t kind, uint64_t left)
{
	const uint64_t rate = t->rates[kind] + 1;

	if (left >= (uint64_t)WORDS_MAX * SHARES * rate / RATE_ONE + 1)
		return WORDS_MAX;
	return left * RATE_ONE / (SHARES * rate);
}

static uint64_t words_allowed(const struct thread *thread)
{
	const struct tracer *t = tracer_of(thread);
	uint64_t words = WORDS_MAX;

	/* What is counted beside the trace is looked at when it is taken in. */
	if (thread->events.counting_down & CORE_KINDS_FLOATING)
		words = TOGETHER;
	core_for_each_kind(kind, thread->events.counting_down & TRACED_KINDS)
	{
		const int64_t left = -thread->events.counter[kind];
		uint64_t until = words_until(t, kind, left > 0 ? (uint64_t)left : 0);

		if (left <= 1)
			until = t->alone < ALONE_MAX ? 1 : TOGETHER;
		if (until < words)
			words = until;
	}
	return words ? words : 1;
}

static void restart(struct thread *thread)
{
	struct tracer *t = tracer_of(thread);

	const uint64_t words = words_allowed(thread);

	t->alone += words == 1;
	t->start = t->border - words;
	t->cut = 0;
	thread->trace = (uint64_t)t->start;
	thread->trace_full = -(int64_t)(8 * words);
}

bool tracer_begin(struct thread *thread)
{
	struct tracer *t;
	size_t size;
	uint8_t *memory;

	if (thread->tracer)
		return true;
	if (!machine.width)
		machine = tly_machine_reference;
	size = ((sizeof(*t) + 63) & ~63UL) + model_size(&machine);
	memory = memory_more(size, false);
	if (!memory)
		return false;
	t = (struct tracer *)memory;
	t->buffer = memory_more(BUFFER_SIZE, true);
	if (!t->buffer) {
		memory_less(memory, size);
		return false;
	}
	t->model_size = size;
	t->border = (uint64_t *)(((uint64_t)t->buffer + 2 * BORDER - 1) & -(uint64_t)BORDER);
	t->end = (struct compiled_end *)((uint8_t *)t->border + END);
	model_compile_end(t->end);
	t->model = model_make(memory + ((sizeof(*t) + 63) & ~63UL), &machine);
	t->single = (struct single){
		.model = t->model,
		.machine = &machine,
		.room = (uint8_t *)t->border + PARTS,
		.counter = thread->events.counter,
	};
	for (unsigned int kind = 0; kind < CORE_HARDWARE_KINDS; kind++)
		t->rates[kind] = 2 * RATE_ONE; /* as of instructions, more or less */
	thread->tracer = t;
	restart(thread);
	translate_lock();
	t->next = tracers;
	tracers = t;
	translate_unlock();
	return true;
}

static void give_back(struct tracer *t)
{
	memory_less(t->buffer, BUFFER_SIZE);
	memory_less(t, t->model_size);
}

void tracer_follow(struct thread *thread)
{
	if (thread->tracer && thread->trace == (uint64_t)tracer_of(thread)->start)
		restart(thread);
}

void tracer_end(struct thread *thread)
{
	struct tracer *t = tracer_of(thread);

	if (!t)
		return;
	thread->tracer = NULL;
	translate_lock();
	for (struct tracer **link = &tracers; *link; link = &(*link)->next)
		if (*link == t) {
			*link = t->next;
			break;
		}
	translate_unlock();
	give_back(t);
}

void tracer_forked(struct thread *thread)
{
	struct tracer *next = tracers;

	thread->tracer = NULL;
	tracers = NULL;
	while (next) {
		struct tracer *t = next;

		next = t->next;
		give_back(t);
	}
}

/* ---- the trace ---- */

static uint64_t *last_record(uint64_t *start, const uint64_t *end)
{
	uint64_t *record = start, *next = start;

	while (next < end) {
		record = next;
		next += record_block(*record)->words;
	}
	return record;
}

static unsigned int insns_of(const struct block *block)
{
	return block->counts >> 16 * BLOCK_INSTRUCTIONS & 0xffff;
}

/* What a block is up to its first @insns instructions, behind which the program is at @pc. It lies
 * elsewhere than the block itself, to which its operands may be relative. */
static void cut_block(struct block *to, const struct block *block, unsigned int insns, uint64_t pc)
{
	unsigned int loads = 0, stores = 0;

	*to = *block;
	to->end = BLOCK_ON;
	to->length = pc - block->pc;
	to->cost = BLOCK_COST(insns, 1);
	to->nr_accesses = 0;
	for (unsigned int i = 0; i < block->nr_accesses; i++) {
		struct block_access a = block->accesses[i];

		if ((a.insn & ~BLOCK_MODIFIES) >= insns)
			break;
		if (!a.word)
			a.delta += (int32_t)((intptr_t)block - (intptr_t)to);
		loads += !(a.what & BLOCK_STORE);
		stores += a.what & BLOCK_STORE || a.insn & BLOCK_MODIFIES;
		to->accesses[to->nr_accesses++] = a;
	}
	to->counts = BLOCK_COUNT(insns, BLOCK_INSTRUCTIONS) |
		     BLOCK_COUNT(loads, BLOCK_LOAD_OPERANDS) |
		     BLOCK_COUNT(stores, BLOCK_STORE_OPERANDS);
}

static bool is_time(uint64_t kind)
{
	return kind == CORE_CYCLES || kind == CORE_REF_CYCLES || kind == CORE_BUS_CYCLES ||
	       kind == CORE_STALLED_FRONTEND || kind == CORE_STALLED_BACKEND;
}

/*
 * So many of a kind are in a record, all but the odd one: a wait for memory, or as many operands as
 * there can be. Where there are more, nobody has looked for what brought the counter to 0.
 */
static uint64_t most_of(uint64_t kind)
{
	const uint64_t wait = machine.memory + machine.walk + machine.mispredict;

	if (is_time(kind))
		return kind == CORE_BUS_CYCLES ? wait / machine.bus + 1 : wait;
	return kind <= CORE_STORES ? BLOCK_MAX_INSNS : 2;
}

/*
 * How many records bring no counter to 0 that somebody waits for. Time goes on by what is usual,
 * far from the most that there can be, and the trace is an eighth of the way: so for time all of
 * it, unless the end is near.
 */
static uint64_t records_without(const struct single *s)
{
	uint64_t records = UINT64_MAX;

	core_for_each_kind(kind, s->watched & ~s->found)
	{
		const uint64_t some = (uint64_t)(-s->counter[kind] - 1) / most_of(kind);

		if (some < records && !(some && is_time(kind)))
			records = some;
	}
	return records;
}

static uint64_t *behind_records(uint64_t *record, const uint64_t *end, uint64_t records)
{
	if (records > (uint64_t)(end - record))
		return record + (end - record);
	for (; records && record < end; records--)
		record += record_block(*record)->words;
	return record;
}

static bool are_quiet(const struct tracer *t, const struct foreseen *sums)
{
	const struct single *s = &t->single;

	core_for_each_kind(kind, s->watched & ~s->found)
	{
		const uint64_t more = model_foreseen(t->model, sums, (enum core_kind)kind);

		if (s->counter[kind] + (int64_t)more >= 0)
			return false;
	}
	return true;
}

/*
 * The same where the end is near: records that access nothing but what is at hand bring few
 * surprises. They go on at @pc.
 */
static uint64_t *behind_quiet(const struct tracer *t, uint64_t *record, const uint64_t *end,
			      uint64_t pc)
{
	const uint64_t *first = record;
	struct foreseen sums = {0};

	while (record < end) {
		const struct block *block = record_block(*record);
		uint64_t *next = record + block->words;

		if (!model_foresee(t->model, record, block, t->single.fs_base, &sums))
			break;
		if (record == first &&
		    model_foresee_branch(t->model, block,
					 next < end ? record_block(*next)->pc : pc))
			sums.wrong = 0;
		if (!are_quiet(t, &sums))
			break;
		record = next;
	}
	return record;
}

static enum core_since since(const struct block *block, bool last)
{
	if (!last)
		return CORE_SINCE_MORE;
	return block->end == BLOCK_RETURN ? CORE_SINCE_RETURNED : CORE_SINCE_NOTHING;
}

static void take_single(struct single *s, const struct block *block, const uint64_t *record,
			uint64_t next, bool last)
{
	const uint64_t before = s->found;

	single_run(s, block, record, next);
	core_for_each_kind(kind, s->found & ~before) s->causes[kind].since = since(block, last);
}

/* To begin with the model and to end takes as long as looking at so many words. */
enum { WORTHWHILE = 64 };

/* As a whole where nothing is going to happen. The program is at @pc then; @last: and goes on
 * there.
 */
static void take_in(struct tracer *t, uint64_t *record, uint64_t *end, uint64_t pc, bool last)
{
	struct single *s = &t->single;

	while (record < end) {
		uint64_t *to = behind_records(record, end, records_without(s));
		uint64_t *quiet, word, next;
		bool single;

		if (to < end && to - record < WORTHWHILE) {
			quiet = behind_quiet(t, record, end, pc);
			to = quiet > to ? quiet : to;
		}
		single = to == record;
		if (single)
			to = behind_records(record, end, 1);
		word = *to;
		next = to < end ? record_block(word)->pc : pc;
		if (single)
			take_single(s, record_block(*record), record, next, last && to == end);
		else
			model_run(t->model, record, to, t->end, next, s->fs_base, s->counter);
		*to = word;
		record = to;
	}
}

/* The last record was left after @insns instructions. */
static void take_part(const struct thread *thread, const uint64_t *record, unsigned int insns)
{
	struct tracer *t = tracer_of(thread);
	struct single *s = &t->single;
	struct block *part = (struct block *)((uint8_t *)t->border + CUT);

	cut_block(part, record_block(*record), insns, thread->regs.rip);
	if (records_without(s))
		model_run_part(t->model, record, part, thread->regs.rip, s->fs_base, s->counter);
	else
		take_single(s, part, record, thread->regs.rip, true);
}

/* The records up to @end are whole, and what follows begins at @pc; the one that begins there, if
 * any, was left after @insns instructions. */
struct extent {
	uint64_t *end, pc;
	unsigned int insns;
};

static struct extent extent_of(const struct thread *thread, uint64_t *end)
{
	const struct tracer *t = tracer_of(thread);
	uint64_t *record = t->cut ? last_record(t->start, end) : NULL;
	const struct block *block = record ? record_block(*record) : NULL;
	const unsigned int all = block ? insns_of(block) : 0;
	const unsigned int insns = t->cut == CUT_LAST ? all - 1 : t->cut - 1u;

	if (!block || insns >= all)
		return (struct extent){.end = end, .pc = thread->regs.rip};
	return (struct extent){.end = record, .pc = block->pc, .insns = insns};
}

static void take_all(const struct thread *thread, const struct extent *extent)
{
	struct tracer *t = tracer_of(thread);

	take_in(t, t->start, extent->end, extent->pc, !extent->insns);
	if (extent->insns)
		take_part(thread, extent->end, extent->insns);
}

/* Who only wants the branches needs no model. */
static bool models(const struct core_task *task)
{
	return !task->tracing || __atomic_load_n(&task->wanted, __ATOMIC_RELAXED) & HARDWARE_KINDS;
}

static void follow_rates(struct tracer *t, const int64_t *before, uint64_t words)
{
	core_for_each_kind(kind, t->single.watched) t->seen[kind] +=
		(uint64_t)(t->single.counter[kind] - before[kind]);
	t->seen_words += words;
	if (t->seen_words < RATE_WORDS)
		return;
	core_for_each_kind(kind, t->single.watched)
	{
		const uint64_t now = t->seen[kind] * RATE_ONE / t->seen_words;

		t->rates[kind] = (3 * t->rates[kind] + now) / 4;
	}
	for (unsigned int kind = 0; kind < CORE_HARDWARE_KINDS; kind++)
		t->seen[kind] = 0;
	t->seen_words = 0;
}

void tracer_drain(struct thread *thread)
{
	int64_t before[CORE_HARDWARE_KINDS];
	struct tracer *t = tracer_of(thread);
	struct extent extent;
	uint64_t *end;

	if (!t || thread->trace == (uint64_t)t->start)
		return;
	end = (uint64_t *)thread->trace;
	extent = extent_of(thread, end);
	if (thread->events.tracing)
		branch_trace(&thread->events, t->start, extent.end, extent.pc);
	if (!models(&thread->events)) {
		restart(thread);
		return;
	}
	t->single.fs_base = fs_base();
	t->single.watched = waited_for(thread);
	core_for_each_kind(kind, t->single.watched) before[kind] = thread->events.counter[kind];
	take_all(thread, &extent);
	follow_rates(t, before, (uint64_t)(end - t->start));
	restart(thread);
}

bool tracer_cause(const struct thread *thread, enum core_kind kind, struct core_cause *cause)
{
	const struct tracer *t = tracer_of(thread);

	if (!t || !(t->single.found & CORE_KIND_BIT(kind)))
		return false;
	*cause = t->single.causes[kind];
	return true;
}

void tracer_forget(struct thread *thread)
{
	struct tracer *t = tracer_of(thread);

	if (!t)
		return;
	if (t->single.found)
		t->alone = 0;
	t->single.found = 0;
}

const uint64_t *tracer_start(const struct thread *thread)
{
	return tracer_of(thread)->start;
}

void tracer_cut(struct thread *thread, uint8_t cut)
{
	/* One that comes before the dispatcher has taken in what the last has left knows no better.
	 */
	if (thread->tracer && cut != CUT_TOLD)
		tracer_of(thread)->cut = cut;
}
