/* SPDX-License-Identifier: MIT */
#ifndef LIB_SYMBOL_MACHINE_H
#define LIB_SYMBOL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include <tally/symbol.h>

#include "lib/symbol/build_id.h"
#include "lib/symbol/comm.h"
#include "lib/symbol/elffile.h"
#include "lib/symbol/idmap.h"
#include "lib/symbol/space.h"

#define TLY_KERNEL_PID UINT32_MAX

/* The life of a process under one program: from its start, a fork or an exec up to the next. */
struct tly_epoch {
	struct tly_moment since;
	uint32_t parent; /* its mappings of that moment were inherited */
	bool forked;
};

struct tly_process {
	struct tly_space space;	  /* of all epochs */
	struct tly_epoch *epochs; /* in order of time; one at time 0 is implied */
	size_t nr_epochs, size_epochs;
};

struct tly_lookup;	 /* one slot of the cache of resolved addresses */
struct tly_cached_rules; /* and of that of unwind rules */

struct tally_machine {
	struct tally_machine *next; /* of the same tally_symbols */
	struct tally_symbols *symbols;
	struct tly_idmap processes; /* pid -> struct tly_process */
	struct tly_comms comms;
	uint64_t order;	     /* of the next event fed */
	uint32_t generation; /* of the mappings; what was resolved before is not used after */
	bool asked_kernel;   /* a recording without kernel mappings: those of /proc were taken */
	struct tly_lookup *lookups;
	void *memory; /* that lookups is aligned in */
	struct tly_cached_rules *rules;
};

void tly_machines_free(struct tally_machine *machine);

/* Adds a mapping; @dso may be NULL. Returns 0 or -ENOMEM. */
int tly_machine_map(struct tally_machine *machine, uint32_t pid, struct tly_map *map,
		    uint64_t time);
/* Adds a mapping of user space by the name that /proc/PID/maps or a record gives it. */
int tly_machine_map_user(struct tally_machine *machine, uint32_t pid, const char *filename,
			 const struct tly_build_id *build_id, struct tly_map *map, uint64_t time);
/* Adds the kernel itself or a module. */
int tly_machine_map_kernel(struct tally_machine *machine, const char *filename,
			   const struct tly_build_id *build_id, struct tly_map *map, uint64_t time);

/* The mapping of user space at @ip, or NULL. */
const struct tly_map *tly_machine_find_user(struct tally_machine *machine, uint32_t pid,
					    uint64_t time, uint64_t ip);
/* The address of @ip in the dso of @map; false when the file does not say. */
bool tly_map_address(const struct tly_map *map, uint64_t ip, uint64_t *address);

#endif
