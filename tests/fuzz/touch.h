/* SPDX-License-Identifier: MIT */
/* Reads everything that a decoded record says is there. */
#ifndef TESTS_FUZZ_TOUCH_H
#define TESTS_FUZZ_TOUCH_H

#include <string.h>

#include <tally/record.h>

static inline void touch(const void *p, uint64_t size)
{
	uint8_t sum = 0;

	for (uint64_t i = 0; i < size; i++)
		sum ^= ((const uint8_t *)p)[i];
	__asm__ volatile("" : : "r"(sum)); /* as if it was used */
}

static inline void touch_string(const char *s)
{
	touch(s, strlen(s) + 1);
}

static inline void touch_read(const struct tally_record_format *format,
			      const struct tally_read_values *read)
{
	for (uint64_t i = 0; i < read->nr; i++) {
		struct tally_read_entry entry = tally_read_entry(format, read, i);

		touch(&entry, sizeof(entry));
	}
}

static inline void touch_regs(const struct tally_regs *regs)
{
	uint64_t value;

	touch(regs->values, regs->nr * sizeof(uint64_t));
	for (unsigned int i = 0; i < 65; i++)
		if (tally_regs_get(regs, i, &value))
			touch(&value, sizeof(value));
}

static inline void touch_sample(const struct tally_record_format *format,
				const struct tally_sample *s)
{
	if (s->has & PERF_SAMPLE_READ)
		touch_read(format, &s->read);
	touch(s->ips, s->nr_ips * sizeof(uint64_t));
	touch(s->raw, s->raw_size);
	touch(s->branches, s->nr_branches * sizeof(*s->branches));
	if (s->branch_counters)
		touch(s->branch_counters, s->nr_branches * sizeof(uint64_t));
	touch_regs(&s->regs_user);
	touch(s->stack, s->stack_size);
	touch_regs(&s->regs_intr);
	touch(s->aux, s->aux_size);
}

static inline void touch_record(const struct tally_record_format *format,
				const struct tally_record *r)
{
	touch(r->raw, r->size);
	touch(r->body, r->body_size);
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		touch_sample(format, &r->sample);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		touch_string(r->mmap.filename);
		touch(r->mmap.build_id, r->mmap.build_id_size);
		break;
	case PERF_RECORD_COMM:
		touch_string(r->comm.comm);
		break;
	case PERF_RECORD_READ:
		touch_read(format, &r->read.values);
		break;
	case PERF_RECORD_NAMESPACES:
		touch(r->namespaces.entries, r->namespaces.nr * sizeof(struct perf_ns_link_info));
		break;
	case PERF_RECORD_KSYMBOL:
		touch_string(r->ksymbol.name);
		break;
	case PERF_RECORD_CGROUP:
		touch_string(r->cgroup.path);
		break;
	case PERF_RECORD_TEXT_POKE:
		touch(r->text_poke.bytes, (uint64_t)r->text_poke.old_len + r->text_poke.new_len);
		break;
	default:
		break;
	}
}

#endif
