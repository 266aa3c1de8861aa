// SPDX-License-Identifier: MIT
/*
 * Asking the kernel by opening events: always disabled, never members of the caller's groups, on
 * the calling thread wherever the event can be (on the same processor where it counts all tasks),
 * and closed at once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/attr.h"
#include "lib/probe/refusal/refusal.h"

#define MAX_FEATURES 2

/* A type that no unit has: the kernel looks it up after it has validated the attr. */
#define NO_SUCH_TYPE 0x7fffffffu

static int try_and_close(struct tly_attr_copy *copy, pid_t pid, int cpu)
{
	int fd = tly_attr_try(copy, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void init_bare(struct tly_attr_copy *copy, uint32_t type, uint64_t config)
{
	*copy = (struct tly_attr_copy){.attr = {
					       .type = type,
					       .size = PERF_ATTR_SIZE_VER0,
					       .config = config,
					       .disabled = 1,
					       .exclude_kernel = 1,
					       .exclude_hv = 1,
				       }};
}

int tly_probe_call(void)
{
	struct tly_attr_copy copy;

	init_bare(&copy, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	return try_and_close(&copy, 0, -1);
}

bool tly_is_unsupported(int code)
{
	return code == -ENOENT || code == -ENODEV || code == -EOPNOTSUPP || code == -EINVAL;
}

bool tly_probe_pmu(void)
{
	static const uint64_t generic[] = {PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES};
	struct tly_attr_copy copy;

	for (size_t i = 0; i < sizeof(generic) / sizeof(generic[0]); i++) {
		int code;

		init_bare(&copy, PERF_TYPE_HARDWARE, generic[i]);
		code = try_and_close(&copy, 0, -1);
		/* Refused for another reason than being unknown: then something knows it. */
		if (!tly_is_unsupported(code))
			return true;
	}
	return false;
}

static int probe(const struct tly_refusal *refusal, struct tly_attr_copy *copy)
{
	if (refusal->pid == -1 || (refusal->flags & PERF_FLAG_PID_CGROUP))
		return try_and_close(copy, -1, refusal->cpu);
	return try_and_close(copy, 0, -1);
}

static void copy_disabled(struct tly_attr_copy *copy, const struct tly_refusal *refusal)
{
	tly_attr_copy(copy, &refusal->attr->attr);
	copy->attr.disabled = 1;
}

bool tly_probe_on_self(const struct tly_refusal *refusal)
{
	struct tly_attr_copy copy;

	copy_disabled(&copy, refusal);
	return try_and_close(&copy, 0, -1) == 0;
}

bool tly_probe_without_group(const struct tly_refusal *refusal)
{
	struct tly_attr_copy copy;
	int fd;

	copy_disabled(&copy, refusal);
	fd = tly_attr_try(&copy, refusal->pid, refusal->cpu, -1,
			  (refusal->flags & PERF_FLAG_PID_CGROUP) | PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int tly_probe_changed(const struct tly_refusal *refusal, const char *field, uint64_t value)
{
	struct tly_attr_copy copy;

	copy_disabled(&copy, refusal);
	tly_attr_set(&copy.attr, tly_attr_find(field, NULL), value);
	return probe(refusal, &copy);
}

/* What selects the event, as opposed to what is asked for besides. */
static bool is_selection(const struct tly_attr_item *item)
{
	static const char *const names[] = {
		"type",	      "size",	      "config",	      "config1",
		"config2",    "config3",      "bp_type",      "bp_addr",
		"bp_len",     "disabled",     "exclude_user", "exclude_kernel",
		"exclude_hv", "exclude_idle", "exclude_host", "exclude_guest",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(item->name, names[i]))
			return !item->of;
	return false;
}

/* Fields that the kernel looks at only with the sample_type bit that they go with. */
static bool is_companion(const struct tly_attr_item *item)
{
	static const char *const names[] = {
		"sample_regs_user", "sample_stack_user", "sample_regs_intr",   "sample_max_stack",
		"clockid",	    "sig_data",		 "branch_sample_type",
	};
	const char *name = item->of ? item->of : item->name;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Masks are taken apart bit by bit. */
static bool can_be_left_out(const struct tly_attr_item *item)
{
	return !is_selection(item) && !is_companion(item) && item->style != TLY_ATTR_MASK;
}

bool tly_probe_bare(const struct tly_refusal *refusal)
{
	struct tly_attr_copy copy;

	copy_disabled(&copy, refusal);
	for (size_t i = 0; i < tly_attr_nr_items; i++)
		if (!is_selection(&tly_attr_items[i]))
			tly_attr_set(&copy.attr, &tly_attr_items[i], 0);
	return probe(refusal, &copy) == 0;
}

/* Leaves @item out for good if the failure is the same without it; else it is part of the cause. */
static bool is_part_of_cause(const struct tly_refusal *refusal, struct tly_attr_copy *copy,
			     const struct tly_attr_item *item)
{
	uint64_t value = tly_attr_get(&copy->attr, item);

	if (!value)
		return false;
	tly_attr_set(&copy->attr, item, 0);
	if (probe(refusal, copy) == refusal->code)
		return false;
	tly_attr_set(&copy->attr, item, value);
	return true;
}

/* The one filter of a branch stack that the unit lacks, when it opens with the others; or NULL. */
static const struct tly_attr_item *find_branch_filter(const struct tly_refusal *refusal,
						      struct tly_attr_copy *copy)
{
	for (size_t i = 0; i < tly_attr_nr_items; i++) {
		const struct tly_attr_item *item = &tly_attr_items[i];
		int code;

		if (!item->of || strcmp(item->of, "branch_sample_type") ||
		    !tly_attr_get(&copy->attr, item))
			continue;
		tly_attr_set(&copy->attr, item, 0);
		code = probe(refusal, copy);
		tly_attr_set(&copy->attr, item, 1);
		if (code == 0)
			return item;
	}
	return NULL;
}

static void feature_name(const struct tly_attr_item *item, char *buf, size_t size)
{
	static const struct {
		const char *of, *prefix;
	} prefixes[] = {
		{"sample_type", "PERF_SAMPLE_"},
		{"read_format", "PERF_FORMAT_"},
		{"branch_sample_type", "PERF_SAMPLE_BRANCH_"},
	};
	const char *prefix = "attr.";

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]) && item->of; i++)
		if (!strcmp(item->of, prefixes[i].of))
			prefix = prefixes[i].prefix;
	snprintf(buf, size, "%s%s", prefix, item->name);
}

/*
 * Whether the kernel has heard of @item at all, found by asking for it and what it needs with a
 * type that does not exist: only what is unknown is refused before the type is looked up.
 */
static bool is_known(const struct tly_attr_item *item)
{
	struct tly_attr_copy copy;

	init_bare(&copy, NO_SUCH_TYPE, 0);
	copy.attr.size = sizeof(copy.attr) > tly_attr_item_size(item) ? sizeof(copy.attr)
								      : tly_attr_item_size(item);
	copy.attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
	copy.attr.sample_regs_user = 1;
	copy.attr.sample_regs_intr = 1;
	copy.attr.inherit = !strcmp(item->name, "inherit_thread");
	copy.attr.remove_on_exec = !strcmp(item->name, "sigtrap");
	tly_attr_set(&copy.attr, item, 1);
	switch (try_and_close(&copy, 0, -1)) {
	case -EINVAL:
	case -E2BIG:
		return false;
	}
	return true;
}

int tly_probe_features(struct tly_refusal *refusal, bool *known)
{
	struct tly_attr_copy copy;
	const struct tly_attr_item *left[MAX_FEATURES] = {NULL};
	char names[MAX_FEATURES][64];
	int nr = 0;

	copy_disabled(&copy, refusal);
	if (probe(refusal, &copy) != refusal->code)
		return 0;
	/* From the newest: what a feature depends on is older than itself. */
	for (size_t i = tly_attr_nr_items; i-- > 0;) {
		const struct tly_attr_item *item = &tly_attr_items[i];

		if (can_be_left_out(item) && is_part_of_cause(refusal, &copy, item)) {
			if (nr < MAX_FEATURES)
				left[nr] = item;
			nr++;
		}
	}
	if (!nr || nr > MAX_FEATURES)
		return 0;
	if (nr == 1 && left[0]->of && !strcmp(left[0]->name, "BRANCH_STACK")) {
		const struct tly_attr_item *filter = find_branch_filter(refusal, &copy);

		if (filter)
			left[0] = filter;
	}
	*known = true;
	for (int i = 0; i < nr; i++) {
		feature_name(left[i], names[i], sizeof(names[i]));
		if (is_known(left[i]))
			continue;
		*known = false;
		tly_refusal_detail(refusal, "%s, which came with Linux %s", names[i],
				   left[i]->since);
		return 1;
	}
	if (nr == 1)
		tly_refusal_detail(refusal, "%s", names[0]);
	else
		tly_refusal_detail(refusal, "%s with %s", names[1], names[0]);
	return nr;
}
