/* SPDX-License-Identifier: MIT */
/*
 * The files that a process has mapped as code, so that another one can tell whether it has the
 * same: abi/store.h. With the translator locked.
 */
#ifndef RUNTIME_LINUX_CODE_FILES_H
#define RUNTIME_LINUX_CODE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/store.h"

enum { CODE_FILES_MAX = 128 };

/* Before that no file has a number. */
void code_files_boot(void);

/* CLOCK_REALTIME in nanoseconds. */
uint64_t code_files_now(void);

/* False: it is no regular file. */
bool code_file_identify(int fd, struct store_file *file);
bool code_file_same(const struct store_file *a, const struct store_file *b);

/* Whether it was not changed any more when the process began: else it may be changed once more in
 * the same tick of the file system's clock. */
bool code_file_is_settled(const struct store_file *file);

/* The number by which the map knows the file of @fd; 0: it cannot be told from others. */
uint32_t code_file_number(int fd);
const struct store_file *code_file(uint32_t number);
/* How many have one: those that get one later have higher ones. */
uint32_t code_files_known(void);
/* All of them, by number. */
void code_files_copy(struct store_file *to);

#endif
