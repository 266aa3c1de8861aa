// SPDX-License-Identifier: MIT
/*
 * The kernel brackets every change of the page by two increments of its lock. The reader is the
 * measured thread itself on the same processor, so that compiler barriers would do; the fences
 * below cost nothing more on x86 and keep the protocol right on any machine.
 */
#include "lib/counter/user_page.h"

#include <stddef.h>
#include <string.h>

#include "lib/counter/value.h"

/* An update takes nanoseconds: a page that never settles is not one of the kernel's. */
#define MAX_ATTEMPTS 10000

/* One consistent picture of the page and the two clocks. */
struct picture {
	uint64_t capabilities, enabled, running, pmc, tsc;
	int64_t offset;
	uint32_t index;
	uint16_t width;
	uint64_t time_offset, time_cycles, time_mask;
	uint32_t time_mult;
	uint16_t time_shift;
};

/* Bits of perf_event_mmap_page.capabilities. */
#define CAP_USER_RDPMC	    (UINT64_C(1) << 2)
#define CAP_USER_TIME	    (UINT64_C(1) << 3)
#define CAP_USER_TIME_SHORT (UINT64_C(1) << 5)

#define LOAD(member) __atomic_load_n(&page->member, __ATOMIC_RELAXED)

static bool take_picture(struct picture *p, const struct perf_event_mmap_page *page,
			 const struct tly_user_clock *clock)
{
	uint32_t lock;

	for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		p->capabilities = LOAD(capabilities);
		p->index = LOAD(index);
		if (!(p->capabilities & CAP_USER_RDPMC) || !p->index)
			return false;
		p->offset = LOAD(offset);
		p->width = LOAD(pmc_width);
		p->enabled = LOAD(time_enabled);
		p->running = LOAD(time_running);
		if (p->capabilities & CAP_USER_TIME) {
			p->time_offset = LOAD(time_offset);
			p->time_mult = LOAD(time_mult);
			p->time_shift = LOAD(time_shift);
			p->tsc = clock->tsc(clock->ctx);
		}
		if (p->capabilities & CAP_USER_TIME_SHORT) {
			p->time_cycles = LOAD(time_cycles);
			p->time_mask = LOAD(time_mask);
		}
		p->pmc = clock->pmc(p->index - 1, clock->ctx);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(lock & 1) && LOAD(lock) == lock)
			return true;
	}
	return false;
}

/* Nanoseconds since the kernel last wrote the times. */
static uint64_t time_since_update(const struct picture *p)
{
	uint64_t cycles = p->tsc, quot, rem;

	if (p->capabilities & CAP_USER_TIME_SHORT)
		cycles = p->time_cycles + ((cycles - p->time_cycles) & p->time_mask);
	quot = cycles >> p->time_shift;
	rem = cycles & ((UINT64_C(1) << p->time_shift) - 1);
	return p->time_offset + quot * p->time_mult +
	       (uint64_t)((unsigned __int128)rem * p->time_mult >> p->time_shift);
}

static uint64_t sign_extend(uint64_t value, unsigned int width)
{
	return (uint64_t)((int64_t)(value << (64 - width)) >> (64 - width));
}

bool tly_user_page_read(const struct perf_event_mmap_page *page, const struct tly_user_clock *clock,
			struct tally_value *value)
{
	struct picture p = {0};

	if (!take_picture(&p, page, clock))
		return false;
	if (p.width == 0 || p.width > 64)
		return false;
	if (p.capabilities & CAP_USER_TIME) {
		uint64_t delta;

		if (p.time_shift > 63)
			return false;
		delta = time_since_update(&p);
		p.enabled += delta;
		p.running += delta;
	} else if (!p.running) {
		/* On the hardware, but for the first time: the times are yet to be written. */
		return false;
	}
	memset(value, 0, sizeof(*value));
	value->raw = (uint64_t)p.offset + sign_extend(p.pmc, p.width);
	value->time_enabled = p.enabled;
	value->time_running = p.running;
	tly_value_judge(value, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	return true;
}

#ifdef __x86_64__
static uint64_t native_pmc(uint32_t counter, void *ctx)
{
	uint32_t low, high;

	(void)ctx;
	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
	return (uint64_t)high << 32 | low;
}

static uint64_t native_tsc(void *ctx)
{
	(void)ctx;
	return __builtin_ia32_rdtsc();
}

const struct tly_user_clock *tly_user_clock_native(void)
{
	static const struct tly_user_clock native = {native_pmc, native_tsc, NULL};

	return &native;
}
#else
const struct tly_user_clock *tly_user_clock_native(void)
{
	return NULL;
}
#endif
