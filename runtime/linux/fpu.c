// SPDX-License-Identifier: MIT
/*
 * Vector and x87 state. The runtime is compiled for general registers only, so what the processor
 * holds is always the program's. A frame's state is what xsave writes, with two marks of the
 * kernel's: its size in the area that the processor leaves to software, and a word behind its end.
 *
 *	0	legacy area: x87, mxcsr, xmm0 .. 15
 *	464	struct _fpx_sw_bytes: mark, size with the word behind, features, size
 *	512	header: the features that are not in their initial state
 *	576	the rest, where cpuid leaf 13 says
 *	size	FP_XSTATE_MAGIC2
 */
#include "runtime/linux/signal.h"

#include <asm/prctl.h>
#include <asm/sigcontext.h>
#include <asm/ucontext.h>

#include "runtime/string.h"
#include "runtime/sys.h"

enum {
	LEGACY_SIZE = 512,
	HEADER_SIZE = 64,
	SOFTWARE_AREA = 464,
	MXCSR = 24,
	MXCSR_INITIAL = 0x1f80,
	FEATURES_ALWAYS = 3, /* x87 and SSE, which old programs edit without telling */
	PKRU_INITIAL = 0x55555554,
};

#ifndef ARCH_GET_XCOMP_PERM
#define ARCH_GET_XCOMP_PERM 0x1022
#endif

#define CPUID_1_ECX_OSXSAVE (1U << 27)
#define CPUID_7_ECX_OSPKE   (1U << 4)

static struct {
	uint64_t features; /* 0: no xsave, the legacy area is all */
	uint32_t size;
	bool keys; /* memory protection keys */
} fpu;

struct cpuid {
	uint32_t eax, ebx, ecx, edx;
};

static struct cpuid cpuid(uint32_t leaf, uint32_t subleaf)
{
	struct cpuid result;

	__asm__("cpuid"
		: "=a"(result.eax), "=b"(result.ebx), "=c"(result.ecx), "=d"(result.edx)
		: "a"(leaf), "c"(subleaf));
	return result;
}

static uint64_t enabled_features(void)
{
	uint32_t low, high;
	uint64_t permitted;

	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	uint64_t enabled = low | (uint64_t)high << 32;
	/* Some (AMX) have to be asked for; then the frames grow, for all threads. */
	if (sys(__NR_arch_prctl, ARCH_GET_XCOMP_PERM, &permitted) == 0)
		enabled &= permitted;
	return enabled;
}

void fpu_learn(void)
{
	uint32_t size = LEGACY_SIZE + HEADER_SIZE;
	uint64_t features;

	if (!(cpuid(1, 0).ecx & CPUID_1_ECX_OSXSAVE)) {
		fpu.size = LEGACY_SIZE;
		return;
	}
	features = enabled_features();
	for (uint32_t i = 2; i < 63; i++) {
		if (!(features & 1UL << i))
			continue;
		struct cpuid where = cpuid(13, i);
		if (where.eax > FPU_STATE_MAX - sizeof(uint32_t) ||
		    where.ebx > FPU_STATE_MAX - sizeof(uint32_t) - where.eax)
			features &= ~(1UL << i); /* of a processor to come */
		else if (size < where.ebx + where.eax)
			size = where.ebx + where.eax;
	}
	fpu.keys = cpuid(7, 0).ecx & CPUID_7_ECX_OSPKE;
	/* In this order: other threads may be about to save what they know of. */
	fpu.size = size;
	__atomic_store_n(&fpu.features, features, __ATOMIC_RELEASE);
}

uint64_t fpu_context_flags(void)
{
	return UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS | (fpu.features ? UC_FP_XSTATE : 0);
}

size_t fpu_save(void *state)
{
	const uint64_t features = __atomic_load_n(&fpu.features, __ATOMIC_ACQUIRE);
	const uint32_t size = fpu.size, end = FP_XSTATE_MAGIC2;
	const struct _fpx_sw_bytes mark = {
		.magic1 = FP_XSTATE_MAGIC1,
		.extended_size = size + (uint32_t)sizeof(end),
		.xfeatures = features,
		.xstate_size = size,
	};
	char *bytes = state;

	if (!features) {
		__asm__ volatile("fxsave64 (%0)" : : "r"(state) : "memory");
		memset(bytes + SOFTWARE_AREA, 0, LEGACY_SIZE - SOFTWARE_AREA);
		return LEGACY_SIZE;
	}
	memset(state, 0, LEGACY_SIZE + HEADER_SIZE);
	__asm__ volatile("xsave64 (%0)"
			 :
			 : "r"(state), "a"((uint32_t)features), "d"((uint32_t)(features >> 32))
			 : "memory");
	memcpy(bytes + SOFTWARE_AREA, &mark, sizeof(mark));
	bytes[LEGACY_SIZE] |= FEATURES_ALWAYS;
	memcpy(bytes + size, &end, sizeof(end));
	return mark.extended_size;
}

void fpu_reset(void)
{
	static const struct {
		uint32_t before[MXCSR / 4], mxcsr;
		uint32_t rest[(LEGACY_SIZE + HEADER_SIZE - MXCSR) / 4 - 1];
	} initial __attribute__((aligned(64))) = {.mxcsr = MXCSR_INITIAL};

	if (!fpu.features) {
		__asm__ volatile("fninit\n\tldmxcsr %0" : : "m"(initial.mxcsr));
		return;
	}
	/* A header without any feature: each takes its initial state. */
	__asm__ volatile("xrstor64 %0"
			 :
			 : "m"(initial), "a"((uint32_t)fpu.features),
			   "d"((uint32_t)(fpu.features >> 32)));
	if (fpu.keys)
		__asm__ volatile("wrpkru" : : "a"(PKRU_INITIAL), "c"(0), "d"(0));
}
