/* SPDX-License-Identifier: MIT */
/* What the calls of a caller have in common. */
#ifndef TESTS_FUZZ_HOSTILE_CALLS_H
#define TESTS_FUZZ_HOSTILE_CALLS_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hostile.h"
#include "tests/conformance/draw.h"

enum { FDS = 32, MAPS = 16, KIDS = 4, PAGE = 4096, SCRATCH = 16 * PAGE };

extern int fds[FDS];
extern int epoll_fd;
extern pid_t kids[KIDS];

/* Memory for answers, with nothing behind it; pages that cannot be written, and code. */
extern char *scratch, *read_only;

/* Each thread has its own: what another one unmaps may be anything the next moment. */
struct mapping {
	char *at;
	size_t size;
	int fd;
};
extern _Thread_local struct mapping maps[MAPS];

/* Where a fault leads while a thread is poking at memory that may be none. */
extern _Thread_local sigjmp_buf back;
extern _Thread_local volatile bool poking;

/* ---- choices: hostile_calls.c ---- */

uint64_t any_number(void); /* of any magnitude */
int some_fd(void);
int any_fd(void);
/* Where @size bytes may be written, and if not, by nobody. */
void *any_pointer(size_t size);

/* ---- calls about events and their memory: hostile_events.c ---- */

void do_open(void);
void do_read(void);
void do_ioctl(void);
void do_map(void);
void do_map_aux(void);
void do_change_map(void);
void do_poke(void);
void do_rdpmc(void);

/* ---- about descriptors, which may be events: hostile_descriptors.c ---- */

void do_descriptor(void);
void send_fd(void);
void receive_fd(void);
void do_fcntl(void);
void do_other_calls(void);
void do_wait(void);

#endif
