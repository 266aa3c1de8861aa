// SPDX-License-Identifier: MIT
#include "runtime/pmu/tracer.h"

#include "runtime/fs.h"
#include "runtime/model/model.h"
#include "runtime/pmu/branch_trace.h"
#include "runtime/pmu/intake.h"
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
	size_t size;	     /* with the model behind it */
	void *buffer;
	uint64_t *border;
	uint8_t cut;
	struct intake intake;
	/* Of kinds that somebody waits for, how many there have been in a word lately, times
	 * RATE_ONE; and since that was reckoned. */
	uint64_t rates[CORE_HARDWARE_KINDS];
	uint64_t seen[CORE_HARDWARE_KINDS], seen_words;
	uint32_t alone; /* records that were taken in alone, since the last overflow */
};

/* Of the first thread's model, which programs soon use all over. The last part of a large machine's
 * is used as far as their memory reaches, and so is that of other threads, as there may be many. */
#define POPULATED (3UL << 20)

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

	core_for_each_kind(kind, task->counting_down & TRACED_KINDS)
		if (task->counter[kind] < 0)
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
	core_for_each_kind(kind, thread->events.counting_down & TRACED_KINDS) {
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
	t->cut = 0;
	thread->trace_start = t->border - words;
	thread->trace = (uint64_t)thread->trace_start;
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
	if (!tracers)
		memory_populate((uint64_t)memory,
				(uint64_t)memory + (size < POPULATED ? size : POPULATED));
	memory_populate((uint64_t)t->buffer, (uint64_t)t->buffer + BUFFER_SIZE);
	t->size = size;
	t->border = (uint64_t *)(((uint64_t)t->buffer + 2 * BORDER - 1) & -(uint64_t)BORDER);
	t->intake = (struct intake){
		.single.model = model_make(memory + ((sizeof(*t) + 63) & ~63UL), &machine),
		.single.machine = &machine,
		.single.room = (uint8_t *)t->border + PARTS,
		.single.counter = thread->events.counter,
		.end = (struct compiled_end *)((uint8_t *)t->border + END),
		.part = (struct block *)((uint8_t *)t->border + CUT),
	};
	model_compile_end(t->intake.end);
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
	memory_less(t, t->size);
}

void tracer_follow(struct thread *thread)
{
	if (thread->tracer && thread->trace == (uint64_t)thread->trace_start)
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

/* The records up to @end are whole, and what follows begins at @pc; the one that begins there, if
 * any, was left after @insns instructions. */
struct extent {
	uint64_t *end, pc;
	unsigned int insns;
};

static struct extent extent_of(const struct thread *thread, uint64_t *end)
{
	const struct tracer *t = tracer_of(thread);
	uint64_t *record = t->cut ? last_record(thread->trace_start, end) : NULL;
	const struct block *block = record ? record_block(*record) : NULL;
	const unsigned int all = block ? insns_of(block) : 0;
	const unsigned int insns = t->cut == CUT_LAST ? all - 1 : t->cut - 1u;

	if (!block || insns >= all)
		return (struct extent){.end = end, .pc = thread->regs.rip};
	return (struct extent){.end = record, .pc = block->pc, .insns = insns};
}

static void take_in(struct tracer *t, uint64_t *start, const struct extent *extent, uint64_t pc)
{
	intake_records(&t->intake, start, extent->end, extent->pc, !extent->insns);
	if (extent->insns)
		intake_part(&t->intake, extent->end, extent->insns, pc);
}

/* Who only wants the branches needs no model. */
static bool models(const struct core_task *task)
{
	return !task->tracing || __atomic_load_n(&task->wanted, __ATOMIC_RELAXED) & HARDWARE_KINDS;
}

static void follow_rates(struct tracer *t, const int64_t *before, uint64_t words)
{
	core_for_each_kind(kind, t->intake.single.watched)
		t->seen[kind] += (uint64_t)(t->intake.single.counter[kind] - before[kind]);
	t->seen_words += words;
	if (t->seen_words < RATE_WORDS)
		return;
	core_for_each_kind(kind, t->intake.single.watched) {
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

	if (!t || thread->trace == (uint64_t)thread->trace_start)
		return;
	end = (uint64_t *)thread->trace;
	extent = extent_of(thread, end);
	if (thread->events.tracing)
		branch_trace(&thread->events, thread->trace_start, extent.end, extent.pc);
	if (!models(&thread->events)) {
		restart(thread);
		return;
	}
	t->intake.single.fs_base = fs_base_known(&thread->fs);
	t->intake.single.watched = waited_for(thread);
	core_for_each_kind(kind, t->intake.single.watched)
		before[kind] = thread->events.counter[kind];
	take_in(t, thread->trace_start, &extent, thread->regs.rip);
	follow_rates(t, before, (uint64_t)(end - thread->trace_start));
	restart(thread);
}

bool tracer_cause(const struct thread *thread, enum core_kind kind, struct core_cause *cause)
{
	const struct tracer *t = tracer_of(thread);

	if (!t || !(t->intake.single.found & CORE_KIND_BIT(kind)))
		return false;
	*cause = t->intake.single.causes[kind];
	return true;
}

void tracer_forget(struct thread *thread)
{
	struct tracer *t = tracer_of(thread);

	if (!t)
		return;
	if (t->intake.single.found)
		t->alone = 0;
	t->intake.single.found = 0;
}

void tracer_cut(struct thread *thread, uint8_t cut)
{
	/* One that comes before the dispatcher has taken in what the last has left knows no better.
	 */
	if (thread->tracer && cut != CUT_TOLD)
		tracer_of(thread)->cut = cut;
}
