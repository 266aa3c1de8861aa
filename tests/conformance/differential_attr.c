// SPDX-License-Identifier: MIT
/* Random attrs: mostly such that the event can be opened, and with each field wrong now and then.
 */
#include <linux/hw_breakpoint.h>

#include "differential.h"
#include "draw.h"
#include "workload.h"

struct perf_event_attr draw_watchpoint(void)
{
	static const uint64_t lengths[] = {1, 2, 4, 8, 8, 8, 4, 4, 2, 1, 3, 0};
	static const uint32_t types[] = {HW_BREAKPOINT_W, HW_BREAKPOINT_RW, HW_BREAKPOINT_W,
					 HW_BREAKPOINT_X, HW_BREAKPOINT_EMPTY};
	static const uint64_t periods[] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 5, 1ULL << 63};
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT};

	attr.bp_type = PICK(types);
	attr.bp_len = PICK(lengths);
	attr.bp_addr = (uintptr_t)&words[below(WORDS)] + (one_in(5) ? below(8) : 0);
	attr.sample_period = PICK(periods);
	if (attr.bp_type == HW_BREAKPOINT_X && one_in(2)) {
		attr.bp_addr = (uintptr_t)work_called;
		attr.bp_len = sizeof(long);
	}
	return attr;
}

static struct perf_event_attr draw_software(void)
{
	static const uint64_t configs[] = {
		PERF_COUNT_SW_PAGE_FAULTS,
		PERF_COUNT_SW_DUMMY,
		PERF_COUNT_SW_TASK_CLOCK,
		PERF_COUNT_SW_EMULATION_FAULTS,
		PERF_COUNT_SW_CONTEXT_SWITCHES,
		PERF_COUNT_SW_DUMMY,
		PERF_COUNT_SW_CPU_CLOCK,
		PERF_COUNT_SW_DUMMY,
		PERF_COUNT_SW_ALIGNMENT_FAULTS,
		PERF_COUNT_SW_BPF_OUTPUT,
		PERF_COUNT_SW_CPU_MIGRATIONS,
		1000,
		1ULL << 40,
	};
	static const uint64_t periods[] = {0, 0, 0, 0, 0, 1ULL << 62, 1ULL << 62, 1ULL << 63};
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE};

	attr.config = PICK(configs);
	attr.sample_period = PICK(periods);
	if (one_in(10)) {
		attr.freq = 1;
		attr.sample_freq = one_in(2) ? 0 : 1ULL << 40;
	}
	return attr;
}

static void draw_sampling(struct perf_event_attr *attr)
{
	static const uint64_t fields[] = {
		PERF_SAMPLE_IP,
		PERF_SAMPLE_TID,
		PERF_SAMPLE_TIME,
		PERF_SAMPLE_ADDR,
		PERF_SAMPLE_READ,
		PERF_SAMPLE_CALLCHAIN,
		PERF_SAMPLE_ID,
		PERF_SAMPLE_CPU,
		PERF_SAMPLE_PERIOD,
		PERF_SAMPLE_STREAM_ID,
		PERF_SAMPLE_RAW,
		PERF_SAMPLE_BRANCH_STACK,
		PERF_SAMPLE_REGS_USER,
		PERF_SAMPLE_STACK_USER,
		PERF_SAMPLE_WEIGHT,
		PERF_SAMPLE_DATA_SRC,
		PERF_SAMPLE_IDENTIFIER,
		PERF_SAMPLE_TRANSACTION,
		PERF_SAMPLE_REGS_INTR,
		PERF_SAMPLE_PHYS_ADDR,
		PERF_SAMPLE_AUX,
		PERF_SAMPLE_CGROUP,
		PERF_SAMPLE_DATA_PAGE_SIZE,
		PERF_SAMPLE_CODE_PAGE_SIZE,
		PERF_SAMPLE_WEIGHT_STRUCT,
		1ULL << 25,
		1ULL << 63,
	};
	static const uint64_t masks[] = {0x180, 0x1ff, 0x180, 0x101, 0, 1 << 12, 1 << 24};
	static const uint32_t stacks[] = {64, 64, 256, 256, 12, 65536};
	/* How many frames are found depends on how they are looked for. */
	static const uint16_t depths[] = {1, 1, 1, 1, 1, 128, 10000};

	for (unsigned int i = below(4); i; i--)
		attr->sample_type |= PICK(fields);
	if (one_in(12)) /* much at once, of what is never refused */
		attr->sample_type |= 0x3df;
	if (!of_cgroups_too)
		attr->sample_type &= ~(uint64_t)PERF_SAMPLE_CGROUP;
	attr->sample_regs_user = PICK(masks);
	attr->sample_regs_intr = one_in(4) ? PICK(masks) : 0x100;
	attr->sample_stack_user = PICK(stacks);
	attr->sample_max_stack = PICK(depths);
	attr->exclude_callchain_user = one_in(8);
	attr->exclude_callchain_kernel = one_in(2);
	attr->read_format = one_in(30) ? 1ULL << 5 : below(32);
	attr->wakeup_events = below(4);
	attr->watermark = one_in(4);
	if (one_in(20))
		attr->branch_sample_type = one_in(2) ? PERF_SAMPLE_BRANCH_ANY : draw();
	if (one_in(40))
		attr->aux_sample_size = below(70000);
	if (one_in(40))
		attr->aux_watermark = below(10000);
}

/* What it is to be told of beside samples. Mappings and name spaces are told by differential_ring.c
 * as far as they are the same everywhere. */
static void draw_tracking(struct perf_event_attr *attr)
{
	attr->sample_id_all = below(2);
	attr->comm = one_in(3);
	attr->task = one_in(5);
	attr->mmap_data = one_in(10);
	attr->mmap = one_in(10);
	attr->mmap2 = attr->mmap && one_in(2); /* alone, it depends on what others record */
	attr->comm_exec = one_in(4);
	attr->namespaces = one_in(10);
	attr->ksymbol = one_in(30);
	attr->bpf_event = one_in(30);
	attr->cgroup = one_in(30);
	attr->text_poke = one_in(30);
	attr->build_id = one_in(30);
	attr->write_backward = one_in(15);
}

static void draw_bits(struct perf_event_attr *attr)
{
	attr->disabled = below(2);
	attr->exclude_kernel = 1;
	attr->exclude_hv = below(2);
	attr->exclude_user = one_in(30);
	attr->exclude_idle = one_in(10);
	attr->exclude_host = one_in(40);
	attr->exclude_guest = one_in(10);
	attr->inherit = one_in(5);
	/* Linux tells of members of groups as of what they were, with what is left of them. */
	attr->inherit_stat = attr->inherit && !(attr->read_format & PERF_FORMAT_GROUP) && one_in(3);
	attr->pinned = one_in(8);
	attr->enable_on_exec = one_in(10);
	attr->remove_on_exec = one_in(10);
	attr->inherit_thread = one_in(30);
	attr->aux_output = one_in(40);
	attr->precise_ip = below(4) & 3;
	if (one_in(15)) {
		attr->sigtrap = 1;
		attr->remove_on_exec = !one_in(6);
		attr->sig_data = draw();
	}
	if (one_in(12)) {
		attr->use_clockid = 1;
		attr->clockid = (int)below(14);
	}
}

/* A processor has four, and who watches all of it takes some of them. */
static bool may_watch(void)
{
	unsigned int live = 0;

	for (unsigned int i = 0; i < SLOTS; i++)
		live += slots[i].fd >= 0 && slots[i].attr.type == PERF_TYPE_BREAKPOINT;
	return watchpoints_too && live < 2;
}

struct perf_event_attr draw_attr(void)
{
	static const uint32_t sizes[] = {64, 72, 80, 96, 104, 112, 120, 0, 8, 63, 4096, 1 << 20};
	struct perf_event_attr attr =
		one_in(2) && may_watch() ? draw_watchpoint() : draw_software();

	if (one_in(30))
		attr.type = 0x7ffffff0 + below(8);
	draw_sampling(&attr);
	draw_tracking(&attr);
	draw_bits(&attr);
	attr.size = one_in(12) ? PICK(sizes) : sizeof(attr);
	if (attr.size > sizeof(attr))
		attr.size = 1 << 20;	     /* what lies behind is not ours */
	if (attr.size < PERF_ATTR_SIZE_VER5) /* sample_max_stack would not be seen */
		attr.sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
	/* Linux samples each occurrence of a software event then. */
	if (attr.type == PERF_TYPE_SOFTWARE)
		attr.sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
	return attr;
}

bool is_exact(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_BREAKPOINT || attr->config == PERF_COUNT_SW_DUMMY ||
	       attr->config == PERF_COUNT_SW_EMULATION_FAULTS ||
	       attr->config == PERF_COUNT_SW_ALIGNMENT_FAULTS ||
	       attr->config == PERF_COUNT_SW_BPF_OUTPUT;
}

uint64_t unit_of(const struct perf_event_attr *attr)
{
	bool clock = attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
							  attr->config == PERF_COUNT_SW_TASK_CLOCK);

	return clock ? 1000 + attr->config : attr->type;
}
