// SPDX-License-Identifier: MIT
/*
 * From the kernel's exec of tally-rt to the first instruction of the program: reads what was handed
 * over, maps the program and its interpreter, makes the stack tell of them, and gives everything to
 * the translator.
 */
#include <asm/errno.h>
#include <asm/mman.h>
#include <asm/prctl.h>
#include <linux/auxvec.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#include "abi/handover.h"
#include "runtime/boot/handover.h"
#include "runtime/boot/image.h"
#include "runtime/boot/move.h"
#include "runtime/boot/relocate.h"
#include "runtime/boot/stack.h"
#include "runtime/boot/start.h"
#include "runtime/fs.h"
#include "runtime/linux/aslr.h"
#include "runtime/linux/brk.h"
#include "runtime/linux/code_store.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/files.h"
#include "runtime/linux/fixed.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/tasks.h"
#include "runtime/linux/thread_slots.h"
#include "runtime/linux/threads.h"
#include "runtime/linux/tsc.h"
#include "runtime/linux/window.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"
#include "runtime/translate/translate.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* As much as the kernel's arch_randomize_brk() has for x86-64: 32 MiB. */
#define HEAP_RANDOM_PAGES ((32UL << 20) / PAGE)

static const char *filename; /* what execve(2) was given, for messages */
static uint32_t owner;	     /* of the page of the arena that the thread had before */

static void check(int64_t result, const char *what)
{
	if (sys_failed(result))
		die("%s cannot be run: %s: %s", filename, what, error_text(result));
}

static void read_handover(const char *text)
{
	struct handover handover;
	const char *wrong = handover_read(&handover, text);

	if (wrong)
		die("%s", wrong);
	descriptors = handover.descriptors;
	owner = handover.owner;
	confined_boot(handover.confined);
	filename = handover.filename;
}

/* Where addresses are to be fixed the kernel's stack is not the program's. */
static uint64_t *place_stack(uint64_t *top)
{
	const struct stack_glance stack = stack_glance(top);
	struct handover handover;
	uint64_t *placed;

	if (!stack.name || handover_read(&handover, stack.handover))
		return top;
	aslr_boot(stack.name, handover.fixed);
	if (!handover.fixed || !aslr_is_the_kernels())
		return top;
	placed = fixed_boot(top, stack.name);
	if (!placed && handover.descriptors.program < 0)
		say("addresses are random: they cannot be fixed under a limit on address space "
		    "(ulimit -v), without one on the stack (ulimit -s), nor in gVisor");
	return placed ? placed : top;
}

/* Address space for an image that may lie anywhere, aligned as it wants. */
static uint64_t reserve(const struct image *image)
{
	uint64_t size = image->high - image->low, room = size + image->align - PAGE, start, at;
	int64_t result = sys(__NR_mmap, window_hint(room), room, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check(result, "no room for its interpreter");
	start = (uint64_t)result;
	at = (start + image->align - 1) & -image->align;
	if (at > start)
		sys(__NR_munmap, start, at - start);
	if (start + room > at + size)
		sys(__NR_munmap, at + size, start + room - (at + size));
	return at;
}

/* Before anything of ours may come to lie there. */
static void reserve_fixed(const struct image *program)
{
	int64_t result =
		sys(__NR_mmap, program->low, program->high - program->low, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	check(result, "its addresses are taken");
	if ((uint64_t)result != program->low)
		check(-EEXIST, "its addresses are taken");
}

/* Maps the program, and the window that its code shares with the cache. Returns the cache. */
static void *map_program(struct image *program)
{
	bool fixed = program->header.e_type == ET_EXEC;
	uint64_t code, at;

	if (fixed)
		reserve_fixed(program);
	if (!window_boot(TRANSLATE_CODE_SIZE, fixed ? 0 : program->high - program->low,
			 program->align, &code, &at))
		check(-ENOMEM, "no room for the code cache (ulimit -v)");
	check(sys(__NR_mprotect, code, TRANSLATE_CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC),
	      "memory for translated code is refused");
	memory_own(code, code + TRANSLATE_CODE_SIZE);
	check(image_map(program, descriptors.program, fixed ? 0 : at - program->low), "mapping it");
	return (void *)code;
}

/* Translating takes more of the stack than the boot. */
static void populate_stack(void)
{
	const uint64_t stack = (uint64_t)slot_first + SLOT_SIZE;

	sys(__NR_madvise, stack - TRANSLATOR_STACK, TRANSLATOR_STACK - BOOT_STACK,
	    MADV_POPULATE_WRITE);
}

static void start_translator(void *code)
{
	struct translate_memory memory = {
		.code = code,
		.tables = memory_allocate(TRANSLATE_TABLE_SIZE, WINDOW_LOW_END),
		.meta = memory_allocate(TRANSLATE_META_SIZE, 0),
	};

	if (!memory.tables || !memory.meta)
		check(-ENOMEM, "no room for the translator (ulimit -v)");
	if (!translate_init(&memory))
		populate_stack();
}

static void map_interpreter(const struct image *program, struct image *interpreter)
{
	char path[PATH_MAX];
	int64_t fd;

	if (!image_interpreter(program, descriptors.program, path, sizeof(path)))
		check(-ENOEXEC, "its interpreter");
	fd = sys(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	check(fd, path);
	if (image_read(interpreter, (int)fd) != IMAGE_GOOD)
		check(-ELIBBAD, path);
	check(image_map(interpreter, (int)fd, reserve(interpreter) - interpreter->low), path);
	sys(__NR_close, fd);
}

/* The heap begins behind the program, at random as far as the kernel would have it. */
static void place_heap(const struct image *program)
{
	brk_boot(program->bias + program->high + aslr_random() % HEAP_RANDOM_PAGES * PAGE);
}

/* Code that is there without having been mapped by anybody here. */
static void note_vdso(const struct stack *stack)
{
	uint64_t vdso = stack_auxv(stack, AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)vdso;
	const Elf64_Phdr *segments = (const Elf64_Phdr *)(vdso + (vdso ? header->e_phoff : 0));

	for (unsigned int i = 0; vdso && i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD)
			memory_add(vdso + segments[i].p_vaddr,
				   vdso + segments[i].p_vaddr + segments[i].p_memsz,
				   PROT_READ | PROT_EXEC);
}

static void describe(struct stack *stack, const struct image *program,
		     const struct image *interpreter)
{
	stack_set_auxv(stack, AT_PHDR, image_headers_address(program));
	stack_set_auxv(stack, AT_PHNUM, program->header.e_phnum);
	stack_set_auxv(stack, AT_ENTRY, program->header.e_entry + program->bias);
	stack_set_auxv(stack, AT_BASE, program->has_interpreter ? interpreter->bias : 0);
	stack_set_auxv(stack, AT_EXECFN, (uint64_t)filename);
}

/* What /proc/self/{cmdline,environ,auxv,stat} shows. A kernel that cannot do it shows a little of
 * tally-rt. */
static void tell_kernel(const struct stack *stack, const struct image *program)
{
	const char *handover = filename;
	struct prctl_mm_map map = {.exe_fd = (uint32_t)-1};

	while (memcmp(handover, HANDOVER_NAME, sizeof(HANDOVER_NAME) - 1))
		handover--;
	map.start_code = map.start_data = program->bias + program->low;
	map.end_code = map.end_data = program->bias + program->high;
	/* What lies between these two is the heap's by its name, and there nothing does yet. */
	map.start_brk = brk_end();
	map.brk = map.start_brk + 1;
	map.start_stack = (uint64_t)stack->top;
	map.env_end = (uint64_t)handover;
	map.env_start = stack->envc ? (uint64_t)stack->envp[0] : map.env_end;
	map.arg_start = stack->argc ? (uint64_t)stack->argv[0] : map.env_start;
	map.arg_end = map.env_start;
	map.auxv = (void *)stack->auxv;
	map.auxv_size = (uint32_t)(stack->nr_auxv * sizeof(*stack->auxv));
	sys(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0);
}

/* comm is the last part of what execve(2) was given. */
static void set_name(void)
{
	const char *slash = strrchr(filename, '/');

	sys(__NR_prctl, PR_SET_NAME, slash ? slash + 1 : filename, 0, 0, 0);
}

static _Noreturn void run(const struct stack *stack, uint64_t entry)
{
	struct thread *thread = threads_boot(owner);

	signal_boot(thread);
	thread->regs.gpr[REG_RSP] = (uint64_t)stack->top;
	thread->regs.rip = entry;
	thread->regs.rflags = FLAGS_CLEAN;
	tasks_boot(thread);
	translate_run(thread);
}

_Noreturn void boot(uint64_t *top, uint64_t distance);

_Noreturn void boot(uint64_t *top, uint64_t distance)
{
	struct image program, interpreter = {0};
	struct stack stack;
	void *code;

	move_end(distance);
	relocate();
	stack_read(&stack, place_stack(top));
	read_handover(stack.handover);
	if (!segment_boot())
		die("this sandbox lets nobody have the GS register, nor change code to do without it");
	if (descriptors.program < 0)
		start(&stack, filename);
	descriptors_settle();
	code_store_boot();
	tsc_boot();
	memory_own((uint64_t)__ehdr_start, (uint64_t)_end);
	if (image_read(&program, descriptors.program) != IMAGE_GOOD)
		check(-ENOEXEC, "its headers have changed");
	code = map_program(&program);
	if (program.has_interpreter)
		map_interpreter(&program, &interpreter);
	start_translator(code);
	place_heap(&program);
	note_vdso(&stack);
	fs_boot(stack_auxv(&stack, AT_HWCAP2));
	if (program.executable_stack)
		sys(__NR_mprotect, PAGE_DOWN(stack.top), PAGE,
		    PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN);
	describe(&stack, &program, &interpreter);
	tell_kernel(&stack, &program);
	set_name();
	run(&stack, program.has_interpreter ? interpreter.header.e_entry + interpreter.bias
					    : program.header.e_entry + program.bias);
}
