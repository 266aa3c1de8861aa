// SPDX-License-Identifier: MIT
/*
 * Follows the kernel's loader in what it accepts and how it maps it, so that a program finds the
 * same memory at the same distances. What it would refuse is IMAGE_UNKNOWN: it is asked itself
 * then.
 */
#include "runtime/boot/image.h"

#include <asm/mman.h>
#include <linux/mman.h>

#include "runtime/linux/memory.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* Of user space: no sum of an address and a size below it overflows. */
#define ADDRESS_MAX (1UL << 47)

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
	return sys(__NR_pread64, fd, to, size, offset) == (int64_t)size;
}

static enum image_kind classify(const Elf64_Ehdr *header)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG))
		return IMAGE_UNKNOWN;
	if (header->e_machine == EM_386 ||
	    (header->e_machine == EM_X86_64 && header->e_ident[EI_CLASS] == ELFCLASS32))
		return IMAGE_32_BIT;
	if (header->e_machine != EM_X86_64 ||
	    (header->e_type != ET_EXEC && header->e_type != ET_DYN) ||
	    header->e_phentsize != sizeof(Elf64_Phdr) || !header->e_phnum)
		return IMAGE_UNKNOWN;
	return header->e_phnum > IMAGE_HEADERS_MAX ? IMAGE_TOO_COMPLEX : IMAGE_GOOD;
}

/* Whether a segment can be mapped at all. */
static bool fits(const Elf64_Phdr *segment)
{
	return segment->p_vaddr < ADDRESS_MAX && segment->p_memsz < ADDRESS_MAX &&
	       segment->p_filesz <= segment->p_memsz && segment->p_offset < ADDRESS_MAX &&
	       segment->p_vaddr % PAGE == segment->p_offset % PAGE;
}

static bool power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static void extend(struct image *image, const Elf64_Phdr *segment)
{
	uint64_t start = PAGE_DOWN(segment->p_vaddr);
	uint64_t end = PAGE_UP(segment->p_vaddr + segment->p_memsz);

	image->low = start < image->low ? start : image->low;
	image->high = end > image->high ? end : image->high;
	if (power_of_two(segment->p_align) && segment->p_align > image->align &&
	    segment->p_align < ADDRESS_MAX)
		image->align = segment->p_align;
}

static enum image_kind measure(struct image *image)
{
	image->low = ADDRESS_MAX;
	image->align = PAGE;
	for (unsigned int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->headers[i];

		if (segment->p_type == PT_INTERP)
			image->has_interpreter = true;
		if (segment->p_type == PT_GNU_STACK)
			image->executable_stack = segment->p_flags & PF_X;
		if (segment->p_type == PT_LOAD) {
			if (!fits(segment))
				return IMAGE_UNKNOWN;
			extend(image, segment);
		}
	}
	return image->low < image->high ? IMAGE_GOOD : IMAGE_UNKNOWN;
}

enum image_kind image_read(struct image *image, int fd)
{
	enum image_kind kind;

	memset(image, 0, sizeof(*image));
	if (!read_at(fd, &image->header, sizeof(image->header), 0))
		return IMAGE_UNKNOWN;
	kind = classify(&image->header);
	if (kind != IMAGE_GOOD)
		return kind;
	if (!read_at(fd, image->headers, image->header.e_phnum * sizeof(Elf64_Phdr),
		     image->header.e_phoff))
		return IMAGE_UNKNOWN;
	return measure(image);
}

bool image_interpreter(const struct image *image, int fd, char *path, size_t size)
{
	for (unsigned int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->headers[i];

		if (segment->p_type == PT_INTERP)
			return segment->p_filesz >= 2 && segment->p_filesz <= size &&
			       read_at(fd, path, segment->p_filesz, segment->p_offset) &&
			       !path[segment->p_filesz - 1];
	}
	return false;
}

static uint64_t protection(const Elf64_Phdr *segment)
{
	return (segment->p_flags & PF_R ? PROT_READ : 0U) |
	       (segment->p_flags & PF_W ? PROT_WRITE : 0U) |
	       (segment->p_flags & PF_X ? PROT_EXEC : 0U);
}

static int64_t map(uint64_t start, uint64_t end, uint64_t prot, int fd, uint64_t offset)
{
	uint64_t flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
	int64_t result;

	if (start >= end)
		return 0;
	result = sys(__NR_mmap, start, end - start, memory_readable(prot), flags, fd, offset);
	if (sys_failed(result))
		return result;
	memory_add_file(start, end, (unsigned int)prot, fd, offset);
	return 0;
}

/*
 *	p_vaddr          + p_filesz                 + p_memsz
 *	| from the file  | zeroes to the page's end | zero pages
 */
static int64_t map_segment(const Elf64_Phdr *segment, int fd, uint64_t bias)
{
	uint64_t address = segment->p_vaddr + bias, prot = protection(segment);
	uint64_t start = PAGE_DOWN(address);
	uint64_t file_end = address + segment->p_filesz, end = address + segment->p_memsz;
	uint64_t file_pages = segment->p_filesz ? PAGE_UP(file_end) : start;
	int64_t error;

	error = map(start, file_pages, prot, fd, PAGE_DOWN(segment->p_offset));
	if (!error)
		error = map(file_pages, PAGE_UP(end), prot, -1, 0);
	if (!error && end > file_end && file_pages > file_end && prot & PROT_WRITE)
		memset((void *)file_end, 0, file_pages - file_end);
	return error;
}

/* Gives back what was reserved between the segments. */
static void unmap_holes(const struct image *image, uint64_t bias)
{
	uint64_t at = image->low;

	for (unsigned int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->headers[i];
		uint64_t start = PAGE_DOWN(segment->p_vaddr);
		uint64_t end = PAGE_UP(segment->p_vaddr + segment->p_memsz);

		if (segment->p_type != PT_LOAD)
			continue;
		if (start > at)
			sys(__NR_munmap, at + bias, start - at);
		at = end > at ? end : at;
	}
}

int64_t image_map(struct image *image, int fd, uint64_t bias)
{
	image->bias = bias;
	for (unsigned int i = 0; i < image->header.e_phnum; i++) {
		int64_t error = 0;

		if (image->headers[i].p_type == PT_LOAD)
			error = map_segment(&image->headers[i], fd, bias);
		if (error)
			return error;
	}
	unmap_holes(image, bias);
	return 0;
}

uint64_t image_headers_address(const struct image *image)
{
	uint64_t offset = image->header.e_phoff;

	for (unsigned int i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->headers[i];

		if (segment->p_type == PT_LOAD && segment->p_offset <= offset &&
		    offset - segment->p_offset < segment->p_filesz)
			return offset - segment->p_offset + segment->p_vaddr + image->bias;
	}
	return 0;
}
