// SPDX-License-Identifier: MIT
#include "workload.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

unsigned char *work_map(unsigned int pages)
{
	unsigned char *map = mmap(NULL, pages * page_size(), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		_exit(4);
	madvise(map, pages * page_size(), MADV_NOHUGEPAGE);
	return map;
}

void work_touch(unsigned char *pages, unsigned int first, unsigned int count)
{
	for (unsigned int i = first; i < first + count; i++)
		*(volatile unsigned char *)(pages + i * page_size()) = 1;
}

void work_faults(unsigned int count)
{
	unsigned char *map = work_map(count);

	work_touch(map, 0, count);
	munmap(map, count * page_size());
}

void work_store1(volatile void *at)
{
	*(volatile uint8_t *)at = 1;
}

void work_store4(volatile void *at)
{
	*(volatile uint32_t *)at = 1;
}

void work_store8(volatile void *at)
{
	*(volatile uint64_t *)at = 1;
}

void work_load4(const volatile void *at)
{
	(void)*(const volatile uint32_t *)at;
}

/*
 * Written out, so that they have frame pointers, that a uprobe finds a plain instruction at the
 * entry, and that no compiler merges or inlines them.
 */
__asm__(".text\n"
	".p2align 4\n"
	".globl work_called\n"
	".type work_called, @function\n"
	"work_called:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size work_called, . - work_called\n"
	".globl work_middle\n"
	".type work_middle, @function\n"
	"work_middle:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	call work_called\n"
	"	pop %rbp\n"
	"	ret\n"
	".size work_middle, . - work_middle\n"
	".globl work_outer\n"
	".type work_outer, @function\n"
	"work_outer:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	call work_middle\n"
	"	pop %rbp\n"
	"	ret\n"
	".size work_outer, . - work_outer\n");

void work_calls(unsigned int count)
{
	while (count--)
		work_called();
}

void work_call_chain(void)
{
	work_outer();
}

void work_loop(uint64_t count)
{
	__asm__ volatile("mov %0, %%rcx\n"
			 "1:	dec %%rcx\n"
			 "	jnz 1b\n"
			 :
			 : "r"(count)
			 : "rcx", "cc");
}

void work_memory(uint64_t *words, uint64_t count)
{
	__asm__ volatile("mov %1, %%rcx\n"
			 "1:	mov (%0), %%rax\n"
			 "	mov %%rax, 8(%0)\n"
			 "	dec %%rcx\n"
			 "	jnz 1b\n"
			 :
			 : "r"(words), "r"(count)
			 : "rcx", "rax", "cc", "memory");
}

void work_spin(uint64_t nanoseconds)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		work_loop(10000);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((uint64_t)(now.tv_sec - start.tv_sec) * 1000000000 + (uint64_t)now.tv_nsec <
		 (uint64_t)start.tv_nsec + nanoseconds);
}

void work_with_pattern(void (*work)(void *), void *arg)
{
	uint64_t pattern[16];

	for (int i = 0; i < 16; i++)
		pattern[i] = WORK_PATTERN;
	__asm__ volatile("" : : "r"(pattern) : "memory");
	work(arg);
	__asm__ volatile("" : : "r"(pattern) : "memory");
}
