/* SPDX-License-Identifier: MIT */
/*
 * Where the kernel starts tally-rt. The program's stack begins where rsp is now; the boot works on
 * another one, so that the program finds its own as the kernel makes it, and as much of it.
 */
#include "runtime/linux/thread_slots.h"

	.text
	.globl	_start
	.hidden	_start
	.type	_start, @function
_start:
	xor	%ebp, %ebp
	mov	%rsp, %rbx
	mov	%rsp, %rdi
	call	move			/* rsp is a multiple of 16, as the ABI has it at a call */
	lea	moved(%rip), %rcx
	add	%rax, %rcx
	jmp	*%rcx
moved:
	lea	slot_first + SLOT_SIZE(%rip), %rsp
	mov	%rbx, %rdi
	mov	%rax, %rsi
	call	boot
	.size	_start, . - _start

	.section .note.GNU-stack, "", @progbits
