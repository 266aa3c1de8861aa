// SPDX-License-Identifier: MIT
/*
 * What can be measured, found out by doing it.
 *
 * An event that opens is not yet one that works: virtual machines show counters that stand still
 * and debug registers that never fire. Where a fresh event can be made to happen at once (a store
 * to a watched word, a page touched for the first time) the row does so and looks at the number.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/hw_breakpoint.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/error.h"
#include "lib/event/probe.h"
#include "lib/event/tracepoint.h"
#include "lib/probe/attr_open.h"
#include "lib/probe/breakpoint.h"
#include "lib/probe/refusal/refusal.h"
#include "lib/readfile.h"

struct trial;

/* Returns 0, or the negative errno, with the reason and the verdict in the trial. */
typedef int (*try_function)(struct trial *trial);

struct row {
	const char *name, *what;
	enum tally_ability_group group;
	bool pmu;
	try_function try;
	uint32_t type; /* for try_open() and try_count() */
	uint64_t config;
};

struct trial {
	const struct row *row;
	const struct tally_system *system;
	struct tally_ability *ability;
	enum tally_verdict verdict;
};

/* What every event here starts from: the caller's own user code. */
static struct perf_event_attr own_code(uint32_t type, uint64_t config)
{
	return (struct perf_event_attr){
		.type = type,
		.size = sizeof(struct perf_event_attr),
		.config = config,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

static int refused(struct trial *trial, int code, const struct tly_attr_copy *copy, pid_t pid,
		   int cpu, unsigned long flags)
{
	struct tly_refusal refusal = {
		.code = code,
		.attr = copy,
		.pid = pid,
		.cpu = cpu,
		.group_fd = -1,
		.flags = flags,
		.system = trial->system,
	};

	trial->verdict = tly_refusal_cause(&refusal, &trial->ability->error);
	return code;
}

static int open_event(struct trial *trial, const struct perf_event_attr *attr, pid_t pid, int cpu,
		      unsigned long flags)
{
	struct tly_attr_copy copy;
	int fd = trial->system->syscall_error;

	tly_attr_copy(&copy, attr);
	if (trial->system->has_syscall)
		fd = tly_attr_try(&copy, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? refused(trial, fd, &copy, pid, cpu, flags) : fd;
}

static int open_and_close(struct trial *trial, const struct perf_event_attr *attr, pid_t pid,
			  int cpu)
{
	int fd = open_event(trial, attr, pid, cpu, 0);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* What is not the kernel's refusal of an event. */
static int fail(struct trial *trial, enum tally_verdict verdict, int code, const char *what,
		const char *remedy)
{
	trial->verdict = verdict;
	tly_error(&trial->ability->error, code, "%s", what);
	tly_error_remedy(&trial->ability->error, "%s", remedy);
	return code;
}

static int try_open(struct trial *trial)
{
	struct perf_event_attr attr = own_code(trial->row->type, trial->row->config);

	return open_and_close(trial, &attr, 0, -1);
}

/* A processor that runs this code counts something: a zero is a counter that stands still. */
static int try_count(struct trial *trial)
{
	struct perf_event_attr attr = own_code(trial->row->type, trial->row->config);
	uint64_t count = 0;
	ssize_t n;
	int fd = open_event(trial, &attr, 0, -1, 0);

	if (fd < 0)
		return fd;
	n = read(fd, &count, sizeof(count));
	close(fd);
	if (n == sizeof(count) && count > 0)
		return 0;
	return fail(trial, TALLY_CANNOT, -ENODATA, "it opens, but counts nothing",
		    "the hypervisor's PMU stands still: ask for a bare-metal machine");
}

static int no_tracefs(struct trial *trial)
{
	const struct tally_system *system = trial->system;
	struct tally_error *err = &trial->ability->error;
	char events[sizeof(system->tracefs) + 8];

	trial->verdict = TALLY_MAY_NOT;
	if (system->tracefs[0]) {
		snprintf(events, sizeof(events), "%s/events", system->tracefs);
		return tly_tracepoint_refused(err, events);
	}
	if (access("/sys/kernel/tracing", F_OK))
		return fail(trial, TALLY_CANNOT, -ENOENT, "this kernel has no tracefs",
			    "run a kernel built with CONFIG_TRACING=y");
	tly_tracepoint_no_tracefs(err);
	if (system->container && !system->cap_sys_admin)
		tly_error_remedy(err, "start the container with "
				      "-v /sys/kernel/tracing:/sys/kernel/tracing");
	return err->code;
}

static int try_tracepoint(struct trial *trial)
{
	static const char *const names[] = {"sched/sched_switch", "raw_syscalls/sys_enter"};
	struct perf_event_attr attr = own_code(PERF_TYPE_TRACEPOINT, 0);
	char path[PATH_MAX];
	uint64_t id;

	/* Tracepoints are hit in kernel mode: without it all of them count zero. */
	attr.exclude_kernel = 0;
	if (!trial->system->tracefs_readable)
		return no_tracefs(trial);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/events/%s/id", trial->system->tracefs, names[i]);
		if (tly_read_number(path, &id))
			continue;
		attr.config = id;
		return open_and_close(trial, &attr, 0, -1);
	}
	return fail(trial, TALLY_CANNOT, -ENOENT, "tracefs has none of the common tracepoints",
		    "run a kernel built with CONFIG_FTRACE=y");
}

static int find_unit(struct trial *trial, const char *name, uint32_t *type)
{
	char path[PATH_MAX];
	uint64_t value;

	snprintf(path, sizeof(path), TLY_UNITS "/%s/type", name);
	if (tly_read_number(path, &value)) {
		trial->verdict = TALLY_CANNOT;
		return tly_probe_no_unit(&trial->ability->error, name);
	}
	*type = (uint32_t)value;
	return 0;
}

static int try_kprobe(struct trial *trial)
{
	/* Functions that a kernel of any age has; some configurations lack one or the other. */
	static const char *const functions[] = {"vfs_read", "do_exit", "do_sys_open"};
	struct perf_event_attr attr = own_code(0, 0);
	uint32_t type = 0;
	int rc;

	rc = find_unit(trial, "kprobe", &type);
	attr.type = type;
	attr.exclude_kernel = 0;
	attr.disabled = 1;
	for (size_t i = 0; !rc && i < sizeof(functions) / sizeof(functions[0]); i++) {
		attr.kprobe_func = (uintptr_t)functions[i];
		rc = open_and_close(trial, &attr, 0, -1);
		if (rc != -ENOENT && rc != -EINVAL)
			return rc;
		rc = i + 1 < sizeof(functions) / sizeof(functions[0]) ? 0 : rc;
	}
	return rc;
}

/* The file and the offset in it from which the code at @address was mapped. */
static int find_mapping(uintptr_t address, char path[static PATH_MAX], uint64_t *offset)
{
	char line[PATH_MAX + 128];
	FILE *maps = fopen("/proc/self/maps", "re");
	int rc = -ENOENT;

	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, from;
		int name = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &start, &end,
			   &from, &name) != 3 ||
		    address < start || address >= end || line[name] != '/')
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, PATH_MAX, "%s", line + name);
		*offset = address - start + from;
		rc = 0;
		break;
	}
	fclose(maps);
	return rc;
}

static int try_uprobe(struct trial *trial)
{
	struct perf_event_attr attr = own_code(0, 0);
	char path[PATH_MAX];
	uint64_t offset = 0;
	uint32_t type = 0;
	int rc;

	rc = find_unit(trial, "uprobe", &type);
	if (rc)
		return rc;
	rc = find_mapping((uintptr_t)try_uprobe, path, &offset);
	if (rc)
		return fail(trial, TALLY_MAY_NOT, rc, "/proc/self/maps does not show this program",
			    "mount /proc");
	attr.type = type;
	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = offset;
	attr.disabled = 1;
	return open_and_close(trial, &attr, 0, -1);
}

static int try_breakpoint(struct trial *trial)
{
	static const uint64_t watched;
	struct perf_event_attr attr = own_code(PERF_TYPE_BREAKPOINT, 0);
	int code;

	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = (uintptr_t)&watched;
	attr.bp_len = HW_BREAKPOINT_LEN_8;
	code = open_and_close(trial, &attr, 0, -1);
	if (code < 0 || tly_try_breakpoint() != TLY_BREAKPOINTS_FORGOTTEN)
		return code;
	return fail(trial, TALLY_CANNOT, -ENODATA, TLY_BREAKPOINT_NEVER_HIT,
		    TLY_BREAKPOINT_NEVER_HIT_WHY);
}

static int try_kernel(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);

	attr.exclude_kernel = 0;
	return open_and_close(trial, &attr, 0, -1);
}

/* Process 1 belongs to root, or in a container to whoever started it. */
static int try_others(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);

	snprintf(trial->ability->detail, sizeof(trial->ability->detail), "process 1 was tried");
	return open_and_close(trial, &attr, 1, -1);
}

static int try_system(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);

	return open_and_close(trial, &attr, -1, sched_getcpu());
}

static void show_path(struct trial *trial, int fd)
{
	struct tally_ability *ability = trial->ability;
	char path[32];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, ability->detail, sizeof(ability->detail) - 1);
	ability->detail[length > 0 ? length : 0] = '\0';
}

static int try_cgroup(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	struct tally_error err;
	int dir, fd;

	dir = tly_cgroup_open("/", &err);
	if (dir < 0)
		return fail(trial, TALLY_MAY_NOT, err.code, err.what,
			    trial->system->container && !trial->system->cap_sys_admin
				    ? "start the container with -v /sys/fs/cgroup:/sys/fs/cgroup:ro"
				    : err.remedy);
	show_path(trial, dir);
	fd = open_event(trial, &attr, dir, sched_getcpu(), PERF_FLAG_PID_CGROUP);
	close(dir);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* One sample of a page fault that is made to happen, through a ring buffer of one page. */
static int sample_page_fault(struct trial *trial, struct perf_event_attr *attr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *ring;
	volatile char *fresh;
	bool sampled;
	int fd;

	attr->sample_period = 1;
	fd = open_event(trial, attr, 0, -1, 0);
	if (fd < 0)
		return fd;
	ring = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		int code = -errno;

		close(fd);
		if (code == -EPERM)
			return fail(trial, TALLY_MAY_NOT, code,
				    "this user's budget of locked memory is used up",
				    "sudo sysctl kernel.perf_event_mlock_kb=2052, or ulimit -l "
				    "unlimited");
		return fail(trial, TALLY_CANNOT, code, "events open, but have no ring buffer",
			    "this kernel or sandbox does not map them");
	}
	fresh = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh != MAP_FAILED) {
		*fresh = 1;
		munmap((void *)fresh, page);
	}
	sampled = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE) > 0;
	munmap(ring, 2 * page);
	close(fd);
	if (sampled)
		return 0;
	return fail(trial, TALLY_CANNOT, -ENODATA, "events open, but no sample arrives",
		    "this kernel or sandbox does not fill ring buffers");
}

static int try_ring(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	return sample_page_fault(trial, &attr);
}

static int try_clock(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);

	attr.freq = 1;
	attr.sample_freq = 100;
	attr.sample_type = PERF_SAMPLE_IP;
	return open_and_close(trial, &attr, 0, -1);
}

static int try_callchain(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
	attr.exclude_callchain_kernel = 1;
	return sample_page_fault(trial, &attr);
}

static int try_stack(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr.sample_regs_user = 1;
	attr.sample_stack_user = 1024;
	return sample_page_fault(trial, &attr);
}

static int try_switches(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);

	attr.context_switch = 1;
	return open_and_close(trial, &attr, 0, -1);
}

static int try_branches(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);

	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
	return open_and_close(trial, &attr, 0, -1);
}

static int try_precise(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	int rc = -EOPNOTSUPP;

	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_IP;
	for (unsigned int level = 3; level > 0; level--) {
		attr.precise_ip = level;
		rc = open_and_close(trial, &attr, 0, -1);
		if (!rc) {
			snprintf(trial->ability->detail, sizeof(trial->ability->detail),
				 "up to level %u", level);
			break;
		}
	}
	return rc;
}

static int try_rdpmc(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct perf_event_mmap_page *header;
	bool allowed;
	int fd = open_event(trial, &attr, 0, -1, 0);

	if (fd < 0)
		return fd;
	header = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	allowed = header != MAP_FAILED && header->cap_user_rdpmc;
	if (header != MAP_FAILED)
		munmap((void *)header, page);
	close(fd);
	if (allowed)
		return 0;
	return fail(trial, TALLY_MAY_NOT, -EACCES, "the kernel does not let user code use rdpmc",
		    "echo 1 | sudo tee " TLY_UNITS "/cpu/rdpmc");
}

#define CACHE(id, op, result) ((id) | (op) << 8 | (result) << 16)

/* Retired instructions: 0xc0 in the architectural encodings of Intel and AMD, 8 in Arm's. */
#if defined(__aarch64__)
#define RAW_INSTRUCTIONS 0x08
#else
#define RAW_INSTRUCTIONS 0xc0
#endif

#define EVENT  TALLY_ABILITY_EVENT
#define SCOPE  TALLY_ABILITY_SCOPE
#define SAMPLE TALLY_ABILITY_SAMPLE

static const struct row rows[] = {
	{"hardware", "cycles, instructions, branches", EVENT, true, try_count, PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_INSTRUCTIONS},
	{"cache", "loads and misses of caches and TLBs", EVENT, true, try_open, PERF_TYPE_HW_CACHE,
	 CACHE(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_READ,
	       PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
	{"raw", "events by their number (rNNN)", EVENT, true, try_open, PERF_TYPE_RAW,
	 RAW_INSTRUCTIONS},
	{"software", "clocks, faults, context switches", EVENT, false, try_count,
	 PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"tracepoint", "named places in the kernel", EVENT, false, try_tracepoint},
	{"kprobe", "any function of the kernel", EVENT, false, try_kprobe},
	{"uprobe", "any function of a program", EVENT, false, try_uprobe},
	{"breakpoint", "accesses to an address", EVENT, false, try_breakpoint},
	{"bpf-output", "data that BPF programs hand out", EVENT, false, try_open,
	 PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
	{"dummy", "side-band records alone", EVENT, false, try_open, PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_DUMMY},

	{"user", "user code of one's own processes", SCOPE, false, try_open, PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_DUMMY},
	{"kernel", "the kernel's work for them", SCOPE, false, try_kernel},
	{"other-users", "processes of other users (-p)", SCOPE, false, try_others},
	{"system-wide", "everything on a processor (-a)", SCOPE, false, try_system},
	{"cgroup", "the processes of a cgroup (-G)", SCOPE, false, try_cgroup},

	{"ring-buffer", "samples of an event", SAMPLE, false, try_ring},
	{"clock", "samples by the clock, without a PMU", SAMPLE, false, try_clock},
	{"callchain", "callers by frame pointer", SAMPLE, false, try_callchain},
	{"stack-dump", "callers by DWARF", SAMPLE, false, try_stack},
	{"switches", "when tasks leave a processor", SAMPLE, false, try_switches},
	{"branch-stack", "the branches taken last", SAMPLE, true, try_branches},
	{"precise", "the exact instruction", SAMPLE, true, try_precise},
	{"rdpmc", "counts without a system call", SAMPLE, true, try_rdpmc},
};

size_t tally_abilities_count(void)
{
	return sizeof(rows) / sizeof(rows[0]);
}

/* With the call itself gone, what a trial would say first is not the reason. */
static int refuse_all(struct trial *trial)
{
	struct perf_event_attr attr = own_code(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	struct tly_attr_copy copy;

	tly_attr_copy(&copy, &attr);
	return refused(trial, trial->system->syscall_error, &copy, 0, -1, 0);
}

void tally_ability_probe(size_t index, const struct tally_system *system,
			 struct tally_ability *ability)
{
	const struct row *row = &rows[index];
	struct trial trial = {.row = row, .system = system, .ability = ability};
	int rc;

	*ability = (struct tally_ability){
		.name = row->name,
		.what = row->what,
		.group = row->group,
		.pmu = row->pmu,
	};
	rc = system->has_syscall ? row->try(&trial) : refuse_all(&trial);
	/* What refused one way of several is forgotten when another worked. */
	if (!rc)
		memset(&ability->error, 0, sizeof(ability->error));
	else
		ability->detail[0] = '\0';
	ability->verdict = rc ? trial.verdict : TALLY_CAN;
}
