/* SPDX-License-Identifier: MIT */
/*
 * The translator: runs the program's threads in copies of its code. See docs/runtime.md.
 *
 * It makes no system call but futex, and has no memory but what it is given. The threads of a
 * process share its code caches, of which there is one for each set of instrumentation that they
 * need.
 */
#ifndef RUNTIME_TRANSLATE_TRANSLATE_H
#define RUNTIME_TRANSLATE_TRANSLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/thread.h"

/* ---- what the rest of the runtime calls ---- */

/* Sizes of the areas, all of them zeroed, page-aligned and touched only as far as they are used. */
#define TRANSLATE_CODE_SIZE   (64UL << 20)
#define TRANSLATE_TABLE_SIZE  ((4UL << 20) + 4096)
#define TRANSLATE_META_SIZE   (67UL << 20)
#define TRANSLATE_BLOCKS_SIZE (96UL << 20)

struct translate_memory {
	void *code;   /* readable, writable, executable; within 2 GiB of the program's code */
	void *tables; /* readable and writable; below 2 GiB */
	void *meta;   /* readable and writable; anywhere */
	void *blocks; /* as code, but below 2 GiB; NULL: nothing is traced */
};

/* Once a process, before anything else here. A forked child goes on with its copy. Returns
 * whether a process before has left translations. */
bool translate_init(const struct translate_memory *memory);

/* Makes a thread known that is about to run, and fills in the translator's members of it. */
void translate_thread(struct thread *thread);

/* It will not run any more. */
void translate_thread_gone(struct thread *thread);

/* @thread is about to have a child with memory of its own. */
void translate_forking(const struct thread *thread);

/*
 * @gone was killed. If it had locks of the translator's nobody gets them before what it was at is
 * forgotten, and @mend has done the same for what is changed with translate_lock().
 */
void translate_interrupted(struct thread *gone, void (*mend)(void));

/* In a forked child: @thread, made known or not, is the only one. */
void translate_forked(struct thread *thread);

/*
 * Runs the program from thread->regs; never returns. To be called with GS base at @thread. Goes on
 * at the top of thread->stack: whatever was on that stack is gone. A signal handler may have its
 * context restored to the first instruction of this function, with rdi = @thread.
 */
_Noreturn void translate_run(struct thread *thread);

/* What the code of a cache does beside the program's work: bits of enum core_kind, core_extra. */
struct instrumentation {
	uint64_t counted; /* kinds */
	uint64_t checked; /* kinds, of counted, whose counters lead out when they reach 0; of those
			   * in core_task.early less than core_early() later */
	uint64_t extras;
};

/* Of the extras, the translator's own: code that comes out behind each instruction; and code that
 * counts, and checks, before each few. */
#define INSTRUMENT_STEPS (1UL << 32)
#define INSTRUMENT_FINE	 (1UL << 33)

/*
 * From when it next enters translated code on, @thread, the caller, runs in code that does at least
 * what is asked for. False if there is no memory for that.
 */
bool translate_instrument(struct thread *thread, const struct instrumentation *does);

/* What @thread's code does, if there was none for all of that. */
void translate_instrumented(const struct thread *thread, struct instrumentation *does);

/* Whether there may be no memory for what the next one asks for, as there was none for the last. */
bool translate_is_short(void);

/* What code with CORE_EXTRA_BREAKPOINTS asks about from now on, of @thread, the caller. */
struct core_breakpoint_range;
void translate_watch(struct thread *thread, const struct core_breakpoint_range *watched, size_t nr);

/* From now on code with CORE_EXTRA_STOPS calls linux_at_breakpoint() before the instruction at @pc.
 * False: there are too many such places. With the translator locked. */
bool translate_stop_at(uint64_t pc);

/* How many more there may be, likewise. */
unsigned int translate_stops_left(void);

/*
 * The program's memory from @start to @end has changed or ceased to be executable: no thread begins
 * anew to execute what was translated from there. The memory map has to call it on munmap, mremap,
 * mmap over something, and on mprotect that takes PROT_EXEC away; with the translator locked, so
 * that the lock is given back when nothing old is left, and nobody meets the new memory with the
 * old code.
 */
void translate_invalidate(uint64_t start, uint64_t end);

/*
 * A write to a watched page (memory_watch()) faulted at @address; thread->regs is the program's
 * state before the instruction that writes. Forgets what was translated from the page, so that the
 * write can be done again; the caller has made the page writable. If the instruction lies in that
 * very page, it is executed alone before anything of the page is watched again.
 */
void translate_written(struct thread *thread, uint64_t address);

enum translate_place {
	TRANSLATE_ELSEWHERE, /* not the translator's: the runtime's own code, or unknown */
	TRANSLATE_INSIDE,    /* in code that was emitted, or on the way into it */
	TRANSLATE_LEAVING,   /* on the way out to the dispatcher: it will look at thread->pending */
};

/* Numbers of events, by enum core_kind: those that are counted exactly. */
#define COUNT_KINDS (CORE_FP_512_HALF + 1)

#define CUT_LAST 0xff
#define CUT_TOLD 0xfe

/* Words, so that all can be added at once: count_add(). */
enum { COUNT_WORDS = 4 };

struct counts {
	_Alignas(8) int8_t of[COUNT_KINDS];
	/* Of the last record of the trace: 0, or 1 + how many of its instructions are done;
	 * CUT_LAST: all but one; CUT_TOLD: as the signal said that came before this one. */
	uint8_t cut;
	/* By bits, xmm15 first: which registers the frame has that are counters, if the code has
	 * that many; COUNT_SAVED: none of them, but the program's are in the thread. */
	uint8_t vectors;
	/* Something has been executed since the thread went in, though the program may be there. */
	bool begun;
};

_Static_assert(sizeof(struct counts) == 8 * COUNT_WORDS, "");

#define COUNT_VECTORS 0x1f
#define COUNT_SAVED   0x80

/*
 * @regs holds what a signal frame of @thread says, with rip in the code cache or in the assembly
 * around it. Takes no lock, and some 12 KiB of stack. For TRANSLATE_INSIDE @regs becomes the state
 * in which the processor would be were it executing the program itself: before an instruction, or
 * after it when its work is done. Only flags that the program is going to set before it asks for
 * them may differ. If the thread is not going to continue where it was, @counts has to be added
 * (translate_count()) for its counters to be what they are in that state, and @xmm, the sixteen
 * registers of the frame, become the program's.
 */
enum translate_place translate_recover(const struct thread *thread, struct regs *regs,
				       struct counts *counts);
void translate_count(struct thread *thread, const struct counts *counts, uint8_t (*xmm)[16]);

/*
 * Whether @thread, which stands at @pc, has come there by a return that has left @trace below the
 * stack (emit_return()): where @pc's returns arrive, or those of another address, or of none, from
 * where it was looked up.
 */
bool translate_has_returned(const struct thread *thread, uint64_t trace, uint64_t pc);

/* Whether @address is one of emitted code. Takes no lock. */
bool translate_has_emitted(uint64_t address);

/* Nothing of the translator is half done while the lock is held; for fork, nor is a cache half made
 * while all of them are. */
void translate_lock(void);
void translate_unlock(void);
void translate_lock_all(void);
void translate_unlock_all(void);

/* ---- what the translator calls: runtime/linux/, or a test ---- */

/* A range of the program's memory that may be executed. */
struct code_range {
	uint64_t start, end;
	bool writable; /* by the program, as it sees it: someone may change the code */
};

/* Memory for one more code cache; false if there is none. Without the translator's lock. */
bool memory_translator(struct translate_memory *memory, bool blocks);

/* Zeroed memory; for code, below 2 GiB and executable. NULL: there is none. And giving it back. */
void *memory_more(size_t size, bool code);
void memory_less(void *memory, size_t size);

/* Zeroed memory that children of fork(2) share. NULL: there is none. */
void *memory_common(size_t size);

/* The pages from @start to @end of such memory are about to be used. */
void memory_populate(uint64_t start, uint64_t end);

/*
 * Finds the largest known executable and readable range around @pc. Returns 0, or how the fetch
 * fails: the si_code of a SIGSEGV (SEGV_MAPERR, SEGV_ACCERR). Called with the translator locked.
 */
int memory_code(uint64_t pc, struct code_range *range);

/*
 * The same for code that nobody is about to execute: whether there is some at @pc that cannot
 * change and can be read, be its file as long as it was. Asks for no more than a page behind it,
 * and until memory_looked_ahead() nothing else is code.
 */
bool memory_look_ahead(uint64_t pc);
void memory_looked_ahead(void);

/*
 * Code from the pages @start to @end, which memory_code() called writable, gets translated: takes
 * write permission from them, and from writable aliases of theirs, until they are written to.
 * Called with the translator locked.
 */
void memory_watch(uint64_t start, uint64_t end);

/*
 * Each is called on the runtime's stack with thread->regs the program's state, changes it, and
 * returns to let it go on from there; or does not return.
 */

/* The program executed syscall: rip is behind it, rax is the number; rcx and r11 are set already.
 */
void linux_syscall(struct thread *thread);

/*
 * The program called an address at which the kernel makes the call @number: makes it and returns to
 * the caller. False where that cannot be read.
 */
bool linux_vsyscall(struct thread *thread, uint64_t number);

/* rdpmc, of that length, is at rip. */
void linux_rdpmc(struct thread *thread, unsigned int length);

/* int 0x80, the 32-bit way in, of that length, is at rip. */
void linux_int80(struct thread *thread, unsigned int length);

/* The thread, whose registers are @regs, has come out without having executed anything, or may
 * have: a breakpoint that it was about to pass over is still passed over, as RF says. */
void translate_not_passed(struct thread *thread, struct regs *regs);

/* Before the instruction at a stop, and whenever a thread comes there. True: it has been told, so
 * look at thread->pending and ask once more. */
bool linux_at_breakpoint(struct thread *thread);

/*
 * Of a thread whose code runs one instruction at a time, before and after each: the latter only if
 * thread->touches has something. False: look at thread->pending and ask once more.
 */
bool linux_before_insn(struct thread *thread);
void linux_after_insn(struct thread *thread);

/*
 * A counter of kinds that thread->events counts down has got to 0: the program stands behind the
 * instruction that did it, or not far from there where the model counts. To say anew how the thread
 * is to run: translate_instrument().
 */
void linux_due(struct thread *thread);

/* Before each instruction of a thread whose code runs one at a time: if a counter gets to 0 by it,
 * linux_due() wants to know what it was. */
void linux_step_before(struct thread *thread);

/*
 * Around each instruction of a thread whose branches somebody wants to see (core/task.h's extras)
 * and that runs one at a time; the latter if thread->branches.pc is not 0.
 */
void linux_branch_before(struct thread *thread);
void linux_branch_after(struct thread *thread);

/* The program's memory, by one access of 1, 2, 4 or 8 bytes; with @fs, in that segment. False: it
 * would fault. */
bool linux_load(uint64_t *value, uint64_t address, unsigned int size, bool fs);
bool linux_store(uint64_t address, uint64_t value, unsigned int size);
bool linux_load_code(uint64_t code[2], uint64_t pc);

/* Copies an instruction of the program, and what follows, which may be there no longer; returns how
 * many bytes. Of a probe, what it hides. */
size_t linux_code(void *to, uint64_t from, size_t size);

/*
 * Whether the breakpoint at @pc was put there by the kernel, as a probe, and the program has @byte
 * there. From a signal handler, too; takes no lock, and some 6 KiB of stack.
 */
bool linux_probed(uint64_t pc, uint8_t *byte);

/* thread->pending is not 0, or core_task_changed(): afterwards it has followed. */
void linux_deliver(struct thread *thread);

/*
 * There is no instruction at rip: raises the signal that the processor would.
 * @signo is SIGSEGV with @code from memory_code() and @address the byte that could not be fetched,
 * or SIGILL (ILL_ILLOPN), SIGTRAP ..., for what the translator refuses.
 */
void linux_fault(struct thread *thread, int signo, int code, uint64_t address);

/* At rip is an instruction that needs GS to be the program's own: the process has to go on
 * natively. */
void linux_detach(struct thread *thread);

#endif
