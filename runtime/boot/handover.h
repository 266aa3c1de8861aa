/* SPDX-License-Identifier: MIT */
/*
 * What the image before has handed over (abi/handover.h). It comes through the environment, which
 * anybody can write: nothing in it is believed for its being there.
 */
#ifndef RUNTIME_BOOT_HANDOVER_H
#define RUNTIME_BOOT_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/descriptors.h"

struct handover {
	struct descriptors descriptors;
	uint32_t owner; /* of the thread's page in the arena; 0: it has none */
	bool confined, fixed;
	const char *filename; /* within the text */
};

/*
 * Reads @text, what follows TALLY_RUN=. Returns NULL, or what is wrong with it, for people: then
 * tally-rt was started by no tally, or by that of another build.
 */
const char *handover_read(struct handover *handover, const char *text);

#endif
