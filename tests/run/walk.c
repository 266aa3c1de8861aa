// SPDX-License-Identifier: MIT
#include <stddef.h>

#include "walk.h"

__asm__(".text\n"
	".globl walk, walk_load, walk_store, walk_call, walk_back, walk_branch\n"
	".globl leaf, leaf_return\n"
	".p2align 6\n"
	"walk:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"1:\n"
	"walk_store:\n"
	"	mov %rdi, 8(%rdi)\n"
	"walk_load:\n"
	"	mov (%rdi), %rdi\n"
	"walk_call:\n"
	"	call leaf\n"
	"walk_back:\n"
	"	test %rdi, %rdi\n"
	"walk_branch:\n"
	"	jnz 1b\n"
	"	pop %rbp\n"
	"	ret\n"
	"leaf:\n"
	"	nop\n"
	"leaf_return:\n"
	"	ret\n");

struct cell cells[CELLS] __attribute__((aligned(4096)));

struct cell *make_list(unsigned int stride)
{
	for (unsigned int i = 0; i < CELLS; i++)
		cells[i].next = i + stride < CELLS ? &cells[i + stride] : NULL;
	return cells;
}
