// SPDX-License-Identifier: MIT
/*
 * A record of the trace (runtime/model/block.h) begins with
 *
 *	mov %rdx, %gs:HELD
 *	movq %xmm15, %rdx
 *	movq $code, (%rdx)		of the block (model/compile.h)
 *	mov %rdi, 8(%rdx)		its words
 *	...
 *	test %dx, %dx			whether the buffer is full, if it looks (pmu/tracer.h)
 *	jns drain			out of line; comes back to the beginning
 *	paddq SIZES(%rip), %xmm15	from here on there is a record
 *
 * In the lower half of xmm15 is where it goes, and in the upper half how far that is from where the
 * buffer is full, below 0 before. So the program waits for no memory, and nobody waits for more
 * than an addition from one record to the next. Sizes lie where the cache begins, and what is added
 * is known when the record ends.
 *
 * The register in which the place is, and one more if addresses are to be computed, are such that
 * the program writes them in the same block before it reads them: then they are not filled again,
 * and their values that nobody asks for stay in the thread for who interrupts it. As long as the
 * place is there, words are added to the record by a store. Where the program has no such register
 * one is filled again at once, and rather another one each time, since who fills it waits for the
 * store.
 *
 * Where flags are not dead the buffer is looked at without them, in rcx:
 *
 *	nopl DISP32(%rcx, %rbp, 8)	0f 1f 84 e9 DISP32, of which the last five are jmp drain
 *	movmskpd %xmm15, %ecx
 *	jrcxz -12			into the nop
 */
#include "runtime/translate/record.h"

#include "runtime/translate/build.h"
#include "runtime/translate/vectors.h"

_Static_assert(RECORD_SIZES_BYTES % 16 == 0, "");

enum { HELD_PLACE, HELD_ADDRESS };

/* Where the record is, when the place is held. */
enum { POINTS_NOWHERE, POINTS_BEGIN, POINTS_END };

/* The stack has to be there all the time, and r12 takes one byte more as a base. */
#define NEVER_HELD (1u << REG_RSP | 1u << REG_R12)

/* mov to the slot, movq from xmm15, movq to the record up to its immediate */
enum { HEADER_CODE = 9 + 5 + 4 };

static uint64_t *size_of(const struct cache *cache, unsigned int words)
{
	return (uint64_t *)(cache->lookup.code + WAYS_OUT) + 2 * words;
}

void record_init(struct cache *cache)
{
	for (unsigned int words = 0; cache_traces(cache) && words <= BLOCK_MAX_WORDS; words++)
		size_of(cache, words)[0] = size_of(cache, words)[1] = 8 * words;
}

/* ---- registers ---- */

uint16_t record_registers(const struct insn_memory *m)
{
	uint16_t registers = 0;

	if (m->base != INSN_NO_REGISTER)
		registers |= 1 << m->base;
	if (m->index != INSN_NO_REGISTER && !m->vsib)
		registers |= 1 << m->index;
	return registers;
}

static uint16_t used_by(const struct group *g)
{
	uint16_t registers = g->bases;

	for (unsigned int i = 0; i < g->nr; i++)
		registers |= record_registers(&g->addresses[i].memory);
	return registers;
}

/* Some have to be left to be held. */
bool record_room(const struct group *g, uint16_t registers)
{
	unsigned int n = 0;

	for (registers |= used_by(g); registers; registers &= registers - 1)
		n++;
	return g->nr < sizeof(g->addresses) / sizeof(*g->addresses) && n <= 11;
}

static uint16_t held(const struct trace *t)
{
	return (1u << t->held[HELD_PLACE] | 1u << t->held[HELD_ADDRESS]) >> 1;
}

/* One that the group does not use; if there is one, of those that are dead. */
static enum reg choose(const struct builder *b, const struct group *g, const struct ahead *ahead)
{
	const uint16_t busy = used_by(g) | held(&b->trace) | NEVER_HELD;
	const unsigned int first = (b->pc ^ b->pc >> 4) % 16;
	uint16_t some = ahead->dead & ~busy;

	if (some >> ahead->last & 1)
		return ahead->last;
	if (some)
		return __builtin_ctz(some);
	some = ~(busy | ahead->touched);
	if (!some)
		some = ~busy;
	some = some >> first | some << (16 - first);
	return (__builtin_ctz(some) + first) % 16;
}

static void hold(struct builder *b, unsigned int which, enum reg reg, const struct ahead *ahead)
{
	struct trace *t = &b->trace;

	emit_spill(b, reg, THREAD_HELD + 8 * which);
	t->held[which] = 1 + reg;
	t->lasts[which] = ahead->dead >> reg & 1;
	mark_pc(b, b->pc, 0);
}

static enum reg reg_held(const struct builder *b, unsigned int which)
{
	return b->trace.held[which] - 1;
}

static void forget(struct trace *t, unsigned int which)
{
	t->held[which] = 0;
	if (which == HELD_PLACE)
		t->points = POINTS_NOWHERE;
}

static void fill(struct builder *b, unsigned int which)
{
	if (!b->trace.held[which])
		return;
	emit_fill(b, reg_held(b, which), THREAD_HELD + 8 * which);
	forget(&b->trace, which);
	mark_pc(b, b->pc, 0);
}

void record_give_back(struct builder *b)
{
	fill(b, HELD_PLACE);
	fill(b, HELD_ADDRESS);
}

/* Those that the program is not going to write. */
static void settle(struct builder *b)
{
	for (unsigned int which = 0; which < 2; which++)
		if (!b->trace.lasts[which])
			fill(b, which);
}

void record_written(struct builder *b, uint16_t registers)
{
	struct trace *t = &b->trace;

	for (unsigned int which = 0; which < 2; which++)
		if (t->held[which] && registers >> (t->held[which] - 1) & 1)
			forget(t, which);
}

/* ---- words ---- */

/* movq %xmm15, %place */
static void emit_place(struct builder *b)
{
	const enum reg reg = reg_held(b, HELD_PLACE);

	EMIT(b, 0x66);
	emit8(b, 0x4c | (reg & 8 ? 1 : 0));
	EMIT(b, 0x0f, 0x7e);
	emit8(b, 0xf8 | (reg & 7));
}

/* An instruction on byte @byte of a word: with REX, opcode and @reg of its modrm. */
static void emit_on_word(struct builder *b, uint8_t rex, uint8_t opcode, uint8_t reg, uint8_t word,
			 uint8_t byte)
{
	const enum reg place = reg_held(b, HELD_PLACE);
	struct trace *t = &b->trace;
	const uint32_t at = 8 * word + byte;

	emit8(b, rex | (place & 8 ? 1 : 0));
	emit8(b, opcode);
	if (t->points == POINTS_BEGIN && at < 128) {
		emit8(b, 0x40 | (reg & 7) << 3 | (place & 7));
		emit8(b, at);
		return;
	}
	emit8(b, 0x80 | (reg & 7) << 3 | (place & 7));
	emit32(b, at);
	if (t->points == POINTS_BEGIN)
		return;
	b->lists->open_ends[t->nr_open_ends].at = b->at - 4;
	b->lists->open_ends[t->nr_open_ends++].byte = at;
}

static void emit_word_store(struct builder *b, enum reg reg, uint8_t word)
{
	emit_on_word(b, 0x48 | (reg & 8 ? 4 : 0), 0x89, reg, word, 0);
}

static void emit_word_constant(struct builder *b, uint64_t value, uint8_t word)
{
	for (unsigned int half = 0; half < 2; half++) {
		emit_on_word(b, 0x40, 0xc7, 0, word, 4 * half);
		emit32(b, value >> 32 * half);
	}
}

uint64_t record_static_address(const struct insn *insn, const struct insn_memory *m, uint64_t pc)
{
	const uint64_t address = m->disp + (m->rip_relative ? pc + insn->length : 0);

	return m->prefixes & PREFIX_ADDRESS ? (uint32_t)address : address;
}

/* lea of the operand, into @to. */
static void emit_lea(struct builder *b, const struct insn_memory *m, enum reg to)
{
	const uint8_t base = m->base, index = m->index;
	const bool has_base = base != INSN_NO_REGISTER;
	const bool has_index = index != INSN_NO_REGISTER && !m->vsib;

	if (m->prefixes & PREFIX_ADDRESS)
		emit8(b, 0x67);
	emit8(b, 0x48 | (to & 8 ? 4 : 0) | (has_index && index & 8 ? 2 : 0) |
			 (has_base && base & 8 ? 1 : 0));
	EMIT(b, 0x8d);
	emit8(b, (has_base ? 0x80 : 0) | (to & 7) << 3 | 4);
	emit8(b, m->scale << 6 | (has_index ? (index & 7) << 3 : 0x20) | (has_base ? base & 7 : 5));
	emit32(b, (uint32_t)m->disp);
}

static void emit_words(struct builder *b, const struct group *g, const struct ahead *ahead)
{
	struct trace *t = &b->trace;

	for (unsigned int reg = 0; reg < 16; reg++) {
		if (!(g->bases >> reg & 1))
			continue;
		emit_word_store(b, reg, t->word_of[reg]);
		if (g->twice)
			emit_word_store(b, reg, t->word_of[reg] + 1);
	}
	for (unsigned int i = 0; i < g->nr; i++) {
		const struct insn *insn = &g->addresses[i].insn;
		const struct insn_memory *m = &g->addresses[i].memory;
		const uint8_t word = g->addresses[i].word;

		if (!record_registers(m)) {
			emit_word_constant(b, record_static_address(insn, m, g->addresses[i].pc),
					   word);
			continue;
		}
		if (!t->held[HELD_ADDRESS])
			hold(b, HELD_ADDRESS, choose(b, g, ahead), ahead);
		emit_lea(b, m, reg_held(b, HELD_ADDRESS));
		emit_word_store(b, reg_held(b, HELD_ADDRESS), word);
	}
}

/* ---- records ---- */

static bool flags_are_dead(const struct ahead *ahead)
{
	return !ahead->flags;
}

/* What is between here and @header is done again when there is room. */
static void add_header(struct builder *b, uint8_t *header, bool rcx_spilled)
{
	struct trace *t = &b->trace;
	struct trace_header *h = &b->lists->headers[t->nr_headers++];

	h->pc = b->pc;
	h->jump = b->at;
	__builtin_memcpy(h->held, t->held, sizeof(t->held));
	h->rcx_spilled = rcx_spilled;
	h->header = header;
}

static void emit_look(struct builder *b, uint8_t *header, const struct ahead *ahead)
{
	const enum reg place = reg_held(b, HELD_PLACE);

	if (flags_are_dead(ahead)) {
		EMIT(b, 0x66);
		emit8(b, 0x40 | (place & 8 ? 5 : 0));
		emit8(b, 0x85);
		emit8(b, 0xc0 | (place & 7) << 3 | (place & 7));
		EMIT(b, 0x0f, 0x89, 0, 0, 0, 0);
		add_header(b, header, false);
		return;
	}
	if (place != REG_RCX) {
		emit_spill(b, REG_RCX, THREAD_RCX);
		mark_pc(b, b->pc, SPILL_RCX);
	}
	EMIT(b, 0x0f, 0x1f, 0x84, 0xe9, 0, 0, 0, 0);
	add_header(b, header, place != REG_RCX);
	EMIT(b, 0x66, 0x41, 0x0f, 0x50, 0xcf, 0xe3, 0xf4);
	if (place == REG_RCX) {
		b->trace.points = POINTS_NOWHERE;
		return;
	}
	emit_fill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, b->pc, 0);
}

void record_begin(struct builder *b, const struct group *g, const struct ahead *ahead, bool looks)
{
	const bool in_rcx = looks && !flags_are_dead(ahead) && !(used_by(g) >> REG_RCX & 1);
	struct trace *t = &b->trace;
	uint8_t *header;

	record_give_back(b);
	vectors_take_back(b);
	header = b->at;
	hold(b, HELD_PLACE, in_rcx ? REG_RCX : choose(b, g, ahead), ahead);
	emit_place(b);
	t->points = POINTS_BEGIN;
	emit_on_word(b, 0x48, 0xc7, 0, 0, 0);
	emit32(b, 0);
	t->code = b->at;
	emit_words(b, g, ahead);
	if (looks)
		emit_look(b, header, ahead);
	EMIT(b, 0x66, 0x44, 0x0f, 0xd4, 0x3d, 0, 0, 0, 0); /* paddq SIZES(%rip), %xmm15 */
	t->size = b->at;
	t->open = true;
	mark_pc(b, b->pc, 0);
	settle(b);
}

void record_more(struct builder *b, const struct group *g, const struct ahead *ahead)
{
	struct trace *t = &b->trace;

	mark_pc(b, b->pc, 0);
	if (t->points == POINTS_NOWHERE) {
		vectors_take_back(b);
		if (!t->held[HELD_PLACE])
			hold(b, HELD_PLACE, choose(b, g, ahead), ahead);
		emit_place(b);
		t->points = POINTS_END;
	}
	emit_words(b, g, ahead);
	settle(b);
}

void record_end(struct builder *b)
{
	struct trace *t = &b->trace;
	const uint64_t size = (uint64_t)size_of(b->cache, t->words);
	const uint32_t relative = (uint32_t)(size - ((uint64_t)t->size + b->shift));

	__builtin_memcpy(t->size - 4, &relative, 4);
	for (unsigned int i = 0; i < t->nr_open_ends; i++) {
		const int32_t disp = b->lists->open_ends[i].byte - 8 * t->words;

		__builtin_memcpy(b->lists->open_ends[i].at, &disp, 4);
	}
	/* From the end of a record nothing is known of the next. */
	if (t->points == POINTS_END)
		t->points = POINTS_NOWHERE;
}

/*
 * drain: fill what is held; mov %rcx, %gs:RCX; lea header, %rcx; jmp *%gs:DRAIN
 */
void record_late(struct builder *b)
{
	struct trace *t = &b->trace;

	for (unsigned int i = 0; i < t->nr_headers; i++) {
		const struct trace_header *h = &b->lists->headers[i];
		uint8_t *jump = h->jump;
		const uint32_t relative = (uint32_t)(b->at - jump);
		const uint8_t spills = h->rcx_spilled ? SPILL_RCX : 0;

		__builtin_memcpy(jump - 4, &relative, 4);
		b->pc = h->pc;
		for (unsigned int which = 0; which < 2; which++)
			t->held[which] = h->held[which];
		mark_pc(b, b->pc, spills);
		for (unsigned int which = 0; which < 2; which++) {
			if (!t->held[which])
				continue;
			emit_fill(b, reg_held(b, which), THREAD_HELD + 8 * which);
			forget(t, which);
			mark_pc(b, b->pc, spills);
		}
		if (!spills)
			emit_spill(b, REG_RCX, THREAD_RCX);
		mark_pc(b, b->pc, SPILL_RCX);
		EMIT(b, 0x48, 0x8d, 0x0d);
		emit32(b, (uint32_t)(h->header - (b->at + 4)));
		emit8(b, segment_prefix);
		EMIT(b, 0xff, 0x24, 0x25);
		emit32(b, THREAD_DRAIN);
	}
}

struct block *record_block_at(uint64_t header)
{
	return record_block(*(const uint32_t *)(header + HEADER_CODE));
}
