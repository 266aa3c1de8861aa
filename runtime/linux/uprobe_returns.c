// SPDX-License-Identifier: MIT
/*
 * The kernel has a function return elsewhere. Here its caller's code stops where it returns
 * to, and what is on the stack stays as it is: for debuggers, exceptions, and whoever reads it. Who
 * comes there has returned if the stack is where it was at the entry, and if it was a return that
 * led there: translated ones leave an address of theirs below (emit_return()), which is wiped out
 * when the function begins. So a jump over the call is no return, even if the call has been left by
 * longjmp(3).
 */
#include "runtime/linux/uprobe_returns.h"

#include "core/core.h"
#include "core/host.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/task.h"
#include "runtime/linux/tasks.h"
#include "runtime/linux/uprobes.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/translate.h"

enum {
	RETURNS_MAX = 4096, /* calls that have not returned: of the kernel 64 */
	CALL_LEAST = 2,	    /* bytes of a call */
	CALL_MOST = 9,
	KNOWN = 1024, /* places at which calls have been looked for */
};

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
 * by a jump to another one, which returns for both, is no such: but if it comes to itself again
 * from there, it is taken for one that has been called anew.
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
 * What an earlier return has left is not this one's. Nothing else is touched: who comes here by a
 * jump, as a function in a loop from its beginning on, may keep something below the stack.
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

/* Code stops at calls as well that return to @back, so that it is seen who calls from there
 * again. Bytes that happen to look like one, amid others, are not executed. */
static bool stop_at_calls(uint64_t back)
{
	static _Alignas(PAGE) uint64_t known[KNOWN];
	bool all = true;

	if (known[back % KNOWN] == back)
		return true;
	known[back % KNOWN] = back;
	for (uint64_t length = CALL_LEAST; length <= CALL_MOST; length++)
		if (is_call(back - length, length))
			all &= uprobes_stop_at_return(back - length);
	return all;
}

void uprobe_await_return(struct thread *thread, const struct core_probe_met *met)
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
	can = uprobes_stop_at_return(call.met.back) && stop_at_calls(call.met.back);
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
 * At a call: who has called from here, with the stack as it is, and has not returned never will.
 * What is called now, as the next of an interpreter's functions after one that was left by
 * longjmp(3), returns to the same place by a return.
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

bool uprobe_returned(struct thread *thread, uint64_t pc)
{
	const bool some = returned(thread, pc);

	call_anew(thread, pc);
	return some;
}

void uprobe_returns_begin(struct task *task)
{
	if (task->returns)
		task->returns->nr = 0;
}
