/* SPDX-License-Identifier: MIT */
/*
 * The way into emitted code and out of it. What signal handlers have to know of each stretch is
 * in recover.c, by the labels.
 */
#include "runtime/thread.h"
#include "runtime/translate/offsets.h"

#define GPR(n)	   %gs:THREAD_REGS + 8 * (n)
#define VECTOR(n)  %gs:THREAD_VECTORS + 16 * (n)
#define HOME(n)	   %gs:16 * (n)(%rcx)

	.text

/* runtime/segment.h: an instruction whose first byte is the prefix of GS. */
	.macro	own instruction:vararg
771:	\instruction
	.pushsection segment_sites, "a", @progbits
	.balign	4
	.long	771b - .
	.popsection
	.endm

	.macro	begin name
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.endm

	.macro	finish name
	.globl	\name\()_end
	.hidden	\name\()_end
\name\()_end:
	.size	\name, . - \name
	.endm

/* _Noreturn void translate_run(struct thread *thread) */
	begin	translate_run
	own	mov %gs:THREAD_STACK, %rsp
	cld
	xor	%ebp, %ebp
	call	translate_dispatch
	jmp	translate_enter
	finish	translate_run

/*
 * Out, from the stub of an exit: thread->exit says by which. Comes back into translate_enter, which
 * follows: with a call that does not return the processor would take the program's next returns for
 * the runtime's.
 */
	begin	translate_leave
	own	mov %rax, GPR(0)
	own	mov %rcx, GPR(1)
	own	mov %rdx, GPR(2)
	own	mov %rbx, GPR(3)
	own	mov %rsp, GPR(4)
	own	mov %rbp, GPR(5)
	own	mov %rsi, GPR(6)
	own	mov %rdi, GPR(7)
	own	mov %r8, GPR(8)
	own	mov %r9, GPR(9)
	own	mov %r10, GPR(10)
	own	mov %r11, GPR(11)
	own	mov %r12, GPR(12)
	own	mov %r13, GPR(13)
	own	mov %r14, GPR(14)
	own	mov %r15, GPR(15)
	own	mov %gs:THREAD_STACK, %rsp
	pushf
	own	pop %gs:THREAD_RFLAGS
	/* The program's wishes for aligned accesses (AC) and a direction (DF) are not for us. */
	own	testl $(X86_EFLAGS_AC | X86_EFLAGS_DF), %gs:THREAD_RFLAGS
	jz	1f
	push	$FLAGS_CLEAN
	popf
1:	own	mov %gs:THREAD_LOOKUP, %rax
	cmpl	$1, LOOKUP_VECTORS(%rax)
	jb	3f
	mov	LOOKUP_HOME(%rax), %ecx
	own	movaps %xmm15, HOME(0)
	own	movaps VECTOR(0), %xmm15
	je	3f
	own	movaps %xmm14, HOME(1)
	own	movaps %xmm13, HOME(2)
	own	movaps %xmm12, HOME(3)
	own	movaps %xmm11, HOME(4)
	own	movaps VECTOR(1), %xmm14
	own	movaps VECTOR(2), %xmm13
	own	movaps VECTOR(3), %xmm12
	own	movaps VECTOR(4), %xmm11
3:	xor	%ebp, %ebp
	own	mov %gs:THREAD_SELF, %rdi
	call	translate_left
	finish	translate_leave

/*
 * Goes on in emitted code at thread->cache, with the program's registers. Until the last instruction
 * thread->regs is the whole truth: a signal that comes before the first one is pending, a later one
 * is delivered from there. The same goes for thread->vectors from translate_saved on.
 */
	begin	translate_enter
	own	cmpl $0, %gs:THREAD_PENDING
	own	mov %gs:THREAD_SELF, %rdi
	jne	translate_run
	own	mov %gs:THREAD_LOOKUP, %rax
	cmpl	$1, LOOKUP_VECTORS(%rax)
	jb	1f
	mov	LOOKUP_HOME(%rax), %ecx
	own	movaps %xmm15, VECTOR(0)
	je	translate_saved
	own	movaps %xmm14, VECTOR(1)
	own	movaps %xmm13, VECTOR(2)
	own	movaps %xmm12, VECTOR(3)
	own	movaps %xmm11, VECTOR(4)
	.globl	translate_saved
	.hidden	translate_saved
translate_saved:
	own	movaps HOME(0), %xmm15
	je	1f
	own	movaps HOME(1), %xmm14
	own	movaps HOME(2), %xmm13
	own	movaps HOME(3), %xmm12
	own	movaps HOME(4), %xmm11
	/* popf takes as long as all the rest: it is for others than those of arithmetic. */
1:	own	mov %gs:THREAD_RFLAGS, %rax
	mov	%eax, %ecx
	and	$~FLAGS_STATUS, %ecx
	cmp	$FLAGS_CLEAN, %ecx
	jne	2f
	bt	$X86_EFLAGS_OF_BIT, %eax
	setc	%cl
	mov	%al, %ah
	add	$0x7f, %cl
	sahf
3:	own	mov GPR(0), %rax
	own	mov GPR(1), %rcx
	own	mov GPR(2), %rdx
	own	mov GPR(3), %rbx
	own	mov GPR(4), %rsp
	own	mov GPR(5), %rbp
	own	mov GPR(6), %rsi
	own	mov GPR(7), %rdi
	own	mov GPR(8), %r8
	own	mov GPR(9), %r9
	own	mov GPR(10), %r10
	own	mov GPR(11), %r11
	own	mov GPR(12), %r12
	own	mov GPR(13), %r13
	own	mov GPR(14), %r14
	own	mov GPR(15), %r15
	own	jmp *%gs:THREAD_CACHE
2:	push	%rax
	popf
	jmp	3b
	finish	translate_enter

/*
 * A return whose candidate was another one: its target has been taken off the stack, the program's
 * rcx is in its slot.
 */
	begin	translate_return_miss
	mov	-8(%rsp), %rcx
	own	mov %rcx, %gs:THREAD_TARGET
	.globl	translate_return_popped
	.hidden	translate_return_popped
translate_return_popped:
	own	movl $EXIT_RETURN_MISS, %gs:THREAD_EXIT
	jmp	translate_look_up
	finish	translate_return_miss

/* Out of the middle of code, of which rcx says where that is. */
	.macro	come_out name, exit
	begin	\name
	own	mov %rcx, %gs:THREAD_CACHE
	own	mov %gs:THREAD_RCX, %rcx
	own	movl $\exit, %gs:THREAD_EXIT
	jmp	translate_leave
	finish	\name
	.endm

	/* A header has found the trace's buffer full; a filter has let an operand through. */
	come_out translate_drain, EXIT_DRAIN
	come_out translate_touch, EXIT_TOUCH

	/* A return's miss, for a jump or call to thread->target. */
	begin	translate_jump_miss
	own	movl $EXIT_JUMP_MISS, %gs:THREAD_EXIT
	finish	translate_jump_miss

/*
 * Second try: the hash of all that is translated. What is found becomes the candidate. rax and rdx
 * go to their slots, the flags to ax and from there to their slot.
 */
	begin	translate_look_up
	own	mov %rax, %gs:THREAD_RAX
	own	mov %rdx, %gs:THREAD_RDX
	.globl	translate_spilled
	.hidden	translate_spilled
translate_spilled:
	lahf
	seto	%al
	own	mov %rax, %gs:THREAD_FLAGS
	.globl	translate_flags_kept
	.hidden	translate_flags_kept
translate_flags_kept:
	own	mov %gs:THREAD_TARGET, %rcx
	movabs	$HASH_MULTIPLIER, %rax
	imul	%rcx, %rax
	shr	$32, %rax
	own	mov %gs:THREAD_LOOKUP, %rdx
	mov	LOOKUP_SLOTS(%rdx), %rdx
	and	HEAD_MASK(%rdx), %eax
1:	cmp	%ecx, (%rdx, %rax, 8)
	je	3f
	cmpl	$0, 4(%rdx, %rax, 8)
	je	2f
	inc	%eax
	jmp	1b

	/* Not there: out, with all registers as they were. */
2:	own	mov %gs:THREAD_LEAVE, %rax
	own	mov %rax, %gs:THREAD_CACHE
	jmp	9f

	/* An entry of that address, or else, and be it of one with the same lower half, out. */
3:	movslq	4(%rdx, %rax, 8), %rax
	test	%rax, %rax
	jle	2b
	imul	$ENTRY_SIZE, %rax
	own	mov %gs:THREAD_LOOKUP, %rdx
	add	LOOKUP_ENTRIES(%rdx), %rax
	cmp	%rcx, (%rax)
	jne	2b
	mov	%rax, %rcx
	mov	ENTRY_BODY(%rcx), %eax
	test	%eax, %eax
	je	2b
	add	LOOKUP_CODE(%rdx), %rax
	own	mov %rax, %gs:THREAD_CACHE
	/* Its landing or pad goes to the table. Without one it is for the dispatcher to make it. */
	own	mov %gs:THREAD_EXIT, %eax
	mov	ENTRY_ARRIVALS-4(%rcx, %rax, 4), %eax
	test	%eax, %eax
	je	2b
	add	LOOKUP_CODE(%rdx), %rax
	own	mov %rax, %gs:THREAD_ARRIVAL
	own	mov %gs:THREAD_TARGET, %rax
	own	cmpl $EXIT_RETURN_MISS, %gs:THREAD_EXIT
	je	5f
	cmpl	$0, LOOKUP_SHIFT(%rdx)
	mov	LOOKUP_TABLES(%rdx), %rdx
	je	4f
	and	(%rdx), %eax
	shr	$4, %eax
	jmp	6f
4:	and	(%rdx), %eax
	jmp	6f
5:	mov	LOOKUP_TABLES(%rdx), %rdx
	and	4(%rdx), %eax
	add	$1 << TABLE_BITS, %eax
6:	lea	TABLES_PLACES(%rdx, %rax, 8), %rax
	own	mov %gs:THREAD_ARRIVAL, %rdx
	/*
	 * Somebody may be killing the entry: first it loses its body, then its place in the table.
	 * With the full barrier of xchg between either he sees our store or we see that.
	 */
	xchg	%rdx, (%rax)
	cmpl	$0, ENTRY_BODY(%rcx)
	jne	7f
	own	mov %gs:THREAD_EXIT, %edx
	dec	%edx
	shl	$WAY_SHIFT, %rdx
	own	mov %gs:THREAD_LOOKUP, %rcx
	add	LOOKUP_CODE(%rcx), %rdx
	mov	%rdx, (%rax)
	jmp	2b

	/*
	 * That is behind where the landing or pad looks whether a counter has got to 0
	 * (count_near.c). None that nobody waits for ever does.
	 */
7:	own	mov %gs:THREAD_LOOKUP, %rdx
	cmpl	$0, LOOKUP_LOOKS(%rdx)
	je	9f
	cmpl	$1, LOOKUP_VECTORS(%rdx)
	movmskpd %xmm15, %eax
	je	8f
	movmskpd %xmm14, %ecx
	and	%ecx, %eax
	movmskpd %xmm13, %ecx
	and	%ecx, %eax
	movmskpd %xmm12, %ecx
	and	%ecx, %eax
	movmskpd %xmm11, %ecx
	and	%ecx, %eax
8:	cmp	$3, %eax
	jne	2b

9:	own	mov %gs:THREAD_FLAGS, %rax
	add	$0x7f, %al
	sahf
	.globl	translate_flags_back
	.hidden	translate_flags_back
translate_flags_back:
	own	mov %gs:THREAD_RAX, %rax
	own	mov %gs:THREAD_RDX, %rdx
	own	mov %gs:THREAD_RCX, %rcx
	own	jmp *%gs:THREAD_CACHE
	finish	translate_look_up

	.section .note.GNU-stack, "", @progbits
