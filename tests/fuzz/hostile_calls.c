// SPDX-License-Identifier: MIT
/*
 * The calls. What they are given is wrong more often than not, but never of a kind that would harm
 * a program on its own machine: no bad pointer leads to memory of this program, and no signal goes
 * to anybody who has not asked for it.
 */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/draw.h"
#include "tests/conformance/workload.h"

enum { FDS = 32, MAPS = 16, KIDS = 4, PAGE = 4096, SCRATCH = 16 * PAGE, THREADS = 4 };

/* Children of children of callers have none: or there would be more and more. */
enum { DEPTH = 2 };

static unsigned int me, depth;
static int fds[FDS];
static pid_t kids[KIDS];
static int epoll_fd;
static unsigned int threads;

/* Memory for answers, with nothing behind it; pages that cannot be written, and code. */
static char *scratch, *read_only;

/* Each thread has its own: what another one unmaps may be anything the next moment. */
static _Thread_local struct {
	char *at;
	size_t size;
	int fd;
} maps[MAPS];

_Thread_local uint64_t draw_state;
static _Thread_local sigjmp_buf back;
static _Thread_local volatile bool poking;

/* ---- choices ---- */

/* Of any magnitude. */
static uint64_t any_number(void)
{
	return draw() >> below(64);
}

static int some_fd(void)
{
	return fds[below(FDS)];
}

static int any_fd(void)
{
	switch (below(24)) {
	case 0:
		return -1;
	case 1:
		return (int)any_number();
	case 2:
		return 1000 + (int)below(30);
	case 3:
		return epoll_fd;
	case 4:
		return (int)below(64);
	default:
		return some_fd();
	}
}

/* Where @size bytes may be written, and if not, by nobody. */
static void *any_pointer(size_t size)
{
	static void *const bad[] = {NULL,
				    (void *)8,
				    (void *)-1,
				    (void *)-4096,
				    (void *)0x8000000000000000,
				    (void *)0x7ffffffff000};

	switch (below(12)) {
	case 0:
		return PICK(bad);
	case 1:
		return scratch + SCRATCH - below(64); /* runs over the end */
	case 2:
		return read_only + below(PAGE);
	case 3:
		return maps[below(MAPS)].at;
	default:
		return scratch + below((unsigned int)(SCRATCH - size));
	}
}

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

/* Of the unit that traces; there is none natively. */
static uint32_t trace_type(void)
{
	static int type;
	FILE *file;

	if (type)
		return (uint32_t)type;
	file = fopen("/sys/bus/event_source/devices/intel_bts/type", "r");
	if (!file || fscanf(file, "%d", &type) != 1)
		type = PERF_TYPE_MAX;
	if (file)
		fclose(file);
	return (uint32_t)type;
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

static void do_open(void)
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

static void do_read(void)
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

static void do_ioctl(void)
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

static void do_map(void)
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
static void do_map_aux(void)
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
static void do_change_map(void)
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
static void do_poke(void)
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

static void do_rdpmc(void)
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

/* ---- descriptors ---- */

static void do_descriptor(void)
{
	unsigned int slot = below(FDS);
	int fd = some_fd(), copy;

	switch (below(7)) {
	case 0:
		copy = dup(fd);
		break;
	case 1:
		copy = fcntl(fd, one_in(2) ? F_DUPFD : F_DUPFD_CLOEXEC, below(100));
		break;
	case 2: /* over any that is not needed */
		copy = dup2(fd, one_in(4) ? 1000 + (int)below(40) : 100 + (int)below(100));
		break;
	case 3:
		copy = 20 + (int)below(300);
		syscall(SYS_close_range, copy, copy + below(20), below(3) * 2);
		return;
	case 4:
		copy = (int)syscall(SYS_dup3, fd, 100 + below(100), one_in(2) ? O_CLOEXEC : 0);
		break;
	default:
		close(fds[slot]);
		fds[slot] = -1;
		return;
	}
	if (copy < 0)
		return;
	close(fds[slot]);
	fds[slot] = copy;
}

static void send_fd(void)
{
	int fd = some_fd();
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec byte = {"x", 1};
	struct msghdr message = {.msg_iov = &byte,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *part = CMSG_FIRSTHDR(&message);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	sendmsg(SOCKET_FDS + (int)below(2), &message, MSG_DONTWAIT);
}

static void receive_fd(void)
{
	unsigned int slot = below(FDS);
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char text[1];
	struct iovec byte = {text, 1};
	struct msghdr message = {.msg_iov = &byte,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(SOCKET_FDS + (int)below(2), &message, MSG_DONTWAIT);
	struct cmsghdr *part = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (!part || part->cmsg_type != SCM_RIGHTS)
		return;
	if (fds[slot] >= 0)
		close(fds[slot]);
	memcpy(&fds[slot], CMSG_DATA(part), sizeof(fds[slot]));
}

static void do_fcntl(void)
{
	static const int signals[] = {0, SIGIO, SIGUSR1, SIGUSR2, 35, 40, 64, 65, -1, SIGWINCH};
	struct f_owner_ex owner = {(int)below(4), one_in(2) ? getpid() : gettid()};
	int fd = some_fd();

	switch (below(8)) {
	case 0:
		fcntl(fd, F_SETFL, draw() & (O_ASYNC | O_NONBLOCK | O_APPEND | O_DIRECT));
		return;
	case 1:
		fcntl(fd, F_SETOWN, getpid());
		return;
	case 2:
		fcntl(fd, F_SETSIG, PICK(signals));
		return;
	case 3:
		if (owner.type != F_OWNER_PGRP)
			fcntl(fd, F_SETOWN_EX, &owner);
		return;
	case 4:
		fcntl(fd, F_GETOWN_EX, any_pointer(sizeof(owner)));
		return;
	case 5:
		fcntl(fd, F_SETFL, O_ASYNC);
		return;
	default:
		fcntl(fd, (int)below(20) == F_SETOWN ? F_GETFL : F_GETFD, 0);
	}
}

static void do_other_calls(void)
{
	int fd = some_fd();
	char path[64];

	switch (below(9)) {
	case 0:
		fstat(fd, (struct stat *)scratch);
		return;
	case 1:
		if (write(fd, scratch, below(100)) < 0)
			return;
		return;
	case 2:
		lseek(fd, (off_t)any_number(), (int)below(4));
		return;
	case 3:
		if (pread(fd, scratch, below(100), (off_t)below(100)) < 0)
			return;
		return;
	case 4:
		if (ftruncate(fd, (off_t)below(100)) < 0)
			return;
		return;
	case 5:
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, scratch, 100) < 0)
			return;
		return;
	case 6:
		/* through /proc the pipe opens anew */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		close(open(path, O_RDONLY | O_NONBLOCK));
		return;
	case 7:
		if (splice(fd, NULL, some_fd(), NULL, 10, SPLICE_F_NONBLOCK) < 0)
			return;
		return;
	default:
		if (sendfile(fd, some_fd(), NULL, 10) < 0)
			return;
	}
}

/* ---- waiting ---- */

static void do_wait(void)
{
	struct pollfd list[70];
	struct epoll_event event = {.events = EPOLLIN | (one_in(2) ? EPOLLET : 0)};
	struct timeval timeout = {0, below(2000)};
	nfds_t nr = one_in(10) ? 70 : below(5);
	/* The kernel writes as many bits as it is told there are, once there are descriptors from
	 * 1024 on. */
	struct {
		fd_set first, more;
	} sets[3];
	int fd;

	switch (below(5)) {
	case 0:
		for (nfds_t i = 0; i < nr; i++)
			list[i] = (struct pollfd){any_fd(), (short)draw(), 0};
		poll(list, nr, (int)below(3));
		return;
	case 1:
		memset(sets, 0, sizeof(sets));
		for (unsigned int i = 0; i < 4; i++)
			if ((fd = some_fd()) >= 0 && fd < FD_SETSIZE)
				FD_SET(fd, &sets[below(3)].first);
		select(one_in(4) ? (int)below(2000) : 200, &sets[0].first, &sets[1].first,
		       &sets[2].first, &timeout);
		return;
	case 2:
		event.data.u64 = draw();
		epoll_ctl(epoll_fd, 1 + (int)below(3), any_fd(), &event);
		return;
	case 3:
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, some_fd(), any_pointer(sizeof(event)));
		return;
	default:
		epoll_wait(epoll_fd, (struct epoll_event *)scratch, 1 + (int)below(10),
			   (int)below(3));
	}
}

/* ---- work ---- */

static void do_work(void)
{
	switch (below(6)) {
	case 0:
		work_loop(1 + any_number() % 100000);
		return;
	case 1:
		work_calls(1 + below(500));
		return;
	case 2:
		work_faults(1 + below(20));
		return;
	case 3:
		for (unsigned int i = 0; i < 50; i++)
			work_store8(scratch);
		return;
	case 4:
		usleep(below(300));
		return;
	default:
		for (unsigned int i = 0; i < 10; i++)
			getppid();
	}
}

/* ---- processes and threads ---- */

static void step(void);

static void steps(unsigned int nr)
{
	while (nr--)
		step();
}

static void *thread_main(void *arg)
{
	draw_state = (uint64_t)(uintptr_t)arg;
	steps(below(40));
	__atomic_fetch_sub(&threads, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void do_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (__atomic_load_n(&threads, __ATOMIC_RELAXED) >= THREADS)
		return;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
	if (pthread_create(&thread, &attributes, thread_main, (void *)(uintptr_t)draw()))
		__atomic_fetch_sub(&threads, 1, __ATOMIC_RELAXED);
	pthread_attr_destroy(&attributes);
}

_Noreturn static void execute_again(void)
{
	char number[16], seed[32], deep[16];

	snprintf(number, sizeof(number), "%u", me);
	snprintf(seed, sizeof(seed), "%lu", (unsigned long)draw());
	snprintf(deep, sizeof(deep), "%u", depth);
	execl("/proc/self/exe", "hostile", "again", number, seed, deep, (char *)NULL);
	_exit(0);
}

/* Each process has a folder of its own: their cores may have the same name. */
static void go_to_folder(void)
{
	const char *cores = getenv("HOSTILE_CORES");
	char path[200];

	if (!cores)
		return;
	snprintf(path, sizeof(path), "%s/%d", cores, getpid());
	mkdir(path, 0700);
	if (chdir(path) < 0)
		_exit(2);
}

/* What is inherited is seen to the end. */
_Noreturn static void child(bool may_return)
{
	if (!may_return)
		_exit(0);
	go_to_folder();
	depth++;
	threads = 0;
	memset(kids, 0, sizeof(kids));
	memset(maps, 0, sizeof(maps)); /* they are not inherited */
	draw_state ^= (uint64_t)getpid();
	steps(below(60));
	if (one_in(3))
		execute_again();
	if (one_in(3))
		execl("/bin/true", "true", (char *)NULL);
	if (one_in(8))
		kill(getpid(), SIGKILL);
	_exit(0);
}

static void do_fork(void)
{
	unsigned int slot = below(KIDS);
	pid_t pid;

	if (kids[slot] || depth >= DEPTH)
		return;
	if (one_in(4)) {
		pid = vfork();
		if (!pid) {
			if (one_in(2))
				execl("/bin/true", "true", (char *)NULL);
			_exit(0);
		}
	} else {
		pid = fork();
		if (!pid)
			child(true);
	}
	kids[slot] = pid > 0 ? pid : 0;
}

static void do_end_kid(void)
{
	unsigned int slot = below(KIDS);

	if (!kids[slot])
		return;
	if (one_in(2))
		kill(kids[slot], one_in(2) ? SIGKILL : SIGUSR1);
	/* A child is not waited for without end: it may itself wait for its own. */
	for (unsigned int i = 0; i < 50; i++) {
		if (waitpid(kids[slot], NULL, WNOHANG)) {
			kids[slot] = 0;
			return;
		}
		usleep(100);
	}
}

static void do_limits(void)
{
	struct rlimit limit;

	switch (below(3)) {
	case 0:
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = one_in(2) ? limit.rlim_max : 10 + below(100);
		if (limit.rlim_cur <= limit.rlim_max)
			setrlimit(RLIMIT_NOFILE, &limit);
		return;
	case 1:
		prctl(one_in(2) ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE);
		return;
	default:
		prctl(PR_SET_NAME, one_in(2) ? "hostile" : "a name that is too long");
	}
}

/* ---- a step ---- */

static void (*const calls[])(void) = {
	do_open,    do_open,	    do_open,   do_open,	      do_read,	  do_read,
	do_ioctl,   do_ioctl,	    do_ioctl,  do_map,	      do_map,	  do_map_aux,
	do_map_aux, do_change_map,  do_poke,   do_rdpmc,      do_fcntl,	  do_descriptor,
	do_wait,    do_wait,	    do_work,   do_work,	      do_thread,  do_fork,
	do_end_kid, do_other_calls, do_limits, do_descriptor, receive_fd, send_fd,
};

static void step(void)
{
	unsigned int which = below(sizeof(calls) / sizeof(*calls));

	shared->callers[me].last = which;
	shared->callers[me].where = draw_state;
	calls[which]();
	__atomic_fetch_add(&shared->callers[me].calls, 1, __ATOMIC_RELAXED);
}

/* ---- beginning ---- */

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	/* Sent by somebody, or a fault of our own doing. */
	if (number != SIGSEGV && number != SIGBUS)
		return;
	if (poking && info->si_code > 0)
		siglongjmp(back, 1);
	signal(number, SIG_DFL);
}

static void handle_signals(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};

	for (int number = 1; number <= SIGRTMAX; number++)
		if (number != SIGCHLD && number != SIGILL && number != SIGFPE && number != SIGABRT)
			sigaction(number, &action, NULL);
}

static void begin(unsigned int number, uint64_t seed)
{
	go_to_folder();
	me = number;
	draw_state = seed;
	handle_signals();
	scratch = mmap(NULL, SCRATCH + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	read_only = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (scratch == MAP_FAILED || read_only == MAP_FAILED)
		_exit(2);
	munmap(scratch + SCRATCH, PAGE);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
}

void caller(unsigned int number, uint64_t seed)
{
	begin(number, seed);
	for (unsigned int i = 0; i < FDS; i++)
		fds[i] = -1;
	for (;;)
		step();
}

void caller_again(unsigned int number, uint64_t seed, unsigned int deep)
{
	begin(number, seed);
	depth = deep;
	/* Those that were not to be closed may be anywhere. */
	for (unsigned int i = 0; i < FDS; i++)
		fds[i] = one_in(2) ? 3 + (int)below(60) : -1;
	steps(below(60));
	_exit(0);
}
