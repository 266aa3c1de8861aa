/* SPDX-License-Identifier: MIT */
/* The small files and the folders of /proc, /sys and tracefs. */
#ifndef LIB_READFILE_H
#define LIB_READFILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads a small file into @buf, terminated, without trailing white space. Returns its length or a
 * negative errno; -EFBIG when it does not fit.
 */
ssize_t tly_read_file(const char *path, char *buf, size_t size);

/* The same, for a file that holds one decimal or 0x number. */
int tly_read_number(const char *path, uint64_t *value);

/* The same for a setting, which may be below 0; @absent when there is none to be read. */
long tly_read_setting(const char *path, long absent);

/*
 * The names in a directory but . and .., sorted, in one allocation to be freed with free();
 * returns how many, or a negative errno.
 */
ssize_t tly_read_folder(const char *path, char ***names);

#endif
