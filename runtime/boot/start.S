/* SPDX-License-Identifier: MIT */
/*
 * Where the kernel starts tally-rt. The program's stack begins where rsp is now, and below it the
 * boot works: a program finds nothing there that it may count on.
 */
	.text
	.globl	_start
	.hidden	_start
	.type	_start, @function
_start:
	xor	%ebp, %ebp
	mov	%rsp, %rdi
	call	boot			/* rsp is a multiple of 16, as the ABI has it at a call */
	.size	_start, . - _start

	.section .note.GNU-stack, "", @progbits
