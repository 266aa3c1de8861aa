// SPDX-License-Identifier: MIT
/*
 *	.eh_frame_hdr	| 1 | encodings: 3 bytes | .eh_frame, 4 | number, 4 | { function, FDE } ... |
 *	FDE		| length, 4 | back to the CIE, 4 | first, size of the function | ... | program |
 *	CIE		| length, 4 | 0, 4 | version | augmentation | alignments | ... | program |
 *
 * Both programs are run up to the place at hand; what they leave is the row. Encodings other than
 * those that linkers write, relative to where they stand, are not read.
 */
#include "runtime/linux/cfi.h"

#include <dwarf.h>

#include "runtime/linux/cfi_read.h"
#include "runtime/linux/copy.h"
#include "runtime/string.h"

enum {
	FDE_MAX = 2048, /* of a longer one as much is there */
	CIE_MAX = 160,
	KEPT_MAX = 8, /* rows that a program remembers */
};

/* ---- reading ---- */

enum {
	RELATIVE_4 = DW_EH_PE_pcrel | DW_EH_PE_sdata4,
	OFFSETS_4 = DW_EH_PE_datarel | DW_EH_PE_sdata4,
};

static unsigned int encoded_size(uint8_t encoding)
{
	static const uint8_t sizes[] = {8, 0, 2, 4, 8, 0, 0, 0};

	return sizes[encoding & 7];
}

/* A pointer; of sizes and the like @relative is false. */
static uint64_t encoded(struct cursor *c, uint8_t encoding, bool relative)
{
	const unsigned int size = encoded_size(encoding);
	const uint64_t place = cursor_address(c);
	uint64_t value;

	if (!size || (encoding & 0xf0) > DW_EH_PE_pcrel) {
		c->bad = true;
		return 0;
	}
	value = encoding & DW_EH_PE_signed ? cursor_signed(c, size) : cursor_get(c, size);
	return relative && encoding & DW_EH_PE_pcrel ? value + place : value;
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

/* ---- programs ---- */

const uint8_t cfi_numbers[CFI_RULES] = {CFI_RIP, CFI_RBP, CFI_RBX, 12, 13, 14, 15, CFI_RSP};

/* The place of a register's rule; -1: nobody needs it. */
static int rule_of(uint64_t number)
{
	for (int rule = 0; rule < CFI_RULES; rule++)
		if (cfi_numbers[rule] == number)
			return rule;
	return -1;
}

struct program {
	struct cfi_row row;
	const struct cfi_row *begun; /* as the CIE's program left it */
	struct cfi_row kept[KEPT_MAX];
	unsigned int nr_kept;
	uint64_t code_unit, data_unit;
	uint64_t location, target; /* how far it has got, and how far it is to get */
	uint64_t first;		   /* what it has said is true from there on */
};

static void begin(struct program *p, uint64_t location, uint64_t target,
		  const struct cfi_common *cie, const struct cfi_row *row)
{
	p->row = *row;
	p->begun = row;
	p->nr_kept = 0;
	p->code_unit = cie->code_unit;
	p->data_unit = cie->data_unit;
	p->location = p->first = location;
	p->target = target;
}

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
		p->row.of[rule] = p->begun->of[rule];
}

static struct cfi_rule get_expression(struct cursor *c, enum cfi_kind kind)
{
	const uint64_t length = cursor_uleb(c);
	const struct cfi_rule rule = {
		.kind = (uint8_t)kind,
		.value = cursor_address(c),
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
	const int rule = rule_of(cursor_uleb(c));
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
	if (p->location <= p->target)
		p->first = p->location;
}

/* What says where the frame ends; false: it is none of that. */
static bool run_end(struct program *p, struct cursor *c, uint8_t operation)
{
	uint64_t number;

	switch (operation) {
	case DW_CFA_def_cfa:
		number = cursor_uleb(c);
		set_end(p, number, cursor_uleb(c));
		return true;
	case DW_CFA_def_cfa_sf:
		number = cursor_uleb(c);
		set_end(p, number, cursor_sleb(c) * p->data_unit);
		return true;
	case DW_CFA_def_cfa_register:
		set_end(p, cursor_uleb(c), p->row.end.value);
		return true;
	case DW_CFA_def_cfa_offset:
		p->row.end.value = cursor_uleb(c);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		p->row.end.value = cursor_sleb(c) * p->data_unit;
		return true;
	case DW_CFA_def_cfa_expression:
		p->row.end = get_expression(c, CFI_IS_EXPRESSION);
		return true;
	}
	return false;
}

/* What says where a register is; false: it is none of that. */
static bool run_register(struct program *p, struct cursor *c, uint8_t operation)
{
	uint64_t number;

	switch (operation) {
	case DW_CFA_offset_extended:
		number = cursor_uleb(c);
		set(p, number, CFI_AT, cursor_uleb(c) * p->data_unit);
		return true;
	case DW_CFA_offset_extended_sf:
		number = cursor_uleb(c);
		set(p, number, CFI_AT, cursor_sleb(c) * p->data_unit);
		return true;
	case DW_CFA_val_offset:
		number = cursor_uleb(c);
		set(p, number, CFI_IS, cursor_uleb(c) * p->data_unit);
		return true;
	case DW_CFA_register:
		number = cursor_uleb(c);
		set(p, number, CFI_IN, cursor_uleb(c));
		return true;
	case DW_CFA_restore_extended:
		restore(p, cursor_uleb(c));
		return true;
	case DW_CFA_undefined:
		set(p, cursor_uleb(c), CFI_UNDEFINED, 0);
		return true;
	case DW_CFA_same_value:
		set(p, cursor_uleb(c), CFI_SAME, 0);
		return true;
	case DW_CFA_expression:
		set_expression(p, c, CFI_AT_EXPRESSION);
		return true;
	case DW_CFA_val_expression:
		set_expression(p, c, CFI_IS_EXPRESSION);
		return true;
	}
	return false;
}

/* Those whose operand is not in the opcode. */
static void run_extended(struct program *p, struct cursor *c, uint8_t operation)
{
	switch (operation) {
	case DW_CFA_nop:
		break;
	case DW_CFA_advance_loc1:
		advance(p, cursor_get(c, 1));
		break;
	case DW_CFA_advance_loc2:
		advance(p, cursor_get(c, 2));
		break;
	case DW_CFA_advance_loc4:
		advance(p, cursor_get(c, 4));
		break;
	case DW_CFA_remember_state:
		remember(p, c);
		break;
	case DW_CFA_restore_state:
		recall(p, c);
		break;
	case DW_CFA_GNU_args_size:
		cursor_uleb(c);
		break;
	default:
		if (!run_end(p, c, operation) && !run_register(p, c, operation))
			c->bad = true;
	}
}

/* False if it cannot be run as far as the place. */
static bool run(struct program *p, struct cursor *c)
{
	while (c->at < c->end && !c->bad && p->location <= p->target) {
		const uint8_t byte = (uint8_t)cursor_get(c, 1), operand = byte & 0x3f;

		switch (byte & ~0x3f) {
		case DW_CFA_advance_loc:
			advance(p, operand);
			break;
		case DW_CFA_offset:
			set(p, operand, CFI_AT, cursor_uleb(c) * p->data_unit);
			break;
		case DW_CFA_restore:
			restore(p, operand);
			break;
		default:
			run_extended(p, c, byte);
		}
	}
	return !c->bad && !(c->cut && p->location <= p->target);
}

/* ---- entries ---- */

/* What "zPLR" and the like announce. */
static void read_augmentation(struct cursor *c, const char *augmentation, struct cfi_common *cie)
{
	uint8_t encoding;

	for (; *augmentation; augmentation++) {
		switch (*augmentation) {
		case 'R':
			cie->encoding = (uint8_t)cursor_get(c, 1);
			break;
		case 'P':
			encoding = (uint8_t)cursor_get(c, 1);
			cursor_get(c, encoded_size(encoding));
			break;
		case 'L':
			cursor_get(c, 1);
			break;
		case 'S':
			cie->row.signal = true;
			break;
		default:
			return; /* whose size is not known: but what it is about comes behind */
		}
	}
}

static bool run_cie(struct cfi_common *cie, uint64_t address)
{
	static const struct cfi_row nothing;
	uint8_t buffer[CIE_MAX];
	char augmentation[8];
	struct program p;
	struct cursor c;
	unsigned int n = 0;
	uint64_t size;

	if (!read_entry(&c, address, buffer, sizeof(buffer)) || cursor_get(&c, 4))
		return false;
	const uint64_t version = cursor_get(&c, 1);

	do {
		augmentation[n] = (char)cursor_get(&c, 1);
	} while (augmentation[n] && ++n < sizeof(augmentation));
	if (n == sizeof(augmentation) || (version != 1 && version != 3))
		return false;
	cie->code_unit = cursor_uleb(&c);
	cie->data_unit = cursor_sleb(&c);
	if ((version == 1 ? cursor_get(&c, 1) : cursor_uleb(&c)) != CFI_RIP)
		return false;
	cie->sized = augmentation[0] == 'z';
	if (cie->sized) {
		size = cursor_uleb(&c);
		if (size > (uint64_t)(c.end - c.at))
			return false;
		struct cursor data = {
			.at = c.at,
			.end = c.at + size,
			.address = cursor_address(&c) + size,
		};

		read_augmentation(&data, augmentation + 1, cie);
		c.at += size;
	}
	begin(&p, 0, UINT64_MAX, cie, &nothing);
	if (!run(&p, &c))
		return false;
	p.row.signal = cie->row.signal;
	cie->row = p.row;
	return true;
}

static const struct cfi_common *common_at(struct cfi_table *table, uint64_t address)
{
	struct cfi_common *common = &table->common;

	if (common->address == address)
		return common;
	*common = (struct cfi_common){0};
	if (!run_cie(common, address))
		return NULL;
	common->address = address;
	return common;
}

/* What an entry says of a function, and where it goes on. */
struct fde {
	const struct cfi_common *cie;
	uint64_t first, size;
	struct cursor rest;
};

static bool read_fde(struct cfi_table *table, uint64_t address, uint8_t *buffer, size_t size,
		     struct fde *fde)
{
	struct cursor *c = &fde->rest;
	uint64_t back;

	if (!read_entry(c, address, buffer, size))
		return false;
	back = cursor_address(c);
	back -= cursor_get(c, 4);
	fde->cie = common_at(table, back);
	if (!fde->cie)
		return false;
	fde->first = encoded(c, fde->cie->encoding, true);
	fde->size = encoded(c, fde->cie->encoding & ~DW_EH_PE_signed, false);
	return !c->bad;
}

bool cfi_first(struct cfi_table *table, uint64_t address, uint64_t *first)
{
	uint8_t buffer[4 + 2 * sizeof(uint64_t)];
	struct fde fde;

	if (!read_fde(table, address, buffer, sizeof(buffer), &fde) || !fde.size)
		return false;
	*first = fde.first;
	return true;
}

static bool run_fde(struct cfi_table *table, uint64_t address, uint64_t pc, struct cfi_row *row)
{
	struct program p;
	uint8_t buffer[FDE_MAX];
	struct fde fde;
	struct cursor *c = &fde.rest;
	uint64_t behind, size;

	if (!read_fde(table, address, buffer, sizeof(buffer), &fde) || pc - fde.first >= fde.size)
		return false;
	behind = fde.first + fde.size;
	if (fde.cie->sized) {
		size = cursor_uleb(c);
		if (size > (uint64_t)(c->end - c->at))
			return false;
		c->at += size;
	}
	begin(&p, fde.first, pc, fde.cie, &fde.cie->row);
	if (!run(&p, c))
		return false;
	*row = p.row;
	row->first = p.first;
	row->behind = p.location > pc && p.location < behind ? p.location : behind;
	return true;
}

/* ---- the table ---- */

bool cfi_table_at(struct cfi_table *table, uint64_t header)
{
	uint8_t bytes[12];

	/* cfi_table.c may have made it. */
	if (copy_from_any(bytes, header, sizeof(bytes)) || bytes[0] != 1 || bytes[1] != RELATIVE_4 ||
	    bytes[2] != DW_EH_PE_udata4 || bytes[3] != OFFSETS_4)
		return false;
	*table = (struct cfi_table){.base = header, .functions = header + sizeof(bytes)};
	memcpy(&table->nr, bytes + 8, sizeof(table->nr));
	return table->nr;
}

static bool read_function(const struct cfi_table *table, uint32_t number,
			  struct cfi_function *function)
{
	return !copy_from_any(function, table->functions + number * sizeof(*function),
			      sizeof(*function));
}

bool cfi_find(struct cfi_table *table, const struct cfi_frame *frame, struct cfi_row *row)
{
	const uint64_t pc = cfi_place(frame);
	const int64_t wanted = (int64_t)(pc - table->base);
	uint32_t low = 0, high = table->nr;
	struct cfi_function function;

	while (low < high) { /* the last one that is not behind it */
		const uint32_t middle = low + (high - low) / 2;

		if (!read_function(table, middle, &function))
			return false;
		if (function.first <= wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low && read_function(table, low - 1, &function) &&
	       run_fde(table, table->base + (uint64_t)(int64_t)function.entry, pc, row);
}
