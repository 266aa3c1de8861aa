// SPDX-License-Identifier: MIT
#include "abi/attr.h"

#include <string.h>

/* clang-format off */
#define FIELD(n, o, b, w, st, s)  { n, NULL, s, o, b, 0, 0, TLY_ATTR_##w, TLY_ATTR_##st }
#define FLAG(n, bit, w, s) \
	{ n, NULL, s, TLY_ATTR_BITS_OFFSET, 8, bit, w, TLY_ATTR_ALWAYS, TLY_ATTR_DECIMAL }
#define BIT(m, o, n, bit, s)      { n, m, s, o, 8, bit, 1, TLY_ATTR_ALWAYS, TLY_ATTR_DECIMAL }
#define SAMPLE(n, bit, s)         BIT("sample_type", 24, n, bit, s)
#define READ(n, bit, s)           BIT("read_format", 32, n, bit, s)
#define BRANCH(n, bit, s)         BIT("branch_sample_type", 72, n, bit, s)
#define AUX(n, bit, s) \
	{ n, "aux_action", s, 116, 4, bit, 1, TLY_ATTR_ALWAYS, TLY_ATTR_DECIMAL }

const struct tly_attr_item tly_attr_items[] = {
	FIELD("type", 0, 4, ALWAYS, DECIMAL, "2.6.31"),
	FIELD("size", 4, 4, ALWAYS, DECIMAL, "2.6.31"),
	FIELD("config", 8, 8, ALWAYS, HEX, "2.6.31"),
	FIELD("sample_period", 16, 8, IF_PERIOD, DECIMAL, "2.6.31"),
	FIELD("sample_freq", 16, 8, IF_FREQ, DECIMAL, "2.6.31"),

	FIELD("sample_type", 24, 8, ALWAYS, MASK, "2.6.31"),
	SAMPLE("IP", 0, "2.6.31"),
	SAMPLE("TID", 1, "2.6.31"),
	SAMPLE("TIME", 2, "2.6.31"),
	SAMPLE("ADDR", 3, "2.6.31"),
	SAMPLE("READ", 4, "2.6.31"),
	SAMPLE("CALLCHAIN", 5, "2.6.31"),
	SAMPLE("ID", 6, "2.6.31"),
	SAMPLE("CPU", 7, "2.6.31"),
	SAMPLE("PERIOD", 8, "2.6.31"),
	SAMPLE("STREAM_ID", 9, "2.6.31"),
	SAMPLE("RAW", 10, "2.6.32"),
	SAMPLE("BRANCH_STACK", 11, "3.4"),
	SAMPLE("REGS_USER", 12, "3.7"),
	SAMPLE("STACK_USER", 13, "3.7"),
	SAMPLE("WEIGHT", 14, "3.10"),
	SAMPLE("DATA_SRC", 15, "3.10"),
	SAMPLE("IDENTIFIER", 16, "3.12"),
	SAMPLE("TRANSACTION", 17, "3.13"),
	SAMPLE("REGS_INTR", 18, "3.19"),
	SAMPLE("PHYS_ADDR", 19, "4.13"),
	SAMPLE("AUX", 20, "5.5"),
	SAMPLE("CGROUP", 21, "5.7"),
	SAMPLE("DATA_PAGE_SIZE", 22, "5.11"),
	SAMPLE("CODE_PAGE_SIZE", 23, "5.11"),
	SAMPLE("WEIGHT_STRUCT", 24, "5.12"),

	FIELD("read_format", 32, 8, ALWAYS, MASK, "2.6.31"),
	READ("TOTAL_TIME_ENABLED", 0, "2.6.31"),
	READ("TOTAL_TIME_RUNNING", 1, "2.6.31"),
	READ("ID", 2, "2.6.31"),
	READ("GROUP", 3, "2.6.31"),
	READ("LOST", 4, "6.0"),

	FLAG("disabled", 0, 1, "2.6.31"),
	FLAG("inherit", 1, 1, "2.6.31"),
	FLAG("pinned", 2, 1, "2.6.31"),
	FLAG("exclusive", 3, 1, "2.6.31"),
	FLAG("exclude_user", 4, 1, "2.6.31"),
	FLAG("exclude_kernel", 5, 1, "2.6.31"),
	FLAG("exclude_hv", 6, 1, "2.6.31"),
	FLAG("exclude_idle", 7, 1, "2.6.31"),
	FLAG("mmap", 8, 1, "2.6.31"),
	FLAG("comm", 9, 1, "2.6.31"),
	FLAG("freq", 10, 1, "2.6.31"),
	FLAG("inherit_stat", 11, 1, "2.6.31"),
	FLAG("enable_on_exec", 12, 1, "2.6.31"),
	FLAG("task", 13, 1, "2.6.31"),
	FLAG("watermark", 14, 1, "2.6.32"),
	FLAG("precise_ip", 15, 2, "2.6.35"),
	FLAG("mmap_data", 17, 1, "2.6.36"),
	FLAG("sample_id_all", 18, 1, "2.6.38"),
	FLAG("exclude_host", 19, 1, "3.2"),
	FLAG("exclude_guest", 20, 1, "3.2"),
	FLAG("exclude_callchain_kernel", 21, 1, "3.7"),
	FLAG("exclude_callchain_user", 22, 1, "3.7"),
	FLAG("mmap2", 23, 1, "3.16"),
	FLAG("comm_exec", 24, 1, "3.16"),
	FLAG("use_clockid", 25, 1, "4.1"),
	FLAG("context_switch", 26, 1, "4.3"),
	FLAG("write_backward", 27, 1, "4.6"),
	FLAG("namespaces", 28, 1, "4.11"),
	FLAG("ksymbol", 29, 1, "5.0"),
	FLAG("bpf_event", 30, 1, "5.0"),
	FLAG("aux_output", 31, 1, "5.4"),
	FLAG("cgroup", 32, 1, "5.7"),
	FLAG("text_poke", 33, 1, "5.8"),
	FLAG("build_id", 34, 1, "5.12"),
	FLAG("inherit_thread", 35, 1, "5.13"),
	FLAG("remove_on_exec", 36, 1, "5.13"),
	FLAG("sigtrap", 37, 1, "5.13"),

	FIELD("wakeup_events", 48, 4, IF_WAKEUP, DECIMAL, "2.6.31"),
	FIELD("wakeup_watermark", 48, 4, IF_WATERMARK, DECIMAL, "2.6.32"),
	FIELD("bp_type", 52, 4, ALWAYS, DECIMAL, "2.6.33"),
	FIELD("bp_addr", 56, 8, IF_BREAKPOINT, HEX, "2.6.33"),
	FIELD("config1", 56, 8, IF_CONFIG, HEX, "2.6.39"),
	FIELD("bp_len", 64, 8, IF_BREAKPOINT, DECIMAL, "2.6.33"),
	FIELD("config2", 64, 8, IF_CONFIG, HEX, "2.6.39"),

	FIELD("branch_sample_type", 72, 8, ALWAYS, MASK, "3.4"),
	BRANCH("USER", 0, "3.4"),
	BRANCH("KERNEL", 1, "3.4"),
	BRANCH("HV", 2, "3.4"),
	BRANCH("ANY", 3, "3.4"),
	BRANCH("ANY_CALL", 4, "3.4"),
	BRANCH("ANY_RETURN", 5, "3.4"),
	BRANCH("IND_CALL", 6, "3.4"),
	BRANCH("ABORT_TX", 7, "3.11"),
	BRANCH("IN_TX", 8, "3.11"),
	BRANCH("NO_TX", 9, "3.11"),
	BRANCH("COND", 10, "3.16"),
	BRANCH("CALL_STACK", 11, "4.1"),
	BRANCH("IND_JUMP", 12, "4.2"),
	BRANCH("CALL", 13, "4.4"),
	BRANCH("NO_FLAGS", 14, "4.5"),
	BRANCH("NO_CYCLES", 15, "4.5"),
	BRANCH("TYPE_SAVE", 16, "4.14"),
	BRANCH("HW_INDEX", 17, "5.7"),
	BRANCH("PRIV_SAVE", 18, "6.1"),
	BRANCH("COUNTERS", 19, "6.8"),

	FIELD("sample_regs_user", 80, 8, ALWAYS, HEX, "3.7"),
	FIELD("sample_stack_user", 88, 4, ALWAYS, DECIMAL, "3.7"),
	FIELD("clockid", 92, 4, ALWAYS, SIGNED, "4.1"),
	FIELD("sample_regs_intr", 96, 8, ALWAYS, HEX, "3.19"),
	FIELD("aux_watermark", 104, 4, ALWAYS, DECIMAL, "4.1"),
	FIELD("sample_max_stack", 108, 2, ALWAYS, DECIMAL, "4.8"),
	FIELD("__reserved_2", 110, 2, ALWAYS, HEX, "4.8"),
	FIELD("aux_sample_size", 112, 4, ALWAYS, DECIMAL, "5.5"),
	FIELD("aux_action", 116, 4, ALWAYS, MASK, "6.13"),
	AUX("aux_start_paused", 0, "6.13"),
	AUX("aux_pause", 1, "6.13"),
	AUX("aux_resume", 2, "6.13"),
	FIELD("sig_data", 120, 8, ALWAYS, HEX, "5.13"),
	FIELD("config3", 128, 8, ALWAYS, HEX, "6.3"),
};
/* clang-format on */

const size_t tly_attr_nr_items = sizeof(tly_attr_items) / sizeof(tly_attr_items[0]);

const struct tly_attr_item *tly_attr_find(const char *name, const char *of)
{
	for (size_t i = 0; i < tly_attr_nr_items; i++) {
		const struct tly_attr_item *item = &tly_attr_items[i];

		if (strcmp(item->name, name))
			continue;
		if (of ? item->of && !strcmp(item->of, of) : !item->of)
			return item;
	}
	return NULL;
}

uint32_t tly_attr_size(const struct perf_event_attr *attr)
{
	return attr->size ? attr->size : PERF_ATTR_SIZE_VER0;
}

uint32_t tly_attr_item_size(const struct tly_attr_item *item)
{
	static const uint8_t published[] = {64, 72, 80, 96, 104, 112, 120, 128, 136};
	uint32_t end = item->offset + item->bytes;

	for (size_t i = 0; i < sizeof(published); i++)
		if (published[i] >= end)
			return published[i];
	return end;
}

static bool has_meaning(const struct perf_event_attr *attr, const struct tly_attr_item *item)
{
	switch ((enum tly_attr_when)item->when) {
	case TLY_ATTR_ALWAYS:
		return true;
	case TLY_ATTR_IF_FREQ:
		return attr->freq;
	case TLY_ATTR_IF_PERIOD:
		return !attr->freq;
	case TLY_ATTR_IF_WATERMARK:
		return attr->watermark;
	case TLY_ATTR_IF_WAKEUP:
		return !attr->watermark;
	case TLY_ATTR_IF_BREAKPOINT:
		return attr->type == PERF_TYPE_BREAKPOINT;
	case TLY_ATTR_IF_CONFIG:
		return attr->type != PERF_TYPE_BREAKPOINT;
	}
	return false;
}

static bool is_inside(const struct perf_event_attr *attr, const struct tly_attr_item *item)
{
	return item->offset + item->bytes <= tly_attr_size(attr);
}

/* Little-endian, as the bit positions above are. */
static uint64_t load(const struct perf_event_attr *attr, const struct tly_attr_item *item)
{
	uint64_t word = 0;

	memcpy(&word, (const uint8_t *)attr + item->offset, item->bytes);
	return word;
}

static uint64_t mask_of(const struct tly_attr_item *item)
{
	unsigned int width = item->width ? item->width : item->bytes * 8u;

	return (width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1) << item->shift;
}

uint64_t tly_attr_get(const struct perf_event_attr *attr, const struct tly_attr_item *item)
{
	if (!is_inside(attr, item) || !has_meaning(attr, item))
		return 0;
	return (load(attr, item) & mask_of(item)) >> item->shift;
}

bool tly_attr_set(struct perf_event_attr *attr, const struct tly_attr_item *item, uint64_t value)
{
	uint64_t word;

	if (!is_inside(attr, item))
		return false;
	word = load(attr, item) & ~mask_of(item);
	word |= value << item->shift & mask_of(item);
	memcpy((uint8_t *)attr + item->offset, &word, item->bytes);
	return true;
}

bool tly_attr_zero_after(const struct perf_event_attr *attr, uint32_t offset)
{
	const uint8_t *bytes = (const uint8_t *)attr;

	for (uint32_t i = offset; i < tly_attr_size(attr); i++)
		if (bytes[i])
			return false;
	return true;
}

bool tly_attr_is_kernels_own(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
		attr->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
		attr->config == PERF_COUNT_SW_CGROUP_SWITCHES);
}
