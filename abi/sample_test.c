// SPDX-License-Identifier: MIT
/*
 * The sample decoder against an encoder of its own: a sample is built from a model by a table in
 * the documented order, decoded, and compared field by field; then cut at every byte.
 */
#include "abi/record_build.h"

#define BRANCH_COUNTERS (1u << 19)

#define MAX_NR 24

struct model {
	struct tally_record_format format;
	bool no_branch_record; /* a software event: count 0 without the index */
	uint64_t identifier, ip, time, addr, id, stream_id, period;
	uint32_t pid, tid, cpu;
	uint64_t read_nr, enabled, running;
	struct tally_read_entry entry[MAX_NR];
	uint64_t nr_ips, ips[MAX_NR];
	uint32_t raw_size;
	uint8_t blob[MAX_NR * 8];
	uint64_t nr_branches, hw_idx, counters[MAX_NR];
	struct perf_branch_entry branches[MAX_NR];
	uint64_t user_abi, intr_abi, regs[64];
	uint64_t stack_size, dyn_size;
	uint64_t weight, data_src, transaction, phys_addr, cgroup, data_page, code_page, aux_size;
};

static struct tally_record_format make_format(uint64_t sample_type)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = sample_type,
		.read_format = next_random() & (PERF_FORMAT_MAX - 1),
		.branch_sample_type =
			next_random() & (PERF_SAMPLE_BRANCH_HW_INDEX | BRANCH_COUNTERS),
		.sample_regs_user = next_random(),
		.sample_regs_intr = next_random(),
		.sample_id_all = 1,
	};
	struct tally_record_format format;

	tally_record_format_init(&format, &attr);
	return format;
}

static void fill(struct model *m)
{
	uint64_t *word = (uint64_t *)m;

	for (size_t i = 0; i < sizeof(*m) / 8; i++)
		word[i] = next_random();
	m->no_branch_record = next_random() & 1;
	m->format = make_format(next_random() & (PERF_SAMPLE_MAX - 1));
	m->read_nr = m->format.read_format & PERF_FORMAT_GROUP ? next_random() % MAX_NR : 1;
	m->nr_ips = next_random() % MAX_NR;
	m->raw_size = 4 + 8 * (next_random() % (MAX_NR - 1)); /* with its size field: words */
	m->nr_branches = next_random() % 4 ? next_random() % MAX_NR : 0;
	m->user_abi = next_random() % 3;
	m->intr_abi = next_random() % 3;
	m->stack_size = 8 * (next_random() % MAX_NR);
	m->dyn_size = m->stack_size ? next_random() % (m->stack_size + 1) : 0;
	m->aux_size = 8 * (next_random() % MAX_NR);
}

static void encode_read(struct bytes *b, const struct model *m)
{
	uint64_t f = m->format.read_format;

	if (f & PERF_FORMAT_GROUP)
		put64(b, m->read_nr);
	else
		put64(b, m->entry[0].value);
	if (f & PERF_FORMAT_TOTAL_TIME_ENABLED)
		put64(b, m->enabled);
	if (f & PERF_FORMAT_TOTAL_TIME_RUNNING)
		put64(b, m->running);
	for (uint64_t i = 0; i < m->read_nr; i++) {
		if (f & PERF_FORMAT_GROUP)
			put64(b, m->entry[i].value);
		if (f & PERF_FORMAT_ID)
			put64(b, m->entry[i].id);
		if (f & PERF_FORMAT_LOST)
			put64(b, m->entry[i].lost);
	}
}

static void encode_branches(struct bytes *b, const struct model *m)
{
	put64(b, m->nr_branches);
	if (!m->nr_branches && m->no_branch_record)
		return;
	if (m->format.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		put64(b, m->hw_idx);
	put(b, m->branches, m->nr_branches * sizeof(m->branches[0]));
	if (m->format.branch_sample_type & BRANCH_COUNTERS)
		put(b, m->counters, m->nr_branches * 8);
}

static void encode_regs(struct bytes *b, const struct model *m, uint64_t abi, uint64_t mask)
{
	put64(b, abi);
	for (int reg = 0; abi && reg < 64; reg++)
		if (mask >> reg & 1)
			put64(b, m->regs[reg]);
}

static void encode_field(struct bytes *b, const struct model *m, uint64_t field)
{
	switch (field) {
	case PERF_SAMPLE_IDENTIFIER:
		return put64(b, m->identifier);
	case PERF_SAMPLE_IP:
		return put64(b, m->ip);
	case PERF_SAMPLE_TID:
		put32(b, m->pid);
		return put32(b, m->tid);
	case PERF_SAMPLE_TIME:
		return put64(b, m->time);
	case PERF_SAMPLE_ADDR:
		return put64(b, m->addr);
	case PERF_SAMPLE_ID:
		return put64(b, m->id);
	case PERF_SAMPLE_STREAM_ID:
		return put64(b, m->stream_id);
	case PERF_SAMPLE_CPU:
		put32(b, m->cpu);
		return put32(b, 0);
	case PERF_SAMPLE_PERIOD:
		return put64(b, m->period);
	case PERF_SAMPLE_READ:
		return encode_read(b, m);
	case PERF_SAMPLE_CALLCHAIN:
		put64(b, m->nr_ips);
		return put(b, m->ips, m->nr_ips * 8);
	case PERF_SAMPLE_RAW:
		put32(b, m->raw_size);
		return put(b, m->blob, m->raw_size);
	case PERF_SAMPLE_BRANCH_STACK:
		return encode_branches(b, m);
	case PERF_SAMPLE_REGS_USER:
		return encode_regs(b, m, m->user_abi, m->format.sample_regs_user);
	case PERF_SAMPLE_STACK_USER:
		put64(b, m->stack_size);
		put(b, m->blob, m->stack_size);
		if (m->stack_size)
			put64(b, m->dyn_size);
		return;
	case PERF_SAMPLE_WEIGHT_TYPE:
		return put64(b, m->weight);
	case PERF_SAMPLE_DATA_SRC:
		return put64(b, m->data_src);
	case PERF_SAMPLE_TRANSACTION:
		return put64(b, m->transaction);
	case PERF_SAMPLE_REGS_INTR:
		return encode_regs(b, m, m->intr_abi, m->format.sample_regs_intr);
	case PERF_SAMPLE_PHYS_ADDR:
		return put64(b, m->phys_addr);
	case PERF_SAMPLE_CGROUP:
		return put64(b, m->cgroup);
	case PERF_SAMPLE_DATA_PAGE_SIZE:
		return put64(b, m->data_page);
	case PERF_SAMPLE_CODE_PAGE_SIZE:
		return put64(b, m->code_page);
	case PERF_SAMPLE_AUX:
		put64(b, m->aux_size);
		return put(b, m->blob, m->aux_size);
	}
	fail_msg("no encoder for field %#llx", (unsigned long long)field);
}

static void encode_sample(struct bytes *b, const struct model *m)
{
	static const uint64_t order[] = {
		PERF_SAMPLE_IDENTIFIER,
		PERF_SAMPLE_IP,
		PERF_SAMPLE_TID,
		PERF_SAMPLE_TIME,
		PERF_SAMPLE_ADDR,
		PERF_SAMPLE_ID,
		PERF_SAMPLE_STREAM_ID,
		PERF_SAMPLE_CPU,
		PERF_SAMPLE_PERIOD,
		PERF_SAMPLE_READ,
		PERF_SAMPLE_CALLCHAIN,
		PERF_SAMPLE_RAW,
		PERF_SAMPLE_BRANCH_STACK,
		PERF_SAMPLE_REGS_USER,
		PERF_SAMPLE_STACK_USER,
		PERF_SAMPLE_WEIGHT_TYPE,
		PERF_SAMPLE_DATA_SRC,
		PERF_SAMPLE_TRANSACTION,
		PERF_SAMPLE_REGS_INTR,
		PERF_SAMPLE_PHYS_ADDR,
		PERF_SAMPLE_CGROUP,
		PERF_SAMPLE_DATA_PAGE_SIZE,
		PERF_SAMPLE_CODE_PAGE_SIZE,
		PERF_SAMPLE_AUX,
	};

	begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (m->format.sample_type & order[i])
			encode_field(b, m, order[i]);
}

static void check_regs(const struct model *m, const struct tally_regs *regs, uint64_t abi,
		       uint64_t mask)
{
	assert_int_equal(regs->abi, abi);
	for (unsigned int reg = 0; reg < 70; reg++) {
		bool sampled = abi && reg < 64 && mask >> reg & 1;
		uint64_t value;

		assert_int_equal(tally_regs_get(regs, reg, &value), sampled);
		if (sampled)
			assert_int_equal(value, m->regs[reg]);
	}
}

static void check_read(const struct model *m, const struct tally_read_values *read)
{
	uint64_t f = m->format.read_format;

	assert_int_equal(read->nr, m->read_nr);
	assert_int_equal(read->time_enabled, f & PERF_FORMAT_TOTAL_TIME_ENABLED ? m->enabled : 0);
	assert_int_equal(read->time_running, f & PERF_FORMAT_TOTAL_TIME_RUNNING ? m->running : 0);
	for (uint64_t i = 0; i < read->nr; i++) {
		struct tally_read_entry entry = tally_read_entry(&m->format, read, i);

		assert_int_equal(entry.value, m->entry[i].value);
		assert_int_equal(entry.id, f & PERF_FORMAT_ID ? m->entry[i].id : 0);
		assert_int_equal(entry.lost, f & PERF_FORMAT_LOST ? m->entry[i].lost : 0);
	}
	assert_int_equal(tally_read_entry(&m->format, read, read->nr).value, 0);
}

static void check_branches(const struct model *m, const struct tally_sample *s)
{
	bool has_index = m->format.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX &&
			 !(m->nr_branches == 0 && m->no_branch_record);

	assert_int_equal(s->nr_branches, m->nr_branches);
	assert_int_equal(s->branch_hw_idx, has_index ? m->hw_idx : 0);
	assert_memory_equal(s->branches, m->branches, m->nr_branches * sizeof(m->branches[0]));
	if (m->format.branch_sample_type & BRANCH_COUNTERS)
		assert_memory_equal(s->branch_counters, m->counters, m->nr_branches * 8);
	else
		assert_null(s->branch_counters);
}

static void check_sample(const struct model *m, const struct tally_record *record)
{
	const struct tally_sample_id *id = &record->id;
	const struct tally_sample *s = &record->sample;
	uint64_t has = m->format.sample_type;

#define EXPECT(field, got, want) assert_int_equal((got), has &(field) ? (want) : 0)
	assert_int_equal(s->has, has);
	assert_int_equal(id->has,
			 has & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER));
	if (has & PERF_SAMPLE_ID) /* ID stands behind IDENTIFIER and says the same */
		assert_int_equal(id->id, m->id);
	else
		EXPECT(PERF_SAMPLE_IDENTIFIER, id->id, m->identifier);
	EXPECT(PERF_SAMPLE_IP, s->ip, m->ip);
	EXPECT(PERF_SAMPLE_TID, id->pid, m->pid);
	EXPECT(PERF_SAMPLE_TID, id->tid, m->tid);
	EXPECT(PERF_SAMPLE_TIME, id->time, m->time);
	EXPECT(PERF_SAMPLE_ADDR, s->addr, m->addr);
	EXPECT(PERF_SAMPLE_STREAM_ID, id->stream_id, m->stream_id);
	EXPECT(PERF_SAMPLE_CPU, id->cpu, m->cpu);
	EXPECT(PERF_SAMPLE_PERIOD, s->period, m->period);
	if (has & PERF_SAMPLE_READ)
		check_read(m, &s->read);
	EXPECT(PERF_SAMPLE_CALLCHAIN, s->nr_ips, m->nr_ips);
	if (s->nr_ips)
		assert_memory_equal(s->ips, m->ips, s->nr_ips * 8);
	EXPECT(PERF_SAMPLE_RAW, s->raw_size, m->raw_size);
	if (s->raw_size)
		assert_memory_equal(s->raw, m->blob, s->raw_size);
	if (has & PERF_SAMPLE_BRANCH_STACK)
		check_branches(m, s);
	if (has & PERF_SAMPLE_REGS_USER)
		check_regs(m, &s->regs_user, m->user_abi, m->format.sample_regs_user);
	EXPECT(PERF_SAMPLE_STACK_USER, s->stack_size, m->stack_size);
	EXPECT(PERF_SAMPLE_STACK_USER, s->stack_dyn_size, m->dyn_size);
	if (s->stack_size)
		assert_memory_equal(s->stack, m->blob, s->stack_size);
	EXPECT(PERF_SAMPLE_WEIGHT_TYPE, s->weight, m->weight);
	EXPECT(PERF_SAMPLE_DATA_SRC, s->data_src, m->data_src);
	EXPECT(PERF_SAMPLE_TRANSACTION, s->transaction, m->transaction);
	if (has & PERF_SAMPLE_REGS_INTR)
		check_regs(m, &s->regs_intr, m->intr_abi, m->format.sample_regs_intr);
	EXPECT(PERF_SAMPLE_PHYS_ADDR, s->phys_addr, m->phys_addr);
	EXPECT(PERF_SAMPLE_CGROUP, s->cgroup, m->cgroup);
	EXPECT(PERF_SAMPLE_DATA_PAGE_SIZE, s->data_page_size, m->data_page);
	EXPECT(PERF_SAMPLE_CODE_PAGE_SIZE, s->code_page_size, m->code_page);
	EXPECT(PERF_SAMPLE_AUX, s->aux_size, m->aux_size);
	if (s->aux_size)
		assert_memory_equal(s->aux, m->blob, s->aux_size);
#undef EXPECT
}

/* The positions of id and time must agree with what the decoder finds there. */
static void check_positions(const struct model *m, const struct tally_record *record)
{
	const uint8_t *body = record->body;
	size_t in_sample, from_end;

	if (tally_record_id_position(&m->format, &in_sample, &from_end))
		assert_int_equal(tally_u64(body + in_sample),
				 m->format.sample_type & PERF_SAMPLE_IDENTIFIER ? m->identifier
										: m->id);
	else
		assert_false(m->format.sample_type & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER));
	if (tally_record_time_position(&m->format, &in_sample, &from_end))
		assert_int_equal(tally_u64(body + in_sample), m->time);
	else
		assert_false(m->format.sample_type & PERF_SAMPLE_TIME);
}

static void run_model(struct model *m, bool cut)
{
	static struct bytes b;
	struct tally_record record;

	encode_sample(&b, m);
	record = decode_ok(&m->format, &b);
	check_sample(m, &record);
	check_positions(m, &record);
	release(&record);
	if (cut)
		cut_everywhere(&m->format, &b);
}

static void test_each_sample_field(void **state)
{
	static struct model m;

	(void)state;
	for (uint64_t bit = 1; bit < PERF_SAMPLE_MAX; bit <<= 1) {
		for (int i = 0; i < 20; i++) {
			fill(&m);
			m.format = make_format(bit);
			m.read_nr = m.format.read_format & PERF_FORMAT_GROUP ? m.read_nr : 1;
			run_model(&m, true);
		}
	}
}

static void test_random_samples(void **state)
{
	static struct model m;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		fill(&m);
		run_model(&m, i % 50 == 0);
	}
}

/* A count that would overflow a multiplication, or that claims more than the record holds. */
static void test_counts_are_not_trusted(void **state)
{
	static const uint64_t fields[] = {
		PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_STACK_USER,
		PERF_SAMPLE_AUX,       PERF_SAMPLE_READ,
	};
	static const uint64_t counts[] = {
		2,
		UINT64_MAX,
		UINT64_MAX / 8,
		UINT64_MAX / 8 + 2,
		UINT64_C(1) << 61,
		UINT64_C(1) << 63,
		UINT64_MAX / 24 + 1,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct tally_record_format format = make_format(fields[i]);

		format.read_format = PERF_FORMAT_GROUP;
		format.branch_sample_type = 0;

		for (size_t j = 0; j < ARRAY_SIZE(counts); j++) {
			static struct bytes b;
			struct tally_record record;
			const char *why = NULL;
			uint8_t *buf;

			begin(&b, PERF_RECORD_SAMPLE, 0);
			put64(&b, counts[j]);
			if (counts[j] != 2 || fields[i] != PERF_SAMPLE_STACK_USER)
				put64(&b, 0);
			set_size(&b, b.size);
			buf = exact(&b, b.size);
			if (fields[i] == PERF_SAMPLE_AUX && counts[j] == 2)
				assert_int_equal(
					tally_record_decode(&format, buf, b.size, &record, &why),
					b.size);
			else
				assert_int_equal(
					tally_record_decode(&format, buf, b.size, &record, &why),
					-EBADMSG);
			free(buf);
		}
	}
}

static void test_stack_dyn_size_above_size(void **state)
{
	struct tally_record_format format = make_format(PERF_SAMPLE_STACK_USER);
	static struct bytes b;
	struct tally_record record;
	uint8_t *buf;

	(void)state;
	for (uint64_t dyn = 8; dyn <= 9; dyn++) {
		begin(&b, PERF_RECORD_SAMPLE, 0);
		put64(&b, 8);
		put64(&b, 0);
		put64(&b, dyn);
		set_size(&b, b.size);
		buf = exact(&b, b.size);
		assert_int_equal(tally_record_decode(&format, buf, b.size, &record, NULL),
				 dyn == 8 ? (long)b.size : -EBADMSG);
		free(buf);
	}
}

static void test_read_decode(void **state)
{
	static struct model m;
	static struct bytes b;

	(void)state;
	for (int i = 0; i < 500; i++) {
		struct tally_read_values read;
		uint8_t *buf;

		fill(&m);
		b.size = 0;
		encode_read(&b, &m);
		buf = exact(&b, b.size);
		assert_int_equal(tally_read_decode(&m.format, buf, b.size, &read), b.size);
		check_read(&m, &read);
		free(buf);
		for (size_t size = 0; size < b.size; size++) {
			buf = exact(&b, size);
			assert_int_equal(tally_read_decode(&m.format, buf, size, &read), -EINVAL);
			free(buf);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_sample_field),
		cmocka_unit_test(test_random_samples),
		cmocka_unit_test(test_counts_are_not_trusted),
		cmocka_unit_test(test_stack_dyn_size_above_size),
		cmocka_unit_test(test_read_decode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
