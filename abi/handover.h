/* SPDX-License-Identifier: MIT */
/*
 * What one image of a tally run hands to the next through execve(2), as the last string of its
 * environment; the program never sees it:
 *
 *	TALLY_RUN=VERSION,ARENA,MONITOR,RUNTIME,PROGRAM,PAGE,CONFINED,FIXED,FILENAME
 *
 * ARENA, MONITOR, RUNTIME and PROGRAM are descriptors: the memory that the tree shares, the socket
 * to who looks after it (abi/control.h), tally-rt itself (for the next exec, where there is no
 * /proc), and the file that is to run. PAGE is the page of the arena that the thread has, with its
 * incarnation (abi/arena.h: ARENA_OWNER), 0 when it has none, and HANDOVER_PAGES: the program's
 * stack begins below this text, which has as many digits whatever page it is. CONFINED is 1 once the
 * program has set itself a filter of system calls, which it keeps; FIXED, where addresses are not to
 * be random. FILENAME is what execve(2) was
 * given; it comes last, so that a pointer to it serves as AT_EXECFN. With PROGRAM -1 nothing has been
 * looked at yet: FILENAME is to be executed with all that belongs to it. `tally run` starts its
 * command that way.
 */
#ifndef ABI_HANDOVER_H
#define ABI_HANDOVER_H

#define HANDOVER_NAME "TALLY_RUN="

/* Changes with the meaning of any of it; tally and tally-rt must be of one build. */
#define HANDOVER_VERSION 5

#define HANDOVER_PAGES 4294967296UL

/*
 * The descriptors lie here when the limit on open files allows it, otherwise just below the limit:
 * out of the way of programs that count on getting low numbers.
 */
#define HANDOVER_DESCRIPTORS 1000

#endif
