/* SPDX-License-Identifier: MIT */
/*
 * Looking through the ways of a set, four at a time. The vectors are the program's: whoever comes
 * here has kept them (model.c), as compilers do not know of it where the runtime is built without.
 */
#ifndef RUNTIME_MODEL_SCAN_H
#define RUNTIME_MODEL_SCAN_H

#include <stdint.h>

#ifdef __SSE2__
#define SCAN_CLOBBERS "xmm0", "xmm1", "xmm2", "xmm3", "memory", "cc"
#else
#define SCAN_CLOBBERS "memory", "cc"
#endif

enum { SCAN_VECTORS = 4 };

/* Words that are looked at together; their number is a multiple of this. */
#define SCAN_WORDS 4u

/* Which of the words at @words, aligned, are @word: a bit for each. */
static inline uint32_t scan_for(const uint32_t *words, uint64_t bytes, uint32_t word)
{
	uint32_t found = 0, four;

	__asm__ volatile("movd	%[word], %%xmm0\n"
			 "	pshufd	$0, %%xmm0, %%xmm0\n"
			 "1:	movdqa	-16(%[words], %[bytes]), %%xmm1\n"
			 "	pcmpeqd	%%xmm0, %%xmm1\n"
			 "	movmskps %%xmm1, %[four]\n"
			 "	shl	$4, %[found]\n"
			 "	or	%[four], %[found]\n"
			 "	sub	$16, %[bytes]\n"
			 "	jne	1b"
			 : [found] "+r"(found), [four] "=&r"(four), [bytes] "+r"(bytes)
			 : [words] "r"(words), [word] "r"(word)
			 : SCAN_CLOBBERS);
	return found;
}

/* The same of eight words. */
static inline uint32_t scan_eight_for(const uint32_t *words, uint32_t word)
{
	uint32_t found;

	__asm__ volatile("movd	%[word], %%xmm0\n"
			 "	pshufd	$0, %%xmm0, %%xmm0\n"
			 "	movdqa	(%[words]), %%xmm1\n"
			 "	pcmpeqd	%%xmm0, %%xmm1\n"
			 "	pcmpeqd	16(%[words]), %%xmm0\n"
			 "	packssdw %%xmm0, %%xmm1\n"
			 "	packsswb %%xmm1, %%xmm1\n"
			 "	pmovmskb %%xmm1, %[found]\n"
			 : [found] "=r"(found)
			 : [words] "r"(words), [word] "r"(word)
			 : SCAN_CLOBBERS);
	return found & 0xff;
}

/* xmm1: the lesser ones of those in xmm1 and xmm2 */
#define SCAN_LESSER                                                                                \
	"	movdqa	%%xmm1, %%xmm3\n"                                                                 \
	"	pcmpgtd	%%xmm2, %%xmm3\n"                                                                \
	"	pand	%%xmm3, %%xmm2\n"                                                                   \
	"	pandn	%%xmm1, %%xmm3\n"                                                                  \
	"	movdqa	%%xmm3, %%xmm1\n"                                                                 \
	"	por	%%xmm2, %%xmm1\n"

/* The least of the words at @words, aligned and below 2^31; of the last four with @beside set. */
static inline uint32_t scan_least(const uint32_t *words, uint64_t bytes, const uint32_t *beside)
{
	uint32_t least;

	__asm__ volatile("movdqa	-16(%[words], %[bytes]), %%xmm1\n"
			 "	por	(%[beside]), %%xmm1\n"
			 "	jmp	2f\n"
			 "1:	movdqa	-16(%[words], %[bytes]), %%xmm2\n" SCAN_LESSER
			 "2:	sub	$16, %[bytes]\n"
			 "	jne	1b\n"
			 "	pshufd	$0x4e, %%xmm1, %%xmm2\n" SCAN_LESSER
			 "	pshufd	$0xb1, %%xmm1, %%xmm2\n" SCAN_LESSER
			 "	movd	%%xmm1, %[least]"
			 : [least] "=r"(least), [bytes] "+r"(bytes)
			 : [words] "r"(words), [beside] "r"(beside)
			 : SCAN_CLOBBERS);
	return least;
}

/* Keeps what the others change, and gives it back. */
static inline void scan_keep(uint8_t *vectors)
{
	__asm__ volatile("movups %%xmm0, (%0); movups %%xmm1, 16(%0)\n"
			 "	movups %%xmm2, 32(%0); movups %%xmm3, 48(%0)"
			 :
			 : "r"(vectors)
			 : "memory");
}

static inline void scan_give_back(const uint8_t *vectors)
{
	__asm__ volatile("movups (%0), %%xmm0; movups 16(%0), %%xmm1\n"
			 "	movups 32(%0), %%xmm2; movups 48(%0), %%xmm3"
			 :
			 : "r"(vectors)
			 : SCAN_CLOBBERS);
}

#endif
