/* SPDX-License-Identifier: MIT */
#ifndef TESTS_RUN_BY_FS_H
#define TESTS_RUN_BY_FS_H

/*
 * A load from the base of FS, which is set before each: to @first, and @step on up to @end. What is at the
 * base of the C library's FS is its address.
 */
void load_by_fs(const void *first, const void *end, unsigned long step);

/* Two loads of what is at @at: from the base of FS, which is set to it, and with another base, after
 * the register was loaded with what it had. */
void load_by_selector(const void *at);

#endif
