/* SPDX-License-Identifier: MIT */
/*
 * The way into compiled blocks (compile.c) and out of them, and what they call. In there
 *
 *	rbx	the model
 *	rsi	the record
 *	rbp	the time
 *	r12	the history of conditions
 *	r13	sum of instructions
 *	r14	sum of lines
 *	r8	sum of branches
 *	r9	steps of the predictor
 *	r15	the depth of calls
 *	rax	the next record's code, once that is known
 *	rdi	the conditions' counters by history
 *	r10	the slots of data
 *	r11	mask of places of slots
 *
 * What is called finds in edi which accesses of the block it is about; for a fetch, in rdi which
 * line.
 */
#include "runtime/model/offsets.h"

	.text

	.macro	begin name
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.endm

	.macro	finish name
	.size	\name, . - \name
	.endm

/* So that instructions are short. */
	.macro	constants
	lea	MODEL_BY_HISTORY(%rbx), %rdi
	mov	MODEL_SLOTS(%rbx), %r10
	mov	$MODEL_SLOT_MASK, %r11d
	.endm

/* void model_enter(struct model *model, const uint64_t *trace) */
	begin	model_enter
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	sub	$8, %rsp
	mov	%rdi, %rbx
	constants
	mov	MODEL_TIME(%rbx), %rbp
	mov	MODEL_HISTORY(%rbx), %r12
	mov	MODEL_DEPTH(%rbx), %r15d
	xor	%r13d, %r13d
	xor	%r14d, %r14d
	xor	%r8d, %r8d
	xor	%r9d, %r9d
	jmp	*(%rsi)
	finish	model_enter

	begin	model_leave
	mov	%rbp, MODEL_TIME(%rbx)
	mov	%r12, MODEL_HISTORY(%rbx)
	mov	%r15d, MODEL_DEPTH(%rbx)
	mov	%r13, MODEL_SUMS(%rbx)
	mov	%r14, MODEL_SUMS + 8(%rbx)
	mov	%r8, MODEL_SUMS + 16(%rbx)
	mov	%r9, MODEL_SUMS + 24(%rbx)
	add	$8, %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	finish	model_leave

/* Around calls of C, which may take time. The stack is aligned then. */
	.macro	save
	push	%rsi
	push	%r8
	push	%r9
	mov	%rbp, MODEL_TIME(%rbx)
	mov	%rbx, %rdi
	.endm

	.macro	restore
	mov	MODEL_TIME(%rbx), %rbp
	constants
	pop	%r9
	pop	%r8
	pop	%rsi
	.endm

	begin	model_call_fetch
	mov	%rdi, %rcx
	save
	mov	%rcx, %rsi
	call	model_fetch
	restore
	ret
	finish	model_call_fetch

/*
 * Accesses of which the slot of the first byte, whose place is ecx, has not the line of the last
 * one: what differs is in rdx. If that line has this slot all are in it, and are used by C. If they
 * lie in two lines, and both have slots, they are used here: at the same time, since neighbours are
 * in different sets, unless there is only one.
 */
	begin	model_call_line
	xor	(%r10, %rcx), %rdx
	shr	$MODEL_PLACE_BITS, %rdx		/* the last line */
	lea	(, %rdx, 8), %eax
	and	%r11d, %eax			/* and the place of its slot */
	cmp	%ecx, %eax
	je	1f
	cmpl	$0, MODEL_ORDERED(%rbx)
	jne	model_call_access
	mov	(%r10, %rax), %rax
	mov	(%r10, %rcx), %rcx
	shl	$MODEL_PLACE_BITS, %rdx
	xor	%rdx, %rax
	sub	$(1 << MODEL_PLACE_BITS), %rdx
	xor	%rdx, %rcx
	mov	%rax, %rdx
	or	%rcx, %rdx
	shr	$MODEL_PLACE_BITS, %rdx
	jne	model_call_access
	mov	%rbp, (%rbx, %rax, 8)
	mov	%rbp, (%rbx, %rcx, 8)
	add	$MODEL_TICK, %rbp
	lea	MODEL_BY_HISTORY(%rbx), %rdi
	ret
1:	mov	%edi, %ecx
	save
	mov	%rdx, %rsi
	mov	%ecx, %edx
	mov	%r13, %rcx
	call	model_line
	restore
	ret
	finish	model_call_line

	begin	model_call_access
	mov	%edi, %edx
	save
	mov	%r13, %rcx
	call	model_access
	restore
	ret
	finish	model_call_access

/*
 * ecx: the address behind the branch. What predict_target() does where the target is that of the
 * same way before.
 */
	begin	model_call_target
	mov	MODEL_HEAD_PC(%rax), %edx
	incq	MODEL_INDIRECT(%rbx)
	mov	MODEL_PATH(%rbx), %r11
	imul	MODEL_SPREAD_PATH(%rbx), %r11
	mov	%ecx, %edi
	imul	MODEL_SPREAD_BRANCH(%rbx), %rdi
	xor	%rdi, %r11
	imul	MODEL_SPREAD_PATH(%rbx), %r11
	mov	%r11, %r10
	shr	$(64 - MODEL_TARGET_BITS), %r10	/* the place */
	shr	$16, %r11
	or	$1, %r11
	shl	$32, %r11
	or	%rdx, %r11			/* target | tag */
	cmp	%r11, MODEL_TARGETS(%rbx, %r10, 8)
	jne	1f
	cmpb	$MODEL_SURE_MOST, MODEL_SURE(%rbx, %r10)
	adcb	$0, MODEL_SURE(%rbx, %r10)
	shr	$(64 - MODEL_TARGET_BITS), %rdi
	mov	%edx, MODEL_LAST(%rbx, %rdi, 4)
	mov	MODEL_PATH(%rbx), %r11
	shl	$MODEL_PATH_SHIFT, %r11
	xor	%rdx, %r11
	shr	$16, %edx
	xor	%rdx, %r11
	mov	%r11, MODEL_PATH(%rbx)
	constants
	ret
1:	push	%rax
	sub	$8, %rsp
	save
	mov	%ecx, %esi
	call	model_target
	restore
	add	$8, %rsp
	pop	%rax
	ret
	finish	model_call_target

	.section .note.GNU-stack, "", @progbits
