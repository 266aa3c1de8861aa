// SPDX-License-Identifier: MIT
/* Random calls about events, and about the memory that they are mapped to. */
#include "hostile_calls.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/conformance/workload.h"

/* ---- events ---- */

static uint64_t any_config(uint32_t type)
{
	switch (type) {
	case PERF_TYPE_HW_CACHE:
		return below(9) | below(4) << 8 | below(3) << 16;
	case PERF_TYPE_RAW:
		if (one_in(2))
			return (uint64_t)below(40) << 48; /* our own codes */
		return (uint64_t[]){0xc0, 0x3c, 0xc4, 0xc5, 0x2e41, 0x2e4f, 0x13c}[below(7)];
	default:
		return below(13);
	}
}

static void any_breakpoint(struct perf_event_attr *attr)
{
	uintptr_t places[] = {(uintptr_t)scratch, (uintptr_t)work_called, (uintptr_t)work_store8,
			      (uintptr_t)any_pointer(8), (uintptr_t)&places};

	attr->config = 0;
	attr->bp_type = 1 + below(4);
	attr->bp_addr = PICK(places);
	attr->bp_len = attr->bp_type == HW_BREAKPOINT_X ? sizeof(long) : 1U << below(4);
}

static void any_sampling(struct perf_event_attr *attr)
{
	static const uint64_t periods[] = {1,	 2,    3,      7,	   100,
					   1000, 4096, 100003, 1ULL << 40, INT64_MAX};
	uint64_t types[] = {0, draw() & 0x1ffffff, draw() & 0x1ff, PERF_SAMPLE_CALLCHAIN,
			    PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_IP};

	attr->sample_period = one_in(10) ? any_number() : PICK(periods);
	if (one_in(4)) {
		attr->freq = 1;
		attr->sample_freq = 1 + any_number() % 20000;
	}
	attr->sample_type = PICK(types);
	attr->sample_regs_user = one_in(2) ? draw() & 0xff0fff : 0;
	attr->sample_regs_intr = one_in(2) ? draw() & 0xff0fff : 0;
	attr->sample_stack_user = one_in(2) ? below(64) * 1024 : 0;
	attr->branch_sample_type = one_in(2) ? 1U << below(18) | PERF_SAMPLE_BRANCH_USER : 0;
	attr->wakeup_events = below(5);
	attr->watermark = one_in(3);
	attr->aux_watermark = one_in(20) ? (uint32_t)any_number() : 0;
	attr->aux_sample_size = one_in(10) ? (uint32_t)any_number() : 0;
	attr->sigtrap = one_in(12);
	attr->write_backward = one_in(10);
}

static uint32_t type_of(const char *unit)
{
	char path[64];
	int type;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", unit);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%d", &type) != 1)
		type = PERF_TYPE_MAX;
	if (file)
		fclose(file);
	return (uint32_t)type;
}

/* Of the unit that traces; there is none natively. */
static uint32_t trace_type(void)
{
	static uint32_t type;

	if (!type)
		type = type_of("intel_bts");
	return type;
}

/* Of functions that are called often, or of anything. */
static void any_probe(struct perf_event_attr *attr)
{
	extern const char __executable_start[];
	static uint32_t type;
	const uintptr_t places[] = {(uintptr_t)work_called, (uintptr_t)work_store8,
				    (uintptr_t)work_calls, (uintptr_t)do_read,
				    (uintptr_t)any_number};

	if (!type)
		type = type_of("uprobe");
	attr->type = type;
	attr->config = below(2);
	attr->uprobe_path = (uintptr_t) "/proc/self/exe";
	/* As it is laid out, the offset in the file. */
	attr->probe_offset = PICK(places) - (uintptr_t)__executable_start;
	if (one_in(10))
		attr->probe_offset = any_number();
	if (one_in(20))
		attr->uprobe_path = (uintptr_t)any_pointer(PAGE);
}

static struct perf_event_attr any_attr(void)
{
	static const uint32_t types[] = {
		PERF_TYPE_HARDWARE,   PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, PERF_TYPE_SOFTWARE,
		PERF_TYPE_TRACEPOINT, PERF_TYPE_HW_CACHE, PERF_TYPE_RAW,      PERF_TYPE_BREAKPOINT};
	struct perf_event_attr attr = {.type = PICK(types), .size = sizeof(attr)};

	if (one_in(8))
		attr.type = trace_type();
	attr.config = any_config(attr.type);
	if (attr.type == PERF_TYPE_BREAKPOINT)
		any_breakpoint(&attr);
	else if (one_in(6))
		any_probe(&attr);
	if (one_in(2))
		any_sampling(&attr);
	attr.read_format = one_in(20) ? draw() : below(32);
	attr.exclude_kernel = !one_in(10);
	attr.exclude_hv = 1;
	attr.disabled = one_in(2);
	attr.inherit = one_in(3);
	attr.inherit_thread = one_in(20);
	attr.inherit_stat = one_in(6);
	attr.pinned = one_in(8);
	attr.exclusive = one_in(12);
	attr.enable_on_exec = one_in(8);
	attr.remove_on_exec = attr.sigtrap || one_in(8);
	attr.mmap = one_in(4);
	attr.mmap2 = one_in(4);
	attr.mmap_data = one_in(6);
	attr.build_id = one_in(6);
	attr.comm = one_in(4);
	attr.task = one_in(4);
	attr.context_switch = one_in(8);
	attr.namespaces = one_in(8);
	attr.cgroup = one_in(8);
	attr.sample_id_all = one_in(2);
	attr.precise_ip = below(4) & 3;
	if (one_in(12)) {
		attr.use_clockid = 1;
		attr.clockid = (int)below(14);
	}
	if (one_in(12))
		((unsigned char *)&attr)[below(sizeof(attr))] = (unsigned char)draw();
	return attr;
}

/* Events that send signals or want the PMU for themselves are for nobody else. */
static pid_t any_task(const struct perf_event_attr *attr)
{
	if (attr->sigtrap || attr->exclusive)
		return 0;
	switch (below(10)) {
	case 0:
		return kids[below(KIDS)];
	case 1:
		return shared->bystander;
	case 2:
		return shared->callers[below(CALLERS)].pid;
	case 3:
		return -1;
	case 4:
		return one_in(2) ? (pid_t)any_number() : (pid_t)syscall(SYS_gettid);
	default:
		return 0;
	}
}

void do_open(void)
{
	unsigned int slot = below(FDS);
	struct perf_event_attr attr = any_attr(), *given = &attr;
	pid_t task = any_task(&attr);
	int cpu = one_in(4) ? (int)below(4) : -1, group = one_in(3) ? some_fd() : -1;
	unsigned long flags = one_in(8) ? below(16) : PERF_FLAG_FD_CLOEXEC;

	if (one_in(30))
		cpu = (int)any_number();
	if (one_in(30))
		flags = draw();
	if (one_in(40))
		given = any_pointer(sizeof(attr));
	if (given != &attr)
		task = 0; /* whatever is there may be like that */
	if (fds[slot] >= 0)
		close(fds[slot]);
	fds[slot] = (int)syscall(SYS_perf_event_open, given, task, cpu, group, flags);
}

void do_read(void)
{
	struct iovec vectors[3];
	size_t size = one_in(8) ? any_number() : below(PAGE);

	if (!one_in(4)) {
		/* No length of anybody's leads beyond what may be written. */
		char *to = any_pointer(PAGE);

		if (read(any_fd(), to, size % PAGE) < 0)
			return;
		return;
	}
	for (unsigned int i = 0; i < 3; i++)
		vectors[i] = (struct iovec){any_pointer(64), below(64)};
	if (readv(some_fd(), vectors, (int)below(5) - 1) < 0)
		return;
}

void do_ioctl(void)
{
	static const unsigned long requests[] = {
		PERF_EVENT_IOC_ENABLE,
		PERF_EVENT_IOC_DISABLE,
		PERF_EVENT_IOC_REFRESH,
		PERF_EVENT_IOC_RESET,
		PERF_EVENT_IOC_PERIOD,
		PERF_EVENT_IOC_SET_OUTPUT,
		PERF_EVENT_IOC_SET_FILTER,
		PERF_EVENT_IOC_ID,
		PERF_EVENT_IOC_SET_BPF,
		PERF_EVENT_IOC_PAUSE_OUTPUT,
		PERF_EVENT_IOC_QUERY_BPF,
		PERF_EVENT_IOC_MODIFY_ATTRIBUTES,
		FIONREAD,
		FIOCLEX,
		FIONBIO,
	};
	unsigned long request = PICK(requests);
	int fd = some_fd();

	if (one_in(30))
		request = _IO('$', below(20));
	switch (below(5)) {
	case 0:
		ioctl(fd, request, any_pointer(256));
		return;
	case 1:
		ioctl(fd, request, one_in(2) ? any_number() : (unsigned long)some_fd());
		return;
	case 2:
		*(struct perf_event_attr *)scratch = any_attr();
		ioctl(fd, request, scratch);
		return;
	case 3:
		*(uint64_t *)scratch = any_number();
		ioctl(fd, request, scratch);
		return;
	default:
		ioctl(fd, request, below(3));
	}
}

/* ---- memory ---- */

void do_map(void)
{
	static const int prots[] = {PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE,
				    PROT_NONE, PROT_READ | PROT_EXEC};
	unsigned int slot = below(MAPS);
	int fd = some_fd();
	size_t size = (size_t)PAGE * (one_in(4) ? below(20) : 1 + (1U << below(6)));
	off_t offset = one_in(8) ? (off_t)below(70) * PAGE : 0;
	char *at;

	if (maps[slot].at)
		return;
	if (one_in(30))
		size = any_number();
	if (one_in(30))
		offset = (off_t)any_number();
	at = mmap(NULL, size, PICK(prots), one_in(12) ? MAP_PRIVATE : MAP_SHARED, fd, offset);
	if (at != MAP_FAILED) {
		maps[slot].at = at;
		maps[slot].size = size;
		maps[slot].fd = fd;
	}
}

/* Behind a ring, if that is still there. */
void do_map_aux(void)
{
	const unsigned int slot = below(MAPS), ring = below(MAPS);
	volatile struct perf_event_mmap_page *page = (void *)maps[ring].at;
	const off_t offset = (off_t)below(70) * PAGE;
	const size_t size = (size_t)PAGE << below(6);
	char *at;

	if (maps[slot].at || !page || sigsetjmp(back, 1))
		goto out;
	poking = true;
	page->aux_offset = (uint64_t)offset;
	page->aux_size = size;
	poking = false;
	at = mmap(NULL, size, one_in(3) ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED,
		  maps[ring].fd, offset);
	if (at != MAP_FAILED) {
		maps[slot].at = at;
		maps[slot].size = size;
		maps[slot].fd = maps[ring].fd;
	}
out:
	poking = false;
}

/* Mappings can be half gone, as whole ones of memory can. */
void do_change_map(void)
{
	unsigned int slot = below(MAPS);
	char *at = maps[slot].at;
	size_t size = maps[slot].size, part = one_in(2) ? size : below(20) * (size_t)PAGE;
	size_t from = one_in(3) ? below(8) * (size_t)PAGE : 0;
	void *moved;

	if (!at || from > size)
		return;
	if (part > size - from)
		part = size - from;
	switch (below(6)) {
	case 0:
		mprotect(at + from, part, (int)below(8) & ~PROT_EXEC);
		return;
	case 1:
		madvise(at + from, part, (int)below(26));
		return;
	case 2:
		msync(at + from, part, MS_SYNC);
		return;
	case 3:
		moved = mremap(at, size, one_in(2) ? size : part + PAGE, MREMAP_MAYMOVE);
		if (moved != MAP_FAILED)
			maps[slot].at = moved;
		return;
	case 4:
		moved = mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (moved != at)
			return;
		break;
	default:
		if (munmap(at + from, part) < 0)
			return;
		/* The rest; what is gone may be another thread's by now. */
		munmap(at, from);
		munmap(at + from + part, size - from - part);
		maps[slot].at = NULL;
		return;
	}
	munmap(at, size);
	maps[slot].at = NULL;
}

/* Everything that can be written of a ring, data_tail among it. */
void do_poke(void)
{
	unsigned int slot = below(MAPS);
	volatile char *at = maps[slot].at;
	size_t size = maps[slot].size;

	if (!at || size > 1 << 20 || sigsetjmp(back, 1))
		goto out;
	poking = true;
	for (unsigned int i = 0; i < 32; i++)
		at[draw() % size] = (char)draw();
	((volatile struct perf_event_mmap_page *)at)->data_tail =
		one_in(2) ? any_number() : ((volatile struct perf_event_mmap_page *)at)->data_head;
	((volatile struct perf_event_mmap_page *)at)->aux_tail = any_number();
	((volatile struct perf_event_mmap_page *)at)->aux_offset = below(64) * (uint64_t)PAGE;
	((volatile struct perf_event_mmap_page *)at)->aux_size = PAGE << below(4);
out:
	poking = false;
}

void do_rdpmc(void)
{
	uint32_t low, high;

	if (sigsetjmp(back, 1)) {
		poking = false;
		return;
	}
	poking = true;
	__asm__ volatile("rdpmc"
			 : "=a"(low), "=d"(high)
			 : "c"(one_in(2) ? below(40) : (uint32_t)any_number()));
	poking = false;
}
