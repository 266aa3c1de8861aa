// SPDX-License-Identifier: MIT
/*
 * Breakpoints on data, at speed. Before an instruction with operands in memory the address of each
 * is compared with what is watched, and only what may touch that is executed alone and looked at:
 *
 *	mov %rcx, %gs:RCX
 *	mov %gs:OFFSET, %rcx
 *	lea DISP(BASE, %rcx), %rcx
 *	nopl DISP32(%rcx, %rbp, 8)	0f 1f 84 e9 DISP32, of which the last five are jmp out
 *	pext %gs:MASK, %rcx, %rcx
 *	jrcxz -18			into the nop
 *	mov %gs:RCX, %rcx
 *
 * So no flag changes. An operand may be watched if its address and the offset add up to something that
 * has no bit of the mask. The offset makes of the watched addresses small numbers and, where there are
 * several, differences; bits that none of these has are the mask. One place is found almost exactly by
 * that, and of several far from each other the mask still has half the bits, or a quarter. Which offset and mask
 * depends on the operand: an access of 8 bytes touches what lies 7 behind where it begins.
 *
 * Where the base of FS takes a system call to be read, the remembered one is added (runtime/fs.h), and
 * a second pext, by fs.known, lets nothing through as long as none is remembered.
 *
 * Operands that are reached from a register as it is are near each other mostly. So what is compared is
 * all that lies 64 bytes on both sides of one, and others that lie there are not compared any more, until
 * the register changes, or others may come in. Where that lets through what touches nothing, the
 * fragment is made anew and compares each operand (filter_was_wrong()).
 *
 * The way out says where it comes from. What the program's state is there is found as for a signal
 * (recover.c), so nothing has to be emitted for that.
 */
#include "runtime/translate/filter.h"

#include "core/core.h"
#include "runtime/fs.h"
#include "runtime/translate/build.h"
#include "runtime/translate/count_near.h"
#include "runtime/translate/record.h"
#include "runtime/translate/tables.h"
#include "runtime/translate/vectors.h"

bool filter_possible(void)
{
	return tables_index() == INDEX_PEXT;
}

/* ---- what is watched ---- */

enum { SIZES = 8, TOGETHER = 128, LARGEST = 512 };

/* Of accesses; others are taken for the next larger one. */
static const uint16_t sizes[SIZES] = {1, 4, 8, 16, 32, 64, TOGETHER, LARGEST};

/* All bits up to the highest that differs. */
static uint64_t differing(uint64_t a, uint64_t b)
{
	const uint64_t different = a ^ b;

	return different ? ~0UL >> __builtin_clzl(different) : 0;
}

/* Bits that some access of @size has, less @start, that touches something watched. */
static uint64_t bits_of(const struct core_breakpoint_range *watched, size_t nr, uint32_t type,
			unsigned int size, uint64_t start)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < nr; i++) {
		const uint64_t first = watched[i].address - (size - 1) - start;
		const uint64_t last = watched[i].address + watched[i].size - 1 - start;

		if (!(watched[i].type & type))
			continue;
		bits |= first > last ? ~0UL : first | last | differing(first, last);
	}
	return bits;
}

static unsigned int number_of(uint64_t bits)
{
	unsigned int n = 0;

	for (; bits; bits &= bits - 1)
		n++;
	return n;
}

static struct operand_filter filter_of(const struct core_breakpoint_range *watched, size_t nr,
				       uint32_t type, unsigned int size)
{
	/* Nothing is at 0. */
	struct operand_filter best = {.offset = 0, .mask = ~0UL};
	bool any = false;

	for (size_t i = 0; i < nr; i++) {
		const uint64_t start = watched[i].address - (size - 1);
		uint64_t mask;

		if (!(watched[i].type & type))
			continue;
		mask = ~bits_of(watched, nr, type, size, start);
		if (!any || number_of(mask) > number_of(best.mask))
			best = (struct operand_filter){-start, mask};
		any = true;
	}
	return best;
}

void translate_watch(struct thread *thread, const struct core_breakpoint_range *watched, size_t nr)
{
	_Static_assert(sizeof(thread->filters[0]) / sizeof(thread->filters[0][0]) == SIZES, "");

	for (uint32_t access = ACCESS_R; access <= ACCESS_RW; access++)
		for (unsigned int i = 0; i < SIZES; i++)
			thread->filters[access - 1][i] = filter_of(watched, nr, access, sizes[i]);
}

static uint32_t filter_for(const struct insn_memory *m)
{
	unsigned int i = 0;

	/* Of what is saved and restored the encoding does not tell the size. */
	while (i < SIZES - 1 && (!m->size || sizes[i] < m->size))
		i++;
	return THREAD_FILTERS + sizeof(struct operand_filter) * (SIZES * (m->access - 1) + i);
}

/* ---- addresses ---- */

/* Another register beside rcx, which it is in the slot of meanwhile. */
struct helper {
	enum reg reg;
	uint8_t spill;
	uint32_t slot;
};

static const struct helper helpers[] = {
	{REG_RDX, SPILL_RDX, THREAD_RDX},
	{REG_RAX, SPILL_RAX, THREAD_RAX},
};

/* How an address gets into rcx, beside the offset that is there already. */
enum through {
	THROUGH_NOTHING, /* of registers as they are */
	THROUGH_COPY,	 /* rcx is one of them, and its value in the helper */
	THROUGH_FS,	 /* the base of FS is in the helper */
	THROUGH_ALL,	 /* all of it is in the helper: a constant, or 32 bits */
	THROUGH_NOWHERE, /* it is not worth while: what it touches is always looked at */
};

static bool is_constant(const struct insn_memory *m)
{
	return m->base == INSN_NO_REGISTER && m->index == INSN_NO_REGISTER;
}

static enum through through_what(const struct insn_memory *m)
{
	const bool of_rcx = record_registers(m) >> REG_RCX & 1;
	const bool narrow = m->prefixes & PREFIX_ADDRESS;

	if (m->aligned || m->bits != INSN_NO_REGISTER)
		return THROUGH_NOWHERE;
	if (m->prefixes & PREFIX_FS)
		return narrow || of_rcx || m->index != INSN_NO_REGISTER || m->rip_relative ||
				       !fits32(m->disp)
			       ? THROUGH_NOWHERE
			       : THROUGH_FS;
	if (is_constant(m))
		return THROUGH_ALL;
	if (narrow)
		return of_rcx ? THROUGH_NOWHERE : THROUGH_ALL;
	return of_rcx ? THROUGH_COPY : THROUGH_NOTHING;
}

/* Of an operand without registers, or with 32 bits of them. */
static void emit_all(struct builder *b, const struct insn_memory *m, enum reg to)
{
	const uint64_t address = record_static_address(&b->insn, m, b->pc);
	const bool has_index = m->index != INSN_NO_REGISTER;

	if (is_constant(m)) {
		emit8(b, 0x48);
		emit8(b, 0xb8 | to);
		emit64(b, address);
		return;
	}
	/* REX.W before it extends to 64 bits what has 32. */
	emit8(b, 0x67);
	emit8(b, 0x48 | (has_index && m->index & 8 ? 2 : 0) |
			 (m->base != INSN_NO_REGISTER && m->base & 8 ? 1 : 0));
	EMIT(b, 0x8d);
	emit8(b, (m->base != INSN_NO_REGISTER ? 0x80 : 0) | to << 3 | 4);
	emit8(b, m->scale << 6 | (has_index ? (m->index & 7) << 3 : 0x20) |
			 (m->base != INSN_NO_REGISTER ? m->base & 7 : 5));
	emit32(b, (uint32_t)m->disp);
}

/* Adds registers and displacement to rcx; @copy is where the program's rcx is. */
static void emit_sum(struct builder *b, const struct insn_memory *m, enum reg copy)
{
	const uint8_t base = m->base == REG_RCX ? copy : m->base;
	const uint8_t index = m->index == REG_RCX ? copy : m->index;
	int32_t disp = (int32_t)m->disp;

	if (base != INSN_NO_REGISTER) {
		emit_lea_of(b, REG_RCX, base, REG_RCX, 0, disp);
		disp = 0;
	}
	if (index != INSN_NO_REGISTER)
		emit_lea_of(b, REG_RCX, REG_RCX, index, m->scale, disp);
}

/* Where it can only be remembered: fs.known says whether it is. */
static bool remembers_fs(void)
{
	return !segment_is_fs() && !fs_readable();
}

static void emit_base_of_fs(struct builder *b, enum reg to)
{
	if (segment_is_fs()) {
		emit_fill(b, to, THREAD_FS);
	} else if (remembers_fs()) {
		emit_fill(b, to, offsetof(struct thread, fs.base));
	} else {
		/* rdfsbase */
		EMIT(b, 0xf3, 0x48, 0x0f, 0xae);
		emit8(b, 0xc0 | to);
	}
}

void filter_forget_fs(struct builder *b)
{
	if (!remembers_fs())
		return;
	/* movq $0, %gs:KNOWN */
	emit8(b, segment_prefix);
	EMIT(b, 0x48, 0xc7, 0x04, 0x25);
	emit32(b, offsetof(struct thread, fs.known));
	emit32(b, 0);
}

static void emit_helper(struct builder *b, const struct insn_memory *m, enum through through,
			const struct helper *helper)
{
	switch (through) {
	case THROUGH_COPY:
		emit_fill(b, helper->reg, THREAD_RCX);
		break;
	case THROUGH_FS:
		emit_base_of_fs(b, helper->reg);
		break;
	case THROUGH_ALL:
		emit_all(b, m, helper->reg);
		break;
	default:
		break;
	}
}

/* Its offset and the address into rcx, whose own value is in its slot. */
static void emit_address(struct builder *b, const struct insn_memory *m, enum through through,
			 uint32_t offset)
{
	const struct helper *helper = &helpers[record_registers(m) >> REG_RDX & 1];

	if (through == THROUGH_NOTHING) {
		emit_fill(b, REG_RCX, offset);
		emit_sum(b, m, REG_RCX);
		return;
	}
	emit_spill(b, helper->reg, helper->slot);
	mark_pc(b, b->pc, SPILL_RCX | helper->spill);
	emit_helper(b, m, through, helper);
	emit_fill(b, REG_RCX, offset);
	if (through != THROUGH_COPY)
		emit_lea_of(b, REG_RCX, helper->reg, REG_RCX, 0,
			    through == THROUGH_FS ? (int32_t)m->disp : 0);
	if (through == THROUGH_COPY)
		emit_sum(b, m, helper->reg);
	if (through == THROUGH_FS && m->base != INSN_NO_REGISTER)
		emit_lea_of(b, REG_RCX, m->base, REG_RCX, 0, 0);
	emit_fill(b, helper->reg, helper->slot);
	mark_pc(b, b->pc, SPILL_RCX);
}

/* ---- operands ---- */

static bool is_looked_at(const struct insn_memory *m)
{
	return m->access != ACCESS_NONE && !m->vsib;
}

static bool repeats(const struct insn *insn)
{
	const uint8_t op = insn->opcode;

	return insn->prefixes & (PREFIX_REP | PREFIX_REPNE) && insn->encoding == INSN_LEGACY &&
	       !insn->map && ((op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf));
}

/* The rel32 of a way out. */
static void emit_way_out(struct builder *b)
{
	emit32(b, 0);
	b->lists->sites[b->nr_sites++] = (struct filter_site){b->at, here(b)};
}

/* pext %gs:OFFSET, %rcx, %rcx */
static void emit_pext(struct builder *b, uint32_t offset)
{
	emit8(b, segment_prefix);
	EMIT(b, 0xc4, 0xe2, 0xf2, 0xf5, 0x0c, 0x25);
	emit32(b, offset);
}

static void emit_compare(struct builder *b, const struct insn_memory *m)
{
	enum { WAY_OUT_BYTES = 5 }; /* of the nop that comes first, the last: a jump */
	const enum through through = repeats(&b->insn) ? THROUGH_NOWHERE : through_what(m);
	const uint32_t filter = filter_for(m);
	const uint8_t *out;

	if (through == THROUGH_NOWHERE) {
		emit8(b, 0xe9);
		emit_way_out(b);
		return;
	}
	emit_address(b, m, through, filter + offsetof(struct operand_filter, offset));
	EMIT(b, 0x0f, 0x1f, 0x84, 0xe9);
	emit_way_out(b);
	out = b->at - WAY_OUT_BYTES;
	emit_pext(b, filter + offsetof(struct operand_filter, mask));
	if (through == THROUGH_FS && remembers_fs())
		emit_pext(b, offsetof(struct thread, fs.known));
	EMIT(b, 0xe3, 0);
	b->at[-1] = (uint8_t)(out - b->at);
}

/* ---- what is compared together ---- */

/* Operands that are reached from a register as it is. */
static bool goes_together(const struct builder *b, const struct insn_memory *m)
{
	return !(b->fragment->flags & FRAGMENT_EACH) && m->base != INSN_NO_REGISTER &&
	       m->index == INSN_NO_REGISTER && m->size && m->size <= TOGETHER / 2 &&
	       m->bits == INSN_NO_REGISTER && !m->aligned && !m->prefixes && !repeats(&b->insn) &&
	       m->disp > -(1 << 30) && m->disp < 1 << 30;
}

static bool is_known(const struct builder *b, const struct insn_memory *m)
{
	const int64_t from = b->known.from[m->base];

	return b->known.registers >> m->base & 1 && m->disp >= from &&
	       m->disp + m->size <= from + TOGETHER;
}

/* What is on both sides of the operand, for those that come. */
static struct insn_memory around(struct builder *b, const struct insn_memory *m)
{
	struct insn_memory all = *m;

	all.disp -= TOGETHER / 2;
	all.size = TOGETHER;
	all.access = ACCESS_RW;
	b->known.registers |= 1 << m->base;
	b->known.from[m->base] = (int32_t)all.disp;
	return all;
}

void filter_entry(struct builder *b)
{
	if (insn_is_call(&b->insn) || (b->count.pairs && count_is_marked(b, MARK_ENTERED)))
		b->known.registers = 0;
}

bool filter_may_enter(const struct builder *b)
{
	return !b->known.registers;
}

void filter_after(struct builder *b)
{
	struct insn_effects e;
	int32_t by;

	if (!b->known.registers)
		return;
	if (b->insn.class != INSN_PLAIN && b->insn.class != INSN_JCC) {
		b->known.registers = 0;
		return;
	}
	insn_effects(&b->insn, &e);
	if (e.written >> REG_RSP & 1 && trace_moves_rsp(&b->insn, &by)) {
		b->known.from[REG_RSP] -= by;
		e.written &= ~(1 << REG_RSP);
	}
	b->known.registers &= ~e.written;
}

/* Lines of code, and not fragments: in those of what follows others will begin. */
static uint64_t *each_word(struct cache *cache, uint64_t pc)
{
	return &cache->each[pc >> 12 & 15];
}

static uint64_t each_bit(uint64_t pc)
{
	return 1UL << (pc >> 6 & 63);
}

unsigned int filter_flags(struct cache *cache, uint64_t pc)
{
	return cache_filters(cache) && *each_word(cache, pc) & each_bit(pc) ? FRAGMENT_EACH : 0;
}

/* Whether it is not one of those that are always let through. */
static bool is_comparison(const uint8_t *behind)
{
	static const uint8_t nop[] = {0x0f, 0x1f, 0x84, 0xe9};

	for (unsigned int i = 0; i < sizeof(nop); i++)
		if (behind[(int)i - 8] != nop[i])
			return false;
	return true;
}

void filter_was_wrong(struct cache *cache, uint32_t offset, uint64_t pc)
{
	struct fragment *f = cache_fragment_at(cache, offset);

	if (!f || f->flags & FRAGMENT_EACH || !is_comparison(cache->lookup.code + offset))
		return;
	*each_word(cache, pc) |= each_bit(pc);
	*each_word(cache, f->pc) |= each_bit(f->pc);
	cache_kill(cache, f);
}

void filter_before(struct builder *b)
{
	struct insn_effects e;
	bool any = false;

	if (!cache_filters(b->cache))
		return;
	insn_effects(&b->insn, &e);
	for (unsigned int i = 0; i < e.nr_memory; i++) {
		struct insn_memory m = e.memory[i];
		const bool together = goes_together(b, &m);

		if (!is_looked_at(&m) || (together && is_known(b, &m)))
			continue;
		if (!any) {
			vectors_take_back(b);
			emit_spill(b, REG_RCX, THREAD_RCX);
			mark_pc(b, b->pc, SPILL_RCX);
		}
		any = true;
		if (together)
			m = around(b, &m);
		emit_compare(b, &m);
	}
	if (!any)
		return;
	emit_fill(b, REG_RCX, THREAD_RCX);
	mark_pc(b, b->pc, 0);
}

/*
 *	lea site(%rip), %rcx; jmp *%gs:TOUCH
 */
void filter_late(struct builder *b)
{
	for (unsigned int i = 0; i < b->nr_sites; i++) {
		const struct filter_site *site = &b->lists->sites[i];
		const uint32_t relative = (uint32_t)(b->at - site->jump);

		__builtin_memcpy(site->jump - 4, &relative, 4);
		if (here(b) <= b->asked)
			b->likewise = site->address;
		EMIT(b, 0x48, 0x8d, 0x0d);
		emit_relative(b, site->address);
		emit8(b, segment_prefix);
		EMIT(b, 0xff, 0x24, 0x25);
		emit32(b, THREAD_TOUCH);
	}
}

/* ---- for the builder ---- */

/* An instruction has three operands at most. */
enum { MOST_OPERANDS = 3, CHECK_BYTES = 96, WAY_BYTES = 15 };

bool filter_room(const struct builder *b)
{
	return b->nr_sites + MOST_OPERANDS <= FILTER_SITES;
}

unsigned int filter_bytes(const struct builder *b)
{
	if (!cache_filters(b->cache))
		return 0;
	return MOST_OPERANDS * (CHECK_BYTES + WAY_BYTES) + 18 +
	       2 * VECTORS_MAX * VECTOR_MOVE_BYTES + WAY_BYTES * b->nr_sites;
}
