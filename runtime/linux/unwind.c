// SPDX-License-Identifier: MIT
/*
 * Call chains. The kernel walks along frame pointers, which most programs have not; here there is
 * time to look at what compilers say of each function's frame (cfi.h), and frame pointers are for
 * code of which nothing is said. What was found is kept, as samples come from the same places again
 * and again: of files where their tables are, and of places the rows. A row is true of a stretch of
 * code; it is looked for by the GRAIN bytes that a place is in, so it may be kept several times.
 */
#include "runtime/linux/unwind.h"

#include <asm/perf_regs.h>
#include <elf.h>
#include <linux/mman.h>

#include "core/host.h"
#include "runtime/linux/cfi_program.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc_maps.h"
#include "runtime/linux/task.h"
#include "runtime/string.h"

enum { IMAGES = 32, PLACES = 2048, ROWS = 64, GRAIN = 16, HEADERS_MAX = 32 };

/* A mapping, or what lies between two. */
struct image {
	uint64_t start, end;
	bool code;
	struct cfi_table table; /* nr 0: it has none */
};

/* What is known of a stretch of code. */
enum known {
	KNOWN_NOTHING, /* but, it may be, frame pointers */
	KNOWN_PLAIN,
	KNOWN_ROW, /* that is among the rows, unless another has taken its place */
	KNOWN_END, /* it has no caller */
};

struct place {
	uint64_t first;
	uint32_t size; /* 0: none */
	uint8_t known;
	struct cfi_plain plain;
};

_Static_assert(sizeof(struct place) == 32, "two in a line of the processor's cache");

/* How often code has been taken away, and come: what was found there may not be true any more. */
static uint32_t changes, additions;

struct unwinder {
	uint32_t known_changes, known_additions; /* as of when it was found */
	uint32_t next;				 /* image to be replaced, */
	uint32_t last;				 /* and the one that was asked for last */
	struct image images[IMAGES];
	struct place places[PLACES];
	struct cfi_row rows[ROWS];
};

void unwind_forget(void)
{
	__atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED);
}

void unwind_more(void)
{
	__atomic_fetch_add(&additions, 1, __ATOMIC_RELAXED);
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
	return frames ? cfi_table_at(table, bias + frames->p_vaddr)
		      : cfi_program_table(table, &elf, bias);
}

/* The mapping around @pc; returns where its file is mapped from its first byte on, or 0. */
static uint64_t find_image(uint64_t pc, struct image *image)
{
	uint64_t first = 0, inode = 0, minor = 0;
	struct maps_entry entry = {.end = 0};
	struct maps_reader reader;
	struct maps_file file;
	bool more = true;

	if (!maps_open(&reader))
		return 0;
	do {
		image->start = entry.end;
		more = maps_next(&reader, &entry, &file);
		if (more && !file.offset && (file.inode || !strcmp(file.path, "[vdso]"))) {
			first = entry.start;
			inode = file.inode;
			minor = file.minor;
		}
	} while (more && entry.end <= pc);
	maps_close(&reader);
	image->end = more ? entry.start : 0;
	if (!more || pc < entry.start)
		return 0;
	image->start = entry.start;
	image->end = entry.end;
	image->code = entry.prot & PROT_EXEC;
	return file.inode == inode && file.minor == minor ? first : 0;
}

static struct image *new_image(struct unwinder *u, uint64_t pc)
{
	struct image *image = &u->images[u->next++ % IMAGES];

	*image = (struct image){.start = pc, .end = pc + 1};
	if (!table_of(find_image(pc, image), &image->table))
		image->table.nr = 0;
	return image;
}

static bool is_in(uint64_t pc, uint64_t first, uint64_t size)
{
	return pc - first < size;
}

static struct image *image_at(struct unwinder *u, uint64_t pc)
{
	struct image *image = &u->images[u->last];

	for (unsigned int i = 0; !is_in(pc, image->start, image->end - image->start); i++)
		image = i < IMAGES ? &u->images[i] : new_image(u, pc);
	u->last = (uint32_t)(image - u->images);
	return image;
}

static void forget_gaps(struct unwinder *u)
{
	for (unsigned int i = 0; i < IMAGES; i++)
		if (!u->images[i].code)
			u->images[i] = (struct image){.start = 0};
}

/* ---- places ---- */

static uint64_t grain_of(uint64_t pc)
{
	const uint64_t grain = pc / GRAIN;

	return grain ^ grain >> 11;
}

/* Of @pc alone where what is said of a stretch cannot be. */
static void set_stretch(struct place *place, uint64_t pc, uint64_t first, uint64_t behind)
{
	const bool sound = first <= pc && pc < behind && behind - first <= UINT32_MAX;

	place->first = sound ? first : pc;
	place->size = sound ? (uint32_t)(behind - first) : 1;
}

static void look_up(struct unwinder *u, const struct cfi_frame *frame, struct place *place,
		    struct cfi_row *row)
{
	const uint64_t pc = cfi_place(frame);
	struct image *image = image_at(u, pc);

	if (!image->code) {
		place->size = 0;
		place->known = KNOWN_NOTHING;
	} else if (!image->table.nr) {
		set_stretch(place, pc, image->start, image->end);
		place->known = KNOWN_NOTHING;
	} else if (!cfi_find(&image->table, frame, row)) {
		set_stretch(place, pc, pc, pc + 1);
		place->known = KNOWN_NOTHING;
	} else {
		set_stretch(place, pc, row->first, row->behind);
		place->known = cfi_is_last(row)			    ? KNOWN_END
			       : cfi_make_plain(&place->plain, row) ? KNOWN_PLAIN
								    : KNOWN_ROW;
	}
}

/* ---- walking ---- */

/* Nobody says that a frame is complete, or that there are frame pointers at all: only one that
 * lies up the stack may be the caller's, which is in code. */
static bool by_frame_pointer(struct unwinder *u, struct cfi_frame *frame)
{
	const uint64_t at = frame->reg[CFI_RBP];
	uint64_t saved[2];

	if (at & 7 || at < frame->reg[CFI_RSP] || copy_in(saved, at, sizeof(saved)) || !saved[1])
		return false;
	if (u && !image_at(u, saved[1] - 1)->code)
		return false;
	frame->reg[CFI_RBP] = saved[0];
	frame->reg[CFI_RSP] = at + sizeof(saved);
	frame->reg[CFI_RIP] = saved[1];
	frame->called = true;
	return true;
}

/* Whether the frame was interrupted at a return: ret, or ret n, perhaps with a prefix. */
static bool is_return(const struct cfi_frame *frame)
{
	uint8_t code;

	if (frame->called || copy_in(&code, frame->reg[CFI_RIP], 1))
		return false;
	if ((code == 0xf2 || code == 0xf3) && copy_in(&code, frame->reg[CFI_RIP] + 1, 1))
		return false;
	return code == 0xc3 || code == 0xc2;
}

/*
 * Who returns has given its caller's registers back. Compilers go on saying that they are saved, in
 * what is below the stack by then; and there the return itself has written when it is sampled.
 */
static bool by_return(struct cfi_frame *frame)
{
	uint64_t back;

	if (copy_in(&back, frame->reg[CFI_RSP], sizeof(back)) || !back)
		return false;
	frame->reg[CFI_RSP] += sizeof(back);
	frame->reg[CFI_RIP] = back;
	frame->called = true;
	return true;
}

static bool to_caller(struct unwinder *u, struct cfi_frame *frame)
{
	const uint64_t pc = cfi_place(frame), grain = grain_of(pc);
	struct place *place = &u->places[grain % PLACES];
	struct cfi_row *row = &u->rows[grain % ROWS];

	if (is_return(frame))
		return by_return(frame);
	if (!is_in(pc, place->first, place->size) ||
	    (place->known == KNOWN_ROW && !is_in(pc, row->first, row->behind - row->first)))
		look_up(u, frame, place, row);
	switch (place->known) {
	case KNOWN_PLAIN:
		return cfi_apply_plain(&place->plain, frame);
	case KNOWN_ROW:
		return cfi_apply(row, frame);
	case KNOWN_END:
		return false;
	}
	return by_frame_pointer(u, frame);
}

/* Of the calling thread, true for the code that there is now; NULL: no memory. */
static struct unwinder *unwinder_now(void)
{
	struct task *task = task_self();
	const uint32_t now = __atomic_load_n(&changes, __ATOMIC_RELAXED);
	const uint32_t more = __atomic_load_n(&additions, __ATOMIC_RELAXED);
	struct unwinder *u;

	if (!task->unwinder)
		task->unwinder = memory_allocate(sizeof(struct unwinder), 0);
	u = task->unwinder;
	if (!u)
		return NULL;
	if (u->known_changes != now)
		memset(u, 0, sizeof(*u));
	else if (u->known_additions != more)
		forget_gaps(u);
	u->known_changes = now;
	u->known_additions = more;
	return u;
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

	while (nr < max && (u ? to_caller(u, &frame) : by_frame_pointer(u, &frame)))
		to[nr++] = frame.reg[CFI_RIP];
	return nr;
}
