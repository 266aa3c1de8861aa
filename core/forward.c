// SPDX-License-Identifier: MIT
#include "core/forward.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/count.h"
#include "core/hold.h"
#include "core/lock.h"
#include "core/ring.h"
#include "core/schedule.h"

/* By what was mapped, not by what the page says, which may be written. */
static const void *data_at(const struct core_forward *from, uint64_t at)
{
	const uint64_t size = from->size - ARENA_PAGE;

	return (const char *)from->page + ARENA_PAGE + (at & (size - 1));
}

/* What identifies a record, in order: of samples from the first word on, of others behind the body.
 */
static const uint64_t of_samples[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,	  PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME,	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID,	PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD,
};
static const uint64_t of_others[] = {
	PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,	 PERF_SAMPLE_IDENTIFIER,
};
enum {
	OF_SAMPLES = sizeof(of_samples) / sizeof(of_samples[0]),
	OF_OTHERS = sizeof(of_others) / sizeof(of_others[0]),
};

/* The words from @word to @end that are there, of @nr that may be; what comes behind them. */
static uint64_t *change_words(const struct core_forward *from, const uint64_t *fields,
			      unsigned int nr, uint64_t *word, const uint64_t *end)
{
	const uint64_t ids = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;

	for (unsigned int i = 0; i < nr && word < end; i++) {
		if (!(from->sample_type & fields[i]))
			continue;
		if (fields[i] == PERF_SAMPLE_TIME)
			*word -= (uint64_t)from->ahead;
		else if (fields[i] & ids && from->feeds)
			*word = core_named(from->event)->id;
		word++;
	}
	return word;
}

/* What a sample says of the count, of one event alone. */
static void change_read(const struct core_forward *from, uint64_t *word, const uint64_t *end)
{
	const struct core_event *event = core_named(from->event);
	const uint64_t more[] = {event->before.value, event->before.enabled, event->before.running};
	const uint64_t fields[] = {0, PERF_FORMAT_TOTAL_TIME_ENABLED,
				   PERF_FORMAT_TOTAL_TIME_RUNNING};

	if (!from->feeds || !(from->sample_type & PERF_SAMPLE_READ))
		return;
	for (unsigned int i = 0; i < 3 && word < end; i++)
		if (!i || from->read_format & fields[i])
			*word++ += more[i];
	if (from->read_format & PERF_FORMAT_ID && word < end)
		*word++ = event->id;
	if (from->read_format & PERF_FORMAT_LOST && word < end)
		*word = event->lost;
}

static unsigned int nr_trailing(const struct core_forward *from)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; from->sample_id_all && i < OF_OTHERS; i++)
		nr += (from->sample_type & of_others[i]) != 0;
	return nr;
}

/* As the event of ours would have written it. */
static void change(const struct core_forward *from, struct perf_event_header *header, uint64_t size)
{
	uint64_t *body = (uint64_t *)(header + 1);
	uint64_t *end = (uint64_t *)header + size / sizeof(*end);
	const unsigned int trailing = nr_trailing(from);

	if (header->type == PERF_RECORD_SAMPLE) {
		change_read(from, change_words(from, of_samples, OF_SAMPLES, body, end), end);
		return;
	}
	if (header->type == PERF_RECORD_LOST && from->feeds && body < end)
		*body = core_named(from->event)->id;
	if (trailing && end - body >= trailing)
		change_words(from, of_others, OF_OTHERS, end - trailing, end);
}

/* While it is disabled nobody tells it anything; what is kept is disabled itself then. */
static bool listens(const struct core_forward *from)
{
	const struct core_event *event = core_named(from->event);

	return !from->feeds || event->is_kept || core_enabled(event);
}

/* Whether that many more have brought it to its limit, as they have the kernel's event. */
static bool are_last(struct core_event *event, uint64_t overflows)
{
	if (event->limit <= 0)
		return false;
	if (overflows < (uint64_t)event->limit) {
		event->limit -= (int32_t)overflows;
		return false;
	}
	event->limit = 0;
	return true;
}

/* The kernel has disabled its event by itself. */
static void switch_off(const struct core_hold *hold)
{
	if (!hold->task)
		return;
	core_switch_off(hold->task, hold->event);
	core_schedule_group(hold->task, core_leader(hold->event));
}

/* Each is told of, whoever reads the samples; programs of BPF write some that are no overflows. */
static void overflow(const struct core_hold *hold, const struct perf_event_header *record)
{
	const uint64_t *body = (const uint64_t *)(record + 1);
	const bool sample = record->type == PERF_RECORD_SAMPLE;
	const bool lost = record->type == PERF_RECORD_LOST && record->size >= sizeof(*record) + 16;
	bool last;

	if (!hold->event->is_kept || !(sample || lost))
		return;
	/* As if there had been no room in ours. */
	if (lost)
		__atomic_fetch_add(&core_opened(hold->event)->lost, body[1], __ATOMIC_RELAXED);
	last = are_last(hold->event, sample ? 1 : body[1]);
	if (last)
		switch_off(hold);
	if (sample || last)
		core_signal_owner(hold->event, last ? POLL_HUP : POLL_IN);
}

/* Lost where there is no room. */
static void put(const struct core_forward *from, const struct perf_event_header *record,
		uint64_t size)
{
	struct core_output out;
	struct core_hold hold;

	if (!core_hold(&hold, from->event))
		return;
	if (core_output_begin(&out, hold.event, size)) {
		core_output_put(&out, record, size);
		core_output_end(&out, record->type == PERF_RECORD_SAMPLE);
	}
	overflow(&hold, record);
	core_hold_end(&hold);
}

/* A ring is of whole words, and so are records: a header lies in one piece. */
enum { WORD = sizeof(struct perf_event_header) };

static void forward_record(const struct core_forward *from, uint64_t at, uint64_t size)
{
	static _Alignas(8) char record[UINT16_MAX + 1];
	const uint64_t left = -at & (from->size - ARENA_PAGE - 1);
	const uint64_t first = left && left < size ? left : size;
	struct perf_event_header *header = (struct perf_event_header *)record;

	if (!listens(from))
		return;
	memcpy(record, data_at(from, at), first);
	memcpy(record + first, data_at(from, at + first), size - first);
	change(from, header, size);
	header->size = (uint16_t)size;
	put(from, header, size);
}

static bool is_there(const struct core_forward *from)
{
	return __atomic_load_n(&from->page->data_head, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&from->page->data_tail, __ATOMIC_RELAXED);
}

/* Who is killed in between has left no more than the one record to be forwarded again. */
static void forward(const struct core_forward *from)
{
	struct perf_event_mmap_page *page = from->page;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = __atomic_load_n(&page->data_tail, __ATOMIC_RELAXED), size;

	while (!(tail % WORD) && head - tail >= sizeof(struct perf_event_header) &&
	       head - tail <= from->size - ARENA_PAGE) {
		size = ((const struct perf_event_header *)data_at(from, tail))->size;
		if (size < sizeof(struct perf_event_header) || size % WORD || size > head - tail)
			break;
		forward_record(from, tail, size);
		tail += size;
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
}

/* With the lock, which is given back. */
static void forward_all(const struct core_forward *from, uint32_t *lock, uint32_t *wanted)
{
	__atomic_store_n(wanted, 0, __ATOMIC_SEQ_CST);
	forward(from);
	core_unlock(lock);
	/* Before who comes now looks at the lock, or after who has left it to us has said so. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void core_forward(const struct core_forward *from)
{
	struct core_event *event = core_named(from->event);

	if (!from->page || !is_there(from))
		return;
	do {
		core_lock(&event->forwarding);
		forward_all(from, &event->forwarding, &event->forwarding_wanted);
	} while (__atomic_load_n(&event->forwarding_wanted, __ATOMIC_SEQ_CST));
}

void core_forward_soon(const struct core_forward *from)
{
	struct core_event *event = core_named(from->event);
	bool again;

	if (!from->page || !is_there(from))
		return;
	do {
		/* Who is waited for once is not to be waited for at each record. */
		again = __atomic_exchange_n(&event->forwarding_wanted, 1, __ATOMIC_SEQ_CST);
		if (!core_lock_soon(&event->forwarding, !again))
			return;
		forward_all(from, &event->forwarding, &event->forwarding_wanted);
	} while (__atomic_load_n(&event->forwarding_wanted, __ATOMIC_SEQ_CST));
}
