// SPDX-License-Identifier: MIT
#include "tool/data_source.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *name, *label;
} parts[] = {
	[DATA_SOURCE_OP] = {"op", "|OP "},	  [DATA_SOURCE_LEVEL] = {"level", "|LVL "},
	[DATA_SOURCE_SNOOP] = {"snoop", "|SNP "}, [DATA_SOURCE_TLB] = {"tlb", "|TLB "},
	[DATA_SOURCE_LOCK] = {"locked", "|LCK "}, [DATA_SOURCE_BLOCKED] = {"blocked", "|BLK  "},
};

/* What each bit stands for; NULL: not a thing of its own. */
static const char *const levels[] = {
	"N/A",
	NULL, /* hit */
	NULL, /* miss */
	"L1",
	"LFB/MAB",
	"L2",
	"L3",
	"Local RAM",
	"Remote RAM (1 hop)",
	"Remote RAM (2 hops)",
	"Remote Cache (1 hop)",
	"Remote Cache (2 hops)",
	"I/O",
	"Uncached",
};
static const char *const snoops[] = {"N/A", "None", "Hit", "Miss", "HitM"};
static const char *const more_snoops[] = {"Fwd", "Peer"};
static const char *const tlbs[] = {"N/A", NULL, NULL, "L1", "L2", "Walker", "Fault"};

/* By number; those up to L8 are caches. */
static const char *const level_numbers[16] = {
	[1] = "L1",	    [2] = "L2",	      [3] = "L3",   [4] = "L4",	   [5] = "L5",
	[6] = "L6",	    [7] = "L7",	      [8] = "L8",   [9] = "CXL",   [10] = "I/O",
	[11] = "Any cache", [12] = "LFB/MAB", [13] = "RAM", [14] = "PMEM",
};
static const char *const hops[8] = {
	[1] = "core, same node",
	[2] = "node, same socket",
	[3] = "socket, same board",
	[4] = "board",
};

static void put_word(struct buffer *buffer, const char *word, bool *any)
{
	if (*any)
		buffer_text(buffer, " or ");
	buffer_text(buffer, word);
	*any = true;
}

static void put_bits(struct buffer *buffer, uint64_t bits, const char *const *words, size_t nr,
		     bool *any)
{
	for (size_t i = 0; i < nr; i++)
		if (words[i] && bits >> i & 1)
			put_word(buffer, words[i], any);
}

static void put_op(uint64_t op, struct buffer *buffer)
{
	buffer_text(buffer, op & PERF_MEM_OP_NA	      ? "N/A"
			    : op & PERF_MEM_OP_LOAD   ? "LOAD"
			    : op & PERF_MEM_OP_STORE  ? "STORE"
			    : op & PERF_MEM_OP_PFETCH ? "PFETCH"
			    : op & PERF_MEM_OP_EXEC   ? "EXEC"
						      : "No");
}

/* Newer processors say the level by number, and how far away it was by hops. */
static void put_level(const union perf_mem_data_src *source, struct buffer *buffer)
{
	const char *number = level_numbers[source->mem_lvl_num];
	bool any = false;

	if (source->mem_remote)
		buffer_text(buffer, "Remote ");
	if (hops[source->mem_hops]) {
		buffer_text(buffer, hops[source->mem_hops]);
		buffer_char(buffer, ' ');
	}
	if (number)
		put_word(buffer, number, &any);
	else if (!source->mem_hops)
		put_bits(buffer, source->mem_lvl, levels, COUNT(levels), &any);
	if (!any && !source->mem_hops)
		buffer_text(buffer, "N/A");
	if (source->mem_lvl & PERF_MEM_LVL_HIT)
		buffer_text(buffer, " hit");
	if (source->mem_lvl & PERF_MEM_LVL_MISS)
		buffer_text(buffer, " miss");
}

static void put_snoop(const union perf_mem_data_src *source, struct buffer *buffer)
{
	bool any = false;

	put_bits(buffer, source->mem_snoop, snoops, COUNT(snoops), &any);
	put_bits(buffer, source->mem_snoopx, more_snoops, COUNT(more_snoops), &any);
	if (!any)
		buffer_text(buffer, "N/A");
}

static void put_tlb(uint64_t tlb, struct buffer *buffer)
{
	bool any = false;

	put_bits(buffer, tlb, tlbs, COUNT(tlbs), &any);
	if (!any)
		buffer_text(buffer, "N/A");
	if (tlb & PERF_MEM_TLB_HIT)
		buffer_text(buffer, " hit");
	if (tlb & PERF_MEM_TLB_MISS)
		buffer_text(buffer, " miss");
}

static void put_blocked(uint64_t blocked, struct buffer *buffer)
{
	if (blocked & PERF_MEM_BLK_NA || !blocked)
		buffer_text(buffer, "N/A");
	else
		buffer_text(buffer, blocked == PERF_MEM_BLK_DATA   ? "Data"
				    : blocked == PERF_MEM_BLK_ADDR ? "Addr"
								   : "Data Addr");
}

const char *data_source_name(enum data_source_part part)
{
	return parts[part].name;
}

void data_source_words(uint64_t value, enum data_source_part part, struct buffer *buffer)
{
	const union perf_mem_data_src source = {.val = value};

	switch (part) {
	case DATA_SOURCE_OP:
		put_op(source.mem_op, buffer);
		break;
	case DATA_SOURCE_LEVEL:
		put_level(&source, buffer);
		break;
	case DATA_SOURCE_SNOOP:
		put_snoop(&source, buffer);
		break;
	case DATA_SOURCE_TLB:
		put_tlb(source.mem_dtlb, buffer);
		break;
	case DATA_SOURCE_LOCK:
		buffer_text(buffer, source.mem_lock & PERF_MEM_LOCK_NA	     ? "N/A"
				    : source.mem_lock & PERF_MEM_LOCK_LOCKED ? "Yes"
									     : "No");
		break;
	case DATA_SOURCE_BLOCKED:
		put_blocked(source.mem_blk, buffer);
		break;
	case NR_DATA_SOURCE_PARTS:
		break;
	}
}

void data_source_text(uint64_t value, struct buffer *buffer)
{
	for (enum data_source_part part = 0; part < NR_DATA_SOURCE_PARTS; part++) {
		buffer_text(buffer, parts[part].label);
		data_source_words(value, part, buffer);
	}
}
