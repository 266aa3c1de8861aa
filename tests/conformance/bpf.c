// SPDX-License-Identifier: MIT
/* BPF programs on events, the records about them, and samples that they write. */
#include <linux/bpf.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

static const char rename_point[] = "task/task_rename";

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int load(enum bpf_prog_type type, const struct bpf_insn *code, uint32_t count)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = count;
	attr.license = (uintptr_t) "GPL";
	strcpy(attr.prog_name, "abi_conform");
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0 && errno == EPERM)
		NOT_ALLOWED("cannot load BPF programs");
	if (fd < 0)
		CANNOT("no BPF program of type %d: %s", (int)type, strerrorname_np(errno));
	return fd;
}

/* A program that does nothing and returns `result`. */
static int load_returning(enum bpf_prog_type type, int result)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = result},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return load(type, code, 2);
}

static struct bpf_prog_info info_of(int program)
{
	struct bpf_prog_info info;
	union bpf_attr attr;

	memset(&info, 0, sizeof(info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)program;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	CHECK_OK(bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
	return info;
}

static int open_rename(uint64_t period)
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_TRACEPOINT, abi_tracepoint(rename_point));

	NEED_RIGHTS();
	attr.exclude_kernel = 0;
	attr.sample_period = period;
	return OPEN_SELF(&attr);
}

static void name(const char *to)
{
	CHECK_OK(prctl(PR_SET_NAME, to));
}

/* ---- attaching ---- */

ABI_CASE("ioctl.set_bpf", "a trace point takes a program, which then decides what is sampled")
{
	int fd = open_rename(1), program;
	struct ring ring = MAP(fd, 1);

	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_SET_BPF, load_returning(BPF_PROG_TYPE_TRACEPOINT, 0)));
	START(fd);
	name("dropped");
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 0);
	STOP(fd);
	CHECK_OK(close(fd));
	abi_unmap(&ring);

	fd = open_rename(1);
	ring = MAP(fd, 1);
	program = load_returning(BPF_PROG_TYPE_TRACEPOINT, 1);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_SET_BPF, program));
	CHECK_OK(close(program)); /* the event holds it */
	START(fd);
	name("kept");
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 1);
}

ABI_CASE("ioctl.set_bpf", "a clock takes a program of its own type")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_CPU_CLOCK);
	int fd, program;

	NEED_RIGHTS();
	attr.sample_period = 1000000;
	fd = OPEN_SELF(&attr);
	program = load_returning(BPF_PROG_TYPE_PERF_EVENT, 1);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_SET_BPF, program));
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_SET_BPF, program), EEXIST);
	START(fd);
	work_spin(1000000);
	CHECK_CMP(VALUE(fd), >, 0);
}

ABI_CASE("ioctl.set_bpf", "no descriptor: EBADF; no program, or of the wrong type: EINVAL")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_DUMMY);
	int fd = open_rename(1);

	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_SET_BPF, 9999), EBADF);
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_SET_BPF, OPEN_SELF(&attr)), EINVAL);
	CHECK_ERRNO(
		ioctl(fd, PERF_EVENT_IOC_SET_BPF, load_returning(BPF_PROG_TYPE_SOCKET_FILTER, 0)),
		EINVAL);
}

ABI_CASE("ioctl.set_bpf-once", "a second program: EEXIST")
{
	int fd = open_rename(1);

	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_SET_BPF, load_returning(BPF_PROG_TYPE_TRACEPOINT, 1)));
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_SET_BPF, load_returning(BPF_PROG_TYPE_TRACEPOINT, 1)),
		    EEXIST);
}

/* ---- asking ---- */

struct answer {
	uint32_t ids_len, count, ids[8];
};

ABI_CASE("ioctl.query_bpf ioctl.query_bpf-count ioctl.query_bpf-enospc",
	 "the ids of all programs on the trace point; a short array gets what fits and ENOSPC")
{
	struct answer answer = {.ids_len = 0};
	int fds[2], programs[2], bystander;
	uint32_t before;

	bystander = open_rename(1);
	CHECK_OK(ioctl(bystander, PERF_EVENT_IOC_QUERY_BPF, &answer));
	before = answer.count; /* somebody else may have some there */
	if (before > 4)
		CANNOT("%u programs are attached to the trace point already", before);
	for (int i = 0; i < 2; i++) {
		fds[i] = open_rename(1);
		programs[i] = load_returning(BPF_PROG_TYPE_TRACEPOINT, 1);
		CHECK_OK(ioctl(fds[i], PERF_EVENT_IOC_SET_BPF, programs[i]));
	}
	answer.count = 99;
	CHECK_OK(ioctl(bystander, PERF_EVENT_IOC_QUERY_BPF, &answer));
	CHECK_EQ(answer.count, before + 2);
	answer.ids_len = 8;
	CHECK_OK(ioctl(fds[0], PERF_EVENT_IOC_QUERY_BPF, &answer));
	CHECK_EQ(answer.count, before + 2);
	CHECK_EQ(answer.ids[before], info_of(programs[0]).id);
	CHECK_EQ(answer.ids[before + 1], info_of(programs[1]).id);
	memset(&answer, 0, sizeof(answer));
	answer.ids_len = 1;
	CHECK_ERRNO(ioctl(fds[0], PERF_EVENT_IOC_QUERY_BPF, &answer), ENOSPC);
	CHECK_EQ(answer.ids_len, 1);
	CHECK_EQ(answer.count, before + 2);
	CHECK(answer.ids[0] != 0);
	CHECK_EQ(answer.ids[1], 0);
}

ABI_CASE("ioctl.query_bpf", "no trace point: EINVAL; more than 64 ids: E2BIG")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct answer answer = {.ids_len = 8};

	NEED_RIGHTS();
	CHECK_ERRNO(ioctl(OPEN_SELF(&attr), PERF_EVENT_IOC_QUERY_BPF, &answer), EINVAL);
	answer.ids_len = 65;
	CHECK_ERRNO(ioctl(open_rename(1), PERF_EVENT_IOC_QUERY_BPF, &answer), E2BIG);
}

ABI_CASE("ioctl.query_bpf", "an ordinary user: EPERM, of any event")
{
	struct answer answer = {.ids_len = 8};
	int fd;

	abi_drop_rights();
	fd = abi_faults(-1, true);
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, &answer), EPERM);
}

/* ---- records ---- */

ABI_CASE("attr.ksymbol attr.bpf_event record.ksymbol record.ksymbol.type record.ksymbol.unregister "
	 "record.bpf_event record.bpf_event.type",
	 "loading and unloading a program: KSYMBOL, then BPF_EVENT, twice")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_DUMMY);
	const struct perf_event_header *header;
	uint64_t address = 0;
	struct ring ring;
	int fd, program;

	NEED_RIGHTS();
	abi_keep_recorders_out(); /* their trailers would count into the size of our records */
	attr.ksymbol = 1;
	attr.bpf_event = 1;
	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_ID;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 8);
	START(fd);
	program = load_returning(BPF_PROG_TYPE_SOCKET_FILTER, 0);
	for (unsigned int gone = 0; gone < 2; gone++) {
		struct bpf_prog_info info = {0};
		const char *symbol;

		if (gone)
			CHECK_OK(close(program));
		else
			info = info_of(program);
		header = NEXT(&ring);
		CHECK(header);
		if (header->type != PERF_RECORD_KSYMBOL && !gone && !info.jited_prog_len)
			CANNOT("BPF programs are not compiled: no symbols");
		CHECK_EQ(header->type, PERF_RECORD_KSYMBOL);
		CHECK(abi_words(header)[0] >> 63);
		CHECK(!gone || abi_words(header)[0] == address);
		address = abi_words(header)[0];
		CHECK_CMP(abi_halves(header)[2], >, 0);
		CHECK_EQ(abi_halves(header)[3] & 0xffff, PERF_RECORD_KSYMBOL_TYPE_BPF);
		CHECK_EQ(abi_halves(header)[3] >> 16,
			 gone ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER : 0);
		symbol = (const char *)(abi_words(header) + 2);
		CHECK_EQ(strncmp(symbol, "bpf_prog_", 9), 0);
		CHECK(strstr(symbol, "abi_conform"));
		CHECK_EQ(header->size, 8 + 16 + (strlen(symbol) + 8) / 8 * 8 + 8);
		CHECK_EQ(TRAILER(&attr, header).id, ID(fd));

		header = NEXT(&ring);
		CHECK(header);
		CHECK_EQ(header->type, PERF_RECORD_BPF_EVENT);
		CHECK_EQ(header->size, 24 + 8);
		CHECK_EQ(abi_halves(header)[0] & 0xffff,
			 gone ? PERF_BPF_EVENT_PROG_UNLOAD : PERF_BPF_EVENT_PROG_LOAD);
		CHECK_EQ(abi_halves(header)[0] >> 16, 0);
		if (!gone) {
			CHECK_EQ(abi_halves(header)[1], info.id);
			CHECK_EQ(memcmp(abi_words(header) + 1, info.tag, 8), 0);
		}
	}
}

/* ---- output of programs ---- */

#define PAYLOAD 0x11223344

/* Writes eight bytes to the event that `map` has for the current processor. */
static int load_writer(int map)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ST | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_10,
		 .off = -8,
		 .imm = PAYLOAD},
		{.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4, .imm = 7},
		{.code = BPF_LD | BPF_IMM | BPF_DW,
		 .dst_reg = BPF_REG_2,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = map},
		{0},
		{.code = BPF_ALU | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = -1},
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_4, .src_reg = BPF_REG_10},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_4, .imm = -8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_5, .imm = 8},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_perf_event_output},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return load(BPF_PROG_TYPE_TRACEPOINT, code, sizeof(code) / sizeof(code[0]));
}

/* An event of processor @cpu, which is the caller's from now on, and a map that has it. */
static int open_output(const struct perf_event_attr *attr, int cpu, int *map)
{
	union bpf_attr request;
	int fd;

	abi_pin(0, cpu);
	memset(&request, 0, sizeof(request));
	request.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
	request.key_size = 4;
	request.value_size = 4;
	request.max_entries = (uint32_t)cpu + 1;
	*map = bpf(BPF_MAP_CREATE, &request);
	if (*map < 0)
		CANNOT("no BPF map of events: %s", strerrorname_np(errno));
	fd = OPEN(attr, -1, cpu, -1);
	memset(&request, 0, sizeof(request));
	request.map_fd = (uint32_t)*map;
	request.key = (uintptr_t)&cpu;
	request.value = (uintptr_t)&fd;
	CHECK_OK(bpf(BPF_MAP_UPDATE_ELEM, &request));
	return fd;
}

static struct perf_event_attr output_attr(void)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_BPF_OUTPUT);

	attr.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID;
	attr.sample_period = 1;
	attr.wakeup_events = 1;
	attr.disabled = 0;
	return attr;
}

static void check_output(struct ring *ring, const struct perf_event_attr *attr, int fd)
{
	struct sample sample = SAMPLE(attr, EXPECT(ring, PERF_RECORD_SAMPLE));
	uint32_t payload[2];

	CHECK_EQ(sample.identifier, ID(fd));
	CHECK_EQ(sample.id, ID(fd));
	CHECK_CMP(sample.raw_size, >=, 8);
	memcpy(payload, sample.raw, sizeof(payload));
	CHECK_EQ(payload[0], PAYLOAD);
	CHECK_EQ(payload[1], 7);
}

ABI_CASE("config.sw.bpf_output", "what a program writes arrives as the raw data of a sample")
{
	struct perf_event_attr attr = output_attr();
	int trigger = open_rename(1), map, fd = open_output(&attr, abi_first_cpu(), &map);
	struct ring ring = MAP(fd, 1);

	CHECK_OK(ioctl(trigger, PERF_EVENT_IOC_SET_BPF, load_writer(map)));
	START(trigger);
	name("write it");
	STOP(trigger);
	check_output(&ring, &attr, fd);
	CHECK(NEXT_OF(&ring, PERF_RECORD_SAMPLE) == NULL);
}

static void rename_when_told(void *gate)
{
	abi_wait(gate);
	usleep(100000);
	name("write it");
}

ABI_CASE("config.sw.bpf_output overflow.poll", "who waits is woken by what others have it written")
{
	struct perf_event_attr attr = output_attr();
	int trigger = open_rename(1), map, fd = open_output(&attr, abi_first_cpu(), &map);
	struct ring ring = MAP(fd, 1);
	struct gate gate = abi_gate();
	pid_t child = SPAWN(rename_when_told, &gate);
	struct pollfd one = {.fd = fd, .events = POLLIN};

	CHECK_OK(ioctl(trigger, PERF_EVENT_IOC_SET_BPF, load_writer(map)));
	START(trigger);
	abi_pass(&gate);
	CHECK_EQ(poll(&one, 1, -1), 1);
	STOP(trigger);
	CHECK_EQ(one.revents, POLLIN);
	check_output(&ring, &attr, fd);
	JOIN(child);
}
