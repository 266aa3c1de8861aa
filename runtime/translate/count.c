// SPDX-License-Identifier: MIT
/*
 * Counting. A *segment* is a run of a fragment that is entered at its beginning and usually left at
 * its end: at a call, at a condition that leads backwards, at the end of the fragment. All that it
 * is going to do is added when it begins, so that a counter is touched once for many blocks:
 *
 *	addq $sum, %gs:COUNTER		for each kind that is counted
 *	...
 *	jcc 1f				leaves before the end:
 *	...
 *
 * 1:	addq $executed-sum, %gs:COUNTER
 *	jmp TARGET
 *
 * The sum is known when the segment ends, and put into the instruction then. Whoever interrupts a
 * segment finds in struct state what it has added and not done (recover.c), so the counters are
 * exact at every instruction.
 *
 * Flags: a segment looks ahead for an instruction that sets all of them before any asks for one.
 * Where there is none they are kept in ax:
 *
 *	mov %rax, %gs:RAX; lahf; seto %al; addq ...; add $0x7f, %al; sahf; mov %gs:RAX, %rax
 *
 * What was found by looking at more than the instructions of the fragment, or by when it was made,
 * is kept in the word before its code (decide()), for rehearsals.
 *
 * In a cache that checks, "jns 2f" follows each addition: the counter is negative until somebody is
 * to be told.
 *
 * 2:	addq $-sum, %gs:COUNTER		of all that have been added
 *	jmp out				as EXIT_DUE: nothing of the segment has been executed
 */
#include "runtime/translate/count.h"

#include "runtime/translate/build.h"

#define ALL_FLAGS (INSN_OF | INSN_SF | INSN_ZF | INSN_AF | INSN_PF | INSN_CF)

/* More than that in a segment would not fit into a byte with the next instruction's. */
#define SUM_MAX 120

/* How far to look for what becomes of the flags. */
#define LOOK_INSNS 12

enum { HEAD_BYTES = 16 };

unsigned int count_head(uint8_t *head)
{
	__builtin_memset(head, 0, HEAD_BYTES);
	return HEAD_BYTES;
}

static bool decide(struct builder *b, bool answer)
{
	uint64_t *decisions = (uint64_t *)(b->cache->lookup.code + b->fragment->start) - 1;
	const uint64_t bit = 1UL << b->nr_decisions++;

	if (b->asked)
		return *decisions & bit;
	if (answer)
		*decisions |= bit;
	return answer;
}

/* ---- flags ---- */

/* Whether code at @pc belongs to the fragment's pages, whose changes the fragment does not survive.
 */
static bool on_pages(const struct builder *b, uint64_t pc)
{
	const struct fragment *f = b->fragment;
	const uint64_t page = pc >> PAGE_SHIFT;

	return f->nr_pages &&
	       (page == f->pc >> PAGE_SHIFT || (f->nr_pages > 1 && page == f->other_page));
}

/* Decodes what is at @pc, on one page. */
static bool look(const struct builder *b, uint64_t pc, struct insn *insn)
{
	uint64_t end = (pc | (PAGE_SIZE - 1)) + 1;

	if (pc < b->range.start || pc >= b->range.end || !on_pages(b, pc))
		return false;
	if (end > b->range.end)
		end = b->range.end;
	return look_at(insn, pc, end - pc);
}

/*
 * Flags that are computed anew. The manuals leave many undefined, of which processors leave some as
 * they were (bt) and programs take no notice; the usual instructions define them all.
 */
static uint8_t flags_set(const struct insn *insn)
{
	const uint8_t op = insn->opcode, reg = insn->modrm >> 3 & 7;

	if (insn->encoding != INSN_LEGACY)
		return 0;
	if (insn->map == 1) /* comis, ucomis, cmpxchg, xadd */
		return op == 0x2e || op == 0x2f || op == 0xb0 || op == 0xb1 || op == 0xc0 ||
				       op == 0xc1
			       ? ALL_FLAGS
			       : 0;
	if (insn->map)
		return 0;
	if ((op < 0x40 && (op & 7) < 6) || (op >= 0x80 && op <= 0x85) || op == 0xa8 || op == 0xa9)
		return ALL_FLAGS;     /* add or adc sbb and sub xor cmp test */
	if (op == 0xf6 || op == 0xf7) /* test, neg */
		return reg < 2 || reg == 3 ? ALL_FLAGS : 0;
	if (op == 0xfe || op == 0xff) /* inc, dec */
		return reg < 2 ? ALL_FLAGS & ~INSN_CF : 0;
	return 0;
}

/* Whether all flags are set from @pc on before one is asked for. */
static bool flags_dead(const struct builder *b, uint64_t pc)
{
	uint8_t needed = ALL_FLAGS, read, written;
	struct insn insn;

	if (b->asked || b->fragment->flags & FRAGMENT_CHECKED)
		return false;
	for (unsigned int i = 0; i < LOOK_INSNS && look(b, pc, &insn); i++) {
		if (insn.class == INSN_JMP) {
			pc = insn_target(&insn, pc);
			continue;
		}
		insn_flags(&insn, &read, &written);
		if (insn.class != INSN_PLAIN || read & needed)
			return false;
		needed &= ~flags_set(&insn);
		if (!needed)
			return true;
		pc += insn.length;
	}
	return false;
}

/* ---- adding ---- */

/* addq $amount, %gs:counter: returns where the amount is. */
static uint8_t *emit_add(struct builder *b, unsigned int kind, int8_t amount)
{
	EMIT(b, 0x65, 0x48, 0x83, 0x04, 0x25);
	emit32(b, THREAD_EVENTS + CORE_TASK_COUNTERS + 8 * kind);
	emit8(b, (uint8_t)amount);
	return b->at - 1;
}

enum { ADD_BYTES = 10 };

/* Makes one that adds nothing do nothing. */
static void unmake_add(uint8_t *amount)
{
	static const uint8_t nop[ADD_BYTES] = {0x66, 0x2e, 0x0f, 0x1f, 0x84};

	__builtin_memcpy(amount + 1 - ADD_BYTES, nop, ADD_BYTES);
}

/* The program's rax is in its slot. */
static void mark_kept(struct builder *b, uint64_t pc, uint8_t spills)
{
	mark_pc(b, pc, SPILL_RAX | spills);
}

/* The program's flags go to ax. */
static void keep_flags(struct builder *b, uint64_t pc)
{
	emit_spill(b, REG_RAX, THREAD_RAX);
	mark_kept(b, pc, 0);
	EMIT(b, 0x9f, 0x0f, 0x90, 0xc0);
	mark_kept(b, pc, SPILL_FLAGS);
}

static void return_flags(struct builder *b, uint64_t pc)
{
	EMIT(b, 0x04, 0x7f);
	mark_kept(b, pc, SPILL_LOW_FLAGS);
	emit8(b, 0x9e);
	mark_kept(b, pc, 0);
	emit_fill(b, REG_RAX, THREAD_RAX);
	mark_pc(b, pc, 0);
}

#define for_each_kind(kind, mask)                                                                  \
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)                                    \
		if ((mask) >> kind & 1)

/* ---- what is not on the way ---- */

static struct late *new_late(struct builder *b, enum late_kind kind, uint64_t pc)
{
	struct late *late = &b->count.late[b->count.nr_late++];

	*late = (struct late){.kind = (uint8_t)kind, .pc = pc};
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
				   bool kept)
{
	struct late *late = new_late(b, LATE_DUE, pc);

	late->kept = kept;
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

/* Adds @counts. The program is at @pc and its flags are in ax, or dead. */
static void emit_counts(struct builder *b, struct counts counts, uint64_t pc, bool kept)
{
	struct count *c = &b->count;

	for_each_kind(kind, c->kinds) {
		const int8_t amount = counts.of[kind];

		if (!amount)
			continue;
		emit_add(b, kind, amount);
		counts.of[kind] = 0;
		c->added.of[kind] += amount;
		mark_pc(b, pc, kept ? SPILL_RAX | SPILL_FLAGS : 0);
		if (amount > 0 && c->checked >> kind & 1) {
			const struct counts back = negative(&c->added);

			emit_check_due(b, c->ahead ? &back : &counts, pc, kept);
		}
	}
}

/* The same between two instructions. */
static void emit_counts_apart(struct builder *b, const struct counts *counts, uint64_t pc,
			      bool dead)
{
	if (!any(counts, b->count.kinds))
		return;
	if (!dead)
		keep_flags(b, pc);
	emit_counts(b, *counts, pc, !dead);
	if (!dead)
		return_flags(b, pc);
}

/* What is told of the program's state: it is at late->pc, and has done @done. */
static void begin_late(struct builder *b, const struct late *late, const struct counts *done)
{
	b->pc = late->pc;
	b->count.done = *done;
	b->count.insn = b->count.added = (struct counts){0};
	mark_pc(b, late->pc, late->kept ? SPILL_RAX | SPILL_FLAGS : 0);
}

static void emit_late_taken(struct builder *b, const struct late *late)
{
	begin_late(b, late, &late->counts);
	emit_counts_apart(b, &late->counts, late->pc, late->dead);
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
	b->count.ahead = true;
	emit_counts_apart(b, &late->counts, late->pc, false);
	b->count.ahead = false;
	emit8(b, 0xe9);
	emit32(b, (uint32_t)(late->site - (b->at + 4)));
}

static void emit_late_due(struct builder *b, const struct late *late)
{
	begin_late(b, late, &late->counts);
	emit_counts(b, late->counts, late->pc, late->kept);
	if (late->kept)
		return_flags(b, late->pc);
	emit_exit_jump(b, late->pc, EXIT_DUE);
}

void count_late(struct builder *b)
{
	static void (*const emit[])(struct builder *, const struct late *) = {
		[LATE_TAKEN] = emit_late_taken,
		[LATE_CALL] = emit_late_call,
		[LATE_DUE] = emit_late_due,
	};

	for (unsigned int i = 0; i < b->count.nr_late; i++) {
		const struct late *late = &b->count.late[i];

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

	return real[1 - ADD_BYTES] == 0x65 ? (int8_t)*real : 0;
}

static void begin_segment(struct builder *b)
{
	struct count *c = &b->count;
	const bool dead = decide(b, flags_dead(b, b->pc));
	static const struct counts nothing;

	c->open = true;
	c->first_late = c->nr_late;
	if (!dead)
		keep_flags(b, b->pc);
	for_each_kind(kind, c->kinds) {
		c->amounts[kind] = emit_add(b, kind, 0);
		if (b->asked)
			c->added.of[kind] = real_amount(b, c->amounts[kind]);
		mark_pc(b, b->pc, dead ? 0 : SPILL_RAX | SPILL_FLAGS);
		if (c->checked >> kind & 1)
			emit_check_due(b, &nothing, b->pc, !dead)->undone = (2u << kind) - 1;
	}
	if (!dead)
		return_flags(b, b->pc);
}

void count_close(struct builder *b)
{
	struct count *c = &b->count;

	if (!c->open)
		return;
	for_each_kind(kind, c->kinds) {
		*c->amounts[kind] = (uint8_t)c->done.of[kind];
		if (!c->done.of[kind] && !(c->checked >> kind & 1))
			unmake_add(c->amounts[kind]);
	}
	for (unsigned int i = c->first_late; i < c->nr_late; i++)
		for_each_kind(kind, c->kinds & c->late[i].undone)
			c->late[i].counts.of[kind] -= c->done.of[kind];
	c->done = c->added = (struct counts){0};
	c->open = c->closing = false;
}

/* ---- instructions ---- */

static void count_operands(struct counts *counts, const struct insn *insn)
{
	struct insn_effects effects;

	insn_effects(insn, &effects);
	for (unsigned int i = 0; i < effects.nr_memory; i++) {
		counts->of[CORE_LOADS] += effects.memory[i].access & ACCESS_R ? 1 : 0;
		counts->of[CORE_STORES] += effects.memory[i].access & ACCESS_W ? 1 : 0;
	}
}

static void count_branch(struct counts *counts, uint8_t class)
{
	counts->of[CORE_BRANCHES] = 1;
	counts->of[CORE_BRANCHES_TAKEN] = 1;
	switch (class) {
	case INSN_JCC:
	case INSN_LOOP:
		counts->of[CORE_BRANCHES_CONDITIONAL] = 1;
		counts->of[CORE_BRANCHES_TAKEN] = 0;
		break;
	case INSN_JMP:
		break;
	case INSN_JMP_INDIRECT:
		counts->of[CORE_BRANCHES_INDIRECT] = 1;
		break;
	case INSN_CALL_INDIRECT:
		counts->of[CORE_BRANCHES_INDIRECT] = 1;
		/* fall through */
	case INSN_CALL:
		counts->of[CORE_CALLS] = 1;
		break;
	case INSN_RET:
		counts->of[CORE_RETURNS] = 1;
		break;
	default:
		counts->of[CORE_BRANCHES] = 0;
		counts->of[CORE_BRANCHES_TAKEN] = 0;
	}
}

static struct counts counts_of(const struct insn *insn, uint64_t kinds)
{
	struct counts counts = {.of = {[CORE_INSTRUCTIONS] = 1}};

	if (insn->class != INSN_PLAIN)
		count_branch(&counts, insn->class);
	if (kinds & (CORE_KIND_BIT(CORE_LOADS) | CORE_KIND_BIT(CORE_STORES)))
		count_operands(&counts, insn);
	return counts;
}

static void add_counts(struct counts *to, const struct counts *counts)
{
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		to->of[kind] += counts->of[kind];
}

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
	late->site = b->at;
	late->counts = b->count.insn;
}

void count_before(struct builder *b)
{
	const bool call = b->insn.class == INSN_CALL || b->insn.class == INSN_CALL_INDIRECT;

	b->count.insn = counts_of(&b->insn, b->count.kinds);
	if (!b->count.open)
		begin_segment(b);
	else if (call && !(b->fragment->flags & FRAGMENT_CHECKED))
		late_call(b);
	b->count.closing = call;
}

void count_after(struct builder *b)
{
	struct count *c = &b->count;

	add_counts(&c->done, &c->insn);
	c->insn = (struct counts){0};
	if (c->closing || nearly_full(&c->done))
		count_close(b);
}

/*
 * A condition that leads back is the end of a loop: its segment ends with it, whatever comes. So it
 * does where what follows is there already.
 */
bool count_jcc(struct builder *b, uint64_t target)
{
	struct count *c = &b->count;
	const bool ends = !b->asked && cache_find(b->cache, b->pc + b->insn.length);
	struct late *late;

	c->closing = target <= b->pc || decide(b, ends);
	if (c->closing && !(c->kinds & CORE_KIND_BIT(CORE_BRANCHES_TAKEN)))
		return false;
	late = new_late(b, LATE_TAKEN, target);
	late->dead = decide(b, flags_dead(b, target));
	late->undone = (1u << COUNT_KINDS) - 1;
	late->counts = c->done;
	add_counts(&late->counts, &c->insn);
	late->counts.of[CORE_BRANCHES_TAKEN]++;
	emit_long(b, late);
	return true;
}

void count_taken(struct builder *b, uint64_t target)
{
	const struct counts taken = {.of = {[CORE_BRANCHES_TAKEN] = 1}};
	struct count *c = &b->count;
	const struct count before = *c;

	add_counts(&c->done, &c->insn);
	add_counts(&c->done, &taken);
	c->insn = (struct counts){0};
	mark_pc(b, target, 0);
	emit_counts_apart(b, &taken, target, false);
	c->done = before.done;
	c->insn = before.insn;
	c->added = before.added;
	c->closing = true;
}

/* ---- for the builder ---- */

void count_start(struct builder *b, struct late *late)
{
	/* What is traced is counted by the model. */
	b->count.kinds = b->cache->blocks.memory ? 0 : b->cache->does.counted & CORE_KINDS_EXACT;
	b->count.checked = b->cache->does.checked & b->count.kinds;
	b->count.late = late;
	if (!b->count.kinds)
		return;
	b->count.bytes = 48;
	for_each_kind(kind, b->count.kinds)
		b->count.bytes += 16;
	b->count.lates = 2;
	for_each_kind(kind, b->count.checked)
		b->count.lates += 2;
}

bool count_room(const struct builder *b)
{
	return b->count.nr_late + b->count.lates < LATE_MAX && b->nr_decisions + 4U < 64;
}

struct counts count_state(const struct builder *b, const struct state *state)
{
	const struct count *c = &b->count;
	struct counts counts = c->done;

	if (state->where != AT_PC || state->done || state->pc != b->pc)
		add_counts(&counts, &c->insn);
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		counts.of[kind] -= c->added.of[kind];
	return counts;
}
