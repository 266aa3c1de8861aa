/* SPDX-License-Identifier: MIT */
/*
 * The way into compiled blocks (compile.c) and out of them, and what they call. In there
 *
 *	rbx	the model
 *	rsi	the record
 *	rbp	the time
 *	r12	the history of conditions
 *	r13	instructions | loads << SUM_LOADS
 *	r14	lines of code | stores << SUM_STORES
 *	r8	branches | conditions << SUM_CONDITIONS | taken << SUM_TAKEN
 *	r9	steps of the predictor
 *	r15	the block: its address in the lower half
 *	rax	the next record's code, once that is known
 *	rdi	the slots of data
 *	r10, r11 masks: of histories, and of places of slots
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
	mov	MODEL_SLOTS(%rbx), %rdi
	mov	$MODEL_HISTORY_MASK, %r10d
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
	xor	%r13d, %r13d
	xor	%r14d, %r14d
	xor	%r8d, %r8d
	xor	%r9d, %r9d
	jmp	*(%rsi)
	finish	model_enter

	begin	model_leave
	mov	%rbp, MODEL_TIME(%rbx)
	mov	%r12, MODEL_HISTORY(%rbx)
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
	save
	mov	%r15d, %esi
	mov	%r13, %rdx
	call	model_fetch
	restore
	ret
	finish	model_call_fetch

/*
 * Accesses of which the first byte's slot, at the place in rcx, has not the line of the last one,
 * in rdx; edi: which accesses. If that line has this slot, all are in it.
 */
	begin	model_call_line
	mov	%edx, %eax
	and	$(MODEL_DATA_SLOTS - 1), %eax
	shl	$4, %eax
	cmp	%eax, %ecx
	mov	%rdx, %rax
	mov	%edi, %edx
	jne	model_call_access
	save
	mov	%rax, %rsi
	mov	%r13, %rcx
	call	model_line
	restore
	ret
	finish	model_call_line

/* edx: which accesses */
	begin	model_call_access
	save
	mov	%edx, %ecx
	mov	%r15d, %edx
	mov	%r13, %r8
	call	model_access
	restore
	ret
	finish	model_call_access

/* edi: the address behind the branch, ecx: whether it is a call */
	begin	model_call_target
	push	%rax
	sub	$8, %rsp
	mov	%edi, %r10d
	save
	mov	%r10d, %esi
	mov	MODEL_HEAD_PC(%rax), %edx
	call	model_target
	restore
	add	$8, %rsp
	pop	%rax
	ret
	finish	model_call_target

	.section .note.GNU-stack, "", @progbits
