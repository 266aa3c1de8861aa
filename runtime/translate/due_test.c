// SPDX-License-Identifier: MIT
/* Counters that end at 0 stop the program at the instruction that natively gets there. */
#include "runtime/translate/translate_test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/translate/caches.h"
#include "runtime/translate/test_native.h"
#include "runtime/translate/test_program.h"

/* Floating point is counted by other code than the rest, and makes the rest be so. */
static struct instrumentation does;

/* Counters that are looked at each time that they have counted @period. */
static struct {
	unsigned int kind;
	int64_t period;
	int64_t next; /* as the native run counts */
	bool failed;
} watch;

/* As the core does it: early, if it is far, and then once more. */
static void count_down(struct core_task *task, int64_t left)
{
	const int64_t early = core_early(watch.kind);

	task->early = left > early ? CORE_KIND_BIT(watch.kind) : 0;
	task->counter[watch.kind] = left > early ? early - left : -left;
}

static bool is_early(struct core_task *task)
{
	const int64_t beyond = task->counter[watch.kind];

	if (!task->early)
		return false;
	watch.failed |= beyond >= core_early(watch.kind);
	count_down(task, core_early(watch.kind) - beyond);
	return true;
}

/* An instruction may count more than one: then the counter is beyond 0. */
static void on_due(struct thread *thread)
{
	const int64_t beyond = thread->events.counter[watch.kind];
	const struct regs *regs = &thread->regs;
	unsigned int i = 0;

	if (is_early(&thread->events))
		return;
	while (i < trace.n && trace.sums[i].of[watch.kind] < watch.next)
		i++;
	if (!watch.failed && i < trace.n) {
		watch.failed = trace.sums[i].of[watch.kind] != watch.next + beyond ||
			       regs->rip != trace.states[i].rip ||
			       memcmp(regs->gpr, trace.states[i].gpr, sizeof(regs->gpr));
		if (watch.failed)
			differ(watch.next, "an overflow elsewhere", &trace.states[i], regs);
	}
	watch.next += beyond + watch.period;
	count_down(&thread->events, watch.period);
	translate_instrument(thread, &does);
}

bool stops(uint64_t program)
{
	static const uint8_t kinds[] = {CORE_INSTRUCTIONS, CORE_BRANCHES_TAKEN, CORE_STORES,
					CORE_FLOPS_ADD};
	const uint64_t plain = CORE_KINDS_EXACT & ~CORE_KINDS_FLOATING;
	struct core_task *task = &host_thread()->events;
	struct regs regs;
	int64_t total;

	if (!recovers(program))
		return false;
	watch.kind = kinds[program / 2 % sizeof(kinds)];
	does.counted = does.checked = watch.kind == CORE_FLOPS_ADD ? CORE_KINDS_EXACT : plain;
	/* Also so long that code is gone through that looks only now and then. */
	watch.period = watch.next =
		program % 2 ? 1 + (int64_t)(program % 37) : 100 + 9 * (int64_t)(program % 137);
	watch.failed = false;
	host_due = on_due;
	count_down(task, watch.period);
	task->counting_down = CORE_KIND_BIT(watch.kind);
	program_start(&regs, host_finish, 0);
	if (!translate_instrument(host_thread(), &does))
		return false;
	host_run(&regs);
	task->counter[watch.kind] = CORE_COUNTER_START;
	task->counting_down = 0;
	host_due = NULL;
	total = trace.sums[trace.n].of[watch.kind];
	if (watch.next <= total)
		printf("# program %#lx: the last at %ld, not at %ld of %ld\n", program,
		       watch.next - watch.period, watch.next, total);
	return translate_instrument(host_thread(), &(struct instrumentation){0}) && !watch.failed &&
	       watch.next > total;
}
