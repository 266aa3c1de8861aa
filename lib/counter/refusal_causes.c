// SPDX-License-Identifier: MIT
/*
 * The documented causes of each errno of perf_event_open(2) (ABI: errno.*, attr.*, arg.*), from
 * those that the arguments alone prove to those that take asking, to the last resort. A row may
 * only hold when what it says is certain.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/attr.h"
#include "lib/counter/cgroup.h"
#include "lib/counter/refusal.h"

#define SETTING(name) "/proc/sys/kernel/perf_event_" name

#define UNITS "/sys/bus/event_source/devices"

#define AS_ROOT "run as root, or give the program the right: sudo setcap cap_perfmon+ep {program}"

/* Bits and masks are read through the table: the attr may end before the header's struct does. */
static uint64_t get(const struct tly_refusal *r, const char *name)
{
	return tly_attr_get(&r->attr->attr, tly_attr_find(name, NULL));
}

static bool samples(const struct tly_refusal *r, uint64_t bits)
{
	return (get(r, "sample_type") & bits) == bits;
}

static bool is_system_wide(const struct tly_refusal *r)
{
	return r->pid == -1 || (r->flags & PERF_FLAG_PID_CGROUP);
}

static long paranoid(void)
{
	return tly_read_setting(SETTING("paranoid"), 2);
}

static bool is_hardware(const struct tly_refusal *r)
{
	switch (r->attr->attr.type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		return true;
	}
	return false;
}

/* Sets the detail to the name of the unit whose type the attr has. */
static bool find_unit(struct tly_refusal *r)
{
	DIR *dir = opendir(UNITS);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		char path[sizeof(UNITS) + sizeof(entry->d_name) + 8];

		snprintf(path, sizeof(path), UNITS "/%s/type", entry->d_name);
		found = tly_read_setting(path, -1) == (long)r->attr->attr.type;
		tly_refusal_detail(r, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool always(struct tly_refusal *r)
{
	(void)r;
	return true;
}

/* The call itself */

static bool call_is_missing(struct tly_refusal *r)
{
	(void)r;
	return tly_probe_call() == -ENOSYS;
}

static bool seccomp_refuses(struct tly_refusal *r)
{
	return prctl(PR_GET_SECCOMP) > 0 && tly_probe_call() == r->code;
}

static bool paranoid_refuses_all(struct tly_refusal *r)
{
	return paranoid() > 2 && tly_probe_call() == r->code;
}

static bool something_refuses_all(struct tly_refusal *r)
{
	return tly_probe_call() == r->code;
}

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
	return get(r, "__reserved_2") != 0;
}

/* A bit of @field that no row of the table names, and without which the answer is another. */
static bool has_nameless_bit(struct tly_refusal *r, const char *field)
{
	uint64_t value = get(r, field), nameless = value;

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
	       (samples(r, PERF_SAMPLE_BRANCH_STACK) && has_nameless_bit(r, "branch_sample_type"));
}

static bool frequency_is_too_high(struct tly_refusal *r)
{
	long max = tly_read_setting(SETTING("max_sample_rate"), -1);

	tly_refusal_detail(r, "%ld", max);
	return max >= 0 && get(r, "sample_freq") > (uint64_t)max;
}

static bool period_is_too_long(struct tly_refusal *r)
{
	return get(r, "sample_period") >> 63;
}

static bool branch_kind_is_missing(struct tly_refusal *r)
{
	return samples(r, PERF_SAMPLE_BRANCH_STACK) &&
	       !(get(r, "branch_sample_type") & ~(uint64_t)PERF_SAMPLE_BRANCH_PLM_ALL);
}

static bool registers_are_missing(struct tly_refusal *r)
{
	bool user = samples(r, PERF_SAMPLE_REGS_USER) && !get(r, "sample_regs_user");
	bool intr = samples(r, PERF_SAMPLE_REGS_INTR) && !get(r, "sample_regs_intr");

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
		if (!samples(r, sets[i].bit) || tly_probe_changed(r, sets[i].mask, 1) != 0)
			continue;
		tly_refusal_detail(r, "attr.%s %#" PRIx64, sets[i].mask, get(r, sets[i].mask));
		return true;
	}
	return false;
}

static bool stack_size_is_wrong(struct tly_refusal *r)
{
	uint64_t size = get(r, "sample_stack_user");

	tly_refusal_detail(r, "%" PRIu64, size);
	return samples(r, PERF_SAMPLE_STACK_USER) && (size % 8 || size >= UINT16_MAX);
}

static bool aux_size_is_too_large(struct tly_refusal *r)
{
	return get(r, "aux_sample_size") > UINT16_MAX;
}

static bool two_weights(struct tly_refusal *r)
{
	return samples(r, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT);
}

static bool inherit_thread_alone(struct tly_refusal *r)
{
	return get(r, "inherit_thread") && !get(r, "inherit");
}

static bool removed_and_enabled(struct tly_refusal *r)
{
	return get(r, "remove_on_exec") && get(r, "enable_on_exec");
}

static bool sigtrap_alone(struct tly_refusal *r)
{
	return get(r, "sigtrap") && !get(r, "remove_on_exec");
}

static bool sigtrap_on_all_tasks(struct tly_refusal *r)
{
	return get(r, "sigtrap") && is_system_wide(r);
}

static bool inherited_read(struct tly_refusal *r)
{
	return get(r, "inherit") && samples(r, PERF_SAMPLE_READ) && !samples(r, PERF_SAMPLE_TID);
}

static bool clock_is_unknown(struct tly_refusal *r)
{
	static const int clocks[] = {0 /* REALTIME */, 1 /* MONOTONIC */, 4 /* MONOTONIC_RAW */,
				     7 /* BOOTTIME */, 11 /* TAI */};
	int32_t clock = (int32_t)get(r, "clockid");

	if (!get(r, "use_clockid"))
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
	return samples(r, PERF_SAMPLE_CALLCHAIN);
}

/* Breakpoints */

static bool is_breakpoint(const struct tly_refusal *r)
{
	return r->attr->attr.type == PERF_TYPE_BREAKPOINT;
}

static bool breakpoints_are_used_up(struct tly_refusal *r)
{
	return is_breakpoint(r);
}

static bool breakpoint_type_is_wrong(struct tly_refusal *r)
{
	uint64_t type = get(r, "bp_type");

	/* RW is 3, W is 2, X is 4; x86 cannot watch for reads alone. */
	return is_breakpoint(r) && type != 2 && type != 3 && type != 4;
}

static bool breakpoint_length_is_wrong(struct tly_refusal *r)
{
	uint64_t length = get(r, "bp_len");

	if (!is_breakpoint(r))
		return false;
	if (get(r, "bp_type") == 4)
		return length != sizeof(long);
	return length != 1 && length != 2 && length != 4 && length != 8;
}

static bool breakpoint_is_unaligned(struct tly_refusal *r)
{
	return is_breakpoint(r) && get(r, "bp_type") != 4 && get(r, "bp_len") &&
	       get(r, "bp_addr") % get(r, "bp_len");
}

static bool breakpoint_is_in_kernel(struct tly_refusal *r)
{
	return is_breakpoint(r) && (int64_t)get(r, "bp_addr") < 0;
}

static bool kernel_breakpoint_excludes_kernel(struct tly_refusal *r)
{
	return breakpoint_is_in_kernel(r) && get(r, "exclude_kernel");
}

/* Which task and which processor */

static bool any_task_anywhere(struct tly_refusal *r)
{
	return r->pid == -1 && r->cpu == -1 && !(r->flags & PERF_FLAG_PID_CGROUP);
}

static bool cgroup_anywhere(struct tly_refusal *r)
{
	return (r->flags & PERF_FLAG_PID_CGROUP) && (r->cpu == -1 || r->pid == -1);
}

static bool processor_is_not_there(struct tly_refusal *r)
{
	char path[64];
	struct stat st;

	if (r->cpu == -1)
		return false;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", r->cpu);
	return r->cpu < -1 || (stat("/sys/devices/system/cpu", &st) == 0 && stat(path, &st) < 0);
}

static bool processor_is_offline(struct tly_refusal *r)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", r->cpu);
	return r->cpu >= 0 && tly_read_setting(path, 1) == 0;
}

static bool flags_are_unknown(struct tly_refusal *r)
{
	unsigned long unknown = r->flags & ~0xful;

	tly_refusal_detail(r, "%#lx", unknown);
	return unknown != 0;
}

static bool task_is_gone(struct tly_refusal *r)
{
	return r->pid != 0 && !(r->flags & PERF_FLAG_PID_CGROUP);
}

/* Groups */

static bool is_member(const struct tly_refusal *r)
{
	return r->group_fd != -1 && !(r->flags & PERF_FLAG_FD_NO_GROUP);
}

static bool cgroup_is_no_cgroup(struct tly_refusal *r)
{
	return (r->flags & PERF_FLAG_PID_CGROUP) && !tly_is_cgroup(r->pid);
}

static bool cgroup_is_elsewhere(struct tly_refusal *r)
{
	return (r->flags & PERF_FLAG_PID_CGROUP) && tly_probe_on_self(r);
}

static bool group_is_no_event(struct tly_refusal *r)
{
	tly_refusal_detail(r, "%d", r->group_fd);
	return r->group_fd != -1;
}

static bool output_has_no_buffer(struct tly_refusal *r)
{
	return (r->flags & PERF_FLAG_FD_OUTPUT) && r->group_fd != -1 && tly_probe_without_group(r);
}

static bool member_is_pinned(struct tly_refusal *r)
{
	bool pinned = get(r, "pinned");

	tly_refusal_detail(r, "%s", pinned ? "pinned" : "exclusive");
	return is_member(r) && (pinned || get(r, "exclusive"));
}

static uint64_t of_leader(const struct tly_refusal *r, const char *name)
{
	return tly_attr_get(r->leader, tly_attr_find(name, NULL));
}

static bool differs_from_leader(struct tly_refusal *r, const char *name)
{
	tly_refusal_detail(r, "attr.%s", name);
	return get(r, name) != of_leader(r, name);
}

static bool member_differs(struct tly_refusal *r)
{
	return is_member(r) && r->leader &&
	       (differs_from_leader(r, "inherit") || differs_from_leader(r, "use_clockid") ||
		(get(r, "use_clockid") && differs_from_leader(r, "clockid")));
}

static bool group_does_not_take_it(struct tly_refusal *r)
{
	return is_member(r) && tly_probe_without_group(r);
}

/* Rights */

static bool namespaces_need_right(struct tly_refusal *r)
{
	return get(r, "namespaces");
}

static bool processor_needs_right(struct tly_refusal *r)
{
	return is_system_wide(r) && paranoid() > 0;
}

static bool kernel_needs_right(struct tly_refusal *r)
{
	return !get(r, "exclude_kernel") && paranoid() > 1;
}

static bool physical_needs_right(struct tly_refusal *r)
{
	return samples(r, PERF_SAMPLE_PHYS_ADDR) && paranoid() > 1;
}

static bool raw_needs_right(struct tly_refusal *r)
{
	return r->attr->attr.type == PERF_TYPE_TRACEPOINT && paranoid() > -1;
}

static bool probe_needs_right(struct tly_refusal *r)
{
	return find_unit(r) && (!strcmp(r->detail, "kprobe") || !strcmp(r->detail, "uprobe"));
}

static bool task_is_of_another(struct tly_refusal *r)
{
	struct passwd entry, *owner = NULL;
	char path[32], text[1024];
	struct stat st;

	if (r->pid <= 0 || (r->flags & PERF_FLAG_PID_CGROUP) || !tly_probe_on_self(r))
		return false;
	snprintf(path, sizeof(path), "/proc/%d", r->pid);
	if (stat(path, &st) < 0)
		return false;
	getpwuid_r(st.st_uid, &entry, text, sizeof(text), &owner);
	if (owner)
		tly_refusal_detail(r, "%s", owner->pw_name);
	else
		tly_refusal_detail(r, "user %u", st.st_uid);
	return st.st_uid != geteuid();
}

static bool task_is_protected(struct tly_refusal *r)
{
	return r->pid > 0 && !(r->flags & PERF_FLAG_PID_CGROUP) && tly_probe_on_self(r);
}

/* No such event */

static bool there_is_no_pmu(struct tly_refusal *r)
{
	return is_hardware(r) && tly_is_unsupported(r->code) && !tly_probe_pmu();
}

static bool pmu_lacks_event(struct tly_refusal *r)
{
	return is_hardware(r) && !tly_probe_bare(r);
}

static bool software_is_unknown(struct tly_refusal *r)
{
	static const struct {
		uint64_t config;
		const char *since;
	} newer[] = {{8, "3.12"}, {9, "3.12"}, {10, "4.4"}, {11, "5.13"}};

	if (r->attr->attr.type != PERF_TYPE_SOFTWARE || tly_probe_bare(r))
		return false;
	tly_refusal_detail(r, "the numbers are in <linux/perf_event.h>");
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
		if (newer[i].config == r->attr->attr.config)
			tly_refusal_detail(r, "it came with Linux %s", newer[i].since);
	return true;
}

static bool tracepoint_is_unknown(struct tly_refusal *r)
{
	tly_refusal_detail(r, "%" PRIu64, (uint64_t)r->attr->attr.config);
	return r->attr->attr.type == PERF_TYPE_TRACEPOINT && !tly_probe_bare(r);
}

static bool is_dynamic(const struct tly_refusal *r)
{
	return r->attr->attr.type >= PERF_TYPE_MAX;
}

static bool type_is_unknown(struct tly_refusal *r)
{
	return is_dynamic(r) && access(UNITS, X_OK) == 0 && !find_unit(r);
}

static bool unit_lacks_event(struct tly_refusal *r)
{
	return is_dynamic(r) && !tly_probe_bare(r) && find_unit(r);
}

static bool unit_cannot_sample(struct tly_refusal *r)
{
	return (get(r, "sample_period") || get(r, "sample_freq")) &&
	       tly_probe_changed(r, "sample_period", 0) == 0;
}

static bool unit_counts_no_tasks(struct tly_refusal *r)
{
	struct tly_refusal on_processor = *r;

	if (is_system_wide(r) || !is_dynamic(r) || tly_probe_bare(r))
		return false;
	on_processor.pid = -1;
	on_processor.cpu = 0;
	on_processor.flags = 0;
	return tly_probe_bare(&on_processor);
}

/* Resources */

static bool too_many_files(struct tly_refusal *r)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return false;
	tly_refusal_detail(r, "%llu", (unsigned long long)limit.rlim_cur);
	return true;
}

/* Everything else that was asked for */

static bool feature_is_unknown(struct tly_refusal *r)
{
	bool known = true;

	return tly_probe_features(r, &known) == 1 && !known;
}

static bool feature_is_refused(struct tly_refusal *r)
{
	bool known;

	return tly_probe_features(r, &known) == 1;
}

static bool features_exclude_each_other(struct tly_refusal *r)
{
	bool known;

	return tly_probe_features(r, &known) == 2;
}

static bool event_itself(struct tly_refusal *r)
{
	return !tly_probe_bare(r);
}

const struct tly_cause tly_causes[] = {
	{-ENOSYS, call_is_missing, "this kernel has no perf_event_open(2)",
	 "it was built without CONFIG_PERF_EVENTS, or this is a sandbox that does not have the "
	 "call: run outside of it"},
	{-EPERM, seccomp_refuses, "a seccomp filter refuses perf_event_open(2)",
	 "containers filter it by default: docker run --security-opt seccomp=unconfined, or a "
	 "profile that allows perf_event_open"},
	{-EACCES, seccomp_refuses, "a seccomp filter refuses perf_event_open(2)",
	 "containers filter it by default: docker run --security-opt seccomp=unconfined, or a "
	 "profile that allows perf_event_open"},
	{-EACCES, paranoid_refuses_all,
	 "kernel.perf_event_paranoid is {paranoid}, which forbids users every event",
	 "sudo sysctl kernel.perf_event_paranoid=2 (1 to see the kernel's side too), or run as "
	 "root"},
	{-EACCES, something_refuses_all, "perf_event_open(2) is forbidden here",
	 "a security module such as SELinux decides so: see the audit log (ausearch -m avc)"},
	{-EPERM, something_refuses_all, "perf_event_open(2) is forbidden here",
	 "a sandbox or security module decides so: allow perf_event_open in its profile"},

	{-EMFILE, too_many_files, "all {detail} descriptors of this process are in use",
	 "raise the limit: ulimit -n $(ulimit -H -n)"},
	{-ENFILE, always, "the system has no descriptors left",
	 "raise the limit: sudo sysctl fs.file-max=1000000"},
	{-ENOMEM, always, "the kernel has no memory left for it", "measure fewer events"},
	{-EBUSY, always, "another event has the unit for itself",
	 "end the other measurement; see who holds events: sudo lsof | grep perf_event"},
	{-EINTR, always, "its uprobe is in use by ftrace, or a signal came in between",
	 "remove the probe from tracefs (uprobe_events), or try again"},
	{-EFAULT, always, "the attr points to memory that is not there",
	 "check the pointers in it: the function or file name of a probe"},

	{-E2BIG, size_is_impossible, "attr.size is {detail}",
	 "set it to sizeof(struct perf_event_attr): it may be 0, or from 64 to 4096"},
	{-E2BIG, field_is_too_new, "this kernel does not know {detail}",
	 "leave it out, or boot a newer kernel"},
	{-E2BIG, always, "what it reads or samples is too large for one record",
	 "put fewer events into the group, or sample less: a group's values may take 16 KiB, a "
	 "sample 64 KiB"},

	{-EINVAL, reserved_is_set, "{detail} is not 0", "clear the attr before filling it in"},
	{-EINVAL, mask_is_unknown, "this kernel does not know {detail}",
	 "leave it out, or boot a newer kernel"},
	{-EINVAL, flags_are_unknown, "the flags {detail} do not exist",
	 "pass PERF_FLAG_FD_NO_GROUP, _FD_OUTPUT, _PID_CGROUP and _FD_CLOEXEC only"},
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
	{-EPERM, breakpoint_is_in_kernel, "breakpoints on kernel addresses need CAP_SYS_ADMIN",
	 "run as root"},

	{-EINVAL, any_task_anywhere, "an event is of one task or of one processor",
	 "give a processor for pid -1, or a task for cpu -1"},
	{-EINVAL, cgroup_anywhere, "a cgroup is counted on one processor at a time",
	 "give the descriptor of the cgroup's folder as pid, and a processor"},
	{-EINVAL, processor_is_not_there, "there is no processor {cpu}",
	 "see those that there are: cat /sys/devices/system/cpu/online"},
	{-ENODEV, processor_is_not_there, "there is no processor {cpu}",
	 "see those that there are: cat /sys/devices/system/cpu/online"},
	{-ENODEV, processor_is_offline, "processor {cpu} is offline",
	 "echo 1 | sudo tee /sys/devices/system/cpu/cpu{cpu}/online"},
	{-ESRCH, task_is_gone, "there is no task {pid}, or it has ended",
	 "see the running ones: ps -eL"},
	{-EBADF, cgroup_is_no_cgroup, "descriptor {pid} is not of a cgroup's folder",
	 "open a folder of a cgroup file system"},
	{-EBADF, group_is_no_event, "descriptor {detail} is not of an event",
	 "pass the descriptor of the group's leader, or -1"},

	{-EINVAL, output_has_no_buffer, "the event to write to has no ring buffer",
	 "map the buffer first, or use PERF_EVENT_IOC_SET_OUTPUT"},
	{-EINVAL, member_is_pinned, "only a group's leader can be {detail}",
	 "put the modifier on the first event of the group"},
	{-EINVAL, member_differs, "{detail} is not the group leader's",
	 "give all events of the group the same inheritance and clock"},

	{-EACCES, namespaces_need_right, "PERF_RECORD_NAMESPACES is for privileged users", AS_ROOT},
	{-EACCES, processor_needs_right,
	 "kernel.perf_event_paranoid is {paranoid}, which keeps all tasks of a processor from users",
	 "sudo sysctl kernel.perf_event_paranoid=0, or " AS_ROOT},
	{-EACCES, kernel_needs_right,
	 "kernel.perf_event_paranoid is {paranoid}, which keeps the kernel's side from users",
	 "count user mode only ({event}:u), or: sudo sysctl kernel.perf_event_paranoid=1, "
	 "or " AS_ROOT},
	{-EACCES, physical_needs_right, "physical addresses are for privileged users", AS_ROOT},
	{-EACCES, probe_needs_right, "kprobes and uprobes are for privileged users", AS_ROOT},
	{-EACCES, task_is_of_another, "task {pid} belongs to {detail}",
	 "run as {detail} or root, or give the program the right: sudo setcap cap_perfmon+ep "
	 "{program}"},
	{-EACCES, task_is_protected,
	 "task {pid} is protected: it changed its user or capabilities, or is not dumpable",
	 AS_ROOT},
	{-EPERM, raw_needs_right,
	 "kernel.perf_event_paranoid is {paranoid}, which keeps the data of tracepoints from users",
	 "sudo sysctl kernel.perf_event_paranoid=-1, or " AS_ROOT},

	{0, there_is_no_pmu, "this machine shows no hardware PMU",
	 "software events work (task-clock, page-faults, context-switches); in a virtual machine "
	 "the host has to pass the PMU on (QEMU: -cpu host,pmu=on)"},
	{-ENOENT, pmu_lacks_event, "the PMU of this processor has no such event",
	 "choose one that 'tally list hw cache pmu' shows"},
	{-EINVAL, pmu_lacks_event, "the PMU of this processor has no such event",
	 "choose one that 'tally list hw cache pmu' shows"},
	{0, software_is_unknown, "this kernel has no such software event", "{detail}"},
	{0, tracepoint_is_unknown, "no tracepoint has the id {detail}",
	 "ids change with each boot: read the id file of the tracepoint in tracefs"},
	{-EINVAL, unit_counts_no_tasks, "its unit counts for the whole machine, not for a task",
	 "measure all tasks (-a)"},
	{-ENOENT, type_is_unknown, "no unit has the type {type}",
	 "see those that there are: grep . /sys/bus/event_source/devices/*/type"},
	{0, unit_lacks_event, "the unit {detail} has no such event",
	 "see what it has: ls " UNITS "/{detail}/events"},
	{-EOPNOTSUPP, unit_cannot_sample, "its unit can count but not sample",
	 "count it (tally stat), or sample another event beside it"},
	{-ENOENT, cgroup_is_elsewhere, "the folder is of another hierarchy than perf_event's",
	 "name a cgroup of the perf_event or of the unified hierarchy"},

	{-EINVAL, feature_is_unknown, "this kernel does not know {detail}",
	 "leave it out, or boot a newer kernel"},
	{-EACCES, feature_is_refused, "{detail} is for privileged users", AS_ROOT},
	{-EPERM, feature_is_refused, "{detail} is not permitted", "leave it out, or " AS_ROOT},
	{0, feature_is_refused, "it does not support {detail}",
	 "leave it out, or choose another event"},
	{0, features_exclude_each_other, "it does not support {detail}", "leave one of them out"},
	{-EINVAL, group_does_not_take_it, "it opens alone but not in this group",
	 "the members of a group share one task and processor and have to fit on the counters "
	 "together: split the group, or mark it weak ({...}:W)"},
	{0, group_does_not_take_it, "it opens alone but not in this group ({error})",
	 "split the group"},
	{-EACCES, always, "permission denied", AS_ROOT},
	{-EPERM, always, "operation not permitted", AS_ROOT},
	{0, event_itself, "the kernel refuses what selects it: {error}",
	 "check its type and config words"},
	{0, always, "{error}", "'tally doctor' shows what this machine can measure"},
};
