/* SPDX-License-Identifier: MIT */
/*
 * The only instructions of the runtime that may fault: all between copy_faulty and copy_faulty_end.
 * They keep nothing on the stack, so whichever of them faults, copy_faulted returns from it.
 */
	.text
	.globl	copy_faulty, copy_faulty_end, copy_faulted
	.hidden	copy_faulty, copy_faulty_end, copy_faulted

/*
 * int64_t copy_bytes(void *to, const void *from, size_t size): most are a few words, for which rep
 * takes several times as long to begin as all the rest.
 */
	.globl	copy_bytes
	.hidden	copy_bytes
	.type	copy_bytes, @function
copy_bytes:
	mov	%rdx, %rcx
copy_faulty:
	cmp	$128, %rcx
	ja	4f
	sub	$8, %rcx
	jb	2f
1:	mov	(%rsi), %rax
	mov	%rax, (%rdi)
	add	$8, %rsi
	add	$8, %rdi
	sub	$8, %rcx
	jae	1b
2:	add	$8, %rcx
	jz	4f
3:	movzbl	(%rsi), %eax
	mov	%al, (%rdi)
	inc	%rsi
	inc	%rdi
	dec	%rcx
	jnz	3b
4:	rep movsb
	xor	%eax, %eax
	ret
	.size	copy_bytes, . - copy_bytes

/* int64_t copy_eight(uint64_t *to, uint64_t from) */
	.globl	copy_eight
	.hidden	copy_eight
	.type	copy_eight, @function
copy_eight:
	mov	(%rsi), %rdx
	xor	%eax, %eax
	mov	%rdx, (%rdi)
	ret
	.size	copy_eight, . - copy_eight

/*
 * int64_t copy_load(uint64_t *to, uint64_t from, unsigned int size), the same in FS copy_load_fs, and
 * copy_store(uint64_t to, uint64_t value, unsigned int size): one access of 1, 2, 4 or 8 bytes.
 */
	.macro	by_size name:req, eight:req, four:req, two:req, one:req, last
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	xor	%eax, %eax
	cmp	$4, %edx
	ja	8f
	je	4f
	cmp	$1, %edx
	je	1f
	\two
	\last
	ret
8:	\eight
	\last
	ret
4:	\four
	\last
	ret
1:	\one
	\last
	ret
	.size	\name, . - \name
	.endm
	by_size	copy_load, "mov (%rsi), %rdx", "mov (%rsi), %edx", "movzwl (%rsi), %edx", \
		"movzbl (%rsi), %edx", "mov %rdx, (%rdi)"
	by_size	copy_load_fs, "mov %fs:(%rsi), %rdx", "mov %fs:(%rsi), %edx", \
		"movzwl %fs:(%rsi), %edx", "movzbl %fs:(%rsi), %edx", "mov %rdx, (%rdi)"
	by_size	copy_store, "mov %rsi, (%rdi)", "mov %esi, (%rdi)", "mov %si, (%rdi)", \
		"mov %sil, (%rdi)"

/* int64_t copy_code(uint64_t to[2], uint64_t from): an instruction, whatever it is */
	.globl	copy_code
	.hidden	copy_code
	.type	copy_code, @function
copy_code:
	mov	(%rsi), %rdx
	mov	8(%rsi), %rcx
	xor	%eax, %eax
	mov	%rdx, (%rdi)
	mov	%rcx, 8(%rdi)
	ret
	.size	copy_code, . - copy_code

/* int64_t copy_int80(void): getpid(2) of 32-bit programs, which may be no system call at all. */
	.globl	copy_int80
	.hidden	copy_int80
	.type	copy_int80, @function
copy_int80:
	mov	$20, %eax
	int	$0x80
	xor	%eax, %eax
	ret
	.size	copy_int80, . - copy_int80

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
