// SPDX-License-Identifier: MIT
/* The attr alone is wrong: its size, contradictions within it, breakpoints that cannot be. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "abi/attr.h"
#include "lib/probe/refusal/refusal.h"
#include "lib/readfile.h"

#define SETTING(name) "/proc/sys/kernel/perf_event_" name

/* Size */

static bool size_is_impossible(struct tly_refusal *r)
{
	uint32_t size = r->attr->attr.size;

	tly_refusal_detail(r, "%" PRIu32, size);
	return size < PERF_ATTR_SIZE_VER0 || size > TLY_ATTR_MAX;
}

static bool field_is_too_new(struct tly_refusal *r)
{
	uint32_t known = r->attr->kernel_size;

	if (!known || known >= r->attr->attr.size || tly_attr_zero_after(&r->attr->attr, known))
		return false;
	for (size_t i = 0; i < tly_attr_nr_items; i++) {
		const struct tly_attr_item *item = &tly_attr_items[i];

		if (item->offset >= known && !item->of && tly_attr_get(&r->attr->attr, item)) {
			tly_refusal_detail(r, "attr.%s, which came with Linux %s", item->name,
					   item->since);
			return true;
		}
	}
	tly_refusal_detail(r, "a field behind the %" PRIu32 " bytes of attr that it knows", known);
	return true;
}

/* Contradictions within the attr */

static bool reserved_is_set(struct tly_refusal *r)
{
	tly_refusal_detail(r, "attr.__reserved_2");
	return tly_refusal_get(r, "__reserved_2") != 0;
}

/* A bit of @field that no row of the table names, and without which the answer is another. */
static bool has_nameless_bit(struct tly_refusal *r, const char *field)
{
	uint64_t value = tly_refusal_get(r, field), nameless = value;

	for (size_t i = 0; i < tly_attr_nr_items; i++)
		if (tly_attr_items[i].of && !strcmp(tly_attr_items[i].of, field))
			nameless &= ~(UINT64_C(1) << tly_attr_items[i].shift);
	if (!nameless)
		return false;
	tly_refusal_detail(r, "bit %d of attr.%s", __builtin_ctzll(nameless), field);
	return tly_probe_changed(r, field, value & ~nameless) != -EINVAL;
}

static bool mask_is_unknown(struct tly_refusal *r)
{
	return has_nameless_bit(r, "sample_type") || has_nameless_bit(r, "read_format") ||
	       (tly_refusal_samples(r, PERF_SAMPLE_BRANCH_STACK) &&
		has_nameless_bit(r, "branch_sample_type"));
}

static bool frequency_is_too_high(struct tly_refusal *r)
{
	long max = tly_read_setting(SETTING("max_sample_rate"), -1);

	tly_refusal_detail(r, "%ld", max);
	return max >= 0 && tly_refusal_get(r, "sample_freq") > (uint64_t)max;
}

static bool period_is_too_long(struct tly_refusal *r)
{
	return tly_refusal_get(r, "sample_period") >> 63;
}

static bool branch_kind_is_missing(struct tly_refusal *r)
{
	return tly_refusal_samples(r, PERF_SAMPLE_BRANCH_STACK) &&
	       !(tly_refusal_get(r, "branch_sample_type") & ~(uint64_t)PERF_SAMPLE_BRANCH_PLM_ALL);
}

static bool registers_are_missing(struct tly_refusal *r)
{
	bool user = tly_refusal_samples(r, PERF_SAMPLE_REGS_USER) &&
		    !tly_refusal_get(r, "sample_regs_user");
	bool intr = tly_refusal_samples(r, PERF_SAMPLE_REGS_INTR) &&
		    !tly_refusal_get(r, "sample_regs_intr");

	tly_refusal_detail(r, "%s", user ? "user" : "intr");
	return user || intr;
}

/* Where only this mask is at fault, the same event with one plain register opens. */
static bool registers_are_unknown(struct tly_refusal *r)
{
	static const struct {
		uint64_t bit;
		const char *mask;
	} sets[] = {
		{PERF_SAMPLE_REGS_USER, "sample_regs_user"},
		{PERF_SAMPLE_REGS_INTR, "sample_regs_intr"},
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		if (!tly_refusal_samples(r, sets[i].bit) ||
		    tly_probe_changed(r, sets[i].mask, 1) != 0)
			continue;
		tly_refusal_detail(r, "attr.%s %#" PRIx64, sets[i].mask,
				   tly_refusal_get(r, sets[i].mask));
		return true;
	}
	return false;
}

static bool stack_size_is_wrong(struct tly_refusal *r)
{
	uint64_t size = tly_refusal_get(r, "sample_stack_user");

	tly_refusal_detail(r, "%" PRIu64, size);
	return tly_refusal_samples(r, PERF_SAMPLE_STACK_USER) && (size % 8 || size >= UINT16_MAX);
}

static bool aux_size_is_too_large(struct tly_refusal *r)
{
	return tly_refusal_get(r, "aux_sample_size") > UINT16_MAX;
}

static bool two_weights(struct tly_refusal *r)
{
	return tly_refusal_samples(r, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT);
}

static bool inherit_thread_alone(struct tly_refusal *r)
{
	return tly_refusal_get(r, "inherit_thread") && !tly_refusal_get(r, "inherit");
}

static bool removed_and_enabled(struct tly_refusal *r)
{
	return tly_refusal_get(r, "remove_on_exec") && tly_refusal_get(r, "enable_on_exec");
}

static bool sigtrap_alone(struct tly_refusal *r)
{
	return tly_refusal_get(r, "sigtrap") && !tly_refusal_get(r, "remove_on_exec");
}

static bool sigtrap_on_all_tasks(struct tly_refusal *r)
{
	return tly_refusal_get(r, "sigtrap") && tly_refusal_system_wide(r);
}

static bool inherited_read(struct tly_refusal *r)
{
	return tly_refusal_get(r, "inherit") && tly_refusal_samples(r, PERF_SAMPLE_READ) &&
	       !tly_refusal_samples(r, PERF_SAMPLE_TID);
}

static bool clock_is_unknown(struct tly_refusal *r)
{
	static const int clocks[] = {0 /* REALTIME */, 1 /* MONOTONIC */, 4 /* MONOTONIC_RAW */,
				     7 /* BOOTTIME */, 11 /* TAI */};
	int32_t clock = (int32_t)tly_refusal_get(r, "clockid");

	if (!tly_refusal_get(r, "use_clockid"))
		return false;
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		if (clocks[i] == clock)
			return false;
	tly_refusal_detail(r, "%" PRId32, clock);
	return true;
}

static bool stack_is_too_deep(struct tly_refusal *r)
{
	tly_refusal_detail(r, "%ld", tly_read_setting(SETTING("max_stack"), 127));
	return tly_refusal_samples(r, PERF_SAMPLE_CALLCHAIN);
}

/* Breakpoints */

static bool is_breakpoint(const struct tly_refusal *r)
{
	return r->attr->attr.type == PERF_TYPE_BREAKPOINT;
}

bool tly_refusal_kernel_breakpoint(const struct tly_refusal *r)
{
	return is_breakpoint(r) && (int64_t)tly_refusal_get(r, "bp_addr") < 0;
}

static bool breakpoints_are_used_up(struct tly_refusal *r)
{
	return is_breakpoint(r);
}

static bool breakpoint_type_is_wrong(struct tly_refusal *r)
{
	uint64_t type = tly_refusal_get(r, "bp_type");

	/* RW is 3, W is 2, X is 4; x86 cannot watch for reads alone. */
	return is_breakpoint(r) && type != 2 && type != 3 && type != 4;
}

static bool breakpoint_length_is_wrong(struct tly_refusal *r)
{
	uint64_t length = tly_refusal_get(r, "bp_len");

	if (!is_breakpoint(r))
		return false;
	if (tly_refusal_get(r, "bp_type") == 4)
		return length != sizeof(long);
	return length != 1 && length != 2 && length != 4 && length != 8;
}

static bool breakpoint_is_unaligned(struct tly_refusal *r)
{
	return is_breakpoint(r) && tly_refusal_get(r, "bp_type") != 4 &&
	       tly_refusal_get(r, "bp_len") &&
	       tly_refusal_get(r, "bp_addr") % tly_refusal_get(r, "bp_len");
}

static bool kernel_breakpoint_excludes_kernel(struct tly_refusal *r)
{
	return tly_refusal_kernel_breakpoint(r) && tly_refusal_get(r, "exclude_kernel");
}

const struct tly_cause tly_causes_of_attr[] = {
	{-E2BIG, size_is_impossible, "attr.size is {detail}",
	 "set it to sizeof(struct perf_event_attr): it may be 0, or from 64 to 4096"},
	{-E2BIG, field_is_too_new, "this kernel does not know {detail}",
	 "leave it out, or boot a newer kernel"},
	{-E2BIG, tly_refusal_always, "what it reads or samples is too large for one record",
	 "put fewer events into the group, or sample less: a group's values may take 16 KiB, a "
	 "sample 64 KiB"},
	{-EINVAL, reserved_is_set, "{detail} is not 0", "clear the attr before filling it in"},
	{-EINVAL, mask_is_unknown, "this kernel does not know {detail}",
	 "leave it out, or boot a newer kernel"},
	{-EINVAL, frequency_is_too_high, "the kernel allows at most {detail} samples a second",
	 "sample at {detail} Hz or less, or raise the limit: sudo sysctl "
	 "kernel.perf_event_max_sample_rate=100000"},
	{-EINVAL, period_is_too_long, "the sample period is above 2^63-1", "use a shorter period"},
	{-EINVAL, branch_kind_is_missing, "attr.branch_sample_type names no kind of branch",
	 "set PERF_SAMPLE_BRANCH_ANY or another kind besides the privilege levels"},
	{-EINVAL, registers_are_missing, "attr.sample_regs_{detail} names no register",
	 "set the bits of the registers to sample, or leave PERF_SAMPLE_REGS_ out"},
	{-EINVAL, registers_are_unknown, "{detail} has registers that cannot be sampled",
	 "name registers of <asm/perf_regs.h>; x86-64 samples no ds, es, fs, gs"},
	{-EOPNOTSUPP, registers_are_unknown, "{detail} has registers that cannot be sampled",
	 "leave the vector registers out"},
	{-EINVAL, stack_size_is_wrong, "{detail} bytes of stack cannot be sampled",
	 "set attr.sample_stack_user to a multiple of 8 below 65528"},
	{-EINVAL, aux_size_is_too_large, "attr.aux_sample_size is above 65535",
	 "set it to 65535 or less"},
	{-EINVAL, two_weights, "PERF_SAMPLE_WEIGHT and PERF_SAMPLE_WEIGHT_STRUCT share one field",
	 "ask for one of them"},
	{-EINVAL, inherit_thread_alone, "attr.inherit_thread is nothing without attr.inherit",
	 "set attr.inherit too"},
	{-EINVAL, removed_and_enabled,
	 "attr.enable_on_exec and attr.remove_on_exec contradict each other", "set one of them"},
	{-EINVAL, sigtrap_alone, "attr.sigtrap needs attr.remove_on_exec",
	 "set attr.remove_on_exec too: a new program would not expect the signal"},
	{-EINVAL, sigtrap_on_all_tasks, "attr.sigtrap signals the measured task, not all of them",
	 "measure a task instead of a processor"},
	{-EINVAL, inherited_read,
	 "inherited events can sample counts (PERF_SAMPLE_READ) only together with the thread",
	 "add PERF_SAMPLE_TID (Linux 6.12), or measure without attr.inherit"},
	{-EINVAL, clock_is_unknown, "clock {detail} cannot stamp samples",
	 "use CLOCK_MONOTONIC, _MONOTONIC_RAW, _REALTIME, _BOOTTIME or _TAI"},
	{-EOVERFLOW, stack_is_too_deep, "call chains may have at most {detail} frames",
	 "ask for fewer, or raise the limit: sudo sysctl kernel.perf_event_max_stack=1000"},
	{-ENOSPC, breakpoints_are_used_up, "all hardware breakpoints are in use",
	 "a processor has few (four on x86): close other breakpoint events, or debuggers that "
	 "hold some"},
	{-EINVAL, breakpoint_type_is_wrong, "this processor has no such kind of breakpoint",
	 "watch for w, rw or x"},
	{-EINVAL, breakpoint_length_is_wrong, "a breakpoint cannot have this length",
	 "watch 1, 2, 4 or 8 bytes of data; for x the length is 8"},
	{-EINVAL, breakpoint_is_unaligned, "the address is not a multiple of the length watched",
	 "align the address, or watch fewer bytes"},
	{-EINVAL, kernel_breakpoint_excludes_kernel,
	 "the address is the kernel's but the kernel is excluded", "drop the u modifier"},
	{0, NULL, NULL, NULL},
};
