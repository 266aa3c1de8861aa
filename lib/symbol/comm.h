/* SPDX-License-Identifier: MIT */
/* The names of threads over the whole recording. */
#ifndef LIB_SYMBOL_COMM_H
#define LIB_SYMBOL_COMM_H

#include <stdint.h>

#include "lib/symbol/idmap.h"
#include "lib/symbol/space.h"
#include "lib/symbol/strings.h"

struct tly_comms {
	struct tly_idmap threads; /* tid -> struct thread */
	struct tly_strings *strings;
	uint64_t generation; /* of what was fed: inherited names are looked up anew after each */
};

void tly_comms_free(struct tly_comms *comms);
/* From @since on, @tid is called @comm. Returns 0 or -ENOMEM. */
int tly_comms_name(struct tly_comms *comms, uint32_t tid, const char *comm,
		   struct tly_moment since);
/* From @since on, @tid is called what @parent was then. Returns 0 or -ENOMEM. */
int tly_comms_fork(struct tly_comms *comms, uint32_t tid, uint32_t parent, struct tly_moment since);
/* NULL when nothing is known. */
const char *tly_comms_find(struct tly_comms *comms, uint32_t tid, uint64_t time);

#endif
