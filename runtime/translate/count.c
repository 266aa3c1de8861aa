// SPDX-License-Identifier: MIT
/*
 * Counting. A *segment* is a run of a fragment that is entered at its beginning and usually left at
 * its end: at a call, at a condition that leads backwards, at the end of the fragment. All that it
 * does is added at one place in it, so that a counter is touched once for many blocks:
 *
 *	...
 *	jcc 1f				leaves before the place:
 *	...
 *	addq $sum, %gs:COUNTER		for each kind that is counted, in a lane
 *	cmp ...
 *	jcc 2f				leaves behind it:
 *	...
 *
 * 1:	addq $executed, %gs:COUNTER
 *	jmp TARGET
 * 2:	addq $executed-sum, %gs:COUNTER
 *	jmp TARGET
 *
 * The sum is known when the segment ends, and put into the instruction then. Whoever interrupts a
 * segment finds in struct state what it has added and not done (recover.c), so the counters are
 * exact at every instruction.
 *
 * Flags: the place is before the first instruction that sets all of them and asks for none. Where
 * none comes before the segment ends, nor soon after it, counters go through a register whose
 *latency nobody waits for: r11, which few use, or rcx, where it has been spilled anyway:
 *
 *	mov %r11, %gs:RAX
 *	mov %gs:COUNTER, %r11; lea sum(%r11), %r11; mov %r11, %gs:COUNTER
 *	mov %gs:RAX, %r11
 *
 * A cache that checks adds where a segment begins, and "jns 3f" follows: the counter is negative
 * until somebody is to be told.
 *
 * 3:	addq $-sum, %gs:COUNTER		of all that have been added
 *	jmp out				as EXIT_DUE: nothing of the segment has been executed
 *
 * Flags that are not dead there are kept in ax:
 *
 *	mov %rax, %gs:RAX; lahf; seto %al; addq ...; add $0x7f, %al; sahf; mov %gs:RAX, %rax
 *
 * What was found by looking at more than the instructions of the fragment, or by when it was made,
 * is kept in the word before its code (decide()), for rehearsals.
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

/*
 * Whether the fragment does not survive a change of the code at @pc. One page more is left to what
 * it is made from.
 */
static bool depends_on(struct builder *b, uint64_t pc)
{
	const struct fragment *f = b->fragment;
	const uint64_t page = pc >> PAGE_SHIFT;

	return fragment_which(f, page) < f->nr_pages ||
	       (f->nr_pages && f->nr_pages < FRAGMENT_PAGES - 1 && !b->range.writable &&
		take_page(b, page));
}

/* Decodes what is at @pc, on one page. */
static bool look(struct builder *b, uint64_t pc, struct insn *insn)
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
static bool flags_dead(struct builder *b, uint64_t pc)
{
	uint8_t needed = ALL_FLAGS, read, written;
	struct insn insn;

	if (b->asked || b->fragment->flags & FRAGMENT_CHECKED)
		return false;
	for (unsigned int i = 0; i < LOOK_INSNS && look(b, pc, &insn); i++) {
		if (insn.class == INSN_JMP || insn.class == INSN_CALL) {
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

/* Whether what the flags were before the instruction at hand makes no difference. */
static bool sets_all_flags(const struct insn *insn)
{
	uint8_t read, written;

	if (flags_set(insn) != ALL_FLAGS)
		return false;
	insn_flags(insn, &read, &written);
	return !(read & ALL_FLAGS);
}

/* ---- adding ---- */

/* Where the next addition goes. */
static uint32_t counter(const struct count *c, unsigned int kind)
{
	if (!c->has_lanes)
		return THREAD_EVENTS + CORE_TASK_COUNTERS + 8 * kind;
	return THREAD_EVENTS + CORE_TASK_LANES +
	       8 * (c->lane % CORE_LANES * CORE_LANE_KINDS + kind);
}

static bool goes_through(enum how how)
{
	return how == THROUGH_R11 || how == THROUGH_RCX;
}

/* Returns where the amount is. */
static uint8_t *emit_addition(struct builder *b, unsigned int kind, int8_t amount, enum how how)
{
	const enum reg reg = how == THROUGH_R11 ? REG_R11 : REG_RCX;
	const uint32_t word = counter(&b->count, kind);
	uint8_t *at;

	if (!goes_through(how)) { /* addq $amount, %gs:counter */
		EMIT(b, 0x65, 0x48, 0x83, 0x04, 0x25);
		emit32(b, word);
		emit8(b, (uint8_t)amount);
		return b->at - 1;
	}
	emit_fill(b, reg, word);
	if (reg == REG_R11)
		EMIT(b, 0x4d, 0x8d, 0x5b); /* lea amount(%r11), %r11 */
	else
		EMIT(b, 0x48, 0x8d, 0x49);
	at = b->at;
	emit8(b, (uint8_t)amount);
	emit_spill(b, reg, word);
	return at;
}

enum { ADD_BYTES = 10, THROUGH_BYTES = 22, BORROW_BYTES = 18 };

/* Makes an addq of nothing do nothing. */
static void unmake_add(uint8_t *amount)
{
	static const uint8_t nop[ADD_BYTES] = {0x66, 0x2e, 0x0f, 0x1f, 0x84};

	__builtin_memcpy(amount + 1 - ADD_BYTES, nop, ADD_BYTES);
}

static void mark_adding(struct builder *b, uint64_t pc, enum how how)
{
	static const uint8_t spills[] = {
		[KEEPING_FLAGS] = SPILL_RAX | SPILL_FLAGS,
		[THROUGH_R11] = SPILL_FAR,
		[THROUGH_RCX] = SPILL_RCX,
	};

	mark(b, (struct state){.pc = pc, .spills = spills[how], .far = REG_R11});
}

/* What additions need, before them. */
static void borrow(struct builder *b, uint64_t pc, enum how how)
{
	switch (how) {
	case KEEPING_FLAGS:
		emit_spill(b, REG_RAX, THREAD_RAX);
		mark_pc(b, pc, SPILL_RAX);
		EMIT(b, 0x9f, 0x0f, 0x90, 0xc0);
		mark_adding(b, pc, how);
		break;
	case THROUGH_R11:
		emit_spill(b, REG_R11, THREAD_RAX);
		mark_adding(b, pc, how);
		break;
	case FREELY:
	case THROUGH_RCX:
		break;
	}
}

static void give_back(struct builder *b, uint64_t pc, enum how how)
{
	switch (how) {
	case KEEPING_FLAGS:
		EMIT(b, 0x04, 0x7f);
		mark_pc(b, pc, SPILL_RAX | SPILL_LOW_FLAGS);
		emit8(b, 0x9e);
		mark_pc(b, pc, SPILL_RAX);
		emit_fill(b, REG_RAX, THREAD_RAX);
		mark_pc(b, pc, 0);
		break;
	case THROUGH_R11:
		emit_fill(b, REG_R11, THREAD_RAX);
		mark_pc(b, pc, 0);
		break;
	case FREELY:
	case THROUGH_RCX:
		break;
	}
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
				   enum how how)
{
	struct late *late = new_late(b, LATE_DUE, pc);

	late->how = how;
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
		emit_addition(b, kind, amount, how);
		counts.of[kind] = 0;
		c->added.of[kind] += amount;
		mark_adding(b, pc, how);
		if (amount > 0 && c->checked >> kind & 1) {
			const struct counts back = negative(&c->added);

			emit_check_due(b, c->ahead ? &back : &counts, pc, how);
		}
	}
}

/* The same between two instructions. */
static void emit_counts_apart(struct builder *b, const struct counts *counts, uint64_t pc,
			      bool dead)
{
	const enum how how = dead ? FREELY : b->count.checked ? KEEPING_FLAGS : THROUGH_R11;

	if (!any(counts, b->count.kinds))
		return;
	b->count.lane++;
	borrow(b, pc, how);
	emit_counts(b, *counts, pc, how);
	give_back(b, pc, how);
}

/* What is told of the program's state: it is at late->pc, and has done @done. */
static void begin_late(struct builder *b, const struct late *late, const struct counts *done)
{
	b->pc = late->pc;
	b->count.done = *done;
	b->count.insn = b->count.added = (struct counts){0};
	mark_adding(b, late->pc, late->how);
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
	emit_counts_apart(b, &late->counts, late->pc, late->dead);
	b->count.ahead = false;
	emit8(b, 0xe9);
	emit32(b, (uint32_t)(late->site - (b->at + 4)));
}

static void emit_late_due(struct builder *b, const struct late *late)
{
	begin_late(b, late, &late->counts);
	emit_counts(b, late->counts, late->pc, late->how);
	give_back(b, late->pc, late->how);
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
static int8_t real_amount(const struct builder *b, const uint8_t *amount, enum how how)
{
	const uint8_t *real = amount + b->shift;

	return goes_through(how) || real[1 - ADD_BYTES] == 0x65 ? (int8_t)*real : 0;
}

/* Here is the place where all of the segment is added. */
static void place(struct builder *b, enum how how)
{
	struct count *c = &b->count;
	static const struct counts nothing;

	c->placed = true;
	c->how = how;
	c->lane++;
	borrow(b, b->pc, how);
	for_each_kind(kind, c->kinds) {
		c->amounts[kind] = emit_addition(b, kind, 0, how);
		if (b->asked)
			c->added.of[kind] = real_amount(b, c->amounts[kind], how);
		mark_adding(b, b->pc, how);
		if (c->checked >> kind & 1)
			emit_check_due(b, &nothing, b->pc, how)->undone = (2u << kind) - 1;
	}
	give_back(b, b->pc, how);
}

static void begin_segment(struct builder *b)
{
	struct count *c = &b->count;

	c->open = true;
	c->placed = false;
	c->first_late = c->nr_late;
	if (c->checked)
		place(b, decide(b, flags_dead(b, b->pc)) ? FREELY : KEEPING_FLAGS);
}

static bool pending(const struct count *c)
{
	return c->open && !c->placed;
}

void count_leave(struct builder *b)
{
	if (pending(&b->count))
		place(b, decide(b, flags_dead(b, b->pc)) ? FREELY : THROUGH_R11);
}

void count_spilled(struct builder *b)
{
	if (pending(&b->count))
		place(b, THROUGH_RCX);
}

void count_close(struct builder *b)
{
	struct count *c = &b->count;

	if (!c->open)
		return;
	mark_pc(b, b->pc, 0);
	count_leave(b);
	for_each_kind(kind, c->kinds) {
		*c->amounts[kind] = (uint8_t)c->done.of[kind];
		if (!c->done.of[kind] && !(c->checked >> kind & 1) && !goes_through(c->how))
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
	late->dead = decide(b, flags_dead(b, b->pc));
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

/* What the segment adds has to be added before the instruction at hand, or in what becomes of it.
 */
static void place_before(struct builder *b)
{
	struct count *c = &b->count;

	if (sets_all_flags(&b->insn)) {
		place(b, FREELY);
		return;
	}
	switch (b->insn.class) {
	case INSN_PLAIN: /* if it leaves, it calls count_leave() */
	case INSN_JMP:
	case INSN_RET: /* calls count_spilled(), */
		break;
	case INSN_JMP_INDIRECT: /* and so does this one if rcx has nothing to do with it */
		if (!b->insn.rip_relative)
			count_leave(b);
		break;
	case INSN_JCC:
		if (c->closing)
			count_leave(b);
		break;
	default:
		count_leave(b);
	}
}

void count_before(struct builder *b)
{
	const uint8_t class = b->insn.class;
	const bool call = class == INSN_CALL || class == INSN_CALL_INDIRECT;
	const bool amid = b->count.open;

	b->count.insn = counts_of(&b->insn, b->count.kinds);
	b->count.closing = call || (class == INSN_JCC && jcc_closes(b));
	if (!amid)
		begin_segment(b);
	if (!b->count.placed)
		place_before(b);
	if (amid && call && !(b->fragment->flags & FRAGMENT_CHECKED))
		late_call(b);
}

unsigned int count_before_bytes(const struct builder *b)
{
	const struct count *c = &b->count;

	return !c->kinds || (c->open && c->placed) ? 0 : c->bytes;
}

void count_after(struct builder *b)
{
	struct count *c = &b->count;

	add_counts(&c->done, &c->insn);
	c->insn = (struct counts){0};
	if (c->closing || c->fine || nearly_full(&c->done))
		count_close(b);
}

bool count_jcc(struct builder *b, uint64_t target)
{
	struct count *c = &b->count;
	struct late *late;

	if (c->closing && !(c->kinds & CORE_KIND_BIT(CORE_BRANCHES_TAKEN)))
		return false;
	late = new_late(b, LATE_TAKEN, target);
	late->dead = decide(b, flags_dead(b, target));
	late->undone = c->placed ? (1u << COUNT_KINDS) - 1 : 0;
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
	/* What is executed in a row should be in different lanes. */
	b->count.lane = b->fragment->start / HEAD_BYTES;
	b->count.has_lanes = !b->cache->does.checked && !cache_is_slow(b->cache);
	b->count.fine = b->cache->does.extras & INSTRUMENT_FINE;
	b->count.bytes = b->count.checked ? 48 : BORROW_BYTES;
	for_each_kind(kind, b->count.kinds)
		b->count.bytes += b->count.checked ? 16 : THROUGH_BYTES;
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

	if (c->apart)
		return (struct counts){0};
	if (state->where != AT_PC || state->done || state->pc != b->pc)
		add_counts(&counts, &c->insn);
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		counts.of[kind] -= c->added.of[kind];
	return counts;
}
