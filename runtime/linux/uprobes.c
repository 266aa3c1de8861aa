// SPDX-License-Identifier: MIT
/*
 * Probes of files, as events of the unit `uprobe` place them: what the kernel does by breakpoints
 * in the program's code is done by stops in what is made of that (translate/stops.h). A probe is
 * known by file and offset; where it is mapped the memory map says, as far as the kernel would probe
 * it: privately and not writable.
 *
 * Returns. The kernel has a function return elsewhere. Here its caller's code stops where it returns
 * to, and what is on the stack stays as it is: for debuggers, exceptions, and whoever reads it. Who
 * comes there has returned if the stack is where it was at the entry, and if it was a return that
 * led there: translated ones leave an address of theirs below (emit_return()), which is wiped out
 * when the function begins. So a jump over the call is no return, even if the call has been left by
 * longjmp(3).
 */
#include "runtime/linux/uprobes.h"

#include "core/core.h"
#include "core/host.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/memory_map.h"
#include "runtime/linux/task.h"
#include "runtime/linux/tasks.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/translate.h"

enum {
	PLACES_MAX = 4096,  /* in a process, as long as it executes the same image */
	RETURNS_MAX = 4096, /* calls that have not returned: of the kernel 64 */
	CALL_LEAST = 2,	    /* bytes of a call */
	CALL_MOST = 9,
	KNOWN = 1024, /* places at which calls have been looked for */
};

/* ---- where they are ---- */

/* Of all threads, and those that were: with the translator's lock. */
static _Alignas(PAGE) struct core_probe places[PLACES_MAX];
static uint32_t nr_places;
/* Which they are, by a hash: less 1, and 0 is none. */
enum { HASHED = 2 * PLACES_MAX };
static _Alignas(PAGE) uint16_t by_hash[HASHED];

/* There was no room for one more stop, so each instruction is looked at. */
static bool crowded;

static bool stop_at(uint64_t at)
{
	crowded |= !translate_stop_at(at);
	return !crowded;
}

/*
 * Where functions return to may be anywhere. Room is left for probes in what others map: nobody tells the
 * threads that have them already that stops have become too many.
 */
static bool stop_at_return(uint64_t at)
{
	crowded |= translate_stops_left() <= PLACES_MAX;
	return !crowded && stop_at(at);
}

/* Whether there can be probes in @range. */
static bool is_probed(const struct range *range)
{
	return range->kind == RANGE_PRIVATE && range->inode && range->prot & PROT_EXEC &&
	       !(range->prot & PROT_WRITE);
}

/* Where @probe is in @range; 0: it is not. */
static uint64_t place_in(const struct range *range, const struct core_probe *probe)
{
	const uint64_t at = range->start + (probe->offset - range->offset);

	if (!is_probed(range) || range->inode != probe->file.inode ||
	    range->device != probe->file.device)
		return 0;
	return at >= range->start && at < range->end ? at : 0;
}

/* Where the number of @probe is in by_hash, or is to be. */
static uint16_t *number_of(const struct core_probe *probe)
{
	const uint64_t odd = 0x9e3779b97f4a7c15;
	uint64_t at = ((probe->offset * odd ^ probe->file.inode) * odd) >> 32;

	while (by_hash[at % HASHED] &&
	       !core_is_same_probe(&places[by_hash[at % HASHED] - 1], probe))
		at++;
	return &by_hash[at % HASHED];
}

/* With the lock. */
static bool know(const struct core_probe *probe)
{
	uint16_t *number = number_of(probe);

	if (*number)
		return true;
	if (nr_places == PLACES_MAX)
		return false;
	for (const struct range *r = map_from(0); r; r = map_next(r)) {
		const uint64_t at = place_in(r, probe);

		if (at && !stop_at(at))
			return false;
	}
	places[nr_places] = *probe;
	*number = (uint16_t)(nr_places + 1);
	__atomic_store_n(&nr_places, nr_places + 1, __ATOMIC_RELEASE);
	return true;
}

static bool know_all(const struct core_probe *probes, size_t n)
{
	bool all = true;

	translate_lock();
	if (n && !nr_places)
		memory_identify_mapped(0, ADDRESS_MAX);
	for (size_t i = 0; i < n && all; i++)
		all = know(&probes[i]);
	translate_unlock();
	return all;
}

bool uprobes_follow(struct thread *thread)
{
	enum { AT_ONCE = 64 };
	struct core_probe some[AT_ONCE];
	size_t n;

	for (size_t from = 0;; from += AT_ONCE) {
		n = core_probe_places(&thread->events, some, from, AT_ONCE);
		if (n <= from)
			return !n || !crowded;
		n -= from;
		if (!know_all(some, n < AT_ONCE ? n : AT_ONCE))
			return false;
	}
}

void uprobes_mapped(uint64_t start, uint64_t end)
{
	if (!nr_places)
		return;
	for (const struct range *r = map_from(start); r && r->start < end; r = map_next(r))
		for (uint32_t i = 0; i < nr_places; i++) {
			const uint64_t at = place_in(r, &places[i]);

			if (at)
				stop_at(at);
		}
}

void uprobes_became_code(uint64_t start, uint64_t end)
{
	if (!nr_places)
		return;
	memory_identify_mapped(start, end);
	uprobes_mapped(start, end);
}

uint64_t uprobes_place(const struct core_probe *probe)
{
	uint64_t at = 0;

	translate_lock();
	for (const struct range *r = map_from(0); r && !at; r = map_next(r))
		at = place_in(r, probe);
	translate_unlock();
	return at;
}

/* What is mapped at @pc; false: nothing where probes can be. */
static bool find(uint64_t pc, struct core_probe *probe)
{
	const struct range *range;
	bool found;

	translate_lock();
	range = map_at(pc);
	found = range && is_probed(range);
	if (found)
		*probe = (struct core_probe){
			.file = {range->device, range->inode},
			.offset = range->offset + (pc - range->start),
		};
	translate_unlock();
	return found;
}

/* ---- returns ---- */

struct returns {
	uint32_t nr; /* of calls, the last of them last */
	struct call {
		struct core_probe_met met;
		uint64_t slot; /* where its return address lies */
	} of[RETURNS_MAX];
};

/* What the return from the function with its address at @slot leaves behind, if it has. */
static uint64_t trace_of_return(uint64_t slot)
{
	return slot - sizeof(uint64_t);
}

static bool is_same_call(const struct call *a, const struct call *b)
{
	return a->slot == b->slot && a->met.back == b->met.back;
}

/*
 * Calls of which nobody has seen the return, by longjmp(3) or exceptions. A function that is left
 * by a jump to another one, which returns for both, is no such: but if it comes to itself again from
 * there, it is taken for one that has been called anew.
 */
static void forget_left(struct returns *returns, const struct call *call)
{
	uint32_t kept = returns->nr;

	if (returns->nr == RETURNS_MAX) {
		kept = 0;
		for (uint32_t i = 0; i < returns->nr; i++)
			if (returns->of[i].slot > call->slot)
				returns->of[kept++] = returns->of[i];
	}
	while (kept && returns->of[kept - 1].slot == call->slot &&
	       (!is_same_call(&returns->of[kept - 1], call) ||
		core_is_same_probe(&returns->of[kept - 1].met.place, &call->met.place)))
		kept--;
	returns->nr = kept;
}

/*
 * What an earlier return has left is not this one's. Nothing else is touched: who comes here by a jump,
 * as a function in a loop from its beginning on, may keep something below the stack.
 */
static void wipe_trace(struct thread *thread, uint64_t slot)
{
	const uint64_t at = trace_of_return(slot);
	uint64_t trace;

	thread->target = 0;
	if (core_host_read(&trace, at, sizeof(trace)) == sizeof(trace) &&
	    translate_has_emitted(trace))
		linux_store(at, 0, sizeof(trace));
}

/* Whether there is a call at @at that returns @length bytes behind. */
static bool is_call(uint64_t at, uint64_t length)
{
	uint8_t code[INSN_MAX];
	struct insn insn;

	return insn_decode(&insn, code, linux_code(code, at, sizeof(code))) &&
	       insn_is_call(&insn) && insn.length == length;
}

/* Code stops at calls as well that return to @back, so that it is seen who calls from there again. Bytes
 * that happen to look like one, amid others, are not executed. */
static bool stop_at_calls(uint64_t back)
{
	static _Alignas(PAGE) uint64_t known[KNOWN];
	bool all = true;

	if (known[back % KNOWN] == back)
		return true;
	known[back % KNOWN] = back;
	for (uint64_t length = CALL_LEAST; length <= CALL_MOST; length++)
		if (is_call(back - length, length))
			all &= stop_at_return(back - length);
	return all;
}

/* A function has been entered that somebody wants to see return. */
static void await_return(struct thread *thread, const struct core_probe_met *met)
{
	struct call call = {.met = *met, .slot = thread->regs.gpr[REG_RSP]};
	struct returns *returns = thread->task->returns;
	bool can;

	if (!returns)
		returns = thread->task->returns = memory_allocate(sizeof(*returns), 0);
	if (!returns || !linux_load(&call.met.back, call.slot, sizeof(call.met.back), false))
		return;
	forget_left(returns, &call);
	if (returns->nr == RETURNS_MAX)
		return;
	wipe_trace(thread, call.slot);
	returns->of[returns->nr++] = call;
	translate_lock();
	can = stop_at_return(call.met.back) && stop_at_calls(call.met.back);
	translate_unlock();
	if (!can)
		tasks_instrument(thread);
}

/* Of the calls the last one that returns to @pc from where the stack is; false: none. */
static bool find_call(const struct returns *returns, uint64_t pc, uint64_t slot, uint32_t *which)
{
	for (*which = returns->nr; *which > 0; --*which)
		if (returns->of[*which - 1].slot == slot && returns->of[*which - 1].met.back == pc)
			return true;
	return false;
}

static bool has_returned(const struct thread *thread, uint64_t slot, uint64_t pc)
{
	uint64_t trace;

	return core_host_read(&trace, trace_of_return(slot), sizeof(trace)) == sizeof(trace) &&
	       translate_has_returned(thread, trace, pc);
}

/* Those that have been called since are left, too. */
static bool returned(struct thread *thread, uint64_t pc)
{
	struct returns *returns = thread->task->returns;
	const uint64_t slot = thread->regs.gpr[REG_RSP] - sizeof(uint64_t);
	bool met = false;
	uint32_t nr;

	if (!returns || !find_call(returns, pc, slot, &nr))
		return false;
	returns->nr = nr;
	if (!has_returned(thread, slot, pc))
		return false;
	while (returns->nr && is_same_call(&returns->of[returns->nr - 1], &returns->of[nr - 1])) {
		const struct core_probe_met *call = &returns->of[--returns->nr].met;

		if (!core_probe_at(&thread->events, &call->place, true))
			continue;
		core_probe_met(&thread->events, call);
		met = true;
	}
	return met;
}

/*
 * At a call: who has called from here, with the stack as it is, and has not returned never will. What is
 * called now, as the next of an interpreter's functions after one that was left by longjmp(3), returns to
 * the same place by a return.
 */
static void call_anew(const struct thread *thread, uint64_t pc)
{
	struct returns *returns = thread->task->returns;
	const uint64_t slot = thread->regs.gpr[REG_RSP] - sizeof(uint64_t);
	uint32_t nr;

	if (!returns)
		return;
	for (nr = returns->nr; nr; nr--) {
		const struct call *call = &returns->of[nr - 1];
		const uint64_t length = call->met.back - pc;

		if (call->slot == slot && length >= CALL_LEAST && length <= CALL_MOST &&
		    is_call(pc, length))
			break;
	}
	if (!nr)
		return;
	returns->nr = nr;
	while (returns->nr && is_same_call(&returns->of[returns->nr - 1], &returns->of[nr - 1]))
		returns->nr--;
}

/* As to the kernel, also of who comes back from where its parent has gone to. */
void uprobes_begin(struct task *task)
{
	if (task->returns)
		task->returns->nr = 0;
}

/* ---- met ---- */

bool uprobes_meet(struct thread *thread, uint64_t pc)
{
	struct core_probe_met met = {.function = pc};
	bool some;

	if (!__atomic_load_n(&nr_places, __ATOMIC_ACQUIRE))
		return false;
	some = returned(thread, pc);
	call_anew(thread, pc);
	if (!find(pc, &met.place) || !core_probe_at(&thread->events, &met.place, false))
		return some;
	if (core_probe_at(&thread->events, &met.place, true))
		await_return(thread, &met);
	core_probe_met(&thread->events, &met);
	return true;
}
