/* SPDX-License-Identifier: MIT */
/*
 * The segment register whose base points at a thread's struct thread. It is GS, which programs
 * leave alone; FS is theirs. Where a sandbox does not let anybody have GS (gVisor), it is FS: the
 * base that the program has set is a number then (thread->fs_base), and operands that go by it are
 * translated (translate/own_fs.c).
 *
 * The runtime's own instructions are assembled for GS, and each says where it is: SEGMENT_SITE in
 * C, `own` in translate/enter.S. To have FS their prefixes are changed.
 */
#ifndef RUNTIME_SEGMENT_H
#define RUNTIME_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

enum { SEGMENT_GS = 0x65, SEGMENT_FS = 0x64 };

/* The prefix of instructions. */
extern uint8_t segment_prefix;

static inline bool segment_is_fs(void)
{
	return segment_prefix == SEGMENT_FS;
}

/* Chooses, before anything is translated and before there is a thread. False: there is neither. */
bool segment_boot(void);

/* The base, of the calling thread. */
void segment_set(uint64_t base);

/* The thread goes on natively: what the program knows of is @fs_base. */
void segment_give_back(uint64_t fs_base);

/* Before an instruction whose first byte is the prefix. */
#define SEGMENT_SITE                                                                               \
	"771:	.pushsection segment_sites, \"a\", @progbits\n"                                      \
	"	.balign	4\n"                                                                             \
	"	.long	771b - .\n"                                                                        \
	"	.popsection\n"

#endif
