// SPDX-License-Identifier: MIT
/*
 *	.eh_frame_hdr	| 1 | encodings: 3 bytes | .eh_frame, 4 | number, 4 | { function, FDE } ...
 *| FDE		| length, 4 | back to the CIE, 4 | first, size of the function | ... | program | CIE
 *| length, 4 | 0, 4 | version | augmentation | alignments | ... | program |
 *
 * Both programs are run up to the place at hand; what they leave is the row. Encodings other than
 * those that linkers write, relative to where they stand, are not read.
 */
#include "runtime/linux/cfi.h"

#include "runtime/linux/copy.h"
#include "runtime/string.h"

enum {
	FDE_MAX = 2048, /* of a longer one as much is there */
	CIE_MAX = 160,
	KEPT_MAX = 8, /* rows that a program remembers */
	STACK_MAX = 16,
};

/* ---- reading ---- */

struct cursor {
	const uint8_t *at, *end;
	uint64_t address; /* of `end` in the program */
	bool bad;
	bool cut; /* the entry goes on behind `end` */
};

static uint64_t address_at(const struct cursor *c)
{
	return c->address - (uint64_t)(c->end - c->at);
}

static uint64_t get(struct cursor *c, unsigned int size)
{
	uint64_t value = 0;

	if ((uint64_t)(c->end - c->at) < size) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, size);
	c->at += size;
	return value;
}

static uint64_t sign(uint64_t value, unsigned int bits)
{
	return bits < 64 && value >> (bits - 1) & 1 ? value | ~0UL << bits : value;
}

static uint64_t get_signed(struct cursor *c, unsigned int size)
{
	return sign(get(c, size), 8 * size);
}

static uint64_t leb(struct cursor *c, bool is_signed)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = get(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return is_signed ? sign(value, shift) : value;
}

static uint64_t uleb(struct cursor *c)
{
	return leb(c, false);
}

static uint64_t sleb(struct cursor *c)
{
	return leb(c, true);
}

enum { ENCODED_SIGNED = 8, ENCODED_RELATIVE = 0x10, RELATIVE_4 = 0x1b, OFFSETS_4 = 0x3b };

static unsigned int encoded_size(uint8_t encoding)
{
	static const uint8_t sizes[] = {8, 0, 2, 4, 8, 0, 0, 0};

	return sizes[encoding & 7];
}

/* A pointer; of sizes and the like @relative is false. */
static uint64_t encoded(struct cursor *c, uint8_t encoding, bool relative)
{
	const unsigned int size = encoded_size(encoding);
	const uint64_t place = address_at(c);
	uint64_t value;

	if (!size || (encoding & 0xf0) > ENCODED_RELATIVE) {
		c->bad = true;
		return 0;
	}
	value = encoding & ENCODED_SIGNED ? get_signed(c, size) : get(c, size);
	return relative && encoding & ENCODED_RELATIVE ? value + place : value;
}

/* What begins at @address with its own length, as much as @buffer holds. */
static bool read_entry(struct cursor *c, uint64_t address, uint8_t *buffer, size_t size)
{
	uint32_t length;

	if (copy_in(&length, address, sizeof(length)) || !length || length == UINT32_MAX)
		return false;
	address += sizeof(length);
	*c = (struct cursor){.at = buffer, .cut = length > size};
	if (!c->cut)
		size = length;
	c->end = buffer + size;
	c->address = address + size;
	return !copy_in(buffer, address, size);
}

/* ---- expressions ---- */

struct machine {
	const struct cfi_frame *frame;
	uint64_t stack[STACK_MAX];
	unsigned int depth;
	bool bad;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == STACK_MAX)
		m->bad = true;
	else
		m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (m->depth)
		return m->stack[--m->depth];
	m->bad = true;
	return 0;
}

static uint64_t load(uint64_t address, bool *bad)
{
	uint64_t value = 0;

	if (copy_in(&value, address, sizeof(value)))
		*bad = true;
	return value;
}

static void push_register(struct machine *m, unsigned int number, uint64_t offset)
{
	if (number < CFI_REGISTERS)
		push(m, m->frame->reg[number] + offset);
	else
		m->bad = true;
}

/* Of two operands, @b the upper one. */
static uint64_t binary(uint8_t operation, uint64_t a, uint64_t b, bool *bad)
{
	switch (operation) {
	case 0x1a:
		return a & b;
	case 0x1c:
		return a - b;
	case 0x1e:
		return a * b;
	case 0x21:
		return a | b;
	case 0x22:
		return a + b;
	case 0x24:
		return b < 64 ? a << b : 0;
	case 0x25:
		return b < 64 ? a >> b : 0;
	case 0x27:
		return a ^ b;
	case 0x29:
		return a == b;
	case 0x2a:
		return (int64_t)a >= (int64_t)b;
	case 0x2b:
		return (int64_t)a > (int64_t)b;
	case 0x2c:
		return (int64_t)a <= (int64_t)b;
	case 0x2d:
		return (int64_t)a < (int64_t)b;
	case 0x2e:
		return a != b;
	}
	*bad = true;
	return 0;
}

static void operate(struct machine *m, struct cursor *c, uint8_t operation)
{
	uint64_t a;

	if (operation >= 0x30 && operation <= 0x4f) { /* lit0 ... */
		push(m, operation - 0x30U);
		return;
	}
	if (operation >= 0x70 && operation <= 0x8f) { /* breg0 ... */
		push_register(m, operation - 0x70U, sleb(c));
		return;
	}
	if (operation >= 0x08 && operation <= 0x0f) { /* const1u, const1s, const2u ... */
		const unsigned int size = 1U << (operation - 8) / 2;

		push(m, operation & 1 ? get_signed(c, size) : get(c, size));
		return;
	}
	switch (operation) {
	case 0x06: /* deref */
		push(m, load(pop(m), &m->bad));
		return;
	case 0x10: /* constu, consts */
		push(m, uleb(c));
		return;
	case 0x11:
		push(m, sleb(c));
		return;
	case 0x12: /* dup */
		a = pop(m);
		push(m, a);
		push(m, a);
		return;
	case 0x13: /* drop */
		pop(m);
		return;
	case 0x23: /* plus_uconst */
		push(m, pop(m) + uleb(c));
		return;
	case 0x92: /* bregx */
		a = uleb(c);
		push_register(m, a < CFI_REGISTERS ? (unsigned int)a : CFI_REGISTERS, sleb(c));
		return;
	case 0x96: /* nop */
		return;
	}
	a = pop(m);
	push(m, binary(operation, pop(m), a, &m->bad));
}

/* The rules of registers begin with the frame's @end on the stack; its own has none. */
static uint64_t evaluate(const struct cfi_frame *frame, const struct cfi_rule *rule,
			 const uint64_t *end, bool *bad)
{
	struct machine m = {.frame = frame};
	uint8_t buffer[64];
	struct cursor c = {.at = buffer, .end = buffer + rule->length};
	uint64_t result;

	if (rule->length > sizeof(buffer) || copy_in(buffer, rule->value, rule->length)) {
		*bad = true;
		return 0;
	}
	if (end)
		push(&m, *end);
	while (c.at < c.end && !c.bad && !m.bad)
		operate(&m, &c, (uint8_t)get(&c, 1));
	result = pop(&m);
	*bad |= c.bad || m.bad;
	return result;
}

/* ---- programs ---- */

static const uint8_t numbers[CFI_RULES] = {CFI_RIP, CFI_RBP, CFI_RBX, 12, 13, 14, 15, CFI_RSP};

/* The place of a register's rule; -1: nobody needs it. */
static int rule_of(uint64_t number)
{
	for (int rule = 0; rule < CFI_RULES; rule++)
		if (numbers[rule] == number)
			return rule;
	return -1;
}

struct program {
	struct cfi_row row, first; /* as it is, and as the CIE's program left it */
	struct cfi_row kept[KEPT_MAX];
	unsigned int nr_kept;
	uint64_t code_unit, data_unit;
	uint64_t location, target; /* how far it has got, and how far it is to get */
};

static void set(struct program *p, uint64_t number, enum cfi_kind kind, uint64_t value)
{
	const int rule = rule_of(number);

	if (rule >= 0)
		p->row.of[rule] = (struct cfi_rule){.kind = (uint8_t)kind, .value = value};
}

static void restore(struct program *p, uint64_t number)
{
	const int rule = rule_of(number);

	if (rule >= 0)
		p->row.of[rule] = p->first.of[rule];
}

static struct cfi_rule get_expression(struct cursor *c, enum cfi_kind kind)
{
	const uint64_t length = uleb(c);
	const struct cfi_rule rule = {
		.kind = (uint8_t)kind,
		.value = address_at(c),
		.length = (uint16_t)length,
	};

	if (length > (uint64_t)(c->end - c->at) || length > UINT16_MAX)
		c->bad = true;
	else
		c->at += length;
	return rule;
}

static void set_expression(struct program *p, struct cursor *c, enum cfi_kind kind)
{
	const int rule = rule_of(uleb(c));
	const struct cfi_rule expression = get_expression(c, kind);

	if (rule >= 0)
		p->row.of[rule] = expression;
}

static void set_end(struct program *p, uint64_t number, uint64_t offset)
{
	p->row.end = (struct cfi_rule){
		.kind = CFI_REGISTER_OFFSET,
		.length = number < CFI_REGISTERS ? (uint16_t)number : CFI_REGISTERS,
		.value = offset,
	};
}

static void remember(struct program *p, struct cursor *c)
{
	if (p->nr_kept == KEPT_MAX)
		c->bad = true;
	else
		p->kept[p->nr_kept++] = p->row;
}

static void recall(struct program *p, struct cursor *c)
{
	if (!p->nr_kept)
		c->bad = true;
	else
		p->row = p->kept[--p->nr_kept];
}

static void advance(struct program *p, uint64_t units)
{
	p->location += units * p->code_unit;
}

/* DW_CFA_: those whose operand is not in the opcode. */
static void run_extended(struct program *p, struct cursor *c, uint8_t operation)
{
	uint64_t number;

	switch (operation) {
	case 0x00: /* nop */
		break;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		advance(p, get(c, 1U << (operation - 2)));
		break;
	case 0x05: /* offset_extended */
		number = uleb(c);
		set(p, number, CFI_AT, uleb(c) * p->data_unit);
		break;
	case 0x06: /* restore_extended */
		restore(p, uleb(c));
		break;
	case 0x07: /* undefined */
		set(p, uleb(c), CFI_UNDEFINED, 0);
		break;
	case 0x08: /* same_value */
		set(p, uleb(c), CFI_SAME, 0);
		break;
	case 0x09: /* register */
		number = uleb(c);
		set(p, number, CFI_IN, uleb(c));
		break;
	case 0x0a: /* remember_state */
		remember(p, c);
		break;
	case 0x0b: /* restore_state */
		recall(p, c);
		break;
	case 0x0c: /* def_cfa */
		number = uleb(c);
		set_end(p, number, uleb(c));
		break;
	case 0x0d: /* def_cfa_register */
		set_end(p, uleb(c), p->row.end.value);
		break;
	case 0x0e: /* def_cfa_offset */
		p->row.end.value = uleb(c);
		break;
	case 0x0f: /* def_cfa_expression */
		p->row.end = get_expression(c, CFI_IS_EXPRESSION);
		break;
	case 0x10: /* expression */
		set_expression(p, c, CFI_AT_EXPRESSION);
		break;
	case 0x11: /* offset_extended_sf */
		number = uleb(c);
		set(p, number, CFI_AT, sleb(c) * p->data_unit);
		break;
	case 0x12: /* def_cfa_sf */
		number = uleb(c);
		set_end(p, number, sleb(c) * p->data_unit);
		break;
	case 0x13: /* def_cfa_offset_sf */
		p->row.end.value = sleb(c) * p->data_unit;
		break;
	case 0x14: /* val_offset */
		number = uleb(c);
		set(p, number, CFI_IS, uleb(c) * p->data_unit);
		break;
	case 0x16: /* val_expression */
		set_expression(p, c, CFI_IS_EXPRESSION);
		break;
	case 0x2e: /* GNU_args_size */
		uleb(c);
		break;
	default:
		c->bad = true;
	}
}

/* False if it cannot be run as far as the place. */
static bool run(struct program *p, struct cursor *c)
{
	enum { ADVANCE = 1, OFFSET, RESTORE };

	while (c->at < c->end && !c->bad && p->location <= p->target) {
		const uint8_t byte = (uint8_t)get(c, 1), operand = byte & 0x3f;

		switch (byte >> 6) {
		case ADVANCE:
			advance(p, operand);
			break;
		case OFFSET:
			set(p, operand, CFI_AT, uleb(c) * p->data_unit);
			break;
		case RESTORE:
			restore(p, operand);
			break;
		default:
			run_extended(p, c, byte);
		}
	}
	return !c->bad && !(c->cut && p->location <= p->target);
}

/* ---- entries ---- */

struct cie {
	bool signal, sized;
	uint8_t encoding; /* of the addresses of its FDEs */
};

/* What "zPLR" and the like announce. */
static void read_augmentation(struct cursor *c, const char *augmentation, struct cie *cie)
{
	uint8_t encoding;

	for (; *augmentation; augmentation++) {
		switch (*augmentation) {
		case 'R':
			cie->encoding = (uint8_t)get(c, 1);
			break;
		case 'P':
			encoding = (uint8_t)get(c, 1);
			get(c, encoded_size(encoding));
			break;
		case 'L':
			get(c, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		default:
			return; /* whose size is not known: but what it is about comes behind */
		}
	}
}

static bool run_cie(struct program *p, uint64_t address, struct cie *cie)
{
	uint8_t buffer[CIE_MAX];
	char augmentation[8];
	struct cursor c;
	unsigned int n = 0;
	uint64_t size;

	if (!read_entry(&c, address, buffer, sizeof(buffer)) || get(&c, 4))
		return false;
	const uint64_t version = get(&c, 1);

	do {
		augmentation[n] = (char)get(&c, 1);
	} while (augmentation[n] && ++n < sizeof(augmentation));
	if (n == sizeof(augmentation) || (version != 1 && version != 3))
		return false;
	p->code_unit = uleb(&c);
	p->data_unit = sleb(&c);
	if ((version == 1 ? get(&c, 1) : uleb(&c)) != CFI_RIP)
		return false;
	cie->sized = augmentation[0] == 'z';
	if (cie->sized) {
		size = uleb(&c);
		if (size > (uint64_t)(c.end - c.at))
			return false;
		struct cursor data = {
			.at = c.at,
			.end = c.at + size,
			.address = address_at(&c) + size,
		};

		read_augmentation(&data, augmentation + 1, cie);
		c.at += size;
	}
	return run(p, &c);
}

static bool run_fde(uint64_t address, uint64_t pc, struct cfi_row *row)
{
	struct program p = {.target = UINT64_MAX};
	struct cie cie = {.encoding = 0};
	uint8_t buffer[FDE_MAX];
	struct cursor c;
	uint64_t back, first, size;

	if (!read_entry(&c, address, buffer, sizeof(buffer)))
		return false;
	back = address_at(&c);
	back -= get(&c, 4);
	if (!run_cie(&p, back, &cie))
		return false;
	first = encoded(&c, cie.encoding, true);
	size = encoded(&c, cie.encoding & ~ENCODED_SIGNED, false);
	if (c.bad || pc - first >= size)
		return false;
	if (cie.sized) {
		size = uleb(&c);
		if (size > (uint64_t)(c.end - c.at))
			return false;
		c.at += size;
	}
	p.first = p.row;
	p.location = first;
	p.target = pc;
	if (!run(&p, &c))
		return false;
	*row = p.row;
	row->signal = cie.signal;
	return true;
}

/* ---- the table ---- */

bool cfi_table_at(struct cfi_table *table, uint64_t header)
{
	uint8_t bytes[12];

	if (copy_in(bytes, header, sizeof(bytes)) || bytes[0] != 1 || bytes[1] != RELATIVE_4 ||
	    bytes[2] != 3 || bytes[3] != OFFSETS_4)
		return false;
	table->header = header;
	memcpy(&table->nr, bytes + 8, sizeof(table->nr));
	return table->nr;
}

struct place {
	int32_t function, fde; /* from the header */
};

static bool read_place(const struct cfi_table *table, uint32_t number, struct place *place)
{
	return !copy_in(place, table->header + 12 + number * sizeof(*place), sizeof(*place));
}

bool cfi_find(const struct cfi_table *table, const struct cfi_frame *frame, struct cfi_row *row)
{
	const uint64_t pc = frame->reg[CFI_RIP] - frame->called;
	const int64_t wanted = (int64_t)(pc - table->header);
	uint32_t low = 0, high = table->nr;
	struct place place;

	while (low < high) { /* the last one that is not behind it */
		const uint32_t middle = low + (high - low) / 2;

		if (!read_place(table, middle, &place))
			return false;
		if (place.function <= wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low && read_place(table, low - 1, &place) &&
	       run_fde(table->header + (uint64_t)(int64_t)place.fde, pc, row);
}

/* ---- the caller ---- */

static uint64_t end_of(const struct cfi_row *row, const struct cfi_frame *frame, bool *bad)
{
	if (row->end.kind == CFI_IS_EXPRESSION)
		return evaluate(frame, &row->end, NULL, bad);
	if (row->end.kind == CFI_REGISTER_OFFSET && row->end.length < CFI_REGISTERS)
		return frame->reg[row->end.length] + row->end.value;
	*bad = true;
	return 0;
}

static uint64_t value_of(const struct cfi_rule *rule, unsigned int number,
			 const struct cfi_frame *frame, uint64_t end, bool *bad)
{
	switch (rule->kind) {
	case CFI_SAME:
		return number == CFI_RSP ? end : frame->reg[number];
	case CFI_AT:
		return load(end + rule->value, bad);
	case CFI_IS:
		return end + rule->value;
	case CFI_IN:
		if (rule->value < CFI_REGISTERS)
			return frame->reg[rule->value];
		break;
	case CFI_AT_EXPRESSION:
		return load(evaluate(frame, rule, &end, bad), bad);
	case CFI_IS_EXPRESSION:
		return evaluate(frame, rule, &end, bad);
	}
	if (rule->kind != CFI_UNDEFINED || number == CFI_RIP)
		*bad = true;
	return 0;
}

bool cfi_apply(const struct cfi_row *row, struct cfi_frame *frame)
{
	struct cfi_frame caller = *frame;
	bool bad = false;
	const uint64_t end = end_of(row, frame, &bad);

	/* Only a handler may have a stack of its own. */
	if (bad || (!row->signal && end <= frame->reg[CFI_RSP]))
		return false;
	for (unsigned int i = 0; i < CFI_RULES; i++)
		caller.reg[numbers[i]] = value_of(&row->of[i], numbers[i], frame, end, &bad);
	caller.called = !row->signal;
	if (bad || !caller.reg[CFI_RIP])
		return false;
	*frame = caller;
	return true;
}
