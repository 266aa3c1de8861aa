// SPDX-License-Identifier: MIT
/*
 * What an attr says by itself: the checks of perf_event_open(2) before anything is looked up, in
 * the order in which the kernel makes them.
 */
#include <asm/perf_regs.h>
#include <errno.h>
#include <string.h>

#include "core/arena.h"
#include "core/core.h"

/*
 * Fields and bits that <linux/perf_event.h> may be too old to have; where they lie is part of the
 * interface.
 */
enum {
	AT_FLAGS = 40,
	FLAGS_USED = 38, /* bits */
	AT_RESERVED_2 = 110,
	AT_AUX_ACTION = CORE_AT_AUX_ACTION,
	AUX_ACTIONS_USED = 3, /* bits */
	SAMPLE_TYPES = 25,
	READ_FORMATS = 5,
	BRANCH_TYPES = 20,
};

#define AFTER(bits) (~0UL << (bits))

static uint64_t field(const struct perf_event_attr *attr, size_t at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)attr + at, size);
	return value;
}

/* paranoid lets everybody have what is at most @level. */
static bool may(const struct core_rights *rights, int level)
{
	return rights->perfmon || core_settings()->paranoid <= level;
}

static bool has_reserved(const struct perf_event_attr *attr)
{
	return field(attr, AT_FLAGS, 8) & AFTER(FLAGS_USED) || field(attr, AT_RESERVED_2, 2) ||
	       field(attr, AT_AUX_ACTION, 4) & AFTER(AUX_ACTIONS_USED) ||
	       attr->sample_type & AFTER(SAMPLE_TYPES) || attr->read_format & AFTER(READ_FORMATS);
}

/* Levels that are not named are the event's own. */
static int check_branches(struct perf_event_attr *attr, const struct core_rights *rights)
{
	uint64_t mask = attr->branch_sample_type;

	if (mask & AFTER(BRANCH_TYPES) || !(mask & ~PERF_SAMPLE_BRANCH_PLM_ALL))
		return -EINVAL;
	if (!(mask & PERF_SAMPLE_BRANCH_PLM_ALL)) {
		mask |= attr->exclude_user ? 0 : PERF_SAMPLE_BRANCH_USER;
		mask |= attr->exclude_kernel ? 0 : PERF_SAMPLE_BRANCH_KERNEL;
		mask |= attr->exclude_hv ? 0 : PERF_SAMPLE_BRANCH_HV;
		attr->branch_sample_type = mask;
	}
	if (mask & (PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV) && !may(rights, 1))
		return -EACCES;
	return 0;
}

/* Some general registers, no segment but cs and ss; vector registers are refused later, as not
 * supported. */
static bool are_registers(uint64_t mask)
{
	const uint64_t segments = 1UL << PERF_REG_X86_DS | 1UL << PERF_REG_X86_ES |
				  1UL << PERF_REG_X86_FS | 1UL << PERF_REG_X86_GS;
	const uint64_t reserved =
		((1UL << PERF_REG_X86_XMM0) - 1) & ~((1UL << PERF_REG_X86_64_MAX) - 1);

	return mask && !(mask & (segments | reserved));
}

static int check_samples(struct perf_event_attr *attr, const struct core_rights *rights)
{
	uint64_t type = attr->sample_type;

	if (type & PERF_SAMPLE_BRANCH_STACK) {
		int err = check_branches(attr, rights);

		if (err)
			return err;
	}
	if (type & PERF_SAMPLE_REGS_USER && !are_registers(attr->sample_regs_user))
		return -EINVAL;
	if (type & PERF_SAMPLE_STACK_USER &&
	    (attr->sample_stack_user >= UINT16_MAX || attr->sample_stack_user % 8))
		return -EINVAL;
	if (!attr->sample_max_stack)
		attr->sample_max_stack = (uint16_t)core_settings()->max_stack;
	if (type & PERF_SAMPLE_REGS_INTR && !are_registers(attr->sample_regs_intr))
		return -EINVAL;
	if (type & PERF_SAMPLE_WEIGHT && type & PERF_SAMPLE_WEIGHT_STRUCT)
		return -EINVAL;
	return 0;
}

int core_attr_check(struct perf_event_attr *attr, uint32_t size, bool tail,
		    const struct core_rights *rights)
{
	int err;

	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	if (size < PERF_ATTR_SIZE_VER0 || size > ARENA_PAGE || !tail)
		return -E2BIG;
	attr->size = size;
	if (has_reserved(attr))
		return -EINVAL;
	err = check_samples(attr, rights);
	if (err)
		return err;
	if (attr->inherit_thread && !attr->inherit)
		return -EINVAL;
	if (attr->remove_on_exec && attr->enable_on_exec)
		return -EINVAL;
	if (attr->sigtrap && !attr->remove_on_exec)
		return -EINVAL;
	return 0;
}

int core_open_check(const struct perf_event_attr *attr, int pid, int cpu, unsigned long flags,
		    const struct core_rights *rights)
{
	/* Some systems have a level that leaves nothing. */
	if (!may(rights, 2) || (!attr->exclude_kernel && !may(rights, 1)))
		return -EACCES;
	if (attr->namespaces && !rights->perfmon)
		return -EACCES;
	if (attr->freq ? attr->sample_freq > core_settings()->max_sample_rate
		       : attr->sample_period >> 63)
		return -EINVAL;
	if (attr->sample_type & PERF_SAMPLE_PHYS_ADDR && !may(rights, 1))
		return -EACCES;
	if (flags & PERF_FLAG_PID_CGROUP && (pid == -1 || cpu == -1))
		return -EINVAL;
	return 0;
}
