/* SPDX-License-Identifier: MIT */
/*
 * From a sampled address to names: which file was mapped there, which function, inlined frames and
 * source line it is, and which calls led to it.
 *
 *	tally_symbols	all files (dsos) seen, each loaded once, on first use
 *	tally_machine	the processes of one recording: what was mapped where, and when
 *
 * A machine keeps every mapping with the time from which it held, so that a record can be resolved
 * in any order once the side-band records (MMAP, MMAP2, COMM, FORK, EXIT, KSYMBOL) have been fed:
 * feeding in time order is not needed and reading the samples needs no sort.
 *
 * An object and those made from it are used by one thread at a time. Strings stay valid until the
 * tally_symbols is freed.
 */
#ifndef TALLY_SYMBOL_H
#define TALLY_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/error.h>
#include <tally/record.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally_symbols;
struct tally_machine;
struct tally_dso;

struct tally_symbols_options {
	const char *symfs;     /* prefix for every file name, or NULL */
	const char *kallsyms;  /* NULL: /proc/kallsyms */
	const char *vmlinux;   /* or NULL */
	const char *debug_dir; /* NULL: /usr/lib/debug */
	bool no_demangle;
	bool no_debuginfod; /* default: used when DEBUGINFOD_URLS is set */
};

/* @options may be NULL. Returns NULL when memory is short. */
struct tally_symbols *tally_symbols_new(const struct tally_symbols_options *options);
void tally_symbols_free(struct tally_symbols *symbols);

/* Belongs to @symbols and is freed with it. Returns NULL when memory is short. */
struct tally_machine *tally_machine_new(struct tally_symbols *symbols);

/*
 * Takes in one side-band record; every other type is ignored. @time orders it among others of its
 * process: the record's own time, or its place in the stream when the recording has no times.
 * Returns 0 or -ENOMEM.
 */
int tally_machine_feed(struct tally_machine *machine, const struct tally_record *record,
		       uint64_t time);
/*
 * Takes in what /proc says of a live process, or of the kernel and its modules (@pid -1). Errors:
 * those of open(2) for its files; -EACCES the kernel's addresses are hidden from this user;
 * -ENOMEM.
 */
int tally_machine_feed_proc(struct tally_machine *machine, int pid, struct tally_error *err);
/*
 * Expects the file called @filename, where its mappings do not say themselves, to have this
 * build-id: no other is used for symbols. One that is empty or longer than 20 bytes is ignored.
 * Returns 0 or -ENOMEM.
 */
int tally_machine_build_id(struct tally_machine *machine, const char *filename,
			   const uint8_t *build_id, size_t size);

/* The name of thread @tid of @pid at @time; ":TID" when unknown. */
const char *tally_machine_comm(struct tally_machine *machine, uint32_t pid, uint32_t tid,
			       uint64_t time);

/*
 * A function, from a symbol table, kallsyms or a JIT's map. One function is one object: pointers
 * may be compared. C++ and Rust names are demangled, without their parameters.
 */
struct tally_symbol {
	const char *name;
	uint64_t start, end; /* addresses in the dso, end exclusive */
};

/* Where an address lies. dso and symbol are NULL where nothing is known. */
struct tally_location {
	struct tally_dso *dso;
	const struct tally_symbol *symbol;
	uint64_t address; /* in the dso: what addr2line(1) takes */
	char level; /* 'k' kernel, '.' user, 'H' hypervisor, 'g' guest kernel, 'u' guest user */
};

/*
 * Resolves @ip of process @pid at @time. @cpumode is PERF_RECORD_MISC_CPUMODE_MASK of a sample's
 * misc, or what the last PERF_CONTEXT_ marker of a call chain says. Always fills *@location.
 * Repeated look-ups of one (pid, ip) cost a hash probe.
 */
void tally_machine_resolve(struct tally_machine *machine, uint32_t pid, uint64_t time,
			   uint16_t cpumode, uint64_t ip, struct tally_location *location);

const char *tally_dso_name(const struct tally_dso *dso); /* "/usr/bin/ls", "[kernel.kallsyms]" */
const char *tally_dso_short_name(const struct tally_dso *dso); /* "ls", "[kernel]" */
/*
 * Why it has no names, or not all of them, as a sentence without a full stop ("the file has changed
 * since the recording (...)"); NULL when nothing is wrong. Loads the file.
 */
const char *tally_dso_problem(struct tally_dso *dso);
/* What to change about the problem; NULL when there is none, or nothing can be done. */
const char *tally_dso_remedy(struct tally_dso *dso);
/* Copies the build-id; returns its size, 0 when there is none. */
size_t tally_dso_build_id(struct tally_dso *dso, uint8_t build_id[20]);

/*
 * Reads the build-id of an ELF file, or of a section of notes as sysfs has it
 * ("/sys/kernel/notes"), and of nothing else in it. Returns its size, at most 20: of a longer one
 * the beginning; 0 when there is none or @path cannot be read.
 */
size_t tally_build_id_read(const char *path, uint8_t build_id[20]);

/* One frame of the source at an address: inlined functions innermost first, the real one last. */
struct tally_source_frame {
	const char *function; /* demangled; the real one's is its symbol. NULL: unknown */
	const char *file;     /* NULL: unknown */
	unsigned int line;    /* 0: unknown */
	bool inlined;
};

/*
 * The source frames at @address of @dso, from DWARF; for a caller's return address, ask for one
 * less. Returns how many there are, storing at most @max; 0 when the file has no debug information
 * for it. The first call for a file reads where its compilation units are, each unit is read when
 * it is first asked for, and all that was read is bounded: beyond 512 MB units are read again.
 */
size_t tally_dso_source(struct tally_dso *dso, uint64_t address, struct tally_source_frame *frames,
			size_t max);

/*
 * Unwinds the user stack of a sample that has REGS_USER and STACK_USER by DWARF call frame
 * information, by frame pointers where there is none; x86-64 programs only. Stores the addresses
 * leaf first, at most @max, and returns how many. As in a CALLCHAIN, all but the first are return
 * addresses: the call itself is one below. *@truncated (may be NULL) says that the copied stack
 * ended before the outermost frame.
 */
size_t tally_machine_unwind(struct tally_machine *machine, uint32_t pid, uint64_t time,
			    const struct tally_sample *sample, uint64_t *ips, size_t max,
			    bool *truncated);

#ifdef __cplusplus
}
#endif

#endif
