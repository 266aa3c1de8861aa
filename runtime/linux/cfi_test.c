// SPDX-License-Identifier: MIT
/*
 * Callers as told by .eh_frame, beside what the compiler's own unwinder says: at each instruction
 * of some work, so that prologues, epilogues and stubs are among the places, and from within
 * handlers.
 */
#include "runtime/linux/cfi.h"

#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/linux/copy.h"

enum { FRAMES = 64, TRAP_FLAG = 0x100 };

/* Whether addresses may be bad: then through the kernel, which takes a while. */
static bool damaged;

__attribute__((no_sanitize("address"))) int64_t copy_in(void *to, uint64_t from, size_t size)
{
	const struct iovec local = {to, size}, remote = {(void *)from, size};

	if (damaged)
		return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size ? 0
											     : -1;
	for (size_t i = 0; i < size; i++)
		((volatile uint8_t *)to)[i] = ((const volatile uint8_t *)from)[i];
	return 0;
}

int64_t copy_from_any(void *to, uint64_t from, size_t size)
{
	return copy_in(to, from, size);
}

int64_t copy_word(uint64_t *to, uint64_t from)
{
	return copy_in(to, from, sizeof(*to));
}

/* ---- walking ---- */

static struct {
	uint64_t start, end;
	struct cfi_table table;
} images[32];

static size_t nr_images;

static int note_image(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct cfi_table table = {.nr = 0};
	bool known = false;

	(void)size, (void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			known = cfi_table_at(&table, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (int i = 0; known && i < info->dlpi_phnum && nr_images < 32; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		images[nr_images].start = info->dlpi_addr + header->p_vaddr;
		images[nr_images].end = images[nr_images].start + header->p_memsz;
		images[nr_images++].table = table;
	}
	return 0;
}

static bool to_caller(struct cfi_frame *frame)
{
	const uint64_t pc = frame->reg[CFI_RIP];
	struct cfi_row row;

	for (size_t i = 0; i < nr_images; i++)
		if (pc >= images[i].start && pc < images[i].end)
			return cfi_find(&images[i].table, frame, &row) && cfi_apply(&row, frame);
	return false;
}

static struct cfi_frame frame_of(const ucontext_t *context)
{
	static const int order[CFI_REGISTERS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9,	 REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};
	struct cfi_frame frame = {.called = false};

	for (int i = 0; i < CFI_REGISTERS; i++)
		frame.reg[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
	return frame;
}

/* The place of @context first. */
static int walk(const ucontext_t *context, uint64_t *to)
{
	struct cfi_frame frame = frame_of(context);
	int nr = 0;

	do
		to[nr++] = frame.reg[CFI_RIP];
	while (nr < FRAMES && to_caller(&frame));
	return nr;
}

/* ---- at each instruction ---- */

static unsigned int steps, wrong;
static struct {
	uint64_t pc;
	int at, nr, wanted;
} first_wrong;

/* From frame @first on, the chain at @context is that of who is here. */
static void compare(const ucontext_t *context, int first)
{
	void *known[FRAMES + 8];
	uint64_t found[FRAMES];
	const int nr = walk(context, found), nr_known = backtrace(known, FRAMES + 8);
	int start = 0, n = 0;

	while (start < nr_known && (uint64_t)known[start] != found[first])
		start++;
	if (start == nr_known)
		return; /* the other one has not got as far as here */
	steps++;
	while (first + n < nr && start + n < nr_known &&
	       found[first + n] == (uint64_t)known[start + n])
		n++;
	if (first + n == nr && start + n == nr_known)
		return;
	if (!wrong++) {
		first_wrong.pc = found[0];
		first_wrong.at = n;
		first_wrong.nr = nr - first;
		first_wrong.wanted = nr_known - start;
	}
}

static void on_step(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	compare(context, 0);
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* A frame of a size that is known late, calls through stubs, and back and forth. */
static __attribute__((noinline)) int work(int depth)
{
	int values[9] = {5, 3, 9, 1, 7, 2, 8, 6, 4};
	char *room = __builtin_alloca((size_t)(16 + depth * 24));

	memset(room, 'x', (size_t)(15 + depth * 24));
	room[15 + depth * 24] = '\0';
	qsort(values, 9, sizeof(*values), by_value);
	if (depth)
		return work(depth - 1) + values[0] + (int)strlen(room);
	return atoi("17") + values[8];
}

static void set_trap_flag(void)
{
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp; pushf; orq %0, (%%rsp); popf; lea 128(%%rsp), %%rsp"
		:
		: "i"(TRAP_FLAG)
		: "memory", "cc");
}

static void clear_trap_flag(void)
{
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp; pushf; andq %0, (%%rsp); popf; lea 128(%%rsp), %%rsp"
		:
		: "i"(~TRAP_FLAG)
		: "memory", "cc");
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
	const struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};

	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static void nothing_was_wrong(unsigned int least)
{
	if (wrong)
		fail_msg("%u of %u places, first at %#lx: %d of %d frames are right, found %d",
			 wrong, steps, first_wrong.pc, first_wrong.at, first_wrong.wanted,
			 first_wrong.nr);
	assert_true(steps >= least);
}

static int begin(void **state)
{
	void *once[2];

	(void)state;
	steps = wrong = 0;
	nr_images = 0;
	dl_iterate_phdr(note_image, NULL);
	backtrace(once, 2); /* loads what it needs */
	return 0;
}

static void each_instruction(void **state)
{
	volatile int result;

	(void)state;
	handle(SIGTRAP, on_step, 0);
	set_trap_flag();
	result = work(2);
	clear_trap_flag();
	assert_true(result > 0);
	nothing_was_wrong(1000);
}

/* ---- through handlers ---- */

static void on_signal(int number, siginfo_t *info, void *context)
{
	ucontext_t here;

	(void)number, (void)info, (void)context;
	getcontext(&here);
	compare(&here, 1); /* it is called from there, too, but at another place */
}

static __attribute__((noinline)) void interrupted(int depth)
{
	volatile char room[100];

	memset((char *)room, depth, sizeof(room));
	if (depth)
		interrupted(depth - 1);
	else
		raise(SIGUSR1);
	room[0] = 1;
}

static void through_a_handler(void **state)
{
	(void)state;
	handle(SIGUSR1, on_signal, 0);
	interrupted(3);
	nothing_was_wrong(1);
}

static void through_a_handler_with_its_own_stack(void **state)
{
	stack_t stack = {.ss_size = 256 << 10}, before;

	(void)state;
	stack.ss_sp = malloc(stack.ss_size);
	assert_int_equal(sigaltstack(&stack, &before), 0);
	handle(SIGUSR1, on_signal, SA_ONSTACK);
	interrupted(3);
	sigaltstack(&before, NULL);
	free(stack.ss_sp);
	nothing_was_wrong(1);
}

/* ---- what is not to be believed ---- */

static uint8_t original[1 << 19], copy[sizeof(original)];

static const struct cfi_table *own_table(void)
{
	for (size_t i = 0; i < nr_images; i++)
		if ((uint64_t)own_table - images[i].start < images[i].end - images[i].start)
			return &images[i].table;
	return NULL;
}

/* The table with the entries behind it; how much there is. */
static size_t read_original(uint64_t header)
{
	enum { PIECE = 4096 };
	size_t size = 0;

	damaged = true;
	while (size < sizeof(original) && !copy_in(original + size, header + size, PIECE))
		size += PIECE;
	damaged = false;
	return size;
}

/* Some place in a function that the copy knows, had it been copied as well. */
static uint64_t place_in_copy(const struct cfi_table *table, uint64_t random)
{
	int32_t function;

	memcpy(&function, copy + 12 + random % table->nr * 8, sizeof(function));
	return (uint64_t)copy + (uint64_t)(int64_t)function + (random >> 32 & 63) + 1;
}

static unsigned int look_up(uint64_t pc)
{
	struct cfi_frame frame = {.called = true};
	struct cfi_table table;
	struct cfi_row row;

	frame.reg[CFI_RIP] = pc;
	frame.reg[CFI_RSP] = frame.reg[CFI_RBP] = (uint64_t)&frame;
	if (!cfi_table_at(&table, (uint64_t)copy) || !cfi_find(&table, &frame, &row))
		return 0;
	cfi_apply(&row, &frame);
	return 1;
}

/* Of entries that are damaged anywhere, at worst the answer is another. */
static void damaged_entries(void **state)
{
	const struct cfi_table *table = own_table();
	const size_t there = read_original(table->base);
	uint64_t random = 0x9e3779b97f4a7c15;
	unsigned int found = 0;

	(void)state;
	assert_true(there > 4096);
	damaged = true;
	for (int round = 0; round < 20000; round++) {
		size_t at;

		if (round % 100 == 0)
			memcpy(copy, original, there);
		random = random * 6364136223846793005 + 1442695040888963407;
		at = (random >> 16) % there;
		for (int i = 0; i < 64; i++)
			copy[(at + (size_t)i * 4099) % there] ^= (uint8_t)(random >> 8);
		found += look_up(place_in_copy(table, random >> 3));
	}
	damaged = false;
	assert_true(found > 1000);
}

/* ---- without the linker's table ---- */

/* Where it says that .eh_frame is; how much there is up to the end that it has. */
static uint64_t find_frames(const struct cfi_table *table, size_t *size)
{
	const uint64_t place = table->base + 4;
	uint32_t length = 1;
	uint64_t frames;
	int32_t offset;

	assert_int_equal(copy_in(&offset, place, sizeof(offset)), 0);
	frames = place + (uint64_t)(int64_t)offset;
	for (*size = 0; length; *size += sizeof(length) + length)
		assert_int_equal(copy_in(&length, frames + *size, sizeof(length)), 0);
	return frames;
}

static void a_table_as_the_linker_makes_it(void **state)
{
	const struct cfi_table *linked = own_table();
	const struct cfi_function *theirs = (const struct cfi_function *)linked->functions;
	struct cfi_function *ours;
	struct cfi_table made;
	uint64_t frames;
	size_t size;

	(void)state;
	frames = find_frames(linked, &size);
	assert_true(linked->nr > 20);
	assert_int_equal(cfi_count(frames, size), linked->nr);
	ours = calloc(linked->nr, sizeof(*ours));
	cfi_make_table(&made, frames, size, ours, linked->nr);
	assert_int_equal(made.nr, linked->nr);
	for (uint32_t i = 0; i < made.nr; i++) {
		assert_int_equal(made.base + (uint64_t)ours[i].first,
				 linked->base + (uint64_t)theirs[i].first);
		assert_int_equal(made.base + (uint64_t)ours[i].entry,
				 linked->base + (uint64_t)theirs[i].entry);
	}
	/* Where there is room for fewer, the rest is left out. */
	cfi_make_table(&made, frames, size, ours, 7);
	assert_int_equal(made.nr, 7);
	free(ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_instruction, begin),
		cmocka_unit_test_setup(through_a_handler, begin),
		cmocka_unit_test_setup(through_a_handler_with_its_own_stack, begin),
		cmocka_unit_test_setup(damaged_entries, begin),
		cmocka_unit_test_setup(a_table_as_the_linker_makes_it, begin),
	};

	return cmocka_run_group_tests_name("runtime/cfi", tests, NULL, NULL);
}
