/* SPDX-License-Identifier: MIT */
/*
 * What the runtime knows of one thread of the program. GS base (segment.h) points at it while the
 * thread runs, so translated code and the assembly around it reach each member in one instruction;
 * it lies in the arena that the tree of processes shares, so that others can read it.
 *
 * The offsets above regs are part of the code that the translator emits: the macros are for
 * assembly and for the emitter, and the assertions below hold the struct to them.
 */
#ifndef RUNTIME_THREAD_H
#define RUNTIME_THREAD_H

#include <asm/processor-flags.h>

#define THREAD_SELF	   0x00
#define THREAD_RCX	   0x08
#define THREAD_RDX	   0x10
#define THREAD_RAX	   0x18
#define THREAD_TARGET	   0x20
#define THREAD_EXIT	   0x28
#define THREAD_PENDING	   0x2c
#define THREAD_STACK	   0x30
#define THREAD_CACHE	   0x38
#define THREAD_LEAVE	   0x40
#define THREAD_JUMP_MISS   0x48
#define THREAD_RETURN_MISS 0x50
#define THREAD_FLAGS	   0x58
#define THREAD_ARRIVAL	   0x78
#define THREAD_REGS	   0x80
#define THREAD_RFLAGS	   0x108
#define THREAD_LOOKUP	   0x110
#define THREAD_DRAIN	   0x120
#define THREAD_VECTORS	   0x130
#define THREAD_TRACE	   0x180
#define THREAD_HELD	   0x190
#define THREAD_TOUCH	   0x1a0
#define THREAD_FS	   0x1a8
#define THREAD_FILTERS	   0x1b0
#define THREAD_EVENTS	   0x400 /* struct core_task, whose counters come first */

/* rflags as a program begins with them, and as the runtime wants them. */
#define FLAGS_CLEAN (X86_EFLAGS_IF | X86_EFLAGS_FIXED)

/* What arithmetic sets: CF, PF, AF, ZF, SF, which sahf writes, and OF, which it does not. */
#define FLAGS_SAHF   (X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | X86_EFLAGS_SF)
#define FLAGS_STATUS (FLAGS_SAHF | X86_EFLAGS_OF)

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

#include "abi/arena.h"
#include "core/task.h"
#include "runtime/fs.h"
#include "runtime/segment.h"

/* Numbers of the general registers, as instructions encode them. */
enum reg {
	REG_RAX,
	REG_RCX,
	REG_RDX,
	REG_RBX,
	REG_RSP,
	REG_RBP,
	REG_RSI,
	REG_RDI,
	REG_R8,
	REG_R9,
	REG_R10,
	REG_R11,
	REG_R12,
	REG_R13,
	REG_R14,
	REG_R15,
};

/* The program's state as far as the runtime has to do with it: vector and x87 registers stay in
 * the processor, since nothing of the runtime touches them. */
struct regs {
	uint64_t gpr[16]; /* by enum reg */
	uint64_t rip;
	uint64_t rflags;
};

/* More than a sample tells, as not all that were taken may have been asked for. */
#define BRANCH_STACK_MAX 64

struct thread {
	struct thread *self;

	/* The program's values of registers that emitted code has borrowed, and where an indirect
	 * branch wants to go. */
	uint64_t spill_rcx, spill_rdx, spill_rax;
	uint64_t target;

	uint32_t exit; /* the exit by which translated code was left: runtime/translate/cache.h */
	/*
	 * Not 0: a signal waits. Set by the signal handler when it finds the thread in the runtime;
	 * the dispatcher calls linux_deliver() before it goes back to translated code.
	 */
	uint32_t pending;
	void *stack;	/* top of the thread's stack in the runtime, 16-aligned */
	uint64_t cache; /* where in the code cache to go on */

	/* Ways out of emitted code, which may be too far from the runtime for a direct jump. */
	void *leave, *jump_miss, *return_miss;

	uint64_t spill_flags; /* by lahf and seto, while enter.S looks a target up */
	struct thread *next;  /* of the threads that the translator knows */
	uint32_t
		inside; /* not 0: the thread may be in emitted code, of which cache, or interpreted */
	uint32_t handed_over; /* another process is about to take the page over: abi/arena.h */
	uint64_t step;	  /* where the copy of one instruction lies that is to come first, or 0 */
	uint64_t arrival; /* scratch of enter.S */

	/* The program's state, valid while the thread is in the runtime. */
	_Alignas(64) struct regs regs;

	struct lookup *lookup; /* the first member of the struct cache that it runs in */

	struct tracer *tracer; /* pmu/tracer.c; NULL: it has never traced */
	void *drain;	       /* the way to make room for the trace */

	uint32_t incarnation; /* of the page where this lies: abi/arena.h */

	/* The program's values of the vector registers, from xmm15 down, that translated code has
	 * for itself: translate/vectors.c. */
	_Alignas(16) uint8_t vectors[5][16];

	/* Where the next record of the trace goes (pmu/tracer.h), and how far that is from where
	 * the trace is full, below 0 before. In code that traces both are in a register. */
	_Alignas(16) uint64_t trace;
	int64_t trace_full;

	/* The program's values of general registers that emitted code has until the program writes
	 * them: translate/record.c. */
	uint64_t held[2];

	void *touch; /* the way out before an instruction that may touch what is watched */

	uint64_t fs_base; /* the program's, where FS is the runtime's: runtime/segment.h */

	/* What is watched, for operands of some access and size: translate/filter.c. */
	_Alignas(16) struct operand_filter {
		uint64_t offset, mask;
	} filters[3][8];

	/* What follows is of the runtime's C alone: members of runtime/linux/ go here. */
	uint64_t *trace_start; /* of what has not been taken in, as far as `trace` */
	/* translate/instrument.c: of the cache that its events need, where it runs unless it
	 * executes one instruction alone as it may touch what is watched; of the one that they
	 * may need from now on; and of the one before, or NULL */
	struct lookup *lookup_home, *lookup_next, *lookup_before;
	int tid;
	struct task *task;   /* linux/task.h: all that only this process is to see */
	uint32_t page;	     /* of the arena where this lies; 0: it lies elsewhere */
	uint32_t number;     /* of who has none, for locks; 0: it has none yet */
	struct lock **locks; /* by kind, that it has while somebody wants to know: lock.h */
	struct fs_known fs;  /* the program's */

	/* linux/breakpoints.c: what the instruction at pc is about to touch of what is watched */
	struct touches {
		uint64_t pc;
		uint64_t told;	 /* where a breakpoint was hit, as long as nothing was executed */
		uint64_t passed; /* likewise, while it is not known whether anything has been */
		unsigned int nr;
		struct touch {
			uint64_t address, size;
			uint32_t type; /* HW_BREAKPOINT_* */
		} of[3];
	} touches;

	/* What is counted of the thread, and for whom. */
	_Alignas(0x400) struct core_task events;

	/* linux/branch_stack.c: the branches taken last, while one instruction runs at a time */
	struct branch_stack {
		uint64_t pc, next; /* of the branch that is about to be executed; pc 0: none is */
		uint32_t nr;	   /* that there have been */
		uint8_t type;	   /* PERF_BR_* */
		struct branch {
			uint64_t from;
			int64_t to : 60; /* an address: the upper bits are those below */
			uint64_t type : 4;
		} of[BRANCH_STACK_MAX];
	} branches;

	/* translate/recover.c: what is known of the program where its filters let it through
	 * last */
	struct filtered {
		uint64_t address; /* in the cache; 0: nothing */
		uint64_t state[6];
	} filtered[2];
};

_Static_assert(offsetof(struct thread, self) == THREAD_SELF, "");
_Static_assert(offsetof(struct thread, spill_rcx) == THREAD_RCX, "");
_Static_assert(offsetof(struct thread, spill_rdx) == THREAD_RDX, "");
_Static_assert(offsetof(struct thread, spill_rax) == THREAD_RAX, "");
_Static_assert(offsetof(struct thread, target) == THREAD_TARGET, "");
_Static_assert(offsetof(struct thread, exit) == THREAD_EXIT, "");
_Static_assert(offsetof(struct thread, pending) == THREAD_PENDING, "");
_Static_assert(offsetof(struct thread, stack) == THREAD_STACK, "");
_Static_assert(offsetof(struct thread, cache) == THREAD_CACHE, "");
_Static_assert(offsetof(struct thread, leave) == THREAD_LEAVE, "");
_Static_assert(offsetof(struct thread, jump_miss) == THREAD_JUMP_MISS, "");
_Static_assert(offsetof(struct thread, return_miss) == THREAD_RETURN_MISS, "");
_Static_assert(offsetof(struct thread, spill_flags) == THREAD_FLAGS, "");
_Static_assert(offsetof(struct thread, arrival) == THREAD_ARRIVAL, "");
_Static_assert(offsetof(struct thread, regs) == THREAD_REGS, "");
_Static_assert(offsetof(struct thread, regs.rflags) == THREAD_RFLAGS, "");
_Static_assert(offsetof(struct thread, lookup) == THREAD_LOOKUP, "");
_Static_assert(offsetof(struct thread, trace) == THREAD_TRACE, "");
_Static_assert(offsetof(struct thread, drain) == THREAD_DRAIN, "");
_Static_assert(offsetof(struct thread, vectors) == THREAD_VECTORS, "");
_Static_assert(offsetof(struct thread, held) == THREAD_HELD, "");
_Static_assert(offsetof(struct thread, touch) == THREAD_TOUCH, "");
_Static_assert(offsetof(struct thread, fs_base) == THREAD_FS, "");
_Static_assert(offsetof(struct thread, filters) == THREAD_FILTERS, "");
_Static_assert(offsetof(struct thread, events) == THREAD_EVENTS, "");
_Static_assert(THREAD_EVENTS == ARENA_TASK, "");
_Static_assert(offsetof(struct thread, inside) == ARENA_INSIDE, "");
_Static_assert(offsetof(struct thread, handed_over) == ARENA_HANDED_OVER, "");
_Static_assert(offsetof(struct thread, incarnation) == ARENA_INCARNATION, "");

/* The calling thread. */
static inline struct thread *thread_self(void)
{
	struct thread *self;

	__asm__(SEGMENT_SITE "mov %%gs:0, %0" : "=r"(self));
	return self;
}

#endif
#endif
