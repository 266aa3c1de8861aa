// SPDX-License-Identifier: MIT
#include "runtime/pmu/tracer.h"

#include "runtime/model/model.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

#include <asm/prctl.h>

enum {
	BORDER = 64 << 10,
	WORDS_MAX = 4096,
	/* Behind the border: the window, the record that began before it, the block. */
	BEHIND = 8 * BLOCK_MAX_WORDS + 8,
	BUFFER_SIZE = 2 * BORDER + 4096,
};

_Static_assert(8 * BLOCK_MAX_WORDS <= 256, "a record must not jump over the window");

struct tracer {
	struct model *model;
	size_t model_size;
	void *buffer;
	uint64_t *start, *border;
	uint8_t cut;
};

static struct machine machine;

void tracer_machine(const struct machine *m)
{
	machine = *m;
}

/* ---- beginning and end ---- */

static struct tracer *tracer_of(const struct thread *thread)
{
	return thread->tracer;
}

/* How long the trace may get: less when somebody waits for an overflow that is near. */
static uint64_t words_allowed(const struct thread *thread)
{
	const struct core_task *task = &thread->events;
	uint64_t kinds = task->counting_down & (CORE_KIND_BIT(CORE_HARDWARE_KINDS) - 1),
		 words = WORDS_MAX;

	for (; kinds; kinds &= kinds - 1) {
		const int64_t left = -task->counter[__builtin_ctzl(kinds)];

		/* A word stands for about two instructions, and as many cycles. */
		if (left / 4 < (int64_t)words)
			words = left < 8 ? 1 : left / 4;
	}
	return words;
}

static void restart(struct thread *thread)
{
	struct tracer *t = tracer_of(thread);

	t->start = t->border - words_allowed(thread);
	t->cut = 0;
	thread->trace = (uint64_t)t->start;
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
	t->model = model_make(memory + ((sizeof(*t) + 63) & ~63UL), &machine);
	thread->tracer = t;
	restart(thread);
	return true;
}

void tracer_end(struct thread *thread)
{
	struct tracer *t = tracer_of(thread);

	if (!t)
		return;
	thread->tracer = NULL;
	memory_less(t->buffer, BUFFER_SIZE);
	memory_less(t, t->model_size);
}

/* ---- the trace ---- */

static uint64_t *last_record(uint64_t *start, const uint64_t *end)
{
	uint64_t *record = start, *next = start;

	while (next < end) {
		record = next;
		next += ((const struct block *)*record)->words;
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
	if (to->shape != BLOCK_ODD)
		to->shape = to->nr_accesses;
	to->counts = BLOCK_COUNT(insns, BLOCK_INSTRUCTIONS) |
		     BLOCK_COUNT(loads, BLOCK_LOAD_OPERANDS) |
		     BLOCK_COUNT(stores, BLOCK_STORE_OPERANDS);
}

/* Makes the last record what has been executed of it. Returns where the trace ends. */
static uint64_t *apply_cut(const struct thread *thread, uint64_t *end)
{
	struct tracer *t = tracer_of(thread);
	uint64_t *record = last_record(t->start, end);
	const struct block *block = (const struct block *)*record;
	const unsigned int all = insns_of(block);
	const unsigned int insns = t->cut == CUT_LAST ? all - 1 : t->cut - 1u;
	struct block *part = (struct block *)((uint8_t *)t->border + 1024);

	if (insns >= all)
		return end;
	if (!insns)
		return record;
	cut_block(part, block, insns, thread->regs.rip);
	*record = (uint64_t)part;
	return end;
}

static uint64_t fs_base(void)
{
	uint64_t base = 0;

	sys(__NR_arch_prctl, ARCH_GET_FS, &base);
	return base;
}

void tracer_drain(struct thread *thread)
{
	struct tracer *t = tracer_of(thread);
	uint64_t *end;

	if (!t || thread->trace == (uint64_t)t->start)
		return;
	end = (uint64_t *)thread->trace;
	if (t->cut)
		end = apply_cut(thread, end);
	if (end > t->start)
		model_run(t->model, t->start, end, thread->regs.rip, fs_base(),
			  thread->events.counter);
	restart(thread);
}

const uint64_t *tracer_start(const struct thread *thread)
{
	return tracer_of(thread)->start;
}

void tracer_cut(struct thread *thread, uint8_t cut)
{
	if (thread->tracer)
		tracer_of(thread)->cut = cut;
}
