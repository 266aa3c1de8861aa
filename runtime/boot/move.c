// SPDX-License-Identifier: MIT
/*
 * The kernel maps tally-rt, as it does interpreters, at the top of where it will put what the
 * program maps. There a hole is left, and nothing of ours, so that what we are decides nothing
 * there.
 *
 * Nothing here may use an address that is itself to be relocated; and variables stay, whatever they
 * are changed to.
 */
#include "runtime/boot/move.h"

#include <asm/mman.h>
#include <linux/elf.h>
#include <linux/mman.h>
#include <stdbool.h>

#include "runtime/boot/handover.h"
#include "runtime/boot/stack.h"
#include "runtime/linux/apart.h"
#include "runtime/linux/aslr.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/thread_slots.h"
#include "runtime/string.h"
#include "runtime/sys.h"

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static uint64_t size(void)
{
	return PAGE_UP(_end) - (uint64_t)&__ehdr_start;
}

static bool map_segment(const Elf64_Phdr *segment, uint64_t base, int fd)
{
	const uint64_t start = PAGE_DOWN(base + segment->p_vaddr);
	const uint64_t file_end = base + segment->p_vaddr + segment->p_filesz;
	const uint64_t prot = PROT_READ | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
			      (segment->p_flags & PF_X ? PROT_EXEC : 0);
	/* Each address in the data is about to be changed; of the code only a part may be
	 * needed. */
	const uint64_t populate = segment->p_flags & PF_W ? MAP_POPULATE : 0;

	if (sys_failed(sys(__NR_mmap, start, PAGE_UP(file_end) - start, prot,
			   MAP_PRIVATE | MAP_FIXED | populate, fd, PAGE_DOWN(segment->p_offset))))
		return false;
	if (segment->p_flags & PF_W)
		memset((void *)file_end, 0, PAGE_UP(file_end) - file_end);
	return true;
}

/* What is small of the variables that no file fills lies at the end, in pages. */
#define SMALL (2 * PAGE)

/* What is needed for sure of the memory that no file fills: the first thread's slot, and small
 * variables. */
static void populate(uint64_t distance)
{
	const uint64_t slot = (uint64_t)slot_first + distance;

	sys(__NR_madvise, slot, SLOT_HEAD, MADV_POPULATE_WRITE);
	sys(__NR_madvise, slot + SLOT_SIZE - BOOT_STACK, BOOT_STACK, MADV_POPULATE_WRITE);
	sys(__NR_madvise, PAGE_UP(_end) - SMALL + distance, SMALL, MADV_POPULATE_WRITE);
}

static bool map(uint64_t base, int fd)
{
	const Elf64_Phdr *segments =
		(const Elf64_Phdr *)((uint64_t)&__ehdr_start + __ehdr_start.e_phoff);

	for (unsigned int i = 0; i < __ehdr_start.e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && !map_segment(&segments[i], base, fd))
			return false;
	return true;
}

uint64_t move(uint64_t *top)
{
	const struct stack_glance stack = stack_glance(top);
	struct handover handover;
	uint64_t base;
	int64_t result;

	if (!stack.name || handover_read(&handover, stack.handover))
		return 0;
	aslr_boot(stack.name, handover.fixed);
	base = apart_start();
	result = sys(__NR_mmap, base, size(), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (sys_failed(result))
		return 0;
	/* Kernels before 4.17 take the address for a hint. */
	base = (uint64_t)result;
	if (!map(base, handover.descriptors.runtime)) {
		sys(__NR_munmap, base, size());
		return 0;
	}
	populate(base - (uint64_t)&__ehdr_start);
	return base - (uint64_t)&__ehdr_start;
}

void move_end(uint64_t distance)
{
	if (!distance)
		return;
	sys(__NR_munmap, (uint64_t)&__ehdr_start - distance, size());
	apart_boot((uint64_t)&__ehdr_start + size());
}
