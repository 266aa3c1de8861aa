// SPDX-License-Identifier: MIT
/*
 * Where a thread is when it is not in emitted code: finding or building what it goes on with, and
 * what the program asks of the kernel.
 */
#include <asm/vsyscall.h>
#include <linux/signal.h>

#include "runtime/model/block.h"
#include "runtime/pmu/tracer.h"
#include "runtime/sys.h"
#include "runtime/translate/build.h"
#include "runtime/translate/caches.h"
#include "runtime/translate/filter.h"
#include "runtime/translate/inside.h"
#include "runtime/translate/instrument.h"
#include "runtime/translate/learned.h"
#include "runtime/translate/record.h"
#include "runtime/translate/tables.h"
#include "runtime/translate/walk.h"

/* Called from enter.S. When they return the thread goes on inside, at thread->cache. */
void translate_dispatch(struct thread *thread);
void translate_left(struct thread *thread);

/* ---- going on ---- */

/*
 * The three calls that every process once had at fixed addresses, where nothing can be read: the
 * kernel makes them when they are executed.
 */
static bool vsyscall(struct thread *thread)
{
	enum { VSYSCALL_SIZE = 1024 };
	static const uint16_t calls[] = {__NR_gettimeofday, __NR_time, __NR_getcpu};
	const uint64_t offset = thread->regs.rip - VSYSCALL_ADDR;

	if (offset % VSYSCALL_SIZE || offset / VSYSCALL_SIZE >= sizeof(calls) / sizeof(*calls))
		return false;
	return linux_vsyscall(thread, calls[offset / VSYSCALL_SIZE]);
}

/* Makes what was asked for. Returns with thread->inside and where to go on, or 0 for a fault. */
static uint64_t make(struct thread *thread, enum arrival arrival)
{
	struct cache *cache = cache_of(thread);
	struct build_fault fault;
	uint64_t address = 0;
	uint32_t id;

	translate_lock();
	if (!cache_room(cache))
		inside_empty(cache);
	cache_populate(cache);
	id = build(cache, thread->regs.rip, arrival, &fault);
	if (id) {
		fill_tables(cache, arrival, id);
		learned_add(cache, thread->regs.rip, arrival);
		address = (uint64_t)cache->lookup.code + cache->lookup.entries[id].body;
		/* Nobody empties it: he would have the lock. */
		say_inside(thread, cache);
	}
	translate_unlock();
	if (!id && !vsyscall(thread))
		linux_fault(thread, fault.signo, fault.code, fault.address);
	return address && stays_inside(thread) ? address : 0;
}

static uint64_t find(struct thread *thread)
{
	const struct cache *cache = cache_of(thread);
	uint32_t body;

	if (!go_inside(thread))
		return 0;
	body = cache_body(cache, thread->regs.rip);
	if (body)
		return (uint64_t)cache->lookup.code + body;
	thread->inside = 0;
	return 0;
}

/* What translate_written() or pass_stop() has made ready. */
static uint64_t step(struct thread *thread)
{
	const uint64_t address = thread->step;

	if (!address)
		return 0;
	thread->step = 0;
	thread->touches.passed = thread->touches.told;
	thread->touches.told = 0;
	return address;
}

/* ---- overflows ---- */

#define HARDWARE_KINDS (CORE_KIND_BIT(CORE_HARDWARE_KINDS) - 1)

static bool is_due(const struct thread *thread)
{
	uint64_t kinds = thread->events.counting_down & HARDWARE_KINDS;

	for (; kinds; kinds &= kinds - 1)
		if (thread->events.counter[__builtin_ctzl(kinds)] >= 0)
			return true;
	return false;
}

/* Whether the thread's code looks only now and then at a counter that has to be seen at once. */
static bool looks_too_late(const struct thread *thread)
{
	const struct core_task *task = &thread->events;

	return count_looked(cache_of(thread)) & task->counting_down & ~task->early;
}

static bool checks_finely(const struct thread *thread)
{
	return cache_of(thread)->does.extras & INSTRUMENT_FINE;
}

/*
 * A counter will get to 0 in what comes next. It has to be seen where that is, so the thread goes
 * on in code that checks before each few instructions, and executes those that do it alone, until
 * linux_due() says how else.
 */
static void go_slowly(struct thread *thread)
{
	struct instrumentation does = cache_of(thread)->does;

	does.extras |= INSTRUMENT_FINE;
	if (!checks_finely(thread) && translate_instrument(thread, &does) && checks_finely(thread))
		return;
	/* One for all. */
	does.counted |= CORE_KINDS_EXACT;
	does.checked = 0;
	does.extras = (does.extras & ~INSTRUMENT_FINE) | INSTRUMENT_STEPS;
	if (translate_instrument(thread, &does))
		return;
	/* There is no memory for that: a little too early is the best that can be done. */
	for (uint64_t kinds = cache_of(thread)->does.checked; kinds; kinds &= kinds - 1) {
		int64_t *counter = &thread->events.counter[__builtin_ctzl(kinds)];

		if (*counter > -FRAGMENT_BYTES)
			*counter = 0;
	}
}

/* It has let through what touches nothing. */
static void tell_filter(struct thread *thread)
{
	struct cache *cache = instrument_home(thread);

	translate_lock();
	filter_was_wrong(cache, (uint32_t)(thread->cache - (uint64_t)cache->lookup.code),
			 thread->regs.rip);
	translate_unlock();
}

/* Before each instruction that is executed alone. False: there is something to be delivered. */
static bool before_insn(struct thread *thread)
{
	const struct cache *cache = cache_of(thread);

	if (cache_is_slow(cache))
		linux_step_before(thread);
	if (cache_is_slow(cache) &&
	    cache->does.extras & (CORE_EXTRA_BREAKPOINTS | CORE_EXTRA_STOPS) &&
	    !linux_before_insn(thread))
		return false;
	if (instrument_is_away(thread) && !thread->touches.nr)
		tell_filter(thread);
	if (cache_is_slow(cache_of(thread)) &&
	    thread->events.extras & (CORE_EXTRA_BRANCH_STACK | CORE_EXTRA_CALL_STACK))
		linux_branch_before(thread);
	return true;
}

/* Around an overflow, where code would be executed once; @sampled: there has just been one. */
static bool goes_without_code(struct thread *thread, bool *sampled)
{
	const bool behind = *sampled;

	*sampled = false;
	return checks_finely(thread) ? walk_to_overflow(thread) : behind && walk_to_code(thread);
}

/* Behind the exit, if the code is still there. Else it is made again, and stops again. */
static void pass_stop(struct thread *thread)
{
	struct cache *cache = cache_of(thread);
	const struct fragment *f;
	uint32_t id;

	translate_lock();
	id = cache_find(cache, thread->regs.rip);
	f = id ? cache_fragment_at(cache, cache->lookup.entries[id].body) : NULL;
	if (f && f->flags & FRAGMENT_STOP) {
		thread->step = (uint64_t)cache->lookup.code + f->start + f->behind_stop;
		say_inside(thread, cache);
	}
	translate_unlock();
}

/* In code RF is lost. */
static void pass_by_flag(struct thread *thread)
{
	if (thread->step || !(thread->regs.rflags & X86_EFLAGS_RF) ||
	    !cache_stops(cache_of(thread)))
		return;
	thread->touches.told = thread->regs.rip;
	pass_stop(thread);
	if (thread->step && !stays_inside(thread))
		thread->step = 0;
}

/* @arrival is what was missing when the thread came out. */
static void go_on(struct thread *thread, enum arrival arrival)
{
	uint64_t address = 0;
	bool sampled = false;

	if (thread->touches.nr)
		linux_after_insn(thread);
	if (thread->branches.pc)
		linux_branch_after(thread);
	while (!address) {
		if (is_due(thread)) {
			/* It may go on in another cache. */
			thread->step = 0;
			thread->inside = 0;
			linux_due(thread);
			sampled = true;
			arrival = ARRIVE_DIRECT;
		}
		if (__atomic_load_n(&thread->pending, __ATOMIC_RELAXED) ||
		    core_task_changed(&thread->events)) {
			thread->step = 0;
			thread->inside = 0;
			linux_deliver(thread);
			arrival = ARRIVE_DIRECT;
		}
		if (looks_too_late(thread)) {
			/* What is ready is ready for the other cache. */
			thread->step = 0;
			thread->inside = 0;
			if (!walk_to_overflow(thread))
				go_slowly(thread);
			arrival = ARRIVE_DIRECT;
			continue;
		}
		if (cache_of(thread)->does.extras) {
			if (cache_is_slow(cache_of(thread)))
				arrival = ARRIVE_DIRECT;
			if (!before_insn(thread))
				continue;
		}
		pass_by_flag(thread);
		address = step(thread);
		if (!address && arrival == ARRIVE_DIRECT)
			address = find(thread);
		if (!address && goes_without_code(thread, &sampled)) {
			arrival = ARRIVE_DIRECT;
			continue;
		}
		if (!address && !core_task_changed(&thread->events))
			address = make(thread, arrival);
		arrival = ARRIVE_DIRECT;
	}
	if (!cache_is_slow(cache_of(thread)))
		thread->branches.nr = 0; /* what comes is not noted: those were not the last ones */
	thread->cache = address;
}

void translate_dispatch(struct thread *thread)
{
	thread->branches.pc = 0; /* a signal: what comes next is no branch */
	tracer_drain(thread);
	if (!thread->step) {
		thread->inside = 0;
		instrument_go_home(thread);
	}
	go_on(thread, ARRIVE_DIRECT);
}

/* ---- coming out ---- */

static void system_call(struct thread *thread, unsigned int length)
{
	struct regs *regs = &thread->regs;

	/* As the processor does it. */
	regs->rip += length;
	regs->gpr[REG_RCX] = regs->rip;
	regs->gpr[REG_R11] = regs->rflags;
	linux_syscall(thread);
}

/* What is executed at @pc was made from something else. */
static void forget(struct cache *cache, uint64_t pc)
{
	uint32_t id;

	translate_lock();
	id = cache_find(cache, pc);
	if (id)
		cache_kill(cache, cache_fragment_at(cache, cache->lookup.entries[id].body));
	translate_unlock();
}

/* True: it goes on where it was. Else there is something else to be done. */
static bool drain(struct thread *thread)
{
	thread->regs.rip = record_block_at(thread->cache)->pc;
	thread->branches.pc = 0; /* it has not been executed yet */
	tracer_drain(thread);
	return !__atomic_load_n(&thread->pending, __ATOMIC_RELAXED) &&
	       !core_task_changed(&thread->events) && !is_due(thread);
}

/* The instruction where the thread is has not been executed; one that has led there, without
 * code of its own, has. */
static void still_to_come(struct thread *thread)
{
	if (thread->branches.pc == thread->regs.rip)
		thread->branches.pc = 0;
}

void translate_not_passed(struct thread *thread, struct regs *regs)
{
	if (!thread->touches.passed || regs->rip != thread->touches.passed)
		return;
	thread->touches.told = regs->rip;
	regs->rflags |= X86_EFLAGS_RF;
}

/* The branch is what a sample is about; it has changed nothing but rip, or the count of a loop. */
static void taken(struct thread *thread)
{
	struct regs *regs = &thread->regs;
	const uint64_t pc = regs->rip;

	regs->rip = thread->target;
	linux_step_before(thread);
	regs->rip = pc;
}

/* From the registers at the code that filters, as if a signal had come there. */
static void come_to_touch(struct thread *thread)
{
	struct regs regs = thread->regs;
	struct counts counts;

	regs.rip = thread->cache;
	recover_filtered(thread, &regs, &counts);
	thread->regs = regs;
	counts.vectors = 0; /* enter.S has seen to them */
	translate_count(thread, &counts, NULL);
	if (counts.begun)
		thread->touches.told = 0;
	else
		translate_not_passed(thread, &thread->regs);
	thread->touches.passed = 0;
}

static void touches(struct thread *thread)
{
	come_to_touch(thread);
	tracer_drain(thread);
	come_out(thread);
	instrument_go_away(thread);
	go_on(thread, ARRIVE_DIRECT);
}

void translate_left(struct thread *thread)
{
	/* Nothing is emptied before we say that we are out. */
	struct cache *cache = cache_of(thread);
	const struct target target = cache->targets[thread->exit];
	enum arrival arrival = ARRIVE_DIRECT;

	if (thread->exit == EXIT_TOUCH) {
		touches(thread);
		return;
	}
	switch (thread->exit) {
	case EXIT_JUMP_MISS:
		arrival = ARRIVE_JUMP;
		thread->regs.rip = thread->target;
		break;
	case EXIT_RETURN_MISS:
		arrival = ARRIVE_RETURN;
		thread->regs.rip = thread->target;
		break;
	case EXIT_DRAIN:
		if (drain(thread))
			return;
		break;
	default:
		thread->regs.rip = target.pc;
	}
	tracer_drain(thread);
	come_out(thread);
	instrument_go_home(thread);
	/* Code is compared before it stops: who finds it stale has come there once more. Who
	 * goes in behind a stop may find at once that a counter is due; behind something else he
	 * has come there again. */
	if (thread->exit == EXIT_DRAIN || target.kind == EXIT_DUE)
		translate_not_passed(thread, &thread->regs);
	else if (target.kind != EXIT_STOP)
		thread->touches.told = 0;
	if (target.kind != EXIT_SYSCALL) /* which may turn out not to have been made */
		thread->touches.passed = 0;
	switch (target.kind) {
	case EXIT_SYSCALL:
		system_call(thread, target.length);
		break;
	case EXIT_INT80:
		linux_int80(thread, target.length);
		break;
	case EXIT_RDPMC:
		linux_rdpmc(thread, target.length);
		break;
	case EXIT_STALE:
		still_to_come(thread);
		forget(cache, thread->regs.rip);
		break;
	case EXIT_DUE:
	case EXIT_DUE_BEHIND:
		still_to_come(thread);
		if (!is_due(thread))
			go_slowly(thread);
		break;
	case EXIT_TAKEN:
		taken(thread);
		break;
	case EXIT_STOP:
		still_to_come(thread);
		linux_at_breakpoint(thread);
		pass_stop(thread);
		break;
	case EXIT_DETACH:
		linux_detach(thread);
		break;
	}
	go_on(thread, arrival);
}

/* ---- code that changes ---- */

void translate_invalidate(uint64_t start, uint64_t end)
{
	struct cache *cache;

	for (unsigned int n = 0; start < end && (cache = cache_number(n)); n++)
		cache_forget_pages(cache, start >> PAGE_SHIFT, (end - 1) >> PAGE_SHIFT);
}

void translate_written(struct thread *thread, uint64_t address)
{
	const uint64_t page = address >> PAGE_SHIFT, rip = thread->regs.rip;
	struct cache *cache = cache_of(thread), *each;
	struct build_fault fault;

	thread->inside = 0;
	thread->step = 0;
	translate_lock();
	for (unsigned int n = 0; (each = cache_number(n)); n++)
		cache_written(each, page);
	if (rip >> PAGE_SHIFT == page || (rip + INSN_MAX - 1) >> PAGE_SHIFT == page) {
		if (!cache_room(cache))
			inside_empty(cache);
		cache_populate(cache);
		const uint32_t start = build_step(cache, rip, &fault);

		if (start) {
			thread->step = (uint64_t)cache->lookup.code + start;
			say_inside(thread, cache);
		}
	}
	translate_unlock();
}
