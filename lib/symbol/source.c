// SPDX-License-Identifier: MIT
/*
 * An index in two steps, so that an address costs two binary searches and a report waits only for
 * what it asks: which compilation unit an address is in, read for all units from their first entry
 * alone; and of a unit that is asked for, its lines and functions.
 *
 * Units stay until all of them together take more than a limit; then all are dropped and come back
 * as they are asked for. Names that were handed out are in the string pool and stay.
 */
#include "lib/symbol/source.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/symbol/dso.h"

/* What libdw keeps for a line; an estimate that only the limit needs. */
#define LINE_BYTES 56

/* How far back a search goes for a range that overlaps the ones after it. */
#define OVERLAPS 8

struct unit {
	Dwarf_Off die; /* of its first entry */
	bool read;
	Dwarf_Lines *lines; /* belong to libdw */
	size_t nr_lines;
	Dwarf_Files *files;
	size_t nr_files;
	Dwarf *dwarf; /* that the scopes' entries are of */
	struct tly_scopes scopes;
};

struct unit_range {
	uint64_t low, high;
	size_t unit;
};

struct tly_source {
	struct tly_elf file;
	Dwarf *dwarf; /* NULL: no debug information */
	struct unit *units;
	size_t nr_units, size_units;
	struct unit_range *ranges; /* sorted by low */
	size_t nr_ranges, size_ranges;
	size_t bytes; /* of the units that are read */
};

static void drop_units(struct tly_source *source)
{
	for (size_t i = 0; i < source->nr_units; i++) {
		struct unit *unit = &source->units[i];

		tly_scopes_free(&unit->scopes);
		*unit = (struct unit){.die = unit->die};
	}
	source->bytes = 0;
}

void tly_source_free(struct tly_source *source)
{
	if (!source)
		return;
	drop_units(source);
	if (source->dwarf)
		dwarf_end(source->dwarf);
	tly_elf_close(&source->file);
	free(source->units);
	free(source->ranges);
	free(source);
}

/* Frees what libdw has read, too. */
static void reset(struct tly_source *source)
{
	if (!source->dwarf || !source->bytes)
		return;
	drop_units(source);
	dwarf_end(source->dwarf);
	source->dwarf = dwarf_begin_elf(source->file.elf, DWARF_C_READ, NULL);
}

static void keep_to_the_limit(struct tally_symbols *symbols)
{
	size_t bytes = 0;

	for (size_t i = 0; i < symbols->size; i++) {
		for (struct tally_dso *dso = symbols->table[i]; dso; dso = dso->next)
			bytes += dso->source ? dso->source->bytes : 0;
	}
	if (bytes <= symbols->source_limit)
		return;
	for (size_t i = 0; i < symbols->size; i++) {
		for (struct tally_dso *dso = symbols->table[i]; dso; dso = dso->next) {
			if (dso->source)
				reset(dso->source);
		}
	}
}

static int add_range(struct tly_source *source, uint64_t low, uint64_t high, size_t unit)
{
	if (!low || low >= high)
		return 0;
	if (source->nr_ranges == source->size_ranges) {
		size_t size = source->size_ranges ? source->size_ranges * 2 : 64;
		struct unit_range *ranges = reallocarray(source->ranges, size, sizeof(*ranges));

		if (!ranges)
			return -ENOMEM;
		source->ranges = ranges;
		source->size_ranges = size;
	}
	source->ranges[source->nr_ranges++] = (struct unit_range){low, high, unit};
	return 0;
}

static int add_unit(struct tly_source *source, Dwarf_Die *die)
{
	if (source->nr_units == source->size_units) {
		size_t size = source->size_units ? source->size_units * 2 : 64;
		struct unit *units = reallocarray(source->units, size, sizeof(*units));

		if (!units)
			return -ENOMEM;
		source->units = units;
		source->size_units = size;
	}
	source->units[source->nr_units++] = (struct unit){.die = dwarf_dieoffset(die)};
	return 0;
}

static int read_unit(struct tly_source *source, struct unit *unit)
{
	Dwarf_Die die, split;
	uint8_t type;
	int ret;

	unit->read = true;
	if (!dwarf_offdie(source->dwarf, unit->die, &die))
		return 0;
	if (dwarf_getsrclines(&die, &unit->lines, &unit->nr_lines))
		unit->nr_lines = 0;
	/* The functions of a split unit are in a file of their own, which may be gone. */
	if (!dwarf_cu_info(die.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) &&
	    type == DW_UT_skeleton) {
		if (!split.addr)
			return 0;
		die = split;
	}
	if (dwarf_getsrcfiles(&die, &unit->files, &unit->nr_files))
		unit->nr_files = 0;
	unit->dwarf = dwarf_cu_getdwarf(die.cu);
	ret = tly_scopes_read(&unit->scopes, &die);
	source->bytes += unit->nr_lines * LINE_BYTES +
			 unit->scopes.size_scopes * sizeof(*unit->scopes.scopes) +
			 unit->scopes.size_spans * sizeof(*unit->scopes.spans) + sizeof(*unit);
	return ret;
}

/* The ranges of a unit that does not say: those of its functions. */
static int add_function_ranges(struct tly_source *source, size_t index)
{
	struct unit *unit = &source->units[index];
	int ret = read_unit(source, unit);

	for (size_t i = 0; i < unit->scopes.nr_spans && !ret; i++) {
		const struct tly_span *span = &unit->scopes.spans[i];

		if (span->outer == TLY_NO_SCOPE)
			ret = add_range(source, span->low, span->high, index);
	}
	return ret;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct unit_range *left = a, *right = b;

	return (left->low > right->low) - (left->low < right->low);
}

static int index_units(struct tly_source *source)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;
	int ret;

	while (!dwarf_get_units(source->dwarf, unit, &unit, NULL, &type, &die, NULL)) {
		size_t before = source->nr_ranges;
		Dwarf_Addr base, low, high;
		ptrdiff_t at = 0;

		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		ret = add_unit(source, &die);
		while (!ret && (at = dwarf_ranges(&die, at, &base, &low, &high)) > 0)
			ret = add_range(source, low, high, source->nr_units - 1);
		if (!ret && source->nr_ranges == before && !dwarf_hasattr(&die, DW_AT_ranges))
			ret = add_function_ranges(source, source->nr_units - 1);
		if (ret)
			return ret;
	}
	if (source->nr_ranges)
		qsort(source->ranges, source->nr_ranges, sizeof(*source->ranges), compare_ranges);
	return 0;
}

static bool has_debug_info(const struct tly_elf *file)
{
	GElf_Shdr header;

	return tly_elf_section(file->elf, ".debug_info", &header) ||
	       tly_elf_section(file->elf, ".zdebug_info", &header);
}

/* Opens the file, or the one that its debug information was moved to. */
static int open_debug_info(struct tally_dso *dso, struct tly_elf *file)
{
	char *path = NULL;
	int ret;

	if (!dso->path)
		return -ENOENT;
	ret = tly_elf_open(file, dso->path, true);
	if (ret || has_debug_info(file))
		return ret;
	if (!dso->debug_path) {
		path = tly_debug_file(dso, file->elf);
		if (path)
			dso->debug_path = tly_strings_intern(&dso->owner->strings, path);
		free(path);
	}
	tly_elf_close(file);
	if (!dso->debug_path)
		return -ENOENT;
	ret = tly_elf_open(file, dso->debug_path, true);
	if (!ret && !has_debug_info(file)) {
		tly_elf_close(file);
		ret = -ENOENT;
	}
	return ret;
}

static struct tly_source *open_source(struct tally_dso *dso)
{
	struct tly_source *source = calloc(1, sizeof(*source));

	if (!source)
		return NULL;
	source->file.fd = -1;
	if (open_debug_info(dso, &source->file))
		return source;
	source->dwarf = dwarf_begin_elf(source->file.elf, DWARF_C_READ, NULL);
	if (source->dwarf && index_units(source)) {
		tly_source_free(source);
		return NULL;
	}
	return source;
}

static struct unit *find_unit(struct tly_source *source, uint64_t address)
{
	size_t low = 0, nr = source->nr_ranges;

	while (nr) {
		size_t half = nr / 2;

		if (source->ranges[low + half].low <= address) {
			low += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	for (size_t i = 0; i < OVERLAPS && low; i++) {
		low--;
		if (address < source->ranges[low].high)
			return &source->units[source->ranges[low].unit];
	}
	return NULL;
}

/* The row that covers @address: the last at or below it, unless that ends a sequence. */
static Dwarf_Line *find_line(const struct unit *unit, uint64_t address)
{
	size_t low = 0, nr = unit->nr_lines;
	Dwarf_Addr at;
	Dwarf_Line *line;
	bool end;

	while (nr) {
		size_t half = nr / 2;

		line = dwarf_onesrcline(unit->lines, low + half);
		if (!line || dwarf_lineaddr(line, &at))
			return NULL;
		if (at <= address) {
			low += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	line = low ? dwarf_onesrcline(unit->lines, low - 1) : NULL;
	return line && !dwarf_lineendsequence(line, &end) && !end ? line : NULL;
}

static const char *string_attribute(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static const char *scope_name(struct tally_dso *dso, const struct unit *unit,
			      struct tly_scope *scope)
{
	struct tly_strings *strings = &dso->owner->strings;
	const char *name;
	char *readable;
	Dwarf_Die die;

	if (scope->named)
		return scope->name;
	scope->named = true;
	if (!dwarf_offdie(unit->dwarf, scope->die, &die))
		return NULL;
	name = string_attribute(&die, DW_AT_linkage_name);
	if (!name)
		name = string_attribute(&die, DW_AT_MIPS_linkage_name);
	if (!name)
		name = string_attribute(&die, DW_AT_name);
	if (!name)
		return NULL;
	readable = dso->owner->options.no_demangle ? NULL : tly_demangle(name);
	scope->name = tly_strings_intern(strings, readable ? readable : name);
	free(readable);
	return scope->name;
}

static const char *file_name(struct tally_dso *dso, const char *name)
{
	return name ? tly_strings_intern(&dso->owner->strings, name) : NULL;
}

static void set_line(struct tally_dso *dso, struct tally_source_frame *frame, Dwarf_Line *line)
{
	int number;

	frame->file = file_name(dso, dwarf_linesrc(line, NULL, NULL));
	if (!dwarf_lineno(line, &number) && number > 0)
		frame->line = number;
}

static size_t fill_frames(struct tally_dso *dso, struct unit *unit, uint64_t address,
			  struct tally_source_frame *frames, size_t max)
{
	struct tly_scope *scope = tly_scopes_find(&unit->scopes, address);
	Dwarf_Line *line = find_line(unit, address);
	struct tally_source_frame frame = {0};
	const struct tally_symbol *symbol;
	size_t nr = 0;

	if (!scope && !line)
		return 0;
	if (line)
		set_line(dso, &frame, line);
	while (scope && scope->parent != TLY_NO_SCOPE) {
		frame.function = scope_name(dso, unit, scope);
		frame.inlined = true;
		if (nr < max)
			frames[nr] = frame;
		nr++;
		frame = (struct tally_source_frame){.line = scope->call_line};
		if (scope->call_file < unit->nr_files)
			frame.file = file_name(
				dso, dwarf_filesrc(unit->files, scope->call_file, NULL, NULL));
		scope = &unit->scopes.scopes[scope->parent];
	}
	/*
	 * The function itself goes by its symbol, as it does where nobody asks for the source;
	 * DWARF knows no aliases nor clones, and assembly has no functions in it.
	 */
	symbol = tly_dso_find(dso, address);
	if (symbol)
		frame.function = symbol->name;
	else if (scope)
		frame.function = scope_name(dso, unit, scope);
	if (nr < max)
		frames[nr] = frame;
	return nr + 1;
}

size_t tally_dso_source(struct tally_dso *dso, uint64_t address, struct tally_source_frame *frames,
			size_t max)
{
	struct unit *unit;

	tly_dso_load(dso);
	if (!dso->source)
		dso->source = open_source(dso);
	if (!dso->source || !dso->source->dwarf)
		return 0;
	unit = find_unit(dso->source, address);
	if (!unit)
		return 0;
	if (!unit->read) {
		keep_to_the_limit(dso->owner);
		if (!dso->source->dwarf || read_unit(dso->source, unit))
			return 0;
	}
	return fill_frames(dso, unit, address, frames, max);
}
