// SPDX-License-Identifier: MIT
#include "runtime/translate/walk.h"

#include "core/task.h"
#include "runtime/thread.h"
#include "runtime/translate/cache.h"
#include "runtime/translate/interpret.h"
#include "runtime/translate/translate.h"

/*
 * How far an overflow may be: of instructions as far as code looks late; of others there is one in
 * some instructions. Where they turn out to be rare, it goes on in code.
 */
enum { FAR = CORE_EARLY_INSNS, FAR_OF_OTHERS = CORE_EARLY_INSNS / 8, MOST = 2 * FAR };

/* What struct thread says of who walks. */
#define INSIDE_WALK UINT32_MAX

/* How far code may be. */
enum { MOST_TO_CODE = 64 };

/* With these an instruction raises what interpreting it does not; none that could set them is
 * interpreted. */
enum { TRAP_FLAG = 0x100, ALIGNMENT_CHECK = 0x40000 };

struct walk {
	struct thread *thread;
	const struct cache *cache;
	uint64_t counted;	/* kinds beside instructions */
	struct code_range code; /* where it is, or was last */
};

#define INSTRUCTIONS CORE_KIND_BIT(CORE_INSTRUCTIONS)

/*
 * Who wants a thread to be still waits for it here, too; it is in no cache that somebody may want
 * to empty. A full barrier, as for who goes inside: core/still.h.
 */
static void come_in(struct thread *thread)
{
	__atomic_exchange_n(&thread->inside, INSIDE_WALK, __ATOMIC_SEQ_CST);
}

static void come_out(struct thread *thread)
{
	__atomic_store_n(&thread->inside, 0, __ATOMIC_RELEASE);
}

static bool can_walk(struct walk *w, struct thread *thread)
{
	const struct cache *cache = (const struct cache *)thread->lookup;
	const uint64_t extras = cache->does.extras | thread->events.extras;

	w->thread = thread;
	w->cache = cache;
	w->counted = cache->does.counted & ~INSTRUCTIONS;
	w->code = (struct code_range){0};
	/* A page fault is where the processor is. */
	return !cache_traces(cache) && !cache_is_slow(cache) && !(extras & CORE_EXTRAS) &&
	       !(thread->events.sampled & CORE_KINDS_FAULTS) &&
	       !(thread->regs.rflags & (TRAP_FLAG | ALIGNMENT_CHECK));
}

/* How many instructions come at least before a counter is at 0 that somebody waits for. */
static int64_t distance(const struct core_task *task, uint64_t kinds)
{
	const uint64_t hardware = (1UL << CORE_HARDWARE_KINDS) - 1;
	int64_t most = CORE_COUNTER_START;

	core_for_each_kind(kind, task->counting_down & hardware & kinds)
		if (task->counter[kind] > most)
			most = task->counter[kind];
	return most == CORE_COUNTER_START ? INT64_MAX : -most;
}

static bool is_near(const struct core_task *task)
{
	return distance(task, INSTRUCTIONS) <= FAR ||
	       distance(task, ~INSTRUCTIONS) <= FAR_OF_OTHERS;
}

static void count(struct core_task *task, unsigned int kind, unsigned int more)
{
	__atomic_store_n(&task->counter[kind], task->counter[kind] + more, __ATOMIC_RELAXED);
}

static bool is_there(const struct code_range *range, uint64_t pc)
{
	return pc >= range->start && pc < range->end && range->end - pc >= INTERPRET_BYTES;
}

static bool find_code(struct code_range *range, uint64_t pc)
{
	int error;

	translate_lock();
	error = memory_code(pc, range);
	translate_unlock();
	return !error && is_there(range, pc);
}

static bool is_wanted(const struct thread *thread)
{
	return __atomic_load_n(&thread->pending, __ATOMIC_RELAXED) ||
	       core_task_changed(&thread->events);
}

/* At most @most instructions, by which no counter gets to 0 unless it is one; returns how many. */
static unsigned int run(struct walk *w, int64_t most, bool to_code)
{
	_Alignas(uint64_t) uint8_t code[INTERPRET_ROOM] = {0};
	struct thread *thread = w->thread;
	struct core_task *task = &thread->events;
	unsigned int insns = 0;
	uint64_t kinds;

	while (insns < most && !is_wanted(thread)) {
		const uint64_t pc = thread->regs.rip;

		if (!is_there(&w->code, pc) && !find_code(&w->code, pc))
			break;
		if (!linux_load_code((uint64_t *)code, pc))
			break;
		kinds = interpret(&thread->regs, code);
		if (!kinds)
			break;
		insns++;
		core_for_each_kind(kind, kinds & w->counted)
			count(task, kind, 1);
		if (to_code && kinds & CORE_KIND_BIT(CORE_BRANCHES) &&
		    cache_body(w->cache, thread->regs.rip))
			break;
	}
	if (w->cache->does.counted & INSTRUCTIONS)
		count(task, CORE_INSTRUCTIONS, insns);
	return insns;
}

/* The next instruction may do it: then it is what a sample is about. */
static bool run_last(struct walk *w)
{
	struct thread *thread = w->thread;
	const struct regs before = thread->regs;
	struct regs after;

	if (!run(w, 1, false))
		return false;
	if (distance(&thread->events, ~0UL) > 0)
		return true;
	after = thread->regs;
	thread->regs = before;
	linux_step_before(thread);
	thread->regs = after;
	return true;
}

bool walk_to_overflow(struct thread *thread)
{
	const struct core_task *task = &thread->events;
	int64_t left, insns = 0;
	struct walk w;

	if (!can_walk(&w, thread) || !is_near(task))
		return false;
	come_in(thread);
	for (left = distance(task, ~0UL); left > 0 && insns < MOST; left = distance(task, ~0UL)) {
		const int64_t surely = left - 1 < MOST ? left - 1 : MOST,
			      n = run(&w, surely, false);

		insns += n;
		if (n < surely || !run_last(&w))
			break;
		insns++;
	}
	come_out(thread);
	return insns;
}

bool walk_to_code(struct thread *thread)
{
	struct walk w;
	int64_t surely;
	bool walked;

	if (!can_walk(&w, thread))
		return false;
	surely = distance(&thread->events, ~0UL) - 1;
	come_in(thread);
	walked = run(&w, surely < MOST_TO_CODE ? surely : MOST_TO_CODE, true);
	come_out(thread);
	return walked;
}
