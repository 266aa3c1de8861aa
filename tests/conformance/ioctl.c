// SPDX-License-Identifier: MIT
/* The ioctls of an event; those about BPF are in bpf.c, filters in tracepoint.c. */
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

static const struct number {
	struct abi_row about;
	unsigned long request, wanted;
} numbers[] = {
	{{"ioctl.enable", "its number"}, PERF_EVENT_IOC_ENABLE, 0x2400},
	{{"ioctl.disable", "its number"}, PERF_EVENT_IOC_DISABLE, 0x2401},
	{{"ioctl.refresh", "its number"}, PERF_EVENT_IOC_REFRESH, 0x2402},
	{{"ioctl.reset", "its number"}, PERF_EVENT_IOC_RESET, 0x2403},
	{{"ioctl.period", "its number"}, PERF_EVENT_IOC_PERIOD, 0x40082404},
	{{"ioctl.set_output", "its number"}, PERF_EVENT_IOC_SET_OUTPUT, 0x2405},
	{{"ioctl.set_filter", "its number"}, PERF_EVENT_IOC_SET_FILTER, 0x40082406},
	{{"ioctl.id", "its number"}, PERF_EVENT_IOC_ID, 0x80082407},
	{{"ioctl.set_bpf", "its number"}, PERF_EVENT_IOC_SET_BPF, 0x40042408},
	{{"ioctl.pause_output", "its number"}, PERF_EVENT_IOC_PAUSE_OUTPUT, 0x40042409},
	{{"ioctl.query_bpf", "its number"}, PERF_EVENT_IOC_QUERY_BPF, 0xc008240a},
	{{"ioctl.modify", "its number"}, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, 0x4008240b},
};

ABI_TABLE(numbers)
{
	CHECK_EQ(row->request, row->wanted);
}

ABI_CASE("ioctl.enable ioctl.disable life.disabled-keeps-value",
	 "start, stop, keep the value, start again")
{
	int fd = abi_faults(-1, true);
	uint64_t value;

	CHECK_EQ(abi_faults_add(fd), 0);
	START(fd);
	CHECK_CMP(abi_faults_add(fd), >=, 10);
	START(fd); /* once more is no error */
	CHECK_CMP(abi_faults_add(fd), >=, 10);
	STOP(fd);
	value = VALUE(fd);
	CHECK_CMP(value, >=, 20);
	CHECK_EQ(abi_faults_add(fd), 0);
	STOP(fd);
	START(fd);
	CHECK_CMP(abi_faults_add(fd), >=, 10);
	CHECK_CMP(VALUE(fd), >=, value + 10);
}

ABI_CASE("ioctl.enable ioctl.disable",
	 "on a leader they start and stop the group; a disabled member stays so")
{
	int leader = abi_faults(-1, true), on = abi_faults(leader, false),
	    off = abi_faults(leader, true);

	START(leader);
	CHECK_CMP(abi_faults_add(leader), >=, 10);
	CHECK_CMP(abi_faults_add(on), >=, 10);
	CHECK_EQ(abi_faults_add(off), 0);
	STOP(leader);
	CHECK_EQ(abi_faults_add(leader), 0);
	CHECK_EQ(abi_faults_add(on), 0);
}

ABI_CASE("ioctl.member-enable ioctl.disable", "on a member they leave the others alone")
{
	int leader = abi_faults(-1, true), member = abi_faults(leader, false),
	    other = abi_faults(leader, false);

	START(leader);
	STOP(member);
	CHECK_EQ(abi_faults_add(member), 0);
	CHECK_CMP(abi_faults_add(leader), >=, 10);
	CHECK_CMP(abi_faults_add(other), >=, 10);
	START(member);
	CHECK_CMP(abi_faults_add(member), >=, 10);
}

ABI_CASE("ioctl.flag_group ioctl.reset", "the group flag reaches every event through any of them")
{
	int fds[3];

	fds[0] = abi_faults(-1, true);
	fds[1] = abi_faults(fds[0], true);
	fds[2] = abi_faults(fds[0], true);
	CHECK_OK(ioctl(fds[1], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	for (int i = 0; i < 3; i++)
		CHECK_CMP(abi_faults_add(fds[i]), >=, 10);
	CHECK_OK(ioctl(fds[2], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(abi_faults_add(fds[i]), 0);
	RESET(fds[0]); /* without the flag: the leader alone */
	CHECK_EQ(VALUE(fds[0]), 0);
	CHECK_CMP(VALUE(fds[1]), >=, 30);
	CHECK_OK(ioctl(fds[1], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP));
	for (int i = 0; i < 3; i++)
		CHECK_EQ(VALUE(fds[i]), 0);
}

/* ---- refresh ---- */

static volatile uint32_t watched;

/* A sampling watchpoint on `watched`: one overflow a store. */
static int watch(uint64_t period, int group)
{
	struct perf_event_attr attr =
		abi_breakpoint(HW_BREAKPOINT_W, &watched, HW_BREAKPOINT_LEN_4);

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP;
	return OPEN(&attr, 0, -1, group);
}

static void hits(unsigned int count)
{
	while (count--)
		work_store4(&watched);
}

/*
 * Twice with page faults only: since Linux 6.17 a watchpoint whose refresh has run out is never
 * started again, which is nothing to imitate.
 */
ABI_CASE("ioctl.refresh", "runs for that many overflows, then the event is disabled")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	unsigned char *map = work_map(20);
	int fd = watch(1, -1);

	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_REFRESH, 3));
	hits(10);
	CHECK_EQ(VALUE(fd), 3);

	attr.sample_period = 1;
	fd = OPEN_SELF(&attr);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_REFRESH, 3));
	work_touch(map, 0, 10);
	CHECK_EQ(VALUE(fd), 3);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	work_touch(map, 10, 10);
	CHECK_EQ(VALUE(fd), 4);
}

ABI_CASE("ioctl.refresh", "a counting event or an inherited one: EINVAL")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	CHECK_ERRNO(ioctl(OPEN_SELF(&attr), PERF_EVENT_IOC_REFRESH, 1), EINVAL);
	attr.sample_period = 1;
	CHECK_OK(ioctl(OPEN_SELF(&attr), PERF_EVENT_IOC_REFRESH, 1));
	attr.inherit = 1;
	CHECK_ERRNO(ioctl(OPEN_SELF(&attr), PERF_EVENT_IOC_REFRESH, 1), EINVAL);
}

ABI_CASE("ioctl.refresh-accumulate", "2 and 2 make 4")
{
	int fd = watch(1, -1);

	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_REFRESH, 2));
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_REFRESH, 2));
	hits(10);
	CHECK_EQ(VALUE(fd), 4);
}

ABI_CASE("ioctl.refresh-zero", "returns 0 and enables without a limit")
{
	int fd = watch(1, -1);

	CHECK_EQ(CHECK_OK(ioctl(fd, PERF_EVENT_IOC_REFRESH, 0)), 0);
	hits(20);
	CHECK_EQ(VALUE(fd), 20);
}

ABI_CASE("ioctl.refresh-group", "a disabled member stays disabled")
{
	int leader = watch(1, -1), member = abi_faults(leader, true);

	CHECK_OK(ioctl(leader, PERF_EVENT_IOC_REFRESH, 100));
	CHECK_EQ(abi_faults_add(member), 0);
	hits(3);
	CHECK_EQ(VALUE(leader), 3);
}

/* ---- period ---- */

ABI_CASE("ioctl.period", "what it refuses")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_CPU_CLOCK);
	uint64_t period = 10;
	int fd = OPEN_SELF(&attr);

	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period), EINVAL); /* counting */
	attr.sample_period = 100000;
	fd = OPEN_SELF(&attr);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	period = 0;
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period), EINVAL);
	period = 1ULL << 63;
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period), EINVAL);
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_PERIOD, (uint64_t *)8), EFAULT);
	attr.config = PERF_COUNT_SW_PAGE_FAULTS; /* the clocks turn a frequency into a period */
	attr.freq = 1;
	attr.sample_freq = 100;
	fd = OPEN_SELF(&attr);
	period = (uint64_t)abi_sysctl("perf_event_max_sample_rate");
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	period++;
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period), EINVAL);
}

ABI_CASE("ioctl.period ioctl.period-immediate",
	 "the new period holds, at the latest when the old one is over")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t period = 2;
	struct ring ring;
	unsigned int samples;
	int fd;

	attr.sample_period = 1000;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 16);
	START(fd);
	work_faults(10);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 0);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	work_faults(2000);
	STOP(fd);
	samples = DRAIN(&ring, PERF_RECORD_SAMPLE);
	CHECK_CMP(samples, >=, 500);
	CHECK_CMP(samples, <=, VALUE(fd) / 2);
}

/* ---- output ---- */

/*
 * Two kinds of software event: since Linux 6.2 all samples that one occurrence raises share what
 * the first of them filled in, its id included. That is nothing to imitate.
 */
ABI_CASE("ioctl.set_output", "records of both events arrive in one buffer with their own ids")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	const struct perf_event_header *header;
	unsigned int of_target = 0, of_other = 0;
	struct ring ring;
	int target, other;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ID;
	target = OPEN_SELF(&attr);
	attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	other = OPEN_SELF(&attr);
	ring = MAP(target, 8);
	CHECK_OK(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, (long)target));
	START(target);
	START(other);
	work_faults(10);
	STOP(target);
	STOP(other);
	while ((header = NEXT_OF(&ring, PERF_RECORD_SAMPLE))) {
		uint64_t id = SAMPLE(&attr, header).id;

		CHECK(id == ID(target) || id == ID(other));
		of_target += id == ID(target);
		of_other += id == ID(other);
	}
	CHECK_EQ(of_target, VALUE(target));
	CHECK_EQ(of_other, VALUE(other));
	CHECK_CMP(of_other, >=, 10);
}

ABI_CASE("ioctl.set_output-detach", "-1, as a long, ends it: no more records")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct ring ring;
	int target, other;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ID;
	target = OPEN_SELF(&attr);
	other = OPEN_SELF(&attr);
	ring = MAP(target, 8);
	CHECK_OK(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, (long)target));
	START(other);
	work_faults(10);
	STOP(other);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), VALUE(other));
	CHECK_ERRNO(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, 0xffffffffUL), EBADF);
	CHECK_OK(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	START(other);
	work_faults(10);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 0);
	CHECK_CMP(VALUE(other), >=, 20);
}

ABI_CASE("ioctl.set_output-rules",
	 "itself, a file, a mapped event, another clock, direction or processor")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS), changed;
	int target, other, cpus[2];
	struct ring ring;

	attr.sample_period = 1;
	target = OPEN_SELF(&attr);
	other = OPEN_SELF(&attr);
	ring = MAP(target, 1);
	CHECK_ERRNO(ioctl(target, PERF_EVENT_IOC_SET_OUTPUT, (long)target), EINVAL);
	CHECK_ERRNO(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, (long)other), EINVAL);
	CHECK_ERRNO(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, 2L), EBADF);
	CHECK_ERRNO(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, 9999L), EBADF);
	CHECK_ERRNO(ioctl(target, PERF_EVENT_IOC_SET_OUTPUT, (long)other), EINVAL);

	changed = attr;
	changed.use_clockid = 1;
	changed.clockid = CLOCK_MONOTONIC;
	CHECK_ERRNO(ioctl(OPEN_SELF(&changed), PERF_EVENT_IOC_SET_OUTPUT, (long)target), EINVAL);
	changed = attr;
	changed.write_backward = 1;
	CHECK_ERRNO(ioctl(OPEN_SELF(&changed), PERF_EVENT_IOC_SET_OUTPUT, (long)target), EINVAL);

	CHECK_OK(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, (long)target));
	abi_unmap(&ring);
	abi_need_two_cpus(cpus);
	target = OPEN(&attr, 0, cpus[0], -1);
	ring = MAP(target, 1);
	other = OPEN(&attr, 0, cpus[1], -1);
	CHECK_ERRNO(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, (long)target), EINVAL);
	CHECK_OK(ioctl(OPEN(&attr, 0, cpus[0], -1), PERF_EVENT_IOC_SET_OUTPUT, (long)target));
}

ABI_CASE("ioctl.set_output-rules",
	 "an event that writes elsewhere maps no buffer of its own: EBUSY")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	size_t length = 2 * (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page;
	struct ring ring;
	int target, other;

	attr.sample_period = 1;
	attr.disabled = 0;
	target = OPEN_SELF(&attr);
	other = OPEN_SELF(&attr);
	ring = MAP(target, 1);
	CHECK_OK(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, (long)target));
	page = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	if (page == MAP_FAILED) {
		CHECK_EQ(errno, EBUSY);
	} else {
		/* older kernels hand out the target's buffer */
		work_faults(3);
		STOP(target);
		STOP(other);
		CHECK_CMP(page->data_head, >, 0);
		CHECK_EQ(page->data_head, ring.page->data_head);
	}
}

/* What the kernel alone has records of: they go the ways of all others. */
static const struct {
	struct abi_row about;
	uint64_t config;
	bool ksymbol;
} of_kernel[] = {
	{{"ioctl.set_output ioctl.set_output-rules", "of symbols of the kernel: like any other"},
	 PERF_COUNT_SW_DUMMY,
	 true},
	{{"ioctl.set_output ioctl.set_output-rules", "of what BPF programs write: like any other"},
	 PERF_COUNT_SW_BPF_OUTPUT},
};

ABI_TABLE(of_kernel)
{
	struct perf_event_attr attr = abi_software(row->config);
	struct perf_event_attr counted = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	const size_t length = 2 * (size_t)sysconf(_SC_PAGESIZE);
	struct pollfd one = {.events = POLLIN};
	struct ring ring;
	int target;

	attr.ksymbol = row->ksymbol;
	counted.sample_period = 1;
	counted.wakeup_events = 1;
	counted.write_backward = attr.write_backward = 1;
	one.fd = OPEN_SELF(&attr);
	target = OPEN_SELF(&counted);
	ring = MAP(target, 1);
	CHECK_OK(ioctl(one.fd, PERF_EVENT_IOC_SET_OUTPUT, (long)target));
	CHECK(mmap(NULL, length, PROT_READ, MAP_SHARED, one.fd, 0) == MAP_FAILED);
	CHECK_OK(ioctl(one.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	CHECK_OK(ioctl(one.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	START(target);
	work_faults(3);
	STOP(target);
	CHECK_EQ(poll(&one, 1, 0), 1);
	CHECK_EQ(one.revents, POLLIN);
	abi_unmap(&ring);

	/* And the other way round, again and again. */
	for (int i = 0; i < 2; i++) {
		ring = MAP(one.fd, 1);
		CHECK_OK(ioctl(target, PERF_EVENT_IOC_SET_OUTPUT, (long)one.fd));
		START(target);
		work_faults(3);
		STOP(target);
		CHECK_CMP(ring.page->data_head, !=, 0);
		CHECK_EQ(poll(&one, 1, 0), 1);
		CHECK_EQ(one.revents, POLLIN);
		abi_unmap(&ring);
	}
}

ABI_CASE("ioctl.id", "the id of PERF_FORMAT_ID; a bad pointer gives EFAULT")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t words[2];
	int fd;

	attr.read_format = PERF_FORMAT_ID;
	fd = OPEN_SELF(&attr);
	READ_WORDS(fd, words, 2);
	CHECK(words[1] != 0);
	CHECK_EQ(ID(fd), words[1]);
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_ID, (uint64_t *)8), EFAULT);
}

/* Somebody of another unit joins, as a reader of its group would want. */
static void join_with_watchpoint(int leader)
{
	static uint32_t word;
	struct perf_event_attr attr = abi_breakpoint(HW_BREAKPOINT_W, &word, 4);

	OPEN(&attr, 0, -1, leader);
}

static const struct {
	struct abi_row about;
	bool disabled, switched; /* when it is opened, and whether it is the other then */
} leaders[] = {
	{{"ioctl.id arg.group-member", "a leader stays what it was: its id and its count"}},
	{{"ioctl.enable arg.group-member", "a leader that was enabled stays enabled"}, true, true},
	{{"ioctl.disable arg.group-member", "a leader that was disabled stays disabled"},
	 false,
	 true},
};

ABI_TABLE(leaders)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	const bool on = row->disabled == row->switched;
	uint64_t id, before;
	int fd;

	attr.disabled = row->disabled;
	fd = OPEN_SELF(&attr);
	id = ID(fd);
	if (!row->disabled)
		work_faults(20);
	if (row->switched)
		CHECK_OK(ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0));
	if (on)
		work_faults(20);
	before = VALUE(fd);
	CHECK_CMP(before, >=, 20);
	join_with_watchpoint(fd);
	CHECK_EQ(ID(fd), id);
	CHECK_CMP(VALUE(fd), >=, before);
	work_faults(20);
	if (on)
		CHECK_CMP(VALUE(fd), >=, before + 20);
	else
		CHECK_EQ(VALUE(fd), before);
}

ABI_CASE("arg.group-member read.group.times", "a leader stays what it was: also its times")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_EMULATION_FAULTS);
	struct perf_event_attr member = abi_software(PERF_COUNT_SW_DUMMY);
	uint64_t words[5];
	int leader;

	attr.disabled = 0;
	attr.sample_period = 0; /* times are not in its own format */
	leader = OPEN_SELF(&attr);
	STOP(leader);
	member.comm = 1;
	member.read_format =
		PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	READ_WORDS(OPEN(&member, 0, -1, leader), words, 5);
	CHECK_CMP(words[1], >, 0);
	CHECK_CMP(words[2], >, 0);
}

static void run_until_told(void *gate)
{
	abi_wait(gate);
}

ABI_CASE("arg.group-member", "of a leader whose task has ended: ENODEV")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_EMULATION_FAULTS);
	struct perf_event_attr member = abi_software(PERF_COUNT_SW_DUMMY);
	struct gate gate = abi_gate();
	pid_t child = SPAWN(run_until_told, &gate);
	int leader = OPEN(&attr, child, -1, -1);

	abi_pass(&gate);
	JOIN(child);
	member.comm = 1;
	CHECK_REFUSED(&member, 0, -1, leader, 0, ENODEV);
}

static int open_on(pid_t pid, bool counted)
{
	struct perf_event_attr attr =
		abi_software(counted ? PERF_COUNT_SW_EMULATION_FAULTS : PERF_COUNT_SW_DUMMY);

	attr.comm = !counted;
	return OPEN(&attr, pid, -1, -1);
}

ABI_CASE("ioctl.set_output-rules", "of tasks that have ended: as before")
{
	struct gate gate = abi_gate();
	pid_t child = SPAWN(run_until_told, &gate), other = SPAWN(run_until_told, &gate);
	int target = open_on(child, false), same[] = {open_on(child, false), open_on(child, true)},
	    others[] = {open_on(other, false), open_on(other, true)};

	abi_pass(&gate);
	abi_pass(&gate);
	JOIN(child);
	JOIN(other);
	MAP(target, 1);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(ioctl(same[i], PERF_EVENT_IOC_SET_OUTPUT, (long)target));
		CHECK_ERRNO(ioctl(others[i], PERF_EVENT_IOC_SET_OUTPUT, (long)target), EINVAL);
	}
}

ABI_CASE("ioctl.pause_output", "nonzero pauses, 0 resumes; without a buffer EINVAL")
{
	int fd = watch(1, -1);
	struct ring ring;

	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), EINVAL);
	ring = MAP(fd, 1);
	START(fd);
	hits(2);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 7));
	hits(5);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 2);
	CHECK_EQ(VALUE(fd), 7);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	hits(3);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 3);
	/* documented as 32 bits wide, and taken as the long that it is passed as */
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1UL << 32));
	hits(3);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 0);
}

ABI_CASE("ioctl.pause_output-lost record.lost", "what was dropped is told before the next sample")
{
	struct perf_event_attr attr =
		abi_breakpoint(HW_BREAKPOINT_W, &watched, HW_BREAKPOINT_LEN_4);
	const struct perf_event_header *header;
	struct ring ring;
	uint64_t words[2];
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.read_format = PERF_FORMAT_LOST;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	START(fd);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	hits(4);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	CHECK(NEXT(&ring) == NULL);
	hits(1);
	header = NEXT(&ring);
	CHECK(header);
	CHECK_EQ(header->type, PERF_RECORD_LOST);
	CHECK_EQ(header->size, 24);
	CHECK_EQ(abi_words(header)[0], ID(fd));
	CHECK_EQ(abi_words(header)[1], 4);
	header = NEXT(&ring);
	CHECK(header);
	CHECK_EQ(header->type, PERF_RECORD_SAMPLE);
	READ_WORDS(fd, words, 2);
	CHECK_EQ(words[1], 4);
}

/* ---- modify ---- */

ABI_CASE("ioctl.modify ioctl.modify-keeps-count bp.modify",
	 "a watchpoint moves and goes on counting")
{
	static volatile uint32_t elsewhere;
	struct perf_event_attr attr =
		abi_breakpoint(HW_BREAKPOINT_W, &watched, HW_BREAKPOINT_LEN_4);
	int fd;

	attr.disabled = 0;
	fd = OPEN_SELF(&attr);
	hits(3);
	CHECK_EQ(VALUE(fd), 3);
	attr.bp_addr = (uintptr_t)&elsewhere;
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	hits(5);
	CHECK_EQ(VALUE(fd), 3);
	work_store4(&elsewhere);
	work_load4(&elsewhere);
	CHECK_EQ(VALUE(fd), 4);
	attr.bp_type = HW_BREAKPOINT_RW;
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	work_load4(&elsewhere);
	CHECK_EQ(VALUE(fd), 5);
	attr.disabled = 1;
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	work_store4(&elsewhere);
	CHECK_EQ(VALUE(fd), 5);
}

ABI_CASE("ioctl.modify ioctl.modify-keeps-count",
	 "another kind of event, type, length, size or period is refused")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS), changed;
	int fd = OPEN_SELF(&attr);

	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr), EOPNOTSUPP);
	attr = abi_breakpoint(HW_BREAKPOINT_W, &watched, HW_BREAKPOINT_LEN_4);
	fd = OPEN_SELF(&attr);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	changed = attr;
	changed.type = PERF_TYPE_SOFTWARE;
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &changed), EINVAL);
	changed = attr;
	changed.bp_len = 3;
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &changed), EINVAL);
	changed = attr;
	changed.sample_period = 5;
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &changed), EINVAL);
	changed = attr;
	changed.size = 8;
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &changed), E2BIG);
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (void *)8), EFAULT);
}

ABI_CASE("ioctl.unknown", "a request that nobody defined: ENOTTY")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int fd = OPEN_SELF(&attr);

	CHECK_ERRNO(ioctl(fd, _IO('$', 200), 0), ENOTTY);
	CHECK_ERRNO(ioctl(fd, _IO('#', 0), 0), ENOTTY);
	CHECK_ERRNO(ioctl(fd, _IOR('$', 0, uint64_t), 0), ENOTTY);
}
