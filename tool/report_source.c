// SPDX-License-Identifier: MIT
/* Where a sampled number comes from, in words. */
#include <string.h>

#include "tool/report.h"
#include "tool/user_mode.h"

/* Of tally record and of perf record alike: the period is the time for which a task waited. */
static bool is_off_cpu(const struct tally_perfdata_event *event)
{
	return event->attr->type == PERF_TYPE_SOFTWARE && !strcmp(event->name, "offcpu-time");
}

static bool is_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
						    attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

const char *report_unit(const struct tally_perfdata_event *event)
{
	return is_clock(event->attr) || is_off_cpu(event) ? "ns" : "";
}

static const char *kind(const struct perf_event_attr *attr)
{
	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		return "hardware counter";
	case PERF_TYPE_SOFTWARE:
		return is_clock(attr) ? "the kernel's timer" : "counted by the kernel";
	case PERF_TYPE_TRACEPOINT:
		return "tracepoint";
	case PERF_TYPE_BREAKPOINT:
		return "hardware breakpoint";
	default:
		return "event of another unit";
	}
}

static const char *kind_in_user_mode(const struct perf_event_attr *attr)
{
	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
		return tool_is_modelled(attr) ? "computed by the model of user mode (tally run)"
					      : "counted in user mode (tally run)";
	case PERF_TYPE_SOFTWARE:
		return is_clock(attr) ? "a timer of user mode (tally run)"
				      : "counted in user mode (tally run)";
	default:
		return "event of user mode (tally run)";
	}
}

void report_source(struct buffer *buffer, const struct tally_perfdata_event *event)
{
	const struct perf_event_attr *attr = event->attr;

	if (is_off_cpu(event)) {
		buffer_text(buffer, "time that tasks waited off the processor, every wait sampled");
		return;
	}
	buffer_text(buffer, event->user_mode ? kind_in_user_mode(attr) : kind(attr));
	if (attr->freq)
		buffer_printf(buffer, ", sampled %llu times a second",
			      (unsigned long long)attr->sample_freq);
	else if (is_clock(attr) && attr->sample_period)
		buffer_printf(buffer, ", sampled every %llu ns",
			      (unsigned long long)attr->sample_period);
	else if (attr->sample_period > 1)
		buffer_printf(buffer, ", one sample in %llu",
			      (unsigned long long)attr->sample_period);
	else if (attr->sample_period == 1)
		buffer_text(buffer, ", every one sampled");
	if (event->user_mode) /* which sees no other code */
		return;
	if (attr->exclude_kernel && !attr->exclude_user)
		buffer_text(buffer, ", user mode only");
	else if (attr->exclude_user && !attr->exclude_kernel)
		buffer_text(buffer, ", kernel mode only");
}
