// SPDX-License-Identifier: MIT
/* No such event here; then whatever part of the attr is at fault; and the last resort. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "lib/probe/refusal/refusal.h"

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
	return is_dynamic(r) && access(TLY_UNITS, X_OK) == 0 && !tly_refusal_find_unit(r);
}

static bool unit_lacks_event(struct tly_refusal *r)
{
	return is_dynamic(r) && !tly_probe_bare(r) && tly_refusal_find_unit(r);
}

static bool unit_cannot_sample(struct tly_refusal *r)
{
	return (tly_refusal_get(r, "sample_period") || tly_refusal_get(r, "sample_freq")) &&
	       tly_probe_changed(r, "sample_period", 0) == 0;
}

static bool unit_counts_no_tasks(struct tly_refusal *r)
{
	struct tly_refusal on_processor = *r;

	if (tly_refusal_system_wide(r) || !is_dynamic(r) || tly_probe_bare(r))
		return false;
	on_processor.pid = -1;
	on_processor.cpu = 0;
	on_processor.flags = 0;
	return tly_probe_bare(&on_processor);
}

/* What else was asked for */

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

/* The kernel checks no other right than these two. */
static bool rights_do_not_help(struct tly_refusal *r)
{
	const struct tally_system *system = tly_refusal_system(r);

	return system->cap_sys_admin && !system->user_namespace;
}

static bool event_itself(struct tly_refusal *r)
{
	return !tly_probe_bare(r);
}

#define SPITE "refused in spite of CAP_SYS_ADMIN: a security module or a lockdown"

const struct tly_cause tly_causes_of_event[] = {
	{0, there_is_no_pmu, "{machine} has no hardware PMU",
	 "choose a software event (task-clock, page-faults), or {pmu}"},
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
	 "see what it has: ls " TLY_UNITS "/{detail}/events"},
	{-EOPNOTSUPP, unit_cannot_sample, "its unit can count but not sample",
	 "count it (tally stat), or sample another event beside it"},
	{-EINVAL, feature_is_unknown, "this kernel does not know {detail}",
	 "leave it out, or boot a newer kernel"},
	{-EACCES, rights_do_not_help, SPITE, TLY_SEE_LOCKDOWN},
	{-EPERM, rights_do_not_help, SPITE, TLY_SEE_LOCKDOWN},
	{-EACCES, feature_is_refused, "{detail} is for privileged users", "{admin right}"},
	{-EPERM, feature_is_refused, "{detail} is not permitted", "leave it out, or {admin right}"},
	{0, feature_is_refused, "the event does not support {detail}",
	 "leave it out, or choose another event"},
	{0, features_exclude_each_other, "the event does not support {detail}",
	 "leave one of them out"},
	{-EACCES, tly_refusal_always, "permission denied", "{admin right}"},
	{-EPERM, tly_refusal_always, "operation not permitted", "{admin right}"},
	{0, event_itself, "the kernel refuses what selects it: {error}",
	 "check its type and config words"},
	{0, tly_refusal_always, "{error}", "'tally doctor' shows what this machine can measure"},
	{0, NULL, NULL, NULL},
};
