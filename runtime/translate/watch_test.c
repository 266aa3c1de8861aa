// SPDX-License-Identifier: MIT
/*
 * Code that filters lets no instruction through that touches what is watched, beside all that is
 * asked of code anyway: as many are executed alone as have natively touched something.
 */
#include "runtime/translate/translate_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/core.h"
#include "runtime/fs.h"
#include "runtime/linux/operand.h"
#include "runtime/translate/caches.h"
#include "runtime/translate/test_native.h"
#include "runtime/translate/test_program.h"

enum { MOST = 4 };

static struct {
	struct core_breakpoint_range ranges[MOST];
	unsigned int nr;
	uint64_t program;
	unsigned int touches; /* in the run at hand */
	unsigned int alone;   /* instructions that were */
	unsigned int native;
	bool failed;
} watched;

#define PLAIN  (CORE_KINDS_EXACT & ~CORE_KINDS_FLOATING)
#define TRACED ((CORE_KINDS_EXACT & ~CORE_KIND_BIT(CORE_BRANCHES_TAKEN)) | CORE_KINDS_MODEL)

static const struct instrumentation all[] = {
	{.extras = CORE_EXTRA_BREAKPOINTS},
	{.counted = TRACED, .extras = CORE_EXTRA_BREAKPOINTS},
	{.counted = PLAIN, .extras = CORE_EXTRA_BREAKPOINTS},
	{PLAIN, PLAIN, CORE_EXTRA_BREAKPOINTS},
	{CORE_KINDS_EXACT, CORE_KINDS_EXACT, CORE_EXTRA_BREAKPOINTS | INSTRUMENT_FINE},
	{.counted = CORE_KINDS_EXACT, .extras = CORE_EXTRA_BREAKPOINTS},
	{.counted = PLAIN, .extras = CORE_EXTRA_BREAKPOINTS | CORE_EXTRA_STOPS},
};

enum { ALL = sizeof(all) / sizeof(*all) };

bool has_watching_caches(uint64_t program)
{
	(void)program;
	for (unsigned int i = 0; i < ALL; i++)
		if (!translate_instrument(host_thread(), &all[i]) ||
		    ((const struct cache *)host_thread()->lookup)->does.extras != all[i].extras)
			return false;
	return translate_instrument(host_thread(), &(struct instrumentation){0});
}

/* ---- what touches it ---- */

static bool overlaps(uint64_t address, uint64_t size, uint32_t type)
{
	for (unsigned int i = 0; i < watched.nr; i++) {
		const struct core_breakpoint_range *r = &watched.ranges[i];

		if (r->type & type &&
		    (address - r->address < r->size || r->address - address < size))
			return true;
	}
	return false;
}

/* Strings are of one direction here. */
static bool operand_touches(const struct regs *regs, const struct insn *insn,
			    const struct insn_memory *m)
{
	uint64_t size = m->size ? m->size : 512;

	if (m->access == ACCESS_NONE || m->vsib)
		return false;
	if (insn->prefixes & PREFIX_REP && (insn->opcode == 0xaa || insn->opcode == 0xab) &&
	    !insn->map)
		size *= regs->gpr[REG_RCX];
	return size && overlaps(operand_address(regs, insn, m), size, m->access);
}

static bool touches(const struct regs *regs)
{
	struct insn_effects effects;
	struct insn insn;

	/* What the host ends it with is not asked about. */
	if (regs->rip - (uint64_t)world->code >= CODE_SIZE ||
	    !insn_decode(&insn, (const uint8_t *)regs->rip, INSN_MAX))
		return false;
	insn_effects(&insn, &effects);
	for (unsigned int i = 0; i < effects.nr_memory; i++)
		if (operand_touches(regs, &insn, &effects.memory[i]))
			return true;
	return false;
}

/* Steps of a string are one instruction. */
static unsigned int native_touches(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < trace.n; i++)
		if ((!i || trace.states[i - 1].rip != trace.states[i].rip) &&
		    touches(&trace.states[i]))
			n++;
	return n;
}

static void before(struct thread *thread)
{
	thread->touches.nr = touches(&thread->regs);
	thread->touches.pc = thread->regs.rip;
	watched.alone++;
}

static void after(struct thread *thread)
{
	thread->touches.nr = 0;
	watched.touches += thread->regs.rip != thread->touches.pc;
}

/* ---- what is watched ---- */

static uint32_t any(uint32_t below)
{
	return (uint32_t)random() % below;
}

static uint64_t any_place(void)
{
	const struct data *data = &world->data;

	switch (any(8)) {
	case 0:
		return (uint64_t)(world->stack + STACK_SIZE - 1024 - any(128));
	case 1:
		return (uint64_t)&data->functions[any(8)];
	case 2:
		return (uint64_t)&data->blocks[any(32)];
	case 3:
		return (uint64_t)&data->fuel;
	case 4:
		return fs_base() + any(0x20);
	case 5:
		return (uint64_t)data->saved + any(512);
	}
	return (uint64_t)data->scratch + any(DATA_SIZE);
}

/* A run that ended early is not compared with the one that is traced. */
static void begin(void)
{
	if (watched.native && watched.touches != watched.native)
		watched.failed = true;
	srandom((unsigned int)watched.program);
	watched.nr = 1 + any(MOST);
	for (unsigned int i = 0; i < watched.nr; i++) {
		const uint64_t size = 1UL << any(4);

		watched.ranges[i] =
			(struct core_breakpoint_range){any_place() & -size, size, 1 + any(3)};
	}
	translate_watch(host_thread(), watched.ranges, watched.nr);
	/* Nobody waits for them. */
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		host_thread()->events.counter[kind] = CORE_COUNTER_START;
	watched.native = native_touches();
	watched.touches = 0;
}

static bool watches_in(uint64_t program, const struct instrumentation *does)
{
	bool good;

	watched.program = program;
	watched.native = 0;
	watched.failed = false;
	host_before_insn = before;
	host_after_insn = after;
	good = counts_with(program, does, begin);
	host_before_insn = host_after_insn = NULL;
	if (watched.touches != watched.native || watched.failed) {
		printf("# program %#lx, extras %#lx, kinds %#lx: %u of %u touches\n", program,
		       does->extras, does->counted, watched.touches, watched.native);
		good = false;
	}
	return good;
}

bool watches(uint64_t program)
{
	return watches_in(program, &all[program % ALL]);
}

/* ---- in more sets of instrumentation than there can be caches ---- */

static const uint64_t counted[] = {
	0,
	PLAIN,
	3,
	TRACED,
	7,
	CORE_KINDS_EXACT,
	1 | CORE_KIND_BIT(CORE_BRANCH_MISSES),
	TRACED & ~CORE_KINDS_FLOATING,
};

enum { COUNTED = sizeof(counted) / sizeof(*counted) };

/* Neighbours differ in most. */
static struct instrumentation any_set(uint64_t n)
{
	struct instrumentation does = {.counted = counted[n % COUNTED],
				       .extras = CORE_EXTRA_BREAKPOINTS};

	if (n / COUNTED & 1)
		does.checked = does.counted;
	if (n / COUNTED & 2)
		does.extras |= CORE_EXTRA_STOPS;
	return does;
}

static bool is_at_speed_in(const struct instrumentation *does)
{
	const struct cache *cache;

	if (!translate_instrument(host_thread(), does))
		return false;
	cache = (const struct cache *)host_thread()->lookup;
	return !(does->counted & ~cache->does.counted) && !(does->checked & ~cache->does.checked) &&
	       cache->does.extras == does->extras;
}

/* Each of them, and what it is without what is watched, though there is no memory for as many. */
static bool goes_through_all(void)
{
	bool good = true;

	host_short_of_memory = cache_number(9);
	for (uint64_t n = 0; n < 4 * COUNTED && good; n++) {
		const struct instrumentation does = any_set(n);
		struct instrumentation without = does;

		without.extras &= ~CORE_EXTRA_BREAKPOINTS;
		good = is_at_speed_in(&without) && is_at_speed_in(&does);
		if (!good)
			printf("# set %lu: kinds %#lx, checked %#lx, extras %#lx\n", n,
			       does.counted, does.checked, does.extras);
	}
	host_short_of_memory = false;
	return good;
}

bool watches_in_many(uint64_t program)
{
	const struct instrumentation does = any_set(program);

	return goes_through_all() && watches_in(program, &does);
}
