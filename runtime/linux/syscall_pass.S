/* SPDX-License-Identifier: MIT */
/*
 * The system call of the program itself. What makes it more than one instruction is a signal that
 * comes just before the kernel blocks: its handler in the runtime only remembers it, and the call
 * would sleep on it. So the last thing before the call is to look whether one is remembered, and a
 * signal that comes between that look and the end of the call tells by the address where it came:
 *
 *	syscall_pass_look ... syscall_pass_made - 1	the call was not made: go to _not_made.
 *							The kernel sets rip back onto the syscall
 *							instruction to have a call made again.
 *	syscall_pass_made				the call was made; rax has its result
 *
 * int64_t syscall_pass_asm(const struct syscall *call, const uint32_t *pending)
 */
	.text
	.globl	syscall_pass_asm, syscall_pass_look, syscall_pass_made, syscall_pass_not_made
	.hidden	syscall_pass_asm, syscall_pass_look, syscall_pass_made, syscall_pass_not_made
	.type	syscall_pass_asm, @function
syscall_pass_asm:
	mov	%rdi, %rcx		/* rcx and r11 are what the call destroys anyway */
	mov	%rsi, %r11
	mov	(%rcx), %rax
	mov	8(%rcx), %rdi
	mov	16(%rcx), %rsi
	mov	24(%rcx), %rdx
	mov	32(%rcx), %r10
	mov	40(%rcx), %r8
	mov	48(%rcx), %r9
syscall_pass_look:
	cmpl	$0, (%r11)
	jne	syscall_pass_not_made
	syscall
syscall_pass_made:
	ret
syscall_pass_not_made:
	mov	$-0x40000000, %rax	/* SYSCALL_NOT_MADE */
	ret
	.size	syscall_pass_asm, . - syscall_pass_asm

	.section .note.GNU-stack, "", @progbits
