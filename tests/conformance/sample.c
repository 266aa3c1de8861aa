// SPDX-License-Identifier: MIT
/*
 * What PERF_RECORD_SAMPLE carries, field by field. SAMPLE() fails unless the selected fields fill
 * the record exactly, so each case also shows the place and the size of its field. Call chains,
 * registers and stacks are in sample_context.c.
 */
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "shot.h"
#include "workload.h"

static struct perf_event_attr at_word(const volatile void *word, uint64_t sample_type)
{
	struct perf_event_attr attr = abi_breakpoint(HW_BREAKPOINT_W, word, HW_BREAKPOINT_LEN_4);

	attr.sample_period = 1;
	attr.sample_type = sample_type;
	return attr;
}

static volatile uint32_t word;

static struct sample fire_at_word(const struct perf_event_attr *attr)
{
	struct shot shot = abi_aim(attr);

	START(shot.fd);
	work_store4(&word);
	STOP(shot.fd);
	return SAMPLE(attr, EXPECT(&shot.ring, PERF_RECORD_SAMPLE));
}

ABI_CASE("sample.ip layout.ip bp.sample", "the address of the instruction that was hit")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_IP);
	struct sample sample = abi_fire_at_function(&attr);

	CHECK_EQ(sample.ip, FRAMED);
}

ABI_CASE("sample.ip bp.sample record.misc.user",
	 "a data hit reports the instruction behind the access, in user mode")
{
	struct perf_event_attr attr = at_word(&word, PERF_SAMPLE_IP | PERF_SAMPLE_ADDR);
	struct shot shot = abi_aim(&attr);
	const struct perf_event_header *header;
	struct sample sample;

	START(shot.fd);
	work_store4(&word);
	STOP(shot.fd);
	header = EXPECT(&shot.ring, PERF_RECORD_SAMPLE);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_USER);
	sample = SAMPLE(&attr, header);
	CHECK(sample.ip > (uintptr_t)work_store4 && sample.ip < (uintptr_t)work_store4 + 64);
	CHECK_EQ(sample.addr, (uintptr_t)&word);
}

ABI_CASE("sample.tid layout.tid", "process id, then thread id")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_TID);
	struct sample sample = abi_fire_at_function(&attr);

	CHECK_EQ(sample.pid, getpid());
	CHECK_EQ(sample.tid, syscall(SYS_gettid));
}

ABI_CASE("sample.time layout.time", "nonzero and never going back on one processor")
{
	struct perf_event_attr attr = abi_at_fault(PERF_SAMPLE_TIME);
	struct shot shot;
	uint64_t before = 0;
	unsigned int seen = 0;
	const struct perf_event_header *header;

	abi_pin(0, abi_first_cpu());
	shot = abi_aim(&attr);
	START(shot.fd);
	work_faults(200);
	STOP(shot.fd);
	while ((header = NEXT_OF(&shot.ring, PERF_RECORD_SAMPLE))) {
		uint64_t time = SAMPLE(&attr, header).time;

		CHECK(time != 0);
		CHECK_CMP(time, >=, before);
		before = time;
		seen++;
	}
	CHECK_CMP(seen, >=, 200);
}

static uint64_t clock_now(clockid_t clock)
{
	struct timespec now;

	CHECK_OK(clock_gettime(clock, &now));
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const struct clock_row {
	struct abi_row about;
	clockid_t clock;
} clocks[] = {
	{{"attr.use_clockid attr.clockid layout.time", "stamps of CLOCK_MONOTONIC"},
	 CLOCK_MONOTONIC},
	{{"attr.use_clockid attr.clockid", "stamps of CLOCK_MONOTONIC_RAW"}, CLOCK_MONOTONIC_RAW},
	{{"attr.use_clockid attr.clockid", "stamps of CLOCK_REALTIME"}, CLOCK_REALTIME},
	{{"attr.use_clockid attr.clockid", "stamps of CLOCK_BOOTTIME"}, CLOCK_BOOTTIME},
	{{"attr.use_clockid attr.clockid", "stamps of CLOCK_TAI"}, CLOCK_TAI},
};

/* The kernel's fast clocks may be behind by what a clock update adjusts: allow it a millisecond. */
ABI_TABLE(clocks)
{
	struct perf_event_attr attr = abi_at_fault(PERF_SAMPLE_TIME);
	uint64_t before, after, time;
	struct shot shot;

	attr.use_clockid = 1;
	attr.clockid = row->clock;
	shot = abi_aim(&attr);
	before = clock_now(row->clock);
	START(shot.fd);
	work_faults(1);
	STOP(shot.fd);
	time = SAMPLE(&attr, EXPECT(&shot.ring, PERF_RECORD_SAMPLE)).time;
	after = clock_now(row->clock);
	CHECK_CMP(time, >=, before - 1000000);
	CHECK_CMP(time, <=, after + 1000000);
}

ABI_CASE("attr.clockid",
	 "where a sample may interrupt anything, clocks that cannot be read there: EINVAL")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_TIME);

	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	OPEN_SELF(&attr);
	attr.clockid = CLOCK_REALTIME;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
}

ABI_CASE("sample.addr layout.addr", "the faulting address; 0 for a clock")
{
	struct perf_event_attr attr = abi_at_fault(PERF_SAMPLE_ADDR);
	struct shot shot = abi_aim(&attr);
	unsigned char *map = work_map(2);
	const struct perf_event_header *header;
	bool found = false;

	START(shot.fd);
	work_touch(map, 1, 1);
	STOP(shot.fd);
	while ((header = NEXT_OF(&shot.ring, PERF_RECORD_SAMPLE)))
		found |= SAMPLE(&attr, header).addr == (uintptr_t)map + 4096;
	CHECK(found);

	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.sample_period = 1000000;
	shot = abi_aim(&attr);
	START(shot.fd);
	work_spin(20000000);
	STOP(shot.fd);
	CHECK_EQ(SAMPLE(&attr, EXPECT(&shot.ring, PERF_RECORD_SAMPLE)).addr, 0);
}

ABI_CASE(
	"sample.id sample.stream_id layout.id layout.stream_id sample.identifier layout.identifier",
	"all are the id of the sampled event, in a group too")
{
	struct perf_event_attr attr =
		abi_at_function(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_IDENTIFIER);
	struct perf_event_attr leader_attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	const struct perf_event_header *header;
	int leader = OPEN_SELF(&leader_attr), member;
	struct ring ring;
	struct sample sample;

	attr.disabled = 0;
	member = OPEN(&attr, 0, -1, leader);
	ring = MAP(member, 1);
	START(leader);
	work_call_chain();
	STOP(leader);
	header = EXPECT(&ring, PERF_RECORD_SAMPLE);
	CHECK_EQ(abi_words(header)[0], ID(member)); /* IDENTIFIER comes first */
	sample = SAMPLE(&attr, header);
	CHECK_EQ(sample.identifier, ID(member));
	CHECK_EQ(sample.id, ID(member));
	CHECK_EQ(sample.stream_id, ID(member));
	CHECK(ID(member) != ID(leader));
}

static void call_once(void *arg)
{
	(void)arg;
	work_call_chain();
}

ABI_CASE("sample.id sample.stream_id layout.id layout.stream_id",
	 "an inherited copy keeps the id, its stream id is its own")
{
	struct perf_event_attr attr =
		abi_at_function(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_TID);
	struct perf_event_attr other = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int cpu = abi_first_cpu(), fd;
	struct ring ring;
	struct sample sample;
	pid_t pid;

	/*
	 * A child whose events are all copies may be given the parent's own in exchange when the
	 * kernel switches between the two; an event that is not inherited prevents it.
	 */
	OPEN_SELF(&other);
	abi_pin(0, cpu);
	attr.inherit = 1;
	fd = OPEN(&attr, 0, cpu, -1);
	ring = MAP(fd, 1);
	START(fd);
	pid = SPAWN(call_once, NULL);
	JOIN(pid);
	sample = SAMPLE(&attr, EXPECT(&ring, PERF_RECORD_SAMPLE));
	CHECK_EQ(sample.pid, pid);
	CHECK_EQ(sample.id, ID(fd));
	CHECK(sample.stream_id != ID(fd));
}

ABI_CASE("sample.cpu layout.cpu", "the processor, and a reserved half of 0")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_CPU);
	int cpus[2];

	abi_need_two_cpus(cpus);
	for (int i = 0; i < 2; i++) {
		struct sample sample;

		abi_pin(0, cpus[i]);
		sample = abi_fire_at_function(&attr);
		CHECK_EQ(sample.cpu, cpus[i]);
		CHECK_EQ(sample.cpu_reserved, 0);
	}
}

ABI_CASE("sample.period layout.period",
	 "a clock tells its period; the bit makes other software events sample each occurrence")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_TASK_CLOCK);
	const struct perf_event_header *header;
	unsigned int seen = 0;
	struct shot shot;

	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_PERIOD;
	shot = abi_aim(&attr);
	START(shot.fd);
	work_spin(20000000);
	STOP(shot.fd);
	CHECK_EQ(SAMPLE(&attr, EXPECT(&shot.ring, PERF_RECORD_SAMPLE)).period, 1000000);

	attr = abi_at_fault(PERF_SAMPLE_PERIOD);
	attr.sample_period = 5;
	shot = abi_aim(&attr);
	START(shot.fd);
	work_faults(20);
	STOP(shot.fd);
	while ((header = NEXT_OF(&shot.ring, PERF_RECORD_SAMPLE))) {
		CHECK_EQ(SAMPLE(&attr, header).period, 1);
		seen++;
	}
	CHECK_EQ(seen, VALUE(shot.fd));
}

ABI_CASE("layout.period attr.freq", "in frequency mode the period is tuned to the frequency")
{
	struct perf_event_attr attr = abi_at_fault(PERF_SAMPLE_PERIOD);
	uint64_t least = UINT64_MAX, most = 0;
	const struct perf_event_header *header;
	struct shot shot;

	attr.freq = 1;
	attr.sample_freq = 100; /* faults come far more often than that */
	shot = abi_aim(&attr);
	START(shot.fd);
	for (int i = 0; i < 200 && most <= least; i++) {
		work_faults(2000);
		while ((header = NEXT_OF(&shot.ring, PERF_RECORD_SAMPLE))) {
			uint64_t period = SAMPLE(&attr, header).period;

			least = period < least ? period : least;
			most = period > most ? period : most;
		}
	}
	CHECK_CMP(least, >, 0);
	CHECK_CMP(most, >, least);
}

ABI_CASE("layout.period attr.freq ioctl.period", "the clocks turn a frequency into a period")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_TASK_CLOCK);
	uint64_t period = 1000000; /* ns; as a frequency it would be too high */
	const struct perf_event_header *header;
	unsigned int seen = 0;
	struct shot shot;

	attr.freq = 1;
	attr.sample_freq = 1000000000 / period;
	attr.sample_type = PERF_SAMPLE_PERIOD;
	shot = abi_aim(&attr);
	START(shot.fd);
	work_spin(30000000);
	STOP(shot.fd);
	while ((header = NEXT_OF(&shot.ring, PERF_RECORD_SAMPLE))) {
		CHECK_EQ(SAMPLE(&attr, header).period, period);
		seen++;
	}
	CHECK_CMP(seen, >, 0);
	CHECK_OK(ioctl(shot.fd, PERF_EVENT_IOC_PERIOD, &period));
}

/* ---- read ---- */

ABI_CASE("sample.read layout.read record.sample",
	 "values as read(2) lays them out, by the event's own read_format")
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_READ);
	struct perf_event_attr other = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	const struct perf_event_header *header;
	struct ring ring;
	int leader, member;

	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_LOST;
	leader = OPEN_SELF(&attr);
	other.disabled = 0;
	member = OPEN(&other, 0, -1, leader);
	ring = MAP(leader, 1);
	work_faults(1);
	START(leader);
	work_call_chain();
	work_faults(10);
	work_call_chain();
	STOP(leader);
	for (unsigned int i = 1; i <= 2; i++) {
		struct sample sample;

		header = EXPECT(&ring, PERF_RECORD_SAMPLE);
		sample = SAMPLE(&attr, header);
		CHECK_EQ(sample.read_words, 3 + 2 * 3);
		CHECK_EQ(sample.read[0], 2);
		CHECK_CMP(sample.read[1], >=, sample.read[2]);
		CHECK_EQ(sample.read[3], i);
		CHECK_EQ(sample.read[4], ID(leader));
		CHECK_EQ(sample.read[5], 0);
		CHECK_EQ(sample.read[7], ID(member));
		if (i == 2)
			CHECK_CMP(sample.read[6], >=, 10);
	}
}

/* ---- memory ---- */

static const struct zero {
	struct abi_row about;
	uint64_t bit, wanted;
} zeros[] = {
	{{"sample.weight layout.weight", "0 for a software event"}, PERF_SAMPLE_WEIGHT, 0},
	{{"sample.weight_struct layout.weight_struct", "0 for a software event"},
	 PERF_SAMPLE_WEIGHT_STRUCT,
	 0},
	{{"sample.transaction", "0 for a software event"}, PERF_SAMPLE_TRANSACTION, 0},
};

ABI_TABLE(zeros)
{
	struct perf_event_attr attr = abi_at_function(row->bit | PERF_SAMPLE_IP);
	struct sample sample = abi_fire_at_function(&attr);

	CHECK_EQ(sample.ip, FRAMED);
	CHECK_EQ(row->bit == PERF_SAMPLE_TRANSACTION ? sample.transaction : sample.weight,
		 row->wanted);
}

ABI_CASE("sample.weight sample.weight_struct", "both together: EINVAL")
{
	struct perf_event_attr attr = abi_at_fault(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT);

	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
}

/* Each part of data_src: its place, its constants, and "not available" on a software event. */
static const struct source_part {
	struct abi_row about;
	unsigned int shift, bits;
	uint64_t not_available, header_shift;
} source_parts[] = {
	{{"layout.data_src.op sample.data_src layout.data_src", "bits 0 to 4"},
	 0,
	 5,
	 PERF_MEM_OP_NA,
	 PERF_MEM_OP_SHIFT},
	{{"layout.data_src.lvl", "bits 5 to 18"}, 5, 14, PERF_MEM_LVL_NA, PERF_MEM_LVL_SHIFT},
	{{"layout.data_src.snoop", "bits 19 to 23"},
	 19,
	 5,
	 PERF_MEM_SNOOP_NA,
	 PERF_MEM_SNOOP_SHIFT},
	{{"layout.data_src.lock", "bits 24 and 25"}, 24, 2, PERF_MEM_LOCK_NA, PERF_MEM_LOCK_SHIFT},
	{{"layout.data_src.dtlb", "bits 26 to 32"}, 26, 7, PERF_MEM_TLB_NA, PERF_MEM_TLB_SHIFT},
	{{"layout.data_src.header-fields", "lvl_num in bits 33 to 36"},
	 33,
	 4,
	 PERF_MEM_LVLNUM_NA,
	 PERF_MEM_LVLNUM_SHIFT},
};

ABI_TABLE(source_parts)
{
	struct perf_event_attr attr = abi_at_function(PERF_SAMPLE_DATA_SRC);
	struct sample sample = abi_fire_at_function(&attr);

	CHECK_EQ(row->header_shift, row->shift);
	CHECK_EQ(sample.data_src >> row->shift & ((1ULL << row->bits) - 1), row->not_available);
	CHECK_EQ(sample.data_src >> 37, 0); /* remote, snoopx, blk, hops */
}

ABI_CASE("sample.phys_addr layout.phys_addr", "the page frame that the kernel's page map tells")
{
	struct perf_event_attr attr = at_word(&word, PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_ADDR);
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;
	struct sample sample;

	NEED_RIGHTS();
	work_store4(&word);
	if (pagemap < 0 || pread(pagemap, &entry, 8, (off_t)((uintptr_t)&word / 4096 * 8)) != 8 ||
	    !(entry & ((1ULL << 55) - 1)))
		NOT_ALLOWED("/proc/self/pagemap hides page frames");
	sample = fire_at_word(&attr);
	CHECK_EQ(sample.addr, (uintptr_t)&word);
	CHECK_EQ(sample.phys_addr, (entry & ((1ULL << 55) - 1)) * 4096 + (uintptr_t)&word % 4096);
}

ABI_CASE("sample.data_page_size sample.code_page_size layout.data_page_size layout.code_page_size",
	 "both 4096 on ordinary pages; 0 for an unknown address")
{
	volatile uint32_t *mapped = (volatile uint32_t *)(void *)work_map(1);
	struct perf_event_attr attr =
		at_word(mapped, PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE);
	struct sample sample;
	struct shot shot;

	work_store4(mapped);
	shot = abi_aim(&attr);
	START(shot.fd);
	work_store4(mapped);
	STOP(shot.fd);
	sample = SAMPLE(&attr, EXPECT(&shot.ring, PERF_RECORD_SAMPLE));
	CHECK_EQ(sample.data_page_size, 4096);
	CHECK_EQ(sample.code_page_size, 4096);

	attr = abi_software(PERF_COUNT_SW_TASK_CLOCK);
	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_DATA_PAGE_SIZE;
	shot = abi_aim(&attr);
	START(shot.fd);
	work_spin(20000000);
	STOP(shot.fd);
	CHECK_EQ(SAMPLE(&attr, EXPECT(&shot.ring, PERF_RECORD_SAMPLE)).data_page_size, 0);
}

/* ---- all at once ---- */

ABI_CASE("sample.order layout.order layout.legacy-formats",
	 "every field at once, in the documented order")
{
	struct perf_event_attr attr = abi_at_function(
		PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
		PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
		PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT |
		PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR |
		PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE);
	struct sample sample;
	struct shot shot;
	uint64_t id;

	if (abi_privileged())
		attr.sample_type |= PERF_SAMPLE_PHYS_ADDR;
	attr.sample_regs_user = REGS;
	attr.sample_regs_intr = 1ULL << REG_IP;
	attr.sample_stack_user = 256;
	attr.sample_max_stack = 3;
	attr.read_format = PERF_FORMAT_ID;
	shot = abi_aim(&attr);
	id = ID(shot.fd);
	abi_pin(0, abi_first_cpu());
	START(shot.fd);
	work_call_chain();
	STOP(shot.fd);
	sample = SAMPLE(&attr, EXPECT(&shot.ring, PERF_RECORD_SAMPLE));
	CHECK_EQ(sample.identifier, id);
	CHECK_EQ(sample.ip, FRAMED);
	CHECK_EQ(sample.pid, getpid());
	CHECK(sample.time != 0);
	CHECK_EQ(sample.addr, FRAMED);
	CHECK_EQ(sample.id, id);
	CHECK_EQ(sample.stream_id, id);
	CHECK_EQ(sample.cpu, abi_first_cpu());
	CHECK_EQ(sample.period, 1);
	CHECK_EQ(sample.read[0], 1);
	CHECK_EQ(sample.read[1], id);
	CHECK_EQ(sample.nr, 4);
	CHECK_EQ(sample.ips[1], FRAMED);
	CHECK_EQ(sample.raw_size, 4);
	CHECK_EQ(sample.user_regs[2], FRAMED);
	CHECK_EQ(sample.stack_size, 256);
	CHECK_EQ(sample.stack_dyn_size, 256);
	CHECK_EQ(sample.weight, 0);
	CHECK_EQ(sample.data_src & 31, PERF_MEM_OP_NA);
	CHECK_EQ(sample.transaction, 0);
	CHECK_EQ(sample.intr_regs[0], FRAMED);
	CHECK_EQ(sample.code_page_size, 4096);
}
