// SPDX-License-Identifier: MIT
/*
 * The kernel's own functions and those of its modules, from /proc/kallsyms or a copy of it:
 *
 *	ffffffff81000000 T _text
 *	ffffffffc0a01230 t ext4_map_blocks	[ext4]
 *
 * The kernel moves at every boot. A recording says where a reference symbol was (_text, _stext),
 * kallsyms where it is, so names can be found as long as it is the same build. Modules are kept
 * relative to where each is loaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/symbol/dso.h"

/* Far above what a kernel has; a limit for files given by hand. */
#define KALLSYMS_MAX ((size_t)256 * 1024 * 1024)

/* The whole file, NUL-terminated and to be freed; files in /proc have no size to go by. */
static char *read_all(const char *path, int *error)
{
	size_t size = 1 << 20, used = 0;
	char *text = NULL, *grown;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t got = 1;

	*error = fd < 0 ? -errno : 0;
	if (fd < 0)
		return NULL;
	while (got > 0) {
		if (!text || used == size - 1) {
			size = text ? size * 2 : size;
			grown = size <= KALLSYMS_MAX ? realloc(text, size) : NULL;
			if (!grown) {
				*error = -ENOMEM;
				break;
			}
			text = grown;
		}
		got = read(fd, text + used, size - 1 - used);
		if (got < 0)
			*error = -errno;
		else
			used += got;
	}
	close(fd);
	if (*error) {
		free(text);
		return NULL;
	}
	text[used] = '\0';
	return text;
}

static int add_module_symbol(struct tally_symbols *symbols, const char *module, const char *name,
			     uint64_t address)
{
	struct tly_kallsyms *kallsyms = &symbols->kallsyms;
	struct tly_module_symbol *symbol;

	if (kallsyms->nr_modules == kallsyms->size_modules) {
		size_t size = kallsyms->size_modules ? kallsyms->size_modules * 2 : 1024;

		symbol = reallocarray(kallsyms->modules, size, sizeof(*symbol));
		if (!symbol)
			return -ENOMEM;
		kallsyms->modules = symbol;
		kallsyms->size_modules = size;
	}
	symbol = &kallsyms->modules[kallsyms->nr_modules];
	symbol->address = address;
	symbol->module = tly_strings_intern(&symbols->strings, module);
	symbol->name = tly_strings_add(&symbols->strings, name, strlen(name));
	if (!symbol->module || !symbol->name)
		return -ENOMEM;
	kallsyms->nr_modules++;
	return 0;
}

/* One line of kallsyms, without its newline. */
static int add_line(struct tally_symbols *symbols, char *line)
{
	struct tly_kallsyms *kallsyms = &symbols->kallsyms;
	char *name, *module, *end, type;
	uint64_t address;

	address = strtoull(line, &end, 16);
	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return 0;
	type = end[1];
	name = end + 3;
	if (!strchr("TtWw", type) || !name[0])
		return 0;
	module = strchr(name, '\t');
	if (module)
		*module++ = '\0';
	if (!address)
		return 0;
	kallsyms->restricted = false;
	/* bpf's symbols and others made at run time bear a name in brackets but are nobody's. */
	if (module && strncmp(module, "[bpf]", 5) && strncmp(module, "[__builtin", 10))
		return add_module_symbol(symbols, module, name, address);
	if (!strcmp(name, "_text"))
		kallsyms->text = address;
	else if (!strcmp(name, "_stext"))
		kallsyms->stext = address;
	return tly_symtab_add(&kallsyms->symtab, address, 0, name,
			      type == 'T'		   ? TLY_GLOBAL
			      : type == 'W' || type == 'w' ? TLY_WEAK
							   : TLY_LOCAL);
}

int tly_kallsyms_read(struct tally_symbols *symbols)
{
	struct tly_kallsyms *kallsyms = &symbols->kallsyms;
	char *text, *line, *next;
	int ret;

	if (kallsyms->read)
		return 0;
	if (!kallsyms->path)
		kallsyms->path =
			symbols->options.kallsyms ? symbols->options.kallsyms : "/proc/kallsyms";
	text = read_all(kallsyms->path, &ret);
	if (!text)
		return ret;
	kallsyms->read = true;
	kallsyms->restricted = true;
	for (line = text; *line && !ret; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		ret = add_line(symbols, line);
	}
	if (!ret)
		ret = tly_symtab_finish(&kallsyms->symtab, &symbols->strings);
	free(text);
	return ret;
}

void tly_kallsyms_free(struct tly_kallsyms *kallsyms)
{
	tly_symtab_free(&kallsyms->symtab);
	free(kallsyms->modules);
}

void tly_kernel_build_id(struct tly_build_id *build_id)
{
	tly_build_id_read("/sys/kernel/notes", build_id);
}

/* perf keeps a copy of kallsyms for each kernel that it recorded. */
static const char *kept_kallsyms(struct tally_dso *dso)
{
	const char *home = getenv("HOME"), *kept;
	char id[TLY_BUILD_ID_TEXT];
	char *path;

	tly_build_id_format(&dso->build_id, id);
	if (!home || asprintf(&path, "%s/.debug/.build-id/%.2s/%s/kallsyms", home, id, id + 2) < 0)
		return NULL;
	kept = access(path, R_OK) ? NULL : tly_strings_intern(&dso->owner->strings, path);
	free(path);
	return kept;
}

/* Whether kallsyms tells of the recorded kernel; where another copy does, it is chosen. */
static bool choose_kallsyms(struct tally_dso *dso)
{
	struct tally_symbols *symbols = dso->owner;
	struct tly_build_id running;
	const char *kept;

	if (symbols->options.kallsyms || !dso->build_id_expected)
		return true;
	tly_kernel_build_id(&running);
	if (!running.size || tly_build_id_equal(&running, &dso->build_id))
		return true;
	kept = kept_kallsyms(dso);
	if (kept && !symbols->kallsyms.read)
		symbols->kallsyms.path = kept;
	return kept && symbols->kallsyms.path == kept;
}

void tly_dso_load_kernel(struct tally_dso *dso)
{
	struct tally_symbols *symbols = dso->owner;
	const char *vmlinux = symbols->options.vmlinux;
	int ret;

	if (vmlinux) {
		ret = tly_dso_load_elf(dso, vmlinux);
		if (ret == -ESTALE)
			tly_dso_problem(dso, NULL, "%s is not the kernel of the recording",
					vmlinux);
		else if (ret)
			tly_dso_problem(dso, NULL, "cannot use %s: %s", vmlinux, strerror(-ret));
		return;
	}
	if (!choose_kallsyms(dso)) {
		tly_dso_problem(dso,
				"give its vmlinux, or a copy of its /proc/kallsyms with --kallsyms",
				"the recording was made on another kernel");
		return;
	}
	ret = tly_kallsyms_read(symbols);
	if (ret) {
		tly_dso_problem(dso, NULL, "cannot read %s: %s", symbols->kallsyms.path,
				strerror(-ret));
		return;
	}
	if (symbols->kallsyms.restricted) {
		tly_dso_problem(dso, "report as root, or sudo sysctl kernel.kptr_restrict=0",
				"the kernel hides its addresses from this user");
		return;
	}
	dso->symtab = &symbols->kallsyms.symtab;
	dso->text = symbols->kallsyms.text;
	dso->stext = symbols->kallsyms.stext;
	if (!dso->build_id_expected && !symbols->options.kallsyms)
		tly_kernel_build_id(&dso->build_id);
}

struct find_module {
	const char *name;
	uint64_t start;
};

static int match_module(const char *name, uint64_t start, uint64_t size, void *arg)
{
	struct find_module *find = arg;

	(void)size;
	if (strcmp(name, find->name))
		return 0;
	find->start = start;
	return 1;
}

void tly_dso_load_module(struct tally_dso *dso)
{
	const struct tly_kallsyms *kallsyms = &dso->owner->kallsyms;
	struct find_module find = {.name = dso->short_name, .start = UINT64_MAX};
	int ret = tly_kallsyms_read(dso->owner);

	if (ret) {
		tly_dso_problem(dso, NULL, "cannot read %s: %s", kallsyms->path, strerror(-ret));
		return;
	}
	if (!tly_kernel_modules(dso->owner, match_module, &find)) {
		/* A copy of kallsyms without one of /proc/modules: the lowest function is near. */
		for (size_t i = 0; i < kallsyms->nr_modules; i++) {
			if (kallsyms->modules[i].module == dso->short_name &&
			    kallsyms->modules[i].address < find.start)
				find.start = kallsyms->modules[i].address;
		}
	}
	for (size_t i = 0; i < kallsyms->nr_modules && !ret; i++) {
		const struct tly_module_symbol *symbol = &kallsyms->modules[i];

		if (symbol->module == dso->short_name && symbol->address >= find.start)
			ret = tly_symtab_add(dso->symtab, symbol->address - find.start, 0,
					     symbol->name, TLY_GLOBAL);
	}
	if (!ret)
		ret = tly_symtab_finish(dso->symtab, &dso->owner->strings);
	if (!ret && !dso->symtab->nr)
		tly_dso_problem(dso, "report while the module is loaded",
				"%s does not list the module", kallsyms->path);
}

int tly_kernel_modules(const struct tally_symbols *symbols,
		       int (*each)(const char *name, uint64_t start, uint64_t size, void *arg),
		       void *arg)
{
	const char *kallsyms =
		symbols->kallsyms.path ? symbols->kallsyms.path : symbols->options.kallsyms;
	const char *slash = kallsyms ? strrchr(kallsyms, '/') : NULL;
	char *path, *text, *line, *rest = NULL;
	int ret = 0;

	/* The list that was true when kallsyms was: /proc/modules, or the copy beside the copy. */
	if (asprintf(&path, "%.*s/modules", slash ? (int)(slash - kallsyms) : 5,
		     slash ? kallsyms : "/proc") < 0)
		return 0;
	text = read_all(path, &ret);
	free(path);
	if (!text)
		return 0;
	/* name size users dependents, state address */
	for (line = strtok_r(text, "\n", &rest); line && !ret; line = strtok_r(NULL, "\n", &rest)) {
		char name[128] = "[";
		unsigned long long start, size;

		if (sscanf(line, "%120s %llu %*s %*s %*s %llx", name + 1, &size, &start) != 3 ||
		    !start)
			continue;
		strcat(name, "]");
		ret = each(name, start, size, arg);
	}
	free(text);
	return ret;
}
