/* SPDX-License-Identifier: MIT */
/*
 * Where code stops before an instruction, since somebody wants to know that it is executed: the
 * places of breakpoints on instructions, of probes, and where functions return to that have a
 * probe. Code with CORE_EXTRA_STOPS is cut there, and what begins there is nothing but an exit
 * (EXIT_STOP); the instruction is then executed alone.
 *
 * One set for all threads and caches of the process, which only grows: a stop where nobody has a
 * breakpoint any more costs those who come there a look.
 */
#ifndef RUNTIME_TRANSLATE_STOPS_H
#define RUNTIME_TRANSLATE_STOPS_H

#include <stdbool.h>
#include <stdint.h>

/* With the translator's lock. */
bool stops_has(uint64_t pc);

#endif
