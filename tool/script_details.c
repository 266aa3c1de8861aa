// SPDX-License-Identifier: MIT
/*
 * What a sample may have beside its address: registers, branches, how its data was reached, raw
 * bytes. As text in the shape of perf script, and as members of a JSON object.
 */
#include <ctype.h>
#include <string.h>

#include "tool/data_source.h"
#include "tool/registers.h"
#include "tool/script.h"

/* ---- weights ---- */

/* WEIGHT is a number; WEIGHT_STRUCT three in one word, each with a meaning of its own. */
static uint64_t weight_of(const struct tally_sample *sample)
{
	return sample->has & PERF_SAMPLE_WEIGHT_STRUCT ? (uint32_t)sample->weight : sample->weight;
}

static uint16_t instruction_latency(const struct tally_sample *sample)
{
	return sample->weight >> 32;
}

static uint16_t retire_latency(const struct tally_sample *sample)
{
	return sample->weight >> 48;
}

/* ---- registers ---- */

static void put_registers(struct script *script, const struct tally_regs *regs,
			  struct buffer *buffer)
{
	const char *arch = tally_perfdata_info(script->session->reader)->arch;
	char scratch[REGISTER_NAME_SIZE];
	uint64_t value;

	if (!regs->nr)
		return;
	buffer_text(buffer, " ABI:");
	buffer_decimal(buffer, regs->abi, 0, ' ');
	buffer_char(buffer, ' ');
	for (unsigned int i = 0; i < 64; i++) {
		if (!tally_regs_get(regs, i, &value))
			continue;
		buffer_field(buffer, register_name(arch, i, scratch), -5);
		buffer_text(buffer, ":0x");
		buffer_hex(buffer, value, 0, ' ');
		buffer_char(buffer, ' ');
	}
}

static void put_json_registers(struct script *script, const struct tally_regs *regs,
			       struct buffer *buffer)
{
	const char *arch = tally_perfdata_info(script->session->reader)->arch;
	char scratch[REGISTER_NAME_SIZE], last[REGISTER_NAME_SIZE] = "";
	uint64_t value;

	buffer_text(buffer, "{\"abi\": ");
	buffer_decimal(buffer, regs->abi, 0, ' ');
	for (unsigned int i = 0; i < 64; i++) {
		const char *name;

		if (!tally_regs_get(regs, i, &value))
			continue;
		name = register_name(arch, i, scratch);
		buffer_text(buffer, ", \"");
		buffer_text(buffer, name);
		/* The other half of a vector register. */
		if (!strcmp(name, last))
			buffer_text(buffer, "_high");
		buffer_text(buffer, "\": \"0x");
		buffer_hex(buffer, value, 0, ' ');
		buffer_char(buffer, '"');
		memcpy(last, name, strlen(name) + 1);
	}
	buffer_char(buffer, '}');
}

/* ---- branches ---- */

static const char *branch_type(const struct perf_branch_entry *entry)
{
	static const char *const types[16] = {
		"",	  "COND",      "UNCOND",   "IND",  "CALL", "IND_CALL", "RET",	"SYSCALL",
		"SYSRET", "COND_CALL", "COND_RET", "ERET", "IRQ",  "SERROR",   "NO_TX",
	};
	static const char *const new_types[16] = {
		"FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1",
		"ARCH_2",     "ARCH_3",	    "ARCH_4",	  "ARCH_5",
	};
	const char *name =
		entry->type == PERF_BR_EXTEND_ABI ? new_types[entry->new_type] : types[entry->type];

	return name ? name : "";
}

static struct perf_branch_entry branch_at(const struct tally_sample *sample, uint64_t index)
{
	struct perf_branch_entry entry;

	memcpy(&entry, sample->branches + index, sizeof(entry));
	return entry;
}

static const struct place *branch_place(struct script *script, const struct session_item *item,
					uint64_t address)
{
	struct places *places = script->session->places;
	/* A branch may cross between user and kernel: of each side its address tells. */
	uint16_t mode = address >> 63 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;

	return places_at(places, places_find(places, item->pid, item->space, item->time, mode,
					     address, false));
}

static void put_end(struct script *script, const struct session_item *item, uint64_t address,
		    unsigned int fields, struct buffer *buffer)
{
	const struct place *place = branch_place(script, item, address);

	if (!(fields & FIELD_BRSTACKSYM)) {
		buffer_text(buffer, "0x");
		buffer_hex(buffer, address, 0, ' ');
	} else if (place->at.symbol) {
		buffer_text(buffer, place->at.symbol->name);
		buffer_text(buffer, "+0x");
		buffer_hex(buffer, place->at.address - place->at.symbol->start, 0, ' ');
	} else {
		buffer_text(buffer, UNKNOWN);
	}
	if (fields & FIELD_DSO) {
		buffer_char(buffer, '(');
		buffer_text(buffer, place->at.dso ? tally_dso_name(place->at.dso) : UNKNOWN);
		buffer_char(buffer, ')');
	}
}

static void put_branches(struct script *script, const struct session_item *item,
			 unsigned int fields, struct buffer *buffer)
{
	const struct tally_sample *sample = &item->record->sample;

	for (uint64_t i = 0; i < sample->nr_branches; i++) {
		struct perf_branch_entry entry = branch_at(sample, i);

		if (!(fields & FIELD_BRSTACKSYM))
			buffer_char(buffer, ' ');
		put_end(script, item, entry.from, fields, buffer);
		buffer_char(buffer, '/');
		put_end(script, item, entry.to, fields, buffer);
		buffer_char(buffer, '/');
		buffer_char(buffer, entry.predicted ? 'P' : entry.mispred ? 'M' : '-');
		buffer_text(buffer, entry.in_tx ? "/X/" : "/-/");
		buffer_text(buffer, entry.abort ? "A/" : "-/");
		buffer_decimal(buffer, entry.cycles, 0, ' ');
		buffer_char(buffer, '/');
		buffer_text(buffer, branch_type(&entry));
		buffer_char(buffer, ' ');
	}
}

static void put_json_end(struct script *script, const struct session_item *item, const char *name,
			 uint64_t address, unsigned int fields, struct buffer *buffer)
{
	const struct place *place = branch_place(script, item, address);

	buffer_printf(buffer, "\"%s\": {\"ip\": \"0x", name);
	buffer_hex(buffer, address, 0, ' ');
	buffer_char(buffer, '"');
	if (fields & FIELD_BRSTACKSYM) {
		buffer_text(buffer, ", \"sym\": ");
		if (place->at.symbol)
			buffer_json(buffer, place->at.symbol->name);
		else
			buffer_text(buffer, "null");
	}
	if ((fields & FIELD_BRSTACKSYM) && place->at.symbol) {
		buffer_text(buffer, ", \"offset\": ");
		buffer_decimal(buffer, place->at.address - place->at.symbol->start, 0, ' ');
	}
	if (fields & FIELD_DSO) {
		buffer_text(buffer, ", \"dso\": ");
		if (place->at.dso)
			buffer_json(buffer, tally_dso_name(place->at.dso));
		else
			buffer_text(buffer, "null");
	}
	buffer_char(buffer, '}');
}

static void put_json_flag(const char *name, bool value, struct buffer *buffer)
{
	buffer_printf(buffer, ", \"%s\": %s", name, value ? "true" : "false");
}

static void put_json_branches(struct script *script, const struct session_item *item,
			      unsigned int fields, struct buffer *buffer)
{
	static const char *const speculation[4] = {
		[PERF_BR_SPEC_WRONG_PATH] = "wrong path",
		[PERF_BR_NON_SPEC_CORRECT_PATH] = "not speculative",
		[PERF_BR_SPEC_CORRECT_PATH] = "correct path",
	};
	const struct tally_sample *sample = &item->record->sample;

	buffer_char(buffer, '[');
	for (uint64_t i = 0; i < sample->nr_branches; i++) {
		struct perf_branch_entry entry = branch_at(sample, i);

		buffer_text(buffer, i ? ", {" : "{");
		put_json_end(script, item, "from", entry.from, fields, buffer);
		buffer_text(buffer, ", ");
		put_json_end(script, item, "to", entry.to, fields, buffer);
		/* Neither bit: the processor does not say. */
		if (entry.mispred || entry.predicted)
			put_json_flag("predicted", entry.predicted, buffer);
		put_json_flag("in_tx", entry.in_tx, buffer);
		put_json_flag("abort", entry.abort, buffer);
		buffer_text(buffer, ", \"cycles\": ");
		buffer_decimal(buffer, entry.cycles, 0, ' ');
		if (entry.type != PERF_BR_UNKNOWN)
			buffer_printf(buffer, ", \"type\": \"%s\"", branch_type(&entry));
		if (speculation[entry.spec])
			buffer_printf(buffer, ", \"speculation\": \"%s\"", speculation[entry.spec]);
		buffer_char(buffer, '}');
	}
	buffer_char(buffer, ']');
}

/* ---- raw bytes ---- */

/* The text that the bytes are, terminated and at most padded with zeros; NULL when they are none.
 */
static const char *text_of(const unsigned char *bytes, size_t size)
{
	size_t length = strnlen((const char *)bytes, size);

	if (length == size)
		return NULL;
	for (size_t i = 0; i < size; i++)
		if (i < length ? !isprint(bytes[i]) : bytes[i])
			return NULL;
	return (const char *)bytes;
}

static void put_bytes(const unsigned char *bytes, size_t size, struct buffer *buffer)
{
	enum { PER_LINE = 8 };

	buffer_char(buffer, '\n');
	for (size_t line = 0; line < size; line += PER_LINE) {
		buffer_field(buffer, line ? "" : "BPF output:", -17);
		buffer_char(buffer, ' ');
		buffer_hex(buffer, line, 4, '0');
		buffer_char(buffer, ':');
		for (size_t i = line; i < line + PER_LINE; i++) {
			if (i >= size) {
				buffer_text(buffer, "   ");
				continue;
			}
			buffer_char(buffer, ' ');
			buffer_hex(buffer, bytes[i], 2, '0');
		}
		buffer_text(buffer, "  ");
		for (size_t i = line; i < line + PER_LINE; i++)
			buffer_char(buffer, i >= size ? ' ' : isprint(bytes[i]) ? bytes[i] : '.');
		buffer_char(buffer, '\n');
	}
	if (text_of(bytes, size))
		buffer_printf(buffer, "%17s \"%s\"\n", "BPF string:", text_of(bytes, size));
}

static void put_json_bytes(const unsigned char *bytes, size_t size, struct buffer *buffer)
{
	buffer_char(buffer, '"');
	for (size_t i = 0; i < size; i++)
		buffer_hex(buffer, bytes[i], 2, '0');
	buffer_char(buffer, '"');
}

/* ---- all of them ---- */

static void put_page_size(uint64_t size, struct buffer *buffer)
{
	static const char units[] = "BKMGT";
	size_t unit = 0;

	buffer_char(buffer, ' ');
	if (!size) {
		buffer_text(buffer, "N/A");
		return;
	}
	for (; size >= 1024 && unit + 2 < sizeof(units); unit++)
		size /= 1024;
	buffer_decimal(buffer, size, 0, ' ');
	buffer_char(buffer, units[unit]);
}

static void put_data_source(struct script *script, uint64_t value, struct buffer *buffer)
{
	struct buffer text = {.fd = -1};

	data_source_text(value, &text);
	/* The widest so far decides, so that the columns behind it line up. */
	if (text.size > script->data_source_width)
		script->data_source_width = text.size;
	buffer_hex(buffer, value, 16, ' ');
	buffer_char(buffer, ' ');
	buffer_bytes(buffer, text.data, text.size);
	buffer_repeat(buffer, ' ', script->data_source_width - text.size);
	buffer_free(&text);
}

void script_text_before_stack(struct script *script, const struct session_item *item,
			      unsigned int fields, struct buffer *buffer)
{
	const struct tally_sample *sample = &item->record->sample;

	if (fields & FIELD_DATA_SRC)
		put_data_source(script, sample->data_src, buffer);
	if (fields & FIELD_WEIGHT)
		buffer_decimal(buffer, weight_of(sample), 16, ' ');
	if (fields & FIELD_INS_LAT)
		buffer_decimal(buffer, instruction_latency(sample), 16, ' ');
	if (fields & FIELD_RETIRE_LAT)
		buffer_decimal(buffer, retire_latency(sample), 16, ' ');
	if (fields & FIELD_TRANSACTION)
		buffer_hex(buffer, sample->transaction, 16, ' ');
	if (fields & FIELD_CGROUP) {
		buffer_char(buffer, ' ');
		buffer_text(buffer, cgroups_path(script->session->cgroups, sample->cgroup));
	}
}

void script_text_after_stack(struct script *script, const struct session_item *item,
			     unsigned int fields, struct buffer *buffer)
{
	const struct tally_sample *sample = &item->record->sample;

	if (fields & FIELD_IREGS)
		put_registers(script, &sample->regs_intr, buffer);
	if (fields & FIELD_UREGS)
		put_registers(script, &sample->regs_user, buffer);
	if (fields & (FIELD_BRSTACK | FIELD_BRSTACKSYM))
		put_branches(script, item, fields, buffer);
	if (fields & FIELD_BPF_OUTPUT)
		put_bytes(sample->raw, sample->raw_size, buffer);
	if (fields & FIELD_PHYS_ADDR)
		buffer_hex(buffer, sample->phys_addr, 16, ' ');
	if (fields & FIELD_DATA_PAGE_SIZE)
		put_page_size(sample->data_page_size, buffer);
	if (fields & FIELD_CODE_PAGE_SIZE)
		put_page_size(sample->code_page_size, buffer);
}

static void put_json_number(const char *name, uint64_t value, struct buffer *buffer)
{
	buffer_printf(buffer, ", \"%s\": ", name);
	buffer_decimal(buffer, value, 0, ' ');
}

static void put_json_hex(const char *name, uint64_t value, struct buffer *buffer)
{
	buffer_printf(buffer, ", \"%s\": \"0x", name);
	buffer_hex(buffer, value, 0, ' ');
	buffer_char(buffer, '"');
}

static void put_json_data_source(uint64_t value, struct buffer *buffer)
{
	buffer_text(buffer, ", \"data_src\": {\"value\": \"0x");
	buffer_hex(buffer, value, 0, ' ');
	buffer_char(buffer, '"');
	for (enum data_source_part part = 0; part < NR_DATA_SOURCE_PARTS; part++) {
		buffer_printf(buffer, ", \"%s\": \"", data_source_name(part));
		data_source_words(value, part, buffer);
		buffer_char(buffer, '"');
	}
	buffer_char(buffer, '}');
}

void script_json_details(struct script *script, const struct session_item *item,
			 unsigned int fields, struct buffer *buffer)
{
	const struct tally_sample *sample = &item->record->sample;

	if (fields & FIELD_DATA_SRC)
		put_json_data_source(sample->data_src, buffer);
	if (fields & FIELD_WEIGHT)
		put_json_number("weight", weight_of(sample), buffer);
	if (fields & FIELD_INS_LAT)
		put_json_number("ins_lat", instruction_latency(sample), buffer);
	if (fields & FIELD_RETIRE_LAT)
		put_json_number("retire_lat", retire_latency(sample), buffer);
	if (fields & FIELD_TRANSACTION)
		put_json_hex("transaction", sample->transaction, buffer);
	if (fields & FIELD_CGROUP) {
		put_json_number("cgroup_id", sample->cgroup, buffer);
		buffer_text(buffer, ", \"cgroup\": ");
		buffer_json(buffer, cgroups_path(script->session->cgroups, sample->cgroup));
	}
	if (fields & FIELD_PHYS_ADDR)
		put_json_hex("phys_addr", sample->phys_addr, buffer);
	if (fields & FIELD_DATA_PAGE_SIZE)
		put_json_number("data_page_size", sample->data_page_size, buffer);
	if (fields & FIELD_CODE_PAGE_SIZE)
		put_json_number("code_page_size", sample->code_page_size, buffer);
	if ((fields & FIELD_IREGS) && sample->regs_intr.nr) {
		buffer_text(buffer, ", \"iregs\": ");
		put_json_registers(script, &sample->regs_intr, buffer);
	}
	if ((fields & FIELD_UREGS) && sample->regs_user.nr) {
		buffer_text(buffer, ", \"uregs\": ");
		put_json_registers(script, &sample->regs_user, buffer);
	}
	if (fields & (FIELD_BRSTACK | FIELD_BRSTACKSYM)) {
		buffer_text(buffer, ", \"branches\": ");
		put_json_branches(script, item, fields, buffer);
	}
	if (fields & FIELD_BPF_OUTPUT) {
		buffer_text(buffer, ", \"raw\": ");
		put_json_bytes(sample->raw, sample->raw_size, buffer);
	}
}
