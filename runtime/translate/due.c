// SPDX-License-Identifier: MIT
/*
 * Counting where a counter is about to get to 0 for which somebody waits: there segments are short,
 * so that few instructions have to be executed alone. And where it is far from that, if count.c has
 * not the registers for what is counted, or the processor no instruction to look (count_near.c).
 *
 * A *segment* is a run of a fragment that is entered at its beginning and usually left at its
 * end: at a call, at a condition that leads backwards, at the end of the fragment. All that it does
 * is added when it begins, and the counter, which is negative until somebody is to be told, is
 * looked at:
 *
 *	addq $sum, %gs:COUNTER		for each kind that is counted,
 *	jns 2f				and checked
 *	...
 *	jcc 1f				leaves early
 *	...
 *
 * 1:	addq $executed-sum, %gs:COUNTER
 *	jmp TARGET
 * 2:	addq $-sum, %gs:COUNTER		of all that have been added
 *	jmp out				as EXIT_DUE: nothing of the segment has been executed
 *
 * The sum is known when the segment ends, and put into the instruction then. Whoever interrupts a
 * segment finds in struct state what it has added and not done (recover.c), so the counters are
 * exact at every instruction.
 *
 * Flags that are not dead at the beginning are kept in ax:
 *
 *	mov %rax, %gs:RAX; lahf; seto %al; addq ...; add $0x7f, %al; sahf; mov %gs:RAX, %rax
 *
 * What was found by looking at more than the instructions of the fragment, or by when it was made,
 * is kept in the fragment (decide()), for rehearsals.
 */
#include "runtime/translate/due.h"

#include "runtime/translate/build.h"

/* More than that in a segment would not fit into a byte with the next instruction's. */
#define SUM_MAX 60

/* A fine segment ends with each branch, and after so many instructions at the latest. */
#define FINE_INSNS 3

/* How far to look for what becomes of the flags; in code that may be executed once. */
#define LOOK_INSNS	12
#define LOOK_INSNS_FINE 3

static bool decide(struct builder *b, bool answer)
{
	uint64_t *decisions = &b->marks[0];
	const uint64_t bit = 1UL << b->count.due.nr_decisions++;

	if (b->asked)
		return *decisions & bit;
	if (answer)
		*decisions |= bit;
	return answer;
}

/* ---- flags ---- */

/*
 * Whether the fragment does not survive a change of the code at @pc. One page more is left to what
 * it is made from.
 */
static bool depends_on(struct builder *b, uint64_t pc)
{
	const uint64_t page = pc >> PAGE_SHIFT;

	return has_page(b, page) || (b->nr_pages && b->nr_pages < KEPT_PAGES - 1 &&
				     !b->range.writable && take_page(b, page));
}

bool due_look(struct builder *b, uint64_t pc, struct insn *insn)
{
	uint64_t end = (pc | (PAGE_SIZE - 1)) + 1;

	if (pc < b->range.start || pc >= b->range.end || !depends_on(b, pc))
		return false;
	if (end > b->range.end)
		end = b->range.end;
	return look_at(insn, pc, end - pc);
}

/*
 * Flags that are computed anew. The manuals leave many undefined, of which processors leave some as
 * they were (bt) and programs take no notice; the usual instructions define them all.
 */
uint8_t due_flags_set(const struct insn *insn)
{
	const uint8_t op = insn->opcode, reg = insn->modrm >> 3 & 7;

	if (insn->encoding != INSN_LEGACY)
		return 0;
	if (insn->map == 1) /* comis, ucomis, cmpxchg, xadd */
		return op == 0x2e || op == 0x2f || op == 0xb0 || op == 0xb1 || op == 0xc0 ||
				       op == 0xc1
			       ? DUE_FLAGS
			       : 0;
	if (insn->map)
		return 0;
	if ((op < 0x40 && (op & 7) < 6) || (op >= 0x80 && op <= 0x85) || op == 0xa8 || op == 0xa9)
		return DUE_FLAGS;     /* add or adc sbb and sub xor cmp test */
	if (op == 0xf6 || op == 0xf7) /* test, neg */
		return reg < 2 || reg == 3 ? DUE_FLAGS : 0;
	if (op == 0xfe || op == 0xff) /* inc, dec */
		return reg < 2 ? DUE_FLAGS & ~INSN_CF : 0;
	return 0;
}

/* The same of the flags @needed, @most instructions far; both ways of a condition. */
static bool are_dead(struct builder *b, uint64_t pc, uint8_t needed, unsigned int most)
{
	uint8_t read, written;
	struct insn insn;

	for (unsigned int i = 0; i < most && due_look(b, pc, &insn); i++) {
		if (insn.class == INSN_JMP || insn.class == INSN_CALL) {
			pc = insn_target(&insn, pc);
			continue;
		}
		insn_flags(&insn, &read, &written);
		if (read & needed)
			return false;
		if (insn.class == INSN_JCC)
			return are_dead(b, insn_target(&insn, pc), needed, (most - i) / 2) &&
			       are_dead(b, pc + insn.length, needed, (most - i) / 2);
		if (insn.class != INSN_PLAIN)
			return false;
		needed &= ~due_flags_set(&insn);
		if (!needed)
			return true;
		pc += insn.length;
	}
	return false;
}

/* Whether all flags are set from @pc on before one is asked for. */
bool due_flags_dead(struct builder *b, uint64_t pc)
{
	if (b->asked || b->fragment->flags & FRAGMENT_CHECKED)
		return false;
	return are_dead(b, pc, DUE_FLAGS, b->count.due.fine ? LOOK_INSNS_FINE : LOOK_INSNS);
}

/* ---- adding ---- */

enum { ADD_BYTES = 10, BORROW_BYTES = 18 };

/* addq $amount, %gs:counter; returns where the amount is. */
static uint8_t *emit_addition(struct builder *b, unsigned int kind, int8_t amount)
{
	emit8(b, segment_prefix);
	EMIT(b, 0x48, 0x83, 0x04, 0x25);
	emit32(b, THREAD_EVENTS + CORE_TASK_COUNTERS + 8 * kind);
	emit8(b, (uint8_t)amount);
	return b->at - 1;
}

/* Makes an addq of nothing do nothing. */
static void unmake_add(uint8_t *amount)
{
	static const uint8_t nop[ADD_BYTES] = {0x66, 0x2e, 0x0f, 0x1f, 0x84};

	__builtin_memcpy(amount + 1 - ADD_BYTES, nop, ADD_BYTES);
}

void due_mark(struct builder *b, uint64_t pc, enum how how)
{
	mark_pc(b, pc, how == KEEPING_FLAGS ? SPILL_RAX | SPILL_FLAGS : 0);
}

/* What additions need, before them. */
void due_borrow(struct builder *b, uint64_t pc, enum how how)
{
	if (how == FREELY)
		return;
	emit_spill(b, REG_RAX, THREAD_RAX);
	mark_pc(b, pc, SPILL_RAX);
	EMIT(b, 0x9f, 0x0f, 0x90, 0xc0);
	due_mark(b, pc, how);
}

void due_give_back(struct builder *b, uint64_t pc, enum how how)
{
	if (how == FREELY)
		return;
	EMIT(b, 0x04, 0x7f);
	mark_pc(b, pc, SPILL_RAX | SPILL_LOW_FLAGS);
	emit8(b, 0x9e);
	mark_pc(b, pc, SPILL_RAX);
	emit_fill(b, REG_RAX, THREAD_RAX);
	mark_pc(b, pc, 0);
}

#define for_each_kind(kind, mask)                                                                  \
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)                                    \
		if ((mask) >> kind & 1)

/* ---- what is not on the way ---- */

static struct late *new_late(struct builder *b, enum late_kind kind, uint64_t pc)
{
	struct late *late = &b->count.due.late[b->count.due.nr_late++];

	*late = (struct late){.kind = (uint8_t)kind, .pc = pc, .behind = b->nr_insns};
	return late;
}

static void emit_long(struct builder *b, struct late *late)
{
	emit32(b, 0);
	late->site = b->at;
}

static bool any(const struct counts *counts, uint64_t kinds)
{
	for_each_kind(kind, kinds)
		if (counts->of[kind])
			return true;
	return false;
}

/* jns out: @rest is to be added there first. */
static struct late *emit_check_due(struct builder *b, const struct counts *rest, uint64_t pc,
				   enum how how)
{
	struct late *late = new_late(b, LATE_DUE, pc);

	late->how = how;
	late->from = b->count.due.from;
	late->counts = *rest;
	EMIT(b, 0x0f, 0x89);
	emit_long(b, late);
	return late;
}

static struct counts negative(const struct counts *counts)
{
	struct counts result = {{0}};

	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		result.of[kind] = -counts->of[kind];
	return result;
}

/* Adds @counts. The program is at @pc, and what that needs is borrowed. */
static void emit_counts(struct builder *b, struct counts counts, uint64_t pc, enum how how)
{
	struct count *c = &b->count;

	for_each_kind(kind, c->kinds) {
		const int8_t amount = counts.of[kind];

		if (!amount)
			continue;
		emit_addition(b, kind, amount);
		counts.of[kind] = 0;
		c->due.added.of[kind] += amount;
		due_mark(b, pc, how);
		if (amount > 0 && c->due.checked >> kind & 1) {
			const struct counts back = negative(&c->due.added);

			emit_check_due(b, c->due.ahead ? &back : &counts, pc, how);
		}
	}
}

/* The same between two instructions. */
static void emit_counts_apart(struct builder *b, const struct counts *counts, uint64_t pc,
			      bool dead)
{
	const enum how how = dead ? FREELY : KEEPING_FLAGS;

	if (!any(counts, b->count.kinds))
		return;
	due_borrow(b, pc, how);
	emit_counts(b, *counts, pc, how);
	due_give_back(b, pc, how);
}

/* What is told of the program's state: it is at late->pc, and has done @done. */
static void begin_late(struct builder *b, const struct late *late, const struct counts *done)
{
	b->pc = late->pc;
	b->count.due.done = *done;
	b->count.insn = b->count.due.added = (struct counts){0};
	due_mark(b, late->pc, late->how);
}

static void emit_late_taken(struct builder *b, const struct late *late)
{
	begin_late(b, late, &late->counts);
	b->count.due.from = late->from;
	emit_counts_apart(b, &late->counts, late->pc, late->dead);
	b->count.due.from = 0;
	emit_exit_jump(b, late->pc, EXIT_LINK);
}

/* Nothing of this has been done: if it is due it is taken back, as at the beginning of a segment.
 */
static void emit_late_call(struct builder *b, const struct late *late)
{
	if (!b->asked)
		b->cache->lookup.entries[late->entry].body =
			(uint32_t)(b->at - b->cache->lookup.code);
	begin_late(b, late, &(struct counts){0});
	b->count.due.ahead = true;
	emit_counts_apart(b, &late->counts, late->pc, late->dead);
	b->count.due.ahead = false;
	emit8(b, 0xe9);
	emit32(b, (uint32_t)(late->site - (b->at + 4)));
}

static void emit_late_due(struct builder *b, const struct late *late)
{
	begin_late(b, late, &late->counts);
	emit_counts(b, late->counts, late->pc, late->how);
	due_give_back(b, late->pc, late->how);
	if (late->from)
		emit_spill_constant(b, late->from, THREAD_TARGET);
	emit_exit_jump(b, late->pc,
		       late->from     ? EXIT_TAKEN
		       : late->behind ? EXIT_DUE_BEHIND
				      : EXIT_DUE);
}

void due_late(struct builder *b)
{
	static void (*const emit[])(struct builder *, const struct late *) = {
		[LATE_TAKEN] = emit_late_taken,
		[LATE_CALL] = emit_late_call,
		[LATE_DUE] = emit_late_due,
	};

	for (unsigned int i = 0; i < b->count.due.nr_late; i++) {
		const struct late *late = &b->count.due.late[i];

		if (late->kind != LATE_CALL) {
			const uint32_t relative = (uint32_t)(b->at - late->site);

			__builtin_memcpy(late->site - 4, &relative, 4);
		}
		emit[late->kind](b, late);
	}
}

/* ---- segments ---- */

/* What was emitted for the segment that is rehearsed adds this. */
static int8_t real_amount(const struct builder *b, const uint8_t *amount)
{
	const uint8_t *real = amount + b->shift;

	return real[1 - ADD_BYTES] == segment_prefix ? (int8_t)*real : 0;
}

/* Of the instruction at hand: nothing of the others comes. */
static uint64_t own_kinds(const struct count *c)
{
	uint64_t kinds = 0;

	for_each_kind(kind, c->kinds)
		kinds |= (uint64_t)(c->insn.of[kind] != 0) << kind;
	return kinds;
}

/* Here is the place where all of the segment is added. */
static void place(struct builder *b, enum how how)
{
	struct count *c = &b->count;
	static const struct counts nothing;

	c->due.placed = c->due.most == 1 ? own_kinds(c) : c->kinds;
	due_borrow(b, b->pc, how);
	for_each_kind(kind, c->due.placed) {
		c->due.amounts[kind] = emit_addition(b, kind, 0);
		if (b->asked)
			c->due.added.of[kind] = real_amount(b, c->due.amounts[kind]);
		due_mark(b, b->pc, how);
		if (c->due.checked >> kind & 1)
			emit_check_due(b, &nothing, b->pc, how)->undone = (2u << kind) - 1;
	}
	due_give_back(b, b->pc, how);
}

static void begin_segment(struct builder *b)
{
	struct count *c = &b->count;

	c->due.open = true;
	c->due.insns = 0;
	c->due.first_late = c->due.nr_late;
	place(b, decide(b, due_flags_dead(b, b->pc)) ? FREELY : KEEPING_FLAGS);
}

void due_close(struct builder *b)
{
	struct count *c = &b->count;

	if (!c->due.open)
		return;
	mark_pc(b, b->pc, 0);
	for_each_kind(kind, c->due.placed) {
		*c->due.amounts[kind] = (uint8_t)c->due.done.of[kind];
		if (!c->due.done.of[kind] && !(c->due.checked >> kind & 1))
			unmake_add(c->due.amounts[kind]);
	}
	for (unsigned int i = c->due.first_late; i < c->due.nr_late; i++)
		for_each_kind(kind, c->kinds & c->due.late[i].undone)
			c->due.late[i].counts.of[kind] -= c->due.done.of[kind];
	c->due.done = c->due.added = (struct counts){0};
	c->due.open = c->due.closing = false;
}

/* ---- instructions ---- */

static bool nearly_full(const struct counts *counts)
{
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		if (counts->of[kind] > SUM_MAX)
			return true;
	return false;
}

/* A call site is an entry, of which what comes before the call in the fragment is no part. */
static void late_call(struct builder *b)
{
	struct late *late = new_late(b, LATE_CALL, b->pc);

	late->entry = b->cache->nr_entries - 1;
	late->site = b->begin;
	late->counts = b->count.insn;
	late->dead = decide(b, due_flags_dead(b, b->pc));
}

/*
 * A condition that leads back is the end of a loop: its segment ends with it, whatever comes. So it
 * does where what follows is there already.
 */
static bool jcc_closes(struct builder *b)
{
	const bool ends = !b->asked && cache_find(b->cache, b->pc + b->insn.length);

	return insn_target(&b->insn, b->pc) <= b->pc || decide(b, ends);
}

void due_before(struct builder *b)
{
	const uint8_t class = b->insn.class;
	const bool call = insn_is_call(&b->insn);
	const bool amid = b->count.due.open;

	b->count.insn = count_insn(&b->count, &b->insn);
	b->count.due.closing = call || (class == INSN_JCC && (b->count.due.fine || jcc_closes(b)));
	if (!amid)
		begin_segment(b);
	if (amid && call && !(b->fragment->flags & FRAGMENT_CHECKED))
		late_call(b);
}

void due_after(struct builder *b)
{
	struct count *c = &b->count;

	count_add(&c->due.done, &c->insn);
	c->insn = (struct counts){0};
	c->due.insns++;
	if (c->due.closing || (c->due.fine && c->due.insns == c->due.most) ||
	    nearly_full(&c->due.done))
		due_close(b);
}

bool due_jcc(struct builder *b, uint64_t target)
{
	struct count *c = &b->count;
	struct late *late;

	if (c->due.closing && !(c->kinds & CORE_KIND_BIT(CORE_BRANCHES_TAKEN)))
		return false;
	late = new_late(b, LATE_TAKEN, target);
	late->from = b->pc;
	late->dead = decide(b, due_flags_dead(b, target));
	late->undone = (1u << COUNT_KINDS) - 1;
	late->counts = c->due.done;
	count_add(&late->counts, &c->insn);
	late->counts.of[CORE_BRANCHES_TAKEN] += count_is_taken(b, target);
	emit_long(b, late);
	return true;
}

void due_taken(struct builder *b, uint64_t target)
{
	const struct counts taken = {.of = {[CORE_BRANCHES_TAKEN] = count_is_taken(b, target)}};
	struct count *c = &b->count;
	const struct count before = *c;

	count_add(&c->due.done, &c->insn);
	count_add(&c->due.done, &taken);
	c->insn = (struct counts){0};
	mark_pc(b, target, 0);
	c->due.from = b->pc;
	emit_counts_apart(b, &taken, target, false);
	c->due.from = 0;
	c->due.done = before.due.done;
	c->insn = before.insn;
	c->due.added = before.due.added;
	c->due.closing = true;
}

/* ---- for the builder ---- */

void due_start(struct builder *b, struct late *late)
{
	struct due *due = &b->count.due;

	due->used = true;
	due->late = late;
	due->checked = b->cache->does.checked & b->count.kinds;
	due->fine = b->cache->does.extras & INSTRUMENT_FINE;
	/* Of so many kinds most instructions do few. */
	due->most = !due->fine ? 0 : b->count.kinds & CORE_KINDS_FLOATING ? 1 : FINE_INSNS;
	due->bytes = 48;
	due->lates = 2;
	for_each_kind(kind, b->count.kinds)
		due->bytes += 16;
	for_each_kind(kind, due->checked)
		due->lates += 2;
}

unsigned int due_bytes(const struct builder *b)
{
	return b->count.due.open ? 0 : b->count.due.bytes;
}

bool due_room(const struct builder *b)
{
	return b->count.due.nr_late + b->count.due.lates < LATE_MAX &&
	       b->count.due.nr_decisions + 4U < 64;
}

struct counts due_state(const struct builder *b, const struct state *state)
{
	const struct count *c = &b->count;
	struct counts counts = c->due.done;

	if (c->apart)
		return (struct counts){0};
	if (state->where != AT_PC || state->done || state->pc != b->pc)
		count_add(&counts, &c->insn);
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		counts.of[kind] -= c->due.added.of[kind];
	return counts;
}
