// SPDX-License-Identifier: MIT
/*
 * From the registers at any byte of emitted code, or of the assembly around it, to the program's.
 *
 * Nothing is kept for it but where fragments begin and end: the fragment is emitted once more, and
 * what is known of each byte falls out on the way (mark() in emit.h).
 */
#include "runtime/pmu/tracer.h"
#include "runtime/translate/build.h"
#include "runtime/translate/caches.h"

/* What enter.S consists of. */
extern const char translate_run_end[], translate_enter[], translate_saved[];
extern const char translate_enter_end[];
extern const char translate_leave[], translate_leave_end[];
extern const char translate_drain[], translate_drain_end[];
extern const char translate_touch[], translate_touch_end[];
extern const char translate_return_miss[], translate_return_popped[], translate_return_miss_end[];
extern const char translate_jump_miss[], translate_jump_miss_end[];
extern const char translate_look_up[], translate_spilled[];
extern const char translate_flags_kept[], translate_flags_back[];
extern const char translate_look_up_end[];

static bool between(uint64_t rip, const char *start, const char *end)
{
	return rip >= (uint64_t)start && rip < (uint64_t)end;
}

/* As lahf left them in ah, and seto in al. */
static uint64_t low_flags(uint64_t rflags, uint64_t kept)
{
	return (rflags & ~FLAGS_SAHF) | (kept >> 8 & FLAGS_SAHF);
}

static uint64_t kept_flags(uint64_t rflags, uint64_t kept)
{
	return (low_flags(rflags, kept) & ~X86_EFLAGS_OF) | (kept & 1 ? X86_EFLAGS_OF : 0);
}

static void apply(const struct thread *thread, struct state state, struct regs *regs)
{
	uint64_t *gpr = regs->gpr;

	if (state.spills & SPILL_FLAGS)
		regs->rflags = kept_flags(regs->rflags, gpr[REG_RAX]);
	if (state.spills & SPILL_LOW_FLAGS)
		regs->rflags = low_flags(regs->rflags, gpr[REG_RAX]);
	if (state.spills & SPILL_RCX)
		gpr[REG_RCX] = thread->spill_rcx;
	if (state.spills & SPILL_RDX)
		gpr[REG_RDX] = thread->spill_rdx;
	if (state.spills & SPILL_RAX)
		gpr[REG_RAX] = thread->spill_rax;
	if (state.spills & SPILL_FAR)
		gpr[state.far] = thread->spill_rax;
	for (unsigned int i = 0; i < 2; i++)
		if (state.held[i])
			gpr[state.held[i] - 1] = thread->held[i];
	gpr[REG_RSP] += state.rsp;
	switch (state.where) {
	case AT_PC:
		regs->rip = state.pc;
		break;
	case AT_TARGET:
		regs->rip = thread->target;
		break;
	case AT_STACK:
		regs->rip = *(const uint64_t *)gpr[REG_RSP];
		gpr[REG_RSP] += 8;
		break;
	}
}

static const struct state jump_state = {.where = AT_TARGET, .spills = SPILL_RCX};
static const struct state return_state = {.where = AT_STACK, .spills = SPILL_RCX};
static const struct state popped_state = {.where = AT_STACK, .spills = SPILL_RCX, .rsp = -8};

/* In the second try of a lookup. */
static void recover_look_up(const struct thread *thread, struct regs *regs)
{
	struct state state = jump_state;

	if (regs->rip >= (uint64_t)translate_spilled)
		state.spills |= SPILL_RAX | SPILL_RDX;
	if (between(regs->rip, translate_flags_kept, translate_flags_back))
		regs->rflags = kept_flags(regs->rflags, thread->spill_flags);
	apply(thread, state, regs);
}

static enum translate_place recover_assembly(const struct thread *thread, struct regs *regs,
					     struct counts *counts)
{
	const uint64_t rip = regs->rip;

	if (between(rip, (const char *)translate_run, translate_run_end) ||
	    between(rip, translate_enter, translate_enter_end)) {
		*regs = thread->regs;
		counts->begun = false;
		counts->cut = CUT_TOLD;
		counts->vectors =
			between(rip, translate_saved, translate_enter_end) ? COUNT_SAVED : 0;
	} else if (between(rip, translate_return_miss, translate_return_popped))
		apply(thread, popped_state, regs);
	else if (between(rip, translate_return_popped, translate_return_miss_end) ||
		 between(rip, translate_jump_miss, translate_jump_miss_end))
		apply(thread, jump_state, regs);
	else if (between(rip, translate_look_up, translate_look_up_end))
		recover_look_up(thread, regs);
	else if (between(rip, translate_leave, translate_leave_end) ||
		 between(rip, translate_drain, translate_drain_end) ||
		 between(rip, translate_touch, translate_touch_end))
		return TRANSLATE_LEAVING;
	else
		return TRANSLATE_ELSEWHERE;
	return TRANSLATE_INSIDE;
}

static enum translate_place recover_way_out(const struct thread *thread, const struct cache *cache,
					    uint32_t offset, struct regs *regs)
{
	if (offset >= cache->leave)
		return TRANSLATE_LEAVING;
	apply(thread,
	      offset >= cache->popped_miss   ? popped_state
	      : offset >= cache->return_miss ? return_state
					     : jump_state,
	      regs);
	return TRANSLATE_INSIDE;
}

static struct state state_at(struct cache *cache, const struct fragment *f, uint64_t rip)
{
	uint8_t buffer[FRAGMENT_BYTES];
	struct state state = rehearse(cache, f, rip, buffer);
	const uint32_t offset = (uint32_t)(rip - (uint64_t)cache->lookup.code) - f->start;

	/* Who passes a stop goes in behind it. */
	state.counts.begun = state.begun || offset < f->behind_stop;
	return state;
}

static void recover_fragment(const struct thread *thread, struct cache *cache,
			     const struct fragment *f, struct regs *regs, struct counts *counts)
{
	const struct state state = state_at(cache, f, regs->rip);

	*counts = state.counts;
	apply(thread, state, regs);
}

/* Finds it, or makes room. */
static struct filtered *filtered_at(struct thread *thread, uint64_t address)
{
	struct filtered *known = thread->filtered;

	if (known[0].address == address)
		return &known[0];
	if (known[1].address != address) {
		known[1] = known[0];
		return &known[0];
	}
	return &known[1];
}

void recover_filtered(struct thread *thread, struct regs *regs, struct counts *counts)
{
	struct filtered *known = filtered_at(thread, regs->rip);
	struct cache *cache = cache_at(regs->rip);
	struct state state;

	_Static_assert(sizeof(state) == sizeof(known->state), "");
	if (known->address != regs->rip) {
		state = state_at(cache,
				 cache_fragment_at(cache, (uint32_t)(regs->rip -
								     (uint64_t)cache->lookup.code)),
				 regs->rip);
		known->address = regs->rip;
		__builtin_memcpy(known->state, &state, sizeof(state));
	}
	__builtin_memcpy(&state, known->state, sizeof(state));
	*counts = state.counts;
	apply(thread, state, regs);
}

void recover_forget(struct thread *thread)
{
	thread->filtered[0].address = thread->filtered[1].address = 0;
}

/* On its way out, all of the fragment has been counted, or traced. */
static void recover_stub(const struct cache *cache, const struct target *target, struct regs *regs,
			 struct counts *counts)
{
	regs->rip = target->pc;
	if (target->kind == EXIT_DUE || target->kind == EXIT_DUE_BEHIND ||
	    target->kind == EXIT_DETACH)
		counts->begun = false;
	if (target->kind == EXIT_SYSCALL || target->kind == EXIT_INT80 ||
	    target->kind == EXIT_RDPMC) {
		counts->begun = false;
		counts->of[CORE_INSTRUCTIONS] = cache_traces(cache) ? 0 : -1;
		counts->cut = cache_traces(cache) ? CUT_LAST : 0;
	}
}

static enum translate_place recover_code(const struct thread *thread, struct cache *cache,
					 struct regs *regs, struct counts *counts)
{
	const uint32_t offset = (uint32_t)(regs->rip - (uint64_t)cache->lookup.code);
	const struct fragment *f;

	if (offset < WAYS_OUT)
		return recover_way_out(thread, cache, offset, regs);
	if (offset >= cache->stubs) {
		recover_stub(cache, &cache->targets[(offset - cache->stubs) / STUB_BYTES], regs,
			     counts);
		return TRANSLATE_INSIDE;
	}
	f = cache_fragment_at(cache, offset);
	if (f)
		recover_fragment(thread, cache, f, regs, counts);
	return f ? TRANSLATE_INSIDE : TRANSLATE_ELSEWHERE;
}

enum translate_place translate_recover(const struct thread *thread, struct regs *regs,
				       struct counts *counts)
{
	struct cache *cache = cache_at(regs->rip);

	*counts = (struct counts){.vectors = COUNT_VECTORS, .begun = true};
	return cache ? recover_code(thread, cache, regs, counts)
		     : recover_assembly(thread, regs, counts);
}

/* What the code's registers have goes home, and the program's own into the frame. */
static void exchange(struct thread *thread, uint8_t vectors, uint8_t (*xmm)[16])
{
	uint8_t *home = (uint8_t *)thread + thread->lookup->home;

	for (unsigned int i = 0; i < thread->lookup->vectors; i++) {
		if (vectors >> i & 1)
			__builtin_memcpy(home + 16 * i, xmm[15 - i], 16);
		if (vectors & (COUNT_SAVED | 1u << i))
			__builtin_memcpy(xmm[15 - i], thread->vectors[i], 16);
	}
}

void translate_count(struct thread *thread, const struct counts *counts, uint8_t (*xmm)[16])
{
	const uint64_t counted = ((const struct cache *)thread->lookup)->does.counted;

	exchange(thread, counts->vectors, xmm);
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		if (counted >> kind & 1)
			thread->events.counter[kind] += counts->of[kind];
	tracer_cut(thread, counts->cut);
}
