// SPDX-License-Identifier: MIT
/* Samples, read back by the library's decoder, which was tested on the kernel's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <tally/record.h>

#include "core/arena.h"
#include "core/branches.h"
#include "core/fake_host.h"
#include "core/fake_ring.h"

#define REG(name) (1ULL << PERF_REG_X86_##name)

static int begin(void **state)
{
	(void)state;
	fake_begin();
	for (unsigned int i = 0; i < PERF_REG_X86_64_MAX; i++)
		fake.regs[i] = 0x1000 + i;
	return 0;
}

static struct perf_event_attr sampling(uint64_t sample_type)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.sample_type = sample_type,
		.sample_period = 10,
	};
}

/* The sample that an event with @attr makes. */
static const struct tally_record *shoot_at(const struct perf_event_attr *attr, enum core_kind kind)
{
	uint32_t event = fake_event(attr, kind);
	struct fake_ring ring = fake_map(event, 64, true);
	const struct tally_record *record;

	fake_run(kind, 10);
	record = fake_next(&ring, attr);
	assert_non_null(record);
	assert_int_equal(record->type, PERF_RECORD_SAMPLE);
	core_event(event)->state = CORE_OFF;
	return record;
}

static const struct tally_record *shoot(const struct perf_event_attr *attr)
{
	return shoot_at(attr, CORE_INSTRUCTIONS);
}

/* ---- who, when, where ---- */

static void leading_fields(void **state)
{
	struct perf_event_attr attr =
		sampling(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			 PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
			 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD);
	const struct tally_record *record;

	(void)state;
	fake.cpu = 3;
	fake.has_cause = true;
	fake.cause = (struct core_cause){.ip = 0x4444, .address = 0x7777};
	attr.precise_ip = 1;
	record = shoot(&attr);
	assert_int_equal(record->misc, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP);
	assert_int_equal(record->id.pid, 1000);
	assert_int_equal(record->id.tid, 1001);
	assert_int_equal(record->id.time, 1000000);
	assert_int_equal(record->id.cpu, 3);
	assert_int_equal(record->id.id, core_event(1)->id);
	assert_int_equal(record->id.stream_id, core_event(1)->id);
	assert_int_equal(record->sample.ip, 0x4444);
	assert_int_equal(record->sample.addr, 0x7777);
	assert_int_equal(record->sample.period, 10);
}

static void exactness(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_IP);
	const struct tally_record *record;

	(void)state;
	attr.precise_ip = 2;
	record = shoot_at(&attr, CORE_CYCLES);
	assert_int_equal(record->misc, PERF_RECORD_MISC_USER);
	assert_int_equal(record->sample.ip, fake.regs[PERF_REG_X86_IP]);
	fake.has_cause = true;
	fake.cause.ip = 0x4444;
	attr.precise_ip = 0;
	record = shoot_at(&attr, CORE_CYCLES);
	assert_int_equal(record->misc, PERF_RECORD_MISC_USER);
	assert_int_equal(record->sample.ip, 0x4444);
	attr.precise_ip = 2;
	record = shoot_at(&attr, CORE_CYCLES);
	assert_int_equal(record->misc, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP);
	assert_int_equal(record->sample.ip, 0x4444);
	/* A clock is nobody's doing. */
	record = shoot_at(&attr, CORE_TASK_CLOCK);
	assert_int_equal(record->misc, PERF_RECORD_MISC_USER);
	assert_int_equal(record->sample.ip, fake.regs[PERF_REG_X86_IP]);
}

static void other_clocks(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_TIME);

	(void)state;
	fake.clock = 5000;
	attr.use_clockid = 1;
	attr.clockid = 7;
	assert_int_equal(shoot(&attr)->id.time, 5007);
}

/* Each field alone: that it is there, and that it fills the sample, fake_next() looks after. */
static void each_field_alone(void **state)
{
	(void)state;
	fake.frames = 3;
	fake.branches = 2;
	for (uint64_t bit = 1; bit < PERF_SAMPLE_MAX; bit <<= 1) {
		struct perf_event_attr attr = sampling(bit);

		attr.sample_regs_user = attr.sample_regs_intr = REG(AX) | REG(IP) | REG(R15);
		attr.sample_stack_user = 32;
		assert_int_equal(shoot(&attr)->sample.has, bit);
	}
}

/* Any of them together. */
static void fields_together(void **state)
{
	uint64_t random = 0x9e3779b97f4a7c15;

	(void)state;
	fake.frames = 3;
	fake.branches = 2;
	for (int i = 0; i < 2000; i++) {
		struct perf_event_attr attr;

		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		attr = sampling(random >> 32 & (PERF_SAMPLE_MAX - 1));
		if (!(attr.sample_type & (PERF_SAMPLE_MAX - 1)))
			continue;
		if (attr.sample_type & PERF_SAMPLE_WEIGHT_STRUCT)
			attr.sample_type &= ~(uint64_t)PERF_SAMPLE_WEIGHT;
		attr.read_format = random >> 20 & (PERF_FORMAT_MAX - 1);
		attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
		if (random >> 60 & 1)
			attr.branch_sample_type |= PERF_SAMPLE_BRANCH_HW_INDEX;
		attr.sample_regs_user = random & (REG(R15) | REG(AX) | REG(SP) | REG(IP));
		attr.sample_regs_intr = REG(AX) | REG(IP);
		attr.sample_stack_user = (random >> 50 & 7) * 8;
		assert_int_equal(shoot(&attr)->sample.has, attr.sample_type);
		fake_end();
		begin(NULL);
		fake.frames = 3;
		fake.branches = 2;
	}
}

/* ---- context ---- */

static void chain(const struct perf_event_attr *attr, const uint64_t *wanted, size_t nr)
{
	const struct tally_sample *sample = &shoot(attr)->sample;

	assert_int_equal(sample->nr_ips, nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(tally_u64(sample->ips + i), wanted[i]);
}

static void call_chains(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_CALLCHAIN);
	const uint64_t wanted[] = {PERF_CONTEXT_USER, 0x1000 + PERF_REG_X86_IP, 1, 2, 3};

	(void)state;
	fake.frames = 600;
	for (unsigned int i = 0; i < 600; i++)
		fake.chain[i] = i + 1;
	attr.sample_max_stack = 4;
	chain(&attr, wanted, 5);
	attr.sample_max_stack = 1;
	chain(&attr, wanted, 2);
	attr.sample_max_stack = 0;
	assert_int_equal(shoot(&attr)->sample.nr_ips, 1 + 127);
	core_tree()->settings.max_stack = 100000;
	assert_int_equal(shoot(&attr)->sample.nr_ips, 1 + 512);
	fake.frames = 0;
	chain(&attr, wanted, 2);
	attr.exclude_callchain_user = 1;
	chain(&attr, wanted, 0);
}

/* Where the function of the cause has been left meanwhile, the caller stands in the next frame;
 * where it may stand anywhere, the chain is of there. */
static void call_chain_of_a_cause(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_CALLCHAIN);
	const uint64_t inside[] = {PERF_CONTEXT_USER, 0x4444, 1, 2};
	const uint64_t behind[] = {PERF_CONTEXT_USER, 0x4444, 0x8888, 1};
	const uint64_t elsewhere[] = {PERF_CONTEXT_USER, 0x8888, 1, 2};

	(void)state;
	fake.frames = 2;
	fake.chain[0] = 1;
	fake.chain[1] = 2;
	fake.has_cause = true;
	fake.cause.ip = 0x4444;
	fake.before[PERF_REG_X86_IP] = 0x8888;
	attr.sample_max_stack = 3;
	chain(&attr, inside, 4);
	fake.cause.since = CORE_SINCE_RETURNED;
	chain(&attr, behind, 4);
	fake.cause.since = CORE_SINCE_MORE;
	chain(&attr, elsewhere, 4);
	attr.sample_max_stack = 1;
	chain(&attr, elsewhere, 2);
	fake.cause.since = CORE_SINCE_RETURNED;
	chain(&attr, behind, 2);
}

static void raw_data(void **state)
{
	const struct perf_event_attr attr = sampling(PERF_SAMPLE_RAW);
	const struct tally_sample *sample = &shoot(&attr)->sample;

	(void)state;
	assert_int_equal(sample->raw_size, 4);
	assert_memory_equal(sample->raw, "\0\0\0\0", 4);
}

static uint64_t register_of(const struct tally_regs *regs, unsigned int number)
{
	uint64_t value = 0;

	assert_true(tally_regs_get(regs, number, &value));
	return value;
}

static void registers(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR);
	const struct tally_sample *sample;

	(void)state;
	attr.sample_regs_user = REG(BX) | REG(R9);
	attr.sample_regs_intr = REG(IP);
	sample = &shoot(&attr)->sample;
	assert_int_equal(sample->regs_user.abi, PERF_SAMPLE_REGS_ABI_64);
	assert_int_equal(sample->regs_user.nr, 2);
	assert_int_equal(register_of(&sample->regs_user, PERF_REG_X86_R9),
			 0x1000 + PERF_REG_X86_R9);
	assert_int_equal(register_of(&sample->regs_intr, PERF_REG_X86_IP),
			 0x1000 + PERF_REG_X86_IP);
}

/* What user mode was like is from before the instruction, and the stack with it; what interrupted
 * it is from behind, with the instruction's own address. */
static void registers_of_the_cause(void **state)
{
	struct perf_event_attr attr =
		sampling(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_STACK_USER);
	unsigned char stack[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct tally_sample *sample;

	(void)state;
	attr.sample_regs_user = attr.sample_regs_intr = REG(AX) | REG(IP);
	attr.sample_stack_user = sizeof(stack);
	fake.has_cause = true;
	fake.cause.ip = fake.before[PERF_REG_X86_IP] = 0x4444;
	fake.before[PERF_REG_X86_AX] = 0x5555;
	fake.before[PERF_REG_X86_SP] = fake.memory_at = 0x6666;
	fake.memory = stack;
	fake.memory_size = sizeof(stack);
	sample = &shoot(&attr)->sample;
	assert_int_equal(register_of(&sample->regs_user, PERF_REG_X86_AX), 0x5555);
	assert_int_equal(register_of(&sample->regs_user, PERF_REG_X86_IP), 0x4444);
	assert_int_equal(register_of(&sample->regs_intr, PERF_REG_X86_AX),
			 fake.regs[PERF_REG_X86_AX]);
	assert_int_equal(register_of(&sample->regs_intr, PERF_REG_X86_IP), 0x4444);
	assert_int_equal(sample->stack_dyn_size, sizeof(stack));
	assert_memory_equal(sample->stack, stack, sizeof(stack));
}

/* ---- the stack ---- */

static unsigned char memory[70000];

static void stack_is(uint32_t asked, size_t there, size_t size, size_t real)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_STACK_USER);
	const struct tally_record *record;

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (unsigned char)(i * 7 + 1);
	fake.memory = memory;
	fake.memory_at = fake.regs[PERF_REG_X86_SP];
	fake.memory_size = there;
	attr.sample_stack_user = asked;
	record = shoot(&attr);
	assert_int_equal(record->sample.stack_size, size);
	assert_int_equal(record->sample.stack_dyn_size, real);
	if (!size)
		return;
	assert_memory_equal(record->sample.stack, memory, real);
	for (size_t i = real; i < size; i++)
		assert_int_equal(((const unsigned char *)record->sample.stack)[i], 0);
}

static void stacks(void **state)
{
	(void)state;
	stack_is(0, 1000, 0, 0);
	stack_is(64, 1000, 64, 64);
	stack_is(64, 64, 64, 64);
	stack_is(64, 63, 64, 63);
	stack_is(64, 0, 64, 0);
	stack_is(65528, sizeof(memory), 65528 - 24, 65528 - 24);
}

/* As much as there is room for behind the other fields, which all come. */
static void stack_of_a_full_record(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CALLCHAIN |
					       PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_CGROUP);
	const struct tally_record *record;

	(void)state;
	fake.frames = 20;
	attr.sample_stack_user = 65528;
	attr.sample_regs_intr = REG(AX);
	record = shoot(&attr);
	assert_int_equal(record->size, 65528);
	assert_int_equal(record->sample.stack_size,
			 65528 - 8 - 8 * 23 - 16 /* abi and ax */ - 8 /* cgroup */ - 16);
	assert_int_equal(record->sample.cgroup, 77);
}

/* A copy that crosses the end of the ring, of memory that ends in the second part. */
static void stack_around_the_end(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_STACK_USER);
	const struct tally_record *record;
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (unsigned char)(i * 7 + 1);
	fake.memory = memory;
	fake.memory_at = fake.regs[PERF_REG_X86_SP];
	fake.memory_size = 2990;
	attr.sample_stack_user = 3000;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	ring = fake_map(event, 1, true);
	for (int i = 0; i < 20; i++) {
		fake_run(CORE_INSTRUCTIONS, 10);
		record = fake_next(&ring, &attr);
		assert_int_equal(record->sample.stack_dyn_size, 2990);
		assert_memory_equal(record->sample.stack, memory, 2990);
	}
}

/* ---- memory ---- */

static void accesses(void **state)
{
	const uint64_t type = PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT_STRUCT |
			      PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR |
			      PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
	const struct perf_event_attr attr = sampling(type);
	const struct tally_sample *sample;

	(void)state;
	fake.has_cause = true;
	fake.cause = (struct core_cause){
		.ip = 0x4444, .address = 0x5000, .source = 0x1234, .latency = 42};
	sample = &shoot(&attr)->sample;
	assert_int_equal(sample->addr, 0x5000);
	assert_int_equal(sample->data_src, 0x1234);
	assert_int_equal(sample->weight, 42);
	assert_int_equal(sample->transaction, 0);
	assert_int_equal(sample->phys_addr, 0x5001);
	assert_int_equal(sample->data_page_size, 4096);
	assert_int_equal(sample->code_page_size, 4096);
	fake.has_cause = false;
	sample = &shoot(&attr)->sample;
	assert_int_equal(sample->addr, 0);
	assert_int_equal(sample->data_src & 31, PERF_MEM_OP_NA);
	assert_int_equal(sample->data_src >> 5 & 0x3fff, PERF_MEM_LVL_NA);
	assert_int_equal(sample->data_src >> 37, 0);
	assert_int_equal(sample->weight, 0);
	assert_int_equal(sample->phys_addr, 0);
	assert_int_equal(sample->data_page_size, 0);
	/* A software event knows of no access, whatever the code did last. */
	fake.has_cause = true;
	assert_int_equal(shoot_at(&attr, CORE_TASK_CLOCK)->sample.addr, 0);
}

/* ---- branches ---- */

/* An event of single branches tells where they lead, and no other tells that. */
static void single_branches(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_IP | PERF_SAMPLE_ADDR);
	const struct tally_sample *sample;

	(void)state;
	fake.has_cause = true;
	fake.cause = (struct core_cause){.ip = 0x4444};
	assert_int_equal(shoot_at(&attr, CORE_BRANCHES)->sample.addr, 0);
	attr.sample_period = 1;
	assert_int_equal(shoot_at(&attr, CORE_INSTRUCTIONS)->sample.addr, 0);
	sample = &shoot_at(&attr, CORE_BRANCHES)->sample;
	assert_int_equal(sample->ip, 0x4444);
	assert_int_equal(sample->addr, fake.regs[PERF_REG_X86_IP]);
	/* Where it stands by now is somewhere else. */
	fake.cause.since = CORE_SINCE_MORE;
	assert_int_equal(shoot_at(&attr, CORE_BRANCHES)->sample.addr, 0);
	fake.has_cause = false;
	assert_int_equal(shoot_at(&attr, CORE_BRANCHES)->sample.addr, 0);
}

static void branches_are(uint64_t asked, const char *wanted)
{
	static const struct {
		unsigned int type;
		char name;
	} kinds[] = {
		{PERF_BR_COND, 'c'},	{PERF_BR_UNCOND, 'j'}, {PERF_BR_IND, 'i'},
		{PERF_BR_CALL, 'C'},	{PERF_BR_RET, 'r'},    {PERF_BR_IND_CALL, 'I'},
		{PERF_BR_SYSCALL, 's'}, {PERF_BR_SYSRET, 'S'},
	};
	struct perf_event_attr attr = sampling(PERF_SAMPLE_BRANCH_STACK);
	struct perf_branch_entry entry;
	const struct tally_sample *sample;
	char got[16] = "";

	fake.branches = sizeof(kinds) / sizeof(kinds[0]);
	for (size_t i = 0; i < fake.branches; i++)
		fake.branch[i] = (struct perf_branch_entry){.from = (uint64_t)kinds[i].name,
							    .to = 2,
							    .predicted = 1,
							    .cycles = 9,
							    .type = kinds[i].type};
	attr.branch_sample_type = asked;
	sample = &shoot(&attr)->sample;
	for (uint64_t i = 0; i < sample->nr_branches; i++) {
		memcpy(&entry, sample->branches + i, sizeof(entry));
		got[i] = (char)entry.from;
		assert_int_equal(entry.predicted, !(asked & PERF_SAMPLE_BRANCH_NO_FLAGS));
		assert_int_equal(entry.cycles, asked & PERF_SAMPLE_BRANCH_NO_CYCLES ? 0 : 9);
		if (!(asked & PERF_SAMPLE_BRANCH_TYPE_SAVE))
			assert_int_equal(entry.type, 0);
		else
			assert_int_not_equal(entry.type, 0);
	}
	assert_string_equal(got, wanted);
}

static void branch_filters(void **state)
{
	const uint64_t user = PERF_SAMPLE_BRANCH_USER;

	(void)state;
	branches_are(user | PERF_SAMPLE_BRANCH_ANY, "cjiCrIsS");
	branches_are(PERF_SAMPLE_BRANCH_ANY, "cjiCrIsS");
	branches_are(user | PERF_SAMPLE_BRANCH_ANY_CALL, "CIs");
	branches_are(user | PERF_SAMPLE_BRANCH_ANY_RETURN, "rS");
	branches_are(user | PERF_SAMPLE_BRANCH_IND_CALL, "I");
	branches_are(user | PERF_SAMPLE_BRANCH_CALL, "C");
	branches_are(user | PERF_SAMPLE_BRANCH_COND, "c");
	branches_are(user | PERF_SAMPLE_BRANCH_IND_JUMP, "i");
	branches_are(user | PERF_SAMPLE_BRANCH_COND | PERF_SAMPLE_BRANCH_ANY_RETURN, "crS");
	branches_are(user | PERF_SAMPLE_BRANCH_ABORT_TX, "");
	branches_are(PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_ANY, "");
	branches_are(user | PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_NO_FLAGS |
			     PERF_SAMPLE_BRANCH_NO_CYCLES,
		     "cjiCrIsS");
	branches_are(user | PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_TYPE_SAVE, "cjiCrIsS");
}

static void as_many_branches_as_processors_have(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_BRANCH_STACK);

	(void)state;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX;
	fake.branches = 64;
	assert_int_equal(shoot(&attr)->sample.nr_branches, CORE_BRANCH_STACK);
	fake.branches = 0;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	assert_int_equal(shoot(&attr)->sample.nr_branches, 0);
}

/* ---- read ---- */

static void counts(void **state)
{
	struct perf_event_attr attr = sampling(PERF_SAMPLE_READ), loads = sampling(0);
	struct tally_record_format format;
	struct core_event *leader, *member;
	struct tally_read_entry entry;
	const struct tally_record *record;
	struct fake_ring ring;

	(void)state;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST |
			   PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	loads.sample_period = 0;
	member = core_event(fake_event(&loads, CORE_LOADS));
	leader = core_event(fake_event(&attr, CORE_INSTRUCTIONS));
	leader->next_member = core_index(member);
	leader->members = 1;
	member->leader = core_index(leader);
	member->ended.value = 1000; /* of a copy whose task has ended */
	ring = fake_map(core_index(leader), 1, true);
	fake_run(CORE_LOADS, 5);
	fake_run(CORE_INSTRUCTIONS, 25);
	tally_record_format_init(&format, &attr);
	for (unsigned int i = 1; i <= 2; i++) {
		record = fake_next(&ring, &attr);
		assert_int_equal(record->sample.read.nr, 2);
		entry = tally_read_entry(&format, &record->sample.read, 0);
		assert_int_equal(entry.value, 10 * i);
		assert_int_equal(entry.id, leader->id);
		entry = tally_read_entry(&format, &record->sample.read, 1);
		assert_int_equal(entry.value, 1005);
		assert_int_equal(entry.id, member->id);
		assert_int_equal(entry.lost, 0);
	}
	/* Of inherited events each task tells what is its own. */
	member->attr.inherit = leader->attr.inherit = 1;
	fake_run(CORE_INSTRUCTIONS, 5);
	record = fake_next(&ring, &attr);
	assert_int_equal(tally_read_entry(&format, &record->sample.read, 1).value, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, fake_teardown)
		CASE(leading_fields),
		CASE(exactness),
		CASE(other_clocks),
		CASE(each_field_alone),
		CASE(fields_together),
		CASE(call_chains),
		CASE(call_chain_of_a_cause),
		CASE(raw_data),
		CASE(registers),
		CASE(registers_of_the_cause),
		CASE(stacks),
		CASE(stack_of_a_full_record),
		CASE(stack_around_the_end),
		CASE(accesses),
		CASE(single_branches),
		CASE(branch_filters),
		CASE(as_many_branches_as_processors_have),
		CASE(counts),
	};

	return cmocka_run_group_tests_name("core/sample", tests, NULL, NULL);
}
