// SPDX-License-Identifier: MIT
/*
 * Samples of page faults: where each was, and what had touched it. Where the kernel helps the
 * addresses are its own.
 */
#include "event_case.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 40, BIG_RING = PAGE + 16 * PAGE };

struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t address;
};

static int open_samples(unsigned int config, unsigned int period, struct sample **samples,
			struct perf_event_mmap_page **page)
{
	struct perf_event_attr attr = faults();
	int fd;

	attr.config = config;
	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR;
	attr.disabled = 1;
	fd = own_event(&attr);
	*page = mmap(NULL, BIG_RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(*page != MAP_FAILED);
	*samples = (struct sample *)((char *)*page + PAGE);
	return fd;
}

static volatile char *new_pages(void)
{
	char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	need(memory != MAP_FAILED);
	madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE);
	return memory;
}

/* One instruction of it stores. */
static __attribute__((noinline, noclone)) void touch(volatile char *memory, int nr)
{
	for (int i = 0; i < nr; i++)
		memory[i * PAGE + 16] = 1;
}

/* How many of the pages are told, in order, as touched there. */
static int told(const struct perf_event_mmap_page *page, const struct sample *samples,
		const volatile char *memory, int step)
{
	const uint64_t nr = page->data_head / sizeof(*samples);
	int next = step - 1, found = 0;

	for (uint64_t i = 0; i < nr; i++) {
		if (samples[i].address != (uintptr_t)(memory + next * PAGE + 16) ||
		    samples[i].ip - (uintptr_t)touch >= 64)
			continue;
		found++;
		next += step;
	}
	return found;
}

static void case_addresses(void)
{
	static const unsigned int configs[] = {PERF_COUNT_SW_PAGE_FAULTS,
					       PERF_COUNT_SW_PAGE_FAULTS_MIN};
	struct perf_event_mmap_page *page;
	struct sample *samples;

	for (unsigned int i = 0; i < 2; i++) {
		const int fd = open_samples(configs[i], 1, &samples, &page);
		volatile char *memory = new_pages();

		need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		touch(memory, PAGES / 2);
		getppid();
		touch(memory + PAGES / 2 * PAGE, PAGES / 2);
		need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		say("pages told: %d\n", told(page, samples, memory, 1));
		/* Again, with the event that was opened before. */
		memory = new_pages();
		need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		touch(memory, PAGES);
		need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		say("pages told: %d\n", told(page, samples, memory, 1));
		munmap(page, BIG_RING);
		close(fd);
	}
}

static volatile int nr_signals, event;

static void go_on(int number)
{
	(void)number;
	nr_signals++;
	need(!ioctl(event, PERF_EVENT_IOC_REFRESH, 1));
}

/* A profiler of its own process: each fault stops the event, and its handler starts it again. */
static void case_refreshed(void)
{
	struct perf_event_mmap_page *page;
	struct sample *samples;
	volatile char *memory = new_pages();
	int seen = 0;

	signal(SIGRTMIN, go_on);
	event = open_samples(PERF_COUNT_SW_PAGE_FAULTS, 1, &samples, &page);
	need(!fcntl(event, F_SETOWN, getpid()) && !fcntl(event, F_SETSIG, SIGRTMIN));
	need(!fcntl(event, F_SETFL, O_ASYNC));
	need(!ioctl(event, PERF_EVENT_IOC_REFRESH, 1));
	for (int i = 0; i < PAGES; i++) {
		const int before = nr_signals;

		touch(memory + i * PAGE, 1);
		seen += nr_signals > before;
	}
	need(!ioctl(event, PERF_EVENT_IOC_DISABLE, 0));
	say("pages signalled: %d, told: %d\n", seen, told(page, samples, memory, 1));
	/* Far more than the runtime puts up with while nobody samples. */
	for (int i = 0; i < 20; i++)
		touch(new_pages(), PAGES);
	memory = new_pages();
	need(!ioctl(event, PERF_EVENT_IOC_REFRESH, 1));
	touch(memory, PAGES);
	need(!ioctl(event, PERF_EVENT_IOC_DISABLE, 0));
	say("pages told: %d\n", told(page, samples, memory, 1));
}

/* The registers are those of the instruction. */
static void case_registers(void)
{
	struct registers_sample {
		struct perf_event_header header;
		uint64_t ip, address, abi, stack, registers_ip;
	} * samples;
	struct perf_event_attr attr = faults();
	volatile char *memory = new_pages();
	char *page;
	int fd, nr, found = 0;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER;
	attr.sample_regs_user = 1 << 7 | 1 << 8; /* rsp, rip */
	attr.disabled = 1;
	fd = own_event(&attr);
	page = mmap(NULL, BIG_RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(page != MAP_FAILED);
	samples = (struct registers_sample *)(page + PAGE);
	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch(memory, PAGES);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	nr = (int)(((struct perf_event_mmap_page *)page)->data_head / sizeof(*samples));
	for (int i = 0; i < nr; i++)
		found += samples[i].address == (uintptr_t)(memory + found * PAGE + 16) &&
			 samples[i].registers_ip == samples[i].ip &&
			 samples[i].ip - (uintptr_t)touch < 64 &&
			 samples[i].stack - (uintptr_t)&attr + PAGE < 2 * PAGE;
	say("pages told: %d\n", found);
}

/* The runtime, which makes the new image, has faults while it does. */
static void case_exec(void)
{
	struct perf_event_mmap_page *page;
	struct sample *samples;
	const pid_t child = fork();
	int status;

	if (!child) {
		int fd = open_samples(PERF_COUNT_SW_PAGE_FAULTS, 1, &samples, &page);

		need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		touch(new_pages(), PAGES);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	need(waitpid(child, &status, 0) == child);
	say("ended: %d\n", status);
}

/* A child has an event of its own; what its parent's event was told it does not inherit. */
static void case_children(void)
{
	struct perf_event_mmap_page *page;
	struct sample *samples;
	int fd = open_samples(PERF_COUNT_SW_PAGE_FAULTS, 1, &samples, &page), status;
	volatile char *memory = new_pages();
	pid_t child;

	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch(memory, 5);
	child = fork();
	if (!child) {
		struct perf_event_mmap_page *own_page;
		struct sample *own;
		int own_fd = open_samples(PERF_COUNT_SW_PAGE_FAULTS, 1, &own, &own_page);

		memory = new_pages();
		need(!ioctl(own_fd, PERF_EVENT_IOC_ENABLE, 0));
		touch(memory, 20);
		need(!ioctl(own_fd, PERF_EVENT_IOC_DISABLE, 0));
		_exit(told(own_page, own, memory, 1));
	}
	need(waitpid(child, &status, 0) == child);
	say("of the child: %d\n", WEXITSTATUS(status));
	memory = new_pages();
	touch(memory, 20);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("of the parent: %d\n", told(page, samples, memory, 1));
}

static void *thread(void *result)
{
	struct perf_event_mmap_page *page;
	struct sample *samples;
	int fd = open_samples(PERF_COUNT_SW_PAGE_FAULTS, 1, &samples, &page);
	volatile char *memory = new_pages();

	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch(memory, 30);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	*(int *)result = told(page, samples, memory, 1);
	munmap(page, BIG_RING);
	return NULL; /* the event is still open */
}

static void case_threads(void)
{
	for (int round = 0; round < 5; round++) {
		pthread_t threads[4];
		int results[4];

		for (int i = 0; i < 4; i++)
			need(!pthread_create(&threads[i], NULL, thread, &results[i]));
		for (int i = 0; i < 4; i++)
			need(!pthread_join(threads[i], NULL));
		say("%d %d %d %d\n", results[0], results[1], results[2], results[3]);
	}
}

/* They may have the places of their parents' threads, of whom the kernel's mappings are not there. */
static void case_threads_of_children(void)
{
	struct perf_event_mmap_page *page;
	struct sample *samples;
	int fd = open_samples(PERF_COUNT_SW_PAGE_FAULTS, 1, &samples, &page), status;
	pid_t child;

	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch(new_pages(), 5);
	child = fork();
	if (!child) {
		pthread_t other;
		int result;

		need(!pthread_create(&other, NULL, thread, &result));
		need(!pthread_join(other, NULL));
		_exit(result);
	}
	need(waitpid(child, &status, 0) == child);
	say_status("of the child", status);
}

static void *nothing(void *unused)
{
	return unused;
}

/* Who may not open events any more goes on, whether or not somebody knows where its faults are; and
 * who may not populate memory, when the runtime needs more of it. */
static void case_confined(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_perf_event_open, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_POPULATE_WRITE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
	struct perf_event_mmap_page *page;
	struct sample *samples;
	int fd = open_samples(PERF_COUNT_SW_PAGE_FAULTS, 1, &samples, &page);
	pthread_t thread;

	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch(new_pages(), PAGES);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("samples: %d\n", page->data_head >= PAGES * sizeof(*samples));
	need(!pthread_create(&thread, NULL, nothing, NULL));
	need(!pthread_join(thread, NULL));
}

static volatile struct {
	unsigned int nr;
	uintptr_t at[PAGES];
} traps;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if (traps.nr < PAGES)
		traps.at[traps.nr++] = (uintptr_t)info->si_addr;
}

/* The signal tells the address, also while rings come and go, which nobody faults for. */
static void case_trapped(void)
{
	const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct perf_event_attr attr = faults();
	int fd;

	need(!sigaction(SIGTRAP, &action, NULL));
	attr.sample_period = 1;
	attr.sigtrap = attr.remove_on_exec = attr.disabled = 1;
	fd = own_event(&attr);
	for (unsigned int pages = 0; pages < 3; pages++) {
		volatile char *memory = new_pages();
		unsigned int found = 0;
		void *ring = MAP_FAILED;

		if (pages)
			ring = mmap(NULL, (1 + pages) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
				    fd, 0);
		need((ring != MAP_FAILED) == (pages != 0));
		traps.nr = 0;
		need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		touch(memory, PAGES / 2);
		need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		for (unsigned int i = 0; i < traps.nr && found < PAGES / 2; i++)
			found += traps.at[i] == (uintptr_t)(memory + found * PAGE + 16);
		say("a ring of %u pages: %u of %d told\n", pages, found, PAGES / 2);
		if (pages)
			need(!munmap(ring, (1 + pages) * PAGE));
	}
}

/* What is mapped for a ring is nobody's fault. */
static void case_rings(void)
{
	struct perf_event_mmap_page *page;
	struct sample *samples;
	const int fd = open_samples(PERF_COUNT_SW_PAGE_FAULTS, 100000, &samples, &page);
	uint64_t before;

	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	before = count_of(fd);
	for (int i = 0; i < 20; i++)
		map_ring(own_faults());
	say("as many: %d\n", count_of(fd) - before < 50);
}

const struct test_case cases[] = {
	{"trapped", case_trapped},
	{"rings", case_rings},
	{"addresses", case_addresses},
	{"refreshed", case_refreshed},
	{"registers", case_registers},
	{"exec", case_exec},
	{"children", case_children},
	{"threads", case_threads},
	{"confined", case_confined},
	{"threads_of_children", case_threads_of_children},
	{NULL, NULL},
};
