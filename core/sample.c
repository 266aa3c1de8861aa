// SPDX-License-Identifier: MIT
/*
 * A sample is gathered first, since its header says its size, and then written. The order of the
 * fields is that of <linux/perf_event.h>, which is not that of the PERF_SAMPLE_ bits:
 *
 *	IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD	a word each
 *	READ CALLCHAIN RAW BRANCH_STACK REGS_USER STACK_USER	counted
 *	WEIGHT|WEIGHT_STRUCT DATA_SRC TRANSACTION		a word each
 *	REGS_INTR						counted
 *	PHYS_ADDR CGROUP DATA_PAGE_SIZE CODE_PAGE_SIZE		a word each
 *	AUX							counted
 */
#include "core/sample.h"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <string.h>

#include "core/arena.h"
#include "core/aux.h"
#include "core/branches.h"
#include "core/core.h"
#include "core/host.h"
#include "core/record.h"
#include "core/ring.h"

#define WORD sizeof(uint64_t)

/* As much as a header can say, in words. */
#define SIZE_MAX_RECORD (UINT16_MAX & ~(WORD - 1))

/* Frames of a call chain, whatever the settings allow: they are gathered on the stack. */
#define CHAIN_MAX 512

/* Fields of one word that are there or not. */
#define WORDS                                                                                      \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |             \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT |                     \
	 PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR |                  \
	 PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE)

/* Those that tell of what an instruction accessed. */
#define ACCESS                                                                                     \
	(PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR |                         \
	 PERF_SAMPLE_DATA_PAGE_SIZE)

/* Nothing is known of the access. */
#define SOURCE_UNKNOWN                                                                             \
	(PERF_MEM_S(OP, NA) | PERF_MEM_S(LVL, NA) | PERF_MEM_S(SNOOP, NA) | PERF_MEM_S(LOCK, NA) | \
	 PERF_MEM_S(TLB, NA) | PERF_MEM_S(LVLNUM, NA))

struct gathered {
	const struct core_event *event;
	const struct core_hit *hit;
	uint64_t type;
	struct core_identity identity;
	bool exact; /* the cause is known */
	struct core_cause cause;
	uint64_t regs[PERF_REG_X86_64_MAX]; /* when the cause began, where that is known */
	uint64_t after[PERF_REG_X86_64_MAX];
	size_t frames; /* with the marker before them */
	uint64_t chain[CHAIN_MAX + 1];
	size_t branches;
	struct perf_branch_entry branch[CORE_BRANCH_STACK];
	size_t stack; /* bytes of it that there is room for */
	size_t aux;   /* likewise, of what there is in the AUX area */
	size_t size;
};

static size_t bits(uint64_t mask)
{
	size_t n = 0;

	for (; mask; mask &= mask - 1)
		n++;
	return n;
}

/* ---- gathering ---- */

/* Where each branch is sampled Intel's processors store them (BTS), and the kernel has from
 * there where one led to: perf script shows that as the address of such events, whatever the
 * processor. */
static bool is_each_branch(const struct gathered *sample)
{
	return sample->event->kind == CORE_BRANCHES && !sample->event->attr.freq &&
	       sample->hit->period == 1;
}

static void find_fault(const struct core_event *event, const struct core_hit *hit,
		       struct core_cause *cause)
{
	const enum core_kind kind = event->kind;

	if (kind == CORE_PAGE_FAULTS || kind == CORE_PAGE_FAULTS_MIN ||
	    kind == CORE_PAGE_FAULTS_MAJ)
		core_host_fault(kind, hit->number, cause);
}

uint64_t core_hit_address(const struct core_event *event, const struct core_hit *hit)
{
	struct core_cause cause = {.address = hit->address};

	find_fault(event, hit, &cause);
	return cause.address;
}

/*
 * As processors tell precise samples, what was interrupted has the registers from behind the
 * instruction that did it, but for that instruction's own address. The registers of user mode are
 * those before it: they, the stack and the sampled address belong together.
 */
static void gather_place(struct gathered *sample)
{
	const enum core_kind kind = sample->event->kind;
	const bool branch = is_each_branch(sample);
	const bool access = sample->type & ACCESS && !branch;

	core_host_registers(sample->after);
	memcpy(sample->regs, sample->after, sizeof(sample->regs));
	sample->cause = (struct core_cause){
		.ip = sample->after[PERF_REG_X86_IP],
		.address = sample->hit->address,
		.source = SOURCE_UNKNOWN,
	};
	sample->exact = kind < CORE_HARDWARE_KINDS &&
			core_host_cause(kind, access, &sample->cause, sample->regs);
	if (branch && sample->exact && sample->cause.since == CORE_SINCE_NOTHING)
		sample->cause.address = sample->after[PERF_REG_X86_IP];
	find_fault(sample->event, sample->hit, &sample->cause);
	sample->after[PERF_REG_X86_IP] = sample->cause.ip;
}

static void gather_chain(struct gathered *sample)
{
	const struct perf_event_attr *attr = &sample->event->attr;
	size_t max = attr->sample_max_stack ? attr->sample_max_stack : core_settings()->max_stack;

	if (attr->exclude_callchain_user)
		return;
	if (max > CHAIN_MAX)
		max = CHAIN_MAX;
	sample->chain[sample->frames++] = PERF_CONTEXT_USER;
	if (!max)
		return;
	/* Frames of one place under the address of another would be a chain that never was. */
	if (sample->cause.since != CORE_SINCE_MORE) {
		sample->chain[sample->frames++] = sample->cause.ip;
		max--;
	}
	if (sample->cause.since != CORE_SINCE_NOTHING && max) {
		sample->chain[sample->frames++] = sample->regs[PERF_REG_X86_IP];
		max--;
	}
	sample->frames += core_host_callchain(sample->regs, sample->chain + sample->frames, max);
}

/* What is left of the record, of what was asked for, behind @before bytes. */
static size_t room_for(size_t asked, size_t before)
{
	size_t room = before < SIZE_MAX_RECORD ? SIZE_MAX_RECORD - before : 0;

	return asked < room ? asked : room;
}

static size_t regs_size(uint64_t mask)
{
	return WORD * (1 + bits(mask));
}

/*
 * What the kernel's uprobes have as raw data, of a record of the tracing directory without arguments:
 *
 *	| size, 4 | type 2, flags 1, preemption 1 | pid, 4 | address | [returned to] | zeros, 4 |
 *
 * with how often preemption is off in the kernel meanwhile. The type is 0, that of a record that no
 * file there describes, unless the probe is from there.
 */
enum { PROBE_PREEMPTION = 1 };

/* Of all else it is empty: four bytes of zeros, behind their number. */
static size_t raw_size(const struct gathered *sample)
{
	const struct core_probe_met *met = sample->hit->probe;

	if (!met)
		return WORD;
	return (met->back ? 4 : 3) * WORD;
}

static void gather(struct gathered *sample)
{
	const struct perf_event_attr *attr = &sample->event->attr;
	uint64_t type = sample->type;

	core_identify(&sample->identity, sample->event);
	gather_place(sample);
	if (type & PERF_SAMPLE_CALLCHAIN)
		gather_chain(sample);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		sample->branches = core_branches(attr, sample->branch);

	sample->size = sizeof(struct perf_event_header) + WORD * bits(type & WORDS);
	if (type & PERF_SAMPLE_READ)
		sample->size += core_read_size(sample->event);
	if (type & PERF_SAMPLE_CALLCHAIN)
		sample->size += WORD * (1 + sample->frames);
	if (type & PERF_SAMPLE_RAW)
		sample->size += raw_size(sample);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		sample->size += WORD + sample->branches * sizeof(sample->branch[0]);
	if (type & PERF_SAMPLE_BRANCH_STACK &&
	    attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		sample->size += WORD;
	if (type & PERF_SAMPLE_REGS_USER)
		sample->size += regs_size(attr->sample_regs_user);
	if (type & PERF_SAMPLE_REGS_INTR)
		sample->size += regs_size(attr->sample_regs_intr);
	if (type & PERF_SAMPLE_AUX)
		sample->size += WORD;
	if (type & PERF_SAMPLE_STACK_USER) {
		/* its size, and how much of it is real */
		sample->stack = room_for(attr->sample_stack_user, sample->size + 2 * WORD);
		sample->size += WORD + (sample->stack ? sample->stack + WORD : 0);
	}
	if (type & PERF_SAMPLE_AUX && attr->aux_sample_size) {
		sample->aux = core_trace_last(sample->event,
					      room_for(attr->aux_sample_size, sample->size));
		sample->size += sample->aux;
	}
}

/* ---- writing ---- */

static void put_leading(struct core_output *out, const struct gathered *sample)
{
	const struct core_identity *identity = &sample->identity;
	uint64_t type = sample->type;

	if (type & PERF_SAMPLE_IDENTIFIER)
		core_output_put_u64(out, identity->id);
	if (type & PERF_SAMPLE_IP)
		core_output_put_u64(out, sample->cause.ip);
	if (type & PERF_SAMPLE_TID)
		core_put_two_u32(out, identity->pid, identity->tid);
	if (type & PERF_SAMPLE_TIME)
		core_output_put_u64(out, identity->time);
	if (type & PERF_SAMPLE_ADDR)
		core_output_put_u64(out, sample->cause.address);
	if (type & PERF_SAMPLE_ID)
		core_output_put_u64(out, identity->id);
	if (type & PERF_SAMPLE_STREAM_ID)
		core_output_put_u64(out, identity->stream_id);
	if (type & PERF_SAMPLE_CPU)
		core_put_two_u32(out, identity->cpu, 0);
	if (type & PERF_SAMPLE_PERIOD)
		core_output_put_u64(out, sample->hit->period);
}

static void put_branches(struct core_output *out, const struct gathered *sample)
{
	core_output_put_u64(out, sample->branches);
	if (sample->event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		core_output_put_u64(out, UINT64_MAX); /* not known: there is no such register */
	core_output_put(out, sample->branch, sample->branches * sizeof(sample->branch[0]));
}

static void put_regs(struct core_output *out, const uint64_t regs[], uint64_t mask)
{
	core_output_put_u64(out, PERF_SAMPLE_REGS_ABI_64);
	for (unsigned int i = 0; i < PERF_REG_X86_64_MAX; i++)
		if (mask >> i & 1)
			core_output_put_u64(out, regs[i]);
}

static void put_stack(struct core_output *out, const struct gathered *sample)
{
	size_t real;

	core_output_put_u64(out, sample->stack);
	if (!sample->stack)
		return;
	real = core_output_put_user(out, sample->regs[PERF_REG_X86_SP], sample->stack);
	core_output_put_u64(out, real);
}

static void put_memory(struct core_output *out, const struct gathered *sample)
{
	const struct core_cause *cause = &sample->cause;
	uint64_t type = sample->type;

	/* The latency is in the lowest bits of both forms. */
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		core_output_put_u64(out, cause->latency);
	if (type & PERF_SAMPLE_DATA_SRC)
		core_output_put_u64(out, cause->source ? cause->source : SOURCE_UNKNOWN);
	if (type & PERF_SAMPLE_TRANSACTION)
		core_output_put_u64(out, 0);
}

static void put_places(struct core_output *out, const struct gathered *sample)
{
	uint64_t address = sample->cause.address, ip = sample->cause.ip;
	uint64_t type = sample->type;

	if (type & PERF_SAMPLE_PHYS_ADDR)
		core_output_put_u64(out, address ? core_host_physical(address) : 0);
	if (type & PERF_SAMPLE_CGROUP)
		core_output_put_u64(out, core_host_cgroup());
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		core_output_put_u64(out, address ? core_host_page_size(address) : 0);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		core_output_put_u64(out, core_host_page_size(ip));
	if (type & PERF_SAMPLE_AUX) {
		core_output_put_u64(out, sample->aux);
		if (sample->aux)
			core_trace_put(out, sample->event, sample->aux);
	}
}

static void put_raw(struct core_output *out, const struct gathered *sample)
{
	const struct core_probe_met *met = sample->hit->probe;
	const uint32_t size = (uint32_t)(raw_size(sample) - sizeof(size));
	const struct {
		uint16_t type;
		uint8_t flags, preemption;
		uint32_t pid;
	} head = {sample->event->record, 0, PROBE_PREEMPTION, sample->identity.tid};
	const uint64_t addresses[] = {met ? met->function : 0, met ? met->back : 0};

	core_output_put(out, &size, sizeof(size));
	if (met) {
		core_output_put(out, &head, sizeof(head));
		core_output_put(out, addresses, (met->back ? 2 : 1) * sizeof(addresses[0]));
	}
	core_output_put(out, &(uint32_t){0}, sizeof(uint32_t));
}

static void put(struct core_output *out, const struct gathered *sample)
{
	const struct perf_event_attr *attr = &sample->event->attr;
	uint64_t type = sample->type;

	put_leading(out, sample);
	if (type & PERF_SAMPLE_READ)
		core_put_read(out, sample->event);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		core_output_put_u64(out, sample->frames);
		core_output_put(out, sample->chain, sample->frames * WORD);
	}
	if (type & PERF_SAMPLE_RAW)
		put_raw(out, sample);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		put_branches(out, sample);
	if (type & PERF_SAMPLE_REGS_USER)
		put_regs(out, sample->regs, attr->sample_regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		put_stack(out, sample);
	put_memory(out, sample);
	if (type & PERF_SAMPLE_REGS_INTR)
		put_regs(out, sample->after, attr->sample_regs_intr);
	put_places(out, sample);
}

void core_sample(struct core_event *event, const struct core_hit *hit)
{
	struct gathered sample;
	struct core_output out;
	uint16_t misc = PERF_RECORD_MISC_USER;

	if (!__atomic_load_n(&core_opened_const(event)->ring, __ATOMIC_RELAXED))
		return;
	sample.event = event;
	sample.hit = hit;
	sample.type = event->attr.sample_type;
	sample.frames = 0;
	sample.branches = 0;
	sample.stack = 0;
	sample.aux = 0;
	gather(&sample);
	/* As from the kernel only where somebody asked for it: others compare with USER. */
	if (sample.exact && event->attr.precise_ip)
		misc |= PERF_RECORD_MISC_EXACT_IP;
	if (sample.size > SIZE_MAX_RECORD || !core_output_begin(&out, event, sample.size))
		return;
	core_put_header(&out, PERF_RECORD_SAMPLE, misc, sample.size);
	put(&out, &sample);
	core_output_end(&out, true);
}
