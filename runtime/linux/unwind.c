// SPDX-License-Identifier: MIT
/*
 * Call chains. The kernel walks along frame pointers, which most programs have not; here there is
 * time to look at what compilers say of each function's frame (cfi.h), and frame pointers are for
 * code of which nothing is said. What was found is kept, as samples come from the same places again
 * and again: the rows of return addresses, and of files where their tables are.
 */
#include "runtime/linux/unwind.h"

#include <asm/perf_regs.h>
#include <elf.h>

#include "core/host.h"
#include "runtime/linux/cfi.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/linux/task.h"
#include "runtime/string.h"

enum { IMAGES = 32, PLACES = 256, HEADERS_MAX = 32 };

/* A mapping with code. */
struct image {
	uint64_t start, end;
	struct cfi_table table; /* nr 0: it has none */
};

struct place {
	uint64_t pc; /* 0: none */
	bool called, known;
	struct cfi_row row;
};

/* How often code has been taken away: what was found of it may not be true any more. */
static uint32_t changes;

struct unwinder {
	uint32_t known_changes; /* as of when it was found */
	uint32_t next;		/* image to be replaced */
	struct image images[IMAGES];
	struct place places[PLACES];
};

void unwind_forget(void)
{
	__atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED);
}

/* ---- images ---- */

/* The table of the ELF file that is mapped at @at. */
static bool table_of(uint64_t at, struct cfi_table *table)
{
	Elf64_Phdr headers[HEADERS_MAX], *frames = NULL;
	uint64_t bias = at;
	Elf64_Ehdr elf;

	if (!at || copy_in(&elf, at, sizeof(elf)) || memcmp(elf.e_ident, ELFMAG, SELFMAG) ||
	    elf.e_phentsize != sizeof(*headers) || elf.e_phnum > HEADERS_MAX ||
	    copy_in(headers, at + elf.e_phoff, elf.e_phnum * sizeof(*headers)))
		return false;
	for (unsigned int i = 0; i < elf.e_phnum; i++) {
		if (headers[i].p_type == PT_LOAD && !headers[i].p_offset)
			bias = at - headers[i].p_vaddr;
		if (headers[i].p_type == PT_GNU_EH_FRAME)
			frames = &headers[i];
	}
	return frames && cfi_table_at(table, bias + frames->p_vaddr);
}

/* The mapping around @pc; returns where its file is mapped from its first byte on, or 0. */
static uint64_t find_image(uint64_t pc, struct image *image)
{
	uint64_t first = 0, inode = 0, minor = 0;
	struct maps_reader reader;
	struct maps_entry entry;
	struct maps_file file;
	bool found = false;

	if (!maps_open(&reader))
		return 0;
	while (!found && maps_next(&reader, &entry, &file) && entry.start <= pc) {
		if (!file.offset && (file.inode || !strcmp(file.path, "[vdso]"))) {
			first = entry.start;
			inode = file.inode;
			minor = file.minor;
		}
		found = pc < entry.end;
	}
	maps_close(&reader);
	if (!found)
		return 0;
	image->start = entry.start;
	image->end = entry.end;
	return file.inode == inode && file.minor == minor ? first : 0;
}

static const struct image *new_image(struct unwinder *u, uint64_t pc)
{
	struct image *image = &u->images[u->next++ % IMAGES];
	*image = (struct image){.start = PAGE_DOWN(pc), .end = PAGE_DOWN(pc) + PAGE};
	if (!table_of(find_image(pc, image), &image->table))
		image->table.nr = 0;
	return image;
}

static const struct image *image_at(struct unwinder *u, uint64_t pc)
{
	for (unsigned int i = 0; i < IMAGES; i++)
		if (pc >= u->images[i].start && pc < u->images[i].end)
			return &u->images[i];
	return new_image(u, pc);
}

/* ---- places ---- */

static const struct place *place_of(struct unwinder *u, const struct cfi_frame *frame)
{
	const uint64_t pc = frame->reg[CFI_RIP];
	struct place *place = &u->places[(pc ^ pc >> 8) % PLACES];
	const struct image *image;

	if (place->pc == pc && place->called == frame->called)
		return place;
	image = image_at(u, pc);
	place->pc = pc;
	place->called = frame->called;
	place->known = image->table.nr && cfi_find(&image->table, frame, &place->row);
	return place;
}

/* ---- walking ---- */

/* Its own description does not say that a frame is complete: only one that lies up the stack may
 * be its caller's. */
static bool by_frame_pointer(struct cfi_frame *frame)
{
	const uint64_t at = frame->reg[CFI_RBP];
	uint64_t saved[2];

	if (at & 7 || at < frame->reg[CFI_RSP] || copy_in(saved, at, sizeof(saved)) || !saved[1])
		return false;
	frame->reg[CFI_RBP] = saved[0];
	frame->reg[CFI_RSP] = at + sizeof(saved);
	frame->reg[CFI_RIP] = saved[1];
	frame->called = true;
	return true;
}

static bool to_caller(struct unwinder *u, struct cfi_frame *frame)
{
	const struct place *place = place_of(u, frame);

	return place->known ? cfi_apply(&place->row, frame) : by_frame_pointer(frame);
}

/* Of the calling thread, true for the code that there is now; NULL: no memory. */
static struct unwinder *unwinder_now(void)
{
	struct task *task = task_self();
	const uint32_t now = __atomic_load_n(&changes, __ATOMIC_RELAXED);

	if (!task->unwinder)
		task->unwinder = memory_allocate(sizeof(struct unwinder), 0);
	if (task->unwinder && task->unwinder->known_changes != now) {
		memset(task->unwinder, 0, sizeof(*task->unwinder));
		task->unwinder->known_changes = now;
	}
	return task->unwinder;
}

static struct cfi_frame frame_of(const uint64_t regs[])
{
	static const uint8_t order[CFI_REGISTERS] = {
		PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,
		PERF_REG_X86_SI,  PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,
		PERF_REG_X86_R8,  PERF_REG_X86_R9,  PERF_REG_X86_R10, PERF_REG_X86_R11,
		PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15,
		PERF_REG_X86_IP,
	};
	struct cfi_frame frame = {.called = false};

	for (unsigned int i = 0; i < CFI_REGISTERS; i++)
		frame.reg[i] = regs[order[i]];
	return frame;
}

size_t core_host_callchain(const uint64_t regs[], uint64_t *to, size_t max)
{
	struct cfi_frame frame = frame_of(regs);
	struct unwinder *u = unwinder_now();
	size_t nr = 0;

	while (nr < max && (u ? to_caller(u, &frame) : by_frame_pointer(&frame)))
		to[nr++] = frame.reg[CFI_RIP];
	return nr;
}
