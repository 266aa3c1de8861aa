/* SPDX-License-Identifier: MIT */
/* A program or its interpreter: its ELF headers, and how it gets into memory. */
#ifndef RUNTIME_BOOT_IMAGE_H
#define RUNTIME_BOOT_IMAGE_H

#include <linux/elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_HEADERS_MAX 64

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr headers[IMAGE_HEADERS_MAX];
	uint64_t low, high; /* what it takes up, by its own addresses, in whole pages */
	uint64_t align;
	bool has_interpreter;
	bool executable_stack; /* as PT_GNU_STACK wants it */
	uint64_t bias;	       /* once mapped: what to add to its own addresses */
};

enum image_kind {
	IMAGE_GOOD,
	IMAGE_32_BIT,
	IMAGE_TOO_COMPLEX, /* more program headers than fit */
	IMAGE_UNKNOWN,	   /* the kernel has to say what it is, if anything */
};

/* Reads the headers of the file @fd. */
enum image_kind image_read(struct image *image, int fd);

/* The path of the interpreter, zero-terminated; false if the file has none that is well-formed. */
bool image_interpreter(const struct image *image, int fd, char *path, size_t size);

/*
 * Maps the segments at their addresses plus @bias, where the caller has reserved everything from
 * low to high, and gives back what is between them. Tells the memory map. 0 or a negative errno
 * value.
 */
int64_t image_map(struct image *image, int fd, uint64_t bias);

/* Where the program headers are in memory, once mapped; 0 if no segment has them. */
uint64_t image_headers_address(const struct image *image);

#endif
