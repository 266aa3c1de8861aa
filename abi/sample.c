// SPDX-License-Identifier: MIT
/*
 * The kernel writes the fields of a sample in the order of perf_output_sample(), which is not the
 * order of the PERF_SAMPLE_ bits:
 *
 *	IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD	a word each
 *	READ CALLCHAIN RAW BRANCH_STACK REGS_USER STACK_USER	counted
 *	WEIGHT|WEIGHT_STRUCT DATA_SRC TRANSACTION		a word each
 *	REGS_INTR						counted
 *	PHYS_ADDR CGROUP DATA_PAGE_SIZE CODE_PAGE_SIZE		a word each
 *	AUX							counted
 */
#include <tally/record.h>

#include <string.h>

#include "abi/cursor.h"

/* In newer headers only. */
#define BRANCH_COUNTERS (UINT64_C(1) << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, 6.8 */

bool tally_regs_get(const struct tally_regs *regs, unsigned int reg, uint64_t *value)
{
	if (reg >= 64 || !(regs->mask >> reg & 1))
		return false;
	*value = tally_u64(regs->values + bits(regs->mask & ((UINT64_C(1) << reg) - 1)));
	return true;
}

static bool take_leading(uint64_t type, struct cursor *c, struct tally_sample_id *id,
			 struct tally_sample *sample)
{
	uint32_t reserved;

	id->has = type & ID_FIELDS;
	return (!(type & PERF_SAMPLE_IDENTIFIER) || take_u64(c, &id->id)) &&
	       (!(type & PERF_SAMPLE_IP) || take_u64(c, &sample->ip)) &&
	       (!(type & PERF_SAMPLE_TID) || take_two_u32(c, &id->pid, &id->tid)) &&
	       (!(type & PERF_SAMPLE_TIME) || take_u64(c, &id->time)) &&
	       (!(type & PERF_SAMPLE_ADDR) || take_u64(c, &sample->addr)) &&
	       (!(type & PERF_SAMPLE_ID) || take_u64(c, &id->id)) &&
	       (!(type & PERF_SAMPLE_STREAM_ID) || take_u64(c, &id->stream_id)) &&
	       (!(type & PERF_SAMPLE_CPU) || take_two_u32(c, &id->cpu, &reserved)) &&
	       (!(type & PERF_SAMPLE_PERIOD) || take_u64(c, &sample->period));
}

static bool take_callchain(struct cursor *c, struct tally_sample *sample)
{
	const void *ips;

	if (!take_u64(c, &sample->nr_ips) || !take_array(c, sample->nr_ips, WORD, &ips))
		return false;
	sample->ips = ips;
	return true;
}

static bool take_raw(struct cursor *c, struct tally_sample *sample)
{
	const void *size;

	if (!take_bytes(c, sizeof(sample->raw_size), &size))
		return false;
	memcpy(&sample->raw_size, size, sizeof(sample->raw_size));
	return take_bytes(c, sample->raw_size, &sample->raw);
}

static bool take_branches(const struct tally_record_format *format, bool has_index,
			  struct cursor *c, struct tally_sample *sample)
{
	const void *entries, *counters = NULL;

	if (!take_u64(c, &sample->nr_branches))
		return false;
	if (has_index && !take_u64(c, &sample->branch_hw_idx))
		return false;
	if (!take_array(c, sample->nr_branches, sizeof(*sample->branches), &entries))
		return false;
	if (format->branch_sample_type & BRANCH_COUNTERS &&
	    !take_array(c, sample->nr_branches, WORD, &counters))
		return false;
	sample->branches = entries;
	sample->branch_counters = counters;
	return true;
}

static bool take_regs(struct cursor *c, uint64_t mask, struct tally_regs *regs)
{
	const void *values;

	if (!take_u64(c, &regs->abi))
		return false;
	if (regs->abi == PERF_SAMPLE_REGS_ABI_NONE)
		return true;
	regs->mask = mask;
	regs->nr = bits(mask);
	if (!take_array(c, regs->nr, WORD, &values))
		return false;
	regs->values = values;
	return true;
}

static bool take_stack(struct cursor *c, struct tally_sample *sample)
{
	if (!take_u64(c, &sample->stack_size))
		return false;
	if (!sample->stack_size)
		return true;
	return take_bytes(c, sample->stack_size, &sample->stack) &&
	       take_u64(c, &sample->stack_dyn_size) && sample->stack_dyn_size <= sample->stack_size;
}

/* Everything behind the branch stack; returns what does not fit, or NULL. */
static const char *take_rest(const struct tally_record_format *format, struct cursor *c,
			     struct tally_sample *sample)
{
	uint64_t type = format->sample_type;

	if (type & PERF_SAMPLE_REGS_USER &&
	    !take_regs(c, format->sample_regs_user, &sample->regs_user))
		return "its user registers run past its end";
	if (type & PERF_SAMPLE_STACK_USER && !take_stack(c, sample))
		return "its user stack runs past its end";
	if (type & PERF_SAMPLE_WEIGHT_TYPE && !take_u64(c, &sample->weight))
		return "it ends before its weight";
	if (type & PERF_SAMPLE_DATA_SRC && !take_u64(c, &sample->data_src))
		return "it ends before its data source";
	if (type & PERF_SAMPLE_TRANSACTION && !take_u64(c, &sample->transaction))
		return "it ends before its transaction";
	if (type & PERF_SAMPLE_REGS_INTR &&
	    !take_regs(c, format->sample_regs_intr, &sample->regs_intr))
		return "its interrupt registers run past its end";
	if (type & PERF_SAMPLE_PHYS_ADDR && !take_u64(c, &sample->phys_addr))
		return "it ends before its physical address";
	if (type & PERF_SAMPLE_CGROUP && !take_u64(c, &sample->cgroup))
		return "it ends before its cgroup";
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE && !take_u64(c, &sample->data_page_size))
		return "it ends before its data page size";
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE && !take_u64(c, &sample->code_page_size))
		return "it ends before its code page size";
	if (type & PERF_SAMPLE_AUX &&
	    (!take_u64(c, &sample->aux_size) || !take_bytes(c, sample->aux_size, &sample->aux)))
		return "its AUX data runs past its end";
	return NULL;
}

/*
 * With PERF_SAMPLE_BRANCH_HW_INDEX the index follows the count. But an event that has no branch
 * stack to give writes a count of 0 and nothing else, while an empty stack has count 0 and the
 * index. Only the size of the whole sample tells the two apart.
 */
static const char *take_branches_and_rest(const struct tally_record_format *format,
					  struct cursor *c, struct tally_sample *sample)
{
	static const char past_end[] = "its branch stack runs past its end";
	bool has_index = format->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX;

	if (has_index && c->left >= WORD && tally_u64(c->p) == 0) {
		struct tally_sample whole = *sample;
		struct cursor at = *c;

		if (take_branches(format, true, &at, &whole) && !take_rest(format, &at, &whole) &&
		    at.left == 0) {
			*sample = whole;
			*c = at;
			return NULL;
		}
		has_index = false;
	}
	if (!take_branches(format, has_index, c, sample))
		return past_end;
	return take_rest(format, c, sample);
}

/*
 * In pieces that compilers clear with a few plain stores: one memset() of it all becomes a "rep
 * stos", which takes as long as decoding the sample.
 */
static void clear(struct tally_sample *sample)
{
	const size_t piece = 8 * WORD;
	uint8_t *p = (uint8_t *)sample;
	size_t left = sizeof(*sample);

	for (; left > piece; p += piece, left -= piece)
		memset(p, 0, piece);
	memset(p, 0, left);
}

const char *tly_decode_sample(const struct tally_record_format *format, struct cursor *c,
			      struct tally_record *record)
{
	struct tally_sample *sample = &record->sample;
	uint64_t type = format->sample_type;

	clear(sample);
	sample->has = type;
	if (!take_leading(type, c, &record->id, sample))
		return "it is shorter than the fields of its event";
	if (type & PERF_SAMPLE_READ && !tly_take_read(format, c, &sample->read))
		return "its counter values run past its end";
	if (type & PERF_SAMPLE_CALLCHAIN && !take_callchain(c, sample))
		return "its call chain runs past its end";
	if (type & PERF_SAMPLE_RAW && !take_raw(c, sample))
		return "its raw data runs past its end";
	if (type & PERF_SAMPLE_BRANCH_STACK)
		return take_branches_and_rest(format, c, sample);
	return take_rest(format, c, sample);
}
