// SPDX-License-Identifier: MIT
/* Trace points: ids, counts, raw data, filters. task:task_rename fires when a task takes a name. */
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

static const char rename_point[] = "task/task_rename";

static struct perf_event_attr on_rename(void)
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_TRACEPOINT, abi_tracepoint(rename_point));

	attr.exclude_kernel = 0; /* they all fire in the kernel */
	return attr;
}

static void name(const char *to)
{
	CHECK_OK(prctl(PR_SET_NAME, to));
}

ABI_CASE("type.tracepoint config.tracepoint-id sysfs.tracepoint-id", "each occurrence counts")
{
	struct perf_event_attr attr = on_rename();
	int fd;

	NEED_RIGHTS();
	fd = OPEN_SELF(&attr);
	START(fd);
	name("one");
	name("two");
	name("three");
	STOP(fd);
	name("four");
	CHECK_EQ(VALUE(fd), 3);
}

ABI_CASE("type.tracepoint config.tracepoint-id", "0 and an unknown number: EINVAL")
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_TRACEPOINT, 0);

	NEED_RIGHTS();
	abi_need_tracepoints();
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	attr.config = 0x7fffffff;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
}

ABI_CASE("sample.raw layout.raw attr.exclude_kernel",
	 "the raw data are the fields of the format file")
{
	struct perf_event_attr attr = on_rename();
	unsigned int at_pid = abi_tracepoint_offset(rename_point, "pid");
	unsigned int at_name = abi_tracepoint_offset(rename_point, "newcomm[16]");
	const struct perf_event_header *header;
	struct sample sample;
	struct ring ring;
	uint16_t type;
	int32_t pid;
	int fd;

	NEED_RIGHTS();
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_IP;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	START(fd);
	name("raw data");
	STOP(fd);
	header = EXPECT(&ring, PERF_RECORD_SAMPLE);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL);
	sample = SAMPLE(&attr, header);
	CHECK_EQ((sample.raw_size + 4) % 8, 0);
	CHECK_CMP(sample.raw_size, >=, at_name + 16);
	memcpy(&type, sample.raw, sizeof(type));
	CHECK_EQ(type, attr.config);
	memcpy(&pid, sample.raw + at_pid, sizeof(pid));
	CHECK_EQ(pid, getpid());
	CHECK_EQ(strcmp((const char *)sample.raw + at_name, "raw data"), 0);
}

static uint64_t monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A trace point's records and those of page faults, in the ring of @first. By one clock. */
static void check_ring_of_both(struct perf_event_attr *first, struct perf_event_attr *second)
{
	const uint64_t slack = 10000000;
	const struct perf_event_header *header;
	uint64_t of[2] = {0}, begun, took, earliest = UINT64_MAX, latest = 0;
	struct ring ring;
	int fd[2];

	fd[0] = OPEN_SELF(first);
	fd[1] = OPEN_SELF(second);
	ring = MAP(fd[0], 8);
	CHECK_OK(ioctl(fd[1], PERF_EVENT_IOC_SET_OUTPUT, (long)fd[0]));
	begun = monotonic();
	START(fd[0]);
	START(fd[1]);
	for (int i = 0; i < 3; i++) {
		name("beside faults");
		work_faults(10);
	}
	STOP(fd[0]);
	STOP(fd[1]);
	took = monotonic() - begun;
	while ((header = NEXT_OF(&ring, PERF_RECORD_SAMPLE))) {
		struct sample sample = SAMPLE(first, header);

		CHECK(sample.id == ID(fd[0]) || sample.id == ID(fd[1]));
		of[sample.id == ID(fd[1])]++;
		earliest = sample.time < earliest ? sample.time : earliest;
		latest = sample.time > latest ? sample.time : latest;
	}
	CHECK_EQ(of[0], VALUE(fd[0]));
	CHECK_EQ(of[1], VALUE(fd[1]));
	CHECK_EQ(VALUE(first->type == PERF_TYPE_TRACEPOINT ? fd[0] : fd[1]), 3);
	CHECK_CMP(VALUE(first->type == PERF_TYPE_TRACEPOINT ? fd[1] : fd[0]), >=, 30);
	CHECK_CMP(latest - earliest, <=, took + slack);
	abi_unmap(&ring);
}

ABI_CASE("ioctl.set_output type.tracepoint sample.time",
	 "to the ring of a software event, and the other way round")
{
	struct perf_event_attr point = on_rename();
	struct perf_event_attr faults = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	NEED_RIGHTS();
	point.sample_period = faults.sample_period = 1;
	point.sample_type = faults.sample_type = PERF_SAMPLE_ID | PERF_SAMPLE_TIME;
	check_ring_of_both(&faults, &point);
	check_ring_of_both(&point, &faults);
	point.sample_id_all = faults.sample_id_all = 1;
	point.use_clockid = faults.use_clockid = 1;
	point.clockid = faults.clockid = CLOCK_MONOTONIC;
	check_ring_of_both(&faults, &point);
	check_ring_of_both(&point, &faults);
}

ABI_CASE("ioctl.set_filter ioctl.set_filter-effect",
	 "only occurrences that satisfy the filter count and sample")
{
	struct perf_event_attr attr = on_rename();
	struct ring ring;
	int fd;

	NEED_RIGHTS();
	attr.sample_period = 1;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "newcomm == \"wanted\""));
	START(fd);
	name("wanted");
	name("other");
	name("wanted");
	name("wanted not");
	STOP(fd);
	CHECK_EQ(VALUE(fd), 2);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 2);
}

ABI_CASE("ioctl.set_filter", "what it refuses")
{
	struct perf_event_attr plain = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct perf_event_attr attr;
	int fd;

	CHECK_ERRNO(ioctl(OPEN_SELF(&plain), PERF_EVENT_IOC_SET_FILTER, "pid == 1"), EINVAL);
	attr = on_rename();
	NEED_RIGHTS();
	fd = OPEN_SELF(&attr);
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "no_such_field == 1"), EINVAL);
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "pid == "), EINVAL);
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (char *)8), EFAULT);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "pid == 1"));
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "pid == 2"), EEXIST);
}

ABI_CASE("type.tracepoint sysctl.paranoid-0 sample.raw",
	 "raw data of an ordinary trace point are refused to an ordinary user")
{
	struct perf_event_attr attr = on_rename();

	abi_drop_rights();
	attr.exclude_kernel = 1;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_RAW;
	abi_need_level(0, 2);
	CHECK_EQ(perf_open(&attr, 0, -1, -1, 0), -1);
	CHECK(errno == EPERM || errno == EACCES);
}

ABI_CASE("errno.eperm", "the function trace point is refused to an ordinary user with EPERM")
{
	struct perf_event_attr attr =
		abi_attr(PERF_TYPE_TRACEPOINT, abi_tracepoint("ftrace/function"));

	abi_drop_rights();
	abi_need_level(0, 2);
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EPERM);
}
