// SPDX-License-Identifier: MIT
/*
 * Which events are opened, and what each sample holds.
 *
 * Records of mappings, names and tasks come from one event, the tracking one. Where the samples
 * come from a single event of a command, that event carries them as well; else it is a dummy event,
 * which can run before, and longer than, the ones that sample.
 *
 * Every field that the trailer of a side-band record has too (time, task, processor, id) is asked
 * for by all events or by none, so that all trailers of the file look alike.
 */
#include "tool/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRACKING	   "dummy:u"
#define DEFAULT_FREQUENCY  4000
#define DEFAULT_STACK_SIZE 8192

/* All registers but the segments that the kernel refuses; also what the unwinder starts from. */
#if defined(__x86_64__)
#define ALL_REGS UINT64_C(0xff0fff)
#elif defined(__aarch64__)
#define ALL_REGS UINT64_C(0x1ffffffff)
#else
#define ALL_REGS UINT64_C(0)
#endif

static uint64_t max_sample_rate(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	uint64_t rate = 0;

	if (file) {
		if (fscanf(file, "%" SCNu64, &rate) != 1)
			rate = 0;
		fclose(file);
	}
	return rate;
}

static bool opens(const struct perf_event_attr *attr, int *code)
{
	int fd = tally_attr_open(attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, NULL);

	if (fd >= 0)
		close(fd);
	*code = fd;
	return fd >= 0;
}

static bool has_cycles(void)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = 1000000,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int code;

	/* Anything else than the absence of the event is better said when it is opened in earnest.
	 */
	return opens(&attr, &code) || (code != -ENOENT && code != -ENODEV && code != -EOPNOTSUPP);
}

static int add_default_event(struct recording *r, struct tally_error *err)
{
	if (has_cycles())
		return tally_events_parse(r->events, "cycles:P", 0, err);
	record_note(r, "no hardware counters here: sampling cpu-clock, a timer, instead of cycles "
		       "(--pmu=user: cycles of a modelled processor)");
	return tally_events_parse(r->events, "cpu-clock", 0, err);
}

/* ---- the tracking event ---- */

static void set_tracking(struct perf_event_attr *attr)
{
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->build_id = 1;
	attr->ksymbol = 1;
	attr->bpf_event = 1;
}

/* Leaves out what this kernel does not know, newest first: no file is worse for lacking it. */
static void fit_tracking(struct perf_event_attr *attr)
{
	struct perf_event_attr trial = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(trial),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int code;

	set_tracking(&trial);
	for (int known = 2; known && !opens(&trial, &code) && code == -EINVAL; known--) {
		if (known == 2)
			trial.build_id = 0; /* 5.12 */
		else
			trial.ksymbol = trial.bpf_event = 0; /* 5.1 */
	}
	set_tracking(attr);
	attr->build_id = trial.build_id;
	attr->ksymbol = trial.ksymbol;
	attr->bpf_event = trial.bpf_event;
}

static bool needs_tracking_event(const struct recording *r)
{
	const struct record_options *o = &r->options;

	return tally_events_count(r->events) > 1 || o->off_cpu || o->overwrite || o->delay_ms ||
	       r->target.all || r->target.cgroup;
}

struct tally_counters *record_counters(const struct recording *r, size_t *event)
{
	if (!r->side.counters || *event != r->tracking)
		return r->counters;
	*event = 0;
	return r->side.counters;
}

/* Whether the side-band records have an event of their own, that may run before the others. */
static bool tracks_apart(const struct recording *r)
{
	const struct perf_event_attr *attr;

	if (r->side.events)
		return true;
	attr = tally_events_at(r->events, r->tracking)->attr;
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_DUMMY;
}

/* ---- the events that sample ---- */

static bool is_probe(const struct tally_event *event)
{
	return !strcmp(event->pmu, "kprobe") || !strcmp(event->pmu, "uprobe");
}

/* Events that are rare enough to have every occurrence sampled unless told otherwise. */
static bool samples_each(const struct tally_event *event)
{
	return event->attr->type == PERF_TYPE_TRACEPOINT ||
	       event->attr->type == PERF_TYPE_BREAKPOINT || is_probe(event) ||
	       (event->attr->type == PERF_TYPE_SOFTWARE &&
		event->attr->config == PERF_COUNT_SW_BPF_OUTPUT);
}

static void set_rate(const struct record_options *o, const struct tally_event *event)
{
	struct perf_event_attr *attr = event->attr;

	if (event->flags & (TALLY_EVENT_PERIOD | TALLY_EVENT_FREQ))
		return;
	attr->freq = 0;
	if (o->period) {
		attr->sample_period = o->period;
	} else if (samples_each(event) && !o->frequency) {
		attr->sample_period = 1;
	} else {
		attr->freq = 1;
		attr->sample_freq = o->frequency;
	}
}

static int set_callgraph(const struct record_options *o, const struct tally_event *event,
			 struct tally_error *err)
{
	enum tally_callgraph callgraph = event->callgraph;
	uint32_t stack_size = event->stack_size;
	struct perf_event_attr *attr = event->attr;

	if (callgraph == TALLY_CALLGRAPH_UNSET)
		callgraph = o->callgraph;
	if (!stack_size)
		stack_size = o->stack_size ? o->stack_size : DEFAULT_STACK_SIZE;
	switch (callgraph) {
	case TALLY_CALLGRAPH_UNSET:
	case TALLY_CALLGRAPH_NONE:
		return 0;
	case TALLY_CALLGRAPH_FP:
		break;
	case TALLY_CALLGRAPH_DWARF:
		if (!ALL_REGS) {
			*err = (struct tally_error){.code = -ENOTSUP};
			snprintf(err->what, sizeof(err->what),
				 "DWARF call graphs are not supported on this architecture");
			return err->code;
		}
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = ALL_REGS;
		attr->sample_stack_user = stack_size;
		attr->exclude_callchain_user = 1;
		break;
	case TALLY_CALLGRAPH_LBR:
		attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK |
					   PERF_SAMPLE_BRANCH_NO_FLAGS |
					   PERF_SAMPLE_BRANCH_NO_CYCLES;
		attr->exclude_callchain_user = 1;
		break;
	}
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (o->no_user_callchain)
		attr->exclude_callchain_user = 1;
	if (o->no_kernel_callchain)
		attr->exclude_callchain_kernel = 1;
	return 0;
}

/* Of a group with the S modifier only the leader samples, and reads the others. */
static void set_leader_sampling(struct recording *r, size_t index)
{
	const struct tally_event *event = tally_events_at(r->events, index);
	const struct tally_event *leader = tally_events_at(r->events, event->leader);

	if (!(leader->flags & TALLY_EVENT_LEADER_SAMPLING))
		return;
	event->attr->sample_type |= PERF_SAMPLE_READ;
	event->attr->read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	if (event != leader)
		event->attr->sample_period = event->attr->freq = 0;
}

static bool copies_stacks(const struct recording *r)
{
	for (size_t i = 0; i < tally_events_count(r->events); i++)
		if (tally_events_at(r->events, i)->attr->sample_type & PERF_SAMPLE_STACK_USER)
			return true;
	return false;
}

static bool wants_cpu(const struct recording *r)
{
	for (size_t i = 0; i < tally_events_count(r->events); i++)
		if (tally_events_at(r->events, i)->attr->type == PERF_TYPE_TRACEPOINT)
			return true;
	return (r->options.sample_type & PERF_SAMPLE_CPU) || r->options.switch_events ||
	       r->options.off_cpu || r->target.all || r->target.cpus || r->target.cgroup;
}

/* What every record of the file has, and what the tracking event records. */
static void configure_all(const struct recording *r, struct perf_event_attr *attr, bool tracks)
{
	const struct record_options *o = &r->options;

	attr->sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	if (tally_events_count(r->events) > 1 || r->side.events)
		attr->sample_type |= PERF_SAMPLE_IDENTIFIER;
	/* What readers make of a trace is one event more. */
	if (record_aux_pages(r))
		attr->sample_type |= PERF_SAMPLE_IDENTIFIER;
	if (wants_cpu(r))
		attr->sample_type |= PERF_SAMPLE_CPU;
	if (o->clockid >= 0) {
		attr->use_clockid = 1;
		attr->clockid = o->clockid;
	}
	if (!tracks)
		return;
	fit_tracking(attr);
	attr->context_switch = o->switch_events;
	/*
	 * Unwinders need the mapping that call frame information lies in, which is not executable;
	 * addresses of data lie in such.
	 */
	attr->mmap_data = copies_stacks(r) || (o->sample_type & PERF_SAMPLE_ADDR);
	attr->cgroup = o->all_cgroups;
	attr->namespaces = o->namespaces;
}

/* Latencies came as one number before they came as three. */
static bool has_weight_struct(void)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_WEIGHT_STRUCT,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int code;

	return opens(&attr, &code) || code != -EINVAL;
}

static void set_details(const struct record_options *o, struct perf_event_attr *attr)
{
	/* The processor is in every record or in none: configure_all() sees to it. */
	uint64_t type = o->sample_type & ~(uint64_t)PERF_SAMPLE_CPU;

	if ((type & PERF_SAMPLE_WEIGHT_STRUCT) && !has_weight_struct())
		type ^= PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_WEIGHT;
	attr->sample_type |= type;
	if (type & PERF_SAMPLE_REGS_INTR)
		attr->sample_regs_intr = ALL_REGS;
	if (type & PERF_SAMPLE_REGS_USER)
		attr->sample_regs_user = ALL_REGS;
	attr->branch_sample_type |= o->branch_sample_type;
}

static int configure_sampling(struct recording *r, size_t index, struct tally_error *err)
{
	const struct tally_event *event = tally_events_at(r->events, index);
	const struct record_options *o = &r->options;
	struct perf_event_attr *attr = event->attr;
	int ret;

	attr->sample_type |= PERF_SAMPLE_IP;
	set_details(o, attr);
	attr->write_backward = o->overwrite;
	if (index == r->off_cpu_event) {
		attr->context_switch = 1;
		attr->sample_period = 1;
		attr->freq = 0;
		attr->sample_type |= PERF_SAMPLE_PERIOD;
	} else {
		set_rate(o, event);
	}
	if (attr->freq)
		attr->sample_type |= PERF_SAMPLE_PERIOD;
	if (attr->type == PERF_TYPE_TRACEPOINT ||
	    (attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_BPF_OUTPUT))
		attr->sample_type |= PERF_SAMPLE_RAW;
	ret = set_callgraph(o, event, err);
	set_leader_sampling(r, index);
	return ret;
}

static void clamp_frequency(struct recording *r)
{
	uint64_t max = max_sample_rate();
	uint64_t *frequency = &r->options.frequency;
	bool asked = *frequency;

	if (r->options.frequency_max)
		*frequency = max ? max : DEFAULT_FREQUENCY;
	/* Not given: left at 0 so that events which sample each occurrence go on doing so. */
	if (!asked && !r->options.frequency_max)
		return;
	if (max && *frequency > max) {
		record_note(r,
			    "%" PRIu64 " samples a second are more than this kernel allows: "
			    "recording %" PRIu64
			    " (sudo sysctl kernel.perf_event_max_sample_rate=%" PRIu64
			    " raises the limit)",
			    *frequency, max, *frequency);
		*frequency = max;
	}
}

/* Events without a rate of their own get the default one, as far as the kernel allows it. */
static void apply_default_frequency(struct recording *r)
{
	uint64_t max = max_sample_rate();
	uint64_t frequency = DEFAULT_FREQUENCY;

	if (max && max < frequency)
		frequency = max;
	for (size_t i = 0; i < tally_events_count(r->events); i++) {
		struct perf_event_attr *attr = tally_events_at(r->events, i)->attr;

		if (attr->freq && !attr->sample_freq)
			attr->sample_freq = frequency;
	}
}

static int add_tracking_event(struct recording *r, struct tally_error *err)
{
	r->tracking = 0;
	if (r->target.cpus) {
		/* It joins the others when they are open. */
		r->tracking = tally_events_count(r->events);
		r->side.events = tally_events_new();
		if (r->side.events)
			return tally_events_parse(r->side.events, TRACKING, 0, err);
		*err = (struct tally_error){.code = -ENOMEM, .what = "out of memory"};
		return err->code;
	}
	if (!needs_tracking_event(r))
		return 0;
	r->tracking = tally_events_count(r->events);
	return tally_events_parse(r->events, TRACKING, 0, err);
}

int record_prepare_events(struct recording *r, struct tally_error *err)
{
	int ret = 0;

	clamp_frequency(r);
	if (!tally_events_count(r->events) && !r->options.off_cpu)
		ret = add_default_event(r, err);
	r->off_cpu_event = NO_EVENT;
	if (ret == 0 && r->options.off_cpu) {
		r->off_cpu_event = tally_events_count(r->events);
		ret = tally_events_parse(r->events, "context-switches/name=offcpu-time/", 0, err);
	}
	if (ret == 0)
		ret = add_tracking_event(r, err);
	for (size_t i = 0; ret == 0 && i < tally_events_count(r->events); i++)
		if (i != r->tracking || !tracks_apart(r))
			ret = configure_sampling(r, i, err);
	if (ret < 0)
		return ret;
	apply_default_frequency(r);
	for (size_t i = 0; i < tally_events_count(r->events); i++)
		configure_all(r, tally_events_at(r->events, i)->attr, i == r->tracking);
	if (r->side.events)
		configure_all(r, tally_events_at(r->side.events, 0)->attr, true);
	return 0;
}

/* All events have the fields before the time alike: what the first one says goes for all. */
static void find_time(struct recording *r)
{
	struct tally_record_format format;
	size_t from_end;

	for (size_t i = 0; i < tally_events_count(r->events); i++) {
		if (i == r->tracking && tally_events_count(r->events) > 1)
			continue;
		tally_record_format_init(&format, tally_events_at(r->events, i)->attr);
		if (!tally_record_time_position(&format, &r->time_at, &from_end))
			r->time_at = SIZE_MAX;
		return;
	}
}

int record_adopt_attrs(struct recording *r, struct tally_error *err)
{
	bool user_only = false;

	if (r->side.events && tally_events_parse(r->events, TRACKING, 0, err) < 0)
		return err->code;
	for (size_t i = 0; i < tally_events_count(r->events); i++) {
		struct perf_event_attr *attr = tally_events_at(r->events, i)->attr;
		size_t index = i;
		const struct tally_counters *counters = record_counters(r, &index);
		const struct perf_event_attr *opened = tally_counters_attr(counters, index);
		bool fell_back = opened->exclude_kernel && !attr->exclude_kernel;

		if (fell_back && i == r->off_cpu_event) {
			*err = (struct tally_error){.code = -EACCES, .offset = TALLY_NO_OFFSET};
			snprintf(
				err->what, sizeof(err->what),
				"--off-cpu needs events of the kernel, which this user may not see");
			snprintf(err->remedy, sizeof(err->remedy),
				 "sudo sysctl kernel.perf_event_paranoid=1");
			return err->code;
		}
		user_only |= fell_back;
		memcpy(attr, opened, attr->size);
	}
	find_time(r);
	/* User mode has no side of the kernel's that would be missing. */
	if (user_only && !tally_user_mode())
		record_note(
			r,
			"sampling user space only: the kernel's side is not for this user to see "
			"(sudo sysctl kernel.perf_event_paranoid=1 would allow it)");
	return 0;
}
