// SPDX-License-Identifier: MIT
/* What events of the unit `uprobe` tell, in samples and by signals, and what cannot be had: as
 * natively. */
#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe_case.h"

/* ---- samples ---- */

struct ring {
	struct perf_event_mmap_page *page;
	unsigned char *data;
};

static struct ring ring_of(int fd)
{
	void *at = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	need(at != MAP_FAILED);
	return (struct ring){at, (unsigned char *)at + PAGE};
}

/* The next record, which must not be at the end of the ring: a few of them are not. */
static const struct perf_event_header *next(struct ring *ring)
{
	const struct perf_event_header *header;

	if (ring->page->data_tail == ring->page->data_head)
		return NULL;
	header = (const void *)(ring->data + ring->page->data_tail);
	ring->page->data_tail += header->size;
	return header;
}

/* Of the raw data's flags: somebody else was to have the processor just then. */
enum { RESCHED = 0x02 | 0x04 | 0x20 };

struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t address, period, frames, user, first;
	uint32_t raw_size;
	uint16_t type;
	uint8_t flags, preemption;
	uint32_t raw_pid;
	uint32_t raw[];
};

/* @type: of the raw data, which differs from run to run unless it is 0. */
__attribute__((noipa)) static void say_samples(struct perf_event_attr attr, int when, int type)
{
	const struct sample *s;
	struct ring ring;
	int fd;

	attr.disabled = 1;
	attr.sample_period = 1;
	attr.sample_max_stack = 1;
	attr.exclude_callchain_kernel = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR |
			   PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
			   PERF_SAMPLE_REGS_USER;
	attr.sample_regs_user = 1 << PERF_REG_X86_IP | 1 << PERF_REG_X86_DI;
	fd = own_event(&attr);
	ring = ring_of(fd);
	enable(fd);
	for (int i = 0; i < 3; i++)
		called(1000 + i);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	while ((s = (const struct sample *)next(&ring))) {
		const uint64_t entry = (uintptr_t)called, *regs;
		uint64_t met[2] = {0};

		memcpy(met, s->raw, when == RETURN ? 16 : 8);
		say("record %u, %#x, %u bytes\n", s->header.type, s->header.misc, s->header.size);
		say("at the function %d, in here %d\n", s->ip == entry,
		    s->ip - (uintptr_t)say_samples < 4096);
		say("mine %d, address %lu, period %lu\n",
		    s->pid == (uint32_t)getpid() && s->tid == (uint32_t)gettid(),
		    (unsigned long)s->address, (unsigned long)s->period);
		say("%lu frames, %ld, first %d\n", (unsigned long)s->frames, (long)s->user,
		    s->first == s->ip);
		say("raw %u bytes, %d %u, pid %d\n", s->raw_size, s->type - type,
		    s->flags & ~RESCHED, s->raw_pid == (uint32_t)getpid());
		say("function %d, returned to %d\n", met[0] == entry, met[1] == s->ip);
		regs = (const uint64_t *)((const char *)s + s->header.size) - 3;
		say("registers %lu, ip %d", (unsigned long)regs[0], regs[2] == s->ip);
		if (when == ENTRY)
			say(", argument %lu", (unsigned long)regs[1]);
		say("\n");
	}
	munmap(ring.page, RING);
	close(fd);
}

static void case_samples(void)
{
	say_samples(probe(called, ENTRY), ENTRY, 0);
	say_samples(probe(called, RETURN), RETURN, 0);
}

/* ---- of the tracing directory ---- */

static int control = -1;

static const char *folder(void)
{
	return access("/sys/kernel/tracing/events", F_OK) ? "/sys/kernel/debug/tracing"
							  : "/sys/kernel/tracing";
}

static void open_control(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/uprobe_events", folder());
	control = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (control >= 0)
		return;
	say("skip: no probes can be made in the tracing directory\n");
	_exit(0);
}

/* In @path, this program's. @behind: the arguments, behind a blank. Returns the event, whose
 * name is @name. */
static struct perf_event_attr traced_in(const char *path, const char *name, int when,
					const char *behind)
{
	const struct perf_event_attr place = probe(called, when);
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr)};
	char text[8192];
	long long id = 0;
	FILE *file;

	snprintf(text, sizeof(text), "%c:told%d/%s %s:%#llx%s\n", when == RETURN ? 'r' : 'p',
		 (int)getpid(), name, path, (unsigned long long)place.probe_offset, behind);
	need(write(control, text, strlen(text)) == (ssize_t)strlen(text));
	snprintf(text, sizeof(text), "%s/events/told%d/%s/id", folder(), (int)getpid(), name);
	file = fopen(text, "re");
	need(file && fscanf(file, "%lld", &id) == 1);
	fclose(file);
	attr.config = (uint64_t)id;
	return attr;
}

static struct perf_event_attr traced(const char *name, int when, const char *behind)
{
	return traced_in(own_path, name, when, behind);
}

/* It can be taken away a while after nobody has it. */
static void forget(const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "-:told%d/%s\n", (int)getpid(), name);
	for (int i = 0; i < 500 && write(control, text, strlen(text)) < 0; i++)
		usleep(10000);
}

static void case_traced(void)
{
	struct perf_event_attr attr;
	int fd, child, status;

	/* Where there are no events nothing is left behind. */
	attr = probe(called, ENTRY);
	close(own_event(&attr));
	open_control();
	/* One that is not asked for. */
	traced("another", RETURN, " arg1=$retval");
	attr = traced("entry", ENTRY, "");
	say_samples(attr, ENTRY, (int)attr.config);
	attr.inherit = 1;
	fd = own_event(&attr);
	called(1);
	child = fork();
	if (!child) {
		called(2);
		called(3);
		_exit(0);
	}
	need(waitpid(child, &status, 0) == child);
	say_count("with a child", fd);
	close(fd);
	attr = traced("back", RETURN, "");
	say_samples(attr, RETURN, (int)attr.config);
	attr = traced("argument", ENTRY, " n=%di:s32");
	fd = own_event(&attr);
	called(1);
	called(2);
	say_count("with an argument", fd);
	close(fd);
	forget("argument");
	forget("back");
	forget("entry");
	forget("another");
}

/* Somebody may say that he cannot tell. */
static void say_no_wrong_count(struct perf_event_attr *attr, const char *what)
{
	const int fd = (int)raw(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	called(1);
	say("no wrong count of %s: %d\n", what,
	    fd == -EOPNOTSUPP || (fd >= 0 && count_of(fd) == 1));
	if (fd >= 0)
		close(fd);
}

/* What looks like a place in a path is none; and a path from some folder or other is not taken
 * for one from here, nor one that leads nowhere any more for that of nothing. */
static void case_traced_paths(void)
{
	char folder_of[] = "/tmp/told-XXXXXX", path[64];
	struct perf_event_attr attr;
	int fd;

	attr = probe(called, ENTRY);
	close(own_event(&attr));
	open_control();
	need(mkdtemp(folder_of));
	snprintf(path, sizeof(path), "%s/a:0x5", folder_of);
	need(!symlink(own_path, path));
	attr = traced_in(path, "places", ENTRY, "");
	fd = own_event(&attr);
	called(1);
	say_count("with places in the path", fd);
	close(fd);
	attr = traced_in(path, "arguments", ENTRY, " n=%di:s32 text=+0x0(%di):x64");
	fd = own_event(&attr);
	called(1);
	say_count("and with arguments", fd);
	close(fd);
	need(!chdir(folder_of));
	attr = traced_in("./a:0x5", "relative", ENTRY, "");
	need(!chdir("/"));
	say_no_wrong_count(&attr, "a relative path");
	attr = traced_in(path, "gone", ENTRY, "");
	need(!unlink(path) && !rmdir(folder_of));
	say_no_wrong_count(&attr, "a path that is gone");
	forget("gone");
	forget("relative");
	forget("arguments");
	forget("places");
}

static int samples(struct ring *ring)
{
	int n = 0;

	while (next(ring))
		n++;
	return n;
}

static void case_periods(void)
{
	struct perf_event_attr attr = probe(called, ENTRY);
	uint64_t period = 2;
	struct ring ring;
	int fd;

	attr.sample_period = 5;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = own_event(&attr);
	ring = ring_of(fd);
	call(called, 52);
	say("each fifth: %d\n", samples(&ring));
	need(!ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	call(called, 23);
	samples(&ring);
	call(called, 20);
	say("each second: %d\n", samples(&ring));
	say_count("all", fd);
	close(fd);
	/* Who wants to be told how often is told each time. */
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
	fd = own_event(&attr);
	ring = ring_of(fd);
	call(called, 20);
	say("with periods: %d\n", samples(&ring));
}

static volatile sig_atomic_t signals, in, hup;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	signals++;
	in += info->si_code == POLL_IN;
	hup += info->si_code == POLL_HUP;
}

static void say_signals(const char *what)
{
	say("%s: %d, of which %d in, %d hup\n", what, signals, in, hup);
	signals = in = hup = 0;
}

static void signal_me(int fd)
{
	need(!fcntl(fd, F_SETFL, O_ASYNC) && !fcntl(fd, F_SETSIG, SIGUSR1) &&
	     !fcntl(fd, F_SETOWN, getpid()));
}

static void case_signals(void)
{
	struct perf_event_attr attr = probe(called, ENTRY);
	int fd;

	handle(SIGUSR1, on_signal, 0);
	attr.disabled = 1;
	attr.sample_period = 1;
	fd = own_event(&attr);
	signal_me(fd);
	enable(fd);
	call(called, 6);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say_signals("entered");
	need(!ioctl(fd, PERF_EVENT_IOC_REFRESH, 3));
	call(called, 6);
	say_signals("refreshed");
	say_count("counted", fd);
	close(fd);
	attr.config = RETURN;
	fd = own_event(&attr);
	signal_me(fd);
	enable(fd);
	call(called, 6);
	say_signals("returned");
	say_count("counted", fd);
}

/* ---- what is refused ---- */

extern const char hlt_here[], int3_here[], lock_here[], in_here[], branch_here[], fine_here[];
__asm__(".text\n"
	"hlt_here: hlt\n"
	"int3_here: int3\n"
	"lock_here: lock incl (%rax)\n"
	"in_here: in $3, %al\n"
	"branch_here: .byte 0x66, 0xe9, 0, 0, 0, 0\n"
	"fine_here: syscall; ud2\n");

static void try(const char *what, struct perf_event_attr *attr)
{
	const int fd = open_event(attr, 0, -1, -1, 0);

	if (fd < 0 && errno == 524)
		say("%s: ENOTSUPP\n", what);
	else
		say("%s: %s\n", what, fd < 0 ? errno_name(errno) : "0");
	if (fd >= 0)
		close(fd);
}

static void try_path(const char *what, const char *path, uint64_t offset)
{
	struct perf_event_attr attr = probe_in(path, offset);

	try(what, &attr);
}

static void try_code(const char *what, const char *code)
{
	try_path(what, own_path, offset_of(code));
}

static void case_errors(void)
{
	struct perf_event_attr attr = probe(called, ENTRY);
	static char longest[8192];
	int fd;

	close(own_event(&attr));
	try_path("no path", NULL, 1);
	try_path("a bad pointer", nowhere, 1);
	try_path("an empty path", "", 1);
	try_path("no such file", "/nonexistent/file", 1);
	try_path("below a file", "/etc/passwd/file", 1);
	try_path("a folder", "/", 1);
	try_path("a device", "/dev/null", 0);
	try_path("no file on a disk", "/proc/cpuinfo", 0);
	need(!mkfifo("fifo", 0600) && !symlink("link", "link") && !symlink(own_path, "program"));
	try_path("a pipe", "fifo", 0);
	try_path("a link to itself", "link", 0);
	try_path("a link", "program", attr.probe_offset);
	memset(longest, 'a', sizeof(longest) - 1);
	try_path("a path too long", longest, 1);
	longest[4096] = '\0';
	try_path("a path just too long", longest, 1);
	longest[4095] = '\0';
	try_path("a name too long", longest, 1);

	fd = open("short", O_WRONLY | O_CREAT, 0755);
	need(write(fd, "0123456789", 10) == 10);
	close(fd);
	try_path("at the end", "short", 10);
	try_path("behind the end", "short", 11);
	try_path("far behind", own_path, 1UL << 40);
	try_path("no code", "/etc/passwd", 3);
	try_path("of the header", own_path, 0);

	try_code("hlt", hlt_here);
	try_code("int3", int3_here);
	try_code("lock", lock_here);
	try_code("in", in_here);
	try_code("a short branch", branch_here);
	try_code("a system call", fine_here);

	attr.config = 2;
	try("another bit of config", &attr);
	attr.config = 1UL << 32;
	try("a counter at an odd offset", &attr);
	attr.config = 0;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	try("branch stacks", &attr);
	attr = probe(called, ENTRY);
	attr.use_clockid = 1;
	attr.clockid = CLOCK_REALTIME;
	try("a clock", &attr);
	attr = probe(called, ENTRY);
	say("of nobody: %s\n", result_name(open_event(&attr, -1, -1, -1, 0)));
	fd = own_event(&attr);
	say("attributes: %s\n", result_name(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr)));
	say("no program: %s\n", result_name(ioctl(fd, PERF_EVENT_IOC_SET_BPF, -1)));
	say("another file: %s\n", result_name(ioctl(fd, PERF_EVENT_IOC_SET_BPF, 0)));
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, case_##name                                                                 \
	}

const struct test_case cases[] = {
	CASE(samples), CASE(traced), CASE(traced_paths), CASE(periods), CASE(signals),
	CASE(errors),  {0},
};
