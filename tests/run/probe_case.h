/* SPDX-License-Identifier: MIT */
/* Probes of functions of the program itself, through the unit `uprobe`, as cases place them. */
#ifndef TESTS_RUN_PROBE_CASE_H
#define TESTS_RUN_PROBE_CASE_H

#include "event_case.h"

typedef int function(int);

enum { ENTRY, RETURN }; /* bit 0 of config: retprobe */

extern char own_path[4096]; /* once a probe() has been made */

/* To be called, and to be seen doing so; and another one, often. */
int called(int n);
void call(function *code, int times);

/* In the program's file. */
uint64_t offset_of(const void *code);

/* Where there is no such unit the case ends. */
struct perf_event_attr probe_in(const char *path, uint64_t offset);
struct perf_event_attr probe(function *code, int when);

void say_count(const char *what, int fd);
void enable(int fd);

#endif
