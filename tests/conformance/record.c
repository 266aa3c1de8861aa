// SPDX-License-Identifier: MIT
/*
 * The records that are no samples: names, tasks, switches, namespaces. Those of mappings, cgroups
 * and BPF are in record_mmap.c, cgroup.c and bpf.c; LOST is in mmap.c, THROTTLE in overflow.c.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "track.h"
#include "workload.h"

static void name(const char *to)
{
	CHECK_OK(prctl(PR_SET_NAME, to));
}

/* ---- header and identity ---- */

ABI_CASE("record.header record.sample_id-trailer attr.sample_id_all attr.comm record.comm",
	 "type, misc, size; behind the body the identity in the documented order")
{
	struct perf_event_attr attr = abi_tracker();
	struct track t;
	const struct perf_event_header *header;
	const uint64_t *words;
	struct trailer trailer;

	attr.comm = 1;
	t = abi_track(&attr);
	name("header");
	header = NEXT_IS(&t, PERF_RECORD_COMM);
	CHECK_EQ(header->size, 8 + 8 + 8 + TRAILER_SIZE);
	trailer = TRAILER(&attr, header);
	CHECK_EQ(trailer.size, TRAILER_SIZE);
	CHECK_EQ(trailer.pid, getpid());
	CHECK_EQ(trailer.tid, getpid());
	CHECK(trailer.time != 0);
	CHECK_EQ(trailer.id, ID(t.fd));
	CHECK_EQ(trailer.stream_id, ID(t.fd));
	CHECK_CMP(trailer.cpu, <, 65536);
	CHECK_EQ(trailer.cpu_reserved, 0);
	words = abi_words(header);
	CHECK_EQ(words[header->size / 8 - 2], ID(t.fd)); /* IDENTIFIER is the last word */
}

static const struct identity {
	struct abi_row about;
	uint64_t sample_type;
	size_t size;
} identities[] = {
	{{"record.sample_id-trailer attr.sample_id_all", "tid: 8 bytes"}, PERF_SAMPLE_TID, 8},
	{{"record.sample_id-trailer", "time and cpu: 16"}, PERF_SAMPLE_TIME | PERF_SAMPLE_CPU, 16},
	{{"record.sample_id-trailer", "identifier: 8"}, PERF_SAMPLE_IDENTIFIER, 8},
	{{"record.sample_id-trailer", "fields of samples only: none"},
	 PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
	 0},
};

ABI_TABLE(identities)
{
	struct perf_event_attr attr = abi_tracker();

	attr.comm = 1;
	attr.sample_type = row->sample_type;
	for (int all = 0; all < 2; all++) {
		struct track t;
		const struct perf_event_header *header;

		attr.sample_id_all = all;
		t = abi_track(&attr);
		name("identity");
		header = NEXT_IS(&t, PERF_RECORD_COMM);
		CHECK_EQ(header->size, 8 + 8 + 16 + (all ? row->size : 0));
		CHECK_OK(close(t.fd));
		abi_unmap(&t.ring);
	}
}

/* ---- names ---- */

static const char *comm_of(const struct perf_event_header *header)
{
	return (const char *)(abi_words(header) + 1);
}

static void exec_nothing(void *arg)
{
	abi_wait(arg);
	abi_exec("nothing", 0);
}

ABI_CASE(
	"attr.comm record.comm record.misc.comm_exec record.misc.cpumode_unknown attr.comm_exec record.misc.bit13-alias",
	"prctl and the comm file, without the exec bit; cut to 15 characters")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	struct track t;
	int fd;

	attr.comm = 1;
	t = abi_track(&attr);
	name("by prctl");
	header = NEXT_IS(&t, PERF_RECORD_COMM);
	CHECK_EQ(abi_halves(header)[0], getpid());
	CHECK_EQ(abi_halves(header)[1], getpid());
	CHECK_EQ(strcmp(comm_of(header), "by prctl"), 0);
	CHECK_EQ(header->misc, PERF_RECORD_MISC_CPUMODE_UNKNOWN);
	fd = (int)CHECK_OK(open("/proc/self/comm", O_WRONLY));
	CHECK_OK(write(fd, "by file", 7));
	header = NEXT_IS(&t, PERF_RECORD_COMM);
	CHECK_EQ(strcmp(comm_of(header), "by file"), 0);
	CHECK_OK(write(fd, "by echo\n", 8));
	CHECK_EQ(strcmp(comm_of(NEXT_IS(&t, PERF_RECORD_COMM)), "by echo\n"), 0);
	CHECK_OK(write(fd, "", 0));
	CHECK_EQ(strcmp(comm_of(NEXT_IS(&t, PERF_RECORD_COMM)), ""), 0);
	name("by prctl");
	header = NEXT_IS(&t, PERF_RECORD_COMM);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_COMM_EXEC, 0);
	name("longer than a name may be");
	header = NEXT_IS(&t, PERF_RECORD_COMM);
	CHECK_EQ(strcmp(comm_of(header), "longer than a n"), 0);
	CHECK_EQ(header->size, 8 + 8 + 16 + TRAILER_SIZE);
	STOP(t.fd);
	name("unseen");
	CHECK(NEXT(&t.ring) == NULL);
}

ABI_CASE("attr.comm record.misc.comm_exec attr.comm_exec record.misc.bit13-alias",
	 "execve sets the exec bit")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	struct gate gate = abi_gate();
	pid_t pid = SPAWN(exec_nothing, &gate);
	struct ring ring;
	int fd;

	attr.comm = 1;
	attr.disabled = 0;
	fd = OPEN(&attr, pid, -1, -1);
	ring = MAP(fd, 8);
	abi_pass(&gate);
	JOIN(pid);
	header = EXPECT(&ring, PERF_RECORD_COMM);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_COMM_EXEC);
	CHECK_EQ(abi_halves(header)[0], pid);
	CHECK(comm_of(header)[0] != '\0');
}

/* ---- tasks ---- */

static void do_nothing(void *arg)
{
	(void)arg;
}

static void *no_thread_work(void *arg)
{
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	return NULL;
}

/* FORK and EXIT: pid, parent pid, tid, parent tid, time. */
static void check_task(const struct perf_event_header *header, pid_t pid, pid_t ppid, pid_t tid,
		       pid_t ptid)
{
	CHECK_EQ(header->size, 32 + TRAILER_SIZE);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_CPUMODE_UNKNOWN);
	CHECK_EQ(abi_halves(header)[0], pid);
	CHECK_EQ(abi_halves(header)[1], ppid);
	CHECK_EQ(abi_halves(header)[2], tid);
	CHECK_EQ(abi_halves(header)[3], ptid);
	CHECK(abi_words(header)[2] != 0);
}

static struct track track_tasks(bool inherit_stat)
{
	struct perf_event_attr attr = abi_tracker();
	int cpu = abi_first_cpu();

	abi_pin(0, cpu);
	attr.task = 1;
	attr.inherit = 1;
	attr.inherit_stat = inherit_stat;
	attr.read_format = PERF_FORMAT_ID;
	if (inherit_stat)
		attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	return abi_track_on(&attr, cpu);
}

ABI_CASE("attr.task record.fork record.exit record.misc.cpumode_unknown",
	 "a process: FORK when it begins, EXIT when it ends")
{
	struct track t = track_tasks(false);
	pid_t pid = SPAWN(do_nothing, NULL);

	JOIN(pid);
	check_task(EXPECT(&t.ring, PERF_RECORD_FORK), pid, getpid(), pid, getpid());
	check_task(EXPECT(&t.ring, PERF_RECORD_EXIT), pid, getpid(), pid, getpid());
}

ABI_CASE("attr.task record.fork record.exit",
	 "a thread: FORK names its process twice, EXIT the process's parent")
{
	struct track t = track_tasks(false);
	pthread_t thread;
	pid_t tid = 0;

	CHECK_EQ(pthread_create(&thread, NULL, no_thread_work, &tid), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	check_task(EXPECT(&t.ring, PERF_RECORD_FORK), getpid(), getpid(), tid, getpid());
	for (int i = 0; i < 1000; i++) { /* the join does not wait for the record */
		const struct perf_event_header *header = NEXT_OF(&t.ring, PERF_RECORD_EXIT);

		if (header) {
			check_task(header, getpid(), getppid(), tid, getppid());
			return;
		}
		usleep(1000);
	}
	FAIL("no EXIT of the thread");
}

static void fault_200(void *arg)
{
	(void)arg;
	work_faults(200);
}

ABI_CASE("attr.inherit_stat record.read", "with inherit and task each child leaves its own counts")
{
	struct perf_event_attr other = abi_software(PERF_COUNT_SW_DUMMY);
	struct track t = track_tasks(true);
	const struct perf_event_header *header;
	pid_t pid;

	/*
	 * The kernel may exchange the events of parent and child when it switches between them,
	 * and then has no copy left at the exit; an event that is not inherited prevents it.
	 */
	OPEN_SELF(&other);
	pid = SPAWN(fault_200, NULL);
	work_faults(5000); /* ours, if anybody mixed them up */
	JOIN(pid);
	header = EXPECT(&t.ring, PERF_RECORD_READ);
	CHECK_EQ(header->size, 8 + 8 + 16 + TRAILER_SIZE);
	CHECK_EQ(abi_halves(header)[0], pid);
	CHECK_EQ(abi_halves(header)[1], pid);
	CHECK_CMP(abi_words(header)[1], >=, 200);
	CHECK_CMP(abi_words(header)[1], <, 5000);
	CHECK_EQ(abi_words(header)[2], ID(t.fd));
}

/* ---- switches ---- */

static void sleep_moment(void)
{
	const struct timespec moment = {.tv_nsec = 2000000};

	nanosleep(&moment, NULL);
}

ABI_CASE(
	"attr.context_switch record.switch record.misc.switch_out record.misc.switch_out_preempt record.misc.bit13-alias",
	"out and in alternate; a sleep is no preemption")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	unsigned int outs = 0, voluntary = 0;
	bool out = false;
	struct track t;

	attr.context_switch = 1;
	t = abi_track(&attr);
	for (int i = 0; i < 5; i++)
		sleep_moment();
	STOP(t.fd);
	while ((header = NEXT_OF(&t.ring, PERF_RECORD_SWITCH))) {
		bool is_out = header->misc & PERF_RECORD_MISC_SWITCH_OUT;

		CHECK_EQ(header->size, 8 + TRAILER_SIZE);
		CHECK_EQ(header->misc & PERF_RECORD_MISC_CPUMODE_MASK,
			 PERF_RECORD_MISC_CPUMODE_UNKNOWN);
		CHECK(is_out != out);
		if (!is_out)
			CHECK_EQ(header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, 0);
		voluntary += is_out && !(header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
		out = is_out;
		outs += is_out;
	}
	CHECK_CMP(outs, >=, 5);
	CHECK_CMP(voluntary, >=, 5);
}

static void spin_until_killed(void *arg)
{
	abi_pin(0, *(int *)arg);
	for (;;)
		work_spin(10000000);
}

ABI_CASE("record.misc.switch_out_preempt", "two busy tasks on one processor preempt each other")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	int cpu = abi_first_cpu();
	struct track t;

	SPAWN(spin_until_killed, &cpu);
	abi_pin(0, cpu);
	attr.context_switch = 1;
	t = abi_track(&attr);
	for (int i = 0; i < 500; i++) {
		work_spin(10000000);
		while ((header = NEXT_OF(&t.ring, PERF_RECORD_SWITCH)))
			if (header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) {
				CHECK(header->misc & PERF_RECORD_MISC_SWITCH_OUT);
				return;
			}
	}
	FAIL("no preemption in 5 s of two busy tasks");
}

ABI_CASE("record.switch_cpu_wide attr.context_switch",
	 "on a processor the record names the other task")
{
	struct perf_event_attr attr = abi_tracker();
	int cpu = abi_first_cpu(), fd;
	const struct perf_event_header *header;
	bool left = false, came = false;
	struct ring ring;

	NEED_RIGHTS();
	attr.context_switch = 1;
	fd = OPEN(&attr, -1, cpu, -1);
	ring = MAP(fd, 256);
	abi_pin(0, cpu);
	START(fd);
	sleep_moment();
	sleep_moment();
	STOP(fd);
	while ((header = NEXT_OF(&ring, PERF_RECORD_SWITCH_CPU_WIDE))) {
		struct trailer trailer = TRAILER(&attr, header);
		bool out = header->misc & PERF_RECORD_MISC_SWITCH_OUT;

		CHECK_EQ(header->size, 8 + 8 + TRAILER_SIZE);
		if (trailer.pid != (uint32_t)getpid())
			continue;
		/* the other one is not us, and one that is running has a process */
		CHECK(abi_halves(header)[1] != (uint32_t)getpid());
		left |= out;
		came |= !out;
	}
	CHECK(left && came);
}

/* ---- namespaces ---- */

static const char *const namespace_files[] = {
	"/proc/self/ns/net",  "/proc/self/ns/uts", "/proc/self/ns/ipc",	   "/proc/self/ns/pid",
	"/proc/self/ns/user", "/proc/self/ns/mnt", "/proc/self/ns/cgroup",
};

ABI_CASE("attr.namespaces record.namespaces record.namespaces.index",
	 "seven pairs of device and inode, as /proc/self/ns has them")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	const uint64_t *words;
	struct track t;

	abi_need_root();
	attr.namespaces = 1;
	t = abi_track(&attr);
	if (unshare(CLONE_NEWUTS))
		CANNOT("no UTS namespaces");
	header = NEXT_IS(&t, PERF_RECORD_NAMESPACES);
	CHECK_EQ(header->size, 136 + TRAILER_SIZE);
	CHECK_EQ(abi_halves(header)[0], getpid());
	CHECK_EQ(abi_halves(header)[1], getpid());
	words = abi_words(header);
	CHECK_EQ(words[1], NR_NAMESPACES);
	CHECK_EQ(words[1], 7);
	for (int i = 0; i < 7; i++) {
		struct stat file;

		if (stat(namespace_files[i], &file))
			continue; /* a kernel without this kind: zeros */
		CHECK_EQ(words[2 + 2 * i], file.st_dev);
		CHECK_EQ(words[3 + 2 * i], file.st_ino);
	}
}

ABI_CASE("record.namespaces", "a fork tells them too")
{
	struct perf_event_attr attr = abi_tracker();
	int cpu = abi_first_cpu();
	struct track t;
	pid_t pid;

	NEED_RIGHTS();
	abi_pin(0, cpu);
	attr.namespaces = 1;
	attr.inherit = 1;
	t = abi_track_on(&attr, cpu);
	pid = SPAWN(do_nothing, NULL);
	JOIN(pid);
	CHECK_EQ(abi_halves(EXPECT(&t.ring, PERF_RECORD_NAMESPACES))[0], pid);
}

/* ---- the rest ---- */

ABI_CASE(
	"record.misc.cpumode record.misc.ext_reserved record.misc.proc_map_parse_timeout record.header",
	"one mode at a time, no bit that nobody may set, known types only")
{
	struct perf_event_attr attr = abi_tracker();
	const struct perf_event_header *header;
	unsigned int seen = 0;
	struct track t;
	pid_t pid;

	abi_pin(0, abi_first_cpu());
	attr.mmap = attr.mmap_data = attr.mmap2 = attr.comm = attr.task = 1;
	attr.context_switch = attr.inherit = 1;
	t = abi_track_on(&attr, abi_first_cpu());
	pid = SPAWN(do_nothing, NULL);
	for (int i = 0; i < 2; i++)
		CHECK(mmap(NULL, 4096, PROT_READ | (i ? PROT_EXEC : 0), MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0) != MAP_FAILED);
	name("everything");
	sleep_moment();
	JOIN(pid);
	while ((header = NEXT(&t.ring))) {
		CHECK_CMP(header->misc & PERF_RECORD_MISC_CPUMODE_MASK, <=,
			  PERF_RECORD_MISC_GUEST_USER);
		CHECK_EQ(header->misc & PERF_RECORD_MISC_EXT_RESERVED, 0);
		CHECK_EQ(header->misc & PERF_RECORD_MISC_PROC_MAP_PARSE_TIMEOUT, 0);
		CHECK_CMP(header->type, >=, 1);
		CHECK_CMP(header->type, <, 64);
		CHECK_EQ(TRAILER(&attr, header).id, ID(t.fd));
		seen++;
	}
	CHECK_CMP(seen, >=, 8);
}

/* Opening an event on a trace point that nobody uses turns a branch of the kernel on. */
static const char *const rare_tracepoints[] = {
	"oom/mark_victim",    "alarmtimer/alarmtimer_cancel",  "fuse/fuse_request_send",
	"ksm/ksm_start_scan", "hugetlbfs/hugetlbfs_fallocate",
};

ABI_CASE("attr.text_poke record.text_poke", "the bytes of kernel code before and after a change")
{
	struct perf_event_attr attr = abi_tracker(), point = abi_attr(PERF_TYPE_TRACEPOINT, 0);
	const struct perf_event_header *header = NULL;
	const uint16_t *lengths;
	struct track t;

	abi_need_root();
	attr.text_poke = 1;
	attr.exclude_kernel = 0;
	t = abi_track(&attr);
	for (size_t i = 0; i < sizeof(rare_tracepoints) / sizeof(rare_tracepoints[0]) && !header;
	     i++) {
		point.config = abi_tracepoint(rare_tracepoints[i]);
		CHECK_OK(close(OPEN_SELF(&point)));
		header = NEXT_OF(&t.ring, PERF_RECORD_TEXT_POKE);
	}
	if (!header)
		CANNOT("switching trace points on changes no kernel code");
	lengths = (const uint16_t *)(const void *)(abi_words(header) + 1);
	CHECK(abi_words(header)[0] >> 63); /* kernel addresses are in the upper half */
	CHECK_CMP(lengths[0], >, 0);
	CHECK_CMP(lengths[1], >, 0);
	CHECK_EQ(header->size, 8 + (8 + 4 + lengths[0] + lengths[1] + 7) / 8 * 8 + TRAILER_SIZE);
	CHECK(memcmp(lengths + 2, (const char *)(lengths + 2) + lengths[0], lengths[0]) != 0);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL);
}
