/* SPDX-License-Identifier: MIT */
/*
 * Looking through the ways of a set, some at a time. The vectors are the program's: whoever comes
 * here has kept them (model.c), as compilers do not know of it where the runtime is built without.
 */
#ifndef RUNTIME_MODEL_SCAN_H
#define RUNTIME_MODEL_SCAN_H

#include <stdint.h>

#ifdef __SSE2__
#define SCAN_CLOBBERS "xmm0", "xmm1", "xmm2", "memory", "cc"
#else
#define SCAN_CLOBBERS "memory", "cc"
#endif

enum { SCAN_VECTORS = 3 };

/* Keys that are looked at together; their number is a multiple of this. */
#define SCAN_KEYS 4u

/* Which of the keys at @keys, aligned, have @low for their lower half: a bit for each. */
static inline uint32_t scan_keys_for(const uint64_t *keys, uint64_t bytes, uint32_t low)
{
	uint32_t found = 0, four;

	__asm__ volatile("movd	%[low], %%xmm0\n"
			 "	pshufd	$0, %%xmm0, %%xmm0\n"
			 "1:	movaps	-32(%[keys], %[bytes]), %%xmm1\n"
			 "	shufps	$0x88, -16(%[keys], %[bytes]), %%xmm1\n"
			 "	pcmpeqd	%%xmm0, %%xmm1\n"
			 "	movmskps %%xmm1, %[four]\n"
			 "	shl	$4, %[found]\n"
			 "	or	%[four], %[found]\n"
			 "	sub	$32, %[bytes]\n"
			 "	jne	1b"
			 : [found] "+r"(found), [four] "=&r"(four), [bytes] "+r"(bytes)
			 : [keys] "r"(keys), [low] "r"(low)
			 : SCAN_CLOBBERS);
	return found;
}

/* The same of eight keys. */
static inline uint32_t scan_eight_keys_for(const uint64_t *keys, uint32_t low)
{
	uint32_t found;

	__asm__ volatile("movd	%[low], %%xmm0\n"
			 "	pshufd	$0, %%xmm0, %%xmm0\n"
			 "	movaps	(%[keys]), %%xmm1\n"
			 "	shufps	$0x88, 16(%[keys]), %%xmm1\n"
			 "	movaps	32(%[keys]), %%xmm2\n"
			 "	shufps	$0x88, 48(%[keys]), %%xmm2\n"
			 "	pcmpeqd	%%xmm0, %%xmm1\n"
			 "	pcmpeqd	%%xmm0, %%xmm2\n"
			 "	packssdw %%xmm2, %%xmm1\n"
			 "	packsswb %%xmm1, %%xmm1\n"
			 "	pmovmskb %%xmm1, %[found]\n"
			 : [found] "=r"(found)
			 : [keys] "r"(keys), [low] "r"(low)
			 : SCAN_CLOBBERS);
	return found & 0xff;
}

/* Which of 16 words at @words, aligned, are @word: a bit for each. */
static inline uint32_t scan_words_for(const uint32_t *words, uint32_t word)
{
	uint32_t found;

	__asm__ volatile("movd	%[word], %%xmm0\n"
			 "	pshufd	$0, %%xmm0, %%xmm0\n"
			 "	movdqa	(%[words]), %%xmm1\n"
			 "	movdqa	16(%[words]), %%xmm2\n"
			 "	pcmpeqd	%%xmm0, %%xmm1\n"
			 "	pcmpeqd	%%xmm0, %%xmm2\n"
			 "	packssdw %%xmm2, %%xmm1\n"
			 "	movdqa	32(%[words]), %%xmm2\n"
			 "	pcmpeqd	%%xmm0, %%xmm2\n"
			 "	pcmpeqd	48(%[words]), %%xmm0\n"
			 "	packssdw %%xmm0, %%xmm2\n"
			 "	packsswb %%xmm2, %%xmm1\n"
			 "	pmovmskb %%xmm1, %[found]\n"
			 : [found] "=r"(found)
			 : [words] "r"(words), [word] "r"(word)
			 : SCAN_CLOBBERS);
	return found;
}

/* Which of 16 bytes at @bytes, aligned, are what @those has: a bit for each. */
static inline uint32_t scan_bytes_for(const uint8_t *bytes, const uint8_t *those)
{
	uint32_t found;

	__asm__ volatile("movdqa	(%[bytes]), %%xmm0\n"
			 "	pcmpeqb	(%[those]), %%xmm0\n"
			 "	pmovmskb %%xmm0, %[found]"
			 : [found] "=r"(found)
			 : [bytes] "r"(bytes), [those] "r"(those)
			 : SCAN_CLOBBERS);
	return found;
}

/* Adds 1 to those of 16 bytes at @bytes, aligned and each xor'ed with that of @with, that are less
 * than @limit. */
static inline void scan_increase(uint8_t *bytes, const uint8_t *with, uint32_t limit)
{
	__asm__ volatile("movd	%[limit], %%xmm0\n"
			 "	pshufd	$0, %%xmm0, %%xmm0\n"
			 "	movdqa	(%[with]), %%xmm2\n"
			 "	movdqa	(%[bytes]), %%xmm1\n"
			 "	pxor	%%xmm2, %%xmm1\n"
			 "	pcmpgtb	%%xmm1, %%xmm0\n"
			 "	psubb	%%xmm0, %%xmm1\n"
			 "	pxor	%%xmm2, %%xmm1\n"
			 "	movdqa	%%xmm1, (%[bytes])"
			 :
			 : [bytes] "r"(bytes), [with] "r"(with), [limit] "r"(limit * 0x01010101u)
			 : SCAN_CLOBBERS);
}

/* Keeps what the others change, and gives it back. */
static inline void scan_keep(uint8_t *vectors)
{
	__asm__ volatile("movups %%xmm0, (%0); movups %%xmm1, 16(%0); movups %%xmm2, 32(%0)"
			 :
			 : "r"(vectors)
			 : "memory");
}

static inline void scan_give_back(const uint8_t *vectors)
{
	__asm__ volatile("movups (%0), %%xmm0; movups 16(%0), %%xmm1; movups 32(%0), %%xmm2"
			 :
			 : "r"(vectors)
			 : SCAN_CLOBBERS);
}

#endif
