// SPDX-License-Identifier: MIT
#include "lib/event/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/event/nearest.h"
#include "lib/event/pmu_event.h"

static const struct probe_kind {
	const char *prefix;
	const char *unit;
	bool on_return;
} kinds[] = {
	{"kprobe:", "kprobe", false},
	{"kretprobe:", "kprobe", true},
	{"uprobe:", "uprobe", false},
	{"uretprobe:", "uprobe", true},
};

static const struct probe_kind *find_kind(const char *text)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)))
			return &kinds[i];
	return NULL;
}

bool tly_probe_is(const char *text)
{
	return find_kind(text);
}

/* Symbols of an ELF file */

struct image {
	Elf *elf;
	int fd;
};

static void close_image(struct image *image)
{
	elf_end(image->elf);
	close(image->fd);
}

static int open_image(struct tly_parse *parse, const char *at, const char *path,
		      struct image *image)
{
	struct stat stat;
	int code;

	image->elf = NULL;
	/* Not to wait for the writer of a pipe. */
	image->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (image->fd < 0) {
		code = -errno;
		tly_parse_error(parse, code, at, "cannot read '%s' to place a probe: %s", path,
				strerror(-code));
		if (code == -ENOENT || code == -ENOTDIR)
			tly_error_remedy(parse->err,
					 "give the whole path of the program or library");
		else if (code == -EACCES)
			tly_error_remedy(parse->err, "run as a user that may read it");
		return code;
	}
	elf_version(EV_CURRENT);
	if (!fstat(image->fd, &stat) && S_ISREG(stat.st_mode))
		image->elf = elf_begin(image->fd, ELF_C_READ_MMAP, NULL);
	if (elf_kind(image->elf) == ELF_K_ELF)
		return 0;
	close_image(image);
	tly_parse_error(parse, -EINVAL, at, "'%s' is not an ELF program or library", path);
	return tly_error_remedy(parse->err, "scripts run in an interpreter: probe that one");
}

/* Calls @visit for each function that the file defines, until it returns true. */
static bool
walk_functions(Elf *elf, bool (*visit)(const char *name, const GElf_Sym *sym, void *ctx), void *ctx)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || !header.sh_entsize ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(section, NULL);
		if (!data)
			continue;
		for (size_t i = 0; i < data->d_size / header.sh_entsize && i < INT_MAX; i++) {
			const char *name;
			GElf_Sym sym;
			int type;

			if (!gelf_getsym(data, i, &sym) || sym.st_shndx == SHN_UNDEF)
				continue;
			type = GELF_ST_TYPE(sym.st_info);
			name = elf_strptr(elf, header.sh_link, sym.st_name);
			if (name && *name && (type == STT_FUNC || type == STT_GNU_IFUNC) &&
			    visit(name, &sym, ctx))
				return true;
		}
	}
	return false;
}

struct wanted {
	const char *name;
	GElf_Sym sym;
};

static bool is_wanted(const char *name, const GElf_Sym *sym, void *ctx)
{
	struct wanted *wanted = ctx;

	if (strcmp(name, wanted->name))
		return false;
	wanted->sym = *sym;
	return true;
}

static bool suggest(const char *name, const GElf_Sym *sym, void *ctx)
{
	(void)sym;
	tly_nearest_consider(ctx, name, NULL);
	return false;
}

/* From an address in the program's memory image to the offset in its file. */
static bool file_offset(Elf *elf, uint64_t address, uint64_t *offset)
{
	size_t nr;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && i < INT_MAX; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(elf, i, &segment) || segment.p_type != PT_LOAD)
			continue;
		if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
			continue;
		return !__builtin_add_overflow(address - segment.p_vaddr, segment.p_offset, offset);
	}
	return false;
}

static int no_symbol(struct tly_parse *parse, const char *at, const char *path, const char *symbol,
		     Elf *elf)
{
	char remedy[sizeof(parse->err->remedy)];
	struct tly_nearest nearest;

	tly_parse_error(parse, -ENOENT, at, "no function '%s' in '%s'", symbol, path);
	tly_nearest_init(&nearest, symbol, strlen(symbol));
	walk_functions(elf, suggest, &nearest);
	if (!tly_nearest_format(&nearest, remedy, sizeof(remedy)))
		return tly_error_remedy(parse->err, "if the file is stripped, give the offset in "
						    "it: path:0xOFFSET");
	return tly_error_remedy(parse->err, "%s", remedy);
}

int tly_probe_symbol(struct tly_parse *parse, const char *at, const char *path, const char *symbol,
		     uint64_t *offset, uint64_t *size)
{
	struct wanted wanted = {.name = symbol};
	struct image image;
	int ret;

	ret = open_image(parse, at, path, &image);
	if (ret)
		return ret;
	if (!walk_functions(image.elf, is_wanted, &wanted)) {
		ret = no_symbol(parse, at, path, symbol, image.elf);
	} else if (GELF_ST_TYPE(wanted.sym.st_info) == STT_GNU_IFUNC) {
		ret = tly_parse_error(parse, -EINVAL, at,
				      "'%s' of '%s' stands for several functions, one of which is "
				      "chosen when the program starts",
				      symbol, path);
		tly_error_remedy(parse->err, "probe one of them, or give an offset: path:0xOFFSET");
	} else if (!file_offset(image.elf, wanted.sym.st_value, offset)) {
		ret = tly_parse_error(parse, -EINVAL, at,
				      "'%s' is not in a part of '%s' that is "
				      "loaded",
				      symbol, path);
	} else {
		*size = wanted.sym.st_size;
	}
	close_image(&image);
	return ret;
}

/* Places */

static struct tly_span take_until(const char **cursor, const char *ends)
{
	struct tly_span span = {.at = *cursor, .length = strcspn(*cursor, ends)};

	*cursor += span.length;
	return span;
}

/* Splits "symbol+0x10" at its last '+'. */
static int split_offset(struct tly_parse *parse, struct tly_span *place, uint64_t *offset)
{
	const char *plus = memrchr(place->at, '+', place->length);

	*offset = 0;
	if (!plus)
		return 0;
	struct tly_span number = {plus + 1, place->at + place->length - plus - 1};

	if (!tly_number(number, offset))
		return tly_parse_error(parse, -EINVAL, number.at, "'%.*s' is not an offset",
				       TLY_SPAN(number));
	place->length = plus - place->at;
	return 0;
}

static int place_uprobe(struct tly_parse *parse, struct tly_event *event, const char **cursor)
{
	struct tly_span path = take_until(cursor, ":,"), place;
	struct perf_event_attr *attr = &event->attr.attr;
	uint64_t base = 0, offset, size = 0;
	char symbol[1024];
	const char *copy;
	int ret;

	if (!path.length || **cursor != ':') {
		tly_parse_error(parse, -EINVAL, path.at, "a uprobe wants a path and a place in it");
		return tly_error_remedy(parse->err,
					"uprobe:PATH:FUNCTION[+OFFSET], as in "
					"uprobe:/bin/bash:main, or uprobe:PATH:0xOFFSET");
	}
	++*cursor;
	place = take_until(cursor, ":,{}/ \t\n");
	copy = tly_event_string(event, path.at, path.length);
	if (!copy)
		return tly_parse_no_memory(parse);
	attr->uprobe_path = (uintptr_t)copy;
	if (tly_number(place, &offset)) {
		attr->probe_offset = offset;
		return 0;
	}
	ret = split_offset(parse, &place, &offset);
	if (ret)
		return ret;
	if (!place.length || place.length >= sizeof(symbol))
		return tly_parse_error(parse, -EINVAL, place.at,
				       "a function or 0xOFFSET is missing behind '%s:'", copy);
	snprintf(symbol, sizeof(symbol), "%.*s", TLY_SPAN(place));
	ret = tly_probe_symbol(parse, path.at, copy, symbol, &base, &size);
	if (ret)
		return ret;
	if (size ? offset >= size : offset != 0)
		return tly_parse_error(parse, -EINVAL, place.at,
				       "offset 0x%" PRIx64 " is past the end of '%s', which has "
				       "0x%" PRIx64 " bytes",
				       offset, symbol, size);
	if (__builtin_add_overflow(base, offset, &offset))
		return tly_parse_error(parse, -EINVAL, place.at, "the offset is too large");
	attr->probe_offset = offset;
	return 0;
}

static int place_kprobe(struct tly_parse *parse, struct tly_event *event, const char **cursor)
{
	struct tly_span place = take_until(cursor, ":,{}/ \t\n");
	struct perf_event_attr *attr = &event->attr.attr;
	uint64_t number;
	const char *copy;
	int ret;

	if (tly_number(place, &number)) {
		attr->kprobe_func = 0;
		attr->kprobe_addr = number;
		return 0;
	}
	ret = split_offset(parse, &place, &number);
	if (ret)
		return ret;
	if (!place.length) {
		tly_parse_error(parse, -EINVAL, place.at, "a kprobe wants a kernel function");
		return tly_error_remedy(parse->err, "kprobe:FUNCTION[+OFFSET], as in "
						    "kprobe:do_sys_openat2");
	}
	copy = tly_event_string(event, place.at, place.length);
	if (!copy)
		return tly_parse_no_memory(parse);
	attr->kprobe_func = (uintptr_t)copy;
	attr->probe_offset = number;
	return 0;
}

int tly_probe_no_unit(struct tally_error *err, const char *unit)
{
	tly_error(err, -ENOTSUP, "this kernel has no %ss for perf_event_open", unit);
	return tly_error_remedy(err, "run on Linux 4.17 or newer built with CONFIG_%s=y",
				!strcmp(unit, "kprobe") ? "KPROBE_EVENTS" : "UPROBE_EVENTS");
}

int tly_probe_add(struct tly_parse *parse, const char **cursor)
{
	const struct probe_kind *kind = find_kind(*cursor);
	const char *start = *cursor;
	struct tly_event *event;
	struct tly_pmu pmu;
	int ret;

	if (tly_pmu_find(parse->roots, tly_span_of(kind->unit), &pmu)) {
		tly_probe_no_unit(parse->err, kind->unit);
		return tly_error_at(parse->err, start - parse->text);
	}
	event = tly_parse_add(parse, pmu.type, 0, tly_span_of(""));
	if (!event)
		return tly_parse_no_memory(parse);
	event->filterable = true;
	event->event.pmu = kind->unit;
	if (kind->on_return) {
		ret = tly_pmu_set(parse, event, &pmu, "retprobe");
		if (ret)
			return ret;
	}
	*cursor += strlen(kind->prefix);
	return !strcmp(kind->unit, "kprobe") ? place_kprobe(parse, event, cursor)
					     : place_uprobe(parse, event, cursor);
}
