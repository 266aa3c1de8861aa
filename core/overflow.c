// SPDX-License-Identifier: MIT
/*
 * Overflows: a counter has come to where an event wants a sample. What follows, in this order: the
 * next one is set, the rate is looked after, the sample is written, who waits is told.
 *
 * Time runs in ticks for one purpose: more than max_sample_rate samples a second, measured over a
 * tick, throttle the event until the next. There is no timer that would end that; a throttled event
 * looks at the clock at some more overflows, and samples again at the first in a new tick.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>

#include "core/arena.h"
#include "core/aux.h"
#include "core/core.h"
#include "core/count.h"
#include "core/counter.h"
#include "core/host.h"
#include "core/output.h"
#include "core/sample.h"
#include "core/schedule.h"
#include "core/sideband.h"
#include "core/time.h"

#define SECOND UINT64_C(1000000000)
#define TICKS  250 /* a second */
#define TICK   (SECOND / TICKS)

/* As the kernel's timers have it: a clock that is looked at as often as that leaves no time for
 * anything else. */
#define CLOCK_LEAST 10000 /* ns */

/* A frequency, at which others often run between two samples. */
#define SELDOM 1000

/* How often a throttled event looks whether the next tick has come, about. */
#define LOOKS 8

static bool is_clock(const struct core_event *event)
{
	return core_kind_bit(event->kind) & CORE_KINDS_CLOCKS;
}

static bool is_software(const struct core_event *event)
{
	return event->kind >= CORE_HARDWARE_KINDS && !is_clock(event);
}

/* ---- periods ---- */

static void begin_period(struct core_event *event, uint64_t period)
{
	event->period = period;
	event->last_period = period;
	event->left = (int64_t)period;
}

static uint64_t first_period(const struct core_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	if (!attr->sample_period) /* nor frequency: one word */
		return 0;
	if (attr->freq)
		return 1;
	/* What happens one by one, and is to tell how often it did, is told each time. */
	if (is_software(event) && attr->sample_type & PERF_SAMPLE_PERIOD)
		return 1;
	return attr->sample_period;
}

/* As the kernel has it: its timer goes by a period, which PERF_EVENT_IOC_PERIOD changes. */
static void give_clock_a_period(struct perf_event_attr *attr)
{
	if (!attr->freq || !attr->sample_freq)
		return;
	attr->sample_period = attr->sample_freq < SECOND ? SECOND / attr->sample_freq : 1;
	attr->freq = 0;
}

void core_sampling_init(struct core_event *event)
{
	if (is_clock(event))
		give_clock_a_period(&event->attr);
	begin_period(event, first_period(event));
}

void core_sampling_restart(const struct core_task *task, struct core_event *event)
{
	/* A frequency finds its period from the one that the old frequency had found. */
	begin_period(event, event->attr.freq ? event->period : first_period(event));
	event->last_time = 0; /* of another clock, it may be */
	if (event->state == CORE_ACTIVE)
		core_sampling_in(event, core_count_counter(task, event));
}

static bool is_sampling(const struct core_event *event)
{
	return event->period;
}

/* @a * @b / @c, or the most that there is: with what is native to the processor, since there is no
 * library here that divides 128 bits. */
static uint64_t scaled(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;

	if (high >= c)
		return UINT64_MAX;
	__asm__("divq %2" : "+a"(low), "+d"(high) : "rm"(c) : "cc");
	return low;
}

/*
 * The stretch on which branches are noted is slow: were it most of the way, the task would do less
 * and less in the time between two samples. What the model counts is some thirty times as slow
 * there as what is exact, as each instruction is taken in by itself.
 */
static uint64_t least_period(const struct core_event *event)
{
	if (event->kind >= CORE_HARDWARE_KINDS ||
	    !(event->attr.sample_type & PERF_SAMPLE_BRANCH_STACK))
		return 1;
	return (CORE_KINDS_EXACT >> event->kind & 1 ? 16 : 256) * CORE_LOOK_BACK;
}

/*
 * An eighth of the way from @period to @wanted, by how long things take and not by how many there
 * are in some time: what happens is uneven, and while it happens fast there are more samples, whose
 * mean would ask for a longer period than all of the time does.
 */
static uint64_t nearer(uint64_t period, uint64_t wanted)
{
	if (wanted / 4 >= period) /* it is the first, or all is different */
		return period + (wanted - period + 7) / 8;
	if (wanted > period)
		return 1 + scaled(period, 8 * wanted, 7 * wanted + period);
	return scaled(period, 8 * wanted, 7 * wanted + period);
}

/*
 * The period with which @events in @time ns would have given the wanted frequency, or one nearer to
 * it. The whole way if far less happens than before, since the next occasion would be late; once
 * that does not count, as others may have run meanwhile, of which nobody tells.
 */
static void adjust(struct core_event *event, uint64_t time, uint64_t events)
{
	uint64_t wanted = scaled(events, SECOND, time) / event->attr.sample_freq;
	bool fewer = wanted < event->period / 2;
	bool believed = event->fewer || !fewer;

	event->fewer = fewer;
	if (!believed)
		return;
	if (wanted > INT64_MAX / 16)
		wanted = INT64_MAX / 16;
	event->period = fewer ? wanted : nearer(event->period, wanted);
	if (event->period < least_period(event))
		event->period = least_period(event);
}

/*
 * Frequencies are those of the time that the task runs. The kernel knows when it let others run; to
 * ask takes a third as long as a sample, so it is done where they are few. Where they are many,
 * others run between one in a hundred.
 */
static uint64_t time_run(const struct core_event *event)
{
	if (event->attr.sample_freq <= SELDOM)
		return core_host_run_time();
	return core_clock_at(core_task(event->task), core_host_tsc());
}

static void follow_frequency(struct core_event *event, uint64_t events)
{
	uint64_t now = time_run(event);
	uint64_t time = now - event->last_time;
	bool first = !event->last_time;

	event->last_time = now;
	if (!first && time && (int64_t)time > 0)
		adjust(event, time, events);
}

/* ---- rates ---- */

static uint64_t samples_a_tick(void)
{
	return (UINT64_C(0) + core_settings()->max_sample_rate + TICKS - 1) / TICKS;
}

/* Whether the sample that is due now is one too many. */
static bool too_many(struct core_event *event)
{
	uint64_t tick = core_time() / TICK;

	if (event->tick != tick) {
		event->tick = tick;
		event->overflows = 0;
	}
	return ++event->overflows > samples_a_tick();
}

static void throttle(struct core_event *event)
{
	event->throttled = true;
	core_tell_throttle(event, PERF_RECORD_THROTTLE);
}

/* Whether a throttled event may go on. */
static bool released(struct core_event *event)
{
	if (event->tick == core_time() / TICK)
		return false;
	event->throttled = false;
	core_tell_throttle(event, PERF_RECORD_UNTHROTTLE);
	return true;
}

static uint64_t until_next_look(const struct core_event *event)
{
	uint64_t samples = samples_a_tick() / LOOKS;

	return event->period * (samples ? samples : 1);
}

/* ---- who is told ---- */

/* PERF_EVENT_IOC_REFRESH has run out. */
static void switch_off(struct core_event *event)
{
	struct core_task *task = core_task(event->task);

	core_switch_off(task, event);
	core_schedule(task);
	task->stops_kept |= event->keeps;
}

/* One overflow; false: it was the last one for now. */
static bool happen(struct core_event *event, const struct core_hit *hit)
{
	bool last = event->limit && !--event->limit;
	const uint32_t action = core_aux_action(event);

	if (action & CORE_AUX_PAUSE)
		core_trace_pause(event, true);
	core_sample(event, hit);
	if (action & CORE_AUX_RESUME)
		core_trace_pause(event, false);
	if (last)
		switch_off(event);
	if (event->attr.sigtrap)
		core_host_sigtrap(event, core_hit_address(event, hit));
	core_signal_owner(core_opened(event), last ? POLL_HUP : POLL_IN);
	return !last;
}

/*
 * @times overflows at once; returns how many there were until the event was switched off. Only of
 * what processors do in masses there can be too many: who samples page faults or breakpoints shall
 * see each.
 */
static uint64_t overflow(struct core_event *event, uint64_t times, struct core_hit *hit)
{
	for (uint64_t n = 0; n < times; n++, hit->number += hit->period) {
		if (event->kind < CORE_HARDWARE_KINDS && too_many(event)) {
			throttle(event);
			core_tell_lost_samples(event, times - n);
			break;
		}
		if (!happen(event, hit))
			return n + 1;
	}
	return times;
}

/* What came in the same step behind the last one is not counted any more; a reset may have been
 * behind it, too. */
static void take_back(struct core_event *event, uint64_t late)
{
	event->count.value -= late < event->count.value ? late : event->count.value;
	if (event->maps)
		core_page_update(event);
}

/*
 * The counter of @event's task has come to where it waited for, or farther: a model counts in
 * steps. A clock that has been passed several times is told once, as by a timer. So is an event
 * with a frequency, whose sample then stands for all of it: at the first, short periods a step
 * would be hundreds of samples of one instruction.
 */
static void due(struct core_event *event, uint64_t counter, struct core_hit hit)
{
	uint64_t period = event->last_period, late = counter - event->due;
	uint64_t passed = period + late - late % period;
	bool once = is_clock(event) || event->attr.freq;
	const int64_t least = is_clock(event) ? CLOCK_LEAST : 1;
	uint64_t told;

	hit.period = event->attr.freq ? passed : period;
	hit.number = once ? counter - late % period : event->due;

	if (event->throttled && !released(event)) {
		event->due = counter + until_next_look(event);
		return;
	}
	if (event->attr.freq)
		follow_frequency(event, passed);
	event->due = counter - late % period + event->period;
	if ((int64_t)(event->due - counter) < least)
		event->due = counter + (uint64_t)least;
	event->last_period = event->period;
	told = overflow(event, once ? 1 : passed / period, &hit) * hit.period;
	if (event->state == CORE_OFF && !is_clock(event))
		take_back(event, period + late - told);
}

static bool is_due(const struct core_event *event, uint64_t counter)
{
	return is_sampling(event) && (int64_t)(counter - event->due) >= 0;
}

void core_look_at_kept(const struct core_task *task)
{
	if (task->reads_kept)
		core_host_kept(0, true, CORE_KEPT_READ);
}

void core_stop_kept(struct core_task *task)
{
	if (!task->stops_kept)
		return;
	task->stops_kept = false;
	core_host_kept(0, true, CORE_KEPT_SWITCH);
}

void core_overflow(struct core_task *task, enum core_kind kind)
{
	uint64_t counter;

	core_look_at_kept(task);
	core_task_lock(task);
	counter = core_counter_read(task, kind);
	core_for_each_event(event, task)
		if (event->kind == kind && event->state == CORE_ACTIVE && is_due(event, counter))
			due(event, counter, (struct core_hit){0});
	/* What has come due meanwhile, by what was done for it, is for the next look. */
	core_counters_program(task);
	core_task_unlock(task);
	core_stop_kept(task);
}

void core_happened(struct core_event *event, const struct core_hit *hit)
{
	event->count.value++;
	event->left--; /* no counter that others count by: `due` is what is left */
	if (is_due(event, 0))
		due(event, 0, *hit);
}

/* ---- breakpoints ---- */

static bool is_hit(const struct core_event *event, unsigned int type, uint64_t address, size_t size)
{
	uint64_t at = event->attr.bp_addr;

	if (event->kind != CORE_BREAKPOINT || event->state != CORE_ACTIVE ||
	    !(event->attr.bp_type & type))
		return false;
	if (type == HW_BREAKPOINT_X)
		return at == address;
	return address - at < event->attr.bp_len || at - address < size;
}

bool core_breakpoint_at(const struct core_task *task, unsigned int type, uint64_t address,
			size_t size)
{
	core_for_each_event(event, task)
		if (is_hit(event, type, address, size))
			return true;
	return false;
}

size_t core_breakpoint_places(struct core_task *task, uint64_t *to, size_t max)
{
	size_t n = 0;

	core_task_lock(task);
	core_for_each_event(event, task) {
		if (event->state != CORE_ACTIVE || !core_is_stop(event))
			continue;
		if (n < max)
			to[n] = event->attr.bp_addr;
		n++;
	}
	core_task_unlock(task);
	return n;
}

size_t core_breakpoint_watched(struct core_task *task, struct core_breakpoint_range *to, size_t max)
{
	size_t n = 0;

	core_task_lock(task);
	core_for_each_event(event, task) {
		if (event->state != CORE_ACTIVE || event->kind != CORE_BREAKPOINT ||
		    core_is_stop(event))
			continue;
		if (n < max)
			to[n] = (struct core_breakpoint_range){
				event->attr.bp_addr, event->attr.bp_len, event->attr.bp_type};
		n++;
	}
	core_task_unlock(task);
	return n;
}

static bool is_hit_by_any(const struct core_event *event,
			  const struct core_breakpoint_range *touched, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (is_hit(event, touched[i].type, touched[i].address, touched[i].size))
			return true;
	return false;
}

void core_breakpoint(struct core_task *task, unsigned int type, uint64_t address, size_t size)
{
	core_breakpoints(task, &(struct core_breakpoint_range){address, size, type}, 1);
}

void core_breakpoints(struct core_task *task, const struct core_breakpoint_range *touched,
		      size_t nr)
{
	core_look_at_kept(task);
	core_task_lock(task);
	core_for_each_event(event, task) {
		if (!is_hit_by_any(event, touched, nr))
			continue;
		core_happened(event, &(struct core_hit){.address = event->attr.bp_addr});
	}
	core_task_unlock(task);
	core_stop_kept(task);
	if (core_task_changed(task))
		core_task_update(task);
}
