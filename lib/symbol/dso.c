// SPDX-License-Identifier: MIT
#include "lib/symbol/dso.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/symbol/cfi.h"
#include "lib/symbol/machine.h"
#include "lib/symbol/source.h"

#define SOURCE_LIMIT ((size_t)512 << 20)

struct tally_symbols *tally_symbols_new(const struct tally_symbols_options *options)
{
	struct tally_symbols *symbols = calloc(1, sizeof(*symbols));
	const char **text[] = {&symbols->options.symfs, &symbols->options.kallsyms,
			       &symbols->options.vmlinux, &symbols->options.debug_dir};

	if (!symbols)
		return NULL;
	symbols->source_limit = SOURCE_LIMIT;
	if (options)
		symbols->options = *options;
	if (!symbols->options.debug_dir)
		symbols->options.debug_dir = "/usr/lib/debug";
	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
		if (!*text[i])
			continue;
		*text[i] = tly_strings_intern(&symbols->strings, *text[i]);
		if (!*text[i]) {
			tally_symbols_free(symbols);
			return NULL;
		}
	}
	return symbols;
}

static void free_dso(struct tally_dso *dso)
{
	tly_source_free(dso->source);
	tly_cfi_free(dso->cfi);
	tly_dso_free_jit(dso);
	tly_symtab_free(&dso->own_symtab);
	free(dso->segments);
	free(dso);
}

void tally_symbols_free(struct tally_symbols *symbols)
{
	struct tally_dso *dso, *next;

	if (!symbols)
		return;
	tly_machines_free(symbols->machines);
	for (size_t i = 0; i < symbols->size; i++) {
		for (dso = symbols->table[i]; dso; dso = next) {
			next = dso->next;
			free_dso(dso);
		}
	}
	free(symbols->table);
	tly_kallsyms_free(&symbols->kallsyms);
	tly_strings_free(&symbols->strings);
	free(symbols);
}

static size_t slot_of(const char *name, size_t size)
{
	/* Interned names: the pointer is the name. */
	return ((uintptr_t)name * 0x9e3779b97f4a7c15 >> 32) & (size - 1);
}

static int grow(struct tally_symbols *symbols)
{
	size_t size = symbols->size ? symbols->size * 2 : 64;
	struct tally_dso **table = calloc(size, sizeof(*table));

	if (!table)
		return -1;
	for (size_t i = 0; i < symbols->size; i++) {
		struct tally_dso *dso, *next;

		for (dso = symbols->table[i]; dso; dso = next) {
			struct tally_dso **tail = &table[slot_of(dso->name, size)];

			/* To the end: the order of those with one name is kept. */
			while (*tail)
				tail = &(*tail)->next;
			next = dso->next;
			dso->next = NULL;
			*tail = dso;
		}
	}
	free(symbols->table);
	symbols->table = table;
	symbols->size = size;
	return 0;
}

/* "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz" -> "[ext4]", with _ for - as the kernel has it. */
static const char *module_name(struct tly_strings *strings, const char *path)
{
	const char *base = strrchr(path, '/');
	char name[256];
	size_t len;

	if (path[0] == '[')
		return path;
	base = base ? base + 1 : path;
	len = strcspn(base, ".");
	snprintf(name, sizeof(name), "[%.*s]", (int)(len < 200 ? len : 200), base);
	for (char *c = name; *c; c++) {
		if (*c == '-')
			*c = '_';
	}
	return tly_strings_intern(strings, name);
}

static const char *short_name(struct tally_symbols *symbols, const char *name,
			      enum tly_dso_kind kind, uint32_t pid)
{
	const char *base;
	char text[64];

	switch (kind) {
	case TLY_DSO_KERNEL:
		return "[kernel]";
	case TLY_DSO_MODULE:
		return module_name(&symbols->strings, name);
	case TLY_DSO_JIT:
		if (strncmp(name, "/tmp/perf-", 10))
			break;
		snprintf(text, sizeof(text), "[JIT] pid %u", pid);
		return tly_strings_intern(&symbols->strings, text);
	default:
		break;
	}
	base = strrchr(name, '/');
	return base && base[1] ? base + 1 : name;
}

struct tally_dso *tly_dso_get(struct tally_symbols *symbols, const char *name,
			      enum tly_dso_kind kind, const struct tly_build_id *build_id,
			      uint32_t pid)
{
	struct tally_dso *dso, **link;

	name = tly_strings_intern(&symbols->strings, name);
	if (!name || (symbols->nr >= symbols->size && grow(symbols)))
		return NULL;
	link = &symbols->table[slot_of(name, symbols->size)];
	for (; (dso = *link); link = &dso->next) {
		/* Memory of one name is other memory in each process. */
		if (dso->name != name || (kind == TLY_DSO_JIT && dso->pid != pid))
			continue;
		if (!dso->pid)
			dso->pid = pid;
		if (!build_id || !build_id->size || tly_build_id_equal(&dso->build_id, build_id))
			return dso;
		if (!dso->build_id_expected && !dso->loaded) {
			dso->build_id = *build_id;
			dso->build_id_expected = true;
			return dso;
		}
	}
	dso = calloc(1, sizeof(*dso));
	if (!dso)
		return NULL;
	dso->owner = symbols;
	dso->name = name;
	dso->kind = kind;
	dso->pid = pid;
	dso->symtab = &dso->own_symtab;
	dso->short_name = short_name(symbols, name, kind, pid);
	if (!dso->short_name) {
		free(dso);
		return NULL;
	}
	if (build_id && build_id->size) {
		dso->build_id = *build_id;
		dso->build_id_expected = true;
	}
	*link = dso;
	symbols->nr++;
	return dso;
}

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* Memory without a file that can be named after: JITs put code there. */
static bool is_anonymous(const char *filename)
{
	return !filename[0] || starts_with(filename, "//anon") ||
	       starts_with(filename, "/dev/zero") || starts_with(filename, "/anon_hugepage") ||
	       starts_with(filename, "[anon:");
}

/* Memory whose name says more than "anonymous", and that may hold a JIT's code all the same. */
static bool is_named_memory(const char *filename)
{
	/* Other memfds hold programs; this is how .NET maps the code it writes. */
	return starts_with(filename, "/memfd:doublemapper") || starts_with(filename, "/SYSV") ||
	       starts_with(filename, "[heap]") || starts_with(filename, "[stack");
}

struct tally_dso *tly_dso_of_mapping(struct tally_symbols *symbols, const char *filename,
				     const struct tly_build_id *build_id, uint32_t pid)
{
	char name[64];

	if (is_anonymous(filename)) {
		snprintf(name, sizeof(name), "/tmp/perf-%u.map", pid);
		return tly_dso_get(symbols, name, TLY_DSO_JIT, NULL, pid);
	}
	if (is_named_memory(filename))
		return tly_dso_get(symbols, filename, TLY_DSO_JIT, NULL, pid);
	if (!strcmp(filename, "[vdso]"))
		return tly_dso_get(symbols, filename, TLY_DSO_VDSO, build_id, pid);
	if (filename[0] == '[')
		return tly_dso_get(symbols, filename, TLY_DSO_OPAQUE, NULL, pid);
	return tly_dso_get(symbols, filename, TLY_DSO_FILE, build_id, pid);
}

void tly_dso_problem(struct tally_dso *dso, const char *remedy, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	dso->problem = tly_strings_intern(&dso->owner->strings, text);
	dso->remedy = remedy;
}

void tly_dso_load(struct tally_dso *dso)
{
	if (dso->loaded)
		return;
	dso->loaded = true;
	switch (dso->kind) {
	case TLY_DSO_FILE:
		tly_dso_load_file(dso);
		break;
	case TLY_DSO_VDSO:
		tly_dso_load_vdso(dso);
		break;
	case TLY_DSO_KERNEL:
		tly_dso_load_kernel(dso);
		break;
	case TLY_DSO_MODULE:
		tly_dso_load_module(dso);
		break;
	case TLY_DSO_JIT:
		tly_dso_load_jit(dso);
		break;
	case TLY_DSO_KSYMBOL: /* made with its one symbol */
	case TLY_DSO_OPAQUE:
		break;
	}
}

const struct tally_symbol *tly_dso_find(struct tally_dso *dso, uint64_t address)
{
	const struct tally_symbols *owner = dso->owner;
	const struct tally_symbol *symbol;

	tly_dso_load(dso);
	symbol = tly_symtab_find(dso->symtab, address, &dso->owner->strings,
				 !owner->options.no_demangle);
	if (symbol || dso->kind != TLY_DSO_JIT || !tly_dso_refresh_jit(dso))
		return symbol;
	return tly_symtab_find(dso->symtab, address, &dso->owner->strings,
			       !owner->options.no_demangle);
}

const char *tally_dso_name(const struct tally_dso *dso)
{
	return dso->name;
}

const char *tally_dso_short_name(const struct tally_dso *dso)
{
	return dso->short_name;
}

const char *tally_dso_problem(struct tally_dso *dso)
{
	tly_dso_load(dso);
	return dso->problem;
}

const char *tally_dso_remedy(struct tally_dso *dso)
{
	tly_dso_load(dso);
	return dso->problem ? dso->remedy : NULL;
}

size_t tally_dso_build_id(struct tally_dso *dso, uint8_t build_id[20])
{
	tly_dso_load(dso);
	memcpy(build_id, dso->build_id.bytes, dso->build_id.size);
	return dso->build_id.size;
}
