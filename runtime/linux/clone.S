/* SPDX-License-Identifier: MIT */
#include <asm/unistd.h>

	.text

/*
 * int64_t clone_pass(const struct syscall *call, struct task *child)
 *
 * Makes the call, which is clone or clone3. In the parent: returns its result. In the child: calls
 * thread_begin(child), on the stack that the call names, or on a copy of the parent's.
 */
	.globl	clone_pass
	.hidden	clone_pass
	.type	clone_pass, @function
clone_pass:
	push	%rbx
	mov	%rsi, %rbx
	mov	%rdi, %rcx
	mov	(%rcx), %rax
	mov	8(%rcx), %rdi
	mov	16(%rcx), %rsi
	mov	24(%rcx), %rdx
	mov	32(%rcx), %r10
	mov	40(%rcx), %r8
	mov	48(%rcx), %r9
	syscall
	test	%rax, %rax
	jz	1f
	pop	%rbx
	ret
1:	mov	%rbx, %rdi
	and	$-16, %rsp
	xor	%ebp, %ebp
	call	thread_begin
	ud2
	.size	clone_pass, . - clone_pass

/*
 * _Noreturn void thread_end(uint64_t status, uint32_t *used)
 *
 * Ends the calling thread. With the store its slot is anybody's, so nothing of it is touched then,
 * the stack included.
 */
	.globl	thread_end
	.hidden	thread_end
	.type	thread_end, @function
thread_end:
	movl	$0, (%rsi)
	mov	$__NR_exit, %eax
	syscall
	ud2
	.size	thread_end, . - thread_end

	.section .note.GNU-stack, "", @progbits
