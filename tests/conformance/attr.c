// SPDX-License-Identifier: MIT
/* What the fields and bits of the attr change about an event, and what they refuse. */
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

#define BIT_OF(name)                                                                               \
	static void set_##name(struct perf_event_attr *attr)                                       \
	{                                                                                          \
		attr->name = 1;                                                                    \
	}
BIT_OF(exclude_hv)
BIT_OF(exclude_idle)
BIT_OF(exclude_host)
BIT_OF(exclude_guest)
BIT_OF(inherit_stat)
BIT_OF(comm_exec)
BIT_OF(pinned)
BIT_OF(exclusive)
BIT_OF(config1)
BIT_OF(config2)

static void set_precise_1(struct perf_event_attr *attr)
{
	attr->precise_ip = 1;
}

static void set_precise_2(struct perf_event_attr *attr)
{
	attr->precise_ip = 2;
}

static void set_precise_3(struct perf_event_attr *attr)
{
	attr->precise_ip = 3;
}

static const struct harmless {
	struct abi_row about;
	void (*set)(struct perf_event_attr *attr);
} harmless[] = {
	{{"attr.exclude_hv", "a software event takes it and counts"}, set_exclude_hv},
	{{"attr.exclude_idle", "a software event takes it and counts"}, set_exclude_idle},
	{{"attr.exclude_host", "a software event takes it and counts"}, set_exclude_host},
	{{"attr.exclude_guest", "a software event takes it and counts"}, set_exclude_guest},
	{{"attr.inherit_stat", "taken without inherit"}, set_inherit_stat},
	{{"attr.comm_exec", "taken: the probe for PERF_RECORD_MISC_COMM_EXEC"}, set_comm_exec},
	{{"attr.pinned", "a leader takes it and counts"}, set_pinned},
	{{"attr.exclusive", "a leader takes it and counts"}, set_exclusive},
	{{"attr.precise_ip", "a software event takes 1"}, set_precise_1},
	{{"attr.precise_ip", "a software event takes 2"}, set_precise_2},
	{{"attr.precise_ip", "a software event takes 3"}, set_precise_3},
	{{"attr.config1", "a software event ignores it"}, set_config1},
	{{"attr.config2", "a software event ignores it"}, set_config2},
};

ABI_TABLE(harmless)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int fd;

	row->set(&attr);
	fd = OPEN_SELF(&attr);
	work_faults(1);
	START(fd);
	work_faults(7);
	STOP(fd);
	CHECK_CMP(VALUE(fd), >=, 7);
}

ABI_CASE("attr.pinned attr.exclusive errno.einval.group", "on a member of a group: EINVAL")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int leader = OPEN_SELF(&attr);

	attr.pinned = 1;
	CHECK_REFUSED(&attr, 0, -1, leader, 0, EINVAL);
	attr.pinned = 0;
	attr.exclusive = 1;
	CHECK_REFUSED(&attr, 0, -1, leader, 0, EINVAL);
	attr.exclusive = 0;
	OPEN(&attr, 0, -1, leader);
}

ABI_CASE("attr.pinned-error", "a pinned event without room reads 0 bytes until switched")
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fds[64], count = 0, broken = -1;
	uint64_t word;

	abi_need_hardware();
	attr.pinned = 1;
	attr.disabled = 0;
	while (count < 64 && broken < 0) {
		fds[count] = OPEN_SELF(&attr);
		work_spin(2000000);
		if (read(fds[count], &word, sizeof(word)) == 0)
			broken = fds[count];
		count++;
	}
	if (broken < 0)
		CANNOT("the PMU has room for 64 pinned events");
	for (int i = 0; i < count - 1; i++)
		CHECK_OK(close(fds[i]));
	START(broken);
	CHECK_EQ(read(broken, &word, sizeof(word)), 8);
}

ABI_CASE("attr.exclusive", "while an exclusive group is on the PMU no other group is")
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	uint64_t one[3], other[3];
	int exclusive, ordinary;

	abi_need_hardware();
	attr.read_format = TIMES;
	ordinary = OPEN_SELF(&attr);
	attr.exclusive = 1;
	exclusive = OPEN_SELF(&attr);
	START(exclusive);
	START(ordinary);
	work_spin(30000000);
	STOP(ordinary);
	STOP(exclusive);
	READ_WORDS(exclusive, one, 3);
	READ_WORDS(ordinary, other, 3);
	/* the two may take turns, but never run at once */
	CHECK_CMP(one[2] + other[2], <=, (one[1] > other[1] ? one[1] : other[1]) + 1000000);
}

/* ---- enabling ---- */

ABI_CASE("attr.disabled", "a disabled event has value and times 0; a clear bit starts at once")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t words[3];
	int fd;

	attr.read_format = TIMES;
	fd = OPEN_SELF(&attr);
	work_faults(5);
	READ_WORDS(fd, words, 3);
	CHECK_EQ(words[0], 0);
	CHECK_EQ(words[1], 0);
	CHECK_EQ(words[2], 0);
	START(fd);
	work_faults(5);
	READ_WORDS(fd, words, 3);
	CHECK_CMP(words[0], >=, 5);
	CHECK_CMP(words[1], >, 0);

	attr.disabled = 0;
	fd = OPEN_SELF(&attr);
	work_faults(5);
	READ_WORDS(fd, words, 3);
	CHECK_CMP(words[0], >=, 5);
	CHECK_CMP(words[1], >, 0);
}

ABI_CASE("attr.disabled-group", "an enabled member waits for its disabled leader")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int leader = OPEN_SELF(&attr), member;

	attr.disabled = 0;
	member = OPEN(&attr, 0, -1, leader);
	work_faults(5);
	CHECK_EQ(VALUE(member), 0);
	START(leader);
	work_faults(5);
	STOP(leader);
	CHECK_CMP(VALUE(member), >=, 5);
	CHECK_EQ(VALUE(member), VALUE(leader));
}

struct exec_child {
	struct gate go, ready;
};

static void wait_then_exec(void *arg)
{
	struct exec_child *child = arg;

	work_faults(1);
	abi_pass(&child->ready);
	abi_wait(&child->go);
	work_faults(1000); /* before the exec */
	abi_exec("faults", 40);
}

ABI_CASE("attr.enable_on_exec", "the exec of the measured task enables the event")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS), twin = attr;
	struct exec_child child = {abi_gate(), abi_gate()};
	pid_t pid = SPAWN(wait_then_exec, &child);
	uint64_t words[3];
	int fd, all;

	abi_wait(&child.ready);
	attr.enable_on_exec = 1;
	attr.read_format = TIMES;
	fd = OPEN(&attr, pid, -1, -1);
	twin.disabled = 0;
	all = OPEN(&twin, pid, -1, -1);
	READ_WORDS(fd, words, 3);
	CHECK_EQ(words[1], 0);
	abi_pass(&child.go);
	JOIN(pid);
	READ_WORDS(fd, words, 3);
	CHECK_CMP(words[0], >=, 40);
	CHECK_CMP(words[0], <=, VALUE(all) - 1000);
	CHECK_CMP(words[1], >, 0);
}

ABI_CASE("attr.enable_on_exec attr.remove_on_exec", "both together: EINVAL")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.enable_on_exec = 1;
	OPEN_SELF(&attr);
	attr.remove_on_exec = 1;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	attr.enable_on_exec = 0;
	OPEN_SELF(&attr);
}

/* ---- inheritance ---- */

static void faults_of_child(void *arg)
{
	work_faults(*(unsigned int *)arg);
}

static void grandchild_too(void *arg)
{
	unsigned int count = 100;

	(void)arg;
	work_faults(50);
	JOIN(SPAWN(faults_of_child, &count));
}

static void fault_when_told(void *arg)
{
	struct exec_child *child = arg;

	abi_pass(&child->ready);
	abi_wait(&child->go);
	work_faults(5000);
}

ABI_CASE("attr.inherit life.inherit-fold",
	 "later children and theirs count, earlier children do not")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct exec_child early = {abi_gate(), abi_gate()};
	pid_t before = SPAWN(fault_when_told, &early);
	int fd, alone;

	abi_wait(&early.ready);
	alone = OPEN_SELF(&attr);
	attr.inherit = 1;
	fd = OPEN_SELF(&attr);
	START(fd);
	START(alone);
	abi_pass(&early.go);
	JOIN(before);
	JOIN(SPAWN(grandchild_too, NULL));
	STOP(fd);
	STOP(alone);
	CHECK_CMP(VALUE(fd), >=, VALUE(alone) + 150);
	CHECK_CMP(VALUE(fd), <, 5000);
}

static void end_by_fault(void)
{
	signal(SIGSEGV, SIG_DFL);
	*(volatile char *)mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
}

static void end_by_pipe(void)
{
	int ends[2];

	signal(SIGPIPE, SIG_DFL);
	if (!pipe(ends) && !close(ends[0]) && write(ends[1], "", 1) > 0)
		_exit(1);
}

/* Its parent ends it. */
static void wait_for_end(void)
{
	signal(SIGTERM, SIG_DFL);
	for (;;)
		work_spin(1000);
}

static void *fault_and_spin(void *barrier)
{
	work_faults(3000);
	work_spin(50000000);
	if (barrier) {
		pthread_barrier_wait(barrier);
		for (;;)
			pause();
	}
	return NULL;
}

static int start_inherited(uint64_t config)
{
	struct perf_event_attr attr = abi_software(config);
	int fd;

	attr.inherit = 1;
	fd = OPEN_SELF(&attr);
	START(fd);
	return fd;
}

ABI_CASE("life.inherit-fold", "threads that end with their process leave what they have counted")
{
	pthread_barrier_t barrier;
	pthread_t thread;
	int fd, clock_fd, status;
	pid_t child;

	fd = start_inherited(PERF_COUNT_SW_PAGE_FAULTS);
	clock_fd = start_inherited(PERF_COUNT_SW_TASK_CLOCK);
	child = fork();
	if (!child) {
		pthread_barrier_init(&barrier, NULL, 3);
		pthread_create(&thread, NULL, fault_and_spin, NULL);
		pthread_join(thread, NULL);
		for (int i = 0; i < 2; i++)
			pthread_create(&thread, NULL, fault_and_spin, &barrier);
		pthread_barrier_wait(&barrier);
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
	CHECK_CMP(VALUE(fd), >=, 9000);
	CHECK_CMP(VALUE(fd), <, 11500);
	CHECK_CMP(VALUE(clock_fd), >=, 3 * 50000000);
}

ABI_CASE("life.inherit-fold", "a child that a signal ends leaves what it has counted")
{
	static const struct {
		void (*end)(void);
		int signal;
	} ends[] = {{end_by_fault, SIGSEGV},
		    {abort, SIGABRT},
		    {end_by_pipe, SIGPIPE},
		    {wait_for_end, SIGTERM},
		    {wait_for_end, SIGKILL}};
	uint64_t faults, time;
	int fd, clock_fd, status, done[2];
	pid_t child, waited;
	char byte;

	fd = start_inherited(PERF_COUNT_SW_PAGE_FAULTS);
	clock_fd = start_inherited(PERF_COUNT_SW_TASK_CLOCK);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		CHECK_EQ(pipe(done), 0);
		faults = VALUE(fd);
		time = VALUE(clock_fd);
		child = fork();
		if (!child) {
			setrlimit(RLIMIT_CORE, &(struct rlimit){0});
			work_faults(5000);
			work_spin(50000000);
			if (write(done[1], "", 1) == 1)
				ends[i].end();
			_exit(0);
		}
		CHECK_EQ(read(done[0], &byte, 1), 1);
		if (ends[i].end == wait_for_end)
			kill(child, ends[i].signal);
		/* By asking again and again, too. */
		do
			waited = waitpid(child, &status, i % 2 ? WNOHANG : 0);
		while (!waited);
		CHECK_EQ(waited, child);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == ends[i].signal);
		CHECK_CMP(VALUE(fd) - faults, >=, 5000);
		CHECK_CMP(VALUE(clock_fd) - time, >=, 5000000);
		close(done[0]);
		close(done[1]);
	}
}

ABI_CASE("attr.inherit-read-format read.group",
	 "inherit with PERF_FORMAT_GROUP opens and sums children")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	unsigned int count = 60;
	uint64_t words[3];
	int leader;

	attr.inherit = 1;
	attr.read_format = PERF_FORMAT_GROUP;
	leader = OPEN_SELF(&attr);
	attr.disabled = 0;
	OPEN(&attr, 0, -1, leader);
	START(leader);
	JOIN(SPAWN(faults_of_child, &count));
	STOP(leader);
	READ_WORDS(leader, words, 3);
	CHECK_EQ(words[0], 2);
	CHECK_CMP(words[1], >=, 60);
	CHECK_EQ(words[1], words[2]);
}

ABI_CASE("attr.inherit-read-format sample.read",
	 "inherit with PERF_SAMPLE_READ needs PERF_SAMPLE_TID")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_READ;
	OPEN_SELF(&attr);
	attr.inherit = 1;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	attr.sample_type |= PERF_SAMPLE_TID;
	if (perf_open(&attr, 0, -1, -1, 0) < 0) {
		CHECK_EQ(errno, EINVAL);
		CANNOT("inherit together with PERF_SAMPLE_READ came with Linux 6.12");
	}
}

ABI_CASE("attr.inherit-mmap", "an inheriting event maps a buffer only when bound to a processor")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	size_t length = 2 * (size_t)sysconf(_SC_PAGESIZE);
	int fd;

	attr.sample_period = 1;
	attr.inherit = 1;
	fd = OPEN_SELF(&attr);
	CHECK_ERRNO(mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EINVAL);
	fd = OPEN(&attr, 0, abi_first_cpu(), -1);
	MAP(fd, 1);
}

static void *faults_of_thread(void *arg)
{
	work_faults(*(unsigned int *)arg);
	return NULL;
}

ABI_CASE("attr.inherit_thread", "threads inherit, processes do not; without inherit: EINVAL")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	unsigned int of_thread = 300, of_child = 5000;
	pthread_t thread;
	int fd;

	attr.inherit_thread = 1;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	attr.inherit = 1;
	fd = OPEN_SELF(&attr);
	START(fd);
	CHECK_EQ(pthread_create(&thread, NULL, faults_of_thread, &of_thread), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	JOIN(SPAWN(faults_of_child, &of_child));
	STOP(fd);
	CHECK_CMP(VALUE(fd), >=, 300);
	CHECK_CMP(VALUE(fd), <, 5000);
}

/* ---- privilege levels ---- */

ABI_CASE("attr.exclude_user", "faults in user mode do not count")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	unsigned char *map = work_map(20);
	int fd;

	abi_need_kernel_mode();
	attr.exclude_kernel = 0;
	attr.exclude_user = 1;
	fd = OPEN_SELF(&attr);
	work_touch(map, 0, 1);
	START(fd);
	work_touch(map, 1, 19);
	STOP(fd);
	CHECK_CMP(VALUE(fd), <, 10); /* the kernel's own accesses may fault */

	attr.exclude_user = 0;
	attr.exclude_kernel = 1;
	fd = OPEN_SELF(&attr);
	map = work_map(20);
	START(fd);
	work_touch(map, 0, 20);
	STOP(fd);
	CHECK_CMP(VALUE(fd), >=, 20);
}

static void switches(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	for (int i = 0; i < 5; i++)
		nanosleep(&moment, NULL);
}

ABI_CASE("attr.exclude_kernel config.sw.context_switches",
	 "context switches happen in the kernel: 0 with it")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_CONTEXT_SWITCHES);
	int user_only = OPEN_SELF(&attr), all;

	START(user_only);
	switches();
	STOP(user_only);
	CHECK_EQ(VALUE(user_only), 0);
	abi_need_kernel_mode();
	attr.exclude_kernel = 0;
	all = OPEN_SELF(&attr);
	START(all);
	switches();
	STOP(all);
	CHECK_CMP(VALUE(all), >=, 5);
}

ABI_CASE("attr.exclude_idle", "a clock on a processor never samples the idle task")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_CPU_CLOCK);
	const struct timespec moment = {.tv_nsec = 100000000};
	const struct perf_event_header *header;
	int cpu = abi_first_cpu(), fd;
	unsigned int seen = 0;
	struct ring ring;

	abi_need_kernel_mode();
	attr.exclude_kernel = 0;
	attr.exclude_idle = 1;
	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_TID;
	fd = OPEN(&attr, -1, cpu, -1);
	ring = MAP(fd, 16);
	abi_pin(0, cpu);
	START(fd);
	work_spin(10000000);
	nanosleep(&moment, NULL); /* the processor is idle at least for a part of this */
	STOP(fd);
	while ((header = NEXT_OF(&ring, PERF_RECORD_SAMPLE))) {
		CHECK(SAMPLE(&attr, header).tid != 0);
		seen++;
	}
	CHECK_CMP(seen, >, 0);
}

/* ---- sampling ---- */

ABI_CASE("attr.sample_period life.counting-vs-sampling", "a sample for each period")
{
	static const unsigned int periods[] = {1, 2, 3, 7};

	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		volatile uint32_t word = 0;
		struct perf_event_attr attr =
			abi_breakpoint(HW_BREAKPOINT_W, &word, HW_BREAKPOINT_LEN_4);
		struct ring ring;
		int fd;

		attr.sample_period = periods[i];
		attr.sample_type = PERF_SAMPLE_IP;
		fd = OPEN_SELF(&attr);
		ring = MAP(fd, 1);
		START(fd);
		for (int hit = 0; hit < 21; hit++)
			work_store4(&word);
		STOP(fd);
		CHECK_EQ(VALUE(fd), 21);
		CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 21 / periods[i]);
		CHECK_OK(close(fd));
		abi_unmap(&ring);
	}
}

ABI_CASE("attr.sample_period life.counting-vs-sampling", "no sample with period 0")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct ring ring;
	int fd;

	attr.sample_type = PERF_SAMPLE_IP;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	START(fd);
	work_faults(10);
	STOP(fd);
	CHECK_CMP(VALUE(fd), >=, 10);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 0);
}

ABI_CASE("attr.sample_freq sysctl.max_sample_rate errno.einval.freq",
	 "the maximum rate opens, one more: EINVAL")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_CPU_CLOCK);

	attr.freq = 1;
	attr.sample_freq = (uint64_t)abi_sysctl("perf_event_max_sample_rate");
	OPEN_SELF(&attr);
	attr.sample_freq++;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	attr.freq = 0; /* a period of that many is fine */
	OPEN_SELF(&attr);
}

ABI_CASE("attr.sample_freq",
	 "a frequency on a clock samples, and twice the frequency about twice as often")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_TASK_CLOCK);
	unsigned int seen[2];

	attr.freq = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	for (int i = 0; i < 2; i++) {
		struct ring ring;
		int fd;

		attr.sample_freq = i ? 4000 : 500;
		fd = OPEN_SELF(&attr);
		ring = MAP(fd, 64);
		START(fd);
		work_spin(100000000);
		STOP(fd);
		seen[i] = DRAIN(&ring, PERF_RECORD_SAMPLE);
		CHECK_OK(close(fd));
		abi_unmap(&ring);
	}
	CHECK_CMP(seen[0], >, 0);
	CHECK_CMP(seen[1], >, 2 * seen[0]);
}

ABI_CASE("attr.freq", "freq with frequency 0 is a counting event")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t period = 10;
	int fd;

	attr.freq = 1;
	fd = OPEN_SELF(&attr);
	CHECK_ERRNO(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period), EINVAL);
	attr.sample_freq = 100;
	fd = OPEN_SELF(&attr);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
}

ABI_CASE("attr.sample_max_stack sysctl.max_stack errno.eoverflow",
	 "beyond perf_event_max_stack: EOVERFLOW, with call chains only")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	long limit = abi_sysctl("perf_event_max_stack");

	if (limit >= UINT16_MAX)
		CANNOT("perf_event_max_stack is %ld", limit);
	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	attr.sample_max_stack = (uint16_t)limit;
	OPEN_SELF(&attr);
	attr.sample_max_stack++;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EOVERFLOW);
	attr.sample_type = PERF_SAMPLE_IP;
	OPEN_SELF(&attr);
}

/* ---- refused to software events, or to ordinary users ---- */

ABI_CASE("attr.aux_output", "a software event: EOPNOTSUPP")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.aux_output = 1;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EOPNOTSUPP);
}

ABI_CASE("attr.sigtrap", "wants remove_on_exec and a task: EINVAL otherwise")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.sigtrap = 1;
	attr.sample_period = 1;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	attr.remove_on_exec = 1;
	OPEN_SELF(&attr);
	NEED_RIGHTS();
	CHECK_REFUSED(&attr, -1, abi_first_cpu(), -1, 0, EINVAL);
}

ABI_CASE("attr.namespaces", "refused to an ordinary user with EACCES")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_DUMMY);

	abi_drop_rights();
	OPEN_SELF(&attr);
	attr.namespaces = 1;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EACCES);
}

ABI_CASE("attr.context_switch", "open to an ordinary user who leaves the kernel out")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_DUMMY);

	abi_drop_rights();
	attr.context_switch = 1;
	OPEN_SELF(&attr);
}

ABI_CASE("sample.phys_addr", "refused to an ordinary user with EACCES")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	abi_drop_rights();
	abi_need_level(2, 2);
	OPEN_SELF(&attr);
	attr.sample_type = PERF_SAMPLE_PHYS_ADDR;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EACCES);
}
