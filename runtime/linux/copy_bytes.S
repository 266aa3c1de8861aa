/* SPDX-License-Identifier: MIT */
/*
 * The only instructions of the runtime that may fault: all between copy_faulty and copy_faulty_end.
 * They keep nothing on the stack, so whichever of them faults, copy_faulted returns from it.
 */
	.text
	.globl	copy_faulty, copy_faulty_end, copy_faulted
	.hidden	copy_faulty, copy_faulty_end, copy_faulted

/* int64_t copy_bytes(void *to, const void *from, size_t size) */
	.globl	copy_bytes
	.hidden	copy_bytes
	.type	copy_bytes, @function
copy_bytes:
	mov	%rdx, %rcx
copy_faulty:
	rep movsb
	xor	%eax, %eax
	ret
	.size	copy_bytes, . - copy_bytes

/* int64_t copy_word(uint64_t *to, uint64_t from) */
	.globl	copy_word
	.hidden	copy_word
	.type	copy_word, @function
copy_word:
	mov	(%rsi), %rdx
	xor	%eax, %eax
	mov	%rdx, (%rdi)
	ret
	.size	copy_word, . - copy_word

/* int64_t copy_string(char *to, const char *from, size_t size) */
	.globl	copy_string
	.hidden	copy_string
	.type	copy_string, @function
copy_string:
	xor	%eax, %eax
1:	cmp	%rdx, %rax
	jae	2f
	movzbl	(%rsi,%rax), %ecx
	mov	%cl, (%rdi,%rax)
	test	%ecx, %ecx
	jz	3f
	inc	%rax
	jmp	1b
2:	mov	$-36, %rax		/* -ENAMETOOLONG */
3:	ret
copy_faulty_end:
	.size	copy_string, . - copy_string

copy_faulted:
	mov	$-14, %rax		/* -EFAULT */
	ret

	.section .note.GNU-stack, "", @progbits
