// SPDX-License-Identifier: MIT
#include "runtime/translate/test_host.h"

#include <asm/prctl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/core.h"
#include "runtime/fs.h"
#include "runtime/sys.h"
#include "runtime/translate/snapshot.h"

#define STACK_SIZE (1UL << 20)

/* No kernel has it. */
#define SYS_FINISH 0x7fff0000

__asm__(".text\n"
	".globl host_finish\n"
	"host_finish:\n"
	"	mov %rax, -8(%rsp)\n"
	"	mov %rcx, -16(%rsp)\n"
	"	mov %r11, -24(%rsp)\n"
	"	mov $0x7fff0000, %eax\n"
	"	syscall\n"
	"	ud2\n");

static struct thread *thread;
static jmp_buf finished;

static struct code_range mappings[512];
static unsigned int nr_mappings;

static void *area(void *hint, size_t size, int prot, int flags)
{
	void *p =
		mmap(hint, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

void host_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512], prot[8];

	nr_mappings = 0;
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, prot) == 3 && prot[0] == 'r' &&
		    prot[2] == 'x' && nr_mappings < 512)
			mappings[nr_mappings++] = (struct code_range){start, end, prot[1] == 'w'};
	if (f)
		fclose(f);
}

bool host_short_of_memory;

bool memory_translator(struct translate_memory *memory, bool blocks)
{
	static uint64_t next;

	if (host_short_of_memory)
		return false;
	if (!next)
		next = ((uint64_t)host_finish & ~0xfffUL) - (1UL << 30);
	*memory = (struct translate_memory){
		.code = area((void *)next, TRANSLATE_CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     0),
		.tables = area(NULL, TRANSLATE_TABLE_SIZE, PROT_READ | PROT_WRITE, MAP_32BIT),
		.meta = area(NULL, TRANSLATE_META_SIZE, PROT_READ | PROT_WRITE, 0),
		.blocks = blocks ? area(NULL, TRANSLATE_BLOCKS_SIZE,
					PROT_READ | PROT_WRITE | PROT_EXEC, MAP_32BIT)
				 : NULL,
	};
	next += TRANSLATE_CODE_SIZE;
	return true;
}

bool memory_kept(struct cache *cache, bool *spoiled)
{
	(void)cache;
	(void)spoiled;
	return false;
}

void memory_forget_kept(const struct cache *cache)
{
	(void)cache;
}

void *memory_more(size_t size, bool code)
{
	return area(NULL, size, PROT_READ | PROT_WRITE | (code ? PROT_EXEC : 0),
		    code ? MAP_32BIT : 0);
}

bool memory_look_ahead(uint64_t pc)
{
	struct code_range range;

	return !memory_code(pc, &range) && !range.writable;
}

void memory_looked_ahead(void)
{
}

void *memory_common(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void memory_less(void *memory, size_t size)
{
	munmap(memory, size);
}

void memory_populate(uint64_t start, uint64_t end)
{
	(void)start;
	(void)end;
}

void host_start(void)
{
	struct translate_memory memory;

	memory_translator(&memory, false);
	thread = area(NULL, 4096, PROT_READ | PROT_WRITE, 0);
	thread->self = thread;
	thread->stack = (char *)area(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, 0) + STACK_SIZE;
	syscall(SYS_arch_prctl, ARCH_SET_GS, thread);
	host_maps();
	fs_boot(getauxval(AT_HWCAP2));
	translate_init(&memory);
	translate_thread(thread);
}

struct thread *host_thread(void)
{
	return thread;
}

void host_run(struct regs *regs)
{
	const uint64_t *saved;

	thread->regs = *regs;
	if (!setjmp(finished))
		translate_run(thread);
	*regs = thread->regs;
	saved = (const uint64_t *)regs->gpr[REG_RSP];
	regs->gpr[REG_RAX] = saved[-1];
	regs->gpr[REG_RCX] = saved[-2];
	regs->gpr[REG_R11] = saved[-3];
	regs->rip = (uint64_t)host_finish;
}

void host_call(void (*function)(long), long argument)
{
	static char *stack;
	struct regs regs = {.rip = (uint64_t)function, .rflags = 0x202};
	uint64_t *sp;

	if (!stack)
		stack = area(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, 0);
	sp = (uint64_t *)(stack + STACK_SIZE - 64);
	*--sp = (uint64_t)host_finish;
	regs.gpr[REG_RSP] = (uint64_t)sp;
	regs.gpr[REG_RDI] = argument;
	host_run(&regs);
}

void host_regs(const ucontext_t *context, struct regs *regs)
{
	/* The order in a signal frame: r8 ... r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip. */
	static const uint8_t places[16] = {13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7};

	for (unsigned int i = 0; i < 16; i++)
		regs->gpr[i] = context->uc_mcontext.gregs[places[i]];
	regs->rip = context->uc_mcontext.gregs[16];
	regs->rflags = context->uc_mcontext.gregs[17];
}

/* ---- what runtime/linux/ has elsewhere ---- */

int memory_code(uint64_t pc, struct code_range *range)
{
	for (unsigned int i = 0; i < nr_mappings; i++)
		if (pc >= mappings[i].start && pc < mappings[i].end) {
			*range = mappings[i];
			return 0;
		}
	return SEGV_MAPERR;
}

void memory_watch(uint64_t start, uint64_t end)
{
	mprotect((void *)start, end - start, PROT_READ | PROT_EXEC);
}

void linux_syscall(struct thread *t)
{
	uint64_t *gpr = t->regs.gpr;

	if (gpr[REG_RAX] == SYS_FINISH)
		longjmp(finished, 1);
	gpr[REG_RAX] = sys6(gpr[REG_RAX], gpr[REG_RDI], gpr[REG_RSI], gpr[REG_RDX], gpr[REG_R10],
			    gpr[REG_R8], gpr[REG_R9]);
}

bool linux_vsyscall(struct thread *t, uint64_t number)
{
	t->regs.rip = *(const uint64_t *)t->regs.gpr[REG_RSP];
	t->regs.gpr[REG_RSP] += 8;
	t->regs.gpr[REG_RAX] = number;
	linux_syscall(t);
	return true;
}

static void unexpected(const struct thread *t, const char *what, uint64_t detail)
{
	printf("Bail out! %s (%#lx) at %#lx\n", what, detail, t->regs.rip);
	exit(1);
}

void (*host_due)(struct thread *thread);

/* Of programs that somebody traces: none of those here. */
void core_trace(struct core_task *task, const struct core_branch *branches, size_t nr)
{
	(void)task, (void)branches;
	unexpected(thread, "branches of nobody", nr);
}

void linux_due(struct thread *t)
{
	if (!host_due)
		unexpected(t, "an overflow", t->events.counting_down);
	host_due(t);
}

bool linux_at_breakpoint(struct thread *t)
{
	(void)t;
	return false;
}

void (*host_before_insn)(struct thread *thread);
void (*host_after_insn)(struct thread *thread);

bool linux_before_insn(struct thread *t)
{
	if (host_before_insn)
		host_before_insn(t);
	return true;
}

bool linux_load(uint64_t *value, uint64_t address, unsigned int size, bool fs)
{
	if (fs)
		return false;
	*value = 0;
	__builtin_memcpy(value, (const void *)address, size);
	return true;
}

bool linux_store(uint64_t address, uint64_t value, unsigned int size)
{
	__builtin_memcpy((void *)address, &value, size);
	return true;
}

bool linux_load_code(uint64_t code[2], uint64_t pc)
{
	__builtin_memcpy(code, (const void *)pc, 16);
	return true;
}

size_t linux_code(void *to, uint64_t from, size_t size)
{
	__builtin_memcpy(to, (const void *)from, size);
	return size;
}

bool linux_probed(uint64_t pc, uint8_t *byte)
{
	(void)pc, (void)byte;
	return false;
}

void linux_step_before(struct thread *t)
{
	(void)t;
}

void linux_branch_before(struct thread *t)
{
	unexpected(t, "branches", t->regs.rip);
}

void linux_branch_after(struct thread *t)
{
	unexpected(t, "branches", t->regs.rip);
}

void linux_after_insn(struct thread *t)
{
	if (!host_after_insn)
		unexpected(t, "stepping", t->regs.rip);
	host_after_insn(t);
}

void linux_rdpmc(struct thread *t, unsigned int length)
{
	unexpected(t, "rdpmc", length);
}

void linux_int80(struct thread *t, unsigned int length)
{
	unexpected(t, "int 0x80", length);
}

void linux_deliver(struct thread *t)
{
	unexpected(t, "a pending signal", t->pending);
}

void linux_detach(struct thread *t)
{
	unexpected(t, "detach", 0);
}

void linux_fault(struct thread *t, int signo, int code, uint64_t address)
{
	(void)code;
	unexpected(t, signo == SIGSEGV ? "SIGSEGV" : "a signal", address);
}
