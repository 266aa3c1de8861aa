// SPDX-License-Identifier: MIT
/*
 * Branch stacks: what the filter accepts, and, where there is hardware for them, what it lets
 * through. There each recorded branch is held against the instruction at its source address.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

/* ---- what kind of branch an instruction is ---- */

enum {
	CONDITIONAL = 1,
	JUMP = 2,
	INDIRECT_JUMP = 4,
	CALL = 8,
	INDIRECT_CALL = 16,
	RETURN = 32,
	FAR = 64, /* system calls and faults among them */
};

static unsigned int kind_of(uint64_t address)
{
	const unsigned char *at = (const unsigned char *)(uintptr_t)address;

	while (*at == 0xf2 || *at == 0xf3 || *at == 0x2e || *at == 0x3e || *at == 0x66 ||
	       (*at & 0xf0) == 0x40)
		at++;
	if ((*at & 0xf0) == 0x70 || (*at & 0xfc) == 0xe0)
		return CONDITIONAL;
	if (at[0] == 0x0f && (at[1] & 0xf0) == 0x80)
		return CONDITIONAL;
	if (*at == 0xeb || *at == 0xe9)
		return JUMP;
	if (*at == 0xe8)
		return CALL;
	if (*at == 0xc3 || *at == 0xc2)
		return RETURN;
	if (*at == 0xff && (at[1] >> 3 & 7) == 2)
		return INDIRECT_CALL;
	if (*at == 0xff && (at[1] >> 3 & 7) == 4)
		return INDIRECT_JUMP;
	return FAR;
}

/* ---- software events ---- */

static const struct kind {
	struct abi_row about;
	uint64_t bit, number;
} kinds[] = {
	{{"branch.any", "bit 3"}, PERF_SAMPLE_BRANCH_ANY, 3},
	{{"branch.any_call", "bit 4"}, PERF_SAMPLE_BRANCH_ANY_CALL, 4},
	{{"branch.any_return", "bit 5"}, PERF_SAMPLE_BRANCH_ANY_RETURN, 5},
	{{"branch.ind_call", "bit 6"}, PERF_SAMPLE_BRANCH_IND_CALL, 6},
	{{"branch.abort_tx", "bit 7"}, PERF_SAMPLE_BRANCH_ABORT_TX, 7},
	{{"branch.in_tx", "bit 8"}, PERF_SAMPLE_BRANCH_IN_TX, 8},
	{{"branch.no_tx", "bit 9"}, PERF_SAMPLE_BRANCH_NO_TX, 9},
	{{"branch.cond", "bit 10"}, PERF_SAMPLE_BRANCH_COND, 10},
	{{"branch.call_stack", "bit 11"}, PERF_SAMPLE_BRANCH_CALL_STACK, 11},
	{{"branch.ind_jump", "bit 12"}, PERF_SAMPLE_BRANCH_IND_JUMP, 12},
	{{"branch.call", "bit 13"}, PERF_SAMPLE_BRANCH_CALL, 13},
};

static struct perf_event_attr with_filter(uint64_t filter)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = filter;
	return attr;
}

ABI_TABLE(kinds)
{
	struct perf_event_attr attr = with_filter(row->bit | PERF_SAMPLE_BRANCH_USER);

	CHECK_EQ(row->bit, 1ULL << row->number);
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EOPNOTSUPP);
	attr.sample_type = 0;
	OPEN_SELF(&attr);
}

ABI_CASE("branch.header-extras",
	 "defined bits reach the unit's refusal, undefined ones do not get that far")
{
	const uint64_t any = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
	struct perf_event_attr attr;

	for (unsigned int bit = 14; bit <= 18; bit++) {
		attr = with_filter(any | 1ULL << bit);
		CHECK_REFUSED(&attr, 0, -1, -1, 0, EOPNOTSUPP);
	}
	for (unsigned int bit = 24; bit < 64; bit++) {
		attr = with_filter(any | 1ULL << bit);
		CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	}
}

ABI_CASE("branch.user branch.kernel branch.hv branch.privilege-default",
	 "the kernel's and the hypervisor's branches need rights; without bits the event decides")
{
	struct perf_event_attr attr = with_filter(PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY);

	CHECK_EQ(PERF_SAMPLE_BRANCH_USER, 1);
	CHECK_EQ(PERF_SAMPLE_BRANCH_KERNEL, 2);
	CHECK_EQ(PERF_SAMPLE_BRANCH_HV, 4);
	abi_drop_rights();
	abi_need_level(2, 2);
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EOPNOTSUPP);
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_ANY;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EACCES);
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_HV | PERF_SAMPLE_BRANCH_ANY;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EACCES);
	/* no bit: exclude_kernel and exclude_hv are set, so it is user mode only */
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EOPNOTSUPP);
	attr.exclude_hv = 0;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EACCES);
}

/* ---- hardware ---- */

static void indirect_work(void)
{
	void (*volatile function)(void) = work_called;

	for (int i = 0; i < 100; i++) {
		function();
		work_call_chain();
	}
}

struct branches {
	struct perf_event_attr attr;
	struct ring ring;
	int fd;
};

static struct branches open_branches(uint64_t config, uint64_t filter)
{
	struct branches out;

	abi_need_hardware();
	out.attr = abi_attr(PERF_TYPE_HARDWARE, config);
	out.attr.sample_period = 1009;
	out.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
	out.attr.branch_sample_type = filter;
	out.fd = perf_open(&out.attr, 0, -1, -1, 0);
	if (out.fd < 0 && (errno == EOPNOTSUPP || errno == EINVAL))
		CANNOT("the PMU records no such branches");
	CHECK_CMP(out.fd, >=, 0);
	out.ring = MAP(out.fd, 128);
	return out;
}

static struct branches record_branches(uint64_t filter)
{
	struct branches out = open_branches(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, filter);

	START(out.fd);
	for (int i = 0; i < 200; i++)
		indirect_work();
	STOP(out.fd);
	return out;
}

static const struct filtered {
	struct abi_row about;
	uint64_t bit;
	unsigned int lets_through;
	bool some; /* the work contains such branches */
} filtered[] = {
	{{"branch.any layout.branch_stack", "any branch"}, PERF_SAMPLE_BRANCH_ANY, 127, true},
	{{"branch.any_call", "calls only"},
	 PERF_SAMPLE_BRANCH_ANY_CALL,
	 CALL | INDIRECT_CALL | FAR,
	 true},
	{{"branch.any_return", "returns only"}, PERF_SAMPLE_BRANCH_ANY_RETURN, RETURN | FAR, true},
	{{"branch.ind_call", "indirect calls only"},
	 PERF_SAMPLE_BRANCH_IND_CALL,
	 INDIRECT_CALL,
	 true},
	{{"branch.abort_tx", "none without transactions"}, PERF_SAMPLE_BRANCH_ABORT_TX, 0, false},
	{{"branch.in_tx", "none without transactions"},
	 PERF_SAMPLE_BRANCH_IN_TX | PERF_SAMPLE_BRANCH_ANY,
	 0,
	 false},
	{{"branch.no_tx", "all without transactions"},
	 PERF_SAMPLE_BRANCH_NO_TX | PERF_SAMPLE_BRANCH_ANY,
	 127,
	 true},
	{{"branch.cond", "conditional branches only"}, PERF_SAMPLE_BRANCH_COND, CONDITIONAL, true},
	{{"branch.call_stack", "calls that have not returned"},
	 PERF_SAMPLE_BRANCH_CALL_STACK,
	 CALL | INDIRECT_CALL | FAR,
	 true},
	{{"branch.ind_jump", "indirect jumps only"},
	 PERF_SAMPLE_BRANCH_IND_JUMP,
	 INDIRECT_JUMP,
	 false},
	{{"branch.call", "direct calls only"}, PERF_SAMPLE_BRANCH_CALL, CALL, true},
};

ABI_TABLE(filtered)
{
	struct branches b = record_branches(row->bit | PERF_SAMPLE_BRANCH_USER);
	const struct perf_event_header *header;
	uint64_t seen = 0;

	while ((header = NEXT_OF(&b.ring, PERF_RECORD_SAMPLE))) {
		struct sample sample = SAMPLE(&b.attr, header);

		for (uint64_t i = 0; i < sample.branches; i++, seen++) {
			CHECK(!(sample.branch[i].to >> 63)); /* targets in user space */
			if (!(kind_of(sample.branch[i].from) & row->lets_through))
				FAIL("a branch of kind %u at %#llx", kind_of(sample.branch[i].from),
				     (unsigned long long)sample.branch[i].from);
		}
	}
	CHECK(seen > 0 || !row->some);
}

ABI_CASE("layout.branch.from_to layout.branch.mispred layout.branch.in_tx layout.branch.abort "
	 "layout.branch.cycles layout.branch.header-bits branch.user branch.privilege-default",
	 "newest first; never both predicted and mispredicted; no transaction flags")
{
	struct branches b = record_branches(PERF_SAMPLE_BRANCH_ANY);
	const struct perf_event_header *header;
	unsigned int chains = 0;

	while ((header = NEXT_OF(&b.ring, PERF_RECORD_SAMPLE))) {
		struct sample sample = SAMPLE(&b.attr, header);

		for (uint64_t i = 0; i < sample.branches; i++) {
			const struct perf_branch_entry *at = &sample.branch[i];

			CHECK(!(at->mispred && at->predicted));
			CHECK_EQ(at->in_tx, 0);
			CHECK_EQ(at->abort, 0);
			CHECK_EQ(at->reserved, 0);
			/* work_middle calls work_called: the call before it entered work_middle */
			if (at->to == (uintptr_t)work_called && i + 1 < sample.branches &&
			    at->from > (uintptr_t)work_middle &&
			    at->from < (uintptr_t)work_middle + 16) {
				CHECK_EQ(at[1].to, (uintptr_t)work_middle);
				chains++;
			}
		}
	}
	CHECK_CMP(chains, >, 0);
}

/*
 * Two pieces of STRAIGHT bytes, hardly an instruction with more than one, and a jump to the other:
 * what each entry of a stack comes from is the end of the piece that the entry before it led to.
 */
#define STRAIGHT 49

void work_straight(unsigned long turns);
__asm__(".text\n"
	".type work_straight, @function\n"
	"work_straight:\n"
	"1:	test %eax, %eax\n"
	"	.fill 47, 1, 0x90\n"
	"	jmp 2f\n"
	"	.fill 64, 1, 0x90\n"
	"2:	.fill 44, 1, 0x90\n"
	"	dec %rdi\n"
	"	jz 3f\n"
	"	jmp 1b\n"
	"	.fill 64, 1, 0x90\n"
	"3:	ret\n"
	"work_straight_end:\n"
	".size work_straight, . - work_straight\n");
extern const char work_straight_end[];

static bool is_straight(uint64_t address)
{
	return (uintptr_t)work_straight <= address && address < (uintptr_t)work_straight_end;
}

ABI_CASE("layout.branch_stack layout.branch.from_to branch.any",
	 "no branch is missing between those of a stack, where few are taken")
{
	struct branches b = open_branches(PERF_COUNT_HW_INSTRUCTIONS,
					  PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY);
	const struct perf_event_header *header;
	unsigned int pairs = 0;

	START(b.fd);
	work_straight(1200);
	STOP(b.fd);
	while ((header = NEXT_OF(&b.ring, PERF_RECORD_SAMPLE))) {
		struct sample sample = SAMPLE(&b.attr, header);

		for (uint64_t i = 0; i + 1 < sample.branches; i++) {
			const struct perf_branch_entry *at = &sample.branch[i];

			if (!is_straight(at[0].from) || !is_straight(at[1].to))
				continue;
			CHECK_CMP(at[0].from - at[1].to, <=, STRAIGHT);
			pairs++;
		}
	}
	CHECK_CMP(pairs, >, 0);
}

#define CHECK_ENTRY_BITS(field, value, bits)                                                       \
	do {                                                                                       \
		struct perf_branch_entry one = {.field = (value)};                                 \
		uint64_t word_;                                                                    \
                                                                                                   \
		memcpy(&word_, (const char *)&one + 16, sizeof(word_));                            \
		if (word_ != (uint64_t)(bits))                                                     \
			FAIL("%s is %#llx in the entry", #field, (unsigned long long)word_);       \
	} while (0)

ABI_CASE("layout.branch_stack layout.branch.from_to layout.branch.mispred layout.branch.in_tx "
	 "layout.branch.abort layout.branch.cycles layout.branch.header-bits",
	 "24 bytes: from, to, and bits where the documents put them")
{
	CHECK_EQ(sizeof(struct perf_branch_entry), 24);
	CHECK_EQ(offsetof(struct perf_branch_entry, from), 0);
	CHECK_EQ(offsetof(struct perf_branch_entry, to), 8);
	CHECK_ENTRY_BITS(mispred, 1, 1);
	CHECK_ENTRY_BITS(predicted, 1, 2);
	CHECK_ENTRY_BITS(in_tx, 1, 4);
	CHECK_ENTRY_BITS(abort, 1, 8);
	CHECK_ENTRY_BITS(cycles, 0xffff, 0xffff0);
	CHECK_ENTRY_BITS(type, 15, 15 << 20);
	CHECK_ENTRY_BITS(spec, 3, 3 << 24);
	CHECK_ENTRY_BITS(new_type, 15, 15 << 26);
	CHECK_ENTRY_BITS(priv, 7, 7ULL << 30);
}

/* ---- transactions ---- */

static const struct constant {
	struct abi_row about;
	uint64_t value, wanted;
} constants[] = {
	{{"layout.txn.flags layout.txn.elision_transaction", "ELISION"}, PERF_TXN_ELISION, 1},
	{{"layout.txn.flags layout.txn.elision_transaction", "TRANSACTION"},
	 PERF_TXN_TRANSACTION,
	 2},
	{{"layout.txn.flags layout.txn.sync_async", "SYNC"}, PERF_TXN_SYNC, 4},
	{{"layout.txn.flags layout.txn.sync_async", "ASYNC"}, PERF_TXN_ASYNC, 8},
	{{"layout.txn.flags layout.txn.reason", "RETRY"}, PERF_TXN_RETRY, 16},
	{{"layout.txn.flags layout.txn.reason", "CONFLICT"}, PERF_TXN_CONFLICT, 32},
	{{"layout.txn.flags layout.txn.reason", "CAPACITY_WRITE"}, PERF_TXN_CAPACITY_WRITE, 64},
	{{"layout.txn.flags layout.txn.reason", "CAPACITY_READ"}, PERF_TXN_CAPACITY_READ, 128},
	{{"layout.txn.abort_code", "the shift"}, PERF_TXN_ABORT_SHIFT, 32},
	{{"layout.txn.abort_code", "the mask is in place"},
	 PERF_TXN_ABORT_MASK,
	 0xffffffff00000000},
};

ABI_TABLE(constants)
{
	CHECK_EQ(row->value, row->wanted);
}
