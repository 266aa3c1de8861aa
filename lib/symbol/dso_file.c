// SPDX-License-Identifier: MIT
/*
 * The recorded path names what was mapped at the time of the recording; what is there now may be
 * another build. Where the recording has the build-id, only a file of the same one is used: wrong
 * names are worse than none.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/symbol/dso.h"

/* Accepts the build-id of the file just opened, or says why not. */
static bool check_build_id(struct tally_dso *dso, Elf *elf)
{
	struct tly_build_id id;
	char wanted[TLY_BUILD_ID_TEXT], found[TLY_BUILD_ID_TEXT];

	tly_build_id_of_elf(elf, &id);
	if (!dso->build_id_expected) {
		dso->build_id = id;
		return true;
	}
	if (tly_build_id_equal(&id, &dso->build_id))
		return true;
	tly_build_id_format(&dso->build_id, wanted);
	tly_build_id_format(&id, found);
	tly_dso_problem(dso, "record again, or give the files of the recording with --symfs",
			"the file has changed since the recording (its build-id was %s, now %s)",
			wanted, found[0] ? found : "none");
	return false;
}

static int no_debug_info(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc;
	(void)found;
	return -1;
}

/*
 * Distributions ship a compressed symbol table in .gnu_debugdata of stripped files. libdwfl unpacks
 * it; with a base of 0 for position-independent files it leaves addresses as they are in the file.
 */
static int add_mini_debug_info(struct tly_symtab *symtab, struct tly_strings *strings,
			       const char *path)
{
	const Dwfl_Callbacks callbacks = {
		.find_debuginfo = no_debug_info,
		.find_elf = dwfl_build_id_find_elf,
		.section_address = dwfl_offline_section_address,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwfl_Module *module;
	GElf_Addr bias = 0;
	int nr, ret = 0;

	if (!dwfl)
		return 0;
	module = dwfl_report_elf(dwfl, path, path, -1, 0, false);
	dwfl_report_end(dwfl, NULL, NULL);
	nr = module && dwfl_module_getelf(module, &bias) ? dwfl_module_getsymtab(module) : 0;
	for (int i = 1; i < nr && !ret; i++) {
		GElf_Word section;
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name =
			dwfl_module_getsym_info(module, i, &symbol, &address, &section, NULL, NULL);

		if (!name || !name[0] || section == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		name = tly_strings_add(strings, name, strlen(name));
		if (!name ||
		    tly_symtab_add(symtab, address - bias, symbol.st_size, name, TLY_LOCAL))
			ret = -ENOMEM;
	}
	dwfl_end(dwfl);
	return ret;
}

/* Adds what the separate debug file of @elf says. Returns whether it had symbols, or -ENOMEM. */
static long add_debug_file(struct tally_dso *dso, Elf *elf, struct tly_elf *debug)
{
	char *path = tly_debug_file(dso, elf);
	long nr = 0;

	if (!path)
		return 0;
	if (!tly_elf_open(debug, path, false)) {
		nr = tly_elf_symbols(debug->elf, SHT_SYMTAB, dso->symtab);
		dso->debug_path = tly_strings_intern(&dso->owner->strings, path);
	}
	free(path);
	return nr;
}

/* Says which names are not to be had when there is no full symbol table. */
static void note_stripped(struct tally_dso *dso)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	const char *remedy = "install its -dbgsym or -debuginfo package";

	if (!urls || !urls[0])
		remedy = "install its -dbgsym or -debuginfo package, or set "
			 "DEBUGINFOD_URLS=https://debuginfod.elfutils.org";
	if (dso->symtab->nr)
		tly_dso_problem(dso, remedy, "it is stripped: only what it exports has a name");
	else
		tly_dso_problem(dso, remedy, "it is stripped: nothing has a name");
}

static int add_symbols(struct tally_dso *dso, Elf *elf, const char *path)
{
	struct tly_strings *strings = &dso->owner->strings;
	struct tly_elf debug = {.fd = -1};
	GElf_Shdr header;
	long nr, ret;
	bool mini;

	dso->nr_segments = tly_elf_segments(elf, &dso->segments);
	if (dso->nr_segments < 0)
		return dso->nr_segments;
	nr = tly_elf_symbols(elf, SHT_SYMTAB, dso->symtab);
	if (!nr)
		nr = add_debug_file(dso, elf, &debug);
	ret = nr;
	if (ret == 0)
		ret = tly_elf_symbols(elf, SHT_DYNSYM, dso->symtab);
	mini = nr == 0 && path && tly_elf_section(elf, ".gnu_debugdata", &header);
	if (ret >= 0 && mini)
		ret = add_mini_debug_info(dso->symtab, strings, path);
	if (ret >= 0)
		ret = tly_elf_plt(elf, dso->symtab, strings);
	if (ret >= 0) {
		if (dso->kind == TLY_DSO_KERNEL) {
			tly_symtab_by_name(dso->symtab, "_text", &dso->text);
			tly_symtab_by_name(dso->symtab, "_stext", &dso->stext);
		}
		/* While the files that the names are in are open. */
		ret = tly_symtab_finish(dso->symtab, strings);
		dso->problem = NULL;
		if (nr == 0 && !mini && dso->kind != TLY_DSO_VDSO)
			note_stripped(dso);
	}
	tly_elf_close(&debug);
	return ret < 0 ? ret : 0;
}

int tly_dso_load_elf(struct tally_dso *dso, const char *path)
{
	struct tly_elf file;
	int ret = tly_elf_open(&file, path, false);

	if (ret)
		return ret;
	if (!check_build_id(dso, file.elf)) {
		tly_elf_close(&file);
		return -ESTALE;
	}
	dso->path = tly_strings_intern(&dso->owner->strings, path);
	ret = add_symbols(dso, file.elf, path);
	tly_elf_close(&file);
	if (!ret) {
	}
	return ret;
}

/* Tries one place; frees @path. True when the search is over. */
static bool try_path(struct tally_dso *dso, char *path)
{
	int ret = path ? tly_dso_load_elf(dso, path) : -ENOMEM;

	free(path);
	return !ret || ret == -ENOMEM;
}

static char *print_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *print_path(const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	return text;
}

/* Places where files go by their build-id. */
static bool try_by_build_id(struct tally_dso *dso)
{
	char id[TLY_BUILD_ID_TEXT];
	const char *home = getenv("HOME");

	tly_build_id_format(&dso->build_id, id);
	/* perf keeps what it recorded in a store. */
	if (home && try_path(dso, print_path("%s/.debug/.build-id/%.2s/%s/elf", home, id, id + 2)))
		return true;
	return try_path(
		dso, print_path("%s/.build-id/%.2s/%s", dso->owner->options.debug_dir, id, id + 2));
}

/* The path as the process sees it, when that runs still and sees other files, in a container. */
static bool try_namespace(struct tally_dso *dso, int path_len)
{
	char link[64];
	struct stat ours, theirs;

	snprintf(link, sizeof(link), "/proc/%u/ns/mnt", dso->pid);
	if (!dso->pid || stat("/proc/self/ns/mnt", &ours) || stat(link, &theirs) ||
	    ours.st_ino == theirs.st_ino)
		return false;
	return try_path(dso, print_path("/proc/%u/root%.*s", dso->pid, path_len, dso->name));
}

/* A program without a path that is running still: deleted, or never in a file but a memfd. */
static bool try_running(struct tally_dso *dso)
{
	char *link = print_path("/proc/%u/exe", dso->pid);
	char target[4096];
	ssize_t len = link ? readlink(link, target, sizeof(target) - 1) : -1;

	if (len < 0) {
		free(link);
		return false;
	}
	target[len] = '\0';
	if (!strcmp(target, dso->name))
		return try_path(dso, link);
	free(link);
	return false;
}

void tly_dso_load_file(struct tally_dso *dso)
{
	static const char deleted[] = " (deleted)";
	const char *symfs = dso->owner->options.symfs;
	size_t len = strlen(dso->name);
	const char *problem, *remedy;
	bool gone = false;
	char *path;
	int ret;

	if (len > sizeof(deleted) - 1 && !strcmp(dso->name + len - sizeof(deleted) + 1, deleted)) {
		len -= sizeof(deleted) - 1;
		gone = true;
	}
	/* What has taken the place of a deleted file is another, unless the build-id says not. */
	if (!gone || dso->build_id_expected) {
		if (!symfs && try_namespace(dso, len))
			return;
		path = print_path("%s%.*s", symfs ? symfs : "", (int)len, dso->name);
		ret = path ? tly_dso_load_elf(dso, path) : -ENOMEM;
		free(path);
		if (!ret || ret == -ENOMEM)
			return;
		if (ret == -ENOEXEC)
			tly_dso_problem(dso, NULL, "not an ELF file");
		else if (ret != -ESTALE)
			tly_dso_problem(dso, "give the directory that it is below with --symfs",
					"cannot open the file: %s", strerror(-ret));
	} else {
		tly_dso_problem(dso, "record again without replacing the file meanwhile",
				"the file was deleted while the program ran");
	}
	problem = dso->problem;
	remedy = dso->remedy;
	if (!try_running(dso) && !(dso->build_id_expected && try_by_build_id(dso))) {
		dso->problem = problem;
		dso->remedy = remedy;
	}
}

void tly_dso_open_vdso(struct tally_dso *dso, struct tly_elf *file)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;

	file->elf = NULL;
	file->fd = -1;
	/* Its section headers are its last part, which is how its size is known. */
	if (!image || memcmp(image, ELFMAG, SELFMAG) || image[EI_CLASS] != ELFCLASS64) {
		tly_dso_problem(dso, NULL, "this process has no vdso to take the symbols from");
		return;
	}
	if (tly_elf_open_memory(file, image,
				header->e_shoff + (size_t)header->e_shnum * header->e_shentsize)) {
		tly_dso_problem(dso, NULL, "the vdso of this kernel cannot be read");
		return;
	}
	if (check_build_id(dso, file->elf))
		return;
	tly_elf_close(file);
	tly_dso_problem(dso, "report it where it was recorded",
			"the recording was made on another kernel");
}

void tly_dso_load_vdso(struct tally_dso *dso)
{
	struct tly_elf file;

	tly_dso_open_vdso(dso, &file);
	if (file.elf)
		add_symbols(dso, file.elf, NULL);
	tly_elf_close(&file);
}
