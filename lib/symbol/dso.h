/* SPDX-License-Identifier: MIT */
/*
 * A dso: whatever code is mapped from. Each is loaded once, when the first address within it is
 * looked up.
 */
#ifndef LIB_SYMBOL_DSO_H
#define LIB_SYMBOL_DSO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/symbol.h>

#include "lib/symbol/build_id.h"
#include "lib/symbol/elffile.h"
#include "lib/symbol/strings.h"
#include "lib/symbol/symtab.h"

enum tly_dso_kind {
	TLY_DSO_FILE,
	TLY_DSO_VDSO,
	TLY_DSO_KERNEL,
	TLY_DSO_MODULE,
	TLY_DSO_KSYMBOL, /* one function that the kernel made at run time, named by its record */
	TLY_DSO_JIT,	 /* the anonymous code of one process, named by its /tmp/perf-PID.map */
	TLY_DSO_OPAQUE,	 /* stack, heap, vsyscall: nothing to load */
};

/* A module's function, as kallsyms has it: of a dso of its own, relative to where it is loaded. */
struct tly_module_symbol {
	const char *module, *name; /* "[ext4]" */
	uint64_t address;
};

/* What /proc/kallsyms, or a copy of it, says. */
struct tly_kallsyms {
	bool read;
	bool restricted; /* all addresses are 0 */
	const char *path;
	struct tly_symtab symtab; /* of the kernel proper */
	uint64_t text, stext;	  /* addresses of _text and _stext; 0 unknown */
	struct tly_module_symbol *modules;
	size_t nr_modules, size_modules;
};

struct tally_symbols {
	struct tally_symbols_options options; /* strings are in the pool */
	struct tly_strings strings;
	struct tally_dso **table; /* by name; chained */
	size_t nr, size;
	struct tly_kallsyms kallsyms;
	size_t source_limit; /* bytes of debug information kept at a time */
	struct tally_machine *machines;
};

struct tally_dso {
	struct tally_symbols *owner;
	struct tally_dso *next;
	const char *name, *short_name;
	enum tly_dso_kind kind;
	uint32_t pid;		      /* of a process that maps it */
	struct tly_build_id build_id; /* the recording's; else, once loaded, the file's */
	bool build_id_expected;	      /* it is the recording's */
	bool loaded;
	const char *problem;	   /* why symbols are missing; NULL: nothing is wrong */
	const char *remedy;	   /* of the problem, or NULL */
	const char *path;	   /* of the file that was loaded */
	const char *debug_path;	   /* of its separate debug file */
	struct tly_symtab *symtab; /* own_symtab, or one shared with others */
	struct tly_symtab own_symtab;
	struct tly_segment *segments;
	int nr_segments;
	uint64_t text, stext; /* kernel: of the reference symbols in this table; 0 unknown */
	uint64_t jit_checked; /* when the map file was last looked at; and what it was then */
	int64_t jit_size, jit_mtime;
	struct tly_retired *retired; /* tables of earlier readings, still pointed at */
	struct tly_source *source;
	struct tly_cfi *cfi;
};

/*
 * The dso of that name: with that build-id when @build_id is given, else whichever came first.
 * NULL when memory is short.
 */
struct tally_dso *tly_dso_get(struct tally_symbols *symbols, const char *name,
			      enum tly_dso_kind kind, const struct tly_build_id *build_id,
			      uint32_t pid);
/* The dso of a mapping of @pid by the name in its record. */
struct tally_dso *tly_dso_of_mapping(struct tally_symbols *symbols, const char *filename,
				     const struct tly_build_id *build_id, uint32_t pid);

void tly_dso_load(struct tally_dso *dso);
/* The function at @address; loads. */
const struct tally_symbol *tly_dso_find(struct tally_dso *dso, uint64_t address);

/* dso_file.c: the file at the recorded path, or another that is the same by build-id. */
void tly_dso_load_file(struct tally_dso *dso);
void tly_dso_load_vdso(struct tally_dso *dso);
/* Opens this process's vdso, which is the same in all of a boot. Sets file->elf, or NULL. */
void tly_dso_open_vdso(struct tally_dso *dso, struct tly_elf *file);
/* The symbols of the ELF file at @path. Returns 0 or a negative errno value. */
int tly_dso_load_elf(struct tally_dso *dso, const char *path);
/* Sets the sentences that say why a dso lacks symbols and what to change: a literal, or NULL. */
void tly_dso_problem(struct tally_dso *dso, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* kernel.c */
void tly_dso_load_kernel(struct tally_dso *dso);
void tly_dso_load_module(struct tally_dso *dso);
/* Reads kallsyms unless that was done. Returns 0 or a negative errno value. */
int tly_kallsyms_read(struct tally_symbols *symbols);
void tly_kallsyms_free(struct tly_kallsyms *kallsyms);
/* The build-id of the running kernel. */
void tly_kernel_build_id(struct tly_build_id *build_id);
/* Calls @each for every loaded module until it returns non-zero; returns that or 0. */
int tly_kernel_modules(const struct tally_symbols *symbols,
		       int (*each)(const char *name, uint64_t start, uint64_t size, void *arg),
		       void *arg);

/* jit.c */
void tly_dso_load_jit(struct tally_dso *dso);
/* Reads the map again when it changed since; true when it did. */
bool tly_dso_refresh_jit(struct tally_dso *dso);
void tly_dso_free_jit(struct tally_dso *dso);

/* debugfile.c: a file to be freed that holds what was split off from @elf, or NULL. */
char *tly_debug_file(const struct tally_dso *dso, Elf *elf);

#endif
