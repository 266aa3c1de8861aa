// SPDX-License-Identifier: MIT
#include "by_fs.h"

__asm__(".text\n"
	".globl load_by_fs\n"
	"load_by_fs:\n"
	"	push %rbx\n"
	"	mov %rdi, %rbx\n"
	"	mov %rsi, %r8\n"
	"	mov %rdx, %r9\n"
	"	mov %fs:0, %r10\n"
	"1:	mov $158, %eax\n"    /* arch_prctl */
	"	mov $0x1002, %edi\n" /* ARCH_SET_FS */
	"	mov %rbx, %rsi\n"
	"	syscall\n"
	"	mov %fs:0, %rax\n"
	"	add %r9, %rbx\n"
	"	cmp %r8, %rbx\n"
	"	jb 1b\n"
	"	mov $158, %eax\n"
	"	mov $0x1002, %edi\n"
	"	mov %r10, %rsi\n"
	"	syscall\n"
	"	pop %rbx\n"
	"	ret\n");
