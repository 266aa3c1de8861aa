// SPDX-License-Identifier: MIT
/*
 * A recording's processes.
 *
 * The space of a process holds every mapping it ever had. Its epochs say which of them count at a
 * given time: those made since the last exec or fork before it, and after a fork, where the process
 * has mapped nothing itself, what its parent had at the moment of the fork. So a fork copies
 * nothing, and the order in which records are fed does not matter.
 *
 * A resolved address is kept together with the span of time over which the answer is the same, so
 * that a cache of (pid, ip) serves a whole recording.
 */
#include "lib/symbol/machine.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/symbol/dso.h"

/* A power of two. A table of pairs: what falls into a full pair takes the older one's place. */
#define NR_LOOKUPS ((size_t)1 << 16)
#define CACHE_LINE 64

/* A chain of forks this long in which nobody mapped anything is made up. */
#define MAX_FORKS 1024

/* One cache line. */
struct tly_lookup {
	uint64_t ip;
	uint64_t from, until; /* times at which this is the answer; until is exclusive */
	struct tally_dso *dso;
	const struct tally_symbol *symbol;
	uint64_t address;
	uint32_t pid;
	uint32_t generation; /* 0: free */
	uint16_t cpumode;
} __attribute__((aligned(CACHE_LINE)));

static const struct tly_moment always = {UINT64_MAX, UINT64_MAX};

struct tally_machine *tally_machine_new(struct tally_symbols *symbols)
{
	struct tally_machine *machine = calloc(1, sizeof(*machine));

	if (!machine)
		return NULL;
	/* calloc() does not touch the pages of a table that a short recording never fills. */
	machine->memory = calloc(NR_LOOKUPS * sizeof(*machine->lookups) + CACHE_LINE, 1);
	if (!machine->memory) {
		free(machine);
		return NULL;
	}
	machine->lookups = (void *)(((uintptr_t)machine->memory + CACHE_LINE - 1) &
				    ~(uintptr_t)(CACHE_LINE - 1));
	machine->generation = 1;
	machine->symbols = symbols;
	machine->comms.strings = &symbols->strings;
	machine->next = symbols->machines;
	symbols->machines = machine;
	return machine;
}

void tly_machines_free(struct tally_machine *machine)
{
	struct tally_machine *next;

	for (; machine; machine = next) {
		next = machine->next;
		for (size_t i = 0; i < machine->processes.size; i++) {
			struct tly_process *process = machine->processes.entries[i].value;

			if (!process)
				continue;
			tly_space_free(&process->space);
			free(process->epochs);
			free(process);
		}
		free(machine->processes.entries);
		tly_comms_free(&machine->comms);
		free(machine->memory);
		free(machine->rules);
		free(machine);
	}
}

static struct tly_process *get_process(struct tally_machine *machine, uint32_t pid)
{
	struct tly_process *process = tly_idmap_get(&machine->processes, pid);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (process && tly_idmap_add(&machine->processes, pid, process)) {
		free(process);
		process = NULL;
	}
	return process;
}

/* Makes all that was resolved before invalid. */
static void new_generation(struct tally_machine *machine)
{
	if (++machine->generation)
		return;
	/* After 2^32 of them, those of the first would be taken for new. */
	memset(machine->lookups, 0, NR_LOOKUPS * sizeof(*machine->lookups));
	machine->generation = 1;
}

static int add_epoch(struct tally_machine *machine, uint32_t pid, const struct tly_epoch *epoch)
{
	struct tly_process *process = get_process(machine, pid);
	size_t at;

	if (!process)
		return -ENOMEM;
	if (process->nr_epochs == process->size_epochs) {
		size_t size = process->size_epochs ? process->size_epochs * 2 : 2;
		struct tly_epoch *epochs = reallocarray(process->epochs, size, sizeof(*epochs));

		if (!epochs)
			return -ENOMEM;
		process->epochs = epochs;
		process->size_epochs = size;
	}
	for (at = process->nr_epochs;
	     at && tly_moment_before(epoch->since, process->epochs[at - 1].since);)
		at--;
	memmove(&process->epochs[at + 1], &process->epochs[at],
		(process->nr_epochs - at) * sizeof(*epoch));
	process->epochs[at] = *epoch;
	process->nr_epochs++;
	new_generation(machine);
	return 0;
}

int tly_machine_map(struct tally_machine *machine, uint32_t pid, struct tly_map *map, uint64_t time)
{
	struct tly_process *process = get_process(machine, pid);

	if (!process)
		return -ENOMEM;
	map->since = (struct tly_moment){time, machine->order++};
	new_generation(machine);
	return tly_space_add(&process->space, map);
}

int tly_machine_map_user(struct tally_machine *machine, uint32_t pid, const char *filename,
			 const struct tly_build_id *build_id, struct tly_map *map, uint64_t time)
{
	map->dso = tly_dso_of_mapping(machine->symbols, filename, build_id, pid);
	if (!map->dso)
		return -ENOMEM;
	map->addressing = map->dso->kind == TLY_DSO_FILE || map->dso->kind == TLY_DSO_VDSO
				  ? TLY_BY_FILE
				  : TLY_BY_IDENTITY;
	return tly_machine_map(machine, pid, map, time);
}

int tly_machine_map_kernel(struct tally_machine *machine, const char *filename,
			   const struct tly_build_id *build_id, struct tly_map *map, uint64_t time)
{
	static const char kernel[] = "[kernel.kallsyms]";
	enum tly_dso_kind kind = TLY_DSO_MODULE;

	map->addressing = TLY_BY_START;
	if (!strncmp(filename, kernel, sizeof(kernel) - 1)) {
		const char *reference = filename + sizeof(kernel) - 1;

		kind = TLY_DSO_KERNEL;
		map->addressing = !map->pgoff			 ? TLY_BY_IDENTITY
				  : !strcmp(reference, "_text")	 ? TLY_BY_TEXT
				  : !strcmp(reference, "_stext") ? TLY_BY_STEXT
								 : TLY_BY_IDENTITY;
		filename = kernel;
	}
	map->dso = tly_dso_get(machine->symbols, filename, kind, build_id, TLY_KERNEL_PID);
	if (!map->dso)
		return -ENOMEM;
	return tly_machine_map(machine, TLY_KERNEL_PID, map, time);
}

static int feed_mmap(struct tally_machine *machine, const struct tally_record *record,
		     uint64_t time)
{
	const struct tally_mmap *mmap = &record->mmap;
	struct tly_map map = {.start = mmap->start, .pgoff = mmap->pgoff};
	struct tly_build_id id = {0};

	if (__builtin_add_overflow(mmap->start, mmap->len, &map.end))
		map.end = UINT64_MAX;
	if (mmap->has_build_id && mmap->build_id_size <= TLY_BUILD_ID_MAX) {
		id.size = mmap->build_id_size;
		memcpy(id.bytes, mmap->build_id, id.size);
	}
	switch (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return tly_machine_map_kernel(machine, mmap->filename, &id, &map, time);
	case PERF_RECORD_MISC_GUEST_KERNEL:
	case PERF_RECORD_MISC_GUEST_USER:
	case PERF_RECORD_MISC_HYPERVISOR:
		return 0;
	default:
		return tly_machine_map_user(machine, mmap->pid, mmap->filename, &id, &map, time);
	}
}

static int feed_comm(struct tally_machine *machine, const struct tally_record *record,
		     uint64_t time)
{
	struct tly_moment now = {time, machine->order++};
	struct tly_epoch epoch = {.since = now};
	int ret = tly_comms_name(&machine->comms, record->comm.tid, record->comm.comm, now);

	if (!ret && record->misc & PERF_RECORD_MISC_COMM_EXEC)
		ret = add_epoch(machine, record->comm.pid, &epoch);
	return ret;
}

static int feed_fork(struct tally_machine *machine, const struct tally_record *record,
		     uint64_t time)
{
	struct tly_moment now = {time, machine->order++};
	struct tly_epoch epoch = {.since = now, .parent = record->task.ppid, .forked = true};
	int ret = tly_comms_fork(&machine->comms, record->task.tid, record->task.ptid, now);

	/* A new thread shares the space of its process. */
	if (!ret && record->task.pid != record->task.ppid)
		ret = add_epoch(machine, record->task.pid, &epoch);
	return ret;
}

static int feed_ksymbol(struct tally_machine *machine, const struct tally_record *record,
			uint64_t time)
{
	struct tly_map map = {.start = record->ksymbol.addr, .addressing = TLY_BY_START};
	struct tally_dso *dso;
	int ret;

	if (__builtin_add_overflow(map.start, record->ksymbol.len, &map.end))
		return 0;
	if (record->ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		return tly_machine_map(machine, TLY_KERNEL_PID, &map, time);
	dso = tly_dso_get(machine->symbols, record->ksymbol.name, TLY_DSO_KSYMBOL, NULL,
			  TLY_KERNEL_PID);
	if (!dso)
		return -ENOMEM;
	if (!dso->loaded && dso->kind == TLY_DSO_KSYMBOL) {
		/* Its one symbol is itself; addresses are relative to each place that it was at. */
		ret = tly_symtab_add(dso->symtab, 0, UINT64_MAX, dso->name, TLY_GLOBAL);
		if (!ret)
			ret = tly_symtab_finish(dso->symtab, &machine->symbols->strings);
		if (ret)
			return ret;
		dso->loaded = true;
	}
	map.dso = dso;
	return tly_machine_map(machine, TLY_KERNEL_PID, &map, time);
}

int tally_machine_feed(struct tally_machine *machine, const struct tally_record *record,
		       uint64_t time)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return feed_mmap(machine, record, time);
	case PERF_RECORD_COMM:
		return feed_comm(machine, record, time);
	case PERF_RECORD_FORK:
		return feed_fork(machine, record, time);
	case PERF_RECORD_KSYMBOL:
		return feed_ksymbol(machine, record, time);
	default:
		return 0;
	}
}

int tally_machine_build_id(struct tally_machine *machine, const char *filename,
			   const uint8_t *build_id, size_t size)
{
	struct tly_build_id id = {.size = size};
	enum tly_dso_kind kind = TLY_DSO_FILE;

	if (!size || size > TLY_BUILD_ID_MAX)
		return 0;
	memcpy(id.bytes, build_id, size);
	if (!strcmp(filename, "[kernel.kallsyms]"))
		kind = TLY_DSO_KERNEL;
	else if (!strcmp(filename, "[vdso]"))
		kind = TLY_DSO_VDSO;
	else if (filename[0] == '[' || strstr(filename, ".ko"))
		kind = TLY_DSO_MODULE;
	return tly_dso_get(machine->symbols, filename, kind, &id, 0) ? 0 : -ENOMEM;
}

const char *tally_machine_comm(struct tally_machine *machine, uint32_t pid, uint32_t tid,
			       uint64_t time)
{
	const char *comm = tly_comms_find(&machine->comms, tid, time);
	char text[16];

	/* A thread that was never named goes by its process. */
	if (!comm && pid != tid)
		comm = tly_comms_find(&machine->comms, pid, time);
	if (comm)
		return comm;
	if (!tid)
		return "swapper";
	snprintf(text, sizeof(text), ":%u", tid);
	comm = tly_strings_intern(&machine->symbols->strings, text);
	return comm ? comm : ":?";
}

/* A mapping and the span of time in which it is the one. */
struct found {
	const struct tly_map *map;
	uint64_t from, until;
};

/* How many epochs have begun by @time. */
static size_t epochs_by(const struct tly_process *process, uint64_t time)
{
	size_t low = 0, nr = process->nr_epochs;

	while (nr) {
		size_t half = nr / 2;

		if (process->epochs[low + half].since.time <= time) {
			low += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	return low;
}

static struct found find_map(struct tally_machine *machine, uint32_t pid, uint64_t time,
			     uint64_t ip)
{
	struct found found = {.from = 0, .until = UINT64_MAX};
	const struct tly_map *later = NULL;
	size_t most = SIZE_MAX;
	bool executed = false;

	for (int lives = 0; lives < MAX_FORKS; lives++) {
		struct tly_process *process = tly_idmap_get(&machine->processes, pid);
		struct tly_epoch epoch = {0};
		struct tly_moment until = always;
		struct tly_space_result result;
		size_t nr;

		if (!process)
			break;
		nr = epochs_by(process, time);
		if (nr > most)
			nr = most;
		if (nr)
			epoch = process->epochs[nr - 1];
		if (nr < process->nr_epochs)
			until = process->epochs[nr].since;
		result = tly_space_find(&process->space, ip, time, epoch.since, until);
		if (!lives) {
			found.from = result.map ? result.map->since.time : epoch.since.time;
			found.until = result.next ? result.next->since.time : until.time;
		}
		found.map = result.map;
		if (!later)
			later = result.next;
		if (found.map || !nr || (executed && !epoch.forked))
			break;
		/*
		 * What a process has not mapped itself its parent had; and while execve() is under
		 * way, the call to it is still where the old program was.
		 */
		if (epoch.forked) {
			pid = epoch.parent;
			most = SIZE_MAX;
		} else {
			most = nr - 1;
			executed = true;
		}
		time = epoch.since.time;
	}
	/*
	 * Without times in the recording, records of several buffers are not quite in order and a
	 * sample may come before the mapping it hit.
	 */
	if (!found.map)
		found.map = later;
	return found;
}

const struct tly_map *tly_machine_find_user(struct tally_machine *machine, uint32_t pid,
					    uint64_t time, uint64_t ip)
{
	const struct tly_map *map = find_map(machine, pid, time, ip).map;

	return map && map->dso ? map : NULL;
}

bool tly_map_address(const struct tly_map *map, uint64_t ip, uint64_t *address)
{
	struct tally_dso *dso = map->dso;
	uint64_t reference;

	tly_dso_load(dso);
	switch (map->addressing) {
	case TLY_BY_IDENTITY:
		*address = ip;
		return true;
	case TLY_BY_START:
		*address = ip - map->start;
		return true;
	case TLY_BY_TEXT:
	case TLY_BY_STEXT:
		reference = map->addressing == TLY_BY_TEXT ? dso->text : dso->stext;
		*address = reference ? ip - map->pgoff + reference : ip;
		return true;
	case TLY_BY_FILE:
		break;
	}
	*address = ip - map->start + map->pgoff;
	return tly_elf_address(dso->segments, dso->nr_segments, *address, address);
}

static void fill(struct tly_lookup *lookup, const struct tly_map *map)
{
	lookup->dso = map->dso;
	if (tly_map_address(map, lookup->ip, &lookup->address))
		lookup->symbol = tly_dso_find(map->dso, lookup->address);
}

/* Code outside every kernel mapping of the recording: made at run time and known to kallsyms. */
static void fill_kernel(struct tally_machine *machine, struct tly_lookup *lookup)
{
	struct tally_dso *dso = tly_dso_get(machine->symbols, "[kernel.kallsyms]", TLY_DSO_KERNEL,
					    NULL, TLY_KERNEL_PID);

	if (!dso)
		return;
	lookup->symbol = tly_dso_find(dso, lookup->ip);
	if (lookup->symbol)
		lookup->dso = dso;
}

static char level_of(uint16_t cpumode)
{
	switch (cpumode) {
	case PERF_RECORD_MISC_KERNEL:
		return 'k';
	case PERF_RECORD_MISC_HYPERVISOR:
		return 'H';
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return 'g';
	case PERF_RECORD_MISC_GUEST_USER:
		return 'u';
	default:
		return '.';
	}
}

static void resolve(struct tally_machine *machine, struct tly_lookup *lookup, uint64_t time)
{
	struct found found;

	lookup->dso = NULL;
	lookup->symbol = NULL;
	lookup->address = lookup->ip;
	lookup->from = 0;
	lookup->until = UINT64_MAX;
	if (lookup->cpumode != PERF_RECORD_MISC_KERNEL && lookup->cpumode != PERF_RECORD_MISC_USER)
		return;
	found = find_map(machine, lookup->pid, time, lookup->ip);
	lookup->from = found.from;
	lookup->until = found.until;
	if (found.map) {
		if (found.map->dso)
			fill(lookup, found.map);
	} else if (lookup->cpumode == PERF_RECORD_MISC_KERNEL) {
		fill_kernel(machine, lookup);
	}
}

/* Whether a map file that is still being written may name it later. */
static bool may_change(const struct tly_lookup *lookup)
{
	return !lookup->symbol && lookup->dso && lookup->dso->kind == TLY_DSO_JIT &&
	       !lookup->dso->problem;
}

/* The upper half of the addresses is the kernel's. */
static bool is_kernel_address(uint64_t ip)
{
	return ip >> 63;
}

static bool is_answer(const struct tly_lookup *lookup, const struct tally_machine *machine,
		      uint32_t pid, uint64_t time, uint16_t cpumode, uint64_t ip)
{
	return lookup->ip == ip && lookup->pid == pid &&
	       lookup->generation == machine->generation && lookup->cpumode == cpumode &&
	       time >= lookup->from && time < lookup->until;
}

void tally_machine_resolve(struct tally_machine *machine, uint32_t pid, uint64_t time,
			   uint16_t cpumode, uint64_t ip, struct tally_location *location)
{
	struct tly_lookup *lookup;
	uint64_t hash;

	if (cpumode == PERF_RECORD_MISC_CPUMODE_UNKNOWN)
		cpumode = is_kernel_address(ip) ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	if (cpumode == PERF_RECORD_MISC_KERNEL) {
		pid = TLY_KERNEL_PID;
		if (!machine->asked_kernel) {
			machine->asked_kernel = true;
			if (!tly_idmap_get(&machine->processes, pid))
				tally_machine_feed_proc(machine, -1, NULL);
		}
	}
	hash = (ip ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15;
	lookup = &machine->lookups[hash >> 32 & (NR_LOOKUPS - 2)];
	if (!is_answer(lookup, machine, pid, time, cpumode, ip)) {
		if (is_answer(lookup + 1, machine, pid, time, cpumode, ip)) {
			lookup++;
		} else {
			lookup[1] = lookup[0];
			lookup->ip = ip;
			lookup->pid = pid;
			lookup->cpumode = cpumode;
			resolve(machine, lookup, time);
			lookup->generation = may_change(lookup) ? 0 : machine->generation;
		}
	}
	location->dso = lookup->dso;
	location->symbol = lookup->symbol;
	location->address = lookup->address;
	location->level = level_of(cpumode);
}
