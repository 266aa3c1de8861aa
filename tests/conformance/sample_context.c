// SPDX-License-Identifier: MIT
/* What a sample tells about where it was taken: call chain, raw data, registers, user stack. */
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "shot.h"
#include "workload.h"

/* ---- call chains ---- */

ABI_CASE("sample.callchain layout.callchain layout.callchain.contexts layout.legacy-formats",
	 "a user marker, then the frames from the innermost out")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_CALLCHAIN);
	struct sample sample = abi_fire_at_function(&attr);

	CHECK_CMP(sample.nr, >=, 4);
	CHECK_EQ(sample.ips[0], PERF_CONTEXT_USER);
	CHECK_EQ(sample.ips[0], -512);
	CHECK_EQ(sample.ips[1], FRAMED);
	CHECK(sample.ips[2] > (uintptr_t)work_middle &&
	      sample.ips[2] < (uintptr_t)work_middle + 16);
	CHECK(sample.ips[3] > (uintptr_t)work_outer && sample.ips[3] < (uintptr_t)work_outer + 16);
}

ABI_CASE("attr.sample_max_stack sample.callchain", "so many frames, markers not counted")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_CALLCHAIN);
	struct sample sample;

	attr.sample_max_stack = 2;
	sample = abi_fire_at_function(&attr);
	CHECK_EQ(sample.nr, 3);
	CHECK_EQ(sample.ips[0], PERF_CONTEXT_USER);
	CHECK_EQ(sample.ips[1], FRAMED);
}

ABI_CASE("attr.exclude_callchain_user attr.exclude_callchain_kernel",
	 "without both there is no frame")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_CALLCHAIN);
	struct sample sample;

	attr.exclude_callchain_kernel = 1;
	sample = abi_fire_at_function(&attr);
	CHECK_EQ(sample.ips[0], PERF_CONTEXT_USER);
	attr.exclude_callchain_user = 1;
	CHECK_EQ(abi_fire_at_function(&attr).nr, 0);
}

/* A context switch happens in the kernel, with a user stack below. */
static struct sample fire_at_switch(const struct perf_event_attr *attr)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	struct shot shot = abi_aim(attr);
	const struct perf_event_header *header;

	START(shot.fd);
	nanosleep(&moment, NULL);
	STOP(shot.fd);
	header = EXPECT(&shot.ring, PERF_RECORD_SAMPLE);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL);
	return SAMPLE(attr, header);
}

static unsigned int markers(const struct sample *sample, uint64_t marker)
{
	unsigned int count = 0;

	for (uint64_t i = 0; i < sample->nr; i++)
		count += sample->ips[i] == marker;
	return count;
}

ABI_CASE(
	"attr.exclude_callchain_kernel attr.exclude_callchain_user layout.callchain.contexts record.misc.kernel",
	"kernel frames come first, behind their marker, and can be left out")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_CONTEXT_SWITCHES);
	struct sample sample;

	abi_need_kernel_mode();
	attr.exclude_kernel = 0;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	sample = fire_at_switch(&attr);
	CHECK_CMP(sample.nr, >=, 4);
	CHECK_EQ(sample.ips[0], PERF_CONTEXT_KERNEL);
	CHECK_EQ(sample.ips[0], -128);
	CHECK_EQ(markers(&sample, PERF_CONTEXT_USER), 1);
	attr.exclude_callchain_kernel = 1;
	sample = fire_at_switch(&attr);
	CHECK_EQ(markers(&sample, PERF_CONTEXT_KERNEL), 0);
	CHECK_EQ(markers(&sample, PERF_CONTEXT_USER), 1);
	attr.exclude_callchain_kernel = 0;
	attr.exclude_callchain_user = 1;
	sample = fire_at_switch(&attr);
	CHECK_EQ(markers(&sample, PERF_CONTEXT_KERNEL), 1);
	CHECK_EQ(markers(&sample, PERF_CONTEXT_USER), 0);
}

/* ---- raw data, registers, stack ---- */

ABI_CASE("sample.raw layout.raw", "a software event has 4 zero bytes")
{
	struct perf_event_attr attr = abi_at_fault(PERF_SAMPLE_RAW);
	struct shot shot = abi_aim(&attr);
	struct sample sample;

	START(shot.fd);
	work_faults(1);
	STOP(shot.fd);
	sample = SAMPLE(&attr, EXPECT(&shot.ring, PERF_RECORD_SAMPLE));
	CHECK_EQ(sample.raw_size, 4);
	CHECK_EQ((sample.raw_size + 4) % 8, 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(sample.raw[i], 0);
}

ABI_CASE("sample.regs_user layout.regs_user layout.regs.abi attr.sample_regs_user-field",
	 "abi 2, then one word for each bit, ascending")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_REGS_USER);
	uint64_t here = (uintptr_t)__builtin_frame_address(0);
	struct sample sample;

	attr.sample_regs_user = REGS;
	sample = abi_fire_at_function(&attr);
	CHECK_EQ(sample.user_abi, PERF_SAMPLE_REGS_ABI_64);
	CHECK_EQ(sample.user_abi, 2);
	CHECK_EQ(sample.user_regs[2], FRAMED);
	CHECK_EQ(sample.user_regs[0], sample.user_regs[1]); /* bp was just set from sp */
	CHECK(sample.user_regs[1] < here && sample.user_regs[1] > here - 65536);
}

ABI_CASE("sample.regs_intr layout.regs_intr attr.sample_regs_intr-field layout.regs.abi",
	 "the interrupted state; in user mode the same as the user's")
{
	struct perf_event_attr attr =
		abi_at_function(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_IP);
	struct sample sample;

	attr.sample_regs_user = REGS;
	attr.sample_regs_intr = 1ULL << REG_IP | 1ULL << REG_SP;
	sample = abi_fire_at_function(&attr);
	CHECK_EQ(sample.intr_abi, 2);
	CHECK_EQ(sample.intr_regs[1], sample.ip);
	CHECK_EQ(sample.intr_regs[0], sample.user_regs[1]);
}

struct stacked {
	const struct perf_event_attr *attr;
	unsigned int found;
	bool cut;
};

static void look_at_stack(void *arg)
{
	struct stacked *stacked = arg;
	struct sample sample = abi_fire_at_function(stacked->attr);
	uint64_t words = sample.stack_dyn_size / 8;

	CHECK_EQ(sample.stack_size % 8, 0);
	CHECK_CMP(sample.stack_dyn_size, <=, sample.stack_size);
	CHECK_CMP(sample.stack_dyn_size, >, 0);
	stacked->cut = sample.stack_size < stacked->attr->sample_stack_user;
	for (uint64_t i = 0; i < words; i++) {
		uint64_t one;

		memcpy(&one, sample.stack + 8 * i, sizeof(one));
		stacked->found += one == WORK_PATTERN;
	}
}

ABI_CASE("sample.stack_user layout.stack_user attr.sample_stack_user-field",
	 "the bytes above the stack pointer, and how many are valid")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_STACK_USER);
	struct stacked stacked = {.attr = &attr};

	attr.sample_stack_user = 16384;
	work_with_pattern(look_at_stack, &stacked);
	CHECK_CMP(stacked.found, >=, 16);
	CHECK(!stacked.cut);
}

ABI_CASE("layout.stack_user", "size 0 comes without dyn_size")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_STACK_USER | PERF_SAMPLE_IP);
	struct shot shot = abi_aim(&attr);
	const struct perf_event_header *header;

	START(shot.fd);
	work_call_chain();
	STOP(shot.fd);
	header = EXPECT(&shot.ring, PERF_RECORD_SAMPLE);
	CHECK_EQ(header->size, 8 + 8 + 8);
	CHECK_EQ(abi_words(header)[1], 0);
}

ABI_CASE("layout.stack_user.truncation", "the copy is cut so that the record fits 16 bits of size")
{
	struct perf_event_attr attr =
		abi_at_function(PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CALLCHAIN);
	const struct perf_event_header *header;
	struct sample sample;
	struct shot shot;

	attr.sample_stack_user = 65528;
	shot = abi_aim(&attr);
	START(shot.fd);
	work_call_chain();
	STOP(shot.fd);
	header = EXPECT(&shot.ring, PERF_RECORD_SAMPLE);
	CHECK_EQ(header->size, 65528);
	sample = SAMPLE(&attr, header);
	CHECK_CMP(sample.stack_size, <, 65528);
	CHECK_CMP(sample.stack_size, >, 60000);
	CHECK_CMP(sample.stack_dyn_size, >, 0);
}
